package store

import (
	"errors"
	"slices"
	"testing"
	"time"

	"alidade/ablation"
	"alidade/trainer"
)

func TestQueueOrder(t *testing.T) {
	s := open(t, t.TempDir())
	st, planned := study(t, "order", 4)
	st.Priority = 1
	_, runs, err := s.CreateStudy(t.Context(), st, "", planned[:4])
	if err != nil {
		t.Fatal(err)
	}
	w := s.RunWriter()
	order := func() []ablation.RunID {
		t.Helper()
		queued, err := s.Queued(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		var ids []ablation.RunID
		for _, q := range queued {
			ids = append(ids, q.ID)
		}
		return ids
	}
	if got := order(); !slices.Equal(got, []ablation.RunID{1, 2, 3, 4}) || runs[0].Priority != 1 {
		t.Errorf("order = %v, priority %d; want by age, the study's priority", got, runs[0].Priority)
	}
	r, err := w.Order(t.Context(), 3, func(r *ablation.Run) {
		r.Priority, r.Place, r.Hold, r.ReadyAt, r.State = 7, 9, "paused", time.UnixMilli(5), ablation.Failed
	})
	if err != nil || r.Priority != 7 || r.Place != 9 || r.Hold != "paused" || r.State != ablation.Queued {
		t.Errorf("Order = %+v, %v; want priority and hold changed, the state not", r, err)
	}
	if got := order(); !slices.Equal(got, []ablation.RunID{3, 1, 2, 4}) {
		t.Errorf("order = %v, want run 3 first", got)
	}
	if _, err := w.Order(t.Context(), 99, func(*ablation.Run) {}); !errors.Is(err, ablation.ErrNotFound) {
		t.Errorf("Order of no run = %v, want ErrNotFound", err)
	}
}

// Notices, readings of devices and the queue's order are in the folders too.
func TestRebuildKeepsOrderNoticesAndReadings(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	st, planned := study(t, "keep", 2)
	if _, _, err := s.CreateStudy(t.Context(), st, "", planned[:2]); err != nil {
		t.Fatal(err)
	}
	w := s.RunWriter()
	if _, err := w.Order(t.Context(), 2, func(r *ablation.Run) { r.Priority, r.Place, r.Hold = 3, 17, "paused" }); err != nil {
		t.Fatal(err)
	}
	c, err := w.Notice(t.Context(), trainer.Alert{Level: "bad", Code: "disk-low", Text: "full"})
	if err != nil || len(c.Alerts) != 1 || c.Alerts[0].ID == 0 {
		t.Fatalf("Notice = %+v, %v", c, err)
	}
	start(t, s, 1, 1, 0)
	e := trainer.Event{V: trainer.Version, Kind: trainer.KindPoints, T: at(3), Points: &trainer.Points{Step: 2, Values: map[string]trainer.Float{"gpu/0/util": 0.5}}}
	if c, err = w.Append(t.Context(), Batch{Run: 1, Attempt: 1, Own: true, Events: []trainerEvent{e}}); err != nil || c.Run.Step != 0 {
		t.Fatalf("a reading of the runner's own: %+v, %v; want it stored, the run's step as it was", c.Run, err)
	}
	if err := appendLine(s.AttemptDir(1, 1)+"/device.jsonl", e); err != nil {
		t.Fatal(err)
	}
	want := dump(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Rebuild(t.Context(), dir, nil); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	got := dump(t, s)
	for _, table := range []string{"runs", "alerts", "points"} {
		if !slices.Equal(got[table], want[table]) || len(want[table]) == 0 {
			t.Errorf("%s after a rebuild: %v, want %v", table, got[table], want[table])
		}
	}
}
