package compact

import (
	"math/rand/v2"

	"alidade/sandbox"
)

// Rand returns a random stream that depends on words alone. Every random
// decision of this package and of the embedded trainer takes its own stream by
// what it is for ("query 17 of the panel"), never from a shared generator, so
// that resuming or reordering work changes no number.
func Rand(words ...uint64) *rand.Rand {
	return rand.New(rand.NewPCG(sandbox.Mix(words...), sandbox.Mix(append(words, 1)...)))
}

// The purposes of random streams.
const (
	forWorld = iota + 1
	forQuery
	forLabels
	forExpert
	forLegal
	forStroll
	forRecall
	forStitch
)
