package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"alidade/ablation"
)

// RunFilter picks runs; zero fields do not filter.
type RunFilter struct {
	Study  ablation.StudyID
	States []ablation.State
	IDs    []ablation.RunID
	Limit  int // 0 = all
	Offset int
}

const runColumns = `id, study, arm, seed, state, cause, attempt, phase, step, total_steps, device, priority, place, hold, ready_at, queued_at, started_at, ended_at, heard_at`

// Runs returns the runs that f picks, by id. The maps and slices in their arms
// are shared: do not change them.
func (s *Store) Runs(ctx context.Context, f RunFilter) ([]ablation.Run, error) {
	var where conditions
	if f.Study != 0 {
		where.add("study = ?", f.Study)
	}
	if f.States != nil {
		where.add("state IN (SELECT value FROM json_each(?))", jsonList(f.States))
	}
	if f.IDs != nil {
		where.add("id IN (SELECT value FROM json_each(?))", jsonList(f.IDs))
	}
	query := "SELECT " + runColumns + " FROM runs " + where.sql() + " ORDER BY id" + page(f.Limit, f.Offset)
	runs := []ablation.Run{}
	err := s.view(ctx, "list runs", func(tx *sql.Tx) error {
		n := 0 // a run is large: growing the list step by step would copy it over and over
		if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM runs "+where.sql(), where.args...).Scan(&n); err != nil {
			return err
		}
		if f.Limit > 0 {
			n = min(n, f.Limit)
		}
		runs = make([]ablation.Run, 0, n)
		rows, err := tx.QueryContext(ctx, query, where.args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			r, err := scanRun(rows)
			if err != nil {
				return err
			}
			runs = append(runs, r)
		}
		if err := rows.Err(); err != nil {
			return err
		}
		for i := range runs {
			if err := s.arms.fill(ctx, tx, &runs[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return runs, err
}

// Run returns a run, or ErrNotFound.
func (s *Store) Run(ctx context.Context, id ablation.RunID) (ablation.Run, error) {
	var r ablation.Run
	err := s.view(ctx, "read run", func(tx *sql.Tx) error {
		var err error
		r, err = s.readRun(ctx, tx, id)
		return err
	})
	return r, err
}

func (s *Store) readRun(ctx context.Context, q queryer, id ablation.RunID) (ablation.Run, error) {
	r, err := scanRun(q.QueryRowContext(ctx, "SELECT "+runColumns+" FROM runs WHERE id = ?", id))
	if errors.Is(err, sql.ErrNoRows) {
		return r, fmt.Errorf("run %d: %w", id, ablation.ErrNotFound)
	}
	if err != nil {
		return r, fmt.Errorf("run %d: %w", id, err)
	}
	return r, s.arms.fill(ctx, q, &r)
}

func scanRun(row scanner) (ablation.Run, error) {
	var r ablation.Run
	var seed, ready, queued, started, ended, heard int64
	err := row.Scan(&r.ID, &r.Study, &r.Arm.Index, &seed, &r.State, &r.Cause, &r.Attempt, &r.Phase, &r.Step,
		&r.TotalSteps, &r.Device, &r.Priority, &r.Place, &r.Hold, &ready, &queued, &started, &ended, &heard)
	r.Seed = uint64(seed)
	r.ReadyAt = fromMillis(ready)
	r.QueuedAt, r.StartedAt, r.EndedAt, r.HeardAt = fromMillis(queued), fromMillis(started), fromMillis(ended), fromMillis(heard)
	return r, err
}

// updateRun stores all of a run that changes.
func updateRun(ctx context.Context, tx *sql.Tx, r ablation.Run) error {
	_, err := tx.ExecContext(ctx, `
		UPDATE runs
		SET state = ?, cause = ?, attempt = ?, phase = ?, step = ?, total_steps = ?, device = ?,
		    priority = ?, place = ?, hold = ?, ready_at = ?, queued_at = ?, started_at = ?, ended_at = ?, heard_at = ?
		WHERE id = ?`,
		r.State, r.Cause, r.Attempt, r.Phase, r.Step, r.TotalSteps, r.Device,
		r.Priority, r.Place, r.Hold, millis(r.ReadyAt), millis(r.QueuedAt), millis(r.StartedAt), millis(r.EndedAt), millis(r.HeardAt), r.ID)
	return err
}

// planRuns inserts planned runs as queued and makes their folders, which it
// adds to made.
func (s *Store) planRuns(ctx context.Context, tx *sql.Tx, rec ablation.StudyRecord, planned []ablation.Planned, at time.Time, made *[]string) ([]ablation.Run, error) {
	next, err := nextID(ctx, tx, "runs", filepath.Join(s.dir, "runs"))
	if err != nil {
		return nil, err
	}
	runs := make([]ablation.Run, 0, len(planned))
	for _, p := range planned {
		r := ablation.Run{
			ID: ablation.RunID(next), Study: rec.ID, Arm: p.Arm, Seed: p.Seed, State: ablation.Queued, Priority: rec.Study.Priority,
			TotalSteps: int64(p.Arm.Recipe.Budget.Steps), QueuedAt: at,
		}
		if err := insertRun(ctx, tx, r); err != nil {
			return nil, err
		}
		dir := s.RunDir(r.ID)
		*made = append(*made, dir)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
		if err := writeJSON(filepath.Join(dir, "run.json"), r, false); err != nil {
			return nil, err
		}
		runs = append(runs, r)
		next++
	}
	if len(runs) > 0 {
		if err := syncFileSystem(s.dir); err != nil {
			return nil, err
		}
	}
	return runs, nil
}

// insertRun stores a new run, and its arm when that is new too.
func insertRun(ctx context.Context, tx *sql.Tx, r ablation.Run) error {
	if err := insertArm(ctx, tx, r.Study, r.Arm); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `
		INSERT INTO runs (id, study, arm, seed, state, total_steps, priority, queued_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		r.ID, r.Study, r.Arm.Index, int64(r.Seed), r.State, r.TotalSteps, r.Priority, millis(r.QueuedAt))
	if isUnique(err) {
		return fmt.Errorf("study %d already has arm %q with seed %d: %w", r.Study, r.Arm.Label, r.Seed, ablation.ErrConflict)
	}
	return err
}

func insertArm(ctx context.Context, tx *sql.Tx, study ablation.StudyID, a ablation.Arm) error {
	var hash string
	err := tx.QueryRowContext(ctx, "SELECT hash FROM arms WHERE study = ? AND idx = ?", study, a.Index).Scan(&hash)
	if err == nil && hash != a.Hash {
		return fmt.Errorf("arm %d of study %d has another recipe: %w", a.Index, study, ablation.ErrConflict)
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	levels, err := json.Marshal(a.Levels)
	if err != nil {
		return err
	}
	recipe, err := json.Marshal(a.Recipe)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `
		INSERT INTO arms (study, idx, label, levels, recipe, hash)
		VALUES (?, ?, ?, ?, ?, ?)`,
		study, a.Index, a.Label, string(levels), string(recipe), a.Hash)
	return err
}

// armCache keeps decoded arms, which never change once stored.
type armCache struct {
	mu   sync.Mutex
	arms map[armKey]ablation.Arm
}

type armKey struct {
	study ablation.StudyID
	index int
}

// mostArms bounds the cache.
const mostArms = 4096

// fill sets a run's arm, whose index is known.
func (c *armCache) fill(ctx context.Context, q queryer, r *ablation.Run) error {
	key := armKey{r.Study, r.Arm.Index}
	c.mu.Lock()
	arm, ok := c.arms[key]
	c.mu.Unlock()
	if ok {
		r.Arm = arm
		return nil
	}
	arm, err := readArm(ctx, q, key)
	if err != nil {
		return fmt.Errorf("arm %d of study %d: %w", key.index, key.study, err)
	}
	r.Arm = arm
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.arms == nil || len(c.arms) >= mostArms {
		c.arms = map[armKey]ablation.Arm{}
	}
	c.arms[key] = arm
	return nil
}

func readArm(ctx context.Context, q queryer, key armKey) (ablation.Arm, error) {
	a := ablation.Arm{Index: key.index}
	var levels, recipe string
	err := q.QueryRowContext(ctx, "SELECT label, levels, recipe, hash FROM arms WHERE study = ? AND idx = ?", key.study, key.index).
		Scan(&a.Label, &levels, &recipe, &a.Hash)
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal([]byte(recipe), &a.Recipe); err != nil {
		return a, err
	}
	return a, restoreArm(&a, []byte(levels))
}

// restoreArm reads an arm's levels from JSON and gives them the types they
// have in its recipe.
func restoreArm(a *ablation.Arm, levels []byte) error {
	if err := json.Unmarshal(levels, &a.Levels); err != nil {
		return err
	}
	for key := range a.Levels {
		if v, err := ablation.Get(&a.Recipe, key); err == nil {
			a.Levels[key] = v
		}
	}
	return nil
}

// conditions collects the terms of a WHERE clause.
type conditions struct {
	terms []string
	args  []any
}

func (c *conditions) add(term string, args ...any) {
	c.terms = append(c.terms, term)
	c.args = append(c.args, args...)
}

func (c *conditions) sql() string {
	if len(c.terms) == 0 {
		return ""
	}
	return "WHERE " + strings.Join(c.terms, " AND ")
}

// page is a LIMIT clause; a limit of 0 is none.
func page(limit, offset int) string {
	if limit <= 0 {
		limit = -1
	}
	if limit < 0 && offset <= 0 {
		return ""
	}
	return fmt.Sprintf(" LIMIT %d OFFSET %d", limit, max(offset, 0))
}

// jsonList is a list as one argument, for json_each.
func jsonList(v any) string {
	b, err := json.Marshal(v)
	if err != nil { // numbers and strings only
		return "[]"
	}
	return string(b)
}
