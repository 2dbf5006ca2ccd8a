package verl

import (
	"cmp"
	"fmt"
	"strings"

	"alidade/ablation"
)

// An objective is what an algorithm's name and the recipe's settings come down
// to, in verl's terms. The names mean the same as for the embedded trainer.
type objective struct {
	Estimator string // algorithm.adv_estimator
	Std       bool   // divide by the group's standard deviation
	LossMode  string // vanilla, gspo
	Agg       string
	LossScale int // divisor of seq-mean-token-sum-norm, tokens

	ClipLow, ClipHigh, ClipC float64

	KLLoss   float64 // weight, 0 = off
	KLType   string
	KLReward float64

	Filter bool // dynamic sampling
	Metric string
	Rounds int

	Overlong string // mask, zero, shape
	Buffer   int    // tokens in which the penalty of shape grows
	Penalty  float64

	Tree bool // ARPO's branching rollouts
}

// Clip ranges of sequence-level ratios (GSPO, arXiv 2507.18071, and verl's own
// scripts), and the range above which clip_low is surely one for tokens.
const (
	sequenceLow  = 3e-4
	sequenceHigh = 4e-4
	tokenClip    = 0.1
)

// dualClip is clip_ratio_c in the recipes that publish it: DAPO, GSPO in verl,
// Open-AgentRL. Without it verl takes 3.
const dualClip = 10

// resolve works out the objective of a recipe.
func resolve(r *ablation.Recipe) objective {
	a := &r.Algorithm
	o := objective{
		Estimator: "grpo", Std: a.StdNorm, LossMode: "vanilla", Agg: a.LossAgg,
		ClipLow: a.ClipLow, ClipHigh: a.ClipHigh, ClipC: a.ClipC, KLType: cmp.Or(a.KLLossType, "low_var_kl"),
		Filter: a.FilterGroups, Metric: cmp.Or(a.FilterMetric, "score"), Rounds: cmp.Or(a.MaxGenBatches, 10),
		Overlong: a.Overlong, Buffer: a.OverlongBuffer, Penalty: cmp.Or(a.OverlongPenalty, 1.0),
	}
	if a.UseKLLoss {
		o.KLLoss = a.KLLossCoef
	}
	if a.UseKLInReward {
		o.KLReward = a.KLCoef
	}
	if o.Buffer == 0 {
		o.Buffer = max(1, responseLimit(r)/5)
	}
	o.fix(a)
	if o.Agg == "seq-mean-token-sum-norm" {
		o.LossScale = int(cmp.Or(a.LossScale, float64(responseLimit(r))))
	}
	return o
}

// fix sets what defines an algorithm, whatever the recipe says.
func (o *objective) fix(a *ablation.Algorithm) {
	switch a.Kind {
	case "dr_grpo":
		o.Std, o.Agg, o.KLLoss, o.KLReward = false, "seq-mean-token-sum-norm", 0, 0
	case "grpo_tcr", "dapo":
		o.tcr(a)
		if a.Kind == "dapo" {
			o.Std, o.Filter = true, true
		}
	case "grpo_scr":
		o.tcr(a)
		o.gspo(a)
	case "gspo":
		o.gspo(a)
	case "rloo", "reinforce_plus_plus", "reinforce_plus_plus_baseline":
		o.Estimator = a.Kind
	case "arpo":
		o.Tree = true
	}
}

func (o *objective) tcr(a *ablation.Algorithm) {
	o.Agg, o.ClipC, o.Overlong = "token-mean", cmp.Or(a.ClipC, float64(dualClip)), "shape"
	o.KLLoss, o.KLReward = 0, 0
}

func (o *objective) gspo(a *ablation.Algorithm) {
	o.LossMode, o.Agg = "gspo", "seq-mean-token-mean"
	if a.ClipLow >= tokenClip {
		o.ClipLow, o.ClipHigh = sequenceLow, sequenceHigh
	}
}

// reference tells whether a reference model is kept.
func (o *objective) reference() bool { return o.KLLoss > 0 || o.KLReward > 0 }

// String lists the resolved settings, so that an arm is never just "GRPO".
func (o objective) String() string {
	std := "not divided by the group's SD"
	if o.Std && strings.HasPrefix(o.Estimator, "grpo") {
		std = "divided by the group's SD"
	}
	ratio := "token"
	if o.LossMode == "gspo" {
		ratio = "sequence"
	}
	parts := []string{
		"advantage " + o.Estimator + ", " + std,
		fmt.Sprintf("ratio of a %s clipped to 1−%g…1+%g", ratio, o.ClipLow, o.ClipHigh),
		fmt.Sprintf("dual clip %g", cmp.Or(o.ClipC, 3.0)),
		"aggregation " + o.Agg,
	}
	if o.LossScale > 0 {
		parts = append(parts, fmt.Sprintf("loss scale %d", o.LossScale))
	}
	switch {
	case o.KLLoss > 0:
		parts = append(parts, fmt.Sprintf("KL in the loss: %s × %g", o.KLType, o.KLLoss))
	case o.KLReward > 0:
		parts = append(parts, fmt.Sprintf("KL in the reward: kl × %g", o.KLReward))
	default:
		parts = append(parts, "no KL")
	}
	if o.Filter {
		parts = append(parts, "dynamic sampling by "+o.Metric)
	}
	if o.Overlong == "shape" {
		parts = append(parts, fmt.Sprintf("over-long penalty %g over the last %d tokens", o.Penalty, o.Buffer))
	} else {
		parts = append(parts, "over-long rollouts: "+o.Overlong)
	}
	if o.Tree {
		parts = append(parts, "branching rollouts")
	}
	return strings.Join(parts, "; ")
}

// promptLimit and responseLimit are the token limits of a recipe.
func promptLimit(r *ablation.Recipe) int { return cmp.Or(r.Native.MaxPrompt, 2048) }

func responseLimit(r *ablation.Recipe) int {
	return cmp.Or(r.Native.MaxResponse, max(1, r.Environment.MaxTokens-promptLimit(r)))
}
