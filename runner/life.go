package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"alidade/ablation"
	"alidade/gpu"
	"alidade/store"
	"alidade/trainer"
)

// batchLines bounds the events of one transaction.
const batchLines = 2000

// cleanUpTime bounds the writes that must happen even when the server stops.
const cleanUpTime = 10 * time.Second

// A life is one attempt of a run, from launch or adoption to the verdict. Its
// fields belong to its goroutine, but for those that newLife sets and stop.
type life struct {
	r       *Runner
	studyID ablation.StudyID
	study   string // name
	stop    chan struct{}

	run     ablation.Run
	attempt ablation.Attempt
	handle  Handle
	want    gpu.Request
	lease   gpu.Lease
	started bool // the attempt is recorded

	follower *trainer.Follower
	pending  *trainer.Lines // read, not stored yet
	retryAt  time.Time      // when storing failed
	done     *trainer.Done
	nan      string // the first metric that was NaN, with its step
	watch    watch
	health   health
	readings readings
	rungs    rungs
	stopper  stopper
	behind   bool // the backlog of a time without a server is being read
	missing  bool // the alert about a vanished file was given
	skewed   bool // so was the one about the trainer's clock

	complaints map[string]string // what went wrong last, not to be logged again
}

// claim registers a life for a run, so that Stop finds it and nobody else
// starts another. When the run has one already, that one is returned.
func (r *Runner) claim(run ablation.Run) (l *life, claimed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l := r.live[run.ID]; l != nil {
		return l, false
	}
	l = &life{r: r, studyID: run.Study, run: run, stop: make(chan struct{}, 1), complaints: make(map[string]string)}
	r.live[run.ID] = l
	return l, true
}

// leave gives back what a life held.
func (l *life) leave() {
	l.r.mu.Lock()
	delete(l.r.live, l.run.ID)
	delete(l.r.handed, l.run.ID)
	l.r.mu.Unlock()
	l.r.stages.left(l.run.ID)
	l.r.cfg.Devices.Release(l.lease)
	l.r.estimates.left(l.run)
	l.r.Wake()
}

// spawn runs a life in a goroutine that Run waits for; false when Run is over
// or has not begun.
func (l *life) spawn(live func(ctx context.Context)) bool {
	l.r.mu.Lock()
	defer l.r.mu.Unlock()
	if ctx := l.r.base; ctx != nil && ctx.Err() == nil {
		l.r.lives.Go(func() {
			defer l.leave()
			live(ctx)
		})
		return true
	}
	return false
}

// begin launches the trainer, then goes on like an adopted one.
func (l *life) begin(ctx context.Context) {
	err := l.launch(ctx)
	if err != nil && ctx.Err() != nil {
		return // the server ends: the next one finds how far this came
	}
	if err != nil {
		l.r.log.Warn("launch", "run", l.run.ID, "attempt", l.run.Attempt, "err", err)
		l.notLaunched(ctx, err)
		return
	}
	l.live(ctx)
}

// live follows the attempt to its end and settles it. When ctx is done it
// leaves the trainer alone: the next server adopts it.
func (l *life) live(ctx context.Context) {
	l.started = true
	l.follower = trainer.Follow(l.eventsPath(), trainer.FollowOptions{Offset: l.attempt.Offset})
	defer func() { _ = l.follower.Close() }()
	l.watch = newWatch(l.r.cfg.Timing, l.run.Arm.Recipe, time.Now())
	l.health = newHealth()
	l.relearn(ctx, time.Now())
	l.loadRungs(ctx)
	if !l.follow(ctx) {
		return
	}
	l.readRemote(ctx)
	l.settle(ctx)
}

func (l *life) eventsPath() string { return filepath.Join(l.attempt.Dir, eventsFile) }

func (l *life) stopping() bool { return l.run.State == ablation.Stopping || len(l.stop) > 0 }

// follow stores what the trainer writes until it has ended and its last line
// is stored; false when ctx was done first.
func (l *life) follow(ctx context.Context) bool {
	timing := l.r.cfg.Timing
	var aliveAt, goneAt time.Time
	gone := false
	for {
		now := time.Now()
		if !gone && now.Sub(aliveAt) >= timing.Alive {
			aliveAt = now
			if gone = l.ended(ctx, now); gone {
				goneAt = now
			}
		}
		// Read after the look at the process: what an ended one wrote is all there.
		progress, err := l.ingest(ctx, now)
		switch {
		case ctx.Err() != nil:
			return false
		case err != nil: // told once; the batch waits
		case progress:
			goneAt = now
		case gone && (l.recorded() || now.Sub(goneAt) >= timing.Lost):
			return true
		}
		if !progress {
			l.behind = false
		}
		if !gone {
			l.stepStop(ctx, now)
			l.alarm(ctx, now)
			l.readDevices(ctx, now)
		}
		wait := timing.Poll
		if progress {
			wait = 0
		}
		select {
		case <-ctx.Done():
			return false
		case <-l.stop:
			l.run.State = ablation.Stopping
			l.stopper.ask(time.Now())
		case <-time.After(wait):
		}
	}
}

