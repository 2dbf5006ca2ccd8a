// Package slurm starts trainers as jobs of a Slurm cluster. See [New].
//
// A job runs Alidade's shim, which runs the trainer: the exit record that the
// shim writes into the attempt's folder is the truth about how it ended, and
// Slurm's state the cross-check. The folder must be the same on the nodes.
package slurm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"alidade/gpu"
	"alidade/runner"
	"alidade/runner/shim"
)

// The files of an attempt's folder that belong to this launcher.
const (
	recordFile = "slurm.json"
	scriptFile = "job.sh"
	logFile    = "slurm.log" // what the job script itself writes
)

const (
	defaultWarn = 120 // s
	// Slurm may send the warning up to a minute early, and looks at limits
	// every half minute.
	slack        = 60 // s
	defaultMost  = 100
	defaultPoll  = 15 * time.Second
	callTimeout  = 20 * time.Second
	answerWithin = 3 * time.Second  // of a shim to a signal
	killWithin   = 10 * time.Second // then Slurm kills the job itself
)

// Config says how jobs are submitted. Exe is required.
type Config struct {
	Exe      string // Alidade's own binary, at the same path on the nodes
	Settings runner.SlurmSettings
	Logger   *slog.Logger // nil = silent
}

// Launcher submits and follows jobs through Slurm's commands. It keeps no
// state but the last look at the cluster's queue: handles are read from the
// attempts' folders.
type Launcher struct {
	cfg  Config
	log  *slog.Logger
	poll time.Duration

	gpus struct {
		once sync.Once
		have bool
	}

	arrays struct {
		once   sync.Once
		most   int
		always bool // for tests: also of one run
	}
	gathering sync.Mutex
	batches   map[string]*batch // by what is asked for

	first   sync.Mutex // one look at a time for what was just submitted
	mu      sync.Mutex
	looking bool
	looked  time.Time // when the last look that succeeded began
	failing error     // of the last look
	jobs    map[string]job
	missed  map[string]int // looks in a row that did not list a job
	killed  map[string]time.Time
}

// New makes a launcher. It starts nothing; errors say what is missing.
func New(c Config) (*Launcher, error) {
	if c.Exe == "" {
		return nil, errors.New("slurm launcher: no path of the own binary")
	}
	for _, program := range []string{"sbatch", "squeue", "scancel", "scontrol"} {
		if err := installed(program); err != nil {
			return nil, fmt.Errorf("slurm launcher: %w; install Slurm's client programs, or use the launcher local", err)
		}
	}
	if limit := minutes(c.Settings.TimeLimit); limit > 0 && limit*60 <= float64(warnOf(c.Settings)+slack) {
		return nil, fmt.Errorf("slurm launcher: time_limit %q is %.3g minutes: with warn_seconds %d it must be more than %.3g, since Slurm may warn a minute early",
			c.Settings.TimeLimit, limit, warnOf(c.Settings), float64(warnOf(c.Settings)+slack)/60)
	}
	l := &Launcher{cfg: c, log: c.Logger, poll: time.Duration(c.Settings.PollSeconds * float64(time.Second)),
		batches: make(map[string]*batch), missed: make(map[string]int), killed: make(map[string]time.Time)}
	if l.log == nil {
		l.log = slog.New(slog.DiscardHandler)
	}
	if l.poll <= 0 {
		l.poll = defaultPoll
	}
	return l, nil
}

// MostAtOnce implements runner.Queuer.
func (l *Launcher) MostAtOnce() int {
	if l.cfg.Settings.MostJobs > 0 {
		return l.cfg.Settings.MostJobs
	}
	return defaultMost
}

// HasGPUs implements runner.Queuer: whether the cluster's nodes have any.
func (l *Launcher) HasGPUs() bool {
	if l.cfg.Settings.GPUs == "none" {
		return false
	}
	l.gpus.once.Do(func() {
		out, err := call(context.Background(), "sinfo", "--noheader", "--format=%G")
		l.gpus.have = err == nil && strings.Contains(out, "gpu")
	})
	return l.gpus.have
}

// record is slurm.json.
type record struct {
	Job       string    `json:"job,omitempty"` // "12", of an array's task "12_3"; "" = the array is being submitted
	Submitted time.Time `json:"submitted"`
	Array     string    `json:"array,omitempty"` // its manifest, for a task of an array
	Index     int       `json:"index,omitempty"` // in the array
}

