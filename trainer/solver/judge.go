package solver

import (
	"context"
	"errors"
	"fmt"

	"alidade/ablation"
	"alidade/sandbox"
	"alidade/sandbox/travel"
	"alidade/sandbox/travel/synth"
	"alidade/trainer"
)

// judge turns trips into trajectories and keeps the tallies of the final points.
type judge struct {
	spec  trainer.Spec
	world *synth.World
	out   *trainer.Writer

	n, delivered, proven float64
	passes               map[string]float64 // by profile
	checks               map[string][2]float64
	results              []ablation.QueryResult
	hash                 uint64
}

// trip plays the i-th query: the annotated plan, or the solver's.
func (j *judge) trip(ctx context.Context, i int, q travel.Query, plans []travel.Plan, sols []synth.Solution) trainer.Trajectory {
	r := j.spec.Recipe
	c := travel.EpisodeConfig{
		ID: uint64(i), MaxTurns: r.Environment.MaxTurns, Profile: travel.Profile(r.Reward.Profile),
		Failures: travel.Failures{Rate: r.Environment.ToolFailureRate, Seed: j.spec.Seed},
	}
	var t trainer.Trajectory
	switch {
	case r.Data.Plans == "annotated":
		e := travel.NewEpisode(j.world.World, q, c)
		e.Finish(plans[i], "answer", "")
		t = e.Trajectory()
		t.Policy = "annotated"
	default:
		var sol synth.Solution
		if sols != nil {
			sol = sols[i]
		} else {
			sol = j.world.Solve(q)
		}
		t = j.world.Expert(ctx, q, sol, c, synth.Deliberative, j.spec.Seed+uint64(i))
		t.Policy = "expert"
		if !sol.Proven {
			t.Labels = map[string]string{"not proven": sol.Reason}
		} else {
			j.proven++
		}
	}
	t.ID = fmt.Sprintf("judge-%06d-0-0", i+1)
	t.Phase, t.Mode, t.Step, t.Group = "judge", "expert", int64(i+1), fmt.Sprintf("judge-%06d-0", i+1)
	return t
}

// record writes one trajectory and the running rates.
func (j *judge) record(step int64, t trainer.Trajectory) error {
	if j.passes == nil {
		j.passes, j.checks = map[string]float64{}, map[string][2]float64{}
	}
	j.n++
	j.delivered += t.Scores["delivery"]
	for p, ok := range t.Passes {
		if ok {
			j.passes[p]++
		}
	}
	for _, v := range t.Verdicts {
		c := j.checks[v.Check]
		if v.Outcome != "n/a" {
			c[1]++
		}
		if v.Outcome == "pass" {
			c[0]++
		}
		j.checks[v.Check] = c
	}
	passed := 0
	if t.Success {
		passed = 1
	}
	j.results = append(j.results, ablation.QueryResult{Query: t.Query.Hash, Level: t.Query.Level, Passed: passed})
	for k := range len(t.Query.Hash) {
		j.hash = sandbox.Mix(j.hash, uint64(t.Query.Hash[k]))
	}
	return errors.Join(j.out.Trajectory(t), j.out.Points(step, map[string]float64{
		"judge/success": j.passes[j.spec.Recipe.Reward.Profile] / j.n, "judge/cost": value(t.Cost), "rollout/tool_calls": float64(t.ToolCalls),
	}))
}

func value(x *float64) float64 {
	if x == nil {
		return 0
	}
	return *x
}

// finish writes the rates over all trips and the per-query outcomes.
func (j *judge) finish(step int64) error {
	if j.n == 0 {
		return errors.New("no queries to judge: data.prompts or the queries file is empty")
	}
	values := map[string]float64{
		"eval/success": j.passes[j.spec.Recipe.Reward.Profile] / j.n, "eval/delivery": j.delivered / j.n, "data/solvable": j.proven / j.n,
	}
	for p, n := range j.passes {
		values["eval/success_"+p] = n / j.n
	}
	for check, c := range j.checks {
		if c[1] > 0 {
			values["eval/check/"+check] = c[0] / c[1]
		}
	}
	// The plans are what is on trial here, so they stand where a policy would.
	return errors.Join(j.out.Points(step, values), j.out.Evaluation(ablation.EvalResult{
		Run: j.spec.Run, Panel: "test", Policy: "policy", Mode: "sampled", Step: step, Samples: 1,
		Hash: fmt.Sprintf("%016x", j.hash), Queries: j.results,
	}))
}
