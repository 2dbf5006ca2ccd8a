package runner_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"alidade/ablation"
	"alidade/runner"
	"alidade/runner/shim"
	"alidade/trainer"
)

// A lost peer is nobody's fault here: a new attempt goes on from the last
// checkpoint by itself, and both attempts can be seen.
func TestRetryByCause(t *testing.T) {
	t.Parallel()
	g := newRig(t, "", rigOptions{timing: runner.Timing{Retry: 50 * time.Millisecond}})
	id := g.launch(20, 1, "nccl", time.Millisecond)[0].ID
	g.waitThrough(id, ablation.Succeeded)
	first, second := g.attempt(id, 1), g.attempt(id, 2)
	if first.Code != "nccl" || !strings.Contains(first.Evidence, "ncclRemoteError") || first.State != ablation.Failed || !strings.Contains(first.Cause, "tried again") {
		t.Errorf("first attempt = %+v", first)
	}
	if second.FirstStep != 5 || second.State != ablation.Succeeded {
		t.Errorf("second attempt = %+v, want it to go on from step 5", second)
	}
	if points := g.series(id, "reward/mean"); len(points) != 20 {
		t.Errorf("%d points, want each of 20 steps once", len(points))
	}
	if _, ok := g.alerts(id)["retry"]; !ok {
		t.Errorf("alerts = %v, want one that says it is tried again", g.alerts(id))
	}
}

// waitThrough is wait for a run that fails on its way.
func (g *rig) waitThrough(id ablation.RunID, want ablation.State) {
	g.t.Helper()
	until(g.t, "run "+strconv.Itoa(int(id))+" "+string(want), func() bool { return g.run(id).State == want })
}

