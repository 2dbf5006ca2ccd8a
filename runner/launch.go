package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"alidade/ablation"
	"alidade/gpu"
	"alidade/runner/shim"
	"alidade/store"
	"alidade/trainer"
)

// kindCommand is the trainer kind that runs a program of the user's.
const kindCommand = "command"

// kindEndpoint is the trainer kind that asks a server, with a key.
const kindEndpoint = "endpoint"

// The files of an attempt's folder that the runner knows, besides the shim's.
const (
	specFile   = "spec.json"
	eventsFile = "events.jsonl"
	alertsFile = "alerts.jsonl" // the runner's own events about the attempt
)

// fullPause is how long the queue waits after a launch found the disk full.
const fullPause = 8 * time.Second

// allowedEnv names the variables of this process that trainers get. Anything
// else, tokens above all, stays here.
var allowedEnv = []string{
	"PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH",
	"VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "HF_HOME", "HF_HUB_OFFLINE", "CUDA_HOME",
}

// launch makes the attempt's folder and starts its trainer.
func (l *life) launch(ctx context.Context) error {
	r, run := l.r, l.run
	from, err := r.lastCheckpoint(ctx, run.ID)
	if err != nil {
		return err
	}
	dir := r.attemptDir(run.ID, run.Attempt)
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("make attempt folder: %w", err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil { // never an old one
		return fmt.Errorf("make attempt folder: %w", err)
	}
	spec := trainer.Spec{
		Version: trainer.Version, Run: run.ID, Study: l.study, Arm: run.Arm.Label, Attempt: run.Attempt,
		Seed: run.Seed, Recipe: run.Arm.Recipe, Dir: dir, Events: filepath.Join(dir, eventsFile),
		Artifacts:  r.folder("artifacts"),
		ResumeFrom: from.path, ResumeStep: from.step,
		Threads: threads(l.want), Devices: l.lease.IDs(),
	}
	if err := trainer.WriteSpec(filepath.Join(dir, specFile), spec); err != nil {
		return err
	}
	l.attempt = ablation.Attempt{
		Run: run.ID, Number: run.Attempt, Dir: dir, Device: run.Device, FirstStep: from.step,
		State: ablation.Starting, StartedAt: time.Now(),
	}
	if err := r.writer.StartAttempt(ctx, l.attempt); err != nil {
		return fmt.Errorf("record attempt: %w", err)
	}
	l.started = true
	l.handle, err = r.cfg.Launcher.Start(ctx, Launch{
		Dir: dir, Argv: r.argv(spec), Env: r.env(spec, l.lease), WorkDir: r.cfg.WorkDir,
		Name: fmt.Sprintf("alidade-r%da%d", run.ID, run.Attempt), Need: l.want, Threads: spec.Threads,
	})
	if err != nil {
		return fmt.Errorf("the trainer could not be started: %w", err)
	}
	l.attempt.PID = l.handle.PID
	if l.handle.Place != "" {
		l.attempt.Device = l.handle.Place
	}
	if err := r.writer.EndAttempt(ctx, l.attempt); err != nil { // only to show: shim.json has it too
		r.log.Error("record process", "run", run.ID, "err", err)
	}
	r.log.Info("trainer started", "run", run.ID, "attempt", run.Attempt, "pid", l.handle.PID, "device", run.Device)
	return nil
}

// argv is the trainer's command line; no shell sees it.
func (r *Runner) argv(spec trainer.Spec) []string {
	path := filepath.Join(spec.Dir, specFile)
	if spec.Recipe.Trainer.Kind != kindCommand {
		return []string{r.cfg.Exe, "train", "--spec", path}
	}
	fill := strings.NewReplacer("{spec}", path, "{dir}", spec.Dir)
	argv := make([]string, len(spec.Recipe.Trainer.Command))
	for i, word := range spec.Recipe.Trainer.Command {
		argv[i] = fill.Replace(word)
	}
	return argv
}

// env is all of the trainer's environment, sorted by name.
func (r *Runner) env(spec trainer.Spec, lease gpu.Lease) []string {
	vars := make(map[string]string)
	for _, name := range allowedEnv {
		if value, ok := os.LookupEnv(name); ok {
			vars[name] = value
		}
	}
	for _, pair := range r.cfg.Env {
		if name, value, ok := strings.Cut(pair, "="); ok {
			vars[name] = value
		}
	}
	n := strconv.Itoa(spec.Threads)
	if spec.Recipe.Trainer.Kind == kindCommand {
		vars["PYTHONUNBUFFERED"] = "1" // so that the log is live
		maps.Copy(vars, spec.Recipe.Trainer.Env)
	} else {
		vars["GOMAXPROCS"] = n
	}
	vars["ALIDADE_THREADS"] = n
	vars[shim.MarkEnv] = spec.Dir
	vars["ALIDADE_SPEC"] = filepath.Join(spec.Dir, specFile)
	if _, ok := r.cfg.Launcher.(Queuer); !ok { // a cluster says it itself
		vars["CUDA_VISIBLE_DEVICES"] = visible(lease)
		passKey(vars, spec.Recipe) // a cluster's job file would keep it
	}
	env := make([]string, 0, len(vars))
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		env = append(env, name+"="+vars[name])
	}
	return env
}