// Start submits the job and returns when Slurm has taken it; it may wait there
// for long.
func (l *Launcher) Start(ctx context.Context, want runner.Launch) (runner.Handle, error) {
	if _, err := shim.ReadHandle(want.Dir); !errors.Is(err, fs.ErrNotExist) {
		return runner.Handle{}, fmt.Errorf("submit job: %w", errors.Join(shim.ErrClaimed, err))
	}
	if len(want.Argv) == 0 {
		return runner.Handle{}, errors.New("submit job: nothing to run")
	}
	job := shim.Job{Argv: want.Argv, Env: want.Env, WorkDir: workDir(want), WarnS: l.warn()}
	if err := shim.WriteJob(want.Dir, job); err != nil {
		return runner.Handle{}, fmt.Errorf("submit job: %w", err)
	}
	submit := l.submitOne
	if l.cfg.Settings.Array > 1 {
		submit = l.together
	}
	rec, err := submit(want)
	if err != nil {
		return runner.Handle{}, err
	}
	return handle(want.Dir, rec), nil
}

// submitOne hands a run over as a job of its own.
func (l *Launcher) submitOne(want runner.Launch) (record, error) {
	script := filepath.Join(want.Dir, scriptFile)
	if err := os.WriteFile(script, []byte(l.script(want.Dir)), 0o700); err != nil {
		return record{}, fmt.Errorf("submit job: %w", err)
	}
	rec := record{Submitted: time.Now()}
	options := append([]string{
		"--job-name=" + nameOf(want) + "-" + mark(want.Dir), "--chdir=" + workDir(want), "--output=" + filepath.Join(want.Dir, logFile),
	}, l.options(want)...)
	var err error
	if rec.Job, err = sbatch(append(options, script)); err != nil {
		return l.notTaken(want.Dir, err)
	}
	if err := writeRecord(want.Dir, rec); err != nil {
		l.log.Error("record job", "component", "slurm", "job", rec.Job, "err", err) // Attach finds it by its name
	}
	l.log.Info("job submitted", "component", "slurm", "job", rec.Job, "name", want.Name)
	return rec, nil
}

// sbatch submits and returns the job's number. The server's end must not leave
// it open whether the job was taken: only its own time limit ends it.
func sbatch(args []string) (string, error) {
	out, err := call(context.Background(), "sbatch", args...)
	if err != nil {
		return "", err
	}
	id, _, _ := strings.Cut(strings.TrimSpace(out), ";") // "12;cluster"
	if _, err := strconv.ParseInt(id, 10, 64); err != nil {
		return "", fmt.Errorf("sbatch answered %q, want a job's number", out)
	}
	return id, nil
}

// workDir is where the trainer runs.
func workDir(want runner.Launch) string {
	if want.WorkDir == "" {
		return want.Dir
	}
	return want.WorkDir
}

func nameOf(want runner.Launch) string {
	if want.Name == "" {
		return "alidade"
	}
	return want.Name
}

func (l *Launcher) warn() int { return warnOf(l.cfg.Settings) }

func warnOf(s runner.SlurmSettings) int {
	if s.WarnSeconds > 0 {
		return s.WarnSeconds
	}
	return defaultWarn
}

// minutes reads Slurm's form of a time: "90", "90:30", "1:30:00", "2-12",
// "2-12:30", "2-12:30:00"; 0 when there is none.
func minutes(s string) float64 {
	days, rest, hasDays := strings.Cut(s, "-")
	if !hasDays {
		days, rest = "0", s
	}
	d, _ := strconv.ParseFloat(days, 64)
	var v [3]float64
	parts := strings.Split(rest, ":")
	for i, p := range parts[:min(3, len(parts))] {
		v[i], _ = strconv.ParseFloat(p, 64)
	}
	switch {
	case hasDays, len(parts) == 3:
		return d*24*60 + v[0]*60 + v[1] + v[2]/60
	default:
		return v[0] + v[1]/60
	}
}

// script is the same for all jobs but for two paths of our own: what to run is
// in job.json, which no shell reads.
func (l *Launcher) script(dir string) string {
	return "#!/bin/sh\n# Runs one attempt of an Alidade run; see job.json beside this file.\n" +
		"exec " + quote(l.cfg.Exe) + " shim --dir " + quote(dir) + " --job " + quote(filepath.Join(dir, shim.JobFile)) + "\n"
}

