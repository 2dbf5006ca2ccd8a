package runner_test

import (
	"strings"
	"testing"

	"alidade/ablation"
)

func TestHalving(t *testing.T) {
	t.Parallel()
	h := ablation.Halving{Metric: "m", Rungs: []int64{10}, Reduction: 3}
	for _, tt := range []struct {
		own    float64
		values []float64
		want   bool
	}{
		{0, []float64{0, 1}, true}, // too few to say
		{3, []float64{1, 2, 3}, true}, {2, []float64{1, 2, 3}, false},
		{5, []float64{1, 2, 3, 4, 5, 6}, true}, {4, []float64{1, 2, 3, 4, 5, 6}, false},
		{1, []float64{1, 1, 1}, true}, // nobody is better
	} {
		if got := h.Keeps(tt.own, tt.values); got != tt.want {
			t.Errorf("Keeps(%g, %v) = %v, want %v", tt.own, tt.values, got, tt.want)
		}
	}
}

// Runs of an arm that is worse are ended at the rung and count as censored;
// completing the design leaves them alone.
func TestHalvingEndsWeakRuns(t *testing.T) {
	t.Parallel()
	g := newRig(t, "", rigOptions{slots: 1})
	st := study(t, "halving", 200, 3, "fake", "seeded", "5", "{spec}")
	st.Halving = &ablation.Halving{Metric: "reward/seed", Rungs: []int64{20, 40}, Reduction: 2}
	runs := g.launchStudy(st) // later seeds are worse
	g.waitThrough(runs[2].ID, ablation.Stopped)
	for i, want := range []ablation.State{ablation.Succeeded, ablation.Stopped, ablation.Stopped} {
		run := g.run(runs[i].ID)
		if run.State != want || want == ablation.Stopped && (!strings.Contains(run.Cause, "censored at rung 20") || g.attempt(run.ID, 1).Code != "censored") {
			t.Errorf("run %d is %s (%s), want %s", run.ID, run.State, run.Cause, want)
		}
	}
	done, err := g.runner.Complete(t.Context(), runs[0].Study)
	if err != nil || len(done.Again) != 0 || len(done.Skipped) != 2 {
		t.Errorf("Complete = %+v, %v; want the two censored runs left alone", done, err)
	}
}
