package slurm

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"alidade/runner"
	"alidade/runner/shim"
)

// Signal passes a signal to the job's shim, which reaches the trainer's whole
// group. SIGKILL goes as SIGQUIT, which makes the shim kill the trainer and
// record it; a shim that does not obey is killed by Slurm. A job that has not
// started is cancelled by any but SIGUSR1.
func (l *Launcher) Signal(ctx context.Context, h runner.Handle, sig syscall.Signal) error {
	rec, err := parse(h)
	if err != nil {
		return err
	}
	s, err := shim.ReadHandle(h.Dir)
	switch {
	case err == nil && !s.Left.IsZero():
		return nil // it has ended
	case err != nil && sig == syscall.SIGUSR1:
		return runner.ErrUnhandled
	case err != nil:
		return cancel(ctx, rec.Job)
	}
	switch sig {
	case syscall.SIGUSR1:
		return l.checkpoint(ctx, h, rec)
	case syscall.SIGKILL:
		return l.kill(ctx, rec)
	}
	return cancel(ctx, rec.Job, "--batch", "--signal="+number(sig))
}

func number(sig syscall.Signal) string { return fmt.Sprint(int(sig)) }

// checkpoint sends SIGUSR1 and waits until the shim says whom it reached.
func (l *Launcher) checkpoint(ctx context.Context, h runner.Handle, rec record) error {
	path := filepath.Join(h.Dir, shim.SignalsFile)
	before, _ := os.ReadFile(path)
	if err := cancel(ctx, rec.Job, "--batch", "--signal="+number(syscall.SIGUSR1)); err != nil {
		return err
	}
	for until := time.Now().Add(answerWithin); time.Now().Before(until); {
		text, err := os.ReadFile(path)
		if err == nil && len(text) > len(before) && strings.HasSuffix(string(text), "\n") {
			for line := range strings.Lines(string(text[len(before):])) {
				var p shim.Passed
				if json.Unmarshal([]byte(line), &p) == nil && p.Signal == syscall.SIGUSR1.String() {
					if p.Reached == 0 {
						return runner.ErrUnhandled
					}
					return nil
				}
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil // a slow node, or a slow file system: it was sent
}

// kill asks the shim to kill the trainer, and after a while Slurm to kill the
// job.
func (l *Launcher) kill(ctx context.Context, rec record) error {
	l.mu.Lock()
	first, asked := l.killed[rec.Job]
	if !asked {
		first = time.Now()
		l.killed[rec.Job] = first
	}
	l.mu.Unlock()
	if time.Since(first) > killWithin {
		return cancel(ctx, rec.Job)
	}
	return cancel(ctx, rec.Job, "--batch", "--signal="+number(syscall.SIGQUIT))
}

// cancel runs scancel. A job that has ended or is unknown by now is no error.
func cancel(ctx context.Context, id string, options ...string) error {
	_, err := call(ctx, "scancel", append(options, id)...)
	if err == nil {
		return nil
	}
	for _, done := range []string{"already completing or completed", "Invalid job id", "not running", "already finished"} {
		if strings.Contains(err.Error(), done) {
			return nil
		}
	}
	if over(ctx, id) { // some versions fail without a word
		return nil
	}
	return fmt.Errorf("signal job %s: %w", id, err)
}

// over reports whether Slurm says that a job has ended.
func over(ctx context.Context, id string) bool {
	out, err := call(ctx, "squeue", "--noheader", "--array", "--states=all", "--jobs="+id, "--format=%i|%T|%r|%N")
	return err == nil && parseQueue(out)[id].ended()
}
