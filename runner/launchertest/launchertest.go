// Package launchertest holds what every runner.Launcher must do. A launcher's
// own test calls [Run]; it needs /bin/sh and starts real processes.
package launchertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"alidade/runner"
	"alidade/runner/shim"
)

// Patience bounds each wait for a condition; a queueing launcher may need more
// than a local one.
type Patience time.Duration

// Run proves a launcher. make returns a launcher as a newly started server
// would have it: two of them must find each other's attempts.
func Run(t *testing.T, patience Patience, make func(t *testing.T) runner.Launcher) {
	s := suite{patience: time.Duration(patience), make: make, root: t.TempDir()}
	for name, test := range map[string]func(*testing.T){
		"output and exit code":            s.exitCode,
		"environment is exactly as given": s.environment,
		"program that is not there":       s.missing,
		"attach from another process":     s.attach,
		"attach where nothing started":    s.attachNothing,
		"killed trainer":                  s.killed,
		"children left behind":            s.children,
		"children that escaped":           s.escaped,
		"checkpoint signal":               s.checkpoint,
		"checkpoint signal unhandled":     s.unhandled,
		"trainer that ignores SIGTERM":    s.stubborn,
		"trainer inside a script":         s.script,
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); test(t) })
	}
}

type suite struct {
	patience time.Duration
	make     func(t *testing.T) runner.Launcher
	root     string // of the attempts' folders, which outlive their tests as those of runs do
}

// dir makes an attempt's folder.
func (s suite) dir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(s.root, "")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// start starts a shell script in a new attempt folder.
func (s suite) start(t *testing.T, l runner.Launcher, script string, env ...string) runner.Handle {
	t.Helper()
	h, err := l.Start(t.Context(), runner.Launch{
		Dir:  s.dir(t),
		Argv: []string{"/bin/sh", "-c", script},
		Env:  append([]string{"PATH=" + os.Getenv("PATH")}, env...),
	})
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	t.Cleanup(func() {
		ctx := context.Background() // the test's own has ended
		_ = l.Signal(ctx, h, syscall.SIGKILL)
		s.wait(t, "end", func() bool { return l.Alive(ctx, h) == runner.Gone })
	})
	return h
}

