package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"time"

	"alidade/ablation"
	"alidade/gpu"
	"alidade/store"
)

// pageSize is how many queued runs a pass reads at a time.
const pageSize = 100

// Status is what the queue waits for, for the pages.
type Status struct {
	Paused    bool                      // nothing is started; running runs go on
	Reason    string                    // why, in words
	FreeBytes int64                     // on the data folder's disk; 0 = unknown
	Waiting   map[ablation.RunID]string // why a queued run was not started: "waits for 4 GPUs of 80 GiB: 2 free"
}

// Status returns what the last scheduler pass found.
func (r *Runner) Status() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.status
	s.Waiting = maps.Clone(s.Waiting)
	return s
}

// A pass is one look at the queue.
type pass struct {
	r       *Runner
	studies map[ablation.StudyID]ablation.StudyRecord
	active  map[ablation.StudyID]int
	behind  map[string]ablation.RunID // device kind → the run that waits for it first
	waiting map[ablation.RunID]string
	passed  int // runs that wait behind others
}

// pass starts what can be started, oldest first. A run that waits for devices
// holds back later ones that want the same kind, so that small requests cannot
// starve a large one.
func (r *Runner) pass(ctx context.Context) error {
	if r.paused() {
		return nil
	}
	p := &pass{
		r: r, studies: make(map[ablation.StudyID]ablation.StudyRecord),
		active: r.activeByStudy(), behind: make(map[string]ablation.RunID),
		waiting: make(map[ablation.RunID]string),
	}
	defer func() {
		r.mu.Lock()
		r.status.Waiting = p.waiting
		r.mu.Unlock()
	}()
	if more, err := p.queue(ctx, 0, 1); err != nil || !more {
		return err
	}
	// Many runs that may not start yet head the queue: go on study by study,
	// which leaves those out.
	studies, err := r.store.Studies(ctx) // newest first
	if err != nil {
		return fmt.Errorf("read studies: %w", err)
	}
	for _, rec := range slices.Backward(studies) {
		p.studies[rec.ID] = rec
		if _, err := p.queue(ctx, rec.ID, 0); err != nil {
			return err
		}
	}
	return nil
}

// queue considers queued runs of one study (0 = all) by age, in at most so
// many pages (0 = all), and reports whether there may be others to consider.
func (p *pass) queue(ctx context.Context, study ablation.StudyID, pages int) (more bool, err error) {
	for page, offset := 0, 0; ; page++ {
		if p.full() {
			return false, nil
		}
		if study != 0 && p.held(p.studies[study]) != "" {
			return true, nil
		}
		if pages > 0 && page == pages {
			return true, nil
		}
		runs, err := p.r.store.Runs(ctx, store.RunFilter{
			Study: study, States: []ablation.State{ablation.Queued}, Limit: pageSize, Offset: offset,
		})
		if err != nil {
			return false, fmt.Errorf("read the queue: %w", err)
		}
		held := p.passed
		for _, run := range runs {
			started, err := p.consider(ctx, run)
			if err != nil {
				return false, err
			}
			if !started {
				offset++ // it stays in the queue
			}
		}
		if len(runs) < pageSize {
			return false, nil
		}
		if study != 0 && p.passed-held == pageSize {
			return true, nil // a page of runs that wait behind others: so will the rest
		}
	}
}

// held says why no run of a study may start now; "" = one may.
func (p *pass) held(study ablation.StudyRecord) string {
	limit := study.Study.Concurrency
	switch {
	case study.Archived:
		return "its study is archived"
	case study.Paused:
		return "its study is paused"
	case limit > 0 && p.active[study.ID] >= limit:
		return fmt.Sprintf("its study runs %d at once", limit)
	}
	return ""
}

