package cpu

import (
	"math"

	"alidade/ablation"
)

// reinforce is REINFORCE++: rewards are normalised over the tokens of the
// whole batch, whatever prompt they answer.
func reinforce(o *objective, _ *ablation.Algorithm) { o.Baseline, o.Std = "batch", "batch" }

// reinforceBaseline takes the group's mean off before it does.
func reinforceBaseline(o *objective, _ *ablation.Algorithm) {
	o.Baseline, o.Std = "group+batch", "batch"
}

// whiten shifts and scales the advantages of the rollouts in the loss to mean
// 0 and variance 1, each counted once a token. The variance has n−1 in the
// denominator and 1e-8 added, as in verl.
func whiten(all []*rollout) {
	n, sum := 0.0, 0.0
	for _, r := range all {
		if r.inLoss {
			n += float64(len(r.logprob))
			sum += r.advantage * float64(len(r.logprob))
		}
	}
	if n < 2 {
		return
	}
	mean, squares := sum/n, 0.0
	for _, r := range all {
		if r.inLoss {
			d := r.advantage - mean
			squares += d * d * float64(len(r.logprob))
		}
	}
	scale := 1 / math.Sqrt(squares/(n-1)+1e-8)
	for _, r := range all {
		if r.inLoss {
			r.advantage = (r.advantage - mean) * scale
		}
	}
}