// quote makes one word of a shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// options are those of sbatch that runs with equal needs share.
func (l *Launcher) options(want runner.Launch) []string {
	s := l.cfg.Settings
	o := []string{
		"--parsable", "--open-mode=append", "--input=/dev/null",
		"--export=ALIDADE_JOB=1", "--no-requeue", "--nodes=1", "--ntasks=1",
		fmt.Sprintf("--signal=B:USR2@%d", l.warn()+slack),
	}
	gpus := 0
	if want.Need.Kind == gpu.KindGPU && s.GPUs != "none" {
		gpus = want.Need.N
	}
	cpus := max(1, want.Threads)
	if gpus > 0 {
		if s.CPUsPerGPU > 0 {
			cpus = s.CPUsPerGPU * gpus
		}
		if s.MemPerGPUGiB > 0 {
			o = append(o, fmt.Sprintf("--mem=%dM", int64(s.MemPerGPUGiB*1024)*int64(gpus)))
		}
		o = append(o, gpuOption(s, gpus))
	}
	o = append(o, "--cpus-per-task="+strconv.Itoa(cpus))
	for _, f := range []struct{ name, value string }{
		{"partition", s.Partition}, {"account", s.Account}, {"qos", s.QOS}, {"time", s.TimeLimit},
	} {
		if f.value != "" {
			o = append(o, "--"+f.name+"="+f.value)
		}
	}
	return append(o, s.Flags...)
}

func gpuOption(s runner.SlurmSettings, n int) string {
	kind := ""
	if s.GPUType != "" {
		kind = s.GPUType + ":"
	}
	if s.GPUs == "gpus-per-node" {
		return fmt.Sprintf("--gpus-per-node=%s%d", kind, n)
	}
	return fmt.Sprintf("--gres=gpu:%s%d", kind, n)
}

// mark names an attempt's folder in its job's name, so that a job is found
// again whose number could not be recorded.
func mark(dir string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(dir))
	return fmt.Sprintf("%016x", h.Sum64())
}

// Attach finds the job of an attempt: by its record, else by its name. Where
// none was submitted it makes sure that none will start.
func (l *Launcher) Attach(ctx context.Context, dir string) (runner.Handle, error) {
	rec, err := readRecord(dir)
	switch {
	case err == nil && rec.Job != "":
		return handle(dir, rec), nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return runner.Handle{}, fmt.Errorf("attach: %w", err)
	}
	if h, err := shim.ReadHandle(dir); err == nil && h.Job != "" {
		rec.Job, rec.Submitted = h.Job, h.Started
		return handle(dir, rec), writeRecord(dir, rec)
	}
	if rec.Job, err = find(ctx, dir, rec); err != nil {
		return runner.Handle{}, fmt.Errorf("attach: %w", err)
	}
	if rec.Job != "" {
		rec.Submitted = time.Now()
		return handle(dir, rec), writeRecord(dir, rec)
	}
	switch err := shim.Abandon(dir); {
	case err == nil, errors.Is(err, fs.ErrNotExist):
		return runner.Handle{}, runner.ErrNotStarted
	case !errors.Is(err, shim.ErrClaimed):
		return runner.Handle{}, fmt.Errorf("attach: %w", err)
	}
	if h, err := shim.ReadHandle(dir); err == nil && h.PID == 0 {
		return runner.Handle{}, runner.ErrNotStarted
	}
	return runner.Handle{}, fmt.Errorf("attach: %s holds a shim's record that names no job", dir)
}

// find looks for the job of an attempt by its name; "" = there is none.
func find(ctx context.Context, dir string, rec record) (string, error) {
	suffix, task := "-"+mark(dir), ""
	if rec.Array != "" {
		suffix, task = "-"+mark(rec.Array), "_"+strconv.Itoa(rec.Index)
	}
	out, err := call(ctx, "squeue", "--me", "--noheader", "--array", "--states=all", "--format=%i|%j")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(out) {
		id, name, _ := strings.Cut(strings.TrimSpace(line), "|")
		if strings.HasSuffix(name, suffix) && strings.HasSuffix(id, task) {
			return id, nil
		}
	}
	return "", nil
}

func handle(dir string, rec record) runner.Handle {
	ref, _ := json.Marshal(rec)
	h := runner.Handle{Dir: dir, Ref: string(ref), Place: "slurm job " + rec.Job}
	if s, err := shim.ReadHandle(dir); err == nil && s.Host != "" {
		h.Place += " on " + s.Host
	}
	return h
}

func parse(h runner.Handle) (record, error) {
	var rec record
	if err := json.Unmarshal([]byte(h.Ref), &rec); err != nil || rec.Job == "" {
		return rec, fmt.Errorf("handle of %s: no job", h.Dir)
	}
	return rec, nil
}

func readRecord(dir string) (record, error) {
	var rec record
	text, err := os.ReadFile(filepath.Join(dir, recordFile))
	if err != nil {
		return rec, err
	}
	if err := json.Unmarshal(text, &rec); err != nil {
		return rec, fmt.Errorf("read %s: %w", recordFile, err)
	}
	return rec, nil
}

func writeRecord(dir string, rec record) error {
	text, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	temp := filepath.Join(dir, recordFile+".new")
	if err := os.WriteFile(temp, append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(temp, filepath.Join(dir, recordFile))
}
