package cpu

import (
	"math"
	"testing"

	"alidade/ablation"
	"alidade/trainer"
)

// Every reward that a recipe can name trains, and the parts of each record sum
// to what was paid.
func TestRewardsAreThoseOfTheRecipe(t *testing.T) {
	root := t.TempDir()
	for name, c := range map[string]struct {
		change func(r *ablation.Recipe)
		parts  map[int64][]string // step → parts
	}{
		"weighted": {func(r *ablation.Recipe) {
			r.Reward.Kind, r.Reward.Weights = "WEIGHTED", map[string]string{"cs_micro": "2", "valid_cost": "-0.5", "delivery": "0.25"}
		}, map[int64][]string{1: {"cs_micro", "delivery", "valid_cost"}, 4: {"cs_micro", "delivery", "valid_cost"}}},
		"planner_r1": {func(r *ablation.Recipe) { r.Reward.Kind, r.Reward.Stages = "PLANNER_R1", []float64{0.25, 0.25, 0.5} },
			map[int64][]string{1: {"schema", "cs_micro", "hard_macro"}, 4: {"success"}}},
		"stages in steps": {func(r *ablation.Recipe) {
			r.Reward.Kind, r.Reward.StageBy, r.Reward.Stages = "CURRICULUM", "step", []float64{2, 1}
		}, map[int64][]string{1: {"cs_micro"}, 4: {"success"}}},
		"stages in epochs": {func(r *ablation.Recipe) {
			r.Data.Prompts, r.Reward.Kind, r.Reward.StageBy, r.Reward.Stages = 8, "CURRICULUM", "epoch", []float64{1, 1}
		}, map[int64][]string{1: {"cs_micro"}, 4: {"cs_macro"}}}, // an epoch is two steps
		"milestones": {func(r *ablation.Recipe) {
			r.Reward.Milestones = map[string]string{"hotels": "0.125", "way_out": "0.25", "plan": "-0.5"}
		}, map[int64][]string{1: {"cs_macro", "milestone_hotels", "milestone_plan"}, 4: {"milestone_way_out"}}},
	} {
		t.Run(name, func(t *testing.T) {
			rec := tinyRecipe(t)
			rec.SFT.Control = false
			rec.Evaluation.Queries = 4
			c.change(&rec)
			if err := rec.Validate(); err != nil {
				t.Fatal(err)
			}
			o := runTiny(t, t.Context(), root, name, 1, rec, nil, Config{})
			if o.err != nil {
				t.Fatal(o.err)
			}
			seen := map[int64]map[string]float64{}
			for _, e := range o.events {
				if tr := e.Trajectory; tr != nil && tr.Phase == "rl" {
					checkParts(t, tr)
					for _, p := range tr.Components {
						if seen[tr.Step] == nil {
							seen[tr.Step] = map[string]float64{}
						}
						seen[tr.Step][p.Name] = p.Value
					}
				}
			}
			for step, parts := range c.parts {
				for _, p := range parts {
					if _, ok := seen[step][p]; !ok {
						t.Errorf("step %d has no part %s: %v", step, p, seen[step])
					}
				}
			}
			if name == "milestones" && (seen[1]["milestone_hotels"] != 0.125 || seen[1]["milestone_plan"] != -0.5 || !have(o, "reward/milestone_hotels")) {
				t.Errorf("parts of step 1: %v", seen[1])
			}
			if _, ok := seen[4]["cs_micro"]; ok && name != "weighted" {
				t.Errorf("the last stage still pays cs_micro: %v", seen[4])
			}
		})
	}
}

func checkParts(t *testing.T, tr *trainer.Trajectory) {
	t.Helper()
	sum := 0.0
	for _, p := range tr.Components {
		sum += p.Value
	}
	if math.Abs(sum-tr.Reward) > 1e-9 {
		t.Errorf("%s: parts %v sum to %g, the reward is %g", tr.ID, tr.Components, sum, tr.Reward)
	}
}
