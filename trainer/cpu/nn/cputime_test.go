//go:build unix

package nn

import (
	"syscall"
	"testing"
)

// cpuSeconds is the processor time of this process so far. Rates per second of
// it hold still while other programs share the machine.
func cpuSeconds(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	at := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return at(u.Utime) + at(u.Stime)
}
