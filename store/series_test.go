package store

import (
	"math"
	"testing"

	"alidade/ablation"
)

func TestSeriesKeepsNonFiniteValues(t *testing.T) {
	s := open(t, t.TempDir())
	run := create(t, s, 1)[0].ID
	start(t, s, run, 1, 0)
	f := &feeder{t: t, w: s.RunWriter(), run: run, attempt: 1}
	want := []float64{1, math.NaN(), math.Inf(1), math.Inf(-1), 5e-324, math.MaxFloat64}
	for i, v := range want {
		c := f.append(points(int64(i), map[string]float64{"x": v}))
		if len(c.Points) != 1 || !same(c.Points[0].Value, v) {
			t.Errorf("Append(%v).Points = %v", v, c.Points)
		}
	}
	check := func(when string) {
		t.Helper()
		got := series(t, s, run, "x")
		if len(got.Points) != len(want) || got.Total != len(want) {
			t.Fatalf("%s: %d points of %d, want %d", when, len(got.Points), got.Total, len(want))
		}
		for i, p := range got.Points {
			if p.Step != int64(i) || !same(p.Value, want[i]) || !p.Wall.Equal(clock(int64(i))) {
				t.Errorf("%s: point %d = %v, want value %v", when, i, p, want[i])
			}
		}
		last, err := s.Last(t.Context(), []ablation.RunID{run}, []string{"x", "none"})
		if err != nil || last[run]["x"].Step != 5 || last[run]["x"].Value != math.MaxFloat64 {
			t.Errorf("%s: Last = %v, %v", when, last, err)
		}
	}
	check("in the tail")
	if err := s.compactRun(t.Context(), run, true); err != nil {
		t.Fatal(err)
	}
	check("at rest")
	f.append(points(6, map[string]float64{"x": math.NaN()}))
	last, err := s.Last(t.Context(), []ablation.RunID{run}, []string{"x"})
	if err != nil || !math.IsNaN(last[run]["x"].Value) {
		t.Errorf("Last = %v, %v; want NaN", last, err)
	}
}

// steps are the steps of a series.
func steps(s ablation.Series) []int64 {
	out := []int64{}
	for _, p := range s.Points {
		out = append(out, p.Step)
	}
	return out
}

