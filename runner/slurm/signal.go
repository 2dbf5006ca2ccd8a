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
	if sig == syscall.SIGKILL {
		return l.kill(ctx, h, rec)
	}
	reached, known, err := deliver(ctx, h, rec, sig)
	if err == nil && known && reached == 0 && sig == syscall.SIGUSR1 {
		return runner.ErrUnhandled
	}
	return err
}

func number(sig syscall.Signal) string { return fmt.Sprint(int(sig)) }

// deliver sends a signal to a job's shim until that says that it has it, and
// whom of the trainer's processes it reached; not known is a slow node or file
// system. The shim's word is what counts: for a task of an array that has tasks
// in the queue, Slurm delivers the signal, calls that a failure, and delivers it
// again and again.
func deliver(ctx context.Context, h runner.Handle, rec record, sig syscall.Signal) (reached int, known bool, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop() // ends a scancel that would send it again
	path := filepath.Join(h.Dir, shim.SignalsFile)
	before, _ := os.ReadFile(path)
	sent := make(chan error, 1)
	go func() { sent <- cancel(ctx, rec.Job, "--batch", "--signal="+number(sig)) }()
	var until time.Time
	for until.IsZero() || time.Now().Before(until) {
		select {
		case err = <-sent:
			until = time.Now().Add(answerWithin)
			if err != nil {
				until = time.Now() // one more look
			}
		case <-ctx.Done():
			return 0, false, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
		if p, ok := passed(path, len(before), sig); ok {
			return p.Reached, true, nil
		}
		if s, herr := shim.ReadHandle(h.Dir); herr == nil && !s.Left.IsZero() {
			return 0, false, nil // it has ended meanwhile
		}
	}
	return 0, false, err
}

// passed finds what a shim has noted of a signal behind what was there before.
func passed(path string, before int, sig syscall.Signal) (p shim.Passed, ok bool) {
	text, err := os.ReadFile(path)
	if err != nil || len(text) <= before {
		return p, false
	}
	for line := range strings.Lines(string(text[before:])) {
		if strings.HasSuffix(line, "\n") && json.Unmarshal([]byte(line), &p) == nil && p.Signal == sig.String() {
			return p, true
		}
	}
	return p, false
}

// kill asks the shim to kill the trainer, and after a while Slurm to kill the
// job.
func (l *Launcher) kill(ctx context.Context, h runner.Handle, rec record) error {
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
	_, _, err := deliver(ctx, h, rec, syscall.SIGQUIT)
	return err
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
