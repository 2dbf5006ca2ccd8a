package slurm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"alidade/runner"
	"alidade/runner/shim"
	"alidade/runner/slurm"
)

// startAll starts scripts at the same time, as a scheduler's pass does.
func startAll(t *testing.T, l *slurm.Launcher, scripts ...string) []runner.Handle {
	t.Helper()
	handles := make([]runner.Handle, len(scripts))
	errs := make([]error, len(scripts))
	var all sync.WaitGroup
	for i, script := range scripts {
		dir := t.TempDir()
		all.Go(func() {
			handles[i], errs[i] = l.Start(t.Context(), runner.Launch{Dir: dir, Name: fmt.Sprintf("alidade-r%da1", i+1), Threads: 6,
				Argv: []string{"/bin/sh", "-c", script}, Env: []string{"PATH=" + os.Getenv("PATH"), "A=" + fmt.Sprint(i)}})
		})
	}
	all.Wait()
	for i, err := range errs {
		if err != nil {
			t.Fatalf("start %d: %v", i, err)
		}
	}
	t.Cleanup(func() {
		for _, h := range handles {
			_ = l.Signal(context.Background(), h, syscall.SIGKILL)
		}
	})
	return handles
}

// jobOf is the number that Slurm knows an attempt's job by.
func jobOf(t *testing.T, dir string) string {
	t.Helper()
	var rec struct{ Job string }
	text, err := os.ReadFile(filepath.Join(dir, "slurm.json"))
	if err == nil {
		err = json.Unmarshal(text, &rec)
	}
	if err != nil {
		t.Fatal(err)
	}
	return rec.Job
}

