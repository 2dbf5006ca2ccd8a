package cpu

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"alidade/ablation"
	"alidade/trainer"
)

// Every algorithm trains a tiny policy to its end, says what it is, and
// repeats its numbers after a resume.
func TestEveryAlgorithmRuns(t *testing.T) {
	root := t.TempDir()
	for kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			rec := tinyRecipe(t)
			rec.Algorithm.Kind = kind
			rec.SFT.Control = false
			rec.Evaluation.Queries = 8
			rec.Algorithm.MaxGenBatches = 3
			o := runTiny(t, t.Context(), root, kind, 1, rec, nil, Config{})
			if d := o.done(t); o.err != nil || !d.OK {
				t.Fatalf("ended %+v, error %v", d, o.err)
			}
			if info := o.events[0].Hello.Info; info["algorithm"] != kind || !strings.Contains(info["loss"], "aggregation") || !strings.Contains(info["loss"], "KL") {
				t.Errorf("hello says %q", info["loss"])
			}
		})
	}
}

func have(o outcome, metric string) bool {
	for _, e := range o.events {
		if e.Points != nil {
			if _, ok := e.Points.Values[metric]; ok {
				return true
			}
		}
	}
	return false
}

func TestAlgorithmsReportTheirOwn(t *testing.T) {
	root := t.TempDir()
	for name, c := range map[string]struct {
		change  func(a *ablation.Algorithm)
		metrics string
	}{
		"dapo": {func(a *ablation.Algorithm) { a.Kind, a.MaxGenBatches = "dapo", 3 }, "sampling/rounds sampling/kept sampling/groups"},
		"arpo": {func(a *ablation.Algorithm) { a.Kind, a.BranchProb = "arpo", 1 }, "sampling/branches sampling/shared"},
		"kl": {func(a *ablation.Algorithm) {
			a.UseKLLoss, a.KLLossCoef, a.UseKLInReward, a.KLCoef, a.EntropyCoeff, a.Epochs, a.TopP = true, 0.1, true, 0.01, 0.01, 2, 0.9
		}, "policy/kl policy/kl_loss reward/kl policy/ratio_p50 policy/ratio_max policy/ess policy/grad_norm_head policy/grad_norm_layer0"},
	} {
		t.Run(name, func(t *testing.T) {
			rec := tinyRecipe(t)
			c.change(&rec.Algorithm)
			rec.SFT.Control = false
			rec.Evaluation.Queries = 8
			o := runTiny(t, t.Context(), root, name, 1, rec, nil, Config{})
			if o.err != nil {
				t.Fatal(o.err)
			}
			for _, m := range strings.Fields(c.metrics) {
				if !have(o, m) {
					t.Errorf("metric %s is missing", m)
				}
			}
			if name != "arpo" {
				return
			}
			marks := 0
			for _, e := range o.events {
				if e.Trajectory != nil && e.Trajectory.Phase == "rl" {
					for _, turn := range e.Trajectory.Turns {
						if turn.Branch {
							marks++
						}
					}
				}
			}
			if marks == 0 {
				t.Error("no turn is marked as a branching point")
			}
		})
	}
}

// Failures of every kind, rates by tool, thoughts, and the random reward.
func TestEnvironmentsRun(t *testing.T) {
	root := t.TempDir()
	for name, change := range map[string]func(r *ablation.Recipe){
		"mixed failures": func(r *ablation.Recipe) { r.Environment.FailureKind, r.Environment.ToolFailureRate = "mixed", 0.3 },
		"one tool fails": func(r *ablation.Recipe) {
			r.Environment.ToolFailureRate, r.Environment.FailureRates = 0, map[string]string{"SearchAccommodation": "1"}
		},
		"deliberative": func(r *ablation.Recipe) { r.Environment.Reasoning = "deliberative" },
		"stitched":     func(r *ablation.Recipe) { r.SFT.TracesKind = "stitched" },
		"random":       func(r *ablation.Recipe) { r.Reward.Kind = "RANDOM" },
	} {
		t.Run(name, func(t *testing.T) {
			rec := tinyRecipe(t)
			rec.SFT.Control = false
			change(&rec)
			o := runTiny(t, t.Context(), root, name, 1, rec, nil, Config{})
			if o.err != nil {
				t.Fatal(o.err)
			}
			if name == "one tool fails" && !injectedSome(o) {
				t.Error("no failure was injected")
			}
			if name == "deliberative" && !have(o, "rollout/thought") {
				t.Error("thoughts are not counted")
			}
		})
	}
}

func injectedSome(o outcome) bool {
	for _, e := range o.events {
		if e.Points != nil && e.Points.Values["rollout/injected"] > 0 {
			return true
		}
	}
	return false
}

// Before the first update every ratio is exactly 1, for tokens of a shared stem
// as for others, and a resumed run repeats its numbers.
func TestSamplingAgreesWithTraining(t *testing.T) {
	root := t.TempDir()
	for _, kind := range []string{"arpo", "dapo"} {
		rec := tinyRecipe(t)
		rec.SFT.Control = false
		rec.Algorithm.Kind, rec.Algorithm.Minibatches, rec.Algorithm.BranchProb = kind, 1, 0.9
		whole := runTiny(t, t.Context(), root, kind, 1, rec, nil, Config{})
		if whole.err != nil {
			t.Fatal(whole.err)
		}
		for _, e := range whole.events {
			if e.Points == nil {
				continue
			}
			low, ok := e.Points.Values["policy/ratio_min"]
			if high := e.Points.Values["policy/ratio_max"]; ok && (low != 1 || high != 1) {
				t.Errorf("%s step %d: ratios from %g to %g", kind, e.Points.Step, low, high)
			}
		}
		rest := runTiny(t, t.Context(), root, kind+"2", 1, rec, func(s *trainer.Spec) {
			s.Attempt, s.ResumeFrom, s.ResumeStep = 2, filepath.Join(whole.spec.Dir, "checkpoints", "step-000002"), 2
		}, Config{})
		tail := func(o outcome) []string {
			return slices.DeleteFunc(o.numbers(3), func(s string) bool { return strings.HasPrefix(s, "sft/") })
		}
		if rest.err != nil || !slices.Equal(tail(whole), tail(rest)) {
			t.Errorf("%s: a resumed run gave other numbers (%v)", kind, rest.err)
		}
	}
}