// ended reports whether nothing of the attempt runs any more. Where that
// cannot be known, its exit record, its done event or long silence tells.
func (l *life) ended(ctx context.Context, now time.Time) bool {
	if l.handle.Ref != "" {
		switch l.r.cfg.Launcher.Alive(ctx, l.handle) {
		case Gone:
			return true
		case Alive:
			return false
		}
	}
	quiet := now.Sub(l.watch.heard)
	if l.done != nil || l.follower.Missing() || l.run.State == ablation.Stopping {
		return l.recorded() || quiet >= l.r.cfg.Timing.Lost
	}
	return l.recorded() || quiet >= l.watch.patience()
}

// ingest reads new lines and stores them with the offset behind them, in one
// transaction. A batch that cannot be stored is kept and tried again.
func (l *life) ingest(ctx context.Context, now time.Time) (progress bool, err error) {
	if l.pending == nil {
		lines, err := l.follower.Read(batchLines)
		l.complain("read events", err)
		l.sourceMissing(ctx)
		if lines.Empty() {
			return false, err
		}
		l.pending = &lines
	}
	if now.Before(l.retryAt) {
		return false, errWaits
	}
	err = l.commit(ctx, *l.pending)
	l.complain("store events", err)
	if err != nil {
		l.retryAt = now.Add(time.Second)
		return false, err
	}
	l.pending, l.retryAt = nil, time.Time{}
	return true, nil
}

var errWaits = errors.New("waits to store again")

// complain logs an error once while it repeats; nil ends the silence.
func (l *life) complain(what string, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && l.complaints[what] != text {
		l.r.log.Error(what, "run", l.run.ID, "attempt", l.attempt.Number, "err", err)
	}
	l.complaints[what] = text
}

// commit stores one batch and tells the world.
func (l *life) commit(ctx context.Context, lines trainer.Lines) error {
	if l.run.State == ablation.Starting && len(lines.Events) > 0 {
		run, err := l.r.move(ctx, l.run.ID, ablation.EvStarted, nil)
		switch {
		case err == nil:
			l.run = run
			l.r.waits(l.run.ID, "") // for nothing any more
		case !errors.Is(err, ablation.ErrConflict): // else: a stop came first
			return err
		}
	}
	if err := l.append(ctx, store.Batch{
		Run: l.run.ID, Attempt: l.attempt.Number, Offset: lines.Offset, Events: lines.Events,
		Malformed: lines.Malformed, Unknown: lines.Unknown, Faults: lines.Faults, Segment: lines.Segment,
	}); errors.Is(err, ablation.ErrConflict) {
		l.r.log.Warn("these lines were stored already", "run", l.run.ID, "attempt", l.attempt.Number, "offset", lines.Offset)
	} else if err != nil {
		return err
	}
	l.attempt.Offset = lines.Offset
	now := time.Now()
	if l.watch.silent != "" {
		l.alert(ctx, trainer.Alert{Level: "info", Code: "writes-again", Text: "the trainer writes again after " + l.watch.silent})
	}
	l.skew(ctx, now, lines.Events)
	l.watch.hear(now, lines.Events)
	l.note(lines.Events)
	l.passed(lines.Events)
	l.examine(ctx, now, lines.Events)
	return nil
}

// examine raises what the detectors find in new events, and ends a run that
// only wastes its devices.
func (l *life) examine(ctx context.Context, now time.Time, events []trainer.Event) {
	l.climb(ctx, events)
	for i := range events {
		late := l.behind && now.UnixMilli()-events[i].T > lateAfter.Milliseconds()
		for _, f := range l.health.hear(&events[i]) {
			f.alert.Late = late
			l.alertAt(ctx, f.alert)
			if !f.stop || l.run.State == ablation.Stopping || late {
				continue
			}
			text, _, _ := strings.Cut(f.alert.Text, "\n")
			if err := l.r.stop(ctx, l.run.ID, "", text); err != nil {
				l.r.log.Error("stop a sick run", "run", l.run.ID, "err", err)
			}
		}
	}
}

// lateAfter is the age from which a finding in a backlog is about the past.
const lateAfter = time.Minute

// because is why Alidade itself ended the run; "" when a person did.
func (l *life) because() string {
	if l.run.State != ablation.Stopping {
		return ""
	}
	return l.run.Cause
}

// relearnBytes is how much of the events before the stored offset is read
// again after an adoption.
const relearnBytes = 512 << 10

// relearn teaches the watch and the detectors what they knew before the server
// was started anew, from the end of what is stored.
func (l *life) relearn(ctx context.Context, now time.Time) {
	told, err := l.r.store.Alerts(ctx, 0, l.run.ID, 100)
	if err != nil {
		l.r.log.Error("read alerts", "run", l.run.ID, "err", err)
	}
	if l.attempt.Offset > 0 {
		l.behind = true
		events := eventsBefore(l.eventsPath(), l.attempt.Offset, relearnBytes)
		l.watch.relearn(now, events, l.eventsPath())
		for i := range events {
			l.health.hear(&events[i]) // told before
		}
	}
	for _, a := range told {
		l.health.told(a)
	}
	if len(told) > 0 && (told[0].Code == "stalled" || told[0].Code == "nothing-received") && told[0].At.After(l.attempt.StartedAt) {
		l.watch.silent = "a silence that began before " + told[0].At.Local().Format(time.TimeOnly) // its newest alert: told already
	}
}

