package runner

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"alidade/ablation"
	"alidade/gpu"
	"alidade/store"
)

// A queue is a copy of the queued runs in their order, so that a pass over ten
// thousand of them reads nothing. The runs table stays the truth: a run is
// started only if it is still queued there. What was added since is read by
// itself: ids only grow.
type queue struct {
	mu      sync.Mutex
	loaded  bool
	version int64          // of the store's plans
	last    ablation.RunID // largest id that is known, queued or not
	runs    []store.QueuedRun
	needs   map[armKey]need // recipes do not change
}

type armKey struct {
	study ablation.StudyID
	arm   int
}

// A need is what the runs of an arm ask for.
type need struct {
	want   gpu.Request
	stages []ablation.Stage // that runs share, without a seed
}

// load returns the queue. The slice is the caller's.
func (q *queue) load(ctx context.Context, st *store.Store) ([]store.QueuedRun, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	version := st.PlanVersion()
	if !q.loaded {
		q.runs, q.last = nil, 0
	}
	if !q.loaded || version != q.version {
		runs, err := st.Queued(ctx, q.last)
		if err != nil {
			return nil, fmt.Errorf("read the queue: %w", err)
		}
		q.merge(runs)
		q.version, q.loaded = version, true
	}
	return slices.Clone(q.runs), nil
}

// added takes runs that were queued a moment ago, before anyone else knows of
// them.
func (q *queue) added(runs []ablation.Run) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.loaded {
		return
	}
	in := make([]store.QueuedRun, 0, len(runs))
	for _, run := range runs {
		if run.ID > q.last { // else a pass was faster
			in = append(in, queuedRun(run))
		}
	}
	slices.SortFunc(in, func(a, b store.QueuedRun) int { return a.Before(&b) })
	q.merge(in)
}

// merge puts runs that are not in the queue into it, both being in order. The
// caller holds mu.
func (q *queue) merge(in []store.QueuedRun) {
	if len(in) == 0 {
		return
	}
	all := make([]store.QueuedRun, 0, len(q.runs)+len(in))
	old := q.runs
	for _, r := range in {
		q.last = max(q.last, r.ID)
		n := 0
		for n < len(old) && old[n].Before(&r) < 0 {
			n++
		}
		all = append(append(all, old[:n]...), r)
		old = old[n:]
	}
	q.runs = append(all, old...)
}

// moved keeps the copy right after a run has moved.
func (q *queue) moved(run ablation.Run) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.loaded {
		return
	}
	if i := slices.IndexFunc(q.runs, func(r store.QueuedRun) bool { return r.ID == run.ID }); i >= 0 {
		q.runs = slices.Delete(q.runs, i, i+1)
	}
	if run.State != ablation.Queued {
		return
	}
	if run.ID > q.last { // not known, as one that was not queued when the server started
		q.loaded = false
		return
	}
	in := queuedRun(run)
	i, _ := slices.BinarySearchFunc(q.runs, in, func(a, b store.QueuedRun) int { return a.Before(&b) })
	q.runs = slices.Insert(q.runs, i, in)
}

func queuedRun(run ablation.Run) store.QueuedRun {
	return store.QueuedRun{
		ID: run.ID, Study: run.Study, Arm: run.Arm.Index, Seed: run.Seed, Priority: run.Priority, Place: run.Place, Hold: run.Hold,
		Attempt: run.Attempt, ReadyAt: run.ReadyAt, QueuedAt: run.QueuedAt,
	}
}

// changed makes the next load read the table.
func (q *queue) changed() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.loaded = false
}

