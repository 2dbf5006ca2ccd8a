package cpu

import (
	"fmt"
	"math"
	"strconv"

	"alidade/trainer/cpu/nn"
)

// bonusKey names the entropy coefficient in a checkpoint's metadata.
const bonusKey = "entropy_coeff"

// steer sets the entropy bonus of the step whose rollouts these are. With H
// their mean entropy in nats a token and H* the target:
//
//	c ← max(0, c + δ) if H < H*, max(0, c − δ) otherwise
//	η = c if H < H*, 0 otherwise
//
// c starts at the recipe's entropy_coeff and is part of a checkpoint. The rule
// is the adaptive entropy control of Skywork-OR1 (arXiv 2505.22312), with δ
// 0.005 as there.
func (r *run) steer(all []*rollout) {
	o := &r.objective
	if o.EntropyTarget == 0 {
		return
	}
	r.bonus, o.Entropy = towards(o.EntropyTarget, o.EntropyDelta, r.bonus, meanEntropy(all))
}

// towards returns the next coefficient and what the loss takes of it.
func towards(target, delta, c, entropy float64) (next, bonus float64) {
	if entropy < target {
		c += delta
		return c, c
	}
	return math.Max(0, c-delta), 0
}

// meanEntropy is the mean over all tokens that the policy wrote, nats.
func meanEntropy(all []*rollout) float64 {
	sum, n := 0.0, 0
	for _, o := range all {
		for _, h := range o.entropy {
			sum += float64(h)
		}
		n += len(o.entropy)
	}
	return sum / float64(max(n, 1))
}

// recallBonus takes the coefficient from a checkpoint's metadata.
func (r *run) recallBonus(text string) error {
	if r.objective.EntropyTarget == 0 {
		return nil
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || v < 0 {
		return fmt.Errorf("%w: entropy coefficient %q, must be a number from 0 on", nn.ErrCorrupt, text)
	}
	r.bonus = v
	return nil
}
