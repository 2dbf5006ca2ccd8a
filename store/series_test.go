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
