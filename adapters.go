package main

import (
	"alidade/trainer/native"
	"alidade/trainer/preflight"
)

// nativeAdapters are the frameworks of language models that this program drives.
func nativeAdapters() []native.Adapter { return preflight.Adapters() }