// consider starts one queued run if it may and can be.
func (p *pass) consider(ctx context.Context, run ablation.Run) (started bool, err error) {
	study, ok := p.studies[run.Study]
	if !ok {
		if study, err = p.r.store.Study(ctx, run.Study); err != nil {
			return false, fmt.Errorf("read study %d: %w", run.Study, err)
		}
		p.studies[run.Study] = study
	}
	want := p.r.need(run.Arm.Recipe)
	if why := p.held(study); why != "" {
		p.waiting[run.ID] = why
		return false, nil
	}
	if first := p.behind[want.Kind]; first != 0 {
		p.waiting[run.ID] = fmt.Sprintf("waits behind run %d for %s", first, want)
		p.passed++
		return false, nil
	}
	lease, err := p.r.cfg.Devices.Acquire(run.ID, want)
	if err != nil {
		p.waiting[run.ID] = err.Error()
		if !errors.Is(err, gpu.ErrNever) {
			p.behind[want.Kind] = run.ID
		}
		return false, nil
	}
	if err := p.r.start(ctx, run, study.Study.Name, lease); err != nil {
		if errors.Is(err, ablation.ErrConflict) { // stopped a moment ago
			return true, nil
		}
		return false, err
	}
	p.active[run.Study]++
	return true, nil
}

// full reports whether no device is left that a later run could get.
func (p *pass) full() bool {
	return p.behind[gpu.KindCPU] != 0 && (p.behind[gpu.KindGPU] != 0 || !p.r.cfg.Devices.HasGPUs())
}

// start claims a queued run and gives it a goroutine, which also gives the
// lease back.
func (r *Runner) start(ctx context.Context, run ablation.Run, study string, lease gpu.Lease) error {
	l, claimed := r.claim(run)
	if !claimed {
		r.cfg.Devices.Release(lease)
		return fmt.Errorf("launch run %d: it is followed already: %w", run.ID, ablation.ErrConflict)
	}
	l.study, l.lease = study, lease
	now := time.Now()
	moved, err := r.move(ctx, run.ID, ablation.EvLaunch, func(run *ablation.Run) {
		run.Attempt++
		run.Device = strings.Join(lease.IDs(), ",")
		run.Cause, run.StartedAt, run.EndedAt = "", now, time.Time{}
	})
	if err != nil {
		l.leave()
		return fmt.Errorf("launch run %d: %w", run.ID, err)
	}
	l.run = moved
	if !l.spawn(l.begin) {
		l.leave() // Run is over; the next one finds that nothing was started
	}
	return nil
}

// activeByStudy counts the runs that have a goroutine.
func (r *Runner) activeByStudy() map[ablation.StudyID]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	active := make(map[ablation.StudyID]int)
	for _, l := range r.live {
		active[l.studyID]++
	}
	return active
}

// need says which devices a recipe asks for. The embedded trainer and the
// solver work on CPU slots; a command gets GPUs where there are any.
func (r *Runner) need(recipe ablation.Recipe) gpu.Request {
	want := gpu.Request{Kind: gpu.KindCPU, N: max(1, recipe.Trainer.Devices)}
	if recipe.Trainer.Kind != kindCommand {
		return want
	}
	want.MinMemoryMiB = int64(recipe.Trainer.MemoryGiB * 1024)
	if recipe.Trainer.Devices > 0 && (want.MinMemoryMiB > 0 || r.cfg.Devices.HasGPUs()) {
		want.Kind = gpu.KindGPU
	}
	return want
}

// paused reports whether nothing may be started, and keeps the reason.
func (r *Runner) paused() bool {
	free, err := r.free(r.cfg.Data)
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.status.Reason
	r.status.FreeBytes = free
	r.status.Reason = ""
	switch {
	case r.halted:
		r.status.Reason = "the server is stopping its runs"
	case time.Now().Before(r.fullUntil):
		r.status.Reason = "a run could not be started because the disk is full (space, inodes or quota); tried again every " + fullPause.String()
	case err != nil && r.cfg.MinFree > 0:
		r.status.Reason = "the free space of the data folder's disk cannot be read: " + err.Error()
	case free < r.cfg.MinFree:
		r.status.Reason = fmt.Sprintf("%s has %d MiB free, less than the floor of %d MiB: free some space, the queue then goes on by itself",
			r.cfg.Data, free>>20, r.cfg.MinFree>>20)
	}
	r.status.Paused = r.status.Reason != ""
	switch {
	case r.status.Paused && was == "":
		r.log.Warn("queue paused", "reason", r.status.Reason)
	case !r.status.Paused && was != "":
		r.log.Info("queue goes on")
	}
	return r.status.Paused
}

// freeBytes returns what an ordinary user may still write to path's disk.
func freeBytes(path string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * s.Bsize, nil
}
