package web

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"alidade/ablation"
	"alidade/store"
	"alidade/trainer"
)

// Curves in these stores are drawn from formulas with fixed seeds, for tests
// of pages alone: nothing in them was measured.

// openStore opens an empty store that closes with the test.
func openStore(t testing.TB) *store.Store {
	t.Helper()
	s, err := store.Open(t.TempDir(), store.Options{CommitEvery: time.Millisecond})
	if err != nil {
		t.Fatalf("open store: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close store: %v", err)
		}
	})
	return s
}

// rewardsStudy is the first study of the fixtures: 4 rewards × 2 seeds.
func rewardsStudy(seeds ...uint64) ablation.Study {
	tmpl, _ := ablation.TemplateByID("star-table-1-quick")
	st := tmpl.Study
	if len(seeds) > 0 {
		st.Seeds = seeds
	}
	return st
}

// crossedStudy has two factors: 4 rewards × 2 group sizes.
func crossedStudy(seeds ...uint64) ablation.Study {
	st := rewardsStudy(seeds...)
	st.Name, st.Template = "reward-group", ""
	st.Question = "Does the best reward depend on the size of a group?"
	st.Factors = append(st.Factors, ablation.Factor{Key: "algorithm.group_size", Name: "group size", Levels: []any{int64(8), int64(16)}})
	return st
}

// launchStudy stores a study with its runs queued.
func launchStudy(t testing.TB, s *store.Store, st ablation.Study) (ablation.StudyRecord, []ablation.Run) {
	t.Helper()
	planned, err := ablation.Expand(st)
	if err != nil {
		t.Fatalf("expand: %v", err)
	}
	rec, runs, err := s.CreateStudy(context.Background(), st, "", planned)
	if err != nil {
		t.Fatalf("create study: %v", err)
	}
	return rec, runs
}

// curve is how a made-up run goes.
type curve struct {
	steps   int64     // steps it has made
	started time.Time // when its trainer started
	perStep time.Duration
	end     ablation.Event // "" = it goes on
	cause   string
	nanAt   int64
	device  string
	publish func(store.Commit)
}

// drive moves a queued run through its life and writes what a trainer would.
func drive(t testing.TB, s *store.Store, r ablation.Run, c curve) {
	t.Helper()
	ctx := context.Background()
	w := s.RunWriter()
	if c.perStep == 0 {
		c.perStep = 1200 * time.Millisecond
	}
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("drive run %d: %v", r.ID, err)
		}
	}
	must(w.Move(ctx, r.ID, ablation.EvLaunch, func(r *ablation.Run) {
		r.Attempt, r.Device, r.StartedAt = 1, c.device, c.started
	}))
	must(nil, w.StartAttempt(ctx, ablation.Attempt{Run: r.ID, Number: 1, Device: c.device, PID: 4100 + int(r.ID), StartedAt: c.started, State: ablation.Starting}))
	must(w.Move(ctx, r.ID, ablation.EvStarted, nil))

	var offset int64
	write := func(events ...trainer.Event) {
		offset += int64(100 * len(events))
		commit, err := w.Append(ctx, store.Batch{Run: r.ID, Attempt: 1, Offset: offset, Events: events})
		must(nil, err)
		if c.publish != nil {
			c.publish(commit)
		}
	}
	write(opening(r, c)...)
	var events []trainer.Event
	for step := int64(1); step <= c.steps; step++ {
		events = append(events, stepEvents(r, c, step)...)
		if len(events) > 200 {
			write(events...)
			events = nil
		}
	}
	if len(events) > 0 {
		write(events...)
	}
	if c.end == "" {
		return
	}
	ended := c.started.Add(rlStart + time.Duration(c.steps)*c.perStep)
	run, err := w.Move(ctx, r.ID, c.end, func(r *ablation.Run) { r.EndedAt, r.Cause = ended, c.cause })
	must(nil, err)
	code := 0
	if c.end == ablation.EvFailed {
		code = 1
	}
	must(nil, w.EndAttempt(ctx, ablation.Attempt{Run: r.ID, Number: 1, Device: c.device, StartedAt: c.started, EndedAt: ended, State: run.State, ExitCode: &code, Cause: c.cause}))
}

const rlStart = 40 * time.Second // data and SFT come first

