package shim

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	dumpTimeout = 15 * time.Second
	mostDumped  = 64 // processes, and threads of each
)

// AskDump is the signal by which the shim of a cluster's job is asked for a
// [Dump]. One that does not know it ignores it.
const AskDump = syscall.SIGWINCH

// DumpName is the name of a dump's file.
func DumpName(at time.Time) string { return "dump-" + at.Format("20060102-150405") + ".txt" }

// Dump says what the processes of an attempt are doing on this machine. It
// changes nothing in them.
func Dump(ctx context.Context, title string, pids []int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s: %d processes\n", title, time.Now().Format(time.RFC3339), len(pids))
	for _, pid := range pids[:min(len(pids), mostDumped)] {
		b.WriteString(processState(pid))
		b.WriteString(pythonStacks(ctx, pid))
	}
	return b.String()
}

// dump writes a [Dump] into the attempt's folder, whole or not at all.
func dump(dir string) int {
	ctx, cancel := context.WithTimeout(context.Background(), dumpTimeout)
	defer cancel()
	host, _ := os.Hostname()
	text := Dump(ctx, dir+" on "+host, Leftovers(dir, 0))
	temp := filepath.Join(dir, fmt.Sprintf(".dump-%d", os.Getpid()))
	if err := os.WriteFile(temp, []byte(text), 0o600); err != nil {
		return codeRecord
	}
	if err := os.Rename(temp, filepath.Join(dir, DumpName(time.Now()))); err != nil {
		return codeRecord
	}
	return codeOK
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
