package runner

import (
	"testing"
	"time"

	"alidade/ablation"
	"alidade/gpu"
	"alidade/store"
)

// A live run's end follows from its own pace, its start-up apart, and the
// first runs of a study tell how long the others will take.
func TestEstimatesFromTheFirstRuns(t *testing.T) {
	var e estimates
	start := time.Unix(1_000_000, 0)
	run := ablation.Run{ID: 1, Study: 1, Arm: ablation.Arm{Index: 2}, Attempt: 1, StartedAt: start, TotalSteps: 100}
	now := start
	for step, after := range []time.Duration{0, 60 * time.Second, 62 * time.Second, 64 * time.Second, 66 * time.Second} { // a minute until its first step, then two seconds each
		now = start.Add(after)
		run.Step = int64(step)
		e.follow(run, now)
	}
	if at, ok := e.end(1, now, 1); !ok || at.Sub(now) != 96*2*time.Second {
		t.Errorf("it ends in %s (%v), want 96 steps of 2 s", at.Sub(now), ok)
	}
	for _, tt := range []struct {
		what string
		q    store.QueuedRun
		want time.Duration
	}{
		{"the same arm", store.QueuedRun{Study: 1, Arm: 2}, 60*time.Second + 99*2*time.Second},
		{"the same study", store.QueuedRun{Study: 1, Arm: 7}, 60*time.Second + 99*2*time.Second},
		{"another study", store.QueuedRun{Study: 2, Arm: 2}, 0},
	} {
		if got := e.mean(&tt.q, now); got != tt.want {
			t.Errorf("a run of %s takes %s, want %s", tt.what, got, tt.want)
		}
	}
	again := run
	again.ID, again.Attempt, again.Step, again.Arm.Index = 3, 2, 40, 9 // resumed at step 40
	for i := range int64(4) {
		again.Step = 40 + i
		e.follow(again, now.Add(time.Duration(i)*time.Second))
	}
	if got := e.mean(&store.QueuedRun{Study: 1, Arm: 9}, now.Add(3*time.Second)); got != 100*time.Second {
		t.Errorf("by a resumed run a whole one takes %s, want 100 steps of 1 s", got)
	}
}

// Nobody is promised a start before one that waits in front of it for the same
// devices and whose own start cannot be told.
func TestNoStartBeforeTheUnknown(t *testing.T) {
	r := idle(t, 3, gpu.Config{Spec: "cpu:2"})
	if _, err := r.cfg.Devices.Acquire(999_999, gpu.Request{Kind: gpu.KindCPU, N: 1}); err != nil { // of unknown length
		t.Fatal(err)
	}
	items, err := r.Queue(t.Context())
	if err != nil || items[0].Start.IsZero() || !items[1].Start.IsZero() {
		t.Fatalf("queue = %+v, %v; want a start for the first alone", items, err)
	}
	key := armKey{1, 0}
	n := r.queue.needs[key]
	n.want.N = 2
	r.queue.needs[key] = n
	items, err = r.Queue(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range items {
		if !it.Start.IsZero() {
			t.Errorf("run %d starts at %s, though what it waits for is not known", it.ID, it.Start)
		}
	}
}
