package ablation_test

import (
	"errors"
	"strings"
	"testing"

	"alidade/ablation"
)

// What the embedded trainer can do is accepted, and what it cannot is refused
// by its key.
func TestEmbeddedTrainerRules(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(r *ablation.Recipe)
		wrong  string // key, "" = accepted
	}{
		{"weighted", func(r *ablation.Recipe) {
			r.Reward.Kind, r.Reward.Weights = "WEIGHTED", map[string]string{"success": "1", "valid_cost": "0.5"}
		}, ""},
		{"weighted without weights", func(r *ablation.Recipe) { r.Reward.Kind = "WEIGHTED" }, "reward.weights"},
		{"planner", func(r *ablation.Recipe) { r.Reward.Kind = "PLANNER_R1" }, ""},
		{"stages in epochs", func(r *ablation.Recipe) {
			r.Reward.Kind, r.Reward.StageBy, r.Reward.Stages = "CURRICULUM", "epoch", []float64{2, 2}
		}, ""},
		{"milestones", func(r *ablation.Recipe) { r.Reward.Milestones = map[string]string{"hotels": "0.1", "plan": "0.1"} }, ""},
		{"a milestone out of reach", func(r *ablation.Recipe) { r.Reward.Milestones = map[string]string{"cities": "0.1"} }, "reward.milestones.cities"},
		{"failure kinds", func(r *ablation.Recipe) {
			r.Environment.FailureKind, r.Environment.FailureRates = "stale", map[string]string{"SearchFlight": "0.5"}
		}, ""},
		{"a rate above one", func(r *ablation.Recipe) { r.Environment.FailureRates = map[string]string{"SearchFlight": "1.5"} }, "environment.failure_rates.SearchFlight"},
		{"entropy target", func(r *ablation.Recipe) { r.Algorithm.EntropyTarget, r.Algorithm.EntropyDelta = 0.2, 0.001 }, ""},
		{"a pace without a target", func(r *ablation.Recipe) { r.Algorithm.EntropyDelta = 0.001 }, "algorithm.entropy_target_delta"},
		{"renamed tools", func(r *ablation.Recipe) { r.Data.OODTraces, r.Data.OODRenamed = 60, 0.5 }, ""},
		{"renamed tools of no traces", func(r *ablation.Recipe) { r.Data.OODRenamed = 0.5 }, "data.ood_renamed"},
		{"a known word", func(r *ablation.Recipe) { r.Evaluation.OOD, r.Evaluation.OODKnown = 8, true }, ""},
		{"a known word without questions", func(r *ablation.Recipe) { r.Evaluation.OODKnown = true }, "evaluation.ood_known"},
		{"stitched", func(r *ablation.Recipe) { r.SFT.TracesKind = "stitched" }, ""},
		{"an unknown kind of traces", func(r *ablation.Recipe) { r.SFT.TracesKind = "glued" }, "sft.traces_kind"},
		{"stitched on a longer trip", func(r *ablation.Recipe) { r.SFT.TracesKind, r.Environment.Days = "stitched", 5 }, "sft.traces_kind"},
	} {
		r, _ := ablation.PresetNamed("quick")
		c.change(&r)
		err := r.Validate()
		if c.wrong == "" {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		var inv *ablation.Invalid
		if !errors.As(err, &inv) {
			t.Errorf("%s: %v, want a refusal of %s", c.name, err, c.wrong)
			continue
		}
		named := false
		for _, f := range inv.Fields {
			named = named || f.Field == c.wrong && f.Allowed != "" && !strings.Contains(f.Problem, "%")
		}
		if !named {
			t.Errorf("%s: %v does not name %s", c.name, err, c.wrong)
		}
	}
}
