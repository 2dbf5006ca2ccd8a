package runner

import (
	"math"
	"strings"
	"testing"

	"alidade/trainer"
)

// train feeds steps from..to to the detectors; metric says the values at a step.
func train(h *health, from, to int64, metrics func(step int64) map[string]float64) []finding {
	var all []finding
	for step := from; step <= to; step++ {
		values := make(map[string]trainer.Float)
		for name, v := range metrics(step) {
			values[name] = trainer.Float(v)
		}
		all = append(all, h.hear(&trainer.Event{Kind: trainer.KindPoints, Points: &trainer.Points{Step: step, Values: values}})...)
	}
	return all
}

// noise is a number in [-1, 1] that looks random and is the same each time.
func noise(step int64) float64 { return math.Sin(float64(step * step % 97)) }

func healthy(step int64) map[string]float64 {
	return map[string]float64{
		"reward/mean": 1 + float64(step)/100 + 0.1*noise(step), "train/success": 0.2 + float64(step)/1000 + 0.02*noise(step+3),
		"group/zero_variance": 0.3 + 0.1*noise(step), "policy/entropy": 1 - float64(step)/1000, "policy/grad_norm": 0.5 + 0.2*noise(step),
		"policy/loss": 0.1 * noise(step), "policy/kl": 0.01 + 0.001*float64(step), "rollout/format_error": 0.05, "rollout/overlong": 0.1, "rollout/tool_failure": 0.01,
	}
}

func TestHealthyRunRaisesNothing(t *testing.T) {
	h := newHealth()
	if found := train(&h, 1, 500, healthy); len(found) != 0 {
		t.Errorf("findings of a healthy run: %+v", found)
	}
}

func TestDetectors(t *testing.T) {
	sick := func(name string, value func(step int64) float64) func(int64) map[string]float64 {
		return func(step int64) map[string]float64 {
			m := healthy(step)
			if step > 60 {
				m[name] = value(step)
			}
			return m
		}
	}
	constant := func(v float64) func(int64) float64 { return func(int64) float64 { return v } }
	tests := []struct {
		name    string
		metrics func(int64) map[string]float64
		code    string
		first   int64 // step at which it is told
		since   int64
		stop    bool
		words   string
	}{
		{"reward constant", sick("reward/mean", constant(0)), "reward-constant", 70, 61, false, "exactly 0"},
		{"all groups alike", sick("group/zero_variance", constant(1)), "zero-variance", 70, 61, false, "no gradient"},
		{"entropy gone", sick("policy/entropy", constant(0.001)), "entropy-low", 70, 61, false, "explores no more"},
		{"KL", sick("policy/kl", constant(9)), "kl-exploding", 63, 61, false, "times its median"},
		{"gradient", sick("policy/grad_norm", constant(1e4)), "gradient-exploding", 63, 61, false, "gradient's norm"},
		{"NaN", sick("policy/loss", constant(math.NaN())), "nan", 61, 61, false, "NaN at step 61"},
		{"format", sick("rollout/format_error", constant(0.6)), "format-errors", 63, 54, false, "broke the format"},
		{"tools", sick("rollout/tool_failure", constant(0.08)), "tool-failures", 66, 57, false, "beside the injected"},
		{"tools, many", sick("rollout/tool_failure", constant(0.9)), "tool-failures", 61, 52, false, ""},
		{"length", sick("rollout/overlong", constant(1)), "length-at-limit", 65, 56, false, "context limit"},
		{"reward hacking", func(step int64) map[string]float64 {
			m := healthy(step)
			if step > 60 {
				m["reward/mean"], m["train/success"] = m["reward/mean"]+0.05*float64(step-60), m["train/success"]-0.005*float64(step-60)
			}
			return m
		}, "reward-without-success", 0, 0, false, "gaming the reward"},
	}
	for _, tt := range tests {
		h := newHealth()
		var got *finding
		for _, f := range train(&h, 1, 140, tt.metrics) {
			if f.alert.Code == tt.code && got == nil {
				got = &f
			}
		}
		if got == nil {
			t.Errorf("%s: no %s", tt.name, tt.code)
			continue
		}
		if tt.first != 0 && (got.alert.Step != tt.first || got.alert.Since != tt.since) || got.stop != tt.stop || !strings.Contains(got.alert.Text, tt.words) {
			t.Errorf("%s: %+v, want at step %d, since %d, %q", tt.name, got, tt.first, tt.since, tt.words)
		}
		if got.alert.Since == 0 || got.alert.Since > got.alert.Step {
			t.Errorf("%s: since %d at step %d: not linked to steps", tt.name, got.alert.Since, got.alert.Step)
		}
	}
}

// What only wastes devices is ended: no signal at all, NaN without end, a
// broken environment.
func TestDetectorsThatEndARun(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(step int64, m map[string]float64)
		code   string
		by     int64
	}{
		"zero reward":        {func(_ int64, m map[string]float64) { m["reward/mean"], m["group/zero_variance"] = 0, 1 }, "reward-constant", 100},
		"NaN":                {func(_ int64, m map[string]float64) { m["policy/grad_norm"] = math.NaN() }, "nan", 3},
		"NaN now and then":   {func(s int64, m map[string]float64) { m["policy/loss"] += map[bool]float64{true: math.NaN()}[s%10 == 0] }, "nan", 60},
		"broken environment": {func(_ int64, m map[string]float64) { m["rollout/tool_failure"] = 0.8 }, "tool-failures-high", 10},
	} {
		h := newHealth()
		at := int64(0)
		for _, f := range train(&h, 1, 150, func(step int64) map[string]float64 { m := healthy(step); tt.change(step, m); return m }) {
			if f.stop && f.alert.Code == tt.code {
				at = f.alert.Step
				break
			}
		}
		if at != tt.by {
			t.Errorf("%s: ended at step %d, want %d", name, at, tt.by)
		}
	}
	// A constant reward with differences inside the groups is only told.
	h := newHealth()
	for _, f := range train(&h, 1, 300, func(step int64) map[string]float64 { m := healthy(step); m["reward/mean"] = 2; return m }) {
		if f.stop {
			t.Errorf("ended: %+v", f)
		}
	}
}

// Failures that were injected are the experiment, not a fault; those of the
// environment are counted from the trajectories.
func TestToolFailuresInTrajectories(t *testing.T) {
	feed := func(observe trainer.Observed) []finding {
		h := newHealth()
		var found []finding
		for step := int64(1); step <= 20; step++ {
			turns := []trainer.Turn{{Call: &trainer.Call{Tool: "SearchFlight"}, Observe: &observe}}
			h.hear(&trainer.Event{Kind: trainer.KindTrajectory, Trajectory: &trainer.Trajectory{Phase: "rl", Step: step, Turns: turns}})
			found = append(found, train(&h, step, step, func(step int64) map[string]float64 {
				m := healthy(step)
				delete(m, "rollout/tool_failure")
				return m
			})...)
		}
		return found
	}
	if found := feed(trainer.Observed{Injected: "unavailable", Error: "timeout"}); len(found) != 0 {
		t.Errorf("injected failures: %+v", found)
	}
	if found := feed(trainer.Observed{Error: "no_hits"}); len(found) != 0 {
		t.Errorf("calls without hits: %+v", found)
	}
	if found := feed(trainer.Observed{Error: "unreachable"}); len(found) == 0 || found[0].alert.Code != "tool-failures-high" {
		t.Errorf("an environment that is down: %+v", found)
	}
}
