package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"syscall"
	"time"

	"alidade/ablation"
	"alidade/gpu"
	"alidade/store"
	"alidade/trainer"
)

// Status is what the queue waits for, for the pages.
type Status struct {
	ByPerson  bool                      // paused by a person: ResumeQueue helps
	Paused    bool                      // nothing is started; running runs go on
	Reason    string                    // why, in words
	FreeBytes int64                     // on the data folder's disk; 0 = unknown
	Waiting   map[ablation.RunID]string // why a queued run was not started: "waits for 4 GPUs of 80 GiB: 2 free"
	Handed    map[ablation.RunID]string // what a run waits for in the cluster's queue that it was handed to; also in Waiting
}

// Status returns what the last scheduler pass found.
func (r *Runner) Status() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.status
	s.Waiting = maps.Clone(s.Waiting)
	if len(r.handed) > 0 && s.Waiting == nil {
		s.Waiting = make(map[ablation.RunID]string)
	}
	maps.Copy(s.Waiting, r.handed)
	s.Handed = maps.Clone(r.handed)
	return s
}

// waits notes what a run that was handed to a cluster waits for there.
func (r *Runner) waits(id ablation.RunID, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if why == "" {
		delete(r.handed, id)
		return
	}
	r.handed[id] = why
}

// pass starts what can be started: larger priority first, then the older.
func (r *Runner) pass(ctx context.Context) error {
	if r.paused(ctx) {
		return nil
	}
	queued, err := r.queue.load(ctx, r.store)
	if err != nil {
		return err
	}
	r.estimates.load(ctx, r.store)
	p := r.newPass(queued)
	defer func() {
		r.mu.Lock()
		r.status.Waiting = p.waiting
		r.reserved = p.plan.blocked
		r.mu.Unlock()
	}()
	for i := range queued {
		if err := p.consider(ctx, &queued[i]); err != nil {
			return err
		}
	}
	return nil
}

// A pass is one look at the queue.
type pass struct {
	r       *Runner
	plan    *plan
	studies map[ablation.StudyID]*studyPass
	arms    map[armKey]*armPass
	active  map[ablation.StudyID]int
	waiting map[ablation.RunID]string
	making  map[ablation.Stage]ablation.RunID // shared stages that live runs make now
	started int                               // runs, in this pass
	room    int                               // runs that a launcher with a queue of its own still takes; below 0 = no such launcher
}

// armPass is what a pass knows of an arm's runs, which all want the same.
type armPass struct {
	need
	most    time.Duration
	looked  int    // 1 + the runs that this pass had started when shares was found
	shares  bool   // one of its stages is being made, for this or another seed
	blocked string // why none of them can start in this pass: devices only become fewer in it
}

// studyPass is what a pass knows of a study.
type studyPass struct {
	rec  ablation.StudyRecord
	held string // why none of its runs may start; kept up to date
}

func (r *Runner) newPass(queued []store.QueuedRun) *pass {
	now := time.Now()
	p := &pass{
		r: r, studies: make(map[ablation.StudyID]*studyPass), arms: make(map[armKey]*armPass), active: make(map[ablation.StudyID]int),
		waiting: make(map[ablation.RunID]string, len(queued)), making: r.stages.now(), room: -1,
	}
	r.mu.Lock()
	for _, l := range r.live {
		p.active[l.studyID]++
	}
	live, reserved := len(r.live), r.reserved
	r.mu.Unlock()
	if q, ok := r.cfg.Launcher.(Queuer); ok {
		p.room = max(0, q.MostAtOnce()-live)
	}
	p.plan = newPlan(now, r.cfg.Devices.Devices(), reserved)
	p.plan.unsure = r.cfg.Devices.Unsure
	p.plan.ends = func(run ablation.RunID) (time.Time, bool) { return r.estimates.end(run, now, margin) }
	return p
}

