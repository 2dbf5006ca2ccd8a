package runner_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"alidade/runner/shim"
	"alidade/trainer"
)

// TestMain makes the test binary its own shim, its own trainer and, for the
// crash test, its own server.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "shim":
			os.Exit(shim.Main(os.Args[2:]))
		case "fake":
			os.Exit(fake(os.Args[2], os.Args[3:]))
		case "server":
			os.Exit(crashServer(os.Args[2]))
		}
	}
	os.Exit(m.Run())
}

// A fakeTrainer speaks the trainer protocol and trains nothing: at each step it
// writes the step itself as a metric, so that every point can be checked.
type fakeTrainer struct {
	spec  trainer.Spec
	w     *trainer.Writer
	delay time.Duration
	save  atomic.Bool
	stop  atomic.Bool
}

// fake runs one behaviour: fake MODE DELAY_MS SPEC.
func fake(mode string, args []string) int {
	ms, err := strconv.Atoi(args[0])
	if err != nil {
		return 2
	}
	spec, err := trainer.ReadSpec(args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	w, err := trainer.NewWriter(spec.Events, trainer.WriterOptions{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	f := &fakeTrainer{spec: spec, w: w, delay: time.Duration(ms) * time.Millisecond}
	return f.run(mode)
}

func (f *fakeTrainer) run(mode string) int {
	switch mode {
	case "crash":
		fmt.Fprint(os.Stderr, "loading\nTraceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n    main()\nValueError: learning rate is negative\n")
		return 1
	case "silent":
		time.Sleep(time.Hour)
	case "nccl": // the first attempt loses a peer at step 7
		if f.spec.Attempt == 1 {
			f.spec.Recipe.Budget.Steps = 7
			defer fmt.Fprintln(os.Stderr, "rank 1\nncclRemoteError: a remote process exited")
			mode = "1"
		}
		f.listen()
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
	default:
		f.listen()
	}
	total := int64(f.spec.Recipe.Budget.Steps)
	must(f.w.Hello(trainer.Hello{Trainer: "fake", Version: "1", PID: os.Getpid(), TotalSteps: total}))
	must(f.w.Phase(trainer.Phase{Name: "rl", Step: f.spec.ResumeStep, Total: total, Main: true}))
	if mode == "children" {
		f.spawnChildren()
	}
	for step := f.spec.ResumeStep + 1; step <= total; step++ {
		must(f.w.Points(step, f.metrics(mode, step)))
		if step%5 == 0 || f.save.Swap(false) {
			f.checkpoint(step)
		}
		if f.stop.Load() {
			f.checkpoint(step)
			must(f.w.Done(trainer.Done{Step: step, Reason: "stopped"}))
			return 0
		}
		if mode == "torn" && step == 8 && f.spec.Attempt == 1 { // killed while it writes
			f.tear()
			time.Sleep(time.Hour)
		}
		if mode == "hang" && step == 8 {
			time.Sleep(time.Hour)
		}
		if mode == "short" && step == 3 {
			must(f.w.Done(trainer.Done{OK: true, Step: step, Reason: "finished"}))
			return 0
		}
		time.Sleep(f.delay)
	}
	if mode != "1" {
		must(f.w.Done(trainer.Done{OK: true, Step: total, Reason: "finished"}))
	}
	code, _ := strconv.Atoi(mode) // a number is an exit code after all went well
	return code
}

func (f *fakeTrainer) metrics(mode string, step int64) map[string]float64 {
	values := map[string]float64{"reward/mean": float64(step), "policy/loss": -float64(step), "speed/attempt": float64(f.spec.Attempt)}
	if mode == "seeded" { // the larger its seed, the worse it is
		values["reward/seed"] = -float64(f.spec.Seed)
	}
	if mode == "broken" { // an environment that is down
		values["rollout/tool_failure"] = 0.9
	}
	if mode == "ok12" { // as many as a real trainer writes
		for i := range 9 {
			values["check/"+strconv.Itoa(i)] = float64(step) / float64(i+1)
		}
	}
	return values
}

// tear writes half a line.
func (f *fakeTrainer) tear() {
	must(f.w.Close())
	file, err := os.OpenFile(f.spec.Events, os.O_APPEND|os.O_WRONLY, 0)
	must(err)
	_, err = file.WriteString(`{"v":1,"kind":"points","t":1,"points":{"step":9,"val`)
	must(err)
}

func (f *fakeTrainer) listen() {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGTERM)
	go func() {
		for sig := range signals {
			if sig == syscall.SIGUSR1 {
				f.save.Store(true)
			} else {
				f.stop.Store(true)
			}
		}
	}()
}

func (f *fakeTrainer) checkpoint(step int64) {
	path := filepath.Join("checkpoints", fmt.Sprintf("step-%06d", step))
	must(os.MkdirAll(filepath.Join(f.spec.Dir, path), 0o755))
	must(f.w.Checkpoint(trainer.Checkpoint{Step: step, Path: path}))
}

// spawnChildren leaves one process in the group and one outside it.
func (f *fakeTrainer) spawnChildren() {
	for _, attr := range []*syscall.SysProcAttr{nil, {Setsid: true}} {
		cmd := exec.Command("sleep", "1000")
		cmd.SysProcAttr = attr
		must(cmd.Start())
		fmt.Println("child", cmd.Process.Pid)
	}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(70)
	}
}

// crashServer is a server that does nothing but run runs, until it is killed.
func crashServer(data string) int {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	rig, err := openRig(data, rigOptions{slots: 8, log: log})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	must(os.WriteFile(filepath.Join(data, "up"), []byte(strconv.Itoa(os.Getpid())), 0o600))
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	if err := rig.runner.Run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
