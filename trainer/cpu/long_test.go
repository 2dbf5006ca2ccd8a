package cpu

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"alidade/ablation"
	"alidade/sandbox/travel/compact"
	"alidade/trainer"
	"alidade/trainer/cpu/nn"
)

// tinyLong is tinyRecipe for longer trips.
func tinyLong(t testing.TB, days int) ablation.Recipe {
	t.Helper()
	rec := tinyRecipe(t)
	rec.Environment.Days, rec.Environment.MaxTurns, rec.Environment.MaxTokens = days, 0, 0
	rec.Budget = ablation.Budget{Steps: 2, CheckpointEvery: 1}
	rec.Evaluation.Queries, rec.Evaluation.Every = 10, 1
	rec.SFT.Control = false
	return rec
}

// Longer trips go through every stage, and plans of their length come out.
func TestLongTripsRun(t *testing.T) {
	root := t.TempDir()
	for name, c := range map[string]struct {
		days   int
		change func(*ablation.Recipe)
	}{
		"five days":  {5, func(*ablation.Recipe) {}},
		"seven days": {7, func(r *ablation.Recipe) { r.SFT.Control = true }},
		"arpo":       {5, func(r *ablation.Recipe) { r.Algorithm.Kind = "arpo" }},
		"dapo":       {7, func(r *ablation.Recipe) { r.Algorithm.Kind = "dapo" }},
		"failures":   {5, func(r *ablation.Recipe) { r.Environment.FailureKind, r.Environment.ToolFailureRate = "mixed", 0.3 }},
		"thoughts":   {5, func(r *ablation.Recipe) { r.Environment.Reasoning = "deliberative" }},
		"questions":  {5, func(r *ablation.Recipe) { r.Evaluation.OOD, r.Data.OODTraces = 12, 8 }},
		"milestones": {5, func(r *ablation.Recipe) { r.Reward.Milestones = map[string]string{"cities": "0.1"} }},
	} {
		t.Run(name, func(t *testing.T) {
			rec := tinyLong(t, c.days)
			c.change(&rec)
			if err := rec.Validate(); err != nil {
				t.Fatal(err)
			}
			o := runTiny(t, t.Context(), root, name, 1, rec, nil, Config{})
			if d := o.done(t); o.err != nil || !d.OK {
				t.Fatalf("run ended %+v, error %v", d, o.err)
			}
			plans := 0
			for _, e := range o.events {
				if e.Hello != nil && e.Hello.Info["vocabulary"] != fmt.Sprint(compact.LongVocabSize) {
					t.Errorf("a vocabulary of %s words", e.Hello.Info["vocabulary"])
				}
				tr := e.Trajectory
				if tr == nil || strings.HasPrefix(tr.ID, "ood") {
					continue
				}
				if tr.Query.Days != c.days || len(tr.Query.Dates) != c.days {
					t.Fatalf("%s: a query of %d days and %d dates", tr.ID, tr.Query.Days, len(tr.Query.Dates))
				}
				if len(tr.Plan) > 0 {
					plans++
				}
			}
			if plans == 0 && name != "thoughts" { // which eight steps do not teach
				t.Error("no trajectory holds a plan")
			}
		})
	}
}

func TestLongTripsRepeatAndResume(t *testing.T) {
	rec := tinyLong(t, 7)
	root := t.TempDir()
	a := runTiny(t, t.Context(), root, "a", 1, rec, nil, Config{})
	b := runTiny(t, t.Context(), t.TempDir(), "b", 1, rec, nil, Config{})
	if a.err != nil || b.err != nil || !slices.Equal(a.numbers(0), b.numbers(0)) {
		t.Errorf("the same recipe and seed gave different numbers (%v, %v)", a.err, b.err)
	}
	rest := runTiny(t, t.Context(), root, "c", 1, rec, func(s *trainer.Spec) {
		s.Attempt, s.ResumeFrom, s.ResumeStep = 2, filepath.Join(a.spec.Dir, "checkpoints", "step-000001"), 1
	}, Config{})
	only := func(o outcome) []string {
		return slices.DeleteFunc(o.numbers(2), func(s string) bool { return strings.HasPrefix(s, "sft/") })
	}
	if rest.err != nil || !slices.Equal(only(a), only(rest)) {
		t.Errorf("a resumed run gave other numbers (%v)", rest.err)
	}
}

// Trips of different lengths share nothing but the base.
func TestLengthsShareTheBaseOnly(t *testing.T) {
	root := t.TempDir()
	made := func(days int) map[string]bool {
		m := map[string]bool{}
		o := runTiny(t, t.Context(), root, fmt.Sprint(days), 1, tinyLong(t, days), nil, Config{})
		for _, e := range o.events {
			if e.Artifact != nil {
				m[e.Artifact.Kind+" "+e.Artifact.Hash] = true
			}
		}
		return m
	}
	five, seven := made(5), made(7)
	for a := range five {
		if base := strings.HasPrefix(a, "base"); seven[a] != base {
			t.Errorf("artifact %s is shared: %v", a, seven[a])
		}
	}
}

// A shipped base of the long language reads and copies in worlds it has not
// seen, in trips of both lengths.
func TestShippedLongBases(t *testing.T) {
	worlds, err := (&PretrainConfig{Long: true}).world(pretrainWorlds - 1)
	if err != nil {
		t.Fatal(err)
	}
	shippedOnes := 0
	for _, s := range nn.Ladder() {
		src, ext, ok := shippedBase(s.Name + longBase)
		if !ok {
			continue
		}
		shippedOnes++
		r := &run{recipe: tinyRecipe(t)}
		if r.shape, err = nn.SizeConfig(s.Name, compact.LongVocabSize); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), policyFile)
		if err := r.unpackBase(src, ext, path); err != nil {
			t.Fatal(err)
		}
		c, err := nn.LoadCheckpoint(path, "auto")
		if err != nil {
			t.Fatal(err)
		}
		teacher, err := nn.NewTrainer(c.Model, nn.AdamW{MaxNorm: 1})
		if err != nil {
			t.Fatal(err)
		}
		for i, w := range worlds {
			var scripts []compact.Script
			for k := range 48 {
				scripts = append(scripts, w.StrollScript(7, uint64(k)))
			}
			p, _, err := imitate(teacher, scripts, 0)
			if err != nil {
				t.Fatal(err)
			}
			if t.Logf("%s, %d days: loss %.3f", s.Name, w.Days(), p.Loss); p.Loss > longBaseLoss {
				t.Errorf("%s, world %d: loss %.3f on strolls in an unseen world, want at most %.2f", s.Name, i, p.Loss, longBaseLoss)
			}
		}
	}
	if shippedOnes == 0 {
		t.Error("no base of the long language is shipped")
	}
}

const longBaseLoss = 1.55
