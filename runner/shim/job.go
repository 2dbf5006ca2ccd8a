package shim

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The files of an attempt's folder by which a cluster's job is told what to
// run, and tells what it did with signals.
const (
	JobFile     = "job.json"
	SignalsFile = "signals.jsonl"
)

// A Job says what a cluster's job runs. It is read from a file, so that
// neither a shell nor a list of processes sees it.
type Job struct {
	Argv    []string `json:"argv"`
	Env     []string `json:"env"` // besides what the cluster sets for the job
	WorkDir string   `json:"work_dir,omitempty"`
	WarnS   int      `json:"warn_s"` // the warning comes at least so long before the time limit
}

// A Passed is one line of signals.jsonl.
type Passed struct {
	Signal  string    `json:"signal"`
	Reached int       `json:"reached"` // processes that got it; SIGUSR1 goes only to those that handle it
	At      time.Time `json:"at"`
}

// BecauseTimeLimit is the reason in the exit record of a trainer that was asked
// to save and end before its job's time limit.
const BecauseTimeLimit = "time-limit"

// WriteJob writes job.json, for its owner's eyes: an environment may hold
// secrets.
func WriteJob(dir string, j Job) error { return replace(dir, JobFile, j) }

// Array is a job array's manifest: the folder of each task's attempt.
type Array struct {
	Dirs []string `json:"dirs"`
}

// WriteArray writes a job array's manifest.
func WriteArray(path string, dirs []string) error {
	return replace(filepath.Dir(path), filepath.Base(path), Array{Dirs: dirs})
}

// taskDir is the attempt's folder of the array's task that this process is.
func taskDir(manifest string) (string, error) {
	var a Array
	if err := readJSON(manifest, &a); err != nil {
		return "", err
	}
	text := os.Getenv("SLURM_ARRAY_TASK_ID")
	i, err := strconv.Atoi(text)
	if err != nil || i < 0 || i >= len(a.Dirs) {
		return "", fmt.Errorf("SLURM_ARRAY_TASK_ID is %q: want one of the %d tasks in %s", text, len(a.Dirs), manifest)
	}
	return a.Dirs[i], nil
}

// jobID is the cluster's number of the job that this process is in, as its
// programs take it; "" outside a job.
func jobID() string {
	if array := os.Getenv("SLURM_ARRAY_JOB_ID"); array != "" {
		return array + "_" + os.Getenv("SLURM_ARRAY_TASK_ID")
	}
	return os.Getenv("SLURM_JOB_ID")
}

// clusterEnv are the variables that a cluster sets for its job and that the
// trainer must see.
var clusterEnv = []string{"CUDA_VISIBLE_DEVICES=", "GPU_DEVICE_ORDINAL=", "ROCR_VISIBLE_DEVICES=", "ZE_AFFINITY_MASK=", "SLURM_", "TMPDIR="}

// loadJob takes what to run from a file.
func (s *shim) loadJob(path string) error {
	if err := readJSON(path, &s.job); err != nil {
		return err
	}
	if len(s.job.Argv) == 0 {
		return fmt.Errorf("read %s: nothing to run", path)
	}
	s.argv, s.inJob = s.job.Argv, true
	env := make(map[string]string)
	var names []string
	add := func(pair string) {
		name, _, _ := strings.Cut(pair, "=")
		if _, have := env[name]; !have {
			names = append(names, name)
		}
		env[name] = pair
	}
	for _, pair := range s.job.Env {
		add(pair)
		if path, ok := strings.CutPrefix(pair, "PATH="); ok {
			if err := os.Setenv("PATH", path); err != nil { // where the trainer is looked for
				return err
			}
		}
	}
	for _, pair := range os.Environ() {
		for _, prefix := range clusterEnv {
			if strings.HasPrefix(pair, prefix) {
				add(pair)
			}
		}
	}
	s.env = make([]string, 0, len(names))
	for _, name := range names {
		s.env = append(s.env, env[name])
	}
	return nil
}

// inCluster handles the signals that mean something else in a cluster's job:
// SIGUSR2 says that the time is nearly up, SIGWINCH asks what the trainer is
// doing, SIGQUIT that the trainer is to be
// killed and that this is to be recorded. False for all others.
func (s *shim) inCluster(sig syscall.Signal) bool {
	if !s.inJob {
		return false
	}
	switch sig {
	case syscall.SIGUSR2:
		if s.exit.Because == "" {
			s.exit.Because, s.limited = BecauseTimeLimit, time.Now()
			s.forward(syscall.SIGUSR1)
		}
	case AskDump:
		s.startHelper("--dump", "--dir", s.dir)
		s.passed(sig, 1)
	case syscall.SIGQUIT:
		_ = syscall.Kill(-s.handle.TrainerPID, syscall.SIGKILL)
		s.passed(sig, 1)
	default:
		return false
	}
	return true
}

// beforeLimit goes on with the end that SIGUSR2 began: a third of the time for
// a checkpoint, a third after SIGTERM, then SIGKILL.
func (s *shim) beforeLimit() {
	if s.limited.IsZero() {
		return
	}
	third := time.Duration(max(3, s.job.WarnS)) * time.Second / 3
	switch since := time.Since(s.limited); {
	case since > 2*third:
		_ = syscall.Kill(-s.handle.TrainerPID, syscall.SIGKILL)
	case since > min(third, savingGrace) && s.told.IsZero():
		s.forward(syscall.SIGTERM)
	}
}

// passed notes in signals.jsonl what became of a signal.
func (s *shim) passed(sig syscall.Signal, reached int) {
	if !s.inJob {
		return
	}
	text, err := json.Marshal(Passed{Signal: sig.String(), Reached: reached, At: time.Now()})
	if err != nil {
		return
	}
	f, err := openLog(filepath.Join(s.dir, SignalsFile))
	if err != nil {
		return
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		s.complain(err)
	}
}
