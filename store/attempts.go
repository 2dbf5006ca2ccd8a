package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"alidade/ablation"
)

const attemptColumns = `run, number, dir, device, pid, offset, first_step, state, exit_code, signal, cause, code, evidence, device_s, energy_j, cost, started_at, ended_at`

// Attempts returns a run's attempts, by number.
func (s *Store) Attempts(ctx context.Context, run ablation.RunID) ([]ablation.Attempt, error) {
	rows, err := s.read.QueryContext(ctx, "SELECT "+attemptColumns+" FROM attempts WHERE run = ? ORDER BY number", run)
	if err != nil {
		return nil, fmt.Errorf("list attempts: %w", plain(s.dir, err))
	}
	defer rows.Close()
	attempts := []ablation.Attempt{}
	for rows.Next() {
		a, err := s.scanAttempt(rows)
		if err != nil {
			return nil, fmt.Errorf("list attempts: %w", err)
		}
		attempts = append(attempts, a)
	}
	return attempts, plain(s.dir, rows.Err())
}

func (s *Store) readAttempt(ctx context.Context, q queryer, run ablation.RunID, number int) (ablation.Attempt, error) {
	return s.scanAttempt(q.QueryRowContext(ctx, "SELECT "+attemptColumns+" FROM attempts WHERE run = ? AND number = ?", run, number))
}

func (s *Store) scanAttempt(row scanner) (ablation.Attempt, error) {
	var a ablation.Attempt
	var exit sql.NullInt64
	var started, ended int64
	err := row.Scan(&a.Run, &a.Number, &a.Dir, &a.Device, &a.PID, &a.Offset, &a.FirstStep, &a.State, &exit, &a.Signal, &a.Cause, &a.Code, &a.Evidence, &a.DeviceS, &a.EnergyJ, &a.Cost, &started, &ended)
	if exit.Valid {
		code := int(exit.Int64)
		a.ExitCode = &code
	}
	a.Dir = s.absolute(a.Dir)
	a.StartedAt, a.EndedAt = fromMillis(started), fromMillis(ended)
	return a, err
}

// insertAttempt stores a new attempt and makes it the run's current one.
func (s *Store) insertAttempt(ctx context.Context, tx *sql.Tx, a ablation.Attempt) error {
	done, err := tx.ExecContext(ctx, "UPDATE runs SET attempt = ?, step = ?, phase = '' WHERE id = ?", a.Number, a.FirstStep, a.Run)
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, fmt.Errorf("run %d: %w", a.Run, ablation.ErrNotFound))
	}
	_, err = tx.ExecContext(ctx, `
		INSERT INTO attempts (run, number, dir, device, pid, first_step, state, started_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		a.Run, a.Number, s.inside(a.Dir), a.Device, a.PID, a.FirstStep, a.State, millis(a.StartedAt))
	if isUnique(err) {
		return fmt.Errorf("attempt %d of run %d was started already: %w", a.Number, a.Run, ablation.ErrConflict)
	}
	return err
}

// updateAttempt stores how an attempt stands; its offset belongs to Append.
func updateAttempt(ctx context.Context, tx *sql.Tx, a ablation.Attempt) error {
	done, err := tx.ExecContext(ctx, `
		UPDATE attempts
		SET device = ?, pid = ?, state = ?, exit_code = ?, signal = ?, cause = ?,
		    code = ?, evidence = ?, device_s = ?, energy_j = ?, cost = ?, started_at = ?, ended_at = ?
		WHERE run = ? AND number = ?`,
		a.Device, a.PID, a.State, a.ExitCode, a.Signal, a.Cause,
		a.Code, a.Evidence, a.DeviceS, a.EnergyJ, a.Cost, millis(a.StartedAt), millis(a.EndedAt), a.Run, a.Number)
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, fmt.Errorf("attempt %d of run %d: %w", a.Number, a.Run, ablation.ErrNotFound))
	}
	return nil
}
