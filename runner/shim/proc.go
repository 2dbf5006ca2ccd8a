package shim

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// A process as /proc shows it.
type process struct {
	pid, ppid, pgrp int
	state           byte // 'Z' = ended, not reaped yet
	ticks           uint64
}

// stat reads /proc/<pid>/stat; false when there is no such process.
func stat(pid int) (process, bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, false
	}
	// The name, in parentheses, may hold anything; what follows it may not.
	_, rest, ok := strings.Cut(string(text[strings.LastIndexByte(string(text), ')')+1:]), " ")
	f := strings.Fields(rest)
	if !ok || len(f) < 20 {
		return process{}, false
	}
	p := process{pid: pid, state: f[0][0]}
	p.ppid, _ = strconv.Atoi(f[1])
	p.pgrp, _ = strconv.Atoi(f[2])
	p.ticks, _ = strconv.ParseUint(f[19], 10, 64)
	return p, true
}

// processes lists all processes that have not ended.
func processes() []process {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var out []process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if p, ok := stat(pid); ok && p.state != 'Z' {
			out = append(out, p)
		}
	}
	return out
}

// BootID returns the id of this boot of the machine; "" when unknown.
func BootID() string {
	text, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text))
}

// StartTicks returns when pid started, in clock ticks since boot; false when
// it does not run.
func StartTicks(pid int) (uint64, bool) {
	p, ok := stat(pid)
	return p.ticks, ok && p.state != 'Z'
}

// catches reports whether the process has a handler for the signal; without
// one SIGUSR1 would end it.
func catches(pid int, sig syscall.Signal) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		if mask, ok := strings.CutPrefix(line, "SigCgt:"); ok {
			bits, _ := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
			return bits&(1<<(uint(sig)-1)) != 0
		}
	}
	return false
}

// ShimAlive reports whether the handle's shim runs: the same process, not one
// that got its id later.
func (h Handle) ShimAlive() bool { return same(h.PID, h.StartTicks, h.BootID) }

// TrainerAlive reports whether the handle's trainer runs.
func (h Handle) TrainerAlive() bool { return same(h.TrainerPID, h.TrainerTicks, h.BootID) }

// Catches reports whether a process of the trainer's group has a handler for
// the signal: the trainer may be a child of a script.
func (h Handle) Catches(sig syscall.Signal) bool {
	return h.TrainerAlive() && len(catchers(h.TrainerPID, sig)) > 0
}

// catchers lists the processes of a group that have a handler for the signal.
func catchers(group int, sig syscall.Signal) []int {
	var pids []int
	for _, p := range processes() {
		if p.pgrp == group && catches(p.pid, sig) {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

func same(pid int, ticks uint64, boot string) bool {
	if pid <= 0 || boot != BootID() {
		return false
	}
	got, ok := StartTicks(pid)
	return ok && got == ticks
}

// Leftovers lists the processes that carry the mark of an attempt in their
// environment, whoever their parents are by now: what is left when the shim
// itself was killed. When sig is not 0 they get it. The calling process, and
// the shim while it lives, are never among them.
func Leftovers(dir string, sig syscall.Signal) []int {
	h, err := ReadHandle(dir)
	if err != nil || h.BootID != BootID() {
		return nil
	}
	mark := []byte("\x00" + MarkEnv + "=" + dir + "\x00")
	var left []int
	for _, p := range processes() {
		if p.pid == os.Getpid() || p.pid == h.PID && h.ShimAlive() {
			continue
		}
		env, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/environ")
		if err != nil || !bytes.Contains(append(append([]byte{0}, env...), 0), mark) {
			continue
		}
		if now, ok := stat(p.pid); !ok || now.ticks != p.ticks {
			continue // another process by now
		}
		left = append(left, p.pid)
		if sig != 0 {
			_ = syscall.Kill(p.pid, sig)
		}
	}
	return left
}

// MarkEnv is the variable that names the attempt's folder in the environment
// of the trainer and of all that it starts.
const MarkEnv = "ALIDADE_ATTEMPT"
