package cpu

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"alidade/ablation"
	"alidade/trainer"
)

// tinyRecipe is a whole run in a few seconds.
func tinyRecipe(t testing.TB) ablation.Recipe {
	t.Helper()
	r, ok := ablation.PresetNamed("quick")
	if !ok {
		t.Fatal("no preset quick")
	}
	r.SFT.Traces, r.SFT.Epochs, r.SFT.Batch = 32, 2, 8
	r.Data.Prompts = 20
	r.Environment.Cities = 12
	r.Environment.ToolFailureRate = 0.05
	r.Algorithm.PromptsPerStep, r.Algorithm.GroupSize, r.Algorithm.Minibatches = 4, 4, 2
	r.Budget = ablation.Budget{Steps: 4, CheckpointEvery: 2}
	r.Evaluation.Queries, r.Evaluation.Every, r.Evaluation.Samples = 20, 2, 2
	return r
}

type outcome struct {
	err    error
	events []trainer.Event
	spec   trainer.Spec
}

// runTiny runs a recipe in a folder that shares artifacts under root.
func runTiny(t testing.TB, ctx context.Context, root, name string, seed uint64, rec ablation.Recipe, change func(*trainer.Spec), cfg Config) outcome {
	t.Helper()
	dir := filepath.Join(root, name)
	spec := trainer.Spec{Version: trainer.Version, Run: 7, Study: "tiny", Arm: "base", Attempt: 1, Seed: seed, Recipe: rec,
		Dir: dir, Events: filepath.Join(dir, "events.jsonl"), Artifacts: filepath.Join(root, "artifacts"), Threads: 1}
	if change != nil {
		change(&spec)
	}
	o := outcome{spec: spec}
	o.err = Run(ctx, spec, cfg)
	src, err := os.ReadFile(spec.Events)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(src)) {
		var e trainer.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		o.events = append(o.events, e)
	}
	return o
}

// numbers lists all metrics except wall-clock ones, one "metric step value" each.
func (o outcome) numbers(from int64) []string {
	var out []string
	for _, e := range o.events {
		if e.Points == nil || e.Points.Step < from {
			continue
		}
		for _, k := range slices.Sorted(maps.Keys(e.Points.Values)) {
			if strings.HasPrefix(k, "speed/") || strings.HasPrefix(k, "time/") || strings.HasPrefix(k, "sft/tokens") {
				continue
			}
			out = append(out, fmt.Sprintf("%s %d %x", k, e.Points.Step, math.Float64bits(float64(e.Points.Values[k]))))
		}
	}
	return out
}

func (o outcome) done(t *testing.T) trainer.Done {
	t.Helper()
	last := o.events[len(o.events)-1]
	if last.Done == nil {
		t.Fatalf("the last event is a %s", last.Kind)
	}
	return *last.Done
}

func TestSameSeedSameNumbers(t *testing.T) {
	rec := tinyRecipe(t)
	a := runTiny(t, t.Context(), t.TempDir(), "a", 1, rec, nil, Config{})
	b := runTiny(t, t.Context(), t.TempDir(), "b", 1, rec, nil, Config{})
	c := runTiny(t, t.Context(), t.TempDir(), "c", 2, rec, nil, Config{})
	for _, o := range []outcome{a, b, c} {
		if d := o.done(t); o.err != nil || !d.OK || d.Step != 4 || d.Reason != "finished" {
			t.Fatalf("run ended %+v, error %v", d, o.err)
		}
	}
	if !slices.Equal(a.numbers(0), b.numbers(0)) {
		t.Error("the same recipe and seed gave different numbers")
	}
	if slices.Equal(a.numbers(0), c.numbers(0)) {
		t.Error("different seeds gave the same numbers")
	}
	checkMetrics(t, a)
}

