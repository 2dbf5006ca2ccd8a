package cpu

import (
	"fmt"
	"strings"

	"alidade/ablation"
	"alidade/sandbox/travel/compact"
)

// objective is what an algorithm's name and the recipe's settings come down
// to. All algorithms share one surrogate; they differ in these fields alone.
type objective struct {
	Baseline string // what a reward is compared with: group, leave-one-out, batch, group+batch
	Std      string // what the advantage is divided by: group, batch, none
	Ratio    string // of probabilities: token, sequence
	Agg      string // verl's loss_agg_mode

	ClipLow, ClipHigh float64
	ClipC             float64 // dual clip, 0 = off
	LossScale         float64 // divisor of seq-mean-token-sum-norm

	KLLoss   float64 // weight, 0 = off
	KLType   string
	KLReward float64
	Entropy  float64 // of the step at hand, if it has a target

	EntropyTarget, EntropyDelta float64

	Epochs, Minibatches int

	Filter       bool   // dynamic sampling
	FilterMetric string // score, acc
	Rounds       int    // at most

	Overlong      string // mask, zero, shape
	Limit, Buffer int    // longest response and the part of it in which the penalty grows, tokens
	Penalty       float64

	Tree *tree // branching rollouts, nil for none
}

// kinds are the algorithms: each fixes the settings that define it and leaves
// the others as the recipe has them.
var kinds = map[string]func(o *objective, a *ablation.Algorithm){
	"grpo":                         func(*objective, *ablation.Algorithm) {},
	"dr_grpo":                      drGRPO,
	"dapo":                         dapo,
	"gspo":                         gspo,
	"rloo":                         rloo,
	"reinforce_plus_plus":          reinforce,
	"reinforce_plus_plus_baseline": reinforceBaseline,
	"grpo_tcr":                     grpoTCR,
	"grpo_scr":                     grpoSCR,
	"arpo":                         arpo,
}

// resolve works out the objective of a valid recipe.
func resolve(rec *ablation.Recipe) objective {
	a := &rec.Algorithm
	limit := rec.Environment.MaxTokens - compact.PromptFor(rec.Environment.Days)
	o := objective{
		Baseline: "group", Std: "none", Ratio: "token", Agg: a.LossAgg,
		ClipLow: a.ClipLow, ClipHigh: a.ClipHigh, ClipC: a.ClipC, LossScale: orFloat(a.LossScale, float64(rec.Environment.MaxTokens)),
		KLType: orText(a.KLLossType, "low_var_kl"), Entropy: a.EntropyCoeff,
		EntropyTarget: a.EntropyTarget, EntropyDelta: orFloat(a.EntropyDelta, 0.005),
		Epochs: max(a.Epochs, 1), Minibatches: a.Minibatches,
		Filter: a.FilterGroups, FilterMetric: orText(a.FilterMetric, "score"), Rounds: 1,
		Overlong: a.Overlong, Limit: limit, Buffer: a.OverlongBuffer, Penalty: orFloat(a.OverlongPenalty, 1),
	}
	if a.StdNorm {
		o.Std = "group"
	}
	if a.UseKLLoss {
		o.KLLoss = a.KLLossCoef
	}
	if a.UseKLInReward {
		o.KLReward = a.KLCoef
	}
	if o.Buffer == 0 {
		o.Buffer = max(1, limit/5)
	}
	if fix := kinds[a.Kind]; fix != nil {
		fix(&o, a)
	}
	if o.Filter {
		o.Rounds = a.MaxGenBatches
		if o.Rounds == 0 {
			o.Rounds = 10
		}
	}
	return o
}

// String lists the resolved settings, so that an arm is never just "GRPO".
func (o objective) String() string {
	parts := []string{
		fmt.Sprintf("advantage: baseline %s, divided by SD: %s", o.Baseline, o.Std),
		fmt.Sprintf("ratio of a %s clipped to 1−%g…1+%g", o.Ratio, o.ClipLow, o.ClipHigh),
		"aggregation " + o.Agg,
	}
	if o.ClipC > 0 {
		parts = append(parts, fmt.Sprintf("dual clip %g", o.ClipC))
	}
	if o.Agg == "seq-mean-token-sum-norm" {
		parts = append(parts, fmt.Sprintf("loss scale %g", o.LossScale))
	}
	switch {
	case o.KLLoss > 0:
		parts = append(parts, fmt.Sprintf("KL in the loss: %s × %g", o.KLType, o.KLLoss))
	case o.KLReward > 0:
		parts = append(parts, fmt.Sprintf("KL in the reward: kl × %g", o.KLReward))
	default:
		parts = append(parts, "no KL")
	}
	switch {
	case o.EntropyTarget > 0:
		parts = append(parts, fmt.Sprintf("entropy bonus from %g on, ±%g a step towards %g nats a token, none above them", o.Entropy, o.EntropyDelta, o.EntropyTarget))
	case o.Entropy > 0:
		parts = append(parts, fmt.Sprintf("entropy bonus %g", o.Entropy))
	}
	parts = append(parts, fmt.Sprintf("%d pass of %d updates", o.Epochs, o.Minibatches))
	if o.Filter {
		parts = append(parts, fmt.Sprintf("dynamic sampling by %s, at most %d rounds", o.FilterMetric, o.Rounds))
	}
	over := "over-long rollouts: " + o.Overlong
	if o.Overlong == "shape" {
		over = fmt.Sprintf("over-long penalty %g over the last %d of %d tokens", o.Penalty, o.Buffer, o.Limit)
	}
	parts = append(parts, over)
	if o.Tree != nil {
		parts = append(parts, o.Tree.String())
	}
	return strings.Join(parts, "; ")
}

// reference says whether the loss or the reward needs the SFT checkpoint's
// probabilities.
func (o *objective) reference() bool { return o.KLLoss > 0 || o.KLReward > 0 }

// everywhere says whether rollouts without any advantage still carry a
// gradient.
func (o *objective) everywhere() bool { return o.KLLoss > 0 || o.Entropy > 0 }

func orFloat(v, otherwise float64) float64 {
	if v == 0 {
		return otherwise
	}
	return v
}

func orText(v, otherwise string) string {
	if v == "" {
		return otherwise
	}
	return v
}
