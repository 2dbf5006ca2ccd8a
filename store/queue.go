package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"alidade/ablation"
	"alidade/trainer"
)

// A QueuedRun is what the scheduler needs of a queued run.
type QueuedRun struct {
	ID       ablation.RunID
	Study    ablation.StudyID
	Arm      int
	Priority int
	Hold     string
	Attempt  int // attempts so far
	ReadyAt  time.Time
	QueuedAt time.Time
}

// Queued returns the queued runs as the queue orders them: larger priority
// first, then the one that waits longer, then the smaller id.
func (s *Store) Queued(ctx context.Context) ([]QueuedRun, error) {
	rows, err := s.read.QueryContext(ctx, `
		SELECT id, study, arm, priority, hold, attempt, ready_at, queued_at
		FROM runs
		WHERE state = 'queued'
		ORDER BY priority DESC, queued_at, id`)
	out := []QueuedRun{}
	err = each(rows, err, func() error {
		var q QueuedRun
		var ready, queued int64
		err := rows.Scan(&q.ID, &q.Study, &q.Arm, &q.Priority, &q.Hold, &q.Attempt, &ready, &queued)
		q.ReadyAt, q.QueuedAt = fromMillis(ready), fromMillis(queued)
		out = append(out, q)
		return err
	})
	return out, s.wrap("read the queue", err)
}

// PlanVersion changes whenever runs were added or a study was changed: with
// that and the moves, a copy of the queue can be kept.
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

// Order changes what orders a run in the queue: priority, hold and the time
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
		r.Priority, r.Hold, r.ReadyAt = changed.Priority, changed.Hold, changed.ReadyAt
		r = asStored(r)
		if err := updateRun(ctx, tx, r); err != nil {
			return err
		}
		return w.s.saveState(r)
	})
	return r, err
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
