// Command python poses as a Python interpreter with a training framework; see
// package emulator. It is a test tool and trains nothing.
package main

import (
	"os"

	"alidade/trainer/emulator"
)

func main() { os.Exit(emulator.Main(os.Args)) }
