package slurm_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"alidade/ablation"
	"alidade/gpu"
	"alidade/runner"
	"alidade/runner/launchertest"
	"alidade/store"
)

// rig is a runner on a data folder whose launcher is Slurm.
type rig struct {
	store  *store.Store
	runner *runner.Runner
	stop   func()
}

func newRig(t *testing.T, data string, s runner.SlurmSettings) *rig {
	t.Helper()
	return newPricedRig(t, data, runner.Settings{Slurm: s})
}

func newPricedRig(t *testing.T, data string, s runner.Settings) *rig {
	t.Helper()
	st, err := store.Open(data, store.Options{CommitEvery: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	pool, err := gpu.New(gpu.Config{Spec: "cpu:1"})
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r, err := runner.New(runner.Config{Store: st, Devices: pool, Launcher: newLauncher(t, s.Slurm), Settings: s, Exe: exe, MinFree: -1,
		Env: []string{"PATH=" + os.Getenv("PATH")}, Timing: runner.Timing{Tick: 100 * time.Millisecond, Retry: 100 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	g := &rig{store: st, runner: r}
	ended := false
	g.stop = func() {
		if ended {
			return
		}
		ended = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		if err := st.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	t.Cleanup(func() { g.stop() })
	return g
}

func (g *rig) run(t *testing.T, id ablation.RunID) ablation.Run {
	t.Helper()
	run, err := g.store.Run(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func commands(t *testing.T, name string, seeds, steps int, ms string) ablation.Study {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	base, _ := ablation.PresetNamed("command")
	base.Trainer.Command, base.Trainer.Devices = []string{exe, "fake", ms, "{spec}"}, 1
	base.Budget.Steps, base.Evaluation.Every = steps, steps
	st := ablation.Study{Name: name, Base: base, Design: ablation.DesignGrid, Metric: "reward/mean"}
	for i := range seeds {
		st.Seeds = append(st.Seeds, uint64(i+1))
	}
	return st
}

func (g *rig) launch(t *testing.T, st ablation.Study) []ablation.RunID {
	t.Helper()
	_, runs, err := g.runner.Launch(t.Context(), st, "")
	if err != nil {
		t.Fatal(err)
	}
	var ids []ablation.RunID
	for _, run := range runs {
		ids = append(ids, run.ID)
	}
	return ids
}

// settled waits until all runs have ended and checks each against what must
// be: none lost, none doubled, each step once.
func (g *rig) settled(t *testing.T, want map[ablation.RunID]ablation.State, steps map[ablation.RunID]int, patience time.Duration) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for id, state := range want {
		for g.run(t, id).State != state {
			if run := g.run(t, id); time.Now().After(deadline) || run.State == ablation.Succeeded && run.State != state {
				t.Fatalf("run %d is %s (%s) in attempt %d at step %d, want %s", id, run.State, run.Cause, run.Attempt, run.Step, state)
			}
			time.Sleep(50 * time.Millisecond)
		}
		if state != ablation.Succeeded {
			continue
		}
		all, err := g.store.Series(context.Background(), store.SeriesQuery{Runs: []ablation.RunID{id}, Metrics: []string{"reward/mean"}})
		if err != nil || len(all) != 1 || len(all[0].Points) != steps[id] {
			t.Errorf("run %d: %d series, %v; want %d points", id, len(all), err, steps[id])
			continue
		}
		for i, p := range all[0].Points {
			if p.Step != int64(i+1) {
				t.Errorf("run %d: point %d has step %d", id, i, p.Step)
				break
			}
		}
	}
	until(t, "an empty queue", func() bool {
		out, err := exec.Command("squeue", "--me", "--noheader", "--format=%i %T").Output()
		return err == nil && len(strings.TrimSpace(string(out))) == 0
	})
}

// Twelve runs, half of them cancelled: some while they train, some while they
// wait in Slurm, some before they were handed to it. The server is started
// anew in between.
func TestStudy(t *testing.T) {
	launchertest.Cluster(t, "--cpus", "4")
	t.Run("jobs", func(t *testing.T) { testStudy(t, 0) })
	t.Run("arrays", func(t *testing.T) { testStudy(t, 5) })
}

func testStudy(t *testing.T, array int) {
	const steps = 160 // 8 s and more: the first must not end before they are stopped
	data := t.TempDir()
	settings := runner.SlurmSettings{MostJobs: 8, GPUs: "none", Array: array}
	g := newRig(t, data, settings)
	ids := g.launch(t, commands(t, "twelve", 12, steps, "50"))
	until(t, "four running", func() bool {
		running := 0
		for _, id := range ids {
			if g.run(t, id).State == ablation.Running {
				running++
			}
		}
		return running == 4
	})
	waits := g.runner.Status().Waiting
	if !strings.Contains(waits[ids[11]], "8 jobs") || !strings.Contains(waits[ids[6]], "job") {
		t.Errorf("waiting = %v, want words about Slurm and about the 8 jobs at once", waits)
	}
	if a, err := g.store.Attempts(t.Context(), ids[0]); err != nil || len(a) != 1 || !strings.Contains(a[0].Device, "slurm job") {
		t.Errorf("attempt = %+v, %v; want the job's number as its place", a, err)
	}
	g.stop()
	g = newRig(t, data, settings)
	want, each := make(map[ablation.RunID]ablation.State), make(map[ablation.RunID]int)
	for i, id := range ids {
		want[id], each[id] = ablation.Succeeded, steps
		if i%2 == 0 {
			want[id] = ablation.Stopped
			if err := g.runner.Stop(t.Context(), id); err != nil {
				t.Errorf("stop run %d: %v", id, err)
			}
		}
	}
	g.settled(t, want, each, 2*time.Minute)
	for _, id := range ids {
		if run := g.run(t, id); run.Attempt > 1 {
			t.Errorf("run %d has %d attempts, want one at most", id, run.Attempt)
		}
	}
}

// The slow drill: one run meets its time limit and goes on in another job from
// its checkpoint, and a node is drained under the others.
func TestStudyAtItsLimits(t *testing.T) {
	if os.Getenv("ALIDADE_SLOW") == "" {
		t.Skip("takes minutes of Slurm's own timers: set ALIDADE_SLOW")
	}
	launchertest.Cluster(t, "--nodes", "2", "--cpus", "4")
	g := newRig(t, t.TempDir(), runner.SlurmSettings{TimeLimit: "2", WarnSeconds: 15, GPUs: "none"})
	long := g.launch(t, commands(t, "long", 1, 1600, "50"))[0] // 80 s and more; the warning comes before 50 s
	ids := g.launch(t, commands(t, "short", 11, 60, "100"))
	want := map[ablation.RunID]ablation.State{long: ablation.Succeeded}
	steps := map[ablation.RunID]int{long: 1600}
	until(t, "running", func() bool { return g.run(t, ids[0]).State == ablation.Running })
	drain := func(state string) {
		t.Helper()
		if out, err := exec.Command("scontrol", "update", "nodename=gpu1", "state="+state, "reason=test").CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", state, err, out)
		}
	}
	drain("drain")
	for i, id := range ids {
		want[id], steps[id] = ablation.Succeeded, 60
		if i%2 == 0 {
			want[id] = ablation.Stopped
			if err := g.runner.Stop(t.Context(), id); err != nil {
				t.Errorf("stop run %d: %v", id, err)
			}
		}
	}
	time.Sleep(5 * time.Second)
	drain("resume")
	g.settled(t, want, steps, 6*time.Minute)
	attempts, err := g.store.Attempts(t.Context(), long)
	if err != nil || len(attempts) < 2 || attempts[0].Code != "time-limit" || attempts[1].FirstStep == 0 {
		t.Errorf("attempts of the long run = %+v, %v; want a second one from the checkpoint at the time limit", attempts, err)
	}
}