func TestPausedRunSavesAndWaits(t *testing.T) {
	t.Parallel()
	g := newRig(t, "", rigOptions{})
	id := g.launch(60, 1, "ok", 20*time.Millisecond)[0].ID
	g.waitStep(id, 7)
	if err := g.runner.PauseRun(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	g.waitThrough(id, ablation.Queued)
	run := g.run(id)
	if run.Hold == "" || run.Attempt != 1 || g.attempt(id, 1).State != ablation.Stopped {
		t.Errorf("paused run = %+v, attempt %+v", run, g.attempt(id, 1))
	}
	until(t, "reason", func() bool { return g.runner.Status().Waiting[id] == run.Hold })
	if err := g.runner.ResumeRun(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	g.waitThrough(id, ablation.Succeeded)
	if a := g.attempt(id, 2); a.FirstStep < 7 {
		t.Errorf("attempt 2 begins at %d, want the checkpoint of the pause", a.FirstStep)
	}
	if points := g.series(id, "reward/mean"); len(points) != 60 {
		t.Errorf("%d points, want 60", len(points))
	}
}

// A run whose environment is down is ended, with the reason.
func TestSickRunIsEnded(t *testing.T) {
	t.Parallel()
	g := newRig(t, "", rigOptions{})
	id := g.launch(100_000, 1, "broken", 2*time.Millisecond)[0].ID
	run := g.wait(id, ablation.Stopped)
	if !strings.Contains(run.Cause, "stopped by Alidade") || !strings.Contains(run.Cause, "environment is broken") {
		t.Errorf("cause = %q", run.Cause)
	}
	if a := g.alerts(id)["tool-failures-high"]; a.Since != 1 || a.Step != 10 {
		t.Errorf("alert = %+v, want it linked to steps 1 to 10", a)
	}
}

// The shim is killed and its trainer leaves children, one of them escaped from
// its group: none is left when the devices are given on.
func TestNothingIsLeftWithoutAShim(t *testing.T) {
	t.Parallel()
	g := newRig(t, "", rigOptions{timing: runner.Timing{Lost: 300 * time.Millisecond, Sweep: 3 * time.Second}})
	id := g.launch(60, 1, "children", 10*time.Millisecond)[0].ID
	g.waitStep(id, 2)
	h, err := shim.ReadHandle(g.file(id, 1, ""))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(h.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	g.wait(id, ablation.Succeeded)
	until(t, "slots", func() bool { return g.freeSlots() == 4 })
	text, err := os.ReadFile(g.file(id, 1, shim.StdoutFile))
	if err != nil {
		t.Fatal(err)
	}
	children := 0
	for line := range strings.Lines(string(text)) {
		if word, ok := strings.CutPrefix(strings.TrimSpace(line), "child "); ok {
			children++
			pid, _ := strconv.Atoi(word)
			if _, alive := shim.StartTicks(pid); alive {
				t.Errorf("process %d is left", pid)
			}
		}
	}
	if children != 2 {
		t.Errorf("%d children, want 2", children)
	}
}

// Two instant crashes under one server and one under the next pause the study.
func TestCrashCountOutlivesTheServer(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	g := newRig(t, data, rigOptions{slots: 1})
	st := study(t, "loop", 5, 6, "fake", "crash", "0", "{spec}")
	runs := g.launchStudy(st)
	g.wait(runs[1].ID, ablation.Failed)
	if err := g.runner.PauseStudy(t.Context(), runs[0].Study); err != nil {
		t.Fatal(err)
	}
	until(t, "quiet", func() bool { return g.freeSlots() == 1 })
	failed := 0
	for _, run := range runs {
		if g.run(run.ID).State == ablation.Failed {
			failed++
		}
	}
	g.stop()
	if failed > 2 {
		t.Skip("the pause came too late to tell")
	}
	g = newRig(t, data, rigOptions{slots: 1})
	if err := g.store.SetStudyPaused(t.Context(), runs[0].Study, false); err != nil { // not a person's resume, which forgives
		t.Fatal(err)
	}
	g.runner.Wake()
	g.wait(runs[2].ID, ablation.Failed)
	until(t, "paused study", func() bool {
		rec, err := g.store.Study(t.Context(), runs[0].Study)
		return err == nil && rec.Paused
	})
	if got := g.run(runs[5].ID).State; got != ablation.Queued {
		t.Errorf("the last run is %s, want queued", got)
	}
}

// After any mix of failures the design is completed exactly.
func TestCompleteDesign(t *testing.T) {
	t.Parallel()
	g := newRig(t, "", rigOptions{slots: 2})
	st := study(t, "mix", 10_000, 6, "fake", "ok", "5", "{spec}")
	st.Factors = []ablation.Factor{{Key: "algorithm.group_size", Levels: []any{4, 8}}}
	runs := g.launchStudy(st)
	if err := g.runner.PauseStudy(t.Context(), runs[0].Study); err != nil {
		t.Fatal(err)
	}
	g.waitStep(runs[0].ID, 1)
	g.waitStep(runs[1].ID, 1)
	for _, i := range []int{1, 3, 4} { // a live one and two queued
		if err := g.runner.Stop(t.Context(), runs[i].ID); err != nil {
			t.Fatal(err)
		}
	}
	g.wait(runs[1].ID, ablation.Stopped)
	done, err := g.runner.Complete(t.Context(), runs[0].Study)
	if err != nil {
		t.Fatal(err)
	}
	want := []ablation.RunID{runs[1].ID, runs[3].ID, runs[4].ID}
	if !slices.Equal(done.Again, want) || len(done.Added) != 0 || len(done.Skipped) != 0 {
		t.Errorf("Complete = %+v, want %v again", done, want)
	}
	again, err := g.runner.Complete(t.Context(), runs[0].Study)
	if err != nil || len(again.Again)+len(again.Added) != 0 {
		t.Errorf("the second time: %+v, %v; want nothing", again, err)
	}
	added, err := g.runner.AddSeeds(t.Context(), runs[0].Study, []uint64{77})
	if err != nil || len(added) != 2 {
		t.Errorf("AddSeeds = %v, %v; want one run for each of two arms", added, err)
	}
	if _, err := g.runner.AddSeeds(t.Context(), runs[0].Study, []uint64{78, 77}); !errors.Is(err, ablation.ErrConflict) {
		t.Errorf("AddSeeds of a known seed = %v, want ErrConflict", err)
	}
	items, err := g.runner.Queue(t.Context())
	if err != nil || len(items) != 13 {
		t.Errorf("%d queued, %v; want 13", len(items), err)
	}
}

// An hour of events of eight runs of a time without a server is read at once; what the
// detectors find in it is marked late and sent nowhere.
func TestCatchUp(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	g := newRig(t, data, rigOptions{slots: 8})
	runs := g.launch(3608, 8, "hang", time.Millisecond)
	for _, run := range runs {
		g.waitStep(run.ID, 8)
	}
	g.stop()
	var text bytes.Buffer
	began := time.Now().Add(-time.Hour)
	for step := int64(9); step <= 3608; step++ {
		values := map[string]trainer.Float{"reward/mean": trainer.Float(step)}
		for i := range 3 {
			values["check/"+strconv.Itoa(i)] = trainer.Float(step)
		}
		if step > 1000 && step <= 1020 {
			values["reward/mean"] = 7
		}
		line, err := trainer.Encode(trainer.Event{V: trainer.Version, Kind: trainer.KindPoints, T: began.Add(time.Duration(step) * time.Second).UnixMilli(), Points: &trainer.Points{Step: step, Values: values}})
		if err != nil {
			t.Fatal(err)
		}
		text.Write(line)
	}
	for _, run := range runs {
		f, err := os.OpenFile(filepath.Join(data, "runs", strconv.Itoa(int(run.ID)), "1", "events.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(text.Bytes()); err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
	}
	started := time.Now()
	g = newRig(t, data, rigOptions{slots: 8})
	for _, run := range runs {
		g.waitStep(run.ID, 3608)
	}
	took := time.Since(started)
	t.Logf("an hour of events of eight runs, 4 metrics each second, in %s: %.0f times real time", took.Round(time.Millisecond), time.Hour.Seconds()/took.Seconds())
	if took > time.Hour/20 {
		t.Errorf("caught up in %s, want at least 20 times real time", took)
	}
	for _, run := range runs {
		if points := g.series(run.ID, "check/0"); len(points) != 3600 {
			t.Errorf("run %d: %d points, want 3600", run.ID, len(points))
		}
	}
	id := runs[0].ID
	until(t, "late alert", func() bool { _, ok := g.alerts(id)["reward-constant"]; return ok })
	if a := g.alerts(id)["reward-constant"]; !a.Late || a.Step != 1010 || a.Since != 1001 || !strings.Contains(a.Text, "late") {
		t.Errorf("alert = %+v, want it late and about steps 1001 to 1010", a)
	}
}
