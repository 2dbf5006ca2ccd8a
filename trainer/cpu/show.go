package cpu

import (
	"fmt"
	"math"

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
	groups := all[len(all)-1].group + 1
	shown := map[int]bool{}
	for _, g := range compact.Rand(r.spec.Seed, forShown, uint64(step)).Perm(groups)[:min(groupsEach, groups)] {
		shown[g] = true
	}
	for _, o := range all {
		if !shown[o.group] {
			continue
		}
		t := r.record(o, "rl", "policy", "sampled")
		t.ID = fmt.Sprintf("rl-%d-%d-%d", step, o.group, o.index)
		t.Group = fmt.Sprintf("rl-%d-%d", step, o.group)
		t.Step = step
		norm := "group-mean"
		if r.recipe.Algorithm.StdNorm {
			norm = "group-std"
		}
		t.Reward, t.Components = o.reward, o.parts
		t.Advantage = &trainer.Advantage{Value: o.advantage, Mean: o.mean, Std: o.std, Norm: norm, Zero: o.std <= 1e-9, InLoss: o.inLoss}
		if err := r.out.Trajectory(t); err != nil {
			return err
		}
	}
	return nil
}

// record writes a finished rollout down. Evaluation has no reward of its own:
// the strict success stands for it.
func (r *run) record(o *rollout, phase, policy, mode string) trainer.Trajectory {
	t := o.s.Trajectory(rounded(o.entropy), rounded(o.logprob))
	t.ID = fmt.Sprintf("%s-%s-%d-%d", phase, policy, o.group, o.index)
	t.Group = fmt.Sprintf("%s-%s-%d", phase, policy, o.group)
	t.Phase, t.Policy, t.Mode, t.Rollout = phase, policy, mode, o.index
	t.RewardKind = r.recipe.Reward.Kind
	if phase == "eval" {
		t.RewardKind = "SUCCESS"
		t.Reward = share(o.judged.Success)
		t.Components = []trainer.Component{{Name: "success", Value: t.Reward}}
	}
	return t
}

// rounded copies xs to four decimals, which halves the size of a record.
func rounded(xs []float32) []float32 {
	out := make([]float32, len(xs))
	for i, x := range xs {
		out[i] = float32(math.Round(float64(x)*1e4) / 1e4)
	}
	return out
}