func TestSeriesMergesAttempts(t *testing.T) {
	s := open(t, t.TempDir())
	run := create(t, s, 1)[0].ID
	start(t, s, run, 1, 0)
	one := &feeder{t: t, w: s.RunWriter(), run: run, attempt: 1}
	for step := int64(0); step <= 55; step++ {
		one.append(points(step, map[string]float64{"x": 1, "only first": 1}))
	}
	one.append(points(50, map[string]float64{"eval": 1}))
	w := s.RunWriter()
	if _, err := w.Move(t.Context(), run, ablation.EvFailed, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Move(t.Context(), run, ablation.EvRequeue, nil); err != nil {
		t.Fatal(err)
	}
	start(t, s, run, 2, 40)
	r, err := s.Run(t.Context(), run)
	if err != nil || r.Step != 40 || r.Attempt != 2 {
		t.Errorf("after the resume: step %d, attempt %d, %v; want 40, 2", r.Step, r.Attempt, err)
	}
	two := &feeder{t: t, w: w, run: run, attempt: 2}
	for step := int64(40); step <= 100; step++ {
		two.append(points(step, map[string]float64{"x": 2}))
	}
	for _, rest := range []bool{false, true} {
		if rest {
			if err := s.compactRun(t.Context(), run, true); err != nil {
				t.Fatal(err)
			}
		}
		got := series(t, s, run, "x")
		if len(got.Points) != 101 || got.Total != 101 {
			t.Fatalf("at rest %v: %d points, want 101", rest, len(got.Points))
		}
		for i, p := range got.Points {
			want := 1.0
			if i >= 40 {
				want = 2
			}
			if p.Step != int64(i) || p.Value != want {
				t.Errorf("at rest %v: point %d = step %d value %v, want value %v", rest, i, p.Step, p.Value, want)
			}
		}
		if got := series(t, s, run, "only first"); len(got.Points) != 56 {
			t.Errorf("a metric of the first attempt alone has %d points, want 56", len(got.Points))
		}
		for attempt, want := range map[int]int{1: 56, 2: 61} {
			got, err := s.Series(t.Context(), SeriesQuery{Runs: []ablation.RunID{run}, Metrics: []string{"x"}, Attempt: attempt})
			if err != nil || len(got) != 1 || len(got[0].Points) != want {
				t.Errorf("attempt %d alone: %v, %v; want %d points", attempt, got, err, want)
			}
		}
		got2, err := s.Series(t.Context(), SeriesQuery{Runs: []ablation.RunID{run}, Metrics: []string{"x"}, From: 38, To: 41})
		if err != nil || len(got2) != 1 || len(got2[0].Points) != 4 || got2[0].Points[1].Value != 1 || got2[0].Points[2].Value != 2 {
			t.Errorf("steps 38 to 41: %v, %v", got2, err)
		}
	}
	if r, _ = s.Run(t.Context(), run); r.Step != 100 {
		t.Errorf("step = %d, want 100", r.Step)
	}
}

func TestSeriesOfAReplacedFileHasEachStepOnce(t *testing.T) {
	s := open(t, t.TempDir())
	run := create(t, s, 1)[0].ID
	start(t, s, run, 1, 0)
	f := &feeder{t: t, w: s.RunWriter(), run: run, attempt: 1}
	for step := int64(0); step < 10; step++ {
		f.append(points(step, map[string]float64{"x": 1}))
	}
	_, err := f.w.Append(t.Context(), Batch{Run: run, Attempt: 1, Offset: 50, Segment: true,
		Events: []trainerEvent{points(5, map[string]float64{"x": 2}), points(6, map[string]float64{"x": 2})}})
	if err != nil {
		t.Fatal(err)
	}
	got := series(t, s, run, "x")
	if want := []int64{0, 1, 2, 3, 4, 5, 6}; !equal(steps(got), want) || got.Points[5].Value != 2 {
		t.Errorf("steps %v, want %v", steps(got), want)
	}
}

func TestSeriesSortsStepsAndKeepsTheLastWritten(t *testing.T) {
	s := open(t, t.TempDir())
	run := create(t, s, 1)[0].ID
	start(t, s, run, 1, 0)
	f := &feeder{t: t, w: s.RunWriter(), run: run, attempt: 1}
	for i, step := range []int64{5, 3, 9, 3, 5, 0} {
		f.append(points(step, map[string]float64{"x": float64(i)}))
	}
	got := series(t, s, run, "x")
	if want := []int64{0, 3, 5, 9}; !equal(steps(got), want) {
		t.Fatalf("steps %v, want %v", steps(got), want)
	}
	for i, want := range []float64{5, 3, 4, 2} {
		if got.Points[i].Value != want {
			t.Errorf("step %d = %v, want %v", got.Points[i].Step, got.Points[i].Value, want)
		}
	}
}

func TestSeriesOfManyPointsIsThinnedByBriefs(t *testing.T) {
	s := open(t, t.TempDir())
	run := create(t, s, 1)[0].ID
	start(t, s, run, 1, 0)
	f := &feeder{t: t, w: s.RunWriter(), run: run, attempt: 1}
	const n, spike, hole = 60_000, 41_234, 17_017
	var events []trainerEvent
	for step := int64(0); step < n; step++ {
		v := math.Sin(float64(step) / 500)
		switch step {
		case spike:
			v = 99
		case hole:
			v = math.NaN()
		}
		events = append(events, points(step, map[string]float64{"x": v, "y": v}))
		if len(events) == 3000 {
			f.append(events...)
			events = nil
		}
	}
	if err := s.compactRun(t.Context(), run, false); err != nil {
		t.Fatal(err)
	}
	for _, most := range []int{20, 200, 5000, 0} {
		got, err := s.Series(t.Context(), SeriesQuery{Runs: []ablation.RunID{run}, Metrics: []string{"x"}, MaxPoints: most})
		if err != nil || len(got) != 1 {
			t.Fatalf("MaxPoints %d: %v, %v", most, got, err)
		}
		g := got[0]
		sawSpike, sawHole := false, false
		for i, p := range g.Points {
			sawSpike = sawSpike || p.Step == spike && p.Value == 99
			sawHole = sawHole || math.IsNaN(p.Value)
			if i > 0 && p.Step <= g.Points[i-1].Step {
				t.Fatalf("MaxPoints %d: step %d after %d", most, p.Step, g.Points[i-1].Step)
			}
		}
		if g.Total != n || !sawSpike || !sawHole || most > 0 && len(g.Points) > most || g.Thinned != (most > 0) {
			t.Errorf("MaxPoints %d: %d points of %d, spike %v, NaN %v, thinned %v", most, len(g.Points), g.Total, sawSpike, sawHole, g.Thinned)
		}
		if g.Points[0].Step != 0 || g.Points[len(g.Points)-1].Step != n-1 {
			t.Errorf("MaxPoints %d: from step %d to %d", most, g.Points[0].Step, g.Points[len(g.Points)-1].Step)
		}
	}
}
