package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"alidade/ablation"
	"alidade/gpu"
	"alidade/store"
)

// Config names a runner's collaborators. Store, Devices, Launcher and Exe are
// required.
type Config struct {
	Store    *store.Store
	Data     string // data folder; "" = the store's
	Devices  *gpu.Pool
	Launcher Launcher
	Publish  func(store.Commit) // after each commit; also for moves, with no points; nil = nobody listens
	Logger   *slog.Logger       // nil = silent
	Exe      string             // Alidade's own binary, the trainer of kinds cpu and solver
	Env      []string           // "KEY=value" for every trainer, besides the allowed ones of this process
	WorkDir  string             // where trainers run; "" = the server's working folder
	Settings Settings           // see [ReadSettings]; the zero value has no webhook and no price
	MinFree  int64              // bytes the data folder's disk must have free to start a run; 0 = 1 GiB, below 0 = do not look
	Timing   Timing
}

// Timing holds the runner's patience. A zero field is its default.
type Timing struct {
	Poll       time.Duration // between looks at a quiet events file; 20 ms
	Alive      time.Duration // between looks at a process; 100 ms
	Tick       time.Duration // between scheduler passes nobody asked for; 1 s
	Checkpoint time.Duration // stop: from SIGUSR1 to SIGTERM; 10 s
	Term       time.Duration // stop: from SIGTERM to SIGKILL; 15 s
	Lost       time.Duration // quiet time before an attempt that is gone without an exit record is lost; 3 s
	FirstLine  time.Duration // quiet time before the first line, or the first step of a phase, is worth an alert; 5 min
	Stall      time.Duration // least quiet time that is a stall; 1 min
	Crash      time.Duration // an attempt that fails sooner counts as an instant crash; 30 s
	Retry      time.Duration // before the first new attempt by itself; 10 s, doubled each time
	Sweep      time.Duration // what an ended attempt left behind is given so long to go; 30 s
	Readings   time.Duration // between readings of a run's devices; 2 s
}

func (t Timing) withDefaults() Timing {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&t.Poll, 20 * time.Millisecond}, {&t.Alive, 100 * time.Millisecond}, {&t.Tick, time.Second},
		{&t.Checkpoint, 10 * time.Second}, {&t.Term, 15 * time.Second}, {&t.Lost, 3 * time.Second},
		{&t.FirstLine, 5 * time.Minute}, {&t.Stall, time.Minute}, {&t.Crash, 30 * time.Second},
		{&t.Retry, firstWait}, {&t.Sweep, 30 * time.Second}, {&t.Readings, 2 * time.Second},
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	return t
}

// A Runner schedules, starts, follows, stops and settles runs. It is safe for
// concurrent use. There is one for a data folder.
type Runner struct {
	cfg    Config
	store  *store.Store
	writer *store.RunWriter
	log    *slog.Logger
	wake   chan struct{} // asks for a scheduler pass
	free   func(path string) (int64, error)

	queue     queue
	estimates estimates
	saved     saved
	stages    stages
	hook      *hook

	rootOnce sync.Once
	root     string // of the runs' folders

	lives sync.WaitGroup // one for each goroutine of a live run

	mu        sync.Mutex
	base      context.Context // of Run, which owns the lives; nil before
	live      map[ablation.RunID]*life
	lost      map[ablation.RunID]*lostRun
	handed    map[ablation.RunID]string                        // to a cluster: what they wait for there
	halted    bool                                             // no run is started any more
	fullUntil time.Time                                        // a launch found the disk full, whatever its free space says
	taken     map[ablation.StudyID]map[string][]ablation.RunID // by acts on a study that can be taken back
	diskTold  bool                                             // the alert about a full disk was given
	reserved  map[string]*reservation                          // by kind of device, from the last pass
	status    Status
}

