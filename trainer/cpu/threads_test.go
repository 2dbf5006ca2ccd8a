package cpu

import (
	"slices"
	"testing"

	"alidade/ablation"
	"alidade/trainer"
)

// A run on two threads gives the numbers of a run on one, bit for bit, and so
// does what it leaves for others.
func TestThreadsChangeNothing(t *testing.T) {
	if raceOn {
		t.Skip("compares numbers: the shared parts are tested with the race detector on their own")
	}
	for name, change := range map[string]func(r *ablation.Recipe){
		"grpo": func(*ablation.Recipe) {},
		"arpo": func(r *ablation.Recipe) { r.Algorithm.Kind, r.Algorithm.BranchProb = "arpo", 0.9 },
		"filtered groups with KL": func(r *ablation.Recipe) {
			r.Algorithm.FilterGroups, r.Algorithm.MaxGenBatches, r.Algorithm.UseKLInReward, r.Algorithm.KLCoef = true, 2, true, 0.01
		},
	} {
		t.Run(name, func(t *testing.T) {
			rec := tinyRecipe(t)
			rec.Algorithm.PromptsPerStep, rec.Algorithm.GroupSize = 10, 8 // several pieces of work
			rec.Budget.Steps = 2
			rec.Evaluation.Queries, rec.Evaluation.OOD = 40, 8
			change(&rec)
			one := runTiny(t, t.Context(), t.TempDir(), "a", 1, rec, nil, Config{})
			two := runTiny(t, t.Context(), t.TempDir(), "b", 1, rec, func(s *trainer.Spec) { s.Threads = 2 }, Config{})
			if one.err != nil || two.err != nil {
				t.Fatal(one.err, two.err)
			}
			if !slices.Equal(one.numbers(0), two.numbers(0)) {
				t.Error("two threads gave other numbers")
			}
			if !slices.Equal(one.made(), two.made()) {
				t.Errorf("artifacts %v on one thread, %v on two", one.made(), two.made())
			}
		})
	}
}

// made lists the artifacts of a run.
func (o outcome) made() []string {
	var out []string
	for _, e := range o.events {
		if e.Artifact != nil {
			out = append(out, e.Artifact.Kind+" "+e.Artifact.Hash)
		}
	}
	return out
}
