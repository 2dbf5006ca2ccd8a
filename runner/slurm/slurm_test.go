package slurm_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"alidade/gpu"
	"alidade/runner"
	"alidade/runner/launchertest"
	"alidade/runner/shim"
	"alidade/runner/slurm"
	"alidade/trainer"
)

// TestMain makes the test binary its own shim and its own trainer.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case "shim":
			os.Exit(shim.Main(os.Args[2:]))
		case "fake":
			os.Exit(fake(os.Args[2], os.Args[3]))
		}
	}
	os.Exit(m.Run())
}

// fake trains nothing: a step each so many milliseconds, checkpoints when
// asked.
func fake(ms, path string) int {
	spec, err := trainer.ReadSpec(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	w, err := trainer.NewWriter(spec.Events, trainer.WriterOptions{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	var save, stop atomic.Bool
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGTERM)
	go func() {
		for sig := range signals {
			if sig == syscall.SIGUSR1 {
				save.Store(true)
			} else {
				stop.Store(true)
			}
		}
	}()
	total := int64(spec.Recipe.Budget.Steps)
	delay, _ := strconv.Atoi(ms)
	checkpoint := func(step int64) error {
		path := filepath.Join("checkpoints", fmt.Sprintf("step-%06d", step))
		return errors.Join(os.MkdirAll(filepath.Join(spec.Dir, path), 0o755), w.Checkpoint(trainer.Checkpoint{Step: step, Path: path}))
	}
	err = errors.Join(w.Hello(trainer.Hello{Trainer: "fake", PID: os.Getpid(), TotalSteps: total}),
		w.Phase(trainer.Phase{Name: "rl", Step: spec.ResumeStep, Total: total, Main: true}))
	for step := spec.ResumeStep + 1; step <= total && err == nil; step++ {
		err = w.Points(step, map[string]float64{"reward/mean": float64(step)})
		if save.Swap(false) || stop.Load() {
			err = errors.Join(err, checkpoint(step))
		}
		if stop.Load() {
			err = errors.Join(err, w.Done(trainer.Done{Step: step, Reason: "stopped"}))
			break
		}
		time.Sleep(time.Duration(delay) * time.Millisecond)
	}
	if !stop.Load() {
		err = errors.Join(err, w.Done(trainer.Done{OK: true, Step: total, Reason: "finished"}))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func newLauncher(t *testing.T, s runner.SlurmSettings) *slurm.Launcher {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if s.PollSeconds == 0 {
		s.PollSeconds = 0.3
	}
	l, err := slurm.New(slurm.Config{Exe: exe, Settings: s})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestLauncher(t *testing.T) {
	launchertest.Cluster(t, "--cpus", "16")
	t.Run("jobs", func(t *testing.T) {
		launchertest.Run(t, launchertest.Patience(60*time.Second), func(t *testing.T) runner.Launcher {
			return newLauncher(t, runner.SlurmSettings{})
		})
	})
	arrays := newLauncher(t, runner.SlurmSettings{Array: 8})
	arrays.AlwaysArrays()
	t.Run("arrays", func(t *testing.T) {
		launchertest.Run(t, launchertest.Patience(60*time.Second), func(t *testing.T) runner.Launcher { return arrays })
	})
	t.Run("array", testArray)
	t.Run("a submission whose answer is lost", testNoAnswer)
	t.Run("a site without arrays", testNoArrays)
	t.Run("GPUs", testGPUs)
	t.Run("a job that waits is cancelled", testWaiting)
	t.Run("a job whose number was not recorded", testFound)
	t.Run("what its processes do", testDump)
	t.Run("what the site asks for", testSite)
	t.Run("the controller is away", testAway)
}

func ended(t *testing.T, l *slurm.Launcher, h runner.Handle) {
	t.Helper()
	until(t, "end of the job", func() bool { return l.Alive(t.Context(), h) == runner.Gone })
}

func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(60 * time.Second)
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatalf("no %s after a minute", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// The job's GPUs are Slurm's choice; the trainer sees them.
func testGPUs(t *testing.T) {
	for _, how := range []string{"gres", "gpus-per-node"} {
		l := newLauncher(t, runner.SlurmSettings{GPUs: how, GPUType: "h200"})
		if !l.HasGPUs() {
			t.Fatal("HasGPUs = false")
		}
		h, err := l.Start(t.Context(), runner.Launch{Dir: t.TempDir(), Name: "gpus", Need: gpu.Request{Kind: gpu.KindGPU, N: 2},
			Argv: []string{"/bin/sh", "-c", "echo $CUDA_VISIBLE_DEVICES; echo $A"}, Env: []string{"A=it's; $(x)"}})
		if err != nil {
			t.Fatal(err)
		}
		ended(t, l, h)
		text, err := os.ReadFile(filepath.Join(h.Dir, shim.StdoutFile))
		if err != nil || string(text) != "0,1\nit's; $(x)\n" {
			t.Errorf("%s: trainer saw %q, %v; want GPUs 0,1 and its variable untouched", how, text, err)
		}
		if e, known := l.Ending(t.Context(), h); !known || e.Code != "" {
			t.Errorf("%s: Ending = %+v, %v; want it known, and nothing to say", how, e, known)
		}
	}
}

func testWaiting(t *testing.T) {
	l := newLauncher(t, runner.SlurmSettings{Flags: []string{"--begin=now+1hour"}})
	h, err := l.Start(t.Context(), runner.Launch{Dir: t.TempDir(), Argv: []string{"/bin/true"}})
	if err != nil {
		t.Fatal(err)
	}
	until(t, "reason", func() bool {
		why, waits := l.Waiting(t.Context(), h)
		return waits && strings.Contains(why, "BeginTime")
	})
	if err := l.Signal(t.Context(), h, syscall.SIGUSR1); !errors.Is(err, runner.ErrUnhandled) {
		t.Errorf("SIGUSR1 to a waiting job = %v, want ErrUnhandled", err)
	}
	if got := l.Alive(t.Context(), h); got != runner.Alive {
		t.Errorf("a waiting job is %s, want alive", got)
	}
	for range 2 {
		if err := l.Signal(t.Context(), h, syscall.SIGTERM); err != nil {
			t.Errorf("SIGTERM to a waiting job: %v", err)
		}
	}
	ended(t, l, h)
	if e, known := l.Ending(t.Context(), h); !known || e.Code != "cancelled" {
		t.Errorf("Ending = %+v, %v; want cancelled", e, known)
	}
}

// The server died between the submission and its record.
func testFound(t *testing.T) {
	l := newLauncher(t, runner.SlurmSettings{})
	h, err := l.Start(t.Context(), runner.Launch{Dir: t.TempDir(), Argv: []string{"/bin/sh", "-c", "sleep 60"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(h.Dir, "slurm.json")); err != nil {
		t.Fatal(err)
	}
	again, err := newLauncher(t, runner.SlurmSettings{}).Attach(t.Context(), h.Dir)
	if err != nil || !strings.HasPrefix(again.Place, "slurm job ") {
		t.Fatalf("Attach = %+v, %v", again, err)
	}
	until(t, "the end by SIGKILL", func() bool {
		if err := l.Signal(t.Context(), again, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
		return l.Alive(t.Context(), again) == runner.Gone
	})
}

// A controller that does not answer makes nothing gone.
func testAway(t *testing.T) {
	l := newLauncher(t, runner.SlurmSettings{})
	h, err := l.Start(t.Context(), runner.Launch{Dir: t.TempDir(), Argv: []string{"/bin/sh", "-c", "sleep 60"}})
	if err != nil {
		t.Fatal(err)
	}
	until(t, "start", func() bool { _, err := shim.ReadHandle(h.Dir); return err == nil })
	conf := os.Getenv("SLURM_CONF")
	t.Setenv("SLURM_CONF", "/nowhere/slurm.conf")
	other := newLauncher(t, runner.SlurmSettings{})
	for range 10 {
		if got := other.Alive(context.Background(), h); got != runner.Unknown {
			t.Fatalf("with the controller away the job is %s, want unknown", got)
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Setenv("SLURM_CONF", conf)
	if err := l.Signal(t.Context(), h, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	ended(t, l, h)
}

// A job tells from its node what its processes are doing.
func testDump(t *testing.T) {
	l, dir := newLauncher(t, runner.SlurmSettings{}), t.TempDir()
	h, err := l.Start(t.Context(), runner.Launch{Dir: dir, Argv: []string{"/bin/sh", "-c", "echo up; sleep 60.5; echo later"},
		Env: []string{"PATH=" + os.Getenv("PATH"), shim.MarkEnv + "=" + dir}})
	if err != nil {
		t.Fatal(err)
	}
	until(t, "start", func() bool {
		text, _ := os.ReadFile(filepath.Join(dir, shim.StdoutFile))
		return string(text) == "up\n"
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	text, err := l.Dump(ctx, h)
	if err != nil || !strings.Contains(text, "sleep 60.5") || !strings.Contains(text, "thread ") {
		t.Errorf("Dump = %q, %v; want the process that sleeps", text, err)
	}
	if got := l.Alive(t.Context(), h); got != runner.Alive {
		t.Errorf("after the dump the job is %s", got)
	}
	until(t, "the end by SIGKILL", func() bool {
		if err := l.Signal(t.Context(), h, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
		return l.Alive(t.Context(), h) == runner.Gone
	})
	if _, err := l.Dump(t.Context(), h); err == nil || !strings.Contains(err.Error(), "has ended") {
		t.Errorf("Dump after the end = %v", err)
	}
}

// Partition, account, QOS, time limit, CPUs, memory and further flags reach the
// job; what the site refuses is told in Slurm's words.
func testSite(t *testing.T) {
	l := newLauncher(t, runner.SlurmSettings{Partition: "main", Account: "lab", QOS: "", TimeLimit: "0-1:30", GPUType: "h200", CPUsPerGPU: 3, MemPerGPUGiB: 1.5,
		Flags: []string{"--comment=a;b$(c)", "--nice=7", "--begin=now+1hour"}})
	h, err := l.Start(t.Context(), runner.Launch{Dir: t.TempDir(), Name: "site", Need: gpu.Request{Kind: gpu.KindGPU, N: 2}, Argv: []string{"/bin/true"}})
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("scontrol", "show", "job", "-o", jobOf(t, h.Dir)).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Partition=main", "Account=lab", "TimeLimit=01:30:00", "CPUs/Task=6", "MinMemoryNode=3G", "gres:gpu:h200:2", "Comment=a;b$(c)", "Nice=7", "Requeue=0", "JobName=site-"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the job lacks %s: %s", want, out)
		}
	}
	if err := l.Signal(t.Context(), h, syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	ended(t, l, h)
	for _, s := range []runner.SlurmSettings{{Partition: "nowhere"}, {GPUType: "tpu"}} {
		_, err := newLauncher(t, s).Start(t.Context(), runner.Launch{Dir: t.TempDir(), Need: gpu.Request{Kind: gpu.KindGPU, N: 1}, Argv: []string{"/bin/true"}})
		if err == nil || !strings.Contains(err.Error(), "sbatch: ") || !strings.Contains(err.Error(), "error: ") {
			t.Errorf("%+v: Start = %v, want what sbatch says", s, err)
		}
	}
}