// Five runs are one array of which two tasks fit on the node at once. Each is
// found, stopped and judged by itself; so are they by a server that lost the
// numbers.
func testArray(t *testing.T) {
	l := newLauncher(t, runner.SlurmSettings{Array: 8})
	const loop = "trap 'echo saved' USR1; echo $A $ALIDADE_NOT_SET; while :; do sleep 0.05; done"
	hs := startAll(t, l, loop, loop, loop, loop, loop)
	array, _, isArray := strings.Cut(jobOf(t, hs[0].Dir), "_")
	seen := map[string]bool{}
	for _, h := range hs {
		job := jobOf(t, h.Dir)
		if !isArray || !strings.HasPrefix(job, array+"_") || seen[job] {
			t.Fatalf("job %s of array %s: want a task of its own", job, array)
		}
		seen[job] = true
		var rec map[string]any
		text, _ := os.ReadFile(filepath.Join(h.Dir, "slurm.json"))
		if err := json.Unmarshal(text, &rec); err != nil {
			t.Fatal(err)
		}
		delete(rec, "job") // as it is before the answer of sbatch
		text, _ = json.Marshal(rec)
		if err := os.WriteFile(filepath.Join(h.Dir, "slurm.json"), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	other := newLauncher(t, runner.SlurmSettings{Array: 8})
	var up, waiting []runner.Handle
	for i, h := range hs {
		found, err := other.Attach(t.Context(), h.Dir)
		if err != nil || found.Ref == "" {
			t.Fatalf("Attach = %+v, %v", found, err)
		}
		if job := jobOf(t, h.Dir); !seen[job] {
			t.Errorf("attached to job %s, want one of %v", job, seen)
		}
		hs[i] = found
	}
	until(t, "two tasks that run", func() bool {
		up, waiting = nil, nil
		for _, h := range hs {
			if _, err := shim.ReadHandle(h.Dir); err == nil {
				up = append(up, h)
			} else {
				waiting = append(waiting, h)
			}
		}
		return len(up) == 2
	})
	until(t, "the reason of the others", func() bool {
		for _, h := range waiting {
			if why, waits := other.Waiting(t.Context(), h); !waits || !strings.Contains(why, "_") || !strings.Contains(why, "waits in Slurm") {
				return false
			}
		}
		return true
	})
	until(t, "the tasks to be up", func() bool { return stdout(up[0]) != "" && stdout(up[1]) != "" })
	began := time.Now()
	if err := other.Signal(t.Context(), up[0], syscall.SIGUSR1); err != nil {
		t.Errorf("SIGUSR1: %v", err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("a signal to a task took %s", took)
	}
	if text, err := other.Dump(t.Context(), up[1]); err != nil || !strings.Contains(text, "0 processes") {
		t.Errorf("Dump of a task = %q, %v; want it answered, its processes carry no mark", text, err)
	}
	time.Sleep(6 * time.Second) // Slurm would send it again after 5 s
	if got := strings.Count(stdout(up[0]), "saved"); got != 1 {
		t.Errorf("the checkpoint signal came %d times, want once", got)
	}
	for _, h := range []runner.Handle{waiting[0], up[0]} {
		if err := other.Signal(t.Context(), h, syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		ended(t, other, h)
	}
	if e, known := other.Ending(t.Context(), waiting[0]); !known || e.Code != "cancelled" {
		t.Errorf("ending of the task that was cancelled while it waited = %+v, %v", e, known)
	}
	if exit, err := shim.ReadExit(up[0].Dir); err != nil || exit.Signal != syscall.SIGTERM.String() {
		t.Errorf("exit of the task that was stopped = %+v, %v", exit, err)
	}
	if s, err := shim.ReadHandle(up[0].Dir); err != nil || !seen[s.Job] {
		t.Errorf("the shim says job %q, want one of %v", s.Job, seen)
	}
	until(t, "the next task in its place", func() bool {
		_, a := shim.ReadHandle(waiting[1].Dir)
		_, b := shim.ReadHandle(waiting[2].Dir)
		return a == nil || b == nil
	})
	if got := other.Alive(t.Context(), up[1]); got != runner.Alive {
		t.Errorf("the task that nobody stopped is %s", got)
	}
	for _, h := range hs {
		if err := other.Signal(t.Context(), h, syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	for i, h := range hs {
		ended(t, other, h)
		if s, err := shim.ReadHandle(h.Dir); err == nil && s.PID != 0 && !strings.HasPrefix(stdout(h), fmt.Sprintf("%d\n", i)) {
			t.Errorf("run %d wrote %q", i, stdout(h))
		}
	}
}

func stdout(h runner.Handle) string {
	text, _ := os.ReadFile(filepath.Join(h.Dir, shim.StdoutFile))
	return string(text)
}

// wrap puts a program of its own name before one of Slurm's; real is its path.
func wrap(t *testing.T, program, script string) {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, program), []byte("#!/bin/sh\nreal="+path+"\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// sbatch takes the job and its answer is lost: the run has failed to start, and
// the job that starts later starts no trainer.
func testNoAnswer(t *testing.T) {
	wrap(t, "sbatch", `$real "$@" >&2; echo "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation" >&2; exit 1`)
	for _, size := range []int{0, 8} {
		l, dir := newLauncher(t, runner.SlurmSettings{Array: size}), t.TempDir()
		l.AlwaysArrays()
		if _, err := l.Start(t.Context(), runner.Launch{Dir: dir, Argv: []string{"/bin/sh", "-c", "echo started"}}); err == nil || !strings.Contains(err.Error(), "timed out") {
			t.Errorf("Start = %v, want Slurm's words", err)
		}
		until(t, "end of the job", func() bool {
			out, err := exec.Command("squeue", "--noheader", "--states=PENDING,RUNNING,COMPLETING").Output()
			return err == nil && len(out) == 0
		})
		if text, err := os.ReadFile(filepath.Join(dir, shim.StdoutFile)); err == nil {
			t.Errorf("the trainer of a run that was told to have failed has run: %q", text)
		}
	}
}

// Where arrays are refused each run is submitted by itself.
func testNoArrays(t *testing.T) {
	wrap(t, "sbatch", `case "$*" in *--array*) echo "sbatch: error: Batch job submission failed: Invalid job array specification" >&2; exit 1;; esac
exec $real "$@"`)
	l := newLauncher(t, runner.SlurmSettings{Array: 8})
	began := time.Now()
	for _, h := range startAll(t, l, "echo $A", "echo $A") {
		if job := jobOf(t, h.Dir); strings.Contains(job, "_") {
			t.Errorf("job %s, want no task of an array", job)
		}
		ended(t, l, h)
		if exit, err := shim.ReadExit(h.Dir); err != nil || exit.ExitCode != 0 {
			t.Errorf("exit = %+v, %v after %s", exit, err, time.Since(began))
		}
	}
}
