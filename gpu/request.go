package gpu

import (
	"errors"
	"fmt"
	"slices"
)

// ErrNever is the class of requests that this machine can never fulfil.
var ErrNever = errors.New("no such devices here")

// String says the request in words: "4 GPUs of 80 GiB".
func (r Request) String() string {
	noun := "CPU slot"
	if r.Kind == KindGPU {
		noun = "GPU"
	}
	if r.N != 1 {
		noun += "s"
	}
	if r.MinMemoryMiB == 0 {
		return fmt.Sprintf("%d %s", r.N, noun)
	}
	return fmt.Sprintf("%d %s of %.3g GiB", r.N, noun, float64(r.MinMemoryMiB)/1024)
}

// Fits reports whether the device is of the kind, large enough and not put
// away. A "80 GB" card reports a little less than it is sold for, hence the 5 %.
func (r Request) Fits(d Device) bool {
	return d.Kind == r.Kind && !d.Quarantined && float64(d.MemoryMiB) >= 0.95*float64(r.MinMemoryMiB)
}

// smallest returns the n devices with least memory, in device order, so that
// large ones stay for those who need them.
func smallest(free []Device, n int) []Device {
	order := slices.Clone(free)
	slices.SortStableFunc(order, func(a, b Device) int { return int(a.MemoryMiB - b.MemoryMiB) })
	order = order[:n]
	rank := make(map[string]int, len(free))
	for i, d := range free {
		rank[d.ID] = i
	}
	slices.SortFunc(order, func(a, b Device) int { return rank[a.ID] - rank[b.ID] })
	return order
}
