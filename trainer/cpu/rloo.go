package cpu

import "alidade/ablation"

// rloo compares a reward with the mean of the group's other rewards and
// divides by nothing.
func rloo(o *objective, _ *ablation.Algorithm) {
	o.Baseline, o.Std = "leave-one-out", "none"
}
