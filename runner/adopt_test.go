package runner_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"alidade/ablation"
	"alidade/runner"
	"alidade/runner/shim"
	"alidade/trainer"
)

// The server ends without a word to its runs, and another takes them over.
func TestAdoption(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	g := newRig(t, data, rigOptions{})
	long := g.launch(400, 2, "ok", 20*time.Millisecond) // alive long enough for a slow machine to look
	brief := g.launch(6, 1, "7", 20*time.Millisecond)[0]
	for _, run := range long {
		g.waitStep(run.ID, 3)
	}
	g.waitStep(brief.ID, 1)
	g.stop()
	until(t, "the brief run's end", func() bool { _, err := shim.ReadExit(dirOf(g, brief.ID)); return err == nil })

	g = newRig(t, data, rigOptions{})
	if run := g.wait(brief.ID, ablation.Failed); run.Step != 6 || !strings.Contains(run.Cause, "exit code 7") {
		t.Errorf("run that ended meanwhile: %+v, want its exit code", run)
	}
	until(t, "two of four slots free after adoption", func() bool { return g.freeSlots() == 2 })
	for _, run := range long {
		got := g.wait(run.ID, ablation.Succeeded)
		if points := g.series(run.ID, "reward/mean"); len(points) != 400 || got.Attempt != 1 {
			t.Errorf("adopted run has %d points in attempt %d, want 400 in 1", len(points), got.Attempt)
		}
	}
}

func dirOf(g *rig, id ablation.RunID) string { return g.file(id, 1, "") }

// A server that ends in the middle of launches fails no run.
func TestShutdownWhileLaunching(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	g := newRig(t, data, rigOptions{})
	runs := g.launch(10, 12, "ok", 2*time.Millisecond)
	for i := range 8 {
		time.Sleep(time.Duration(5*i) * time.Millisecond) // a different moment each time
		g.stop()
		g = newRig(t, data, rigOptions{})
	}
	for _, run := range runs {
		g.wait(run.ID, ablation.Succeeded)
		if points := g.series(run.ID, "reward/mean"); len(points) != 10 {
			t.Errorf("run %d has %d points, want 10", run.ID, len(points))
		}
	}
}

// The attempt's folder is removed under a live trainer.
func TestSourceMissing(t *testing.T) {
	t.Parallel()
	g := newRig(t, "", rigOptions{timing: runner.Timing{Lost: 100 * time.Millisecond, Term: 300 * time.Millisecond}})
	id := g.launch(8, 1, "hang", time.Millisecond)[0].ID
	g.waitStep(id, 8)
	until(t, "the folder to go", func() bool { return os.RemoveAll(dirOf(g, id)) == nil }) // someone may write into it meanwhile
	until(t, "alert", func() bool { _, ok := g.alerts(id)["source-missing"]; return ok })
	if got := g.run(id).State; got != ablation.Running {
		t.Errorf("the run is %s, want running: its trainer lives", got)
	}
	if points := g.series(id, "reward/mean"); len(points) != 8 {
		t.Errorf("%d points, want the 8 stored ones", len(points))
	}
	if err := g.runner.Stop(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	g.wait(id, ablation.Stopped)
}

// A run that was claimed and never started is queued again, not lost.
func TestServerDiedBeforeTheTrainerStarted(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	g := newRig(t, data, rigOptions{minFree: 1 << 60}) // so that nothing is started
	id := g.launch(3, 1, "ok", 0)[0].ID
	w := g.store.RunWriter()
	if _, err := w.Move(t.Context(), id, ablation.EvLaunch, func(run *ablation.Run) { run.Attempt = 1; run.Device = "cpu0" }); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dirOf(g, id), 0o755); err != nil {
		t.Fatal(err)
	}
	g.stop()
	g = newRig(t, data, rigOptions{})
	if run := g.wait(id, ablation.Succeeded); run.Attempt != 2 {
		t.Errorf("run = %+v, want attempt 2", run)
	}
	if err := shim.Abandon(dirOf(g, id)); !errors.Is(err, shim.ErrClaimed) {
		t.Errorf("the first folder is not given up: %v", err)
	}
}

// A silence that was told is not told again by the next server, and its end is.
func TestSilenceIsToldOnce(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	timing := runner.Timing{FirstLine: 300 * time.Millisecond, Stall: 300 * time.Millisecond}
	g := newRig(t, data, rigOptions{timing: timing})
	silent := g.launch(5, 1, "silent", 0)[0].ID
	stalled := g.launch(10_000, 1, "ok", 10*time.Millisecond)[0].ID
	g.waitStep(stalled, 6)
	pid := g.attempt(stalled, 1).PID
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	until(t, "two alerts", func() bool {
		_, a := g.alerts(silent)["nothing-received"]
		_, b := g.alerts(stalled)["stalled"]
		return a && b
	})
	for range 2 {
		g.stop()
		g = newRig(t, data, rigOptions{timing: timing})
		time.Sleep(time.Second)
	}
	for _, id := range []ablation.RunID{silent, stalled} {
		all, err := g.store.Alerts(t.Context(), 0, id, 0)
		if err != nil || len(all) != 1 {
			t.Errorf("run %d has alerts %+v (%v), want one", id, all, err)
		}
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	until(t, "all clear", func() bool { _, ok := g.alerts(stalled)["writes-again"]; return ok })
}

// Without an exit record nobody knows how it ended: lost, and back when it
// writes again.
func TestLostAndBack(t *testing.T) {
	t.Parallel()
	g := newRig(t, "", rigOptions{timing: runner.Timing{Lost: 200 * time.Millisecond}})
	id := g.launch(8, 1, "hang", time.Millisecond)[0].ID
	g.waitStep(id, 8)
	var h shim.Handle
	text, err := os.ReadFile(g.file(id, 1, shim.HandleFile))
	if err != nil || json.Unmarshal(text, &h) != nil {
		t.Fatal(err)
	}
	for _, pid := range []int{h.PID, h.TrainerPID} {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	run := g.wait(id, ablation.Lost)
	if run.Cause == "" {
		t.Error("a lost run has no cause")
	}
	g.runner.Wake()
	time.Sleep(300 * time.Millisecond) // passes enough to start it, if it were queued
	if again := g.run(id); again.State != ablation.Lost || again.Attempt != 1 || g.freeSlots() != 4 {
		t.Errorf("with all slots free the lost run is %s in attempt %d: it must not be started by itself", again.State, again.Attempt)
	}
	w, err := trainer.NewWriter(g.file(id, 1, "events.jsonl"), trainer.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	began := time.Now()
	must(w.Points(9, map[string]float64{"reward/mean": 9}))
	g.wait(id, ablation.Running)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("back after %s, want within 5 s", took)
	}
	until(t, "the way it came back", func() bool { return strings.Contains(g.alerts(id)["recovered"].Text, "writes again") })
	must(w.Done(trainer.Done{OK: true, Step: 9, Reason: "finished"}))
	g.wait(id, ablation.Succeeded)
	if points := g.series(id, "reward/mean"); len(points) != 9 {
		t.Errorf("%d points, want 9", len(points))
	}
}
