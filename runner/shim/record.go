package shim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// The files of an attempt's folder that the shim writes.
const (
	HandleFile = "shim.json"
	ExitFile   = "exit.json"
	StdoutFile = "stdout.log"
	StderrFile = "stderr.log"
)

// A Handle identifies the shim and its trainer for good: a process id alone
// can be reused, with its start time and the boot id it cannot. It is the
// content of shim.json.
type Handle struct {
	PID          int       `json:"pid"`         // of the shim; 0 = the folder was given up before a shim started
	StartTicks   uint64    `json:"start_ticks"` // field 22 of /proc/<pid>/stat
	BootID       string    `json:"boot_id"`
	TrainerPID   int       `json:"trainer_pid"` // 0 = not started yet; also its process group
	TrainerTicks uint64    `json:"trainer_start_ticks,omitempty"`
	Started      time.Time `json:"started"`
	Host         string    `json:"host,omitempty"`
	Job          string    `json:"job,omitempty"` // of the cluster
	Left         time.Time `json:"left,omitzero"` // in a cluster's job: when nothing of it ran any more
}

// Exit is the content of exit.json: how the trainer ended.
type Exit struct {
	ExitCode  int       `json:"exit_code"`        // -1 when a signal ended it, 127 when it could not be started
	Signal    string    `json:"signal,omitempty"` // "killed", "segmentation fault"
	Started   time.Time `json:"started"`
	Ended     time.Time `json:"ended"`
	LastedS   float64   `json:"lasted_s,omitempty"` // from Started to Ended by the monotonic clock: the other two lie when the clock is set
	MaxRSSKiB int64     `json:"max_rss_kib"`        // of the largest process
	UserS     float64   `json:"user_s"`
	SysS      float64   `json:"sys_s"`
	OOMKills  int64     `json:"oom_kills,omitempty"` // of the out-of-memory killer meanwhile, in this control group or else on this machine
	Error     string    `json:"error,omitempty"`     // why it could not be started
	Because   string    `json:"because,omitempty"`   // why the shim itself asked it to end: "time-limit"
}

// ErrClaimed says that the attempt's folder belongs to someone else: another
// shim, or a server that gave the attempt up.
var ErrClaimed = errors.New("attempt folder is claimed already")

// ReadHandle reads shim.json; fs.ErrNotExist when no shim has claimed dir.
func ReadHandle(dir string) (Handle, error) {
	var h Handle
	return h, readJSON(filepath.Join(dir, HandleFile), &h)
}

// ReadExit reads exit.json; fs.ErrNotExist while the trainer has not ended.
func ReadExit(dir string) (Exit, error) {
	var e Exit
	return e, readJSON(filepath.Join(dir, ExitFile), &e)
}

// Abandon claims an attempt's folder in which no shim has started, so that a
// late one cannot start its trainer any more. ErrClaimed when one has.
func Abandon(dir string) error {
	return claim(dir, Handle{Started: time.Now()})
}

// claim writes shim.json if there is none; exactly one claimer wins.
func claim(dir string, h Handle) error {
	temp, err := writeTemp(dir, HandleFile, h)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temp) }()
	if err := os.Link(temp, filepath.Join(dir, HandleFile)); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return ErrClaimed
		}
		return fmt.Errorf("claim attempt folder: %w", err)
	}
	return syncDir(dir)
}

// replace writes a record so that a reader, or a power cut, sees the old or
// the new one, whole.
func replace(dir, name string, v any) error {
	temp, err := writeTemp(dir, name, v)
	if err != nil {
		return err
	}
	if err := os.Rename(temp, filepath.Join(dir, name)); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return syncDir(dir)
}

func writeTemp(dir, name string, v any) (path string, err error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("write %s: %w", name, err)
	}
	f, err := os.CreateTemp(dir, name+".*")
	if err != nil {
		return "", fmt.Errorf("write %s: %w", name, err)
	}
	_, err = f.Write(append(text, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return "", fmt.Errorf("write %s: %w", name, err)
	}
	return f.Name(), nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync folder: %w", err)
	}
	defer func() { _ = d.Close() }()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("sync folder: %w", err)
	}
	return nil
}

func readJSON(path string, v any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// oomKills counts the out-of-memory killer's victims so far: in this process's
// control group when that can be read, else on the machine.
func oomKills() int64 {
	if group, err := os.ReadFile("/proc/self/cgroup"); err == nil {
		_, path, _ := strings.Cut(strings.TrimSpace(string(group)), "0::")
		if n, ok := counter(filepath.Join("/sys/fs/cgroup", path, "memory.events"), "oom_kill"); ok {
			return n
		}
	}
	n, _ := counter("/proc/vmstat", "oom_kill")
	return n
}

func counter(file, key string) (int64, bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		if name, value, _ := strings.Cut(strings.TrimSpace(line), " "); name == key {
			n, err := strconv.ParseInt(value, 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
