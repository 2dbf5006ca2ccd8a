package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"alidade/ablation"
	"alidade/trainer"
)

// A QueuedRun is what the scheduler needs of a queued run.
type QueuedRun struct {
	ID       ablation.RunID
	Study    ablation.StudyID
	Arm      int
	Seed     uint64
	Priority int
	Place    int64 // among equals, as a person put it; 0 = by age
	Hold     string
	Attempt  int // attempts so far
	ReadyAt  time.Time
	QueuedAt time.Time
}

// Rank orders runs of equal priority: the smaller starts first. It is where a
// person put the run, else its age, then its id.
func (q *QueuedRun) Rank() int64 {
	if q.Place != 0 {
		return q.Place
	}
	return millis(q.QueuedAt)<<20 | int64(q.ID)&(1<<20-1)
}

// Before reports whether q starts before o: larger priority first, then the
// smaller rank.
func (q *QueuedRun) Before(o *QueuedRun) int {
	return cmp.Or(cmp.Compare(o.Priority, q.Priority), cmp.Compare(q.Rank(), o.Rank()), cmp.Compare(q.ID, o.ID))
}

// Queued returns the queued runs whose id is above after, in the order of
// [QueuedRun.Before].
func (s *Store) Queued(ctx context.Context, after ablation.RunID) ([]QueuedRun, error) {
	rows, err := s.read.QueryContext(ctx, `
		SELECT id, study, arm, seed, priority, place, hold, attempt, ready_at, queued_at
		FROM runs
		WHERE +state = 'queued' AND id > ?`, after)
	out := []QueuedRun{}
	err = each(rows, err, func() error {
		var q QueuedRun
		var seed, ready, queued int64
		err := rows.Scan(&q.ID, &q.Study, &q.Arm, &seed, &q.Priority, &q.Place, &q.Hold, &q.Attempt, &ready, &queued)
		q.Seed, q.ReadyAt, q.QueuedAt = uint64(seed), fromMillis(ready), fromMillis(queued)
		out = append(out, q)
		return err
	})
	slices.SortFunc(out, func(a, b QueuedRun) int { return a.Before(&b) })
	return out, s.wrap("read the queue", err)
}

// PlanVersion changes whenever runs were added: with that and the moves, a copy
// of the queue can be kept. Ids of added runs are above all earlier ones.
func (s *Store) PlanVersion() int64 { return s.plans.Load() }

// A Pace is how long the succeeded runs of an arm took.
type Pace struct {
	Study ablation.StudyID
	Arm   int
	Runs  int
	Mean  time.Duration // of a run's last attempt
	Most  time.Duration
	Steps int64 // of those runs, on average
}

// Paces returns how long succeeded first attempts took, by study and arm.
// Attempts that resumed tell nothing about a whole run.
func (s *Store) Paces(ctx context.Context) ([]Pace, error) {
	rows, err := s.read.QueryContext(ctx, `
		SELECT r.study, r.arm, count(*), avg(r.ended_at - r.started_at), max(r.ended_at - r.started_at), avg(r.total_steps)
		FROM runs r
		WHERE r.state = 'succeeded' AND r.attempt = 1 AND r.ended_at > r.started_at
		GROUP BY r.study, r.arm`)
	out := []Pace{}
	err = each(rows, err, func() error {
		var p Pace
		var mean, steps float64
		var most int64
		err := rows.Scan(&p.Study, &p.Arm, &p.Runs, &mean, &most, &steps)
		p.Mean, p.Most, p.Steps = time.Duration(mean*float64(time.Millisecond)), time.Duration(most)*time.Millisecond, int64(steps)
		out = append(out, p)
		return err
	})
	return out, s.wrap("read how long runs took", err)
}

// Order changes what orders a run in the queue: priority, place, hold and the time
// before which it may not start. Other changes are not stored. It returns
// ErrConflict, and changes nothing, when the run has ended.
func (w *RunWriter) Order(ctx context.Context, id ablation.RunID, change func(*ablation.Run)) (ablation.Run, error) {
	var r ablation.Run
	err := w.s.transact(ctx, fmt.Sprintf("order run %d", id), func(tx *sql.Tx) error {
		var err error
		if r, err = w.s.readRun(ctx, tx, id); err != nil {
			return err
		}
		if r.State == ablation.Succeeded {
			return fmt.Errorf("it has %s: %w", r.State, ablation.ErrConflict)
		}
		changed := r
		change(&changed)
		r.Priority, r.Place, r.Hold, r.ReadyAt = changed.Priority, changed.Place, changed.Hold, changed.ReadyAt
		r = asStored(r)
		if err := updateRun(ctx, tx, r); err != nil {
			return err
		}
		return w.s.saveState(r)
	})
	return r, err
}

// A Made is an artifact and the run that made it.
type Made struct {
	Kind, Path string // Path may be relative to the data folder
	Run        ablation.RunID
	Study      ablation.StudyID
	Arm        int
	Seed       uint64
}

// Made lists the artifacts of the kinds with their makers, as far as these are
// still stored.
func (s *Store) Made(ctx context.Context, kinds ...string) ([]Made, error) {
	list, err := json.Marshal(kinds)
	if err != nil {
		return nil, err
	}
	rows, err := s.read.QueryContext(ctx, `
		SELECT DISTINCT a.kind, a.path, r.id, r.study, r.arm, r.seed
		FROM artifacts a JOIN runs r ON r.id = a.maker
		WHERE a.kind IN (SELECT value FROM json_each(?))`, string(list))
	out := []Made{}
	err = each(rows, err, func() error {
		var m Made
		var seed int64
		err := rows.Scan(&m.Kind, &m.Path, &m.Run, &m.Study, &m.Arm, &seed)
		m.Seed = uint64(seed)
		out = append(out, m)
		return err
	})
	return out, s.wrap("list what was made", err)
}

// noticesFile holds the alerts that belong to no run, in the data folder.
const noticesFile = "notices.jsonl"

// Notice stores an alert that belongs to no run, such as that of a full disk,
// and appends it to notices.jsonl. Its Run is 0.
func (w *RunWriter) Notice(ctx context.Context, a trainer.Alert) (Commit, error) {
	e := trainer.Event{V: trainer.Version, Kind: trainer.KindAlert, T: time.Now().UnixMilli(), Alert: &a}
	var c Commit
	err := w.s.transact(ctx, "store notice", func(tx *sql.Tx) error {
		stored, err := insertNotice(ctx, tx, e)
		if err != nil {
			return err
		}
		c.Alerts = append(c.Alerts, stored)
		c.Seq, err = nextSeq(ctx, tx)
		return err
	})
	if err != nil {
		return Commit{}, err
	}
	return c, w.s.wrap("write notice", appendLine(filepath.Join(w.s.dir, noticesFile), e))
}

func insertNotice(ctx context.Context, tx *sql.Tx, e trainer.Event) (ablation.Alert, error) {
	a := e.Alert
	out := ablation.Alert{Level: a.Level, Code: a.Code, Text: a.Text, At: fromMillis(e.T)}
	err := tx.QueryRowContext(ctx, `
		INSERT INTO alerts (run, attempt, level, code, text, step, at)
		VALUES (0, 0, ?, ?, ?, 0, ?)
		RETURNING id`, a.Level, a.Code, a.Text, e.T).Scan(&out.ID)
	return out, err
}

func appendLine(path string, e trainer.Event) error {
	line, err := trainer.Encode(e)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(line)
	return errors.Join(err, f.Close())
}
