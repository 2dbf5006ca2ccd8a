package cpu

import (
	"math"

	"alidade/ablation"
)

// The published range of a sequence ratio. It is used unless the recipe gives
// one below smallClip: a token's range never clips a mean over tokens.
const (
	sequenceLow  = 3e-4
	sequenceHigh = 4e-4
	smallClip    = 0.1
)

// gspo clips the ratio of whole sequences, exp(mean over tokens of log ρ), and
// always averages over the tokens of a sequence, then over sequences. There is
// no dual clip.
func gspo(o *objective, a *ablation.Algorithm) {
	o.Ratio, o.Agg, o.ClipC = "sequence", "seq-mean-token-mean", 0
	if a.ClipLow >= smallClip {
		o.ClipLow, o.ClipHigh = sequenceLow, sequenceHigh
	}
}

// sequenceRatio is s = exp(mean log ρ), the log cut at 10 as verl does.
func sequenceRatio(now, old []float32) float64 {
	sum := 0.0
	for k := range now {
		sum += float64(now[k]) - float64(old[k])
	}
	return math.Exp(min(sum/float64(max(len(now), 1)), 10))
}
