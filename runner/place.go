package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"alidade/ablation"
	"alidade/store"
)

// MoveBy moves a queued run by so many places: towards the head of the queue
// below 0. It takes the priority of the run that it goes past when that one's
// is another, and no run but the two changes its place. At the end of the
// queue it stays.
func (r *Runner) MoveBy(ctx context.Context, id ablation.RunID, by int) error {
	for ; by < 0; by++ {
		if err := r.moveOne(ctx, id, -1); err != nil {
			return fmt.Errorf("move run %d: %w", id, err)
		}
	}
	for ; by > 0; by-- {
		if err := r.moveOne(ctx, id, 1); err != nil {
			return fmt.Errorf("move run %d: %w", id, err)
		}
	}
	r.Wake()
	return nil
}

func (r *Runner) moveOne(ctx context.Context, id ablation.RunID, by int) error {
	queued, err := r.queue.load(ctx, r.store)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(queued, func(q store.QueuedRun) bool { return q.ID == id })
	if at < 0 {
		run, err := r.store.Run(ctx, id)
		if err != nil {
			return err
		}
		return fmt.Errorf("it is %s: %w", run.State, ablation.ErrConflict)
	}
	if at+by < 0 || at+by >= len(queued) {
		return nil
	}
	own, other := &queued[at], &queued[at+by]
	// Of equals the two change places. Else it takes the other's place, which
	// is at the edge of its priority: the other moves on by one, past nobody.
	to, back := other.Rank(), own.Rank()
	if own.Priority != other.Priority {
		back = to - int64(by)
	}
	priority := other.Priority
	_, err = r.order(ctx, id, func(run *ablation.Run) { run.Priority, run.Place = priority, to })
	if err == nil {
		_, err = r.order(ctx, other.ID, func(run *ablation.Run) { run.Place = back })
	}
	return err
}

// What a study's runs went through together, to be taken back.
const (
	tookStop     = "stop"
	tookComplete = "complete"
)

// took remembers which runs an act on a study has changed.
func (r *Runner) took(id ablation.StudyID, act string, runs []ablation.RunID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taken == nil {
		r.taken = make(map[ablation.StudyID]map[string][]ablation.RunID)
	}
	if r.taken[id] == nil {
		r.taken[id] = make(map[string][]ablation.RunID)
	}
	r.taken[id][act] = runs
}

// TakeBack undoes the last "stop" or "complete" of a study for exactly the runs
// that it changed: others that had failed or were stopped before stay as they
// are, and so do others that run. It is ErrConflict when there is nothing to
// take back, as after a restart of the server.
func (r *Runner) TakeBack(ctx context.Context, id ablation.StudyID, act string) error {
	r.mu.Lock()
	runs := r.taken[id][act]
	delete(r.taken[id], act)
	r.mu.Unlock()
	if len(runs) == 0 {
		return fmt.Errorf("study %d: there is no %s to take back: %w", id, act, ablation.ErrConflict)
	}
	undo := r.Resume
	if act == tookComplete {
		undo = r.Stop
	}
	var errs []error
	for _, run := range runs {
		if err := undo(ctx, run); err != nil && !errors.Is(err, ablation.ErrConflict) { // it went its own way meanwhile
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
