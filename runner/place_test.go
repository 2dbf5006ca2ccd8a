package runner

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"alidade/ablation"
	"alidade/gpu"
	"alidade/store"
)

func orderOf(t *testing.T, r *Runner) []ablation.RunID {
	t.Helper()
	queued, err := r.queue.load(t.Context(), r.store)
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]ablation.RunID, len(queued))
	for i, q := range queued {
		ids[i] = q.ID
	}
	return ids
}

// Whatever priorities the runs have, a move changes two neighbours and nothing
// else, and the way back gives the order of before.
func TestMoveByOnePlace(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	r := idle(t, 12, gpu.Config{Spec: "cpu:1"}) // all queued in the same millisecond
	ctx := t.Context()
	for id := range 12 {
		if err := r.SetPriority(ctx, ablation.RunID(id+1), rng.IntN(3)); err != nil {
			t.Fatal(err)
		}
	}
	for range 60 {
		before := orderOf(t, r)
		at, by := rng.IntN(len(before)), 1-2*rng.IntN(2)
		want := slices.Clone(before)
		if to := at + by; to >= 0 && to < len(want) {
			want[at], want[to] = want[to], want[at]
		}
		for _, step := range []struct {
			by   int
			want []ablation.RunID
		}{{by, want}, {-by, before}, {by, want}} {
			if at+by < 0 || at+by >= len(before) {
				step.by, step.want = by, before // it stays at the end
			}
			if err := r.MoveBy(ctx, before[at], step.by); err != nil {
				t.Fatal(err)
			}
			if got := orderOf(t, r); !slices.Equal(got, step.want) {
				t.Fatalf("run %d moved by %d: %v, want %v (before: %v)", before[at], step.by, got, step.want, before)
			}
		}
	}
	queued, err := r.queue.load(ctx, r.store)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := r.store.Queued(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(queued) != fmt.Sprint(stored) {
		t.Error("the copy of the queue differs from the table after the moves")
	}
	if !slices.IsSortedFunc(queued, func(a, b store.QueuedRun) int { return b.Priority - a.Priority }) {
		t.Error("a run of lower priority stands before one of a higher")
	}
	if err := r.MoveBy(ctx, 99, 1); !errors.Is(err, ablation.ErrNotFound) {
		t.Errorf("MoveBy of no run = %v, want ErrNotFound", err)
	}
}

// Cancelled by mistake and taken back at once: the run is where it was.
func TestACancelTakenBackKeepsItsPlace(t *testing.T) {
	r := idle(t, 5, gpu.Config{Spec: "cpu:1"})
	ctx := t.Context()
	if err := r.MoveBy(ctx, 4, -2); err != nil {
		t.Fatal(err)
	}
	before := orderOf(t, r)
	for _, id := range []ablation.RunID{4, 1} {
		if err := errors.Join(r.Stop(ctx, id), r.Resume(ctx, id)); err != nil {
			t.Fatal(err)
		}
	}
	if got := orderOf(t, r); !slices.Equal(got, before) {
		t.Errorf("order %v, want %v", got, before)
	}
}

// Taking back a stop, or a completion, touches the runs that it changed and no
// others.
func TestTakeBack(t *testing.T) {
	r := idle(t, 6, gpu.Config{Spec: "cpu:1"})
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(r.Stop(ctx, 1))
	must(r.Stop(ctx, 2))
	must(r.StopStudy(ctx, 1))
	must(r.TakeBack(ctx, 1, "stop"))
	if got := orderOf(t, r); !slices.Equal(got, []ablation.RunID{3, 4, 5, 6}) {
		t.Errorf("taking back the stop queued %v, want 3 to 6: 1 and 2 were stopped before", got)
	}
	if err := r.TakeBack(ctx, 1, "stop"); !errors.Is(err, ablation.ErrConflict) || !strings.Contains(err.Error(), "nothing") && !strings.Contains(err.Error(), "no stop") {
		t.Errorf("taking back twice = %v, want ErrConflict", err)
	}
	if _, err := r.Complete(ctx, 1); err != nil {
		t.Fatal(err)
	}
	if n := len(orderOf(t, r)); n != 6 {
		t.Errorf("%d runs wait after completing, want 6", n)
	}
	must(r.TakeBack(ctx, 1, "complete"))
	got := orderOf(t, r)
	slices.Sort(got)
	if !slices.Equal(got, []ablation.RunID{3, 4, 5, 6}) {
		t.Errorf("taking back the completion left %v, want 3 to 6", got)
	}
}