// passKey passes on the one variable that the recipe of an endpoint names as
// its key. The recipe's rules allow it no other than ALIDADE_KEY_NAME.
func passKey(vars map[string]string, r ablation.Recipe) {
	name := r.Endpoint.KeyEnv
	if r.Trainer.Kind != kindEndpoint || !strings.HasPrefix(name, "ALIDADE_KEY_") {
		return
	}
	if key, ok := os.LookupEnv(name); ok {
		vars[name] = key
	}
}

// visible names the leased GPUs as CUDA wants it: by uuid, which survives
// renumbering. CPU slots and simulated GPUs show none.
func visible(lease gpu.Lease) string {
	var ids []string
	for _, d := range lease.Devices {
		if d.UUID != "" {
			ids = append(ids, d.UUID)
		}
	}
	return strings.Join(ids, ",")
}

// threads is one for each CPU slot. A GPU trainer is not limited by slots; it
// gets a modest number for its loaders.
func threads(want gpu.Request) int {
	if want.Kind == gpu.KindGPU {
		return max(1, 4*want.N)
	}
	return max(1, want.N)
}

// notLaunched settles a run whose launch failed. A full disk is nobody's
// failure: the run goes back into the queue, which waits for space.
func (l *life) notLaunched(ctx context.Context, err error) {
	full := errors.Is(err, store.ErrDiskFull) || errors.Is(err, syscall.ENOSPC) || strings.Contains(err.Error(), syscall.ENOSPC.Error())
	ev, state := ablation.EvFailed, ablation.Failed
	switch {
	case l.stopping():
		ev, state = ablation.EvStopped, ablation.Stopped
	case full:
		ev = ablation.EvRequeue
		l.r.mu.Lock()
		l.r.fullUntil = time.Now().Add(fullPause)
		l.r.mu.Unlock()
	}
	if l.started {
		l.end(ctx, state, err.Error(), nil)
	}
	l.settled(ctx, ev, err.Error())
}

// A resume point is the checkpoint a new attempt starts from; zero = none.
type resumePoint struct {
	path string
	step int64
}

// lastCheckpoint finds the newest checkpoint that the trainer announced as
// complete and that is still on disk.
func (r *Runner) lastCheckpoint(ctx context.Context, id ablation.RunID) (resumePoint, error) {
	all, err := r.store.Checkpoints(ctx, id)
	if err != nil {
		return resumePoint{}, fmt.Errorf("find checkpoint: %w", err)
	}
	best, bestAttempt := resumePoint{}, 0
	for _, c := range all {
		path := c.Path
		if !filepath.IsAbs(path) {
			path = filepath.Join(r.attemptDir(id, c.Attempt), path)
		}
		if _, err := os.Stat(path); err != nil {
			continue
		}
		if c.Attempt > bestAttempt || c.Attempt == bestAttempt && c.Step >= best.step {
			best, bestAttempt = resumePoint{path, c.Step}, c.Attempt
		}
	}
	return best, nil
}
