package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"alidade/ablation"
	"alidade/trainer"
)

// applier stores one batch.
type applier struct {
	s   *Store
	ctx context.Context
	tx  *sql.Tx
	b   Batch

	run     ablation.Run
	segment int
	main    bool // the current phase is the run's progress
	own     bool // the runner's own events, not lines of the file
	heard   int64

	tail     []byte
	points   int
	series   map[int64]*seriesGrowth
	overflow int
	commit   Commit
}

// apply stores a batch and its offset, and returns what that changed. It stops
// at the first error: SQLite may have ended the transaction with it (it does so
// when the disk is full), and what came after would be stored by itself.
func (s *Store) apply(ctx context.Context, tx *sql.Tx, b Batch) (Commit, error) {
	a := &applier{s: s, ctx: ctx, tx: tx, b: b, series: map[int64]*seriesGrowth{}}
	if err := a.begin(); err != nil {
		return Commit{}, err
	}
	for i := range b.Events {
		if err := a.event(&b.Events[i]); err != nil {
			return Commit{}, fmt.Errorf("store %s event: %w", b.Events[i].Kind, err)
		}
	}
	for _, store := range []func() error{a.storePoints, a.storeFaults, a.storeProgress} {
		if err := store(); err != nil {
			return Commit{}, err
		}
	}
	var err error
	a.commit.Seq, err = nextSeq(ctx, tx)
	a.commit.Run = a.run
	return a.commit, err
}

// begin reads how the attempt stands and checks that the batch comes next.
func (a *applier) begin() error {
	var offset int64
	err := a.tx.QueryRowContext(a.ctx, "SELECT offset, segment, main FROM attempts WHERE run = ? AND number = ?", a.b.Run, a.b.Attempt).
		Scan(&offset, &a.segment, &a.main)
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("attempt %d of run %d: %w", a.b.Attempt, a.b.Run, ablation.ErrNotFound)
	}
	if err != nil {
		return err
	}
	a.own = a.b.Own || a.b.Offset == offset && !a.b.Segment
	switch {
	case a.b.Own:
		a.b.Offset = offset
	case a.b.Segment:
		a.segment++
	case a.b.Offset < offset, a.own && !onlyAlerts(a.b.Events):
		return fmt.Errorf("attempt %d is stored up to byte %d, the batch ends at %d: %w", a.b.Attempt, offset, a.b.Offset, ablation.ErrConflict)
	}
	a.run, err = a.s.readRun(a.ctx, a.tx, a.b.Run)
	return err
}

func onlyAlerts(events []trainer.Event) bool {
	return !slices.ContainsFunc(events, func(e trainer.Event) bool { return e.Kind != trainer.KindAlert })
}

func (a *applier) event(e *trainer.Event) error {
	if !a.own {
		a.heard = max(a.heard, e.T)
	}
	switch e.Kind {
	case trainer.KindHello:
		return a.hello(e.Hello)
	case trainer.KindPhase:
		return a.phase(e.Phase, e.T)
	case trainer.KindPoints:
		return a.addPoints(e.Points, e.T)
	case trainer.KindTrajectory:
		head, err := a.trajectory(e)
		a.commit.Trajectories = append(a.commit.Trajectories, head)
		return err
	case trainer.KindEvaluation:
		return a.evaluation(*e.Evaluation)
	case trainer.KindCheckpoint:
		return a.checkpoint(e.Checkpoint, e.T)
	case trainer.KindArtifact:
		return a.artifact(e.Artifact, e.T)
	case trainer.KindAlert:
		return a.alert(e.Alert, e.T)
	case trainer.KindDone:
		return a.done(e.Done)
	case trainer.KindOverflow:
		a.overflow++
	}
	return nil
}

func (a *applier) exec(query string, args ...any) error {
	_, err := a.tx.ExecContext(a.ctx, query, args...)
	return err
}

func (a *applier) hello(h *trainer.Hello) error {
	if h.TotalSteps > 0 {
		a.run.TotalSteps = h.TotalSteps
	}
	return a.setJSON("hello", h)
}

func (a *applier) done(d *trainer.Done) error {
	a.run.Step = max(a.run.Step, d.Step)
	return a.setJSON("done", d)
}

// setJSON sets a column of the attempt.
func (a *applier) setJSON(column string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return a.exec("UPDATE attempts SET "+column+" = ? WHERE run = ? AND number = ?", string(b), a.b.Run, a.b.Attempt)
}