// checkMetrics looks for every metric the contract names.
func checkMetrics(t *testing.T, o outcome) {
	t.Helper()
	have := map[string]bool{}
	for _, e := range o.events {
		if e.Points != nil {
			for k := range e.Points.Values {
				have[k] = true
			}
		}
	}
	names := "reward/mean reward/cs_macro reward/hard_macro reward/success reward/format_error train/success check/valid_cost check/is_not_absent policy/entropy policy/clip_low policy/clip_high policy/grad_norm policy/loss policy/lr " +
		"rollout/tokens rollout/generated rollout/tool_calls rollout/injected rollout/format_error rollout/overlong group/zero_variance speed/tokens_per_s speed/sample_tokens_per_s speed/train_tokens_per_s time/step_s " +
		"sft/loss sft/lr sft/tokens_per_s eval/success eval/success_greedy eval/delivery eval/cs_micro eval/cs_macro eval/hard_micro eval/hard_macro eval/success_easy eval/success_medium eval/success_hard " +
		"eval/success_official eval/success_star eval/check/is_valid_restaurants eval/tool_calls eval/tokens baseline/random_legal baseline/expert baseline/sft baseline/sft_continued"
	for _, n := range strings.Fields(names) {
		if !have[n] {
			t.Errorf("metric %s is missing", n)
		}
	}
}

func TestRunsShareArtifacts(t *testing.T) {
	root, rec := t.TempDir(), tinyRecipe(t)
	made := func(o outcome) map[string]string {
		m := map[string]string{}
		for _, e := range o.events {
			if e.Artifact != nil {
				m[e.Artifact.Kind+" "+e.Artifact.Hash] = fmt.Sprint(e.Artifact.CreatedAt)
			}
		}
		return m
	}
	a := runTiny(t, t.Context(), root, "a", 1, rec, nil, Config{})
	rec.Reward.Kind = "SUCCESS"
	rec.Algorithm.LR = 2e-4
	rec.Algorithm.Kind = "rloo"
	b := runTiny(t, t.Context(), root, "b", 1, rec, nil, Config{})
	if !maps.Equal(made(a), made(b)) || len(made(a)) < 7 {
		t.Errorf("arms that differ in reward and rate made other artifacts:\n%v\n%v", made(a), made(b))
	}
	rec.SFT.Noise = 0.1
	if c := runTiny(t, t.Context(), root, "c", 1, rec, nil, Config{}); maps.Equal(made(a), made(c)) {
		t.Error("other traces, same artifacts")
	}
}

// Arms that differ in the RL prompts start from the same traces.
func TestPromptsDoNotMoveTheTraces(t *testing.T) {
	rec := tinyRecipe(t)
	a, err := newDataset(&rec)
	if err != nil {
		t.Fatal(err)
	}
	rec.Data.Mix, rec.Data.Prompts = "1:0:0", 7
	b, err := newDataset(&rec)
	if err != nil {
		t.Fatal(err)
	}
	for i := range a.traces {
		if a.traces[i].Query.Key != b.traces[i].Query.Key {
			t.Fatalf("trace %d is about another query", i)
		}
	}
	for _, q := range b.prompts {
		if q.Level != "easy" {
			t.Errorf("prompt of level %s", q.Level)
		}
	}
}

func TestResumeGivesTheSameNumbers(t *testing.T) {
	root, rec := t.TempDir(), tinyRecipe(t)
	whole := runTiny(t, t.Context(), root, "a", 1, rec, nil, Config{})
	rest := runTiny(t, t.Context(), root, "b", 1, rec, func(s *trainer.Spec) {
		s.Attempt, s.ResumeFrom, s.ResumeStep = 2, filepath.Join(whole.spec.Dir, "checkpoints", "step-000002"), 2
	}, Config{})
	if d := rest.done(t); rest.err != nil || !d.OK {
		t.Fatalf("resumed run ended %+v, error %v", d, rest.err)
	}
	only := func(o outcome) []string {
		return slices.DeleteFunc(o.numbers(3), func(s string) bool { return strings.HasPrefix(s, "sft/") })
	}
	if !slices.Equal(only(whole), only(rest)) {
		t.Error("a resumed run gave other numbers")
	}
	bad := runTiny(t, t.Context(), root, "c", 2, rec, func(s *trainer.Spec) {
		s.ResumeFrom, s.ResumeStep = filepath.Join(whole.spec.Dir, "checkpoints", "step-000002"), 2
	}, Config{})
	if bad.err == nil || !strings.Contains(bad.err.Error(), "belongs to recipe and seed") {
		t.Errorf("resume with another seed: %v", bad.err)
	}
}

