package store

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"alidade/ablation"
	"alidade/trainer"
)

// open opens a store that is closed with the test.
func open(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(dir, Options{CommitEvery: time.Millisecond})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// study is a small study: two rewards, seeds 1 to n.
func study(t testing.TB, name string, seeds int) (ablation.Study, []ablation.Planned) {
	t.Helper()
	presets := ablation.Presets()
	if len(presets) == 0 {
		t.Fatal("no presets")
	}
	st := ablation.Study{
		Name: name, Question: "Which reward?", Base: presets[0].Recipe, Design: ablation.DesignGrid, Metric: "eval/success",
		Factors: []ablation.Factor{{Key: "reward.kind", Name: "reward", Levels: []any{"SUM", "SUCCESS"}}},
	}
	for i := range seeds {
		st.Seeds = append(st.Seeds, uint64(i+1))
	}
	planned, err := ablation.Expand(st)
	if err != nil {
		t.Fatalf("Expand: %v", err)
	}
	return st, planned
}

// create stores such a study.
func create(t testing.TB, s *Store, seeds int) []ablation.Run {
	t.Helper()
	st, planned := study(t, "rewards", seeds)
	_, runs, err := s.CreateStudy(t.Context(), st, "name: rewards\n", planned)
	if err != nil {
		t.Fatalf("CreateStudy: %v", err)
	}
	return runs
}

// start begins an attempt of a queued run.
func start(t testing.TB, s *Store, run ablation.RunID, number int, first int64) {
	t.Helper()
	w := s.RunWriter()
	_, err := w.Move(t.Context(), run, ablation.EvLaunch, func(r *ablation.Run) { r.Attempt, r.Device, r.StartedAt = number, "cpu0", clock(1) })
	if err != nil {
		t.Fatalf("Move: %v", err)
	}
	if err := w.StartAttempt(t.Context(), ablation.Attempt{Run: run, Number: number, Device: "cpu0", PID: 42, FirstStep: first, StartedAt: clock(1)}); err != nil {
		t.Fatalf("StartAttempt: %v", err)
	}
	if _, err := w.Move(t.Context(), run, ablation.EvStarted, nil); err != nil {
		t.Fatalf("Move: %v", err)
	}
}

// clock is a time some seconds after a fixed one.
func clock(seconds int64) time.Time { return time.Unix(1_790_000_000+seconds, 0).UTC() }

func at(step int64) int64 { return clock(step).UnixMilli() }

// points is a points event.
func points(step int64, values map[string]float64) trainer.Event {
	p := &trainer.Points{Step: step, Values: map[string]trainer.Float{}}
	for k, v := range values {
		p.Values[k] = trainer.Float(v)
	}
	return trainer.Event{V: trainer.Version, Kind: trainer.KindPoints, T: at(step), Points: p}
}

// feeder appends batches with rising offsets.
type feeder struct {
	t       testing.TB
	w       *RunWriter
	run     ablation.RunID
	attempt int
	offset  int64
}

func (f *feeder) append(events ...trainer.Event) Commit {
	f.t.Helper()
	f.offset += 100
	c, err := f.w.Append(f.t.Context(), Batch{Run: f.run, Attempt: f.attempt, Offset: f.offset, Events: events})
	if err != nil {
		f.t.Fatalf("Append: %v", err)
	}
	return c
}

// trajectory is a trajectory event.
func trajectory(step int64, rollout int, change func(*trainer.Trajectory)) trainer.Event {
	t := &trainer.Trajectory{
		ID: fmt.Sprintf("rl-%d-0-%d", step, rollout), Phase: "rl", Policy: "policy", Step: step, Group: fmt.Sprintf("rl-%d-0", step),
		Rollout: rollout, Mode: "sampled", Query: trainer.Query{Hash: "0123456789abcdef", Text: "A 3-day trip from Reno to Bend for 2 people", Level: "easy"},
		Turns: []trainer.Turn{
			{Call: &trainer.Call{Tool: "SearchFlight", Args: []trainer.Arg{{Name: "origin", Value: "Reno"}}}, Observe: &trainer.Observed{Text: "F123"}, Tokens: 4},
			{Tokens: 9},
		},
		Answer: "Stay at Pine Lodge", Reward: 0.5, RewardKind: "SUM", End: "answer", Tokens: 120, Generated: 13, ToolCalls: 1,
		Advantage: &trainer.Advantage{Value: -0.25, Norm: "group-std"},
		Verdicts: []trainer.Verdict{
			{Check: "valid_cost", Outcome: "pass"},
			{Check: "is_valid_restaurants", Outcome: "fail", Reason: "Day 1 dinner repeats"},
			{Check: "valid_cuisine", Outcome: "closed"},
		},
	}
	if change != nil {
		change(t)
	}
	return trainer.Event{V: trainer.Version, Kind: trainer.KindTrajectory, T: at(step), Trajectory: t}
}

// series reads one merged series.
func series(t testing.TB, s *Store, run ablation.RunID, metric string) ablation.Series {
	t.Helper()
	got, err := s.Series(t.Context(), SeriesQuery{Runs: []ablation.RunID{run}, Metrics: []string{metric}})
	if err != nil {
		t.Fatalf("Series: %v", err)
	}
	if len(got) == 0 {
		return ablation.Series{}
	}
	return got[0]
}

// same reports whether two values are the same, NaN included.
func same(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }

type trainerEvent = trainer.Event

func equal[T comparable](a, b []T) bool { return slices.Equal(a, b) }
