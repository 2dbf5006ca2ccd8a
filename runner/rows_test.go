package runner_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"alidade/ablation"
	"alidade/runner/shim"
	"alidade/store"
	"alidade/trainer"
)

// A trainer is killed in the middle of a line: what is there of it is neither
// a point nor a fault, while the trainer lives and afterwards, and the next
// attempt goes on from the checkpoint.
func TestTrainerKilledMidLine(t *testing.T) {
	t.Parallel()
	g := newRig(t, "", rigOptions{})
	id := g.launch(12, 1, "torn", time.Millisecond)[0].ID
	g.waitStep(id, 8)
	time.Sleep(300 * time.Millisecond) // looked at many times since
	check := func(when string) {
		t.Helper()
		counts, err := g.store.Counts(t.Context(), id)
		if err != nil || counts.Malformed != 0 {
			t.Errorf("%s: %+v, %v; want no malformed line", when, counts, err)
		}
		if points := g.series(id, "reward/mean"); len(points) != 8 {
			t.Errorf("%s: %d points, want 8", when, len(points))
		}
		if alerts := g.alerts(id); when != "after it was killed" && len(alerts) > 0 {
			t.Errorf("%s: alerts %v", when, alerts)
		}
	}
	check("while the line grows")
	if text, err := os.ReadFile(g.file(id, 1, "events.jsonl")); err != nil || strings.HasSuffix(string(text), "\n") {
		t.Fatalf("the last line is complete (%v): nothing was tested", err)
	}
	if err := syscall.Kill(g.attempt(id, 1).PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	g.wait(id, ablation.Failed)
	check("after it was killed")
	if err := g.runner.Resume(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	g.waitThrough(id, ablation.Succeeded)
	if points := g.series(id, "reward/mean"); len(points) != 12 {
		t.Errorf("%d points after the second attempt, want 12", len(points))
	}
}

// A trainer that a signal ended while no server was there: code, signal and
// end are the shim's, to the millisecond.
func TestSignalWhileServerIsDead(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	g := newRig(t, data, rigOptions{})
	id := g.launch(10_000, 1, "ok", 5*time.Millisecond)[0].ID
	g.waitStep(id, 3)
	pid := g.attempt(id, 1).PID
	g.stop()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	var exit shim.Exit
	until(t, "the exit record", func() bool {
		var err error
		exit, err = shim.ReadExit(dirOf(g, id))
		return err == nil
	})
	time.Sleep(50 * time.Millisecond)
	g = newRig(t, data, rigOptions{})
	run := g.wait(id, ablation.Failed)
	a := g.attempt(id, 1)
	if a.Signal != "killed" || a.ExitCode == nil || *a.ExitCode != -1 || !a.EndedAt.Equal(exit.Ended.Truncate(time.Millisecond)) || !run.EndedAt.Equal(a.EndedAt) {
		t.Errorf("attempt = %+v, run ended %s; want what the shim recorded: %+v", a, run.EndedAt, exit)
	}
	if exit.LastedS <= 0 || (time.Duration(exit.LastedS*float64(time.Second))-exit.Ended.Sub(exit.Started)).Abs() > time.Second {
		t.Errorf("it lasted %g s by the steady clock, %s by the other", exit.LastedS, exit.Ended.Sub(exit.Started))
	}
}

// A trainer whose clock is a day off: its steps are in their order, the
// difference is told once, and nothing raises an alarm for it.
func TestTrainersClockIsOff(t *testing.T) {
	t.Parallel()
	g := newRig(t, "", rigOptions{})
	for _, tt := range []struct {
		off   time.Duration
		words string
	}{{24 * time.Hour, "ahead"}, {-24 * time.Hour, "behind"}} {
		id := g.launch(20, 1, "hang", time.Millisecond)[0].ID
		g.waitStep(id, 8)
		f, err := os.OpenFile(g.file(id, 1, "events.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		for step := int64(9); step <= 19; step++ {
			at := time.Now().Add(tt.off - time.Duration(step)*time.Minute) // and it runs backwards
			line, err := trainer.Encode(trainer.Event{V: trainer.Version, Kind: trainer.KindPoints, T: at.UnixMilli(),
				Points: &trainer.Points{Step: step, Values: map[string]trainer.Float{"reward/mean": trainer.Float(step)}}})
			if err == nil {
				_, err = f.Write(line)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		g.waitStep(id, 19)
		for i, p := range g.series(id, "reward/mean") {
			if p.Step != int64(i+1) || p.Value != float64(i+1) {
				t.Errorf("point %d is %g at step %d", i, p.Value, p.Step)
			}
		}
		until(t, "the word about the clock", func() bool { _, ok := g.alerts(id)["clock-skew"]; return ok })
		alerts := g.alerts(id)
		if len(alerts) != 1 || !strings.Contains(alerts["clock-skew"].Text, tt.words) {
			t.Errorf("alerts = %+v, want one that says %q", alerts, tt.words)
		}
		if err := g.runner.Stop(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
}

// A stop of live and waiting runs that is taken back at once: they go on, the
// live one from the checkpoint of the stop, and the one that had failed before
// stays failed.
func TestTakeBackOfAStopUnderWay(t *testing.T) {
	t.Parallel()
	g := newRig(t, "", rigOptions{slots: 1})
	st := study(t, "undone", 300, 3, "fake", "ok", "10", "{spec}")
	runs := g.launchStudy(st)
	g.waitStep(runs[0].ID, 2)
	if err := syscall.Kill(g.attempt(runs[0].ID, 1).PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	g.wait(runs[0].ID, ablation.Failed)
	g.waitStep(runs[1].ID, 7)
	if err := g.runner.StopStudy(t.Context(), runs[0].Study); err != nil {
		t.Fatal(err)
	}
	if err := g.runner.TakeBack(t.Context(), runs[0].Study, "stop"); err != nil {
		t.Fatal(err)
	}
	for _, run := range runs[1:] {
		g.waitThrough(run.ID, ablation.Succeeded)
	}
	if a := g.attempt(runs[1].ID, 2); a.FirstStep < 7 {
		t.Errorf("the run that lived goes on from step %d, want the checkpoint of the stop", a.FirstStep)
	}
	if run := g.run(runs[0].ID); run.State != ablation.Failed || run.Attempt != 1 {
		t.Errorf("the failed run is %s in attempt %d", run.State, run.Attempt)
	}
	if run := g.run(runs[1].ID); run.Hold != "" {
		t.Errorf("its hold %q is left", run.Hold)
	}
}

// Whatever states the runs of a design are in, completing it queues exactly
// the cells that lack a result, each once, and a second time nothing.
func TestCompleteAnyMix(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 5 {
		g := still(t)
		st := study(t, "mix", 5, 6, "fake", "ok", "0", "{spec}")
		st.Factors = []ablation.Factor{{Key: "algorithm.group_size", Levels: []any{4, 8, 16}}}
		all, err := ablation.Expand(st)
		if err != nil {
			t.Fatal(err)
		}
		missing := rng.Perm(len(all))[:4] // cells that were never queued
		var planned []ablation.Planned
		for i, p := range all {
			if !slices.Contains(missing, i) {
				planned = append(planned, p)
			}
		}
		rec, runs, err := g.store.CreateStudy(t.Context(), st, "", planned)
		if err != nil {
			t.Fatal(err)
		}
		var want []ablation.RunID
		for _, run := range runs {
			if end := []ablation.Event{"", ablation.EvFailed, ablation.EvSucceeded, ablation.EvLost, ablation.EvStop}[rng.IntN(5)]; end != "" {
				events := []ablation.Event{ablation.EvLaunch, ablation.EvStarted, end}
				if end == ablation.EvStop {
					events = []ablation.Event{end} // of a queued one
				}
				for _, ev := range events {
					if _, err := g.store.RunWriter().Move(t.Context(), run.ID, ev, nil); err != nil {
						t.Fatal(err)
					}
				}
				if end != ablation.EvSucceeded {
					want = append(want, run.ID)
				}
			}
		}
		done, err := g.runner.Complete(t.Context(), rec.ID)
		if err != nil || len(done.Added) != len(missing) || !slices.Equal(done.Again, want) || len(done.Skipped) != 0 {
			t.Errorf("Complete = %+v, %v; want %v again and %d added", done, err, want, len(missing))
		}
		type cell struct {
			arm  int
			seed uint64
		}
		cells := make(map[cell]int)
		after, err := g.store.Runs(t.Context(), store.RunFilter{Study: rec.ID})
		if err != nil {
			t.Fatal(err)
		}
		for _, run := range after {
			cells[cell{run.Arm.Index, run.Seed}]++
			if run.State != ablation.Queued && run.State != ablation.Succeeded {
				t.Errorf("run %d is %s after completing", run.ID, run.State)
			}
		}
		if len(after) != len(all) || len(cells) != len(all) {
			t.Errorf("%d runs in %d cells, want one in each of %d", len(after), len(cells), len(all))
		}
		again, err := g.runner.Complete(t.Context(), rec.ID)
		if err != nil || len(again.Added)+len(again.Again) != 0 {
			t.Errorf("the second time: %+v, %v", again, err)
		}
	}
}

// still is a rig whose runner starts nothing: it does not run.
func still(t *testing.T) *rig {
	t.Helper()
	g, err := openRig(t.TempDir(), rigOptions{slots: 1})
	if err != nil {
		t.Fatal(err)
	}
	g.t = t
	t.Cleanup(func() { _ = g.store.Close() })
	return g
}
