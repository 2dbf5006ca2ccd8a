package cpu

import "alidade/ablation"

// dualClip bounds the loss of bad rollouts in the recipes that publish it.
const dualClip = 10

// grpoTCR is the recipe of token-level loss, a raised upper clip (the
// recipe's) and an over-long penalty, without KL.
func grpoTCR(o *objective, a *ablation.Algorithm) {
	o.Agg, o.ClipC = "token-mean", orFloat(a.ClipC, dualClip)
	o.Overlong = "shape"
	o.KLLoss, o.KLReward = 0, 0
}

// grpoSCR is the same with the ratio and the loss of whole sequences.
func grpoSCR(o *objective, a *ablation.Algorithm) {
	grpoTCR(o, a)
	gspo(o, a)
}
