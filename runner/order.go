package runner

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"alidade/ablation"
	"alidade/store"
)

// heldByPerson is the hold of a run that a person paused.
const heldByPerson = "paused by a person"

// PauseQueue keeps all queued runs from being started, also over restarts of
// the server; live ones go on. Reason is shown; "" is a standard one.
func (r *Runner) PauseQueue(ctx context.Context, reason string) error {
	if reason == "" {
		reason = "paused by a person"
	}
	if err := r.saved.change(func(q *queueState) { q.Paused, q.PausedAt = reason, time.Now() }); err != nil {
		return err
	}
	r.told(ctx)
	return nil
}

// ResumeQueue ends PauseQueue.
func (r *Runner) ResumeQueue(ctx context.Context) error {
	if err := r.saved.change(func(q *queueState) { q.Paused, q.PausedAt = "", time.Time{} }); err != nil {
		return err
	}
	r.told(ctx)
	r.Wake()
	return nil
}

// told makes the status right at once after the queue was paused or resumed,
// and tells the pages: a commit without a run makes them look again.
func (r *Runner) told(ctx context.Context) {
	r.paused(ctx)
	r.cfg.Publish(store.Commit{})
}

// PauseRun holds a queued run back. A live one saves a checkpoint, ends and
// waits in the queue until [Runner.ResumeRun].
func (r *Runner) PauseRun(ctx context.Context, id ablation.RunID) error {
	run, err := r.store.Run(ctx, id)
	if err != nil {
		return fmt.Errorf("pause run %d: %w", id, err)
	}
	switch {
	case run.State == ablation.Queued:
		if _, err = r.order(ctx, id, func(run *ablation.Run) { run.Hold = heldByPerson }); err != nil {
			return fmt.Errorf("pause run %d: %w", id, err)
		}
		return nil
	case run.State.Live():
		return r.stop(ctx, id, heldByPerson, "")
	}
	return fmt.Errorf("pause run %d: it is %s: %w", id, run.State, ablation.ErrConflict)
}

// ResumeRun lets a run that was held back start again.
func (r *Runner) ResumeRun(ctx context.Context, id ablation.RunID) error {
	if _, err := r.order(ctx, id, func(run *ablation.Run) { run.Hold, run.ReadyAt = "", time.Time{} }); err != nil {
		return fmt.Errorf("resume run %d: %w", id, err)
	}
	r.Wake()
	return nil
}

// SetPriority orders a run in the queue: larger first, among equals the one
// that waits longer. It ends what MoveBy did.
func (r *Runner) SetPriority(ctx context.Context, id ablation.RunID, priority int) error {
	return r.SetPlace(ctx, id, priority, 0)
}

// SetPlace is SetPriority with a place among equals, as a queued run had it
// before; 0 = by its age.
func (r *Runner) SetPlace(ctx context.Context, id ablation.RunID, priority int, place int64) error {
	if priority < -ablation.MaxPriority || priority > ablation.MaxPriority {
		return &ablation.Invalid{Fields: []ablation.FieldError{{Field: "priority", Value: fmt.Sprint(priority),
			Allowed: fmt.Sprintf("a whole number from %d to %d", -ablation.MaxPriority, ablation.MaxPriority)}}}
	}
	if _, err := r.order(ctx, id, func(run *ablation.Run) { run.Priority, run.Place = priority, place }); err != nil {
		return fmt.Errorf("set priority of run %d: %w", id, err)
	}
	r.Wake()
	return nil
}

// MoveFirst puts a queued run at the head of the queue, MoveLast at its end.
func (r *Runner) MoveFirst(ctx context.Context, id ablation.RunID) error {
	return r.moveBeside(ctx, id, func(all []store.QueuedRun) int { return all[0].Priority + 1 })
}

// MoveLast puts a queued run at the end of the queue.
func (r *Runner) MoveLast(ctx context.Context, id ablation.RunID) error {
	return r.moveBeside(ctx, id, func(all []store.QueuedRun) int { return all[len(all)-1].Priority - 1 })
}

