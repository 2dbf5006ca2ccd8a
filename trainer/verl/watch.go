package verl

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"alidade/trainer/native"
)

// watch says where a run's output is, and how its end is judged.
func watch(plan *native.Plan, p Profile, paths *Paths, j native.Job, steps int64) {
	o := resolve(&j.Spec.Recipe)
	console := ConsoleSource(filepath.Join(j.Dir, "stdout.log"), filepath.Join(j.Dir, "stderr.log"))
	tell := &progress{path: filepath.Join(j.Dir, "progress"), steps: steps, done: -1}
	if p.FileLogger {
		plan.Sources = append(plan.Sources, tell.follow(native.MetricsFile("file logger", paths.JSONL)))
	} else {
		plan.Sources = append(plan.Sources, tell.follow(EventSource(paths.Events)))
	}
	plan.Sources = append(plan.Sources, tell.follow(console), DumpSource(DumpOptions{
		Dir: paths.Rollouts, Phase: "rl", Known: true, Groups: o.Estimator == "grpo", Std: o.Std,
	}))
	checkpoints := paths.Checkpoints
	plan.Checkpoints = func() ([]native.Saved, error) { return Checkpoints(checkpoints) }
	plan.Finished = finished(steps, stepOf(j.Resume))
	plan.Quiet = 20 * time.Minute // an inference engine compiles, and a first rollout takes long
}

// finished judges the end of a run. Exit code 0 alone says nothing: a launcher
// may have returned early, and a resumed run may have done no step at all.
func finished(steps, from int64) func(int64, int) (bool, string) {
	return func(last int64, exit int) (bool, string) {
		switch {
		case exit == 0 && last >= steps:
			return true, ""
		case exit == 0 && from > 0 && last <= from:
			return false, fmt.Sprintf("it resumed at step %d and ended with exit code 0 without a new step: some versions do that on the border of an epoch; raise trainer.total_epochs in native.overrides, or take a later version", from)
		case exit == 0:
			return false, fmt.Sprintf("it ended with exit code 0 at step %d of %d", last, steps)
		case exit == 143 || exit == 130:
			return false, fmt.Sprintf("it was stopped at step %d of %d", last, steps)
		}
		return false, fmt.Sprintf("it ended with exit code %d at step %d of %d", exit, last, steps)
	}
}

// progress writes the newest step to a file, for the reward function: rewards
// that change over the run depend on it, and records carry the step.
type progress struct {
	path  string
	steps int64
	done  int64
}

// follow passes a source on and notes how far its steps are.
func (p *progress) follow(s native.Source) native.Source { return &followed{s, p} }

type followed struct {
	native.Source
	p *progress
}

func (f *followed) Poll(last bool, emit func(native.Reading)) error {
	newest := int64(-1)
	err := f.Source.Poll(last, func(r native.Reading) {
		if len(r.Values) > 0 {
			newest = max(newest, r.Step)
		}
		emit(r)
	})
	if newest > f.p.done {
		f.p.done = newest
		if werr := f.p.write(); werr != nil && err == nil {
			err = werr
		}
	}
	return err
}

// write replaces the file, so that a reader sees one line or the other.
func (p *progress) write() error {
	tmp := p.path + ".tmp"
	if err := os.WriteFile(tmp, fmt.Appendf(nil, "%d %d\n", p.done, p.steps), 0o600); err != nil {
		return fmt.Errorf("progress for the reward function: %w", err)
	}
	return os.Rename(tmp, p.path)
}
