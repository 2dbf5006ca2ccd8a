package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"alidade/ablation"
	"alidade/store"
	"alidade/trainer"
)

// A lostRun is what is remembered of a run whose state is not known, to see
// whether it writes again.
type lostRun struct {
	path   string // events.jsonl
	why    string // it is lost
	offset int64  // stored
	size   int64  // when last looked at
}

// adopt takes over what an earlier server left: live runs are followed on from
// their stored offsets, runs that never came up are queued again, runs that
// ended meanwhile are settled by their exit records.
func (r *Runner) adopt(ctx context.Context) error {
	runs, err := r.store.Runs(ctx, store.RunFilter{
		States: []ablation.State{ablation.Starting, ablation.Running, ablation.Stopping, ablation.Lost},
	})
	if err != nil {
		return err
	}
	for _, run := range runs {
		if run.State == ablation.Lost {
			if err := r.remember(ctx, run); err != nil {
				return err
			}
			continue
		}
		if err := r.readopt(ctx, run); err != nil {
			return err
		}
	}
	if len(runs) > 0 {
		r.log.Info("runs adopted", "count", len(runs))
	}
	return nil
}

// readopt gives a run that no goroutine follows a new one. When one follows it
// after all, that one is told of a stop.
func (r *Runner) readopt(ctx context.Context, run ablation.Run) error {
	l, claimed := r.claim(run)
	if !claimed {
		if run.State == ablation.Stopping {
			l.askStop()
		}
		return nil
	}
	attached, err := l.attach(ctx)
	if err != nil || !attached {
		l.leave()
		return err
	}
	r.forget(run.ID)
	if !l.spawn(l.live) {
		l.leave() // the next Run adopts it
	}
	return nil
}

// attach finds the attempt's record, process and devices; false when the run
// was settled because its trainer never ran.
func (l *life) attach(ctx context.Context) (bool, error) {
	r, run := l.r, l.run
	attempt, found, err := r.lastAttempt(ctx, run)
	if err != nil {
		return false, err
	}
	l.attempt = attempt
	dir := r.attemptDir(run.ID, run.Attempt)
	handle, err := r.cfg.Launcher.Attach(ctx, dir)
	switch {
	case !found, errors.Is(err, ErrNotStarted) && attempt.Offset == 0 && run.State != ablation.Running:
		return false, r.neverStarted(ctx, run, attempt, found)
	case err != nil: // follow the file, which may tell
		r.log.Error("attach", "run", run.ID, "attempt", run.Attempt, "err", err)
		handle = Handle{Dir: dir}
	}
	l.handle, l.want = handle, r.need(run.Arm.Recipe)
	r.begins(run)
	l.lease, err = r.cfg.Devices.Reserve(run.ID, deviceIDs(run.Device))
	if err != nil {
		r.log.Warn("devices of an adopted run", "run", run.ID, "err", err)
	}
	switch done, err := r.store.Done(ctx, run.ID, run.Attempt); {
	case err == nil:
		l.done = &done
	case !errors.Is(err, ablation.ErrNotFound):
		return false, fmt.Errorf("read done of run %d: %w", run.ID, err)
	}
	return true, nil
}

// neverStarted queues a run again whose trainer never ran and, its folder
// being given up, never will; or ends it, if it was to be stopped.
func (r *Runner) neverStarted(ctx context.Context, run ablation.Run, attempt ablation.Attempt, found bool) error {
	const cause = "the server ended before the trainer was started"
	if found {
		attempt.State, attempt.Cause, attempt.EndedAt = ablation.Failed, cause, time.Now()
		if err := r.writer.EndAttempt(ctx, attempt); err != nil {
			return fmt.Errorf("end attempt: %w", err)
		}
	}
	var err error
	switch run.State {
	case ablation.Starting:
		_, err = r.move(ctx, run.ID, ablation.EvRequeue, nil)
	case ablation.Stopping:
		_, err = r.move(ctx, run.ID, ablation.EvStopped, ended("stopped before it was started"))
	default:
		_, err = r.move(ctx, run.ID, ablation.EvLost, ended("its attempt's folder is gone or empty"))
	}
	if err != nil {
		return fmt.Errorf("adopt run %d: %w", run.ID, err)
	}
	return nil
}