// New makes a runner. It does no I/O and starts nothing.
func New(c Config) (*Runner, error) {
	switch {
	case c.Store == nil:
		return nil, errors.New("runner: no store")
	case c.Devices == nil:
		return nil, errors.New("runner: no devices")
	case c.Launcher == nil:
		return nil, errors.New("runner: no launcher")
	case c.Exe == "":
		return nil, errors.New("runner: no path of the own binary")
	}
	if c.Data == "" {
		c.Data = c.Store.Dir()
	}
	data, err := filepath.Abs(c.Data)
	if err != nil {
		return nil, fmt.Errorf("runner: data folder: %w", err)
	}
	c.Data = data
	if c.Publish == nil {
		c.Publish = func(store.Commit) {}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.MinFree == 0 {
		c.MinFree = 1 << 30
	}
	c.Timing = c.Timing.withDefaults()
	return &Runner{
		cfg: c, store: c.Store, writer: c.Store.RunWriter(), log: c.Logger.With("component", "runner"),
		wake: make(chan struct{}, 1), free: freeBytes,
		saved: saved{path: filepath.Join(data, savedFile)}, stages: stages{data: data},
		hook: newHook(c.Settings.Webhook, c.Logger),
		live: make(map[ablation.RunID]*life),
		lost: make(map[ablation.RunID]*lostRun), handed: make(map[ablation.RunID]string),
	}, nil
}

// Run adopts what runs already, then schedules and follows until ctx is done.
// It returns when all its goroutines have; the trainers go on.
func (r *Runner) Run(ctx context.Context) error {
	r.mu.Lock()
	r.base = ctx
	r.mu.Unlock()
	defer r.lives.Wait()
	r.lives.Go(func() { r.cfg.Devices.Run(ctx) })
	r.lives.Go(func() { r.hook.run(ctx) })
	r.lives.Go(func() { r.recallStages(ctx) })
	before := r.saved.get()
	r.cfg.Devices.Name(before.Names)
	r.cfg.Devices.PutAway(before.Quarantined)
	if err := r.adopt(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("adopt runs: %w", err)
	}
	tick := time.NewTicker(r.cfg.Timing.Tick)
	defer tick.Stop()
	for {
		if err := r.pass(ctx); err != nil && ctx.Err() == nil {
			r.log.Error("scheduler pass", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-r.wake:
		case <-tick.C:
			r.lookForLost(ctx)
			r.heedFaults(ctx)
		}
	}
}

// Launch expands a study, stores it with its runs queued, and returns both.
// source is the study file as written, or "".
func (r *Runner) Launch(ctx context.Context, st ablation.Study, source string) (ablation.StudyRecord, []ablation.Run, error) {
	planned, err := ablation.Expand(st)
	if err != nil {
		return ablation.StudyRecord{}, nil, err
	}
	rec, runs, err := r.store.CreateStudy(ctx, st, source, planned)
	if err != nil {
		return ablation.StudyRecord{}, nil, fmt.Errorf("launch study: %w", err)
	}
	r.queue.added(runs)
	r.log.Info("study launched", "study", rec.ID, "runs", len(runs))
	for _, run := range runs {
		r.cfg.Publish(store.Commit{Run: run})
	}
	r.Wake()
	return rec, runs, nil
}

// Wake asks for a scheduler pass now: something was queued or resumed.
func (r *Runner) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Devices returns the devices and who holds them.
func (r *Runner) Devices() []gpu.Device { return r.cfg.Devices.Devices() }

// move changes a run's state and tells the world.
func (r *Runner) move(ctx context.Context, id ablation.RunID, ev ablation.Event, change func(*ablation.Run)) (ablation.Run, error) {
	run, err := r.writer.Move(ctx, id, ev, change)
	if err != nil {
		return run, err
	}
	r.queue.moved(run)
	r.log.Info("run moved", "run", id, "event", string(ev), "state", string(run.State), "cause", run.Cause)
	r.cfg.Publish(store.Commit{Run: run})
	return run, nil
}

// folder is one of the data folder's. Where it is a link, as to a file system
// that a cluster's machines share, it is named by its target: elsewhere the
// link may not be there.
func (r *Runner) folder(name string) string {
	path := filepath.Join(r.cfg.Data, name)
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSymlink != 0 {
		if target, err := filepath.EvalSymlinks(path); err == nil {
			return target
		}
	}
	return path
}

// runDir is the folder of a run.
func (r *Runner) runDir(id ablation.RunID) string {
	r.rootOnce.Do(func() { r.root = r.folder("runs") })
	return filepath.Join(r.root, strconv.FormatInt(int64(id), 10))
}

// attemptDir is the folder of an attempt.
func (r *Runner) attemptDir(id ablation.RunID, n int) string {
	return filepath.Join(r.runDir(id), strconv.Itoa(n))
}
