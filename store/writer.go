package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"

	"alidade/ablation"
	"alidade/trainer"
)

// RunWriter is the only way to change a run. Only the runner holds it. It is
// safe for concurrent use.
type RunWriter struct{ s *Store }

// RunWriter returns the store's writer of runs.
func (s *Store) RunWriter() *RunWriter { return &RunWriter{s} }

// Move changes a run's state by an event, and with it what change says (cause,
// device, times …), if the rules of ablation.State.Next allow it: otherwise it
// returns ErrConflict and nothing changed. Change may be nil; it sees the run
// with its new state. The run's state file is written with it.
func (w *RunWriter) Move(ctx context.Context, id ablation.RunID, ev ablation.Event, change func(*ablation.Run)) (ablation.Run, error) {
	var r ablation.Run
	err := w.s.transact(ctx, fmt.Sprintf("move run %d", id), func(tx *sql.Tx) error {
		var err error
		if r, err = w.s.readRun(ctx, tx, id); err != nil {
			return err
		}
		if r.State, err = r.State.Next(ev); err != nil {
			return err
		}
		if change != nil {
			change(&r)
		}
		r = asStored(r)
		if err := updateRun(ctx, tx, r); err != nil {
			return err
		}
		return w.s.saveState(r)
	})
	if err == nil && r.State.Terminal() {
		w.s.settleTail(id)
	}
	return r, err
}

// asStored gives a run's times the resolution of the database.
func asStored(r ablation.Run) ablation.Run {
	r.ReadyAt = fromMillis(millis(r.ReadyAt))
	r.QueuedAt, r.StartedAt = fromMillis(millis(r.QueuedAt)), fromMillis(millis(r.StartedAt))
	r.EndedAt, r.HeardAt = fromMillis(millis(r.EndedAt)), fromMillis(millis(r.HeardAt))
	return r
}

// StartAttempt stores a new attempt and makes it its run's current one. An
// empty Dir is the folder that the layout gives it. It returns ErrConflict when
// the attempt is there already.
func (w *RunWriter) StartAttempt(ctx context.Context, a ablation.Attempt) error {
	if a.Dir == "" {
		a.Dir = w.s.AttemptDir(a.Run, a.Number)
	}
	if a.State == "" {
		a.State = ablation.Starting
	}
	return w.s.transact(ctx, fmt.Sprintf("start attempt %d of run %d", a.Number, a.Run), func(tx *sql.Tx) error {
		if err := w.s.insertAttempt(ctx, tx, a); err != nil {
			return err
		}
		if err := os.MkdirAll(w.s.AttemptDir(a.Run, a.Number), 0o755); err != nil {
			return err
		}
		return w.s.saveAttempt(a)
	})
}

// EndAttempt stores how an attempt stands: device, process, state, exit and
// times. It may be called more than once. When the state is terminal, its
// points are moved to rest.
func (w *RunWriter) EndAttempt(ctx context.Context, a ablation.Attempt) error {
	err := w.s.transact(ctx, fmt.Sprintf("end attempt %d of run %d", a.Number, a.Run), func(tx *sql.Tx) error {
		if err := updateAttempt(ctx, tx, a); err != nil {
			return err
		}
		stored, err := w.s.readAttempt(ctx, tx, a.Run, a.Number)
		if err != nil {
			return err
		}
		return w.s.saveAttempt(stored)
	})
	if err == nil && a.State.Terminal() {
		w.s.settleTail(a.Run)
	}
	return err
}

// Batch is what was read from one attempt's events since its last batch.
type Batch struct {
	Run                ablation.RunID
	Attempt            int
	Offset             int64 // of events.jsonl, after the last line
	Events             []trainer.Event
	Malformed, Unknown int
	Faults             []trainer.Fault // of the malformed lines; may be fewer
	Segment            bool            // the file was replaced: a new segment begins
	Own                bool            // alerts and readings of the runner's own, not lines of the file: Offset does not count
}

// MetricPoint is a point with the name of its metric.
type MetricPoint struct {
	Metric string
	ablation.Point
}

// Commit is what one batch changed, as stored.
type Commit struct {
	Seq          int64        // larger than that of every earlier commit of this data folder
	Run          ablation.Run // after it
	Points       []MetricPoint
	Trajectories []TrajectoryHead
	Evaluations  []ablation.EvalResult
	Alerts       []ablation.Alert
}

// Append stores a batch's events and its offset in one transaction, together
// with what others append within CommitEvery, and returns once that is on the
// disk. A batch whose offset is not past the stored one was appended already:
// ErrConflict; only alerts of the runner's own come at the stored offset. A
// batch that fails does not take others with it.
func (w *RunWriter) Append(ctx context.Context, b Batch) (Commit, error) {
	if w.s.write == nil {
		return Commit{}, fmt.Errorf("append events of run %d: the store is open for reading only: %w", b.Run, ErrReadOnly)
	}
	req := &appendRequest{batch: b, result: make(chan appendResult, 1)}
	select {
	case w.s.appends <- req:
	case <-ctx.Done():
		return Commit{}, ctx.Err()
	case <-w.s.closing:
		return Commit{}, fmt.Errorf("append events of run %d: %w", b.Run, ErrClosed)
	}
	res := <-req.result // soon, and it may not be left in doubt
	if res.err != nil {
		return Commit{}, fmt.Errorf("append events of run %d: %w", b.Run, plain(w.s.dir, res.err))
	}
	return res.commit, nil
}

// NextSeq returns a number for a notice that is not a batch, such as a move,
// in the same order as those of commits.
func (w *RunWriter) NextSeq(ctx context.Context) (int64, error) {
	var seq int64
	err := w.s.transact(ctx, "number a notice", func(tx *sql.Tx) error {
		var err error
		seq, err = nextSeq(ctx, tx)
		return err
	})
	return seq, err
}

func nextSeq(ctx context.Context, tx *sql.Tx) (int64, error) {
	var seq int64
	err := tx.QueryRowContext(ctx, `
		INSERT INTO meta (key, value) VALUES ('seq', 1)
		ON CONFLICT (key) DO UPDATE SET value = value + 1
		RETURNING value`).Scan(&seq)
	return seq, err
}

// errRollback ends a group's transaction without a batch.
var errRollback = errors.New("no batch of the group could be stored")
