package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"alidade/ablation"
	"alidade/trainer"
)

// evaluation stores a panel's outcome. As with points, what an attempt says
// replaces what earlier attempts said of that step and later ones.
func (a *applier) evaluation(r ablation.EvalResult) error {
	r.Run = a.b.Run
	if r.Queries == nil {
		r.Queries = []ablation.QueryResult{}
	}
	queries, err := json.Marshal(r.Queries)
	if err != nil {
		return err
	}
	err = a.exec(`
		DELETE FROM evaluations
		WHERE run = ? AND panel = ? AND policy = ? AND mode = ? AND step >= ? AND attempt < ?`,
		r.Run, r.Panel, r.Policy, r.Mode, r.Step, a.b.Attempt)
	if err != nil {
		return err
	}
	a.commit.Evaluations = append(a.commit.Evaluations, r)
	return a.exec(`
		INSERT OR REPLACE INTO evaluations (run, panel, policy, mode, step, attempt, samples, hash, queries)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		r.Run, r.Panel, r.Policy, r.Mode, r.Step, a.b.Attempt, r.Samples, r.Hash, a.s.codec.pack(queries))
}

func (a *applier) checkpoint(c *trainer.Checkpoint, at int64) error {
	return a.exec(`
		INSERT OR REPLACE INTO checkpoints (run, attempt, step, path, sha256, bytes, best, at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		a.b.Run, a.b.Attempt, c.Step, c.Path, c.SHA256, c.Bytes, c.Best, at)
}

func (a *applier) artifact(r *ablation.Artifact, at int64) error {
	maker, created := r.Run, millis(r.CreatedAt)
	if maker == 0 {
		maker = a.b.Run
	}
	if created == 0 {
		created = at
	}
	provenance, err := json.Marshal(r.Provenance)
	if err != nil {
		return err
	}
	return a.exec(`
		INSERT OR REPLACE INTO artifacts (run, kind, hash, path, bytes, maker, step, provenance, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		a.b.Run, r.Kind, r.Hash, a.s.inside(r.Path), r.Bytes, maker, r.Step, string(provenance), created)
}

func (a *applier) alert(r *trainer.Alert, at int64) error {
	out := ablation.Alert{Run: a.b.Run, Level: r.Level, Code: r.Code, Text: r.Text, Step: r.Step, Since: r.Since, Late: r.Late, At: fromMillis(at)}
	err := a.tx.QueryRowContext(a.ctx, `
		INSERT INTO alerts (run, attempt, level, code, text, step, since, late, at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
		RETURNING id`,
		a.b.Run, a.b.Attempt, r.Level, r.Code, r.Text, r.Step, r.Since, r.Late, at).Scan(&out.ID)
	a.commit.Alerts = append(a.commit.Alerts, out)
	return err
}

// Evaluations returns the evaluations of runs (nil = all runs), by run, panel,
// policy, mode and step.
func (s *Store) Evaluations(ctx context.Context, runs []ablation.RunID) ([]ablation.EvalResult, error) {
	var where conditions
	if runs != nil {
		where.add("run IN (SELECT value FROM json_each(?))", jsonList(runs))
	}
	rows, err := s.read.QueryContext(ctx, `
		SELECT run, panel, policy, mode, step, samples, hash, queries
		FROM evaluations `+where.sql()+`
		ORDER BY run, panel, policy, mode, step`, where.args...)
	out := []ablation.EvalResult{}
	err = each(rows, err, func() error {
		var r ablation.EvalResult
		var packed []byte
		if err := rows.Scan(&r.Run, &r.Panel, &r.Policy, &r.Mode, &r.Step, &r.Samples, &r.Hash, &packed); err != nil {
			return err
		}
		queries, err := s.codec.unpack(packed, nil)
		if err != nil {
			return err
		}
		out = append(out, r)
		return json.Unmarshal(queries, &out[len(out)-1].Queries)
	})
	return out, s.wrap("list evaluations", err)
}

// Alerts returns alerts, newest first: of one study (0 = all), of one run
// (0 = all), at most limit (0 = all).
func (s *Store) Alerts(ctx context.Context, study ablation.StudyID, run ablation.RunID, limit int) ([]ablation.Alert, error) {
	var where conditions
	if study != 0 {
		where.add("run IN (SELECT id FROM runs WHERE study = ?)", study)
	}
	if run != 0 {
		where.add("run = ?", run)
	}
	rows, err := s.read.QueryContext(ctx, `
		SELECT id, run, level, code, text, step, since, late, at
		FROM alerts `+where.sql()+`
		ORDER BY id DESC`+page(limit, 0), where.args...)
	out := []ablation.Alert{}
	err = each(rows, err, func() error {
		var r ablation.Alert
		var at int64
		err := rows.Scan(&r.ID, &r.Run, &r.Level, &r.Code, &r.Text, &r.Step, &r.Since, &r.Late, &at)
		r.At = fromMillis(at)
		out = append(out, r)
		return err
	})
	return out, s.wrap("list alerts", err)
}

// Artifacts returns the artifacts that a run reported (0 = all runs), oldest
// first. Their Run is the run that made them.
func (s *Store) Artifacts(ctx context.Context, run ablation.RunID) ([]ablation.Artifact, error) {
	var where conditions
	if run != 0 {
		where.add("run = ?", run)
	}
	rows, err := s.read.QueryContext(ctx, `
		SELECT kind, hash, path, bytes, maker, step, provenance, created_at
		FROM artifacts `+where.sql()+`
		ORDER BY created_at, kind, hash`, where.args...)
	out := []ablation.Artifact{}
	err = each(rows, err, func() error {
		var r ablation.Artifact
		var provenance string
		var created int64
		if err := rows.Scan(&r.Kind, &r.Hash, &r.Path, &r.Bytes, &r.Run, &r.Step, &provenance, &created); err != nil {
			return err
		}
		r.CreatedAt = fromMillis(created)
		out = append(out, r)
		return json.Unmarshal([]byte(provenance), &out[len(out)-1].Provenance)
	})
	return out, s.wrap("list artifacts", err)
}

// Checkpoint is a checkpoint that an attempt reported complete.
type Checkpoint struct {
	Attempt int
	trainer.Checkpoint
	At time.Time
}

// Checkpoints returns a run's checkpoints, by attempt and step. Their paths
// are absolute.
func (s *Store) Checkpoints(ctx context.Context, run ablation.RunID) ([]Checkpoint, error) {
	rows, err := s.read.QueryContext(ctx, `
		SELECT c.attempt, c.step, c.path, c.sha256, c.bytes, c.best, c.at, a.dir
		FROM checkpoints c JOIN attempts a ON a.run = c.run AND a.number = c.attempt
		WHERE c.run = ?
		ORDER BY c.attempt, c.step`, run)
	out := []Checkpoint{}
	err = each(rows, err, func() error {
		var c Checkpoint
		var at int64
		var dir string
		err := rows.Scan(&c.Attempt, &c.Step, &c.Path, &c.SHA256, &c.Bytes, &c.Best, &at, &dir)
		c.Path, c.At = within(s.absolute(dir), c.Path), fromMillis(at)
		out = append(out, c)
		return err
	})
	return out, s.wrap("list checkpoints", err)
}

// Phase is a phase that an attempt opened.
type Phase struct {
	Attempt int
	trainer.Phase
	At time.Time
}

// Phases returns the phases of a run's attempts in the order they came.
func (s *Store) Phases(ctx context.Context, run ablation.RunID) ([]Phase, error) {
	rows, err := s.read.QueryContext(ctx, `
		SELECT attempt, name, step, total, main, at
		FROM phases
		WHERE run = ?
		ORDER BY id`, run)
	out := []Phase{}
	err = each(rows, err, func() error {
		var p Phase
		var at int64
		err := rows.Scan(&p.Attempt, &p.Name, &p.Step, &p.Total, &p.Main, &at)
		p.At = fromMillis(at)
		out = append(out, p)
		return err
	})
	return out, s.wrap("list phases", err)
}

// Faults returns the malformed lines of a run's attempts, at most a thousand
// of each; Counts has the true number.
func (s *Store) Faults(ctx context.Context, run ablation.RunID) ([]trainer.Fault, error) {
	rows, err := s.read.QueryContext(ctx, `
		SELECT line, offset, cause, text
		FROM faults
		WHERE run = ?
		ORDER BY attempt, rowid`, run)
	out := []trainer.Fault{}
	err = each(rows, err, func() error {
		var f trainer.Fault
		err := rows.Scan(&f.Line, &f.Offset, &f.Cause, &f.Text)
		out = append(out, f)
		return err
	})
	return out, s.wrap("list faults", err)
}

// Hello returns what a run's trainer last said of itself, or ErrNotFound when
// no attempt has said so yet.
func (s *Store) Hello(ctx context.Context, run ablation.RunID) (trainer.Hello, error) {
	var h trainer.Hello
	err := s.attemptJSON(ctx, "hello", &h, `
		SELECT hello FROM attempts
		WHERE run = ? AND hello IS NOT NULL
		ORDER BY number DESC LIMIT 1`, run)
	return h, err
}

// Done returns the last event of an attempt, or ErrNotFound when it has not
// come.
func (s *Store) Done(ctx context.Context, run ablation.RunID, attempt int) (trainer.Done, error) {
	var d trainer.Done
	err := s.attemptJSON(ctx, "done", &d, `
		SELECT done FROM attempts
		WHERE run = ? AND number = ? AND done IS NOT NULL`, run, attempt)
	return d, err
}

func (s *Store) attemptJSON(ctx context.Context, what string, v any, query string, args ...any) error {
	var text string
	err := s.read.QueryRowContext(ctx, query, args...).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("%s event of run %v: %w", what, args[0], ablation.ErrNotFound)
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), v)
	}
	return s.wrap("read "+what+" event", err)
}

// Counts says how much of a run is stored.
type Counts struct {
	Points, Trajectories, Evaluations int64
	Malformed, Unknown, Overflow      int64 // lines of events that could not be taken
}

// Counts returns how much of a run is stored, over all its attempts. Points
// counts those that a later attempt replaced in the curves too.
func (s *Store) Counts(ctx context.Context, run ablation.RunID) (Counts, error) {
	var c Counts
	err := s.read.QueryRowContext(ctx, `
		SELECT coalesce(sum(points), 0), coalesce(sum(malformed), 0), coalesce(sum(unknown), 0), coalesce(sum(overflow), 0),
		       (SELECT count(*) FROM trajectories WHERE run = ?1),
		       (SELECT count(*) FROM evaluations WHERE run = ?1)
		FROM attempts
		WHERE run = ?1`, run).
		Scan(&c.Points, &c.Malformed, &c.Unknown, &c.Overflow, &c.Trajectories, &c.Evaluations)
	return c, s.wrap("count what is stored", err)
}

// each calls scan for every row. It takes the outcome of the query as it is.
func each(rows *sql.Rows, err error, scan func() error) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(); err != nil {
			return err
		}
	}
	return rows.Err()
}

// wrap says what was being done, and names faults of the disk.
func (s *Store) wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, plain(s.dir, err))
}
