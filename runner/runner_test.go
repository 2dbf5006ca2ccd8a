package runner_test

import (
	"context"
	"errors"
	"os"
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

func TestHappyRuns(t *testing.T) {
	t.Parallel()
	g := newRig(t, "", rigOptions{slots: 2})
	runs := g.launch(20, 4, "ok", time.Millisecond)
	for _, run := range runs {
		got := g.wait(run.ID, ablation.Succeeded)
		if got.Step != 20 || got.Attempt != 1 || got.EndedAt.IsZero() || got.Cause != "" {
			t.Errorf("run = %+v", got)
		}
		a := g.attempt(run.ID, 1)
		if a.ExitCode == nil || *a.ExitCode != 0 || a.State != ablation.Succeeded || a.PID == 0 {
			t.Errorf("attempt = %+v, want exit code 0", a)
		}
		if points := g.series(run.ID, "reward/mean"); len(points) != 20 || points[19].Value != 20 {
			t.Errorf("run %d has %d points, want 20", run.ID, len(points))
		}
	}
	until(t, "all slots free", func() bool { return g.freeSlots() == 2 })
	if len(g.alerts(0)) != 0 {
		t.Errorf("alerts of happy runs: %v", g.alerts(0))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	points, states := 0, make(map[ablation.State]int)
	for _, c := range g.commits {
		points += len(c.Points)
		if len(c.Points) == 0 {
			states[c.Run.State]++
		}
	}
	if points != 4*20*3 || states[ablation.Succeeded] != 4 || states[ablation.Starting] != 4 {
		t.Errorf("published %d points and %v, want 240 points and each move", points, states)
	}
}

// What a trainer gets to see: an exact spec and an environment that was allowed.
func TestSpecAndEnvironment(t *testing.T) {
	t.Setenv("ALIDADE_TOKEN", "secret")
	g := newRig(t, "", rigOptions{})
	st := study(t, "env", 1, 1)
	st.Base.Trainer.Command = []string{"/bin/sh", "-c", `env >"$1/env"`, "sh", "{dir}"}
	st.Base.Trainer.Env = map[string]string{"FLAVOUR": "a b"}
	id := g.launchStudy(st)[0].ID
	run := g.wait(id, ablation.Failed)
	if !strings.Contains(run.Cause, "exit code 0") || !strings.Contains(run.Cause, "never said") {
		t.Errorf("cause = %q", run.Cause)
	}
	text, err := os.ReadFile(g.file(id, 1, "env"))
	if err != nil {
		t.Fatal(err)
	}
	env := strings.Split(string(text), "\n")
	for _, want := range []string{"FLAVOUR=a b", "ALIDADE_THREADS=1", "CUDA_VISIBLE_DEVICES=", "ALIDADE_SPEC=" + g.file(id, 1, "spec.json")} {
		if !slices.Contains(env, want) {
			t.Errorf("environment lacks %q: %q", want, env)
		}
	}
	if strings.Contains(string(text), "secret") {
		t.Error("the server's token is in the trainer's environment")
	}
	spec, err := trainer.ReadSpec(g.file(id, 1, "spec.json"))
	if err != nil || spec.Run != id || spec.Seed != 1 || len(spec.Devices) != 1 || spec.Threads != 1 || spec.Study != "env" {
		t.Errorf("spec = %+v, %v", spec, err)
	}
}

func TestKilledTrainerFailsAndResumesAsOneCurve(t *testing.T) {
	t.Parallel()
	g := newRig(t, "", rigOptions{})
	id := g.launch(40, 1, "ok", 10*time.Millisecond)[0].ID
	g.waitStep(id, 12)
	if err := syscall.Kill(g.attempt(id, 1).PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	run := g.wait(id, ablation.Failed)
	if !strings.Contains(run.Cause, "SIGKILL") {
		t.Errorf("cause = %q, want it to name SIGKILL", run.Cause)
	}
	if a := g.attempt(id, 1); a.Signal != "killed" || a.ExitCode == nil || *a.ExitCode != -1 {
		t.Errorf("attempt = %+v, want killed", a)
	}
	if _, ok := g.alerts(id)["signal"]; !ok {
		t.Errorf("alerts = %v, want one with code signal", g.alerts(id))
	}
	if err := g.runner.Resume(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	g.wait(id, ablation.Succeeded)
	second := g.attempt(id, 2)
	if second.FirstStep < 10 || second.FirstStep%5 != 0 {
		t.Errorf("attempt 2 begins at %d, want the last checkpoint", second.FirstStep)
	}
	points, attempts := g.series(id, "reward/mean"), g.series(id, "speed/attempt")
	if len(points) != 40 {
		t.Fatalf("%d points, want each of 40 steps once", len(points))
	}
	for i, p := range points {
		want := 1.0
		if p.Step > second.FirstStep {
			want = 2
		}
		if p.Step != int64(i+1) || attempts[i].Value != want {
			t.Errorf("point %d: step %d of attempt %g, want step %d of attempt %g", i, p.Step, attempts[i].Value, i+1, want)
		}
	}
	if err := g.runner.Resume(t.Context(), id); !errors.Is(err, ablation.ErrConflict) {
		t.Errorf("Resume of a succeeded run = %v, want ErrConflict", err)
	}
}

func TestEndings(t *testing.T) {
	t.Parallel()
	tests := []struct {
		mode  string
		cause string
		code  string
	}{
		{"crash", "ValueError: learning rate is negative (exit code 1)", "exception"},
		{"short", "it said that it was done at step 3 of 12", "short"},
		{"9", "exit code 9", "trainer"}, // done, and yet it failed
	}
	g := newRig(t, "", rigOptions{})
	for _, tt := range tests {
		id := g.launch(12, 1, tt.mode, 0)[0].ID
		run := g.wait(id, ablation.Failed)
		if !strings.Contains(run.Cause, tt.cause) {
			t.Errorf("%s: cause = %q, want %q in it", tt.mode, run.Cause, tt.cause)
		}
		if _, ok := g.alerts(id)[tt.code]; !ok {
			t.Errorf("%s: alerts = %v, want %q", tt.mode, g.alerts(id), tt.code)
		}
	}
	st := study(t, "missing", 1, 1, "x")
	st.Base.Trainer.Command = []string{"no-such-program"}
	if run := g.wait(g.launchStudy(st)[0].ID, ablation.Failed); !strings.Contains(run.Cause, "no-such-program") {
		t.Errorf("missing program: cause = %q", run.Cause)
	}
}

func TestStop(t *testing.T) {
	t.Parallel()
	g := newRig(t, "", rigOptions{slots: 1})
	runs := g.launch(10000, 2, "ok", 5*time.Millisecond)
	g.waitStep(runs[0].ID, 3)
	if err := g.runner.Stop(t.Context(), runs[1].ID); err != nil { // still queued
		t.Fatal(err)
	}
	if run := g.run(runs[1].ID); run.State != ablation.Stopped || run.Cause == "" {
		t.Errorf("queued run after Stop = %+v", run)
	}
	began := time.Now()
	if err := g.runner.Stop(t.Context(), runs[0].ID); err != nil {
		t.Fatal(err)
	}
	run := g.wait(runs[0].ID, ablation.Stopped)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("a trainer that saves and ends took %s to stop", took)
	}
	a := g.attempt(run.ID, 1)
	if a.ExitCode == nil || *a.ExitCode != 0 {
		t.Errorf("attempt = %+v, want exit code 0", a)
	}
	points, err := g.store.Checkpoints(t.Context(), run.ID)
	if err != nil || len(points) == 0 || points[len(points)-1].Step != run.Step {
		t.Errorf("last checkpoint %v, %v; want one at the last step %d", points, err, run.Step)
	}
	if err := g.runner.Stop(t.Context(), run.ID); !errors.Is(err, ablation.ErrConflict) {
		t.Errorf("Stop of a stopped run = %v, want ErrConflict", err)
	}
	if err := g.runner.Stop(t.Context(), 999); !errors.Is(err, ablation.ErrNotFound) {
		t.Errorf("Stop of no run = %v, want ErrNotFound", err)
	}
}

func TestStopOfAStubbornTrainer(t *testing.T) {
	t.Parallel()
	g := newRig(t, "", rigOptions{timing: runner.Timing{Checkpoint: 100 * time.Millisecond, Term: 200 * time.Millisecond}})
	id := g.launch(10000, 1, "stubborn", 5*time.Millisecond)[0].ID
	g.waitStep(id, 2)
	if err := g.runner.Stop(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if run := g.wait(id, ablation.Stopped); !strings.Contains(run.Cause, "killed") {
		t.Errorf("cause = %q, want it to say that it was killed", run.Cause)
	}
	if a := g.attempt(id, 1); a.Signal != "killed" {
		t.Errorf("attempt = %+v, want killed", a)
	}
}

func TestNothingIsLeftOfATrainerWithChildren(t *testing.T) {
	t.Parallel()
	g := newRig(t, "", rigOptions{})
	id := g.launch(5, 1, "children", time.Millisecond)[0].ID
	g.wait(id, ablation.Succeeded)
	text, err := g.runner.Log(t.Context(), id, 0, "stdout", 0)
	if err != nil {
		t.Fatal(err)
	}
	children := 0
	for line := range strings.Lines(string(text)) {
		if id, ok := strings.CutPrefix(strings.TrimSpace(line), "child "); ok {
			children++
			pid, _ := strconv.Atoi(id)
			if _, alive := shim.StartTicks(pid); alive {
				t.Errorf("process %d is left", pid)
			}
		}
	}
	if children != 2 {
		t.Errorf("log = %q, want two children", text)
	}
}

func TestInstantCrashesPauseTheStudy(t *testing.T) {
	t.Parallel()
	g := newRig(t, "", rigOptions{slots: 1})
	runs := g.launch(5, 8, "crash", 0)
	until(t, "paused study", func() bool {
		rec, err := g.store.Study(t.Context(), runs[0].Study)
		return err == nil && rec.Paused
	})
	until(t, "three failed runs", func() bool { return g.run(runs[2].ID).State == ablation.Failed && g.freeSlots() == 1 })
	until(t, "alert", func() bool { _, ok := g.alerts(runs[2].ID)["crash-loop"]; return ok })
	if text := g.alerts(runs[2].ID)["crash-loop"].Text; !strings.Contains(text, "ValueError") {
		t.Errorf("alert = %q, want the last log lines", text)
	}
	until(t, "reason", func() bool { return strings.Contains(g.runner.Status().Waiting[runs[4].ID], "paused") })
	if got := g.run(runs[7].ID); got.State != ablation.Queued {
		t.Errorf("the last run is %s, want queued", got.State)
	}
	if err := g.runner.StopStudy(t.Context(), runs[0].Study); err != nil {
		t.Fatal(err)
	}
	if got := g.run(runs[7].ID); got.State != ablation.Stopped {
		t.Errorf("after StopStudy the last run is %s", got.State)
	}
}

func TestFullDiskPausesTheQueue(t *testing.T) {
	t.Parallel()
	g := newRig(t, "", rigOptions{minFree: 1 << 60})
	id := g.launch(3, 1, "ok", 0)[0].ID
	until(t, "pause", func() bool { return g.runner.Status().Paused })
	if s := g.runner.Status(); !strings.Contains(s.Reason, "free some space") || g.run(id).State != ablation.Queued {
		t.Errorf("status = %+v, run %s; want a reason and a queued run", s, g.run(id).State)
	}
}

func TestConcurrencyAndPause(t *testing.T) {
	t.Parallel()
	g := newRig(t, "", rigOptions{slots: 4})
	st := study(t, "narrow", 10000, 3, "fake", "ok", "5", "{spec}")
	st.Concurrency = 1
	runs := g.launchStudy(st)
	g.waitStep(runs[0].ID, 1)
	until(t, "reason", func() bool { return strings.Contains(g.runner.Status().Waiting[runs[1].ID], "runs 1 at once") })
	if err := g.runner.PauseStudy(t.Context(), runs[0].Study); err != nil {
		t.Fatal(err)
	}
	if err := g.runner.Stop(t.Context(), runs[0].ID); err != nil {
		t.Fatal(err)
	}
	g.wait(runs[0].ID, ablation.Stopped)
	until(t, "paused reason", func() bool { return strings.Contains(g.runner.Status().Waiting[runs[1].ID], "paused") })
	if err := g.runner.ResumeStudy(t.Context(), runs[0].Study); err != nil {
		t.Fatal(err)
	}
	g.wait(runs[1].ID, ablation.Running)
	if got := g.run(runs[2].ID).State; got != ablation.Queued {
		t.Errorf("run 3 is %s, want queued", got)
	}
}

// A stopped process raises an alert; when it goes on, that is said too.
func TestStall(t *testing.T) {
	t.Parallel()
	g := newRig(t, "", rigOptions{slots: 1, timing: runner.Timing{Stall: 300 * time.Millisecond}})
	runs := g.launch(10000, 2, "ok", 10*time.Millisecond)
	id := runs[0].ID
	g.waitStep(id, 6)
	pid := g.attempt(id, 1).PID
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	until(t, "alert", func() bool { _, ok := g.alerts(id)["stalled"]; return ok })
	if got := g.run(id).State; got != ablation.Running {
		t.Errorf("a stalled run is %s, want running", got)
	}
	if got := g.run(runs[1].ID); got.State != ablation.Queued || g.freeSlots() != 0 {
		t.Errorf("the next run is %s and %d slots are free: the device of a stalled run was given on", got.State, g.freeSlots())
	}
	if text, err := g.runner.Dump(t.Context(), id); err != nil || !strings.Contains(text, "stopped") || !strings.Contains(text, strconv.Itoa(pid)) {
		t.Errorf("Dump = %q, %v; want the stopped process", text, err)
	}
	if kept, err := g.runner.Log(t.Context(), id, 0, "dump", 0); err != nil || !strings.Contains(string(kept), "stopped") {
		t.Errorf("the dump as a log = %q, %v", kept, err)
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	until(t, "all clear", func() bool { _, ok := g.alerts(id)["writes-again"]; return ok })
}

func TestNothingReceived(t *testing.T) {
	t.Parallel()
	g := newRig(t, "", rigOptions{timing: runner.Timing{FirstLine: 200 * time.Millisecond}})
	id := g.launch(5, 1, "silent", 0)[0].ID
	until(t, "alert", func() bool { _, ok := g.alerts(id)["nothing-received"]; return ok })
	if text := g.alerts(id)["nothing-received"].Text; !strings.Contains(text, g.file(id, 1, "events.jsonl")) {
		t.Errorf("alert = %q, want the path watched", text)
	}
}

func TestReplacedEventsFile(t *testing.T) {
	t.Parallel()
	g := newRig(t, "", rigOptions{})
	id := g.launch(8, 1, "hang", time.Millisecond)[0].ID
	g.waitStep(id, 8)
	path := g.file(id, 1, "events.jsonl")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	must(os.WriteFile(path+".new", text, 0o600))
	must(os.Rename(path+".new", path))
	w, err := trainer.NewWriter(path, trainer.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	must(w.Points(9, map[string]float64{"reward/mean": 9}))
	g.waitStep(id, 9)
	if points := g.series(id, "reward/mean"); len(points) != 9 {
		t.Errorf("%d points after the file was replaced by a copy, want 9", len(points))
	}
}

func TestLog(t *testing.T) {
	t.Parallel()
	g := newRig(t, "", rigOptions{})
	id := g.launch(5, 1, "crash", 0)[0].ID
	g.wait(id, ablation.Failed)
	tail, err := g.runner.Log(t.Context(), id, 1, "stderr", 45)
	if err != nil || string(tail) != "ValueError: learning rate is negative\n" {
		t.Errorf("Log tail = %q, %v", tail, err)
	}
	part, size, err := g.runner.LogRange(t.Context(), id, 0, "stderr", 0, 7)
	if err != nil || string(part) != "loading" || size < 100 {
		t.Errorf("LogRange = %q, %d, %v", part, size, err)
	}
	for _, bad := range []struct {
		attempt int
		stream  string
		want    error
	}{{0, "stdin", ablation.ErrInvalid}, {7, "stdout", ablation.ErrNotFound}} {
		if _, err := g.runner.Log(t.Context(), id, bad.attempt, bad.stream, 0); !errors.Is(err, bad.want) {
			t.Errorf("Log(%d, %s) = %v, want %v", bad.attempt, bad.stream, err, bad.want)
		}
	}
}

// StopAll ends live runs and starts no queued one.
func TestStopAll(t *testing.T) {
	t.Parallel()
	g := newRig(t, "", rigOptions{slots: 2})
	runs := g.launch(10000, 3, "ok", 5*time.Millisecond)
	g.waitStep(runs[0].ID, 1)
	g.waitStep(runs[1].ID, 1)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := g.runner.StopAll(ctx); err != nil {
		t.Fatal(err)
	}
	for i, want := range []ablation.State{ablation.Stopped, ablation.Stopped, ablation.Queued} {
		if got := g.run(runs[i].ID).State; got != want {
			t.Errorf("run %d is %s, want %s", i+1, got, want)
		}
	}
}
