package trl

import (
	"cmp"
	"fmt"
	"strings"

	"alidade/ablation"
)

// The published range of a sequence ratio; it is used unless the recipe gives
// one below smallClip. The embedded trainer does the same.
const (
	sequenceLow  = 3e-4
	sequenceHigh = 4e-4
	smallClip    = 0.1
	dualClip     = 10 // of the recipes that publish one
)

// objective is what a recipe's algorithm becomes in TRL.
type objective struct {
	Loss      string  // loss_type
	Ratio     string  // importance_sampling_level
	Scale     string  // scale_rewards
	ClipLow   float64 // epsilon
	ClipHigh  float64 // epsilon_high
	Delta     float64 // two-sided clip; 0 = off
	Beta      float64 // KL to the model that RL starts from, in the loss
	Entropy   float64
	Overlong  string  // mask, zero, shape
	Buffer    int     // tokens before the limit in which the penalty of shape grows
	Penalty   float64 // at the limit
	MaxTokens int     // of a completion, tool results included
}

// aggregation names what each loss_type does, in verl's words.
var aggregation = map[string]string{
	"grpo":    "seq-mean-token-mean",
	"dapo":    "token-mean over the update's rollouts",
	"bnpo":    "token-mean of each micro-batch",
	"dr_grpo": "seq-mean-token-sum-norm",
	"luspo":   "seq-mean-token-sum",
}

// lossOf is the loss_type for a recipe's loss_agg_mode.
var lossOf = map[string]string{"token-mean": "dapo", "seq-mean-token-mean": "grpo", "seq-mean-token-sum-norm": "dr_grpo"}

// resolve reads the algorithm of a recipe. A kind fixes what defines it; the
// rest is as the recipe says.
func resolve(r ablation.Recipe) objective {
	a := r.Algorithm
	o := objective{Loss: lossOf[a.LossAgg], Ratio: "token", Scale: "none", ClipLow: a.ClipLow, ClipHigh: a.ClipHigh, Delta: a.ClipC,
		Entropy: a.EntropyCoeff, Overlong: a.Overlong, Penalty: cmp.Or(a.OverlongPenalty, 1), MaxTokens: maxCompletion(r)}
	if a.StdNorm {
		o.Scale = "group"
	}
	if a.UseKLLoss {
		o.Beta = a.KLLossCoef
	}
	switch a.Kind {
	case "dr_grpo":
		o.Loss, o.Scale, o.Beta = "dr_grpo", "none", 0
	case "grpo_tcr":
		o.Loss, o.Overlong, o.Delta, o.Beta = "dapo", "shape", cmp.Or(a.ClipC, dualClip), 0
	case "gspo":
		o.sequence(a)
	case "grpo_scr":
		o.Overlong, o.Beta = "shape", 0
		o.sequence(a)
	}
	o.Buffer = cmp.Or(a.OverlongBuffer, max(1, o.MaxTokens/5))
	return o
}

// sequence takes the ratio of whole sequences; there is no dual clip then.
func (o *objective) sequence(a ablation.Algorithm) {
	o.Ratio, o.Loss, o.Delta = "sequence", "grpo", 0
	if a.ClipLow >= smallClip {
		o.ClipLow, o.ClipHigh = sequenceLow, sequenceHigh
	}
}

// maxPrompt and maxCompletion are the token budgets of a recipe.
func maxPrompt(r ablation.Recipe) int { return cmp.Or(r.Native.MaxPrompt, 2048) }

func maxCompletion(r ablation.Recipe) int {
	if n := r.Native.MaxResponse; n > 0 {
		return n
	}
	return cmp.Or(r.Environment.MaxTokens, 32768) - maxPrompt(r)
}

// norm is how advantages are normed, as trajectories name it.
func (o objective) norm() string {
	if o.Scale == "none" {
		return "group-mean"
	}
	return "group-std"
}

// String says in one line what is optimised.
func (o objective) String() string {
	parts := []string{
		o.Ratio + " ratio",
		fmt.Sprintf("clip [1−%g, 1+%g]", o.ClipLow, o.ClipHigh),
		fmt.Sprintf("aggregation %s (loss_type %s)", aggregation[o.Loss], o.Loss),
	}
	if o.Loss == "dr_grpo" {
		parts[2] += fmt.Sprintf(", divisor %d", o.MaxTokens)
	}
	if o.Delta > 0 {
		parts = append(parts, fmt.Sprintf("dual clip %g", o.Delta))
	}
	switch o.Scale {
	case "none":
		parts = append(parts, "advantage R − mean of the group, no SD")
	default:
		parts = append(parts, "advantage (R − mean) / (SD of the group + 1e-4), sample SD")
	}
	if o.Beta > 0 {
		parts = append(parts, fmt.Sprintf("KL k3 × %g in the loss, to the model that RL starts from", o.Beta))
	} else {
		parts = append(parts, "no KL")
	}
	if o.Entropy > 0 {
		parts = append(parts, fmt.Sprintf("entropy bonus %g", o.Entropy))
	}
	over := "over-long rollouts: " + o.Overlong
	if o.Overlong == "shape" {
		over += fmt.Sprintf(" (−%g over the last %d of %d tokens)", o.Penalty, o.Buffer, o.MaxTokens)
	}
	return strings.Join(append(parts, over), "; ")
}
