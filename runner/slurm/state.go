package slurm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"alidade/runner"
	"alidade/runner/shim"
)

// A job as squeue, scontrol or sacct shows it.
type job struct {
	state  string // "RUNNING"; of "CANCELLED by 1000" the first word
	reason string // a code such as "Resources"; newer versions put words there
	node   string
}

// ended reports whether nothing of a job in this state runs or will run.
// COMPLETING is not the end.
func (j job) ended() bool {
	switch j.state {
	case "COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE", "REVOKED":
		return true
	}
	return false
}

func (j job) waits() bool {
	switch j.state {
	case "PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD", "REQUEUE_FED":
		return true
	}
	return false
}

// parseQueue reads squeue's "%i|%T|%r|%N" lines. The JSON form differs between
// versions and is wrong in some; this one is stable.
func parseQueue(text string) map[string]job {
	jobs := make(map[string]job)
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSpace(line), "|")
		if len(f) < 4 {
			continue
		}
		jobs[f[0]] = job{state: firstWord(f[1]), reason: f[2], node: f[3]}
	}
	return jobs
}

// parseShow reads one line of `scontrol show job -o`.
func parseShow(text string) (job, bool) {
	var j job
	for _, word := range strings.Fields(text) {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "JobState":
			j.state = value
		case "Reason":
			j.reason = value
		case "NodeList", "BatchHost":
			if value != "(null)" {
				j.node = value
			}
		}
	}
	return j, j.state != ""
}

// parseAccounts reads the first line of `sacct -X -P -n -o State,Reason,NodeList`.
func parseAccounts(text string) (job, bool) {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	f := strings.Split(line, "|")
	if len(f) < 3 || f[0] == "" {
		return job{}, false
	}
	return job{state: firstWord(f[0]), reason: f[1], node: f[2]}, true
}

func firstWord(s string) string {
	word, _, _ := strings.Cut(s, " ")
	return strings.TrimRight(word, "+*")
}

// look starts a look at the queue when the last one is old, and returns what
// is known of a job. One look serves all jobs.
func (l *Launcher) look(id string) (j job, listed bool, at time.Time, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.looking && time.Since(l.looked) >= l.poll {
		l.looking = true
		go l.lookNow() // bounded by callTimeout
	}
	j, listed = l.jobs[id]
	return j, listed, l.looked, l.failing
}

// lookSince looks now, unless one that began since then has come back
// meanwhile: many runs that were submitted together need one look.
func (l *Launcher) lookSince(submitted time.Time) {
	l.first.Lock()
	defer l.first.Unlock()
	l.mu.Lock()
	known := !l.looked.Before(submitted)
	l.mu.Unlock()
	if !known {
		l.lookNow()
	}
}

func (l *Launcher) lookNow() {
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	out, err := call(ctx, "squeue", "--me", "--noheader", "--array", "--states=all", "--format=%i|%T|%r|%N")
	l.mu.Lock()
	defer l.mu.Unlock()
	l.looking = false
	if err != nil {
		if l.failing == nil {
			l.log.Warn("the cluster's queue cannot be read", "component", "slurm", "err", err)
		}
		l.failing, l.looked = err, began // not at once again
		return
	}
	l.failing, l.looked, l.jobs = nil, began, parseQueue(out)
	for id := range l.missed {
		if _, ok := l.jobs[id]; !ok {
			l.missed[id]++
		} else {
			delete(l.missed, id)
		}
	}
}