// eventsBefore reads the complete lines among the last n bytes before an
// offset. What cannot be read is left out.
func eventsBefore(path string, offset, n int64) []trainer.Event {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	from := max(0, offset-n)
	text := make([]byte, offset-from)
	if _, err := f.ReadAt(text, from); err != nil {
		return nil
	}
	if from > 0 {
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	var events []trainer.Event
	for r := trainer.NewReader(bytes.NewReader(text), trainer.ReaderOptions{}); r.Next(); {
		events = append(events, r.Event())
	}
	return events
}

// append stores a batch; l.run follows what the store made of it, but for a
// stop that only this life knows of.
func (l *life) append(ctx context.Context, b store.Batch) error {
	commit, err := l.r.writer.Append(ctx, b)
	if err != nil {
		return err
	}
	if commit.Run.ID == l.run.ID {
		l.run = commit.Run
		l.r.estimates.follow(l.run, time.Now())
	}
	l.r.cfg.Publish(commit)
	return nil
}

// note keeps what the verdict will need.
func (l *life) note(events []trainer.Event) {
	for _, e := range events {
		switch e.Kind {
		case trainer.KindDone:
			l.done = e.Done
		case trainer.KindCheckpoint:
			l.stopper.checkpoint()
		case trainer.KindPoints:
			if l.nan == "" {
				l.nan = firstNaN(e.Points)
			}
		}
	}
}

func firstNaN(p *trainer.Points) string {
	first := ""
	for name, v := range p.Values {
		isLoss := strings.HasSuffix(name, "loss") || strings.HasSuffix(name, "grad_norm")
		if isLoss && math.IsNaN(float64(v)) && (first == "" || name < first) {
			first = name
		}
	}
	if first == "" {
		return ""
	}
	return fmt.Sprintf("%s is NaN at step %d", first, p.Step)
}

// alert stores an alert of the runner's own on the same road as the trainer's,
// and in the attempt's folder, which is the truth.
func (l *life) alert(ctx context.Context, a trainer.Alert) {
	a.Step = l.run.Step
	l.alertAt(ctx, a)
}

// alertAt is alert for one that knows its steps.
func (l *life) alertAt(ctx context.Context, a trainer.Alert) {
	if a.Late {
		a.Text = "found late, while catching up: " + a.Text
	}
	e := trainer.Event{V: trainer.Version, Kind: trainer.KindAlert, T: time.Now().UnixMilli(), Alert: &a}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
	defer cancel()
	b := store.Batch{Run: l.run.ID, Attempt: l.attempt.Number, Own: true, Events: []trainer.Event{e}}
	err := errors.Join(appendEvent(filepath.Join(l.attempt.Dir, alertsFile), e), l.append(ctx, b))
	if err != nil {
		l.r.log.Error("store alert", "run", l.run.ID, "code", a.Code, "text", a.Text, "err", err)
		return
	}
	l.r.log.Warn("alert", "run", l.run.ID, "code", a.Code, "text", a.Text)
	if !a.Late {
		l.r.hook.send(hookMessage{Run: l.run.ID, Attempt: l.attempt.Number, Study: l.study, Arm: l.run.Arm.Label,
			Level: a.Level, Code: a.Code, Text: a.Text, Step: a.Step, At: time.Now()})
	}
}

// appendEvent appends one line to a file of the runner's own.
func appendEvent(path string, e trainer.Event) error {
	line, err := trainer.Encode(e)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the folder is gone; the database still has it
	}
	if err != nil {
		return fmt.Errorf("write alert: %w", err)
	}
	_, err = f.Write(line)
	return errors.Join(err, f.Close())
}

// alarm raises what the watch finds.
func (l *life) alarm(ctx context.Context, now time.Time) {
	if w, ok := l.r.cfg.Launcher.(Waiter); ok && l.run.State == ablation.Starting {
		why, waiting := w.Waiting(ctx, l.handle)
		if !waiting {
			why = ""
		}
		l.r.waits(l.run.ID, why)
		if waiting {
			l.watch.heard = now // silence begins with the start
			return
		}
	}
	if l.run.State == ablation.Stopping {
		return
	}
	if a := l.watch.look(now, l.eventsPath()); a != nil {
		l.alert(ctx, *a)
	}
}

// sourceMissing raises an alert when the events file was there and vanished.
func (l *life) sourceMissing(ctx context.Context) {
	if l.missing || !l.follower.Missing() || l.attempt.Offset == 0 {
		return
	}
	l.missing = true
	l.alert(ctx, trainer.Alert{
		Level: "bad", Code: "source-missing",
		Text: fmt.Sprintf("%s is gone; what was stored of it stays", l.eventsPath()),
	})
}
