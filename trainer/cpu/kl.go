package cpu

import (
	"math"

	"alidade/trainer"
	"alidade/trainer/cpu/nn"
)

// divergence estimates the KL of a token from log-probabilities under the
// policy and the reference, and gives the estimate's derivative by the first.
// The names are verl's: kl (k1), mse (k2), low_var_kl (k3), abs. The log ratio
// is cut at ±20 and low_var_kl at ±10, where the derivative is 0.
func divergence(kind string, now, ref float64) (kl, slope float64) {
	d := now - ref
	switch kind {
	case "kl":
		return d, 1
	case "mse":
		return d * d / 2, d
	case "abs":
		if d < 0 {
			return -d, -1
		}
		return d, 1
	}
	back := min(max(-d, -20), 20)
	kl = math.Exp(back) - back - 1
	switch {
	case kl > 10:
		return 10, 0
	case back != -d:
		return kl, 0
	}
	return kl, 1 - math.Exp(back)
}

// compare fills in the reference's log-probabilities of what the rollouts say.
func compare(ref *nn.Trainer, all []*rollout, temperature float64) error {
	seqs := make([]nn.Sequence, len(all))
	for i, r := range all {
		seqs[i] = r.sequence()
	}
	s, err := ref.Score(seqs, temperature)
	if err != nil {
		return err
	}
	for i, r := range all {
		r.ref, _ = s.Of(i)
	}
	return nil
}

// drift is the mean over tokens of log π − log π_ref when they were sampled.
func drift(all []*rollout) float64 {
	sum, n := 0.0, 0
	for _, r := range all {
		for k := range r.ref {
			sum += float64(r.logprob[k]) - float64(r.ref[k])
		}
		n += len(r.ref)
	}
	return sum / float64(max(n, 1))
}

// charge takes coef times the rollout's summed k1 off its reward.
func charge(r *rollout, coef float64) {
	sum := 0.0
	for k := range r.ref {
		sum += float64(r.logprob[k]) - float64(r.ref[k])
	}
	r.reward -= coef * sum
	r.parts = append(r.parts, trainer.Component{Name: "kl", Value: -coef * sum})
}
