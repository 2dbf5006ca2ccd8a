package ablation_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"alidade/ablation"
)

func study(design ablation.Design, factors ...ablation.Factor) ablation.Study {
	base, _ := ablation.PresetNamed("quick")
	return ablation.Study{Name: "t", Base: base, Factors: factors, Design: design, Seeds: []uint64{1, 2}, Metric: "eval/success"}
}

func labels(runs []ablation.Planned) string {
	var out []string
	for _, r := range runs {
		out = append(out, fmt.Sprintf("%s/%d", r.Arm.Label, r.Seed))
	}
	return strings.Join(out, " ")
}

var (
	reward = ablation.Factor{Key: "reward.kind", Levels: []any{"SUM", "MACRO"}}
	size   = ablation.Factor{Key: "data.prompts", Levels: []any{100, 200, 500}}
)

func TestExpand(t *testing.T) {
	for _, c := range []struct {
		name  string
		study ablation.Study
		want  string
	}{
		{"no factor", study("grid"), "base/1 base/2"},
		{"one factor, round by round", study("grid", reward), "SUM/1 MACRO/2 SUM/2 MACRO/1"},
		{"one at a time", study("one-factor", reward, size), "SUM × prompts 100/1 MACRO × prompts 100/2 SUM × prompts 200/1 SUM × prompts 500/2 SUM × prompts 100/2 MACRO × prompts 100/1 SUM × prompts 200/2 SUM × prompts 500/1"},
	} {
		runs, err := ablation.Expand(c.study)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := labels(runs); got != c.want {
			t.Errorf("%s: Expand = %s, want %s", c.name, got, c.want)
		}
	}
}

func TestExpandGridHasEveryCombinationOnce(t *testing.T) {
	runs, err := ablation.Expand(study("grid", reward, size))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, r := range runs {
		key := fmt.Sprint(r.Arm.Recipe.Reward.Kind, r.Arm.Recipe.Data.Prompts, r.Seed)
		if seen[key] {
			t.Errorf("%s occurs twice", key)
		}
		seen[key] = true
	}
	if len(seen) != 2*3*2 {
		t.Errorf("%d runs, want 12", len(seen))
	}
}

func TestHashIgnoresThePresetNameOnly(t *testing.T) {
	a, _ := ablation.PresetNamed("quick")
	b := a
	b.Preset = "renamed"
	if a.Hash() != b.Hash() {
		t.Error("the preset's name changed the hash")
	}
	for _, f := range ablation.Fields() {
		c := a
		v, err := ablation.Get(&c, f.Key)
		if err != nil {
			t.Errorf("Get(%s): %v", f.Key, err)
		}
		if other := differs(f, v); other != nil {
			if err := ablation.Set(&c, f.Key, other); err != nil {
				t.Errorf("Set(%s, %v): %v", f.Key, other, err)
			}
			if c.Hash() == a.Hash() {
				t.Errorf("%s = %v did not change the hash", f.Key, other)
			}
			if d := ablation.Diff(a, c); len(d) != 1 || d[0] != f.Key {
				t.Errorf("Diff after setting %s = %v", f.Key, d)
			}
		}
	}
}

// differs returns an allowed value other than v.
func differs(f ablation.Field, v any) any {
	switch f.Kind {
	case ablation.KindEnum:
		for _, e := range f.Enum {
			if e != v {
				return e
			}
		}
	case ablation.KindBool:
		return v == false
	case ablation.KindInt, ablation.KindFloat:
		if fmt.Sprint(v) != fmt.Sprint(f.Min) {
			return f.Min
		}
		return f.Max
	case ablation.KindUint:
		return v.(uint64) + 1
	case ablation.KindString:
		return v.(string) + "x"
	case ablation.KindList:
		return []string{"x"}
	case ablation.KindFloats:
		return []float64{1}
	case ablation.KindMap:
		return map[string]string{"A": "b"}
	}
	return nil
}

func TestSetRefuses(t *testing.T) {
	for _, c := range []struct {
		key   string
		value any
	}{
		{"algorithm.lr", math.NaN()}, {"algorithm.lr", "fast"}, {"algorithm.lr", -1.0}, {"algorithm.group_size", 2.5},
		{"reward.kind", "sum"}, {"reward.kind", 1}, {"data.seed", -1}, {"sft.control", 1}, {"trainer.command", "a b"},
		{"reward.stages", []any{"x"}}, {"nothing", 1}, {"algorithm", 1}, {"algorithm.lr.x", 1}, {"trainer.env", map[string]any{"a": 1}},
	} {
		r, _ := ablation.PresetNamed("quick")
		err := ablation.Set(&r, c.key, c.value)
		var fe ablation.FieldError
		if !errors.As(err, &fe) || fe.Field == "" || fe.Allowed == "" {
			t.Errorf("Set(%s, %v) = %v, want a field error that says what is allowed", c.key, c.value, err)
		}
	}
}

func TestStateMoves(t *testing.T) {
	for _, c := range []struct {
		from ablation.State
		ev   ablation.Event
		want ablation.State
		ok   bool
	}{
		{ablation.Queued, ablation.EvLaunch, ablation.Starting, true},
		{ablation.Starting, ablation.EvStarted, ablation.Running, true},
		{ablation.Running, ablation.EvSucceeded, ablation.Succeeded, true},
		{ablation.Running, ablation.EvLaunch, ablation.Running, false},
		{ablation.Succeeded, ablation.EvRequeue, ablation.Succeeded, false},
		{ablation.Failed, ablation.EvRequeue, ablation.Queued, true},
		{ablation.Lost, ablation.EvRecovered, ablation.Running, true},
		{ablation.Queued, ablation.EvStop, ablation.Stopped, true},
		{"nonsense", ablation.EvLaunch, "nonsense", false},
	} {
		got, err := c.from.Next(c.ev)
		if got != c.want || (err == nil) != c.ok {
			t.Errorf("%s.Next(%s) = %s, %v; want %s, ok %v", c.from, c.ev, got, err, c.want, c.ok)
		}
		if !c.ok && !errors.Is(err, ablation.ErrConflict) {
			t.Errorf("%s.Next(%s): %v is not ErrConflict", c.from, c.ev, err)
		}
	}
	for _, s := range ablation.States() {
		if s.Terminal() && s.Live() {
			t.Errorf("%s is terminal and live", s)
		}
	}
}

func TestPresetsAndTemplatesAreValid(t *testing.T) {
	for _, p := range ablation.Presets() {
		r := p.Recipe
		if err := r.Validate(); err != nil {
			t.Errorf("preset %s: %v", p.Name, err)
		}
	}
	for _, tpl := range ablation.Templates() {
		if err := tpl.Study.Validate(); err != nil {
			t.Errorf("template %s: %v", tpl.ID, err)
		}
	}
}
