package cpu

import (
	"fmt"

	"alidade/ablation"
	"alidade/sandbox"
	"alidade/sandbox/qa"
	"alidade/trainer"
	"alidade/trainer/cpu/nn"
)

// examineOOD has a model answer the out-of-domain questions, if there are any.
func (r *run) examineOOD(e *exam, sm *sampler, policy string, samples int, keep bool) error {
	if len(r.data.questions) == 0 {
		return nil
	}
	var all []*rollout
	for g, q := range r.data.questions {
		for i := range samples {
			s := r.data.qa.NewSession(q, qa.Config{Labels: sandbox.Mix(r.recipe.Data.Seed, forQuestions, uint64(g)), Known: r.recipe.Evaluation.OODKnown})
			all = append(all, &rollout{q: s, ep: s, group: g, index: i})
		}
	}
	seed := sandbox.Mix(r.recipe.Data.Seed, r.spec.Seed, forQuestions)
	err := sm.play(all, nn.Sampling{Temperature: r.recipe.Evaluation.Temperature}, func(i int) uint64 {
		return nn.Stream(seed, uint64(all[i].group), uint64(all[i].index))
	})
	if err != nil {
		return fmt.Errorf("out of domain: %w", err)
	}
	r.gradeOOD(e, all, policy, samples, keep)
	return nil
}

func (r *run) gradeOOD(e *exam, all []*rollout, policy string, samples int, keep bool) {
	res := ablation.EvalResult{Run: r.spec.Run, Panel: "ood", Policy: policy, Mode: "sampled", Samples: samples, Hash: r.data.oodID}
	t := tally{}
	for _, o := range all {
		q := r.data.questions[o.group]
		if len(res.Queries) == o.group {
			res.Queries = append(res.Queries, ablation.QueryResult{Query: q.Key, Level: q.Kind})
		}
		if o.q.Correct() {
			res.Queries[o.group].Passed++
		}
		t.put("accuracy", share(o.q.Correct()))
		t.put(q.Kind, share(o.q.Correct()))
		t.put(q.Kind+"_called", share(o.q.Called()))
		t.put("called", share(o.q.Called()))
		t.put("format_error", share(o.q.FormatError() != ""))
		if keep && o.index == 0 {
			e.Trajectories = append(e.Trajectories, r.recordAnswer(o, policy))
		}
	}
	e.Results = append(e.Results, res)
	for name := range t {
		e.Metrics["ood/"+name] = t.mean(name)
	}
	votes(e.Metrics, "ood/", ballots(all))
}

// recordAnswer writes a finished question down.
func (r *run) recordAnswer(o *rollout, policy string) trainer.Trajectory {
	t := o.q.Trajectory(rounded(o.entropy), rounded(o.logprob))
	t.ID = fmt.Sprintf("ood-%s-%d-%d", policy, o.group, o.index)
	t.Group = fmt.Sprintf("ood-%s-%d", policy, o.group)
	t.Phase, t.Policy, t.Mode, t.Rollout, t.RewardKind = "eval", policy, "sampled", o.index, "ACCURACY"
	t.Reward = share(o.q.Correct())
	t.Components = []trainer.Component{{Name: "accuracy", Value: t.Reward}}
	spell(t.Turns, o.ep.Script())
	return t
}

// oodChange adds how far out-of-domain accuracy is from the SFT checkpoint's. The
// alignment tax is its negative.
func (r *run) oodChange(e *exam) {
	if v, ok := e.Metrics["ood/accuracy"]; ok {
		e.Metrics["ood/change"] = v - r.sftOOD
	}
}
