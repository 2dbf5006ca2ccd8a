// Package local starts trainers on this machine, each beside a shim that
// outlives the server. See [New].
package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"alidade/runner"
	"alidade/runner/shim"
)

// startTimeout bounds the wait for a shim to say that its trainer runs. The
// wait is short in practice: a process start and two synced writes.
const startTimeout = 20 * time.Second

// Launcher starts trainers on this machine. It keeps no state: handles are
// read from the attempts' folders.
type Launcher struct {
	exe string
}

// New makes a launcher that runs the shim as `exe shim --dir …`; exe is the
// path of Alidade's own binary.
func New(exe string) (*Launcher, error) {
	if exe == "" {
		return nil, errors.New("local launcher: no path of the own binary")
	}
	return &Launcher{exe: exe}, nil
}

// Start starts the shim in a session of its own and returns when the shim has
// recorded that the trainer runs, or that it could not be started.
func (l *Launcher) Start(ctx context.Context, want runner.Launch) (runner.Handle, error) {
	log, err := os.OpenFile(filepath.Join(want.Dir, "shim.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return runner.Handle{}, fmt.Errorf("start shim: %w", err)
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(l.exe, append([]string{"shim", "--dir", want.Dir, "--"}, want.Argv...)...) //nolint:gosec // argv of the recipe, no shell
	cmd.Env, cmd.Dir = want.Env, want.WorkDir
	if cmd.Env == nil {
		cmd.Env = []string{} // nil would pass on the server's
	}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return runner.Handle{}, fmt.Errorf("start shim: %w", err)
	}
	ended := make(chan struct{})
	go func() { // reaps the shim; ends with it, which may be after the server has
		_ = cmd.Wait()
		close(ended)
	}()
	return l.started(ctx, want.Dir, ended)
}

// started waits for the first of: trainer running, trainer ended, shim gone.
func (l *Launcher) started(ctx context.Context, dir string, ended <-chan struct{}) (runner.Handle, error) {
	deadline := time.Now().Add(startTimeout)
	for gone := false; ; {
		h, err := shim.ReadHandle(dir)
		switch {
		case err == nil && h.TrainerPID > 0:
			return handle(dir, h), nil
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return runner.Handle{}, fmt.Errorf("start trainer: %w", err)
		}
		if exit, err := shim.ReadExit(dir); err == nil && exit.Error != "" {
			return runner.Handle{}, errors.New(exit.Error)
		}
		if gone || time.Now().After(deadline) {
			return l.giveUp(dir)
		}
		select {
		case <-ended: // look once more: it may have written last
			gone = true
		case <-ctx.Done(): // the shim goes on and is found by Attach
			return handle(dir, h), nil
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// giveUp makes sure that a shim that did not come up never starts a trainer.
func (l *Launcher) giveUp(dir string) (runner.Handle, error) {
	switch err := shim.Abandon(dir); {
	case err == nil:
		text, _ := os.ReadFile(filepath.Join(dir, "shim.log"))
		return runner.Handle{}, fmt.Errorf("start shim: it did not come up: %.300s", text)
	case !errors.Is(err, shim.ErrClaimed):
		return runner.Handle{}, fmt.Errorf("start shim: %w", err)
	}
	h, err := shim.ReadHandle(dir) // it came up late, or fell over between its two records
	if err != nil {
		return runner.Handle{}, fmt.Errorf("start shim: %w", err)
	}
	if h.PID == 0 {
		return runner.Handle{}, fmt.Errorf("start shim: %w", shim.ErrClaimed)
	}
	return handle(dir, h), nil
}

// Attach reads the handle of an attempt. Where no shim has come up it makes
// sure that none will, and returns runner.ErrNotStarted.
func (l *Launcher) Attach(_ context.Context, dir string) (runner.Handle, error) {
	h, err := shim.ReadHandle(dir)
	if errors.Is(err, fs.ErrNotExist) {
		switch aerr := shim.Abandon(dir); {
		case aerr == nil, errors.Is(aerr, fs.ErrNotExist):
			return runner.Handle{}, runner.ErrNotStarted
		case !errors.Is(aerr, shim.ErrClaimed):
			return runner.Handle{}, fmt.Errorf("attach: %w", aerr)
		}
		h, err = shim.ReadHandle(dir)
	}
	if err != nil {
		return runner.Handle{}, fmt.Errorf("attach: %w", err)
	}
	if h.PID == 0 {
		return runner.Handle{}, runner.ErrNotStarted
	}
	return handle(dir, h), nil
}

// Alive reports whether the attempt's shim or trainer runs. A process that
// got the id later is told apart by its start time and the boot id.
func (l *Launcher) Alive(_ context.Context, rh runner.Handle) runner.Liveness {
	h, err := parse(rh)
	if err != nil {
		return runner.Unknown
	}
	if h.ShimAlive() || h.TrainerAlive() {
		return runner.Alive
	}
	if h.TrainerPID == 0 { // an early record: a later one may name a trainer
		if now, err := shim.ReadHandle(rh.Dir); err == nil && now.TrainerAlive() {
			return runner.Alive
		}
	}
	return runner.Gone
}

// Signal signals through the shim, which reaches the trainer's whole group.
// SIGKILL goes to the group itself, so that the shim can still record it.
func (l *Launcher) Signal(_ context.Context, rh runner.Handle, sig syscall.Signal) error {
	h, err := parse(rh)
	if err != nil {
		return err
	}
	if h.TrainerPID == 0 {
		if now, err := shim.ReadHandle(rh.Dir); err == nil {
			h = now
		}
	}
	if sig == syscall.SIGUSR1 && !h.Catches(sig) {
		return runner.ErrUnhandled
	}
	switch {
	case sig != syscall.SIGKILL && h.ShimAlive():
		err = syscall.Kill(h.PID, sig)
	case h.TrainerAlive():
		err = syscall.Kill(-h.TrainerPID, sig)
	}
	if err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal %s: %w", sig, err)
	}
	return nil
}

// Leftovers lists what an ended attempt left behind on this machine, whoever
// the parents are by now; with a signal it gets that.
func (l *Launcher) Leftovers(_ context.Context, rh runner.Handle, sig syscall.Signal) []int {
	return shim.Leftovers(rh.Dir, sig)
}

func handle(dir string, h shim.Handle) runner.Handle {
	ref, _ := json.Marshal(h)
	return runner.Handle{Dir: dir, PID: h.TrainerPID, Ref: string(ref)}
}

func parse(rh runner.Handle) (shim.Handle, error) {
	var h shim.Handle
	if err := json.Unmarshal([]byte(rh.Ref), &h); err != nil {
		return h, fmt.Errorf("handle of %s: %w", rh.Dir, err)
	}
	return h, nil
}
