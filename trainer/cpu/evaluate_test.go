package cpu

import (
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"alidade/trainer"
)

func TestVotes(t *testing.T) {
	queries := [][]ballot{
		{{"a", true}, {"b", false}, {"b", false}, {"c", false}}, // majority wrong
		{{"x", true}, {"x", true}, {"y", false}, {"", false}},   // majority right
		{{"", false}, {"", false}, {"", false}, {"", false}},    // no vote
	}
	m := map[string]float64{}
	votes(m, "eval/", queries)
	// pass@2: 1 − C(3,2)/C(4,2) = 1/2; 1 − C(2,2)/C(4,2) = 5/6; 0
	want := map[string]float64{"eval/pass_at_2": (0.5 + 5./6) / 3, "eval/pass_at_4": 2. / 3, "eval/maj_at_4": 1. / 3}
	if len(m) != len(want) {
		t.Errorf("metrics %v, want %v", m, want)
	}
	for k, v := range want {
		if math.Abs(m[k]-v) > 1e-12 {
			t.Errorf("%s is %g, want %g", k, m[k], v)
		}
	}
	if votes(m, "x/", [][]ballot{{{"a", true}}}); len(m) != len(want) {
		t.Error("votes of a single rollout")
	}
}

// The other panels leave the test panel's numbers alone, and a resumed run
// picks the same best checkpoint.
func TestPanels(t *testing.T) {
	root, rec := t.TempDir(), tinyRecipe(t)
	rec.SFT.Control = false
	plain := runTiny(t, t.Context(), root, "plain", 1, rec, nil, Config{})
	rec.Evaluation.Validation, rec.Evaluation.OOD, rec.Evaluation.OODKnown, rec.Evaluation.Every = 12, 16, true, 1
	whole := runTiny(t, t.Context(), root, "whole", 1, rec, nil, Config{})
	if plain.err != nil || whole.err != nil {
		t.Fatal(plain.err, whole.err)
	}
	for _, line := range plain.numbers(0) {
		if !slices.Contains(whole.numbers(0), line) {
			t.Errorf("with more panels %s changed", line)
		}
	}
	panels := map[string]bool{}
	for _, e := range whole.events {
		if v := e.Evaluation; v != nil {
			panels[fmt.Sprintf("%s %s %s %d", v.Panel, v.Policy, v.Mode, len(v.Queries))] = true
		}
	}
	for _, want := range []string{"test policy sampled 20", "test policy greedy 20", "validation policy sampled 12", "ood policy sampled 16", "ood sft sampled 16"} {
		if !panels[want] {
			t.Errorf("no evaluation %q among %v", want, slices.Sorted(maps.Keys(panels)))
		}
	}
	for _, m := range strings.Fields("eval/validation eval/best_step eval/success_best eval/pass_at_2 eval/maj_at_2 ood/accuracy ood/change ood/single ood/two-hop ood/comparison ood/unseen ood/called ood/unseen_called ood/pass_at_2") {
		if !have(whole, m) {
			t.Errorf("metric %s is missing", m)
		}
	}
	rest := runTiny(t, t.Context(), root, "rest", 1, rec, func(s *trainer.Spec) {
		s.Attempt, s.ResumeFrom, s.ResumeStep = 2, filepath.Join(whole.spec.Dir, "checkpoints", "step-000002"), 2
	}, Config{})
	tail := func(o outcome) []string {
		return slices.DeleteFunc(o.numbers(3), func(s string) bool { return strings.HasPrefix(s, "sft/") })
	}
	if rest.err != nil || !slices.Equal(tail(whole), tail(rest)) {
		t.Errorf("a resumed run gave other numbers (%v)", rest.err)
	}
}

// Question traces are learned in SFT, and pass rates drop prompts.
func TestQuestionTracesAndPassRates(t *testing.T) {
	root, rec := t.TempDir(), tinyRecipe(t)
	rec.SFT.Control = false
	rec.Data.OODTraces, rec.Data.OODRenamed, rec.Evaluation.OOD = 16, 0.5, 16
	o := runTiny(t, t.Context(), root, "a", 1, rec, nil, Config{})
	if o.err != nil {
		t.Fatal(o.err)
	}
	for _, e := range o.events {
		if e.Phase != nil && e.Phase.Name == "sft" && e.Phase.Total != 12 {
			t.Errorf("SFT takes %d steps over 48 traces, want 12", e.Phase.Total)
		}
	}
	rec.Data.PassRateSamples = 8
	o = runTiny(t, t.Context(), root, "b", 1, rec, nil, Config{})
	d := o.done(t)
	if !d.OK && !strings.Contains(d.Reason, "data.pass_rate_samples") { // the tiny policy may solve nothing
		t.Errorf("ended %+v", d)
	}
	if d.OK && !have(o, "data/prompts_kept") {
		t.Error("no histogram of pass rates")
	}
}

func TestDroppingPromptsByPassRate(t *testing.T) {
	r, out := bare(t)
	defer out.Close()
	if err := r.dropPrompts([]int{0, 1, 4, 7, 8}, 8); err != nil {
		t.Fatal(err)
	}
	if len(r.data.prompts) != 3 {
		t.Errorf("kept %d prompts, want 3", len(r.data.prompts))
	}
	if err := r.dropPrompts([]int{0, 8, 0}, 8); err == nil || !strings.Contains(err.Error(), "pass_rate_samples") {
		t.Errorf("nothing left to learn from: %v", err)
	}
}

// The top share keeps successful traces before failed ones and cheap before
// dear ones.
func TestTopShareOfTraces(t *testing.T) {
	rec := tinyRecipe(t)
	rec.SFT.Traces = 60
	all, err := newDataset(&rec)
	if err != nil {
		t.Fatal(err)
	}
	rec.SFT.TopShare = 0.5
	top, err := newDataset(&rec)
	if err != nil {
		t.Fatal(err)
	}
	rate := func(d *dataset) (r float64) {
		for _, tr := range d.traces {
			r += share(d.world.Judge(tr).Success) / float64(len(d.traces))
		}
		return r
	}
	if len(all.traces) != 60 || len(top.traces) != 30 || rate(top) <= rate(all) {
		t.Errorf("%d traces with success %.2f, %d of them with %.2f", len(all.traces), rate(all), len(top.traces), rate(top))
	}
}
