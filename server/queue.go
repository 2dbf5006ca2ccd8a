package server

import (
	"context"
	"fmt"

	"alidade/ablation"
	"alidade/runner"
	"alidade/store"
	"alidade/web"
)

// queue is the runner as the pages know it: their types in place of its own.
type queue struct {
	*runner.Runner
	store   *store.Store
	publish func(store.Commit)
}

// Status implements web.Queue.
func (q queue) Status() web.QueueStatus {
	s := q.Runner.Status()
	return web.QueueStatus{Paused: s.Paused, ByPerson: s.ByPerson, Reason: s.Reason, Handed: s.Handed}
}

// Waiting implements web.Queue.
func (q queue) Waiting(ctx context.Context) ([]web.Waiting, error) {
	items, err := q.Queue(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]web.Waiting, len(items))
	for i, it := range items {
		out[i] = web.Waiting{Run: it.ID, Study: it.Study, Priority: it.Priority, Place: it.QueuedRun.Place, Hold: it.Hold, Reason: it.Reason, Start: it.Start, Takes: it.Takes}
	}
	return out, nil
}

// Complete implements web.Queue.
func (q queue) Complete(ctx context.Context, id ablation.StudyID) (web.Completion, error) {
	c, err := q.Runner.Complete(ctx, id)
	return web.Completion{Added: c.Added, Again: c.Again, Skipped: c.Skipped}, err
}

// AddSeeds queues each arm of a study with further seeds. Pairs that have a
// run already are left alone.
func (q queue) AddSeeds(ctx context.Context, id ablation.StudyID, seeds []uint64) ([]ablation.RunID, error) {
	rec, err := q.store.Study(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("add seeds: %w", err)
	}
	st := rec.Study
	st.Seeds = seeds
	planned, err := ablation.Expand(st)
	if err != nil {
		return nil, fmt.Errorf("add seeds: %w", err)
	}
	runs, err := q.store.Runs(ctx, store.RunFilter{Study: id})
	if err != nil {
		return nil, fmt.Errorf("add seeds: %w", err)
	}
	type pair struct {
		arm  int
		seed uint64
	}
	there := make(map[pair]bool, len(runs))
	for _, r := range runs {
		there[pair{r.Arm.Index, r.Seed}] = true
	}
	missing := planned[:0]
	for _, p := range planned {
		if !there[pair{p.Arm.Index, p.Seed}] {
			missing = append(missing, p)
		}
	}
	if len(missing) == 0 {
		return nil, nil
	}
	added, err := q.store.AddRuns(ctx, id, missing)
	if err != nil {
		return nil, fmt.Errorf("add seeds: %w", err)
	}
	ids := make([]ablation.RunID, len(added))
	for i, r := range added {
		ids[i] = r.ID
		q.publish(store.Commit{Run: r})
	}
	q.Wake()
	return ids, nil
}