// need returns what a queued run asks for.
func (q *queue) need(ctx context.Context, r *Runner, study ablation.StudyID, arm int, id ablation.RunID) (need, error) {
	key := armKey{study, arm}
	q.mu.Lock()
	n, ok := q.needs[key]
	q.mu.Unlock()
	if ok {
		return n, nil
	}
	full, err := r.store.Run(ctx, id)
	if err != nil {
		return n, fmt.Errorf("read run %d: %w", id, err)
	}
	n = need{want: r.need(full.Arm.Recipe), stages: ablation.Stages(full.Arm.Recipe)}
	if r.cfg.Devices.Unsure(gpu.KindGPU) {
		return n, nil // whether there are GPUs is not known yet
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.needs == nil {
		q.needs = make(map[armKey]need)
	}
	q.needs[key] = n
	return n, nil
}

// A QueueItem is one queued run as the pages show it.
type QueueItem struct {
	store.QueuedRun
	Place  int           // 1 = next
	Reason string        // what it waits for; "" = nothing
	Start  time.Time     // estimated; zero = cannot be told
	Takes  time.Duration // estimated; 0 = cannot be told
}

// mostEstimated is how many queued runs get an estimated start.
const mostEstimated = 500

// Queue returns the queued runs in order, with what each waits for and, as far
// as the history of its study tells, when it will start.
func (r *Runner) Queue(ctx context.Context) ([]QueueItem, error) {
	queued, err := r.queue.load(ctx, r.store)
	if err != nil {
		return nil, err
	}
	status := r.Status()
	items := make([]QueueItem, len(queued))
	for i, q := range queued {
		items[i] = QueueItem{QueuedRun: q, Place: i + 1, Reason: status.Waiting[q.ID]}
		if status.Paused {
			items[i].Reason = "the queue is paused: " + status.Reason
		}
	}
	if !status.Paused {
		r.foresee(ctx, items)
	}
	return items, nil
}

// foresee lets the queue run ahead on paper: each run takes the devices that
// are free first.
func (r *Runner) foresee(ctx context.Context, items []QueueItem) {
	if _, ok := r.cfg.Launcher.(Queuer); ok {
		return // the cluster's queue is not ours to foresee
	}
	now := time.Now()
	devices := r.cfg.Devices.Devices()
	until := make(map[string]time.Time, len(devices))
	for _, d := range devices {
		switch end, known := r.estimates.end(d.Run, now, 1); {
		case d.Free:
			until[d.ID] = now
		case d.Run != 0 && known:
			until[d.ID] = end
		}
	}
	studies := make(map[ablation.StudyID]string)
	making := r.stages.now()
	for i := range items[:min(len(items), mostEstimated)] {
		it := &items[i]
		it.Takes = r.estimates.mean(&it.QueuedRun, now)
		why, seen := studies[it.Study]
		if !seen {
			if rec, err := r.store.Study(ctx, it.Study); err == nil {
				why = held(rec, -1) // a limit on its runs passes with time
			}
			studies[it.Study] = why
		}
		if it.Hold != "" || why != "" {
			continue
		}
		n, err := r.queue.need(ctx, r, it.Study, it.Arm, it.ID)
		if err != nil {
			return
		}
		if waitsFor(making, n.stages, it.Seed) != "" {
			continue // when the other has made it cannot be told
		}
		want := n.want
		var can, fit []string
		for _, d := range devices {
			if !want.Fits(d) {
				continue
			}
			fit = append(fit, d.ID)
			if _, known := until[d.ID]; known {
				can = append(can, d.ID)
			}
		}
		if len(can) < want.N {
			if len(fit) >= want.N { // it takes them when it can, and nobody knows when: those behind it wait for that
				for _, id := range fit {
					delete(until, id)
				}
			}
			continue
		}
		slices.SortStableFunc(can, func(a, b string) int { return until[a].Compare(until[b]) })
		it.Start = until[can[want.N-1]]
		if it.ReadyAt.After(it.Start) {
			it.Start = it.ReadyAt
		}
		for _, id := range can[:want.N] {
			if it.Takes == 0 {
				delete(until, id) // nobody knows when it is free again
				continue
			}
			until[id] = it.Start.Add(it.Takes)
		}
	}
}