// lastAttempt returns the record of the run's current attempt.
func (r *Runner) lastAttempt(ctx context.Context, run ablation.Run) (ablation.Attempt, bool, error) {
	all, err := r.store.Attempts(ctx, run.ID)
	if err != nil {
		return ablation.Attempt{}, false, fmt.Errorf("read attempts of run %d: %w", run.ID, err)
	}
	for _, a := range all {
		if a.Number == run.Attempt {
			a.Dir = r.attemptDir(run.ID, a.Number) // the data folder may have been moved
			return a, true, nil
		}
	}
	return ablation.Attempt{}, false, nil
}

// remember puts a lost run on the list that lookForLost goes through.
func (r *Runner) remember(ctx context.Context, run ablation.Run) error {
	attempt, found, err := r.lastAttempt(ctx, run)
	if err != nil || !found {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost[run.ID] = &lostRun{path: filepath.Join(attempt.Dir, eventsFile), why: run.Cause, offset: attempt.Offset}
	return nil
}

// record stores an event of the runner's own about a run that no life follows.
func (r *Runner) record(ctx context.Context, run ablation.Run, a trainer.Alert) {
	e := trainer.Event{V: trainer.Version, Kind: trainer.KindAlert, T: time.Now().UnixMilli(), Alert: &a}
	commit, err := r.writer.Append(ctx, store.Batch{Run: run.ID, Attempt: run.Attempt, Own: true, Events: []trainer.Event{e}})
	err = errors.Join(err, appendEvent(filepath.Join(r.attemptDir(run.ID, run.Attempt), alertsFile), e))
	if err != nil {
		r.log.Error("store alert", "run", run.ID, "code", a.Code, "text", a.Text, "err", err)
		return
	}
	r.cfg.Publish(commit)
}

func (r *Runner) forget(id ablation.RunID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.lost, id)
}

// lookForLost brings back lost runs that write again.
func (r *Runner) lookForLost(ctx context.Context) {
	r.mu.Lock()
	back := make(map[ablation.RunID]string)
	for id, l := range r.lost {
		if l.wrote() {
			back[id] = l.why
		}
	}
	r.mu.Unlock()
	for id, why := range back {
		run, err := r.move(ctx, id, ablation.EvRecovered, func(run *ablation.Run) {
			run.Cause, run.EndedAt = "", time.Time{}
		})
		if err == nil {
			r.record(ctx, run, trainer.Alert{Level: "info", Code: "recovered", Step: run.Step, Text: "it writes again; it was lost: " + why})
			err = r.readopt(ctx, run)
		}
		if err != nil {
			r.log.Error("recover lost run", "run", id, "err", err)
		}
		if err == nil || errors.Is(err, ablation.ErrConflict) || errors.Is(err, ablation.ErrNotFound) {
			r.forget(id)
		}
	}
}

// wrote reports whether the file holds a complete line that was not stored.
func (l *lostRun) wrote() bool {
	info, err := os.Stat(l.path)
	if err != nil || info.Size() == l.size || info.Size() <= l.offset {
		return false
	}
	l.size = info.Size()
	f := trainer.Follow(l.path, trainer.FollowOptions{Offset: l.offset})
	defer func() { _ = f.Close() }()
	lines, err := f.Read(1)
	return err == nil && !lines.Empty()
}

func deviceIDs(device string) []string {
	if device == "" {
		return nil
	}
	return strings.Split(device, ",")
}

// ended sets how and when a run ended.
func ended(cause string) func(*ablation.Run) {
	return func(run *ablation.Run) { run.Cause, run.EndedAt = cause, time.Now() }
}
