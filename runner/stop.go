package runner

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"alidade/ablation"
	"alidade/store"
	"alidade/trainer"
)

// A stopper is how far the stop of a life has come: nothing, "checkpoint now",
// SIGTERM, SIGKILL.
type stopper struct {
	stage stage
	until time.Time // when the next stage is due
}

type stage int

const (
	notAsked stage = iota
	asked          // nothing sent yet
	saving         // SIGUSR1 sent
	terminating
	killing
)

// ask starts the stop; asking again changes nothing.
func (s *stopper) ask(now time.Time) {
	if s.stage == notAsked {
		s.stage, s.until = asked, now
	}
}

// checkpoint ends the wait for a checkpoint.
func (s *stopper) checkpoint() {
	if s.stage == saving {
		s.until = time.Time{}
	}
}

// stepStop sends the next signal when it is due.
func (l *life) stepStop(ctx context.Context, now time.Time) {
	if l.run.State == ablation.Stopping {
		l.stopper.ask(now)
	}
	s, timing := &l.stopper, l.r.cfg.Timing
	if s.stage == notAsked || now.Before(s.until) || l.handle.Ref == "" {
		return
	}
	var sig syscall.Signal
	switch s.stage {
	case asked:
		s.stage, s.until, sig = saving, now.Add(timing.Checkpoint), syscall.SIGUSR1
	case saving:
		s.stage, s.until, sig = terminating, now.Add(l.term()), syscall.SIGTERM
	default: // again each second: a process may have been forked meanwhile
		s.stage, s.until, sig = killing, now.Add(time.Second), syscall.SIGKILL
	}
	switch err := l.r.cfg.Launcher.Signal(ctx, l.handle, sig); {
	case errors.Is(err, ErrUnhandled):
		s.until = now // it cannot save: SIGTERM at once
	case err != nil:
		l.r.log.Warn("stop", "run", l.run.ID, "signal", sig.String(), "err", err)
	default:
		l.r.log.Info("stop", "run", l.run.ID, "signal", sig.String())
	}
}

// Stop ends a run: a queued one at once, a live one by "checkpoint now", then
// SIGTERM, then SIGKILL, each after a grace. It returns when that is under
// way. Stopping a stopping run is no error; an ended one is ErrConflict.
func (r *Runner) Stop(ctx context.Context, id ablation.RunID) error {
	return r.stop(ctx, id, "", "")
}

// stop is Stop. With a hold the run is queued again when it has ended, and
// waits there. Because says why Alidade itself ends it.
func (r *Runner) stop(ctx context.Context, id ablation.RunID, hold, because string) error {
	run, err := r.move(ctx, id, ablation.EvStop, func(run *ablation.Run) {
		run.Hold = hold
		if run.State == ablation.Stopping && because != "" {
			run.Cause = because // judged by when it has ended, also by a later server
		}
		if run.State == ablation.Stopped { // it was queued
			run.Cause, run.EndedAt = "stopped before it was started", time.Now()
		}
	})
	if err != nil {
		return fmt.Errorf("stop run %d: %w", id, err)
	}
	if run.State == ablation.Stopped {
		r.Wake()
		return nil
	}
	return r.readopt(ctx, run) // tells the life that follows it; one that was lost gets one
}

func (l *life) askStop() {
	select {
	case l.stop <- struct{}{}:
	default:
	}
}

// undoTime is how long a cancelled run that is queued again gets its old place.
const undoTime = time.Minute

// goesOn is the hold of a stopping run that is to be queued again, and not held
// there, as soon as it has ended.
const goesOn = "goes on when it has ended"

