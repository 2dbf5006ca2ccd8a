package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"alidade/ablation"
)

const (
	dumpTimeout = 20 * time.Second
	mostDumped  = 64 // processes
)

// Dump says what each process of a live run is doing, for a run that has
// stalled: its state and where it waits, from /proc, and the Python stacks
// where py-spy is installed. It changes nothing in the run. The text is kept
// in the attempt's folder as dump-<time>.txt.
func (r *Runner) Dump(ctx context.Context, id ablation.RunID) (string, error) {
	sweeper, ok := r.cfg.Launcher.(Sweeper)
	if !ok {
		return "", errors.New("dump: the run's processes are not on this machine")
	}
	run, err := r.store.Run(ctx, id)
	if err != nil {
		return "", fmt.Errorf("dump run %d: %w", id, err)
	}
	if !run.State.Live() {
		return "", fmt.Errorf("dump run %d: it is %s: %w", id, run.State, ablation.ErrConflict)
	}
	dir := r.attemptDir(id, run.Attempt)
	h, err := r.cfg.Launcher.Attach(ctx, dir)
	if err != nil {
		return "", fmt.Errorf("dump run %d: %w", id, err)
	}
	ctx, cancel := context.WithTimeout(ctx, dumpTimeout)
	defer cancel()
	var b strings.Builder
	pids := sweeper.Leftovers(ctx, h, 0)
	fmt.Fprintf(&b, "run %d, attempt %d, %s: %d processes\n", id, run.Attempt, time.Now().Format(time.RFC3339), len(pids))
	for _, pid := range pids[:min(len(pids), mostDumped)] {
		b.WriteString(processState(pid))
		b.WriteString(pythonStacks(ctx, pid))
	}
	text := b.String()
	path := filepath.Join(dir, "dump-"+time.Now().Format("20060102-150405")+".txt")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return text, fmt.Errorf("keep dump: %w", err)
	}
	return text, nil
}

// lastDump is the newest dump in an attempt's folder; "" = none.
func lastDump(dir string) string {
	all, err := filepath.Glob(filepath.Join(dir, "dump-*.txt"))
	if err != nil || len(all) == 0 {
		return ""
	}
	return slices.Max(all) // named by their time
}

// processState is one process with its threads.
func processState(pid int) string {
	root := filepath.Join("/proc", strconv.Itoa(pid))
	line, _ := os.ReadFile(filepath.Join(root, "cmdline"))
	words := strings.ReplaceAll(strings.TrimRight(string(line), "\x00"), "\x00", " ")
	var b strings.Builder
	fmt.Fprintf(&b, "\nprocess %d: %.200s\n", pid, words)
	tasks, _ := os.ReadDir(filepath.Join(root, "task"))
	for _, t := range tasks[:min(len(tasks), mostDumped)] {
		task := filepath.Join(root, "task", t.Name())
		name, _ := os.ReadFile(filepath.Join(task, "comm"))
		waits, _ := os.ReadFile(filepath.Join(task, "wchan"))
		status, _ := os.ReadFile(filepath.Join(task, "status"))
		state := ""
		for l := range strings.Lines(string(status)) {
			if s, ok := strings.CutPrefix(l, "State:"); ok {
				state = strings.TrimSpace(s)
			}
		}
		fmt.Fprintf(&b, "  thread %s %-16s %-16s waits in %s\n", t.Name(), bytes.TrimSpace(name), state, waits)
	}
	return b.String()
}

// pythonStacks asks py-spy, where it is installed.
func pythonStacks(ctx context.Context, pid int) string {
	path, err := exec.LookPath("py-spy")
	if err != nil {
		return ""
	}
	out, err := exec.CommandContext(ctx, path, "dump", "--nonblocking", "--pid", strconv.Itoa(pid)).Output()
	if err != nil {
		return ""
	}
	return string(out)
}
