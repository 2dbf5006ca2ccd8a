package cpu

import "alidade/ablation"

// drGRPO is GRPO without its two biases: the advantage is not divided by the
// group's SD, and the loss is the sum over tokens divided by a constant.
func drGRPO(o *objective, _ *ablation.Algorithm) {
	o.Std, o.Agg = "none", "seq-mean-token-sum-norm"
	o.KLLoss, o.KLReward = 0, 0
}