// Alive implements runner.Launcher. A queue that cannot be read makes nothing
// gone; the shim's own word that nothing is left does, at once.
func (l *Launcher) Alive(_ context.Context, h runner.Handle) runner.Liveness {
	rec, err := parse(h)
	if err != nil {
		return runner.Unknown
	}
	if s, err := shim.ReadHandle(h.Dir); err == nil && (!s.Left.IsZero() || s.PID == 0) {
		return runner.Gone
	}
	j, listed, at, err := l.look(rec.Job)
	if at.Before(rec.Submitted) && err == nil { // nothing is known of it yet
		l.lookSince(rec.Submitted)
		j, listed, at, err = l.look(rec.Job)
	}
	switch {
	case err != nil, at.Before(rec.Submitted):
		return runner.Unknown
	case listed && j.ended():
		return runner.Gone
	case listed:
		return runner.Alive
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.missed[rec.Job]; !ok {
		l.missed[rec.Job] = 0
	}
	if l.missed[rec.Job] >= 2 { // Slurm forgets ended jobs after some minutes
		return runner.Gone
	}
	return runner.Unknown
}

// Waiting implements runner.Waiter: what a job that has not started waits for,
// in Slurm's word.
func (l *Launcher) Waiting(_ context.Context, h runner.Handle) (string, bool) {
	rec, err := parse(h)
	if err != nil {
		return "", false
	}
	if _, err := shim.ReadHandle(h.Dir); err == nil {
		return "", false
	}
	j, listed, _, _ := l.look(rec.Job)
	if !listed {
		return fmt.Sprintf("job %s was handed to Slurm", rec.Job), true
	}
	return fmt.Sprintf("job %s waits in Slurm: %s", rec.Job, inWords(j.reason)), j.waits()
}

// Ending implements runner.Ender.
func (l *Launcher) Ending(ctx context.Context, h runner.Handle) (runner.Ending, bool) {
	rec, err := parse(h)
	if err != nil {
		return runner.Ending{}, false
	}
	if exit, err := shim.ReadExit(h.Dir); err == nil {
		if exit.Because == shim.BecauseTimeLimit {
			return runner.Ending{Code: "time-limit", Text: "it was saved and ended before the time limit of its job"}, true
		}
	}
	j, known := l.final(ctx, rec.Job)
	if !known {
		return neverStarted(h.Dir)
	}
	says := fmt.Sprintf(" (Slurm says %s, %s, for job %s)", j.state, j.reason, rec.Job)
	switch j.state {
	case "TIMEOUT", "DEADLINE":
		return runner.Ending{Code: "time-limit", Text: "the time limit of its job has passed" + says}, true
	case "PREEMPTED":
		return runner.Ending{Code: "preempted", Text: "another job took its place" + says}, true
	case "NODE_FAIL", "BOOT_FAIL":
		return runner.Ending{Code: "node-failed", Text: "its node " + j.node + " failed" + says}, true
	case "OUT_OF_MEMORY":
		return runner.Ending{Code: "oom-killer", Text: "its job used more memory than it asked for" + says}, true
	case "CANCELLED":
		return runner.Ending{Code: "cancelled", Text: "its job was cancelled from outside Alidade" + says}, true
	case "FAILED":
		if _, err := shim.ReadHandle(h.Dir); err != nil {
			path := filepath.Join(h.Dir, logFile)
			if rec.Array != "" {
				path = filepath.Join(filepath.Dir(rec.Array), fmt.Sprintf("slurm-%d.log", rec.Index))
			}
			text, _ := os.ReadFile(path)
			return runner.Ending{Code: "not-started", Text: fmt.Sprintf("its job ended before the trainer was started%s: %.300s", says, bytes.TrimSpace(text))}, true
		}
	}
	return runner.Ending{Text: says}, true
}

// neverStarted is for a job that Slurm does not know any more, as a task of an
// array that was cancelled while it waited: when its folder is unclaimed it has
// not started, and from now on cannot.
func neverStarted(dir string) (runner.Ending, bool) {
	if shim.Abandon(dir) != nil {
		return runner.Ending{}, false
	}
	return runner.Ending{Code: "cancelled", Text: "its job left Slurm's queue before it was started: it was cancelled from outside Alidade"}, true
}

// final asks Slurm how a job ended: its short memory first, then the accounts,
// where the site keeps some. A job that is still completing is waited for a
// moment.
func (l *Launcher) final(ctx context.Context, id string) (job, bool) {
	for range 20 {
		out, err := call(ctx, "scontrol", "show", "job", "-o", id)
		if err != nil {
			break
		}
		j, ok := parseShow(out)
		if !ok || j.ended() {
			return j, ok
		}
		select {
		case <-ctx.Done():
			return j, false
		case <-time.After(250 * time.Millisecond):
		}
	}
	out, err := call(ctx, "sacct", "-X", "-P", "-n", "-j", id, "-o", "State,Reason,NodeList")
	if err != nil {
		return job{}, false
	}
	return parseAccounts(out)
}

// call runs one of Slurm's programs; no shell is involved.
func call(ctx context.Context, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.WaitDelay = time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = errors.New("no answer")
		}
		return "", fmt.Errorf("%s: %w: %.500s", program, err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.String(), nil
}

func installed(program string) error {
	if _, err := exec.LookPath(program); err != nil {
		return fmt.Errorf("%s is not installed", program)
	}
	return nil
}