// consider starts one queued run if it may and can be.
func (p *pass) consider(ctx context.Context, q *store.QueuedRun) error {
	study, err := p.study(ctx, q.Study)
	if err != nil {
		return err
	}
	switch {
	case q.Hold != "":
		p.waiting[q.ID] = q.Hold
		return nil
	case study.held != "":
		p.waiting[q.ID] = study.held
		return nil
	case q.ReadyAt.After(p.plan.now):
		p.waiting[q.ID] = "is tried again at " + q.ReadyAt.Local().Format(time.TimeOnly)
		return nil
	}
	arm := p.arms[armKey{q.Study, q.Arm}]
	if arm == nil {
		n, err := p.r.queue.need(ctx, p.r, q.Study, q.Arm, q.ID)
		if err != nil {
			return err
		}
		arm = &armPass{need: n, most: p.r.estimates.most(q)}
		p.arms[armKey{q.Study, q.Arm}] = arm
	}
	if why := p.waitsForStage(arm, q.Seed); why != "" {
		p.waiting[q.ID] = why
		return nil
	}
	if arm.blocked != "" {
		p.waiting[q.ID] = arm.blocked
		return nil
	}
	var lease gpu.Lease
	if p.room >= 0 {
		if p.room == 0 {
			p.waiting[q.ID] = fmt.Sprintf("waits for one of the %d jobs that are handed to the cluster at once", p.r.cfg.Launcher.(Queuer).MostAtOnce())
			return nil
		}
	} else {
		ids, reason := p.plan.consider(wish{run: q.ID, want: arm.want, most: arm.most})
		if ids == nil {
			p.waiting[q.ID] = reason
			if head := p.plan.blocked[arm.want.Kind]; head == nil || head.run != q.ID {
				arm.blocked = reason
			}
			return nil
		}
		if lease, err = p.r.cfg.Devices.Take(q.ID, ids); err != nil {
			p.waiting[q.ID] = err.Error() // changed since the pass began; the next one sees it
			return nil
		}
	}
	return p.start(ctx, q, study, arm.need, lease)
}

// waitsForStage says which stage of a run another one makes now. Of an arm
// that shares nothing with those that live no run is looked at.
func (p *pass) waitsForStage(arm *armPass, seed uint64) string {
	if len(p.making) == 0 || len(arm.stages) == 0 {
		return ""
	}
	if arm.looked != p.started+1 {
		arm.looked, arm.shares = p.started+1, sharesAny(p.making, arm.stages)
	}
	if !arm.shares {
		return ""
	}
	return waitsFor(p.making, arm.stages, seed)
}

func (p *pass) start(ctx context.Context, q *store.QueuedRun, study *studyPass, n need, lease gpu.Lease) error {
	run, err := p.r.store.Run(ctx, q.ID)
	switch {
	case err != nil:
		p.r.cfg.Devices.Release(lease)
	case run.State != ablation.Queued: // the copy of the queue is wrong
		p.r.cfg.Devices.Release(lease)
		p.r.queue.changed()
		return nil
	default:
		err = p.r.start(ctx, run, study.rec.Study.Name, n.want, lease)
	}
	switch {
	case errors.Is(err, ablation.ErrConflict): // stopped a moment ago
		return nil
	case err != nil:
		return err
	}
	p.room--
	p.started++
	if len(n.stages) > 0 {
		p.making = p.r.stages.now()
	}
	p.active[q.Study]++
	study.held = held(study.rec, p.active[q.Study])
	return nil
}

func (p *pass) study(ctx context.Context, id ablation.StudyID) (*studyPass, error) {
	if s := p.studies[id]; s != nil {
		return s, nil
	}
	rec, err := p.r.store.Study(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("read study %d: %w", id, err)
	}
	s := &studyPass{rec: rec, held: held(rec, p.active[id])}
	p.studies[id] = s
	return s, nil
}

// held says why no run of a study may start now; "" = one may.
func held(study ablation.StudyRecord, active int) string {
	limit := study.Study.Concurrency
	switch {
	case study.Archived:
		return "its study is archived"
	case study.Paused:
		return "its study is paused"
	case limit > 0 && active >= limit:
		return fmt.Sprintf("its study runs %d at once", limit)
	}
	return ""
}

