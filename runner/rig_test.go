package runner_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"alidade/ablation"
	"alidade/gpu"
	"alidade/runner"
	"alidade/runner/local"
	"alidade/store"
)

// patience bounds each wait for a condition; the slow drill has more to wait for.
var patience = map[bool]time.Duration{false: 30 * time.Second, true: 5 * time.Minute}[os.Getenv("ALIDADE_SLOW") != ""]

type rigOptions struct {
	slots    int
	launcher runner.Launcher // nil = local
	timing   runner.Timing
	minFree  int64
	devices  gpu.Config // zero = CPU slots
	settings runner.Settings

	commitEvery time.Duration
	log         *slog.Logger
}

// A rig is a runner on a real store, a real launcher and CPU slots.
type rig struct {
	t      *testing.T
	store  *store.Store
	runner *runner.Runner

	stop func() // ends the runner as a server's end does, and waits

	mu      sync.Mutex
	commits []store.Commit
}

// openRig opens the data folder; newRig is for tests that need nothing else.
func openRig(data string, o rigOptions) (*rig, error) {
	st, err := store.Open(data, store.Options{Logger: o.log, CommitEvery: o.commitEvery})
	if err != nil {
		return nil, err
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if o.launcher == nil {
		if o.launcher, err = local.New(exe); err != nil {
			return nil, err
		}
	}
	if o.devices == (gpu.Config{}) {
		o.devices = gpu.Config{Spec: "cpu", CPUSlots: o.slots}
	}
	pool, err := gpu.New(o.devices)
	if err != nil {
		return nil, err
	}
	if o.minFree == 0 {
		o.minFree = -1
	}
	g := &rig{store: st}
	g.runner, err = runner.New(runner.Config{
		Store: st, Devices: pool, Launcher: o.launcher, Exe: exe, Logger: o.log, MinFree: o.minFree, Timing: o.timing, Settings: o.settings,
		Publish: func(c store.Commit) {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.commits = append(g.commits, c)
		},
	})
	return g, err
}

// newRig opens a data folder ("" = a new one) and starts its runner.
func newRig(t *testing.T, data string, o rigOptions) *rig {
	t.Helper()
	if data == "" {
		data = t.TempDir()
	}
	if o.commitEvery == 0 {
		o.commitEvery = 5 * time.Millisecond
	}
	if o.slots == 0 {
		o.slots = 4
	}
	if o.timing.Tick == 0 {
		o.timing.Tick = 50 * time.Millisecond
	}
	if o.timing.Checkpoint == 0 {
		o.timing.Checkpoint = time.Second
	}
	if o.timing.Term == 0 {
		o.timing.Term = 2 * time.Second
	}
	if o.timing.Poll == 0 {
		o.timing.Poll = 5 * time.Millisecond
	}
	if o.timing.Alive == 0 {
		o.timing.Alive = 10 * time.Millisecond
	}
	g, err := openRig(data, o)
	if err != nil {
		t.Fatal(err)
	}
	g.t = t
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- g.runner.Run(ctx) }()
	var once sync.Once
	g.stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("Run: %v", err)
			}
			if err := g.store.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
	}
	t.Cleanup(func() {
		if ctx.Err() == nil {
			stopCtx, stopCancel := context.WithTimeout(context.Background(), patience)
			defer stopCancel()
			if err := g.runner.StopAll(stopCtx); err != nil {
				t.Errorf("StopAll: %v", err)
			}
		}
		g.stop()
	})
	return g
}

// study is one arm of a trainer command with as many runs as seeds.
func study(t testing.TB, name string, steps, seeds int, command ...string) ablation.Study {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	base, ok := ablation.PresetNamed("command")
	if !ok {
		t.Fatal("no preset named command")
	}
	base.Trainer.Command = append([]string{exe}, command...)
	base.Budget.Steps, base.Budget.CheckpointEvery = steps, 5
	base.Evaluation.Every = steps
	st := ablation.Study{Name: name, Base: base, Design: ablation.DesignGrid, Metric: "reward/mean"}
	for i := range seeds {
		st.Seeds = append(st.Seeds, uint64(i+1))
	}
	return st
}

// launch queues runs of the fake trainer.
func (g *rig) launch(steps, seeds int, mode string, delay time.Duration) []ablation.Run {
	g.t.Helper()
	return g.launchStudy(study(g.t, mode, steps, seeds, "fake", mode, strconv.FormatInt(delay.Milliseconds(), 10), "{spec}"))
}

func (g *rig) launchStudy(st ablation.Study) []ablation.Run {
	g.t.Helper()
	_, runs, err := g.runner.Launch(g.t.Context(), st, "")
	if err != nil {
		g.t.Fatalf("Launch: %v", err)
	}
	return runs
}

// until waits for a condition.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not after %s", what, patience)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (g *rig) run(id ablation.RunID) ablation.Run {
	g.t.Helper()
	run, err := g.store.Run(context.Background(), id)
	if err != nil {
		g.t.Fatalf("Run(%d): %v", id, err)
	}
	return run
}

// wait waits until the run is in the state, and fails when it ends elsewhere.
func (g *rig) wait(id ablation.RunID, want ablation.State) ablation.Run {
	g.t.Helper()
	var run ablation.Run
	until(g.t, "run "+strconv.Itoa(int(id))+" "+string(want), func() bool {
		run = g.run(id)
		if run.State != want && run.State.Terminal() && want.Live() {
			g.t.Fatalf("run %d is %s (%s), want %s", id, run.State, run.Cause, want)
		}
		return run.State == want
	})
	return run
}

// waitStep waits until a live run has reached a step.
func (g *rig) waitStep(id ablation.RunID, step int64) {
	g.t.Helper()
	until(g.t, "step", func() bool {
		run := g.run(id)
		if run.State.Terminal() {
			g.t.Fatalf("run %d is %s (%s) at step %d, want step %d", id, run.State, run.Cause, run.Step, step)
		}
		return run.Step >= step
	})
}

func (g *rig) attempt(id ablation.RunID, n int) ablation.Attempt {
	g.t.Helper()
	all, err := g.store.Attempts(context.Background(), id)
	if err != nil || len(all) < n {
		g.t.Fatalf("attempt %d of run %d: %d attempts, %v", n, id, len(all), err)
	}
	return all[n-1]
}

func (g *rig) series(id ablation.RunID, metric string) []ablation.Point {
	g.t.Helper()
	all, err := g.store.Series(context.Background(), store.SeriesQuery{Runs: []ablation.RunID{id}, Metrics: []string{metric}})
	if err != nil || len(all) != 1 {
		g.t.Fatalf("series %s of run %d: %d series, %v", metric, id, len(all), err)
	}
	return all[0].Points
}

func (g *rig) alerts(id ablation.RunID) map[string]ablation.Alert {
	g.t.Helper()
	all, err := g.store.Alerts(context.Background(), 0, id, 100)
	if err != nil {
		g.t.Fatalf("alerts of run %d: %v", id, err)
	}
	byCode := make(map[string]ablation.Alert)
	for _, a := range all {
		byCode[a.Code] = a
	}
	return byCode
}

func (g *rig) file(id ablation.RunID, attempt int, name string) string {
	return filepath.Join(g.store.Dir(), "runs", strconv.Itoa(int(id)), strconv.Itoa(attempt), name)
}

func (g *rig) freeSlots() int {
	n := 0
	for _, d := range g.runner.Devices() {
		if d.Free {
			n++
		}
	}
	return n
}