// wait waits for a condition, never for luck.
func (s suite) wait(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(s.patience)
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatalf("no %s after %s", what, s.patience)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// exit waits until nothing runs and returns the exit record.
func (s suite) exit(t *testing.T, l runner.Launcher, h runner.Handle) shim.Exit {
	t.Helper()
	s.wait(t, "end", func() bool { return l.Alive(t.Context(), h) == runner.Gone })
	exit, err := shim.ReadExit(h.Dir)
	if err != nil {
		t.Fatalf("exit record: %v", err)
	}
	return exit
}

func (s suite) says(t *testing.T, h runner.Handle, word string) {
	t.Helper()
	s.wait(t, word+" in stdout.log", func() bool { return strings.Contains(read(h, shim.StdoutFile), word) })
}

func read(h runner.Handle, name string) string {
	text, _ := os.ReadFile(filepath.Join(h.Dir, name))
	return string(text)
}

func (s suite) exitCode(t *testing.T) {
	l := s.make(t)
	h := s.start(t, l, "echo out; echo err >&2; exit 7")
	exit := s.exit(t, l, h)
	if exit.ExitCode != 7 || exit.Signal != "" || exit.Ended.Before(exit.Started) {
		t.Errorf("exit record = %+v, want code 7", exit)
	}
	if out, errs := read(h, shim.StdoutFile), read(h, shim.StderrFile); out != "out\n" || errs != "err\n" {
		t.Errorf("stdout %q, stderr %q, want out and err", out, errs)
	}
}

func (s suite) environment(t *testing.T) {
	l := s.make(t)
	h := s.start(t, l, `echo "<$ALIDADE_SPEC><$HOME>"`, "ALIDADE_SPEC=a b")
	s.exit(t, l, h)
	if got := read(h, shim.StdoutFile); got != "<a b><>\n" {
		t.Errorf("environment seen: %q, want <a b> and no HOME", got)
	}
}

func (s suite) missing(t *testing.T) {
	l, dir := s.make(t), s.dir(t)
	h, err := l.Start(t.Context(), runner.Launch{Dir: dir, Argv: []string{"/nowhere/trainer"}})
	words := fmt.Sprint(err)
	if err == nil { // one that queues knows it only when the job starts
		words = s.exit(t, l, h).Error
	}
	if !strings.Contains(words, "/nowhere/trainer") {
		t.Errorf("Start of a missing program = %q, want an error that names it", words)
	}
}

func (s suite) attach(t *testing.T) {
	h := s.start(t, s.make(t), "echo up; while :; do sleep 0.02; done")
	other := s.make(t)
	found, err := other.Attach(t.Context(), h.Dir)
	if err != nil {
		t.Fatalf("Attach: %v", err)
	}
	if got := other.Alive(t.Context(), found); got != runner.Alive {
		t.Fatalf("Alive = %s, want alive", got)
	}
	s.says(t, found, "up") // one that queues cancels a job that has not started
	if err := other.Signal(t.Context(), found, syscall.SIGTERM); err != nil {
		t.Fatalf("Signal: %v", err)
	}
	if exit := s.exit(t, other, found); exit.Signal != syscall.SIGTERM.String() {
		t.Errorf("exit record = %+v, want it terminated", exit)
	}
	again, err := s.make(t).Attach(t.Context(), h.Dir)
	if err != nil || s.make(t).Alive(t.Context(), again) != runner.Gone {
		t.Errorf("Attach after the end = %v, want a handle that is gone", err)
	}
}

func (s suite) attachNothing(t *testing.T) {
	l, dir := s.make(t), s.dir(t)
	if _, err := l.Attach(t.Context(), dir); !errors.Is(err, runner.ErrNotStarted) {
		t.Errorf("Attach to an empty folder = %v, want ErrNotStarted", err)
	}
	if _, err := l.Start(t.Context(), runner.Launch{Dir: dir, Argv: []string{"/bin/sh", "-c", "echo started"}}); err == nil {
		t.Error("Start in a folder that was given up succeeded")
	}
	if _, err := os.Stat(filepath.Join(dir, shim.StdoutFile)); err == nil {
		t.Error("the trainer of a folder that was given up has run")
	}
}

func (s suite) killed(t *testing.T) {
	l := s.make(t)
	h := s.start(t, l, "echo up; sleep 60")
	s.says(t, h, "up")
	if err := l.Signal(t.Context(), h, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if exit := s.exit(t, l, h); exit.Signal != syscall.SIGKILL.String() || exit.ExitCode != -1 {
		t.Errorf("exit record = %+v, want killed", exit)
	}
}

// children: processes that outlive the trainer in its group are ended.
func (s suite) children(t *testing.T) {
	l := s.make(t)
	h := s.start(t, l, "sleep 300 & echo child $!; (trap '' TERM; echo stubborn; exec sleep 301) & sleep 0.1; exit 0")
	if exit := s.exit(t, l, h); exit.ExitCode != 0 {
		t.Errorf("exit record = %+v, want 0", exit)
	}
	s.noneLeft(t, read(h, shim.StdoutFile))
}

// escaped: so are those that made a session of their own.
func (s suite) escaped(t *testing.T) {
	l := s.make(t)
	h := s.start(t, l, "setsid sh -c 'echo child $$; exec sleep 302' & sleep 0.2; exit 3")
	if exit := s.exit(t, l, h); exit.ExitCode != 3 {
		t.Errorf("exit record = %+v, want 3", exit)
	}
	s.noneLeft(t, read(h, shim.StdoutFile))
}

func (s suite) noneLeft(t *testing.T, out string) {
	t.Helper()
	for line := range strings.Lines(out) {
		word, id, _ := strings.Cut(strings.TrimSpace(line), " ")
		if word != "child" {
			continue
		}
		pid, err := strconv.Atoi(id)
		if err != nil {
			t.Fatalf("child id %q", id)
		}
		if _, alive := shim.StartTicks(pid); alive {
			t.Errorf("process %d, left behind by the trainer, still runs", pid)
		}
	}
}

func (s suite) checkpoint(t *testing.T) {
	l := s.make(t)
	h := s.start(t, l, "trap 'echo saved' USR1; sleep 303 & echo up; while :; do sleep 0.02; done")
	s.says(t, h, "up")
	if err := l.Signal(t.Context(), h, syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	s.says(t, h, "saved")
	if got := l.Alive(t.Context(), h); got != runner.Alive {
		t.Errorf("after the checkpoint signal the trainer is %s, want alive", got)
	}
}

func (s suite) unhandled(t *testing.T) {
	l := s.make(t)
	h := s.start(t, l, "echo up; exec sleep 60")
	s.says(t, h, "up")
	s.wait(t, "ErrUnhandled", func() bool {
		return errors.Is(l.Signal(t.Context(), h, syscall.SIGUSR1), runner.ErrUnhandled)
	})
	if got := l.Alive(t.Context(), h); got != runner.Alive {
		t.Errorf("the checkpoint signal ended a trainer without a handler: %s", got)
	}
}

func (s suite) stubborn(t *testing.T) {
	l := s.make(t)
	h := s.start(t, l, "trap '' TERM; echo up; while :; do sleep 0.02; done")
	s.says(t, h, "up")
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if err := l.Signal(t.Context(), h, sig); err != nil {
			t.Fatal(err)
		}
	}
	if exit := s.exit(t, l, h); exit.Signal != syscall.SIGKILL.String() {
		t.Errorf("exit record = %+v, want killed", exit)
	}
}

// script: the trainer is the child of a script that handles no signal. The
// checkpoint signal reaches it, and it may save its state after SIGTERM.
func (s suite) script(t *testing.T) {
	l := s.make(t)
	h := s.start(t, l, `sh -c 'trap "echo saved" USR1; trap "sleep 0.3; echo flushed; exit" TERM; echo up; while :; do sleep 0.02; done' & wait`)
	s.says(t, h, "up")
	if err := l.Signal(t.Context(), h, syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	s.says(t, h, "saved")
	if err := l.Signal(t.Context(), h, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.exit(t, l, h)
	s.says(t, h, "flushed")
}