func opening(r ablation.Run, c curve) []trainer.Event {
	at := func(d time.Duration) int64 { return c.started.Add(d).UnixMilli() }
	total := int64(r.Arm.Recipe.Budget.Steps)
	events := []trainer.Event{
		{V: 1, Kind: trainer.KindHello, T: at(0), Hello: &trainer.Hello{Trainer: "alidade-cpu", Version: "0.1", PID: 4100 + int(r.ID), Host: "box", TotalSteps: total, Info: map[string]string{"kernel": "avx2"}}},
		{V: 1, Kind: trainer.KindPhase, T: at(time.Second), Phase: &trainer.Phase{Name: "data"}},
		{V: 1, Kind: trainer.KindPhase, T: at(4 * time.Second), Phase: &trainer.Phase{Name: "sft", Total: 60}},
	}
	rng := rand.New(rand.NewPCG(uint64(r.ID), 7))
	for i := int64(1); i <= 60; i += 2 {
		events = append(events, points(at(4*time.Second+time.Duration(i)*600*time.Millisecond), i, map[string]float64{
			"sft/loss": 0.4 + 2.4*math.Exp(-float64(i)/14) + .04*rng.NormFloat64(), "sft/lr": 1.5e-3 * (1 - float64(i)/60), "sft/tokens_per_s": 41000 + 900*rng.NormFloat64(),
		}))
	}
	events = append(events, trainer.Event{V: 1, Kind: trainer.KindArtifact, T: at(rlStart), Artifact: &ablation.Artifact{Kind: "sft", Hash: fmt.Sprintf("%016x", 0xc0ffee12ab34+r.Arm.Index), Path: "artifacts/sft/x", Bytes: 1_312_004, Run: r.ID, CreatedAt: c.started.Add(rlStart)}})
	events = append(events, trainer.Event{V: 1, Kind: trainer.KindPhase, T: at(rlStart), Phase: &trainer.Phase{Name: "rl", Total: total, Main: true}})
	events = append(events, points(at(rlStart), 0, map[string]float64{"baseline/random_legal": .012, "baseline/sft": .118, "baseline/sft_continued": .131, "baseline/expert": 1}))
	return append(events, evaluation(r, c, 0)...)
}

func points(at, step int64, values map[string]float64) trainer.Event {
	p := &trainer.Points{Step: step, Values: map[string]trainer.Float{}}
	for k, v := range values {
		p.Values[k] = trainer.Float(v)
	}
	return trainer.Event{V: 1, Kind: trainer.KindPoints, T: at, Points: p}
}

// level is the made-up success of an arm at a share x of its steps.
func level(r ablation.Run, x float64) float64 {
	top := []float64{.30, .36, .22, .39}[r.Arm.Index%4]
	if r.Arm.Recipe.Algorithm.GroupSize == 16 {
		top += []float64{.02, .05, .01, .03}[r.Arm.Index%4]
	}
	top += .012 * math.Sin(float64(r.Seed)*2.1+float64(r.Arm.Index))
	return .118 + (top-.118)*(1-math.Exp(-3*x))/(1-math.Exp(-3))
}

func stepEvents(r ablation.Run, c curve, step int64) []trainer.Event {
	rng := rand.New(rand.NewPCG(uint64(r.ID), uint64(step)))
	x := float64(step) / float64(r.Arm.Recipe.Budget.Steps)
	s := level(r, x)
	at := c.started.Add(rlStart + time.Duration(step)*c.perStep).UnixMilli()
	noise := func(sd float64) float64 { return sd * rng.NormFloat64() }
	values := map[string]float64{
		"reward/mean": .9 + 1.6*s + noise(.05), "reward/cs_micro": .8 + .1*x + noise(.01), "reward/hard_micro": .5 + .3*x + noise(.02), "reward/success": s + noise(.02),
		"reward/format_error": -.2 * math.Exp(-4*x), "train/success": max(0, s+noise(.03)), "policy/entropy": .9*math.Exp(-1.1*x) + .2 + noise(.012),
		"policy/clip_low": .02 + noise(.004), "policy/clip_high": .03 + noise(.004), "policy/grad_norm": .7 + .2*math.Sin(8*x) + noise(.05), "policy/loss": noise(.01), "policy/lr": 1e-3,
		"rollout/tokens": 74 + 26*x + noise(1.4), "rollout/generated": 30 + 8*x + noise(.6), "rollout/tool_calls": 5.2 + 1.6*x + noise(.1), "rollout/injected": 0,
		"rollout/format_error": .2*math.Exp(-4*x) + .01, "rollout/overlong": .03 * math.Exp(-3*x), "group/zero_variance": .3 - .1*x + noise(.02),
		"speed/tokens_per_s": 21000 + noise(600), "time/step_s": c.perStep.Seconds() + noise(.05),
		"check/valid_cost": .5 + .4*x + noise(.02), "check/is_not_absent": .9 + .08*x + noise(.01), "check/is_valid_restaurants": .7 + .2*x + noise(.02), "check/valid_cuisine": .4 + .4*x + noise(.02),
	}
	if step == c.nanAt {
		values["policy/entropy"] = math.NaN()
		values["reward/mean"] = math.Inf(1)
	}
	events := []trainer.Event{points(at, step, values)}
	if step == c.nanAt {
		events = append(events, trainer.Event{V: 1, Kind: trainer.KindAlert, T: at, Alert: &trainer.Alert{Level: "warn", Code: "nan", Text: "entropy was NaN for one step and finite again after it; the update was skipped.", Step: step}})
	}
	if every := int64(r.Arm.Recipe.Evaluation.Every); every > 0 && step%every == 0 {
		events = append(events, evaluation(r, c, step)...)
		events = append(events, trainer.Event{V: 1, Kind: trainer.KindCheckpoint, T: at, Checkpoint: &trainer.Checkpoint{Step: step, Path: fmt.Sprintf("checkpoints/step-%06d", step), Bytes: 2_641_920, SHA256: fmt.Sprintf("%064x", uint64(step)*7919)}})
	}
	return events
}

