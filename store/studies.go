package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"alidade/ablation"
)

// CreateStudy stores a study and its planned runs, queued: their folders
// first, then one transaction. Source is the study file as written. It returns
// ErrConflict when an arm and seed is planned twice.
func (s *Store) CreateStudy(ctx context.Context, st ablation.Study, source string, planned []ablation.Planned) (ablation.StudyRecord, []ablation.Run, error) {
	rec := ablation.StudyRecord{Study: st, Source: source, CreatedAt: now()}
	var runs []ablation.Run
	var made []string
	err := s.transact(ctx, "create study", func(tx *sql.Tx) error {
		id, err := nextID(ctx, tx, "studies", filepath.Join(s.dir, "studies"))
		if err != nil {
			return err
		}
		rec.ID = ablation.StudyID(id)
		made = append(made, s.StudyDir(rec.ID))
		if err := insertStudy(ctx, tx, rec); err != nil {
			return err
		}
		if runs, err = s.planRuns(ctx, tx, rec, planned, rec.CreatedAt, &made); err != nil {
			return err
		}
		return s.saveStudy(rec, true) // last: a study folder without its record was never created
	})
	if err != nil {
		removeAll(made)
		return ablation.StudyRecord{}, nil, err
	}
	s.plans.Add(1)
	return rec, runs, nil
}

// AddRuns queues more runs of a study: new seeds of its arms, or new arms. It
// returns ErrConflict when an arm and seed is there already; then none is added.
func (s *Store) AddRuns(ctx context.Context, study ablation.StudyID, planned []ablation.Planned) ([]ablation.Run, error) {
	var runs []ablation.Run
	var made []string
	err := s.transact(ctx, "add runs", func(tx *sql.Tx) error {
		rec, err := readStudy(ctx, tx, study)
		if err != nil {
			return err
		}
		runs, err = s.planRuns(ctx, tx, rec, planned, now(), &made)
		return err
	})
	if err != nil {
		removeAll(made)
		return nil, err
	}
	s.plans.Add(1)
	return runs, nil
}

// Study returns a study, or ErrNotFound.
func (s *Store) Study(ctx context.Context, id ablation.StudyID) (ablation.StudyRecord, error) {
	rec, err := readStudy(ctx, s.read, id)
	return rec, plain(s.dir, err)
}

// Studies returns all studies, newest first.
func (s *Store) Studies(ctx context.Context) ([]ablation.StudyRecord, error) {
	rows, err := s.read.QueryContext(ctx, `
		SELECT id, study, source, paused, archived, created_at
		FROM studies
		ORDER BY id DESC`)
	if err != nil {
		return nil, fmt.Errorf("list studies: %w", plain(s.dir, err))
	}
	defer rows.Close()
	studies := []ablation.StudyRecord{}
	for rows.Next() {
		rec, err := scanStudy(rows)
		if err != nil {
			return nil, fmt.Errorf("list studies: %w", err)
		}
		studies = append(studies, rec)
	}
	return studies, plain(s.dir, rows.Err())
}

// SetStudyPaused says whether the study's queued runs wait.
func (s *Store) SetStudyPaused(ctx context.Context, id ablation.StudyID, paused bool) error {
	return s.changeStudy(ctx, "pause study", id, func(r *ablation.StudyRecord) { r.Paused = paused })
}

// SetStudyArchived says whether the study is put away.
func (s *Store) SetStudyArchived(ctx context.Context, id ablation.StudyID, archived bool) error {
	return s.changeStudy(ctx, "archive study", id, func(r *ablation.StudyRecord) { r.Archived = archived })
}

func (s *Store) changeStudy(ctx context.Context, what string, id ablation.StudyID, change func(*ablation.StudyRecord)) error {
	return s.transact(ctx, what, func(tx *sql.Tx) error {
		rec, err := readStudy(ctx, tx, id)
		if err != nil {
			return err
		}
		change(&rec)
		if _, err := tx.ExecContext(ctx, "UPDATE studies SET paused = ?, archived = ? WHERE id = ?", rec.Paused, rec.Archived, id); err != nil {
			return err
		}
		return s.saveStudy(rec, false)
	})
}

// saveStudy writes a study's folder; its file as written only when it is new.
func (s *Store) saveStudy(rec ablation.StudyRecord, created bool) error {
	dir := s.StudyDir(rec.ID)
	if created {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := writeWhole(filepath.Join(dir, "study.yaml"), []byte(rec.Source), false); err != nil {
			return err
		}
	}
	rec.Source = "" // it is study.yaml
	if err := writeJSON(filepath.Join(dir, "study.json"), rec, true); err != nil {
		return err
	}
	if created {
		return syncFileSystem(dir)
	}
	return nil
}

func insertStudy(ctx context.Context, tx *sql.Tx, rec ablation.StudyRecord) error {
	study, err := json.Marshal(rec.Study)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `
		INSERT INTO studies (id, name, study, source, paused, archived, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?)`,
		rec.ID, rec.Study.Name, string(study), rec.Source, rec.Paused, rec.Archived, millis(rec.CreatedAt))
	return err
}

func readStudy(ctx context.Context, q queryer, id ablation.StudyID) (ablation.StudyRecord, error) {
	rec, err := scanStudy(q.QueryRowContext(ctx, `
		SELECT id, study, source, paused, archived, created_at
		FROM studies
		WHERE id = ?`, id))
	if errors.Is(err, sql.ErrNoRows) {
		return rec, fmt.Errorf("study %d: %w", id, ablation.ErrNotFound)
	}
	if err != nil {
		return rec, fmt.Errorf("study %d: %w", id, err)
	}
	return rec, nil
}

type scanner interface{ Scan(...any) error }

func scanStudy(row scanner) (ablation.StudyRecord, error) {
	var rec ablation.StudyRecord
	var study string
	var created int64
	if err := row.Scan(&rec.ID, &study, &rec.Source, &rec.Paused, &rec.Archived, &created); err != nil {
		return rec, err
	}
	rec.CreatedAt = fromMillis(created)
	if err := json.Unmarshal([]byte(study), &rec.Study); err != nil {
		return rec, err
	}
	restoreLevels(&rec.Study)
	return rec, nil
}

// restoreLevels gives the levels of a study read from JSON the types that
// their recipe keys have.
func restoreLevels(st *ablation.Study) {
	for _, f := range st.Factors {
		field, ok := ablation.FieldOf(f.Key)
		if !ok {
			continue
		}
		for i, level := range f.Levels {
			if v, err := field.Coerce(level); err == nil {
				f.Levels[i] = v
			}
		}
	}
	for _, arm := range st.Arms {
		for key, level := range arm {
			field, ok := ablation.FieldOf(key)
			if !ok {
				continue
			}
			if v, err := field.Coerce(level); err == nil {
				arm[key] = v
			}
		}
	}
}

// nextID returns the first id that neither the table nor a folder has.
func nextID(ctx context.Context, tx *sql.Tx, table, dir string) (int64, error) {
	var stored int64
	if err := tx.QueryRowContext(ctx, "SELECT coalesce(max(id), 0) FROM "+table).Scan(&stored); err != nil {
		return 0, err
	}
	folder, err := largestFolder(dir)
	return max(stored, folder) + 1, err
}

func removeAll(dirs []string) {
	for _, dir := range dirs {
		_ = os.RemoveAll(dir)
	}
}

// now is the time at the resolution that is stored.
func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// millis is t as stored; the zero time is 0.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
