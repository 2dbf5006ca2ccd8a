package published

import (
	"math"
	"testing"

	"alidade/ablation"
)

func TestValuesAreWellFormed(t *testing.T) {
	seen := map[string]bool{}
	for _, v := range All() {
		if v.Unit == Fraction && (v.Value < 0 || v.Value > 1) {
			t.Errorf("%s %s %s = %g, want a fraction", v.Set, v.Label, v.Metric, v.Value)
		}
		if v.Source.ArXiv == "" || v.Source.Place == "" || v.Strength == "" || v.Protocol.Model == "" || v.Levels == nil {
			t.Errorf("%s %s %s lacks its source, strength, model or levels: %+v", v.Set, v.Label, v.Metric, v)
		}
		key := v.Set + "|" + v.Label + "|" + v.Metric
		if seen[key] {
			t.Errorf("%s occurs twice", key)
		}
		seen[key] = true
	}
}

// Every printed out-of-domain average equals the mean of its seven cells to
// the printed digit, with the one exception that its note names.
func TestOutOfDomainAverages(t *testing.T) {
	sums := map[string]float64{}
	for _, v := range Set("star-table-2") {
		if v.Metric != "ood/mean" {
			sums[v.Label] += v.Value
		}
	}
	for _, v := range Set("star-table-2") {
		if v.Metric != "ood/mean" {
			continue
		}
		if off := math.Abs(v.Value - sums[v.Label]/7); off > 0.0006 && v.Note == "" {
			t.Errorf("%s: average %.4f, its cells give %.4f", v.Label, v.Value, sums[v.Label]/7)
		}
	}
}

// GPU-hours, GPUs and minutes per step give about 155 steps in every row.
func TestCostsImplyTheSameSteps(t *testing.T) {
	minutes, hours := map[string]float64{}, map[string]float64{}
	gpus := map[string]float64{"1.5B": 8, "3B": 8, "7B": 16}
	scale := map[string]string{}
	for _, v := range Set("star-table-4") {
		scale[v.Label] = v.Scale
		switch v.Metric {
		case "cost/min_per_step":
			minutes[v.Label] = v.Value
		case "cost/gpu_hours":
			hours[v.Label] = v.Value
		}
	}
	for label := range minutes {
		if steps := hours[label] / gpus[scale[label]] * 60 / minutes[label]; steps < 150 || steps > 170 {
			t.Errorf("%s implies %.0f steps, want about 155", label, steps)
		}
	}
}

func TestTablesAgreeWhereTheyOverlap(t *testing.T) {
	find := func(set, label, metric string) float64 {
		for _, v := range Set(set) {
			if v.Label == label && v.Metric == metric {
				return v.Value
			}
		}
		t.Fatalf("no %s %s %s", set, label, metric)
		return 0
	}
	for _, c := range []struct{ set, label, other, otherLabel string }{
		{"star-table-4", "GRPO, 1.5B", "star-table-1", "MACRO, 1.5B"},
		{"star-table-4", "GRPO, 3B", "star-table-1", "MACRO, 3B"},
		{"star-table-4", "GRPO, 7B", "star-table-1", "SUM, 7B"},
		{"star-table-3", "mixed, 3B", "star-table-1", "CURRICULUM, 3B"},
		{"star-figure-5", "1000 prompts, 3B", "star-table-1", "CURRICULUM, 3B"},
		{"star-figure-6", "no failures, 3B", "star-table-1", "MACRO, 3B"},
		{"star-figure-1", "STAR RL, 1.5B", "star-table-4", "ARPO, 1.5B"},
	} {
		if a, b := find(c.set, c.label, "eval/success"), find(c.other, c.otherLabel, "eval/success"); a != b {
			t.Errorf("%s %s = %g, but %s %s = %g", c.set, c.label, a, c.other, c.otherLabel, b)
		}
	}
}

func TestFor(t *testing.T) {
	for id, want := range map[string]string{
		"reward-scale": "star-table-1", "rewards": "star-table-1", "reward": "star-table-1", "difficulty": "star-table-3", "difficulty-mix": "star-table-3",
		"algorithm-scale": "star-table-4", "algorithm": "star-table-4", "data-size": "star-figure-5", "failure-rate": "star-figure-6",
		"tool-failure-rate": "star-figure-6", "failures": "star-figure-6", "policy-scale": "star-table-1", "model-size": "star-table-1",
		"star-table-2": "star-table-2", "out-of-domain": "star-table-2", "grpo-tcr": "agentrl-recipe",
		"star-table-1-quick": "star-table-1", "star-figure-4-quick": "star-table-1", "star-figure-6-quick": "star-figure-6", "star-figure-5-proxy": "star-figure-5",
	} {
		got := For(id)
		if len(got) == 0 {
			t.Errorf("For(%q) found nothing, want %s", id, want)
			continue
		}
		for _, v := range got {
			if v.Set != want {
				t.Errorf("For(%q) found %s, want only %s", id, v.Set, want)
			}
		}
	}
	if got := For("nothing-of-the-kind"); len(got) != 0 {
		t.Errorf("For an unknown template = %d values, want none", len(got))
	}
}

func TestComparable(t *testing.T) {
	st := ablation.Study{Base: ablation.Recipe{
		Trainer: ablation.Trainer{Kind: "cpu"}, Environment: ablation.Environment{Kind: "travel", World: "nano"}, Reward: ablation.Reward{Profile: "strict"},
	}}
	ok, why := Set("star-table-1")[0].Comparable(st)
	if ok || why == "" {
		t.Errorf("Comparable = %v, %q; want false with a reason", ok, why)
	}
}
