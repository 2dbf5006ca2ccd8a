package runner

import (
	"context"
	"sync"
	"time"

	"alidade/ablation"
	"alidade/store"
)

// margin is by how much a run may exceed what its history says before a
// back-filled one is in the way of others.
const margin = 1.25

// reloadEvery bounds how often the history is read again.
const reloadEvery = 10 * time.Second

// estimates tell how long runs take: succeeded runs of the same arm, else of
// the same study, else the run's own pace.
type estimates struct {
	mu    sync.Mutex
	read  time.Time
	stale bool
	arms  map[armKey]store.Pace
	study map[ablation.StudyID]store.Pace
	live  map[ablation.RunID]progressOf
}

// progressOf is how far a live run has come.
type progressOf struct {
	key     armKey
	first   bool // its first attempt: the history of whole runs applies
	started time.Time
	began   bool      // a step of its own was seen
	from    int64     // that step, or the one before
	fromAt  time.Time // when it was seen: the start-up does not count
	step    int64
	total   int64
}

// load reads the history when runs have succeeded since. What cannot be read
// leaves the estimates as they were.
func (e *estimates) load(ctx context.Context, st *store.Store) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.arms != nil && (!e.stale || time.Since(e.read) < reloadEvery) {
		return
	}
	paces, err := st.Paces(ctx)
	if err != nil {
		return
	}
	e.read, e.stale = time.Now(), false
	e.arms, e.study = make(map[armKey]store.Pace, len(paces)), make(map[ablation.StudyID]store.Pace)
	for _, p := range paces {
		e.arms[armKey{p.Study, p.Arm}] = p
		all := e.study[p.Study]
		n := time.Duration(all.Runs + p.Runs)
		all.Mean = (all.Mean*time.Duration(all.Runs) + p.Mean*time.Duration(p.Runs)) / n
		all.Most, all.Runs = max(all.Most, p.Most), int(n)
		e.study[p.Study] = all
	}
}

// of returns the history that fits best. The caller holds mu.
func (e *estimates) of(key armKey) store.Pace {
	if p, ok := e.arms[key]; ok {
		return p
	}
	return e.study[key.study]
}

// perStep is the pace of a live run that has come past its first step, ns.
func (p *progressOf) perStep(now time.Time) float64 {
	return float64(now.Sub(p.fromAt)) / float64(p.step-p.from)
}

// mean is how long a queued run takes, and most a bound that it hardly
// exceeds; 0 = unknown. While no run of a study has succeeded yet, the pace of
// those that live tells the mean: of the same arm, else of the study.
func (e *estimates) mean(q *store.QueuedRun, now time.Time) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	key := armKey{q.Study, q.Arm}
	if mean := e.of(key).Mean; mean > 0 {
		return mean
	}
	var arm, study, arms, studies float64
	for _, p := range e.live {
		if p.key.study != q.Study || p.step <= p.from || p.total <= 0 {
			continue
		}
		whole := float64(p.fromAt.Sub(p.started)) + p.perStep(now)*float64(p.total-p.from)
		if !p.first {
			whole = p.perStep(now) * float64(p.total)
		}
		study, studies = study+whole, studies+1
		if p.key == key {
			arm, arms = arm+whole, arms+1
		}
	}
	switch {
	case arms > 0:
		return time.Duration(arm / arms)
	case studies > 0:
		return time.Duration(study / studies)
	}
	return 0
}

func (e *estimates) most(q *store.QueuedRun) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return time.Duration(float64(e.of(armKey{q.Study, q.Arm}).Most) * margin)
}

// end is when a live run ends, its remaining time taken times factor. One
// that has exceeded its history is expected at any moment, and not promised.
func (e *estimates) end(run ablation.RunID, now time.Time, factor float64) (time.Time, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p, ok := e.live[run]
	if !ok {
		return time.Time{}, false
	}
	var left time.Duration
	switch {
	case p.step > p.from && p.total > p.step:
		left = time.Duration(p.perStep(now) * float64(p.total-p.step))
	case p.first && e.of(p.key).Mean > 0:
		left = e.of(p.key).Mean - now.Sub(p.started)
	default:
		return time.Time{}, false
	}
	if left <= 0 {
		return time.Time{}, false
	}
	return now.Add(time.Duration(float64(left) * factor)), true
}

// follow notes where a live run stands.
func (e *estimates) follow(run ablation.Run, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p, ok := e.live[run.ID]
	if !ok {
		p = progressOf{key: armKey{run.Study, run.Arm.Index}, first: run.Attempt == 1, started: run.StartedAt, from: run.Step, fromAt: now}
	}
	if !p.began && run.Step > p.from {
		p.began, p.from, p.fromAt = true, run.Step, now
	}
	p.step, p.total = run.Step, run.TotalSteps
	if e.live == nil {
		e.live = make(map[ablation.RunID]progressOf)
	}
	e.live[run.ID] = p
}

// left forgets a run that has ended.
func (e *estimates) left(run ablation.Run) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.live, run.ID)
	e.stale = e.stale || run.State == ablation.Succeeded
}

// ETA returns when a live run is expected to end, from its own pace and the
// history of its study; false when that cannot be told.
func (r *Runner) ETA(run ablation.RunID) (time.Time, bool) {
	return r.estimates.end(run, time.Now(), 1)
}
