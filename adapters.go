package main

import (
	"alidade/trainer/native"
	"alidade/trainer/trl"
)

// nativeAdapters are the frameworks of language models that this program drives.
func nativeAdapters() []native.Adapter {
	return []native.Adapter{trl.Adapter{}}
}