// evaluation is a panel of made-up outcomes, the same queries everywhere.
func evaluation(r ablation.Run, c curve, step int64) []trainer.Event {
	const queries, samples = 128, 2
	rng := rand.New(rand.NewPCG(uint64(r.ID), uint64(step)+1e6))
	s := level(r, float64(step)/float64(max(1, r.Arm.Recipe.Budget.Steps)))
	e := &ablation.EvalResult{Run: r.ID, Panel: "test", Policy: "policy", Mode: "sampled", Step: step, Samples: samples, Hash: "panel-1"}
	passed := 0
	for q := range queries {
		difficulty := float64((q*37)%100)/100 - .5
		p := min(1, max(0, s-.6*difficulty*s))
		n := 0
		for range samples {
			if rng.Float64() < p {
				n++
			}
		}
		passed += n
		e.Queries = append(e.Queries, ablation.QueryResult{Query: fmt.Sprintf("%016x", q), Level: []string{"easy", "medium", "hard"}[q%3], Passed: n})
	}
	at := c.started.Add(rlStart + time.Duration(step)*c.perStep).UnixMilli()
	rate := float64(passed) / (queries * samples)
	return []trainer.Event{
		{V: 1, Kind: trainer.KindEvaluation, T: at, Evaluation: e},
		points(at, step, map[string]float64{
			"eval/success": rate, "eval/success_greedy": rate + .03, "eval/delivery": .9 + .08*rate, "eval/cs_macro": rate + .2, "eval/hard_macro": rate + .1,
			"eval/success_easy": rate + .1, "eval/success_medium": rate, "eval/success_hard": max(0, rate-.1), "eval/tokens": 90, "eval/tool_calls": 6,
		}),
	}
}

// fillStudies makes the store that the page tests and pictures show: one study
// in progress, one finished with a failure, one archived.
func fillStudies(t testing.TB, s *store.Store, now time.Time) (going, crossed ablation.StudyRecord) {
	t.Helper()
	crossed, runs := launchStudy(t, s, crossedStudy(1, 2, 3))
	for i, r := range runs {
		c := curve{steps: int64(r.Arm.Recipe.Budget.Steps), started: now.Add(-26*time.Hour + time.Duration(i)*3*time.Minute), end: ablation.EvSucceeded, device: fmt.Sprintf("cpu%d", i%2)}
		if i == 13 {
			c.steps, c.end, c.cause = 41, ablation.EvFailed, "killed by the kernel: out of memory (exit 137)"
		}
		drive(t, s, r, c)
	}
	going, runs = launchStudy(t, s, rewardsStudy())
	for i, r := range runs {
		c := curve{device: fmt.Sprintf("cpu%d", i%2)}
		switch {
		case i < 3:
			c.steps, c.started, c.end = int64(r.Arm.Recipe.Budget.Steps), now.Add(-19*time.Minute), ablation.EvSucceeded
		case i < 5:
			c.steps = 2*int64(r.Arm.Recipe.Budget.Steps)/3 - 20*int64(i-3)
			c.started = now.Add(-rlStart - time.Duration(c.steps)*1200*time.Millisecond)
		default:
			continue
		}
		if i == 2 {
			c.nanAt = 48
		}
		drive(t, s, r, c)
	}
	return going, crossed
}
