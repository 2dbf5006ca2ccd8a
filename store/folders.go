package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"alidade/ablation"
)

// The folders are the truth. Names in a data folder:
//
//	studies/<id>/study.yaml    the study file as written
//	studies/<id>/study.json    the study's record, with its flags
//	runs/<id>/run.json         what the run was asked: study, arm, seed, recipe
//	runs/<id>/state.json       where the run stood after its last move
//	runs/<id>/<n>/attempt.json what is known of the attempt, besides its events

// StudyDir returns the folder of a study.
func (s *Store) StudyDir(id ablation.StudyID) string {
	return filepath.Join(s.dir, "studies", strconv.FormatInt(int64(id), 10))
}

// RunDir returns the folder of a run; its attempts' folders lie in it.
func (s *Store) RunDir(id ablation.RunID) string {
	return filepath.Join(s.dir, "runs", strconv.FormatInt(int64(id), 10))
}

// AttemptDir returns the folder of an attempt.
func (s *Store) AttemptDir(id ablation.RunID, attempt int) string {
	return filepath.Join(s.RunDir(id), strconv.Itoa(attempt))
}

// inside returns path relative to the data folder when it lies in it, so that
// the folder can be moved.
func (s *Store) inside(path string) string {
	if rel, err := filepath.Rel(s.dir, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// absolute undoes inside.
func (s *Store) absolute(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(s.dir, path)
}

// stateFile is runs/<id>/state.json.
type stateFile struct {
	State     ablation.State `json:"state"`
	Cause     string         `json:"cause,omitempty"`
	Attempt   int            `json:"attempt"`
	Device    string         `json:"device,omitempty"`
	Priority  int            `json:"priority,omitempty"`
	Place     int64          `json:"place,omitempty"`
	Hold      string         `json:"hold,omitempty"`
	ReadyAt   time.Time      `json:"ready_at,omitzero"`
	QueuedAt  time.Time      `json:"queued_at"`
	StartedAt time.Time      `json:"started_at,omitzero"`
	EndedAt   time.Time      `json:"ended_at,omitzero"`
}

// saveState writes where a run stands. A run whose folder is gone keeps what
// is stored: that is only logged.
func (s *Store) saveState(r ablation.Run) error {
	err := writeJSON(filepath.Join(s.RunDir(r.ID), "state.json"), stateFile{
		State: r.State, Cause: r.Cause, Attempt: r.Attempt, Device: r.Device,
		Priority: r.Priority, Place: r.Place, Hold: r.Hold, ReadyAt: r.ReadyAt,
		QueuedAt: r.QueuedAt, StartedAt: r.StartedAt, EndedAt: r.EndedAt,
	}, true)
	if errors.Is(err, fs.ErrNotExist) {
		s.log.Warn("run folder missing", "run", r.ID, "dir", s.RunDir(r.ID))
		return nil
	}
	return err
}

// saveAttempt writes what is known of an attempt into its folder.
func (s *Store) saveAttempt(a ablation.Attempt) error {
	a.Dir, a.Offset = "", 0 // where the file lies, and how far it was read
	dir := s.AttemptDir(a.Run, a.Number)
	err := writeJSON(filepath.Join(dir, "attempt.json"), a, true)
	if errors.Is(err, fs.ErrNotExist) {
		s.log.Warn("attempt folder missing", "run", a.Run, "attempt", a.Number, "dir", dir)
		return nil
	}
	return err
}

// largestFolder returns the largest number that names an entry of dir.
func largestFolder(dir string) (int64, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	var most int64
	for _, e := range entries {
		if n, err := strconv.ParseInt(e.Name(), 10, 64); err == nil {
			most = max(most, n)
		}
	}
	return most, err
}

// writeJSON replaces the file at path by v's JSON: whole or not at all. With
// sync it is on the disk afterwards.
func writeJSON(path string, v any, sync bool) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return writeWhole(path, append(b, '\n'), sync)
}

func writeWhole(path string, b []byte, sync bool) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer os.Remove(tmp.Name()) // fails after the rename, as it should
	_, err = tmp.Write(b)
	if err == nil && sync {
		err = tmp.Sync()
	}
	err = errors.Join(err, tmp.Chmod(0o644), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err == nil && sync {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// syncFileSystem waits until all that was written to dir's file system is on
// the disk: cheaper than many single waits.
func syncFileSystem(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(d.Fd())), d.Close())
}

// readJSON decodes the file at path.
func readJSON(path string, v any) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// within returns path as it is when absolute, and inside dir otherwise.
func within(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}
