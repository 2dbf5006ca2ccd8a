package cpu

import (
	"fmt"
	"math"
	"slices"

	"alidade/sandbox/travel/compact"
	"alidade/trainer"
)

// Which groups of training rollouts are recorded: showGroups whole groups of
// every showEvery-th step, and of the first and the last.
const (
	showEvery  = 10
	groupsEach = 2
)

// showGroups records whole groups of a training step, picked by seed.
func (r *run) showGroups(all []*rollout, step int64) error {
	if step != 1 && step%showEvery != 0 && step != int64(r.recipe.Budget.Steps) {
		return nil
	}
	var groups []int
	for i, o := range all {
		if i == 0 || o.group != all[i-1].group {
			groups = append(groups, o.group)
		}
	}
	shown := map[int]bool{}
	for _, i := range compact.Rand(r.spec.Seed, forShown, uint64(step)).Perm(len(groups))[:min(groupsEach, len(groups))] {
		shown[groups[i]] = true
	}
	for _, o := range all {
		if !shown[o.group] {
			continue
		}
		t := r.record(o, "rl", "policy", "sampled")
		t.ID = fmt.Sprintf("rl-%d-%d-%d", step, o.group, o.index)
		t.Group = fmt.Sprintf("rl-%d-%d", step, o.group)
		t.Step = step
		t.Reward, t.Components = o.reward, o.parts
		o.byToken(t.Turns)
		t.Advantage = &trainer.Advantage{Value: o.advantage, Mean: o.mean, Std: o.std, Norm: r.objective.norm(), Zero: o.std <= 1e-9, InLoss: o.inLoss}
		if err := r.out.Trajectory(t); err != nil {
			return err
		}
	}
	return nil
}

// norm names how advantages are computed.
func (o *objective) norm() string {
	name := o.Baseline + "-mean"
	switch {
	case o.Baseline == "leave-one-out":
		name = o.Baseline
	case o.Std != "none":
		name = o.Baseline + "-std"
	}
	if o.Tree != nil {
		name += ", mean over leaves"
	}
	return name
}

// record writes a finished rollout down. Evaluation has no reward of its own:
// the strict success stands for it.
func (r *run) record(o *rollout, phase, policy, mode string) trainer.Trajectory {
	t := o.s.Trajectory(rounded(o.entropy), rounded(o.logprob))
	t.ID = fmt.Sprintf("%s-%s-%d-%d", phase, policy, o.group, o.index)
	t.Group = fmt.Sprintf("%s-%s-%d", phase, policy, o.group)
	t.Phase, t.Policy, t.Mode, t.Rollout = phase, policy, mode, o.index
	t.RewardKind = r.recipe.Reward.Kind
	spell(t.Turns, o.ep.Script())
	at := 0
	for i := range t.Turns {
		t.Turns[i].Branch = slices.Contains(o.branched, at)
		at += t.Turns[i].Tokens
	}
	if phase == "eval" {
		t.RewardKind = "SUCCESS"
		t.Reward = share(o.judged.Success)
		t.Components = []trainer.Component{{Name: "success", Value: t.Reward}}
	}
	return t
}

// spell gives every turn the words that the policy wrote in it.
func spell(turns []trainer.Turn, script compact.Script) {
	var words []string
	for i, t := range script.Tokens {
		if script.Own[i] {
			words = append(words, compact.Show([]compact.Token{t}))
		}
	}
	for i := range turns {
		n := min(turns[i].Tokens, len(words))
		turns[i].Words, words = words[:n:n], words[n:]
	}
}

// byToken gives every turn its tokens' advantages, if the tokens of the
// rollout differ in them.
func (o *rollout) byToken(turns []trainer.Turn) {
	if o.tokenAdv == nil {
		return
	}
	all := make([]float32, len(o.tokenAdv))
	for k, a := range o.tokenAdv {
		all[k] = float32(a)
	}
	all = rounded(all)
	for i := range turns {
		n := min(turns[i].Tokens, len(all))
		turns[i].Advantages, all = all[:n:n], all[n:]
	}
}

// rounded copies xs to four decimals, which halves the size of a record.
func rounded(xs []float32) []float32 {
	out := make([]float32, len(xs))
	for i, x := range xs {
		out[i] = float32(math.Round(float64(x)*1e4) / 1e4)
	}
	return out
}