// Resume queues an ended or lost run again: a new attempt, from the last
// checkpoint when there is one. One that is being stopped is queued when it has
// ended. It is ErrConflict for a run that is queued, live or succeeded, and for
// a lost one whose trainer still runs.
func (r *Runner) Resume(ctx context.Context, id ablation.RunID) error {
	run, err := r.store.Run(ctx, id)
	if err != nil {
		return fmt.Errorf("resume run %d: %w", id, err)
	}
	if run.State == ablation.Stopping {
		if _, err := r.order(ctx, id, func(run *ablation.Run) { run.Hold = goesOn }); err != nil {
			return fmt.Errorf("resume run %d: %w", id, err)
		}
		return nil
	}
	if run.State.Live() {
		return fmt.Errorf("resume run %d: it is %s: %w", id, run.State, ablation.ErrConflict)
	}
	if run.State == ablation.Lost {
		h, err := r.cfg.Launcher.Attach(ctx, r.attemptDir(id, run.Attempt))
		if err == nil && r.cfg.Launcher.Alive(ctx, h) != Gone {
			return fmt.Errorf("resume run %d: its trainer may still run (process %d): %w", id, h.PID, ablation.ErrConflict)
		}
	}
	if run.State == ablation.Lost {
		r.record(ctx, run, trainer.Alert{Level: "info", Code: "recovered", Step: run.Step, Text: "queued again on request; it was lost: " + run.Cause})
	}
	_, err = r.move(ctx, id, ablation.EvRequeue, func(run *ablation.Run) {
		if run.Attempt > 0 || time.Since(run.EndedAt) > undoTime {
			run.QueuedAt, run.Place = time.Now(), 0 // else it was cancelled a moment ago: it keeps its place
		}
		run.Cause, run.Hold, run.EndedAt, run.ReadyAt = "", "", time.Time{}, time.Time{}
	})
	if err != nil {
		return fmt.Errorf("resume run %d: %w", id, err)
	}
	r.forget(id)
	r.Wake()
	return nil
}

// PauseStudy keeps a study's queued runs from being started; live ones go on.
func (r *Runner) PauseStudy(ctx context.Context, id ablation.StudyID) error {
	err := r.store.SetStudyPaused(ctx, id, true)
	r.cfg.Publish(store.Commit{Run: ablation.Run{Study: id}}) // no run moved, the pages look again
	return err
}

// ResumeStudy lets a paused study's runs be started again.
func (r *Runner) ResumeStudy(ctx context.Context, id ablation.StudyID) error {
	if err := r.store.SetStudyPaused(ctx, id, false); err != nil {
		return err
	}
	err := r.forgive(id)
	r.cfg.Publish(store.Commit{Run: ablation.Run{Study: id}})
	r.Wake()
	return err
}

// StopStudy stops all of a study's runs that have not ended: queued ones
// first, so that none is started in a stopped one's place.
func (r *Runner) StopStudy(ctx context.Context, id ablation.StudyID) error {
	if _, err := r.store.Study(ctx, id); err != nil {
		return fmt.Errorf("stop study %d: %w", id, err)
	}
	stopped, err := r.stopAll(ctx, id, ablation.Queued, ablation.Starting, ablation.Running, ablation.Stopping)
	if len(stopped) > 0 {
		r.took(id, tookStop, stopped)
	}
	return err
}

// StopAll ends every live run and waits until they have ended or ctx is done.
// No run is started any more; queued runs stay queued for the next server.
func (r *Runner) StopAll(ctx context.Context) error {
	r.mu.Lock()
	r.halted = true
	r.mu.Unlock()
	if _, err := r.stopAll(ctx, 0, ablation.Starting, ablation.Running, ablation.Stopping); err != nil {
		return err
	}
	for {
		runs, err := r.store.Runs(ctx, store.RunFilter{States: []ablation.State{ablation.Starting, ablation.Running, ablation.Stopping}})
		if err != nil || len(runs) == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("stop all runs: %d still live: %w", len(runs), ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// stopAll stops runs state by state, and returns those that it stopped. One
// that ends meanwhile is no error.
func (r *Runner) stopAll(ctx context.Context, study ablation.StudyID, states ...ablation.State) (stopped []ablation.RunID, err error) {
	var errs []error
	for _, state := range states {
		runs, err := r.store.Runs(ctx, store.RunFilter{Study: study, States: []ablation.State{state}})
		if err != nil {
			return stopped, fmt.Errorf("list runs: %w", err)
		}
		for _, run := range runs {
			switch err := r.Stop(ctx, run.ID); {
			case err == nil && run.State != ablation.Stopping:
				stopped = append(stopped, run.ID)
			case err != nil && !errors.Is(err, ablation.ErrConflict):
				errs = append(errs, err)
			}
		}
	}
	return stopped, errors.Join(errs...)
}

// stoppedItself reports whether a trainer said that a signal ended it.
func stoppedItself(d *trainer.Done) bool { return d != nil && !d.OK && d.Reason == "stopped" }