func (r *Runner) moveBeside(ctx context.Context, id ablation.RunID, priority func([]store.QueuedRun) int) error {
	queued, err := r.queue.load(ctx, r.store)
	if err != nil {
		return err
	}
	others := queued[:0]
	for _, q := range queued {
		if q.ID != id {
			others = append(others, q)
		}
	}
	if len(others) == 0 {
		return nil
	}
	return r.SetPriority(ctx, id, min(max(priority(others), -ablation.MaxPriority), ablation.MaxPriority))
}

// order changes what orders a run, and tells the world.
func (r *Runner) order(ctx context.Context, id ablation.RunID, change func(*ablation.Run)) (ablation.Run, error) {
	run, err := r.writer.Order(ctx, id, change)
	if err != nil {
		return run, err
	}
	r.queue.moved(run)
	r.cfg.Publish(store.Commit{Run: run})
	return run, nil
}

// A Completion is what [Runner.Complete] queued.
type Completion struct {
	Added   []ablation.RunID // cells that had no run
	Again   []ablation.RunID // failed, stopped or lost ones
	Skipped map[ablation.RunID]string
}

// Complete queues exactly what a study's design still lacks: a run for each
// arm and seed that has none, and each that failed, was stopped or is lost, by
// a new attempt. Runs that wait, run or have succeeded are left alone. A run
// that only a change can help is queued too: asking is taken for the change.
func (r *Runner) Complete(ctx context.Context, id ablation.StudyID) (Completion, error) {
	done := Completion{Skipped: make(map[ablation.RunID]string)}
	rec, err := r.store.Study(ctx, id)
	if err != nil {
		return done, fmt.Errorf("complete study %d: %w", id, err)
	}
	planned, err := ablation.Expand(rec.Study)
	if err != nil {
		return done, fmt.Errorf("complete study %d: %w", id, err)
	}
	runs, err := r.store.Runs(ctx, store.RunFilter{Study: id})
	if err != nil {
		return done, fmt.Errorf("complete study %d: %w", id, err)
	}
	type cell struct {
		arm  int
		seed uint64
	}
	there := make(map[cell]bool, len(runs))
	for _, run := range runs {
		there[cell{run.Arm.Index, run.Seed}] = true
	}
	var missing []ablation.Planned
	for _, p := range planned {
		if !there[cell{p.Arm.Index, p.Seed}] {
			missing = append(missing, p)
		}
	}
	if len(missing) > 0 {
		added, err := r.store.AddRuns(ctx, id, missing)
		if err != nil {
			return done, fmt.Errorf("complete study %d: %w", id, err)
		}
		r.queue.added(added)
		for _, run := range added {
			done.Added = append(done.Added, run.ID)
			r.cfg.Publish(store.Commit{Run: run})
		}
	}
	for _, run := range runs {
		if !run.State.Terminal() && run.State != ablation.Lost || run.State == ablation.Succeeded {
			continue
		}
		if strings.Contains(run.Cause, ": "+censored+" ") {
			done.Skipped[run.ID] = "it was " + censored + " by the study's halving"
			continue
		}
		if err := r.Resume(ctx, run.ID); err != nil {
			done.Skipped[run.ID] = err.Error()
			continue
		}
		done.Again = append(done.Again, run.ID)
	}
	r.took(id, tookComplete, append(slices.Clone(done.Added), done.Again...))
	r.Wake()
	return done, nil
}

// AddSeeds queues a run of every arm of a study for each new seed. A seed that
// the study has already is ErrConflict, and then none is added.
func (r *Runner) AddSeeds(ctx context.Context, id ablation.StudyID, seeds []uint64) ([]ablation.RunID, error) {
	rec, err := r.store.Study(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("add seeds to study %d: %w", id, err)
	}
	st := rec.Study
	st.Seeds = seeds
	planned, err := ablation.Expand(st)
	if err != nil {
		return nil, fmt.Errorf("add seeds to study %d: %w", id, err)
	}
	added, err := r.store.AddRuns(ctx, id, planned)
	if err != nil {
		return nil, fmt.Errorf("add seeds to study %d: %w", id, err)
	}
	r.queue.added(added)
	ids := make([]ablation.RunID, len(added))
	for i, run := range added {
		ids[i] = run.ID
		r.cfg.Publish(store.Commit{Run: run})
	}
	r.Wake()
	return ids, nil
}