func (a *applier) phase(p *trainer.Phase, at int64) error {
	a.run.Phase, a.main = p.Name, p.Main
	if p.Main && p.Total > 0 {
		a.run.TotalSteps = p.Total
	}
	return a.exec(`
		INSERT INTO phases (run, attempt, name, step, total, main, at)
		VALUES (?, ?, ?, ?, ?, ?, ?)`,
		a.b.Run, a.b.Attempt, p.Name, p.Step, p.Total, p.Main, at)
}

// seriesGrowth is what a batch adds to a series.
type seriesGrowth struct {
	n           int
	first, last int64
	lastWall    int64
	lastValue   float64
	ordered     bool
}

func (g *seriesGrowth) add(step, wall int64, value float64) {
	if g.n == 0 {
		*g = seriesGrowth{1, step, step, wall, value, true}
		return
	}
	g.n++
	g.ordered = g.ordered && step > g.last
	g.first = min(g.first, step)
	if step >= g.last {
		g.last, g.lastWall, g.lastValue = step, wall, value
	}
}

func (a *applier) addPoints(p *trainer.Points, at int64) error {
	names := make([]string, 0, len(p.Values))
	progress := false
	for name := range p.Values {
		names = append(names, name)
		progress = progress || !strings.HasPrefix(name, "baseline/") && !strings.HasPrefix(name, "sft/")
	}
	slices.Sort(names)
	if a.main && progress && !a.own {
		a.run.Step = max(a.run.Step, p.Step)
	}
	a.tail = appendTailHead(a.tail, p.Step, at, len(names))
	wall := time.UnixMilli(at).UTC()
	for _, name := range names {
		value := float64(p.Values[name])
		id, err := a.s.names.id(a.tx, name)
		if err != nil {
			return err
		}
		a.tail = appendTailValue(a.tail, id, value)
		g := a.series[id]
		if g == nil {
			g = new(seriesGrowth)
			a.series[id] = g
		}
		g.add(p.Step, at, value)
		a.commit.Points = append(a.commit.Points, MetricPoint{name, ablation.Point{Step: p.Step, Wall: wall, Value: value}})
	}
	a.points += len(names)
	return nil
}

func (a *applier) storePoints() error {
	if a.points == 0 {
		return nil
	}
	if _, err := a.tx.StmtContext(a.ctx, a.s.st.insertTail).ExecContext(a.ctx, a.b.Run, a.b.Attempt, a.segment, a.points, a.tail); err != nil {
		return err
	}
	upsert := a.tx.StmtContext(a.ctx, a.s.st.upsertSeries)
	for id, g := range a.series {
		if _, err := upsert.ExecContext(a.ctx, a.b.Run, id, a.b.Attempt, a.segment, g.n, g.first, g.last, g.lastWall, g.lastValue, g.ordered); err != nil {
			return err
		}
	}
	return nil
}

// mostFaults is how many malformed lines of an attempt are described.
const mostFaults = 1000

func (a *applier) storeFaults() error {
	if len(a.b.Faults) == 0 {
		return nil
	}
	var have int
	if err := a.tx.QueryRowContext(a.ctx, "SELECT count(*) FROM faults WHERE run = ? AND attempt = ?", a.b.Run, a.b.Attempt).Scan(&have); err != nil {
		return err
	}
	for _, f := range a.b.Faults[:min(len(a.b.Faults), max(0, mostFaults-have))] {
		err := a.exec("INSERT INTO faults (run, attempt, line, offset, cause, text) VALUES (?, ?, ?, ?, ?, ?)",
			a.b.Run, a.b.Attempt, f.Line, f.Offset, f.Cause, f.Text)
		if err != nil {
			return err
		}
	}
	return nil
}

// storeProgress stores the offset, the counts and where the run stands.
func (a *applier) storeProgress() error {
	err := a.exec(`
		UPDATE attempts
		SET offset = ?, segment = ?, main = ?,
		    points = points + ?, malformed = malformed + ?, unknown = unknown + ?, overflow = overflow + ?
		WHERE run = ? AND number = ?`,
		a.b.Offset, a.segment, a.main, a.points, a.b.Malformed, a.b.Unknown, a.overflow, a.b.Run, a.b.Attempt)
	if err != nil {
		return err
	}
	if heard := fromMillis(a.heard); heard.After(a.run.HeardAt) {
		a.run.HeardAt = heard
	}
	return updateRun(a.ctx, a.tx, a.run)
}