func TestStopCheckpoints(t *testing.T) {
	rec := tinyRecipe(t)
	rec.Budget.Steps, rec.Budget.CheckpointEvery, rec.Evaluation.Every = 100000, 1000000, 1000000
	ctx, cancel := context.WithCancel(t.Context())
	save := make(chan os.Signal, 1)
	save <- syscall.SIGUSR1
	go func() {
		defer cancel()
		for len(save) > 0 && t.Context().Err() == nil {
			time.Sleep(5 * time.Millisecond)
		}
	}()
	o := runTiny(t, ctx, t.TempDir(), "a", 1, rec, nil, Config{Save: save})
	if d := o.done(t); o.err != nil || d.OK || d.Reason != "stopped" {
		t.Fatalf("run ended %+v, error %v", d, o.err)
	}
	var steps []int64
	for _, e := range o.events {
		if e.Checkpoint != nil {
			steps = append(steps, e.Checkpoint.Step)
		}
	}
	if len(steps) < 2 || steps[0] != 1 {
		t.Errorf("checkpoints at %v, want one after the first step and one at the stop", steps)
	}
}

func TestTrajectoriesAreRecorded(t *testing.T) {
	o := runTiny(t, t.Context(), t.TempDir(), "a", 1, tinyRecipe(t), nil, Config{})
	count, ids := map[string]int{}, map[string]bool{}
	for _, e := range o.events {
		tr := e.Trajectory
		if tr == nil {
			continue
		}
		count[fmt.Sprint(tr.Phase, " ", tr.Policy, " ", tr.Step)]++
		if ids[tr.ID] {
			t.Errorf("id %s twice", tr.ID)
		}
		ids[tr.ID] = true
		sum, generated := 0.0, 0
		for _, c := range tr.Components {
			sum += c.Value
		}
		for _, turn := range tr.Turns {
			generated += len(turn.Entropy)
		}
		if math.Abs(sum-tr.Reward) > 1e-9 || generated != tr.Generated || len(tr.Verdicts) != 13 {
			t.Errorf("%s: components sum to %g, reward %g; %d entropies for %d tokens; %d verdicts", tr.ID, sum, tr.Reward, generated, tr.Generated, len(tr.Verdicts))
		}
	}
	want := map[string]int{"eval sft 0": 20, "eval policy 4": 20, "rl policy 1": 8, "rl policy 4": 8}
	if !maps.Equal(count, want) {
		t.Errorf("trajectories %v, want %v", count, want)
	}
}

func TestRefusedRecipesNameTheKey(t *testing.T) {
	for key, change := range map[string]func(*ablation.Recipe){
		"environment.world":  func(r *ablation.Recipe) { r.Environment.World = "full" },
		"environment.cities": func(r *ablation.Recipe) { r.Environment.Cities = 300 },
		"sft.traces":         func(r *ablation.Recipe) { r.SFT.Traces = 0 },
	} {
		rec := tinyRecipe(t)
		change(&rec)
		o := runTiny(t, t.Context(), t.TempDir(), "a", 1, rec, nil, Config{})
		if d := o.done(t); o.err == nil || d.OK || !strings.Contains(d.Reason, key) {
			t.Errorf("%s: ended %+v, error %v", key, d, o.err)
		}
	}
}
