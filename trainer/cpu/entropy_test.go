package cpu

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"alidade/trainer"
)

// The coefficient follows the documented rule, written out once more.
func TestBonusFollowsTheEntropy(t *testing.T) {
	const target, delta = 0.3, 0.01
	c := 0.02
	want := 0.02
	for i, h := range []float64{0.1, 0.1, 0.5, 0.3, 0.31, 0.9, 0.9, 0.2, 0.299999} {
		var bonus float64
		c, bonus = towards(target, delta, c, h)
		below := h < target
		if below {
			want += delta
		} else {
			want = math.Max(0, want-delta)
		}
		paid := 0.0
		if below {
			paid = want
		}
		if math.Abs(c-want) > 1e-15 || math.Abs(bonus-paid) > 1e-15 {
			t.Errorf("step %d, entropy %g: coefficient %g, bonus %g; want %g, %g", i, h, c, bonus, want, paid)
		}
	}
	if c != 0.02 {
		t.Errorf("ended at %g", c)
	}
}

// A target holds the entropy up that plain RL lets fall, is reported, and
// repeats after a resume.
func TestEntropyTarget(t *testing.T) {
	root, rec := t.TempDir(), tinyRecipe(t)
	rec.SFT.Control = false
	rec.Algorithm.EntropyTarget, rec.Algorithm.EntropyDelta = 5, 0.25 // nats: always below
	whole := runTiny(t, t.Context(), root, "a", 1, rec, nil, Config{})
	if whole.err != nil {
		t.Fatal(whole.err)
	}
	if info := whole.events[0].Hello.Info["loss"]; !strings.Contains(info, "±0.25 a step towards 5 nats") {
		t.Errorf("hello says %q", info)
	}
	plain := tinyRecipe(t)
	plain.SFT.Control = false
	without := runTiny(t, t.Context(), root, "b", 1, plain, nil, Config{})
	last := func(o outcome, metric string) (v float64) {
		for _, e := range o.events {
			if e.Points != nil && e.Points.Step == 4 {
				if x, ok := e.Points.Values[metric]; ok {
					v = float64(x)
				}
			}
		}
		return v
	}
	if c := last(whole, "policy/entropy_coeff"); c != 1 {
		t.Errorf("after 4 steps the coefficient is %g", c)
	}
	if have(without, "policy/entropy_coeff") {
		t.Error("a run without a target reports a coefficient")
	}
	if a, b := last(whole, "policy/entropy"), last(without, "policy/entropy"); a <= b {
		t.Errorf("entropy %g with the target, %g without", a, b)
	}
	rest := runTiny(t, t.Context(), root, "c", 1, rec, func(s *trainer.Spec) {
		s.Attempt, s.ResumeFrom, s.ResumeStep = 2, filepath.Join(whole.spec.Dir, "checkpoints", "step-000002"), 2
	}, Config{})
	tail := func(o outcome) []string {
		return slices.DeleteFunc(o.numbers(3), func(s string) bool { return strings.HasPrefix(s, "sft/") })
	}
	if rest.err != nil || !slices.Equal(tail(whole), tail(rest)) {
		t.Errorf("a resumed run gave other numbers (%v)", rest.err)
	}
}