// start claims a queued run and gives it a goroutine, which also gives the
// lease back.
func (r *Runner) start(ctx context.Context, run ablation.Run, study string, want gpu.Request, lease gpu.Lease) error {
	l, claimed := r.claim(run)
	if !claimed {
		r.cfg.Devices.Release(lease)
		return fmt.Errorf("launch run %d: it is followed already: %w", run.ID, ablation.ErrConflict)
	}
	l.study, l.want, l.lease = study, want, lease
	r.begins(run)
	now := time.Now()
	moved, err := r.move(ctx, run.ID, ablation.EvLaunch, func(run *ablation.Run) {
		run.Attempt++
		run.Device = strings.Join(lease.IDs(), ",")
		run.Cause, run.Hold, run.StartedAt, run.EndedAt, run.ReadyAt = "", "", now, time.Time{}, time.Time{}
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

// need says which devices a recipe asks for. The embedded trainer, the solver
// and a model behind an endpoint work on CPU slots. A command and a framework
// get GPUs where there are any, unless the recipe says which it wants; what
// asks for a device's memory wants a GPU.
func (r *Runner) need(recipe ablation.Recipe) gpu.Request {
	t := &recipe.Trainer
	want := gpu.Request{Kind: gpu.KindCPU, N: max(1, t.Devices)}
	if t.Kind != kindCommand && !recipe.IsNative() {
		return want
	}
	want.MinMemoryMiB = int64(t.MemoryGiB * 1024)
	if t.Device == "gpu" || t.Device != "cpu" && (want.MinMemoryMiB > 0 || r.hasGPUs()) {
		want.Kind = gpu.KindGPU
	}
	return want
}

func (r *Runner) hasGPUs() bool {
	if q, ok := r.cfg.Launcher.(Queuer); ok {
		return q.HasGPUs()
	}
	return r.cfg.Devices.HasGPUs()
}

// paused reports whether nothing may be started, and keeps the reason. A disk
// below the floor is also told by an alert, once each time.
func (r *Runner) paused(ctx context.Context) bool {
	free, err := r.free(r.cfg.Data)
	by := r.saved.get().Paused
	r.mu.Lock()
	was := r.status.Reason
	reason, disk := "", false
	switch {
	case r.halted:
		reason = "the server is stopping its runs"
	case time.Now().Before(r.fullUntil):
		reason, disk = "a run could not be started because the disk is full (space, inodes or quota); tried again every "+fullPause.String(), true
	case err != nil && r.cfg.MinFree > 0:
		reason, disk = "the free space of the data folder's disk cannot be read: "+err.Error(), true
	case free < r.cfg.MinFree:
		reason, disk = fmt.Sprintf("%s has %d MiB free, less than the floor of %d MiB: free some space, the queue then goes on by itself",
			r.cfg.Data, free>>20, r.cfg.MinFree>>20), true
	case by != "":
		reason = by
	}
	r.status.FreeBytes, r.status.Reason, r.status.Paused, r.status.ByPerson = free, reason, reason != "", by != "" && reason == by
	tell := disk && !r.diskTold
	r.diskTold = disk
	r.mu.Unlock()
	switch {
	case reason != "" && was == "":
		r.log.Warn("queue paused", "reason", reason)
	case reason == "" && was != "":
		r.log.Info("queue goes on")
	}
	if tell {
		r.notice(ctx, trainer.Alert{Level: "bad", Code: "disk-low", Text: "the queue is paused: " + reason})
	}
	return reason != ""
}

// notice stores an alert that belongs to no run.
func (r *Runner) notice(ctx context.Context, a trainer.Alert) {
	if _, err := r.writer.Notice(ctx, a); err != nil {
		r.log.Error("store notice", "code", a.Code, "text", a.Text, "err", err)
	}
	r.log.Warn("alert", "code", a.Code, "text", a.Text)
	r.hook.send(hookMessage{Level: a.Level, Code: a.Code, Text: a.Text, At: time.Now()})
}

// freeBytes returns what an ordinary user may still write to path's disk.
func freeBytes(path string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * s.Bsize, nil
}
