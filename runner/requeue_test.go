package runner_test

import (
	"testing"
	"time"

	"alidade/ablation"
)

// A run that was not queued when the server started is queued later: it is
// started like any other, with or without newer runs beside it.
func TestQueuedAfterAdoption(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	g := newRig(t, data, rigOptions{})
	id := g.launch(1_000_000, 1, "ok", 20*time.Millisecond)[0].ID
	g.waitStep(id, 3)
	g.stop()
	g = newRig(t, data, rigOptions{})
	until(t, "the adoption", func() bool { return g.freeSlots() == 3 })
	for attempt := 2; attempt <= 3; attempt++ {
		if err := g.runner.Stop(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		g.wait(id, ablation.Stopped)
		if err := g.runner.Resume(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if run := g.wait(id, ablation.Running); run.Attempt != attempt {
			t.Errorf("attempt %d, want %d", run.Attempt, attempt)
		}
		newer := g.launch(3, 1, "ok", time.Millisecond)[0].ID
		g.wait(newer, ablation.Succeeded)
	}
}
