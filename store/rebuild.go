package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"alidade/ablation"
	"alidade/trainer"
)

// Rebuild makes the database of a data folder again from the folders of its
// studies, runs and attempts, and puts it in the place of the old one, which
// is left alone until the new one is complete. Nobody may serve the folder:
// otherwise it returns a *HeldError.
func Rebuild(ctx context.Context, dir string, log *slog.Logger) error {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("rebuild: %w", err)
	}
	if _, err := os.Stat(abs); err != nil {
		return fmt.Errorf("rebuild: data folder: %w", err)
	}
	lock, err := takeLock(abs)
	if err != nil {
		return fmt.Errorf("rebuild: %w", plain(abs, err))
	}
	err = rebuildLocked(ctx, abs, log)
	return errors.Join(err, releaseLock(lock))
}

// rebuildPragmas wait for the disk once, at the end.
const rebuildPragmas = "_journal_mode=WAL&_synchronous=OFF&_busy_timeout=5000&_txlock=immediate&_foreign_keys=on&_cache_size=-16384"

func rebuildLocked(ctx context.Context, dir string, log *slog.Logger) error {
	path := filepath.Join(dir, databaseName)
	fresh := path + ".rebuild"
	removeDatabase(fresh)
	s, err := openDatabase(dir, fresh, rebuildPragmas, Options{Logger: log})
	if err != nil {
		return fmt.Errorf("rebuild: %w", err)
	}
	rb := &rebuilder{s: s, log: log}
	err = rb.all(ctx)
	if err == nil {
		err = rb.keepSeq(ctx, path)
	}
	if err = errors.Join(err, s.closeDatabases()); err == nil {
		err = swapDatabase(fresh, path)
	}
	if err != nil {
		removeDatabase(fresh)
		return fmt.Errorf("rebuild: %w", plain(dir, err))
	}
	log.Info("database rebuilt", "studies", rb.studies, "runs", rb.runs, "attempts", rb.attempts)
	return nil
}

// removeDatabase removes a database file and what SQLite keeps beside it.
func removeDatabase(path string) {
	for _, suffix := range []string{"", "-wal", "-shm"} {
		_ = os.Remove(path + suffix)
	}
}

// swapDatabase puts fresh in the place of path. The old log goes first: next
// to another database it would be taken for that one's.
func swapDatabase(fresh, path string) error {
	f, err := os.Open(fresh)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	old := path + ".old"
	removeDatabase(old)
	for _, suffix := range []string{"-shm", "-wal", ""} {
		if err := os.Rename(path+suffix, old+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := os.Rename(fresh, path); err != nil {
		return err
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return err
	}
	removeDatabase(old)
	return nil
}

// hasStudies reports whether a study was ever created in the data folder.
func hasStudies(dir string) bool {
	found, _ := filepath.Glob(filepath.Join(dir, "studies", "*", "study.json"))
	return len(found) > 0
}

// rebuilder fills an empty store from the folders.
type rebuilder struct {
	s                       *Store
	log                     *slog.Logger
	studies, runs, attempts int
}

func (rb *rebuilder) all(ctx context.Context) error {
	runs, err := rb.vocabulary(ctx)
	if err != nil {
		return err
	}
	for _, id := range runs {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := rb.run(ctx, id); err != nil {
			return fmt.Errorf("run %d: %w", id, err)
		}
	}
	return rb.notices(ctx)
}

// notices stores the alerts that belong to no run.
func (rb *rebuilder) notices(ctx context.Context) error {
	return eachLines(filepath.Join(rb.s.dir, noticesFile), func(l trainer.Lines) error {
		return rb.s.transact(ctx, "store notices", func(tx *sql.Tx) error {
			for _, e := range l.Events {
				if e.Kind != trainer.KindAlert {
					continue
				}
				if _, err := insertNotice(ctx, tx, e); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// vocabulary stores the studies and runs, still queued, and returns the runs.
func (rb *rebuilder) vocabulary(ctx context.Context) ([]ablation.RunID, error) {
	studies, err := numbered(filepath.Join(rb.s.dir, "studies"))
	if err != nil {
		return nil, err
	}
	runs, err := numbered(filepath.Join(rb.s.dir, "runs"))
	if err != nil {
		return nil, err
	}
	var stored []ablation.RunID
	err = rb.s.transact(ctx, "store studies and runs", func(tx *sql.Tx) error {
		known := map[ablation.StudyID]bool{}
		for _, n := range studies {
			id := ablation.StudyID(n)
			rec, err := rb.study(id)
			if err != nil {
				rb.log.Warn("study left out", "study", id, "err", err)
				continue
			}
			if err := insertStudy(ctx, tx, rec); err != nil {
				return err
			}
			known[id] = true
		}
		for _, n := range runs {
			id := ablation.RunID(n)
			var r ablation.Run
			if err := readJSON(filepath.Join(rb.s.RunDir(id), "run.json"), &r); err != nil || !known[r.Study] {
				rb.log.Warn("run left out: its record cannot be read, or its study is not known", "run", id, "study", r.Study, "err", err)
				continue
			}
			r.ID, r.State = id, ablation.Queued
			if err := insertRun(ctx, tx, r); err != nil {
				return err
			}
			stored = append(stored, id)
		}
		rb.studies, rb.runs = len(known), len(stored)
		return nil
	})
	return stored, err
}

func (rb *rebuilder) study(id ablation.StudyID) (ablation.StudyRecord, error) {
	var rec ablation.StudyRecord
	dir := rb.s.StudyDir(id)
	if err := readJSON(filepath.Join(dir, "study.json"), &rec); err != nil {
		return rec, err
	}
	source, err := os.ReadFile(filepath.Join(dir, "study.yaml"))
	rec.ID, rec.Source = id, string(source)
	return rec, err
}

// run stores a run's attempts and where it stands.
func (rb *rebuilder) run(ctx context.Context, id ablation.RunID) error {
	numbers, err := numbered(rb.s.RunDir(id))
	if err != nil {
		return err
	}
	var last ablation.Attempt
	for _, n := range numbers {
		if last, err = rb.attempt(ctx, id, int(n)); err != nil {
			return fmt.Errorf("attempt %d: %w", n, err)
		}
		rb.attempts++
	}
	var state ablation.State
	err = rb.s.transact(ctx, "store state", func(tx *sql.Tx) error {
		r, err := rb.s.readRun(ctx, tx, id)
		if err != nil {
			return err
		}
		if err := rb.stand(&r, last); err != nil {
			return err
		}
		state = r.State
		return updateRun(ctx, tx, r)
	})
	if err != nil {
		return err
	}
	return rb.s.compactRun(ctx, id, state.Terminal())
}

// stand sets where a run stands: as its last move left it or, without that
// record, as its last attempt tells.
func (rb *rebuilder) stand(r *ablation.Run, last ablation.Attempt) error {
	var f stateFile
	err := readJSON(filepath.Join(rb.s.RunDir(r.ID), "state.json"), &f)
	switch {
	case err == nil:
		r.State, r.Cause, r.Device = f.State, f.Cause, f.Device
		r.Priority, r.Place, r.Hold, r.ReadyAt = f.Priority, f.Place, f.Hold, f.ReadyAt
		r.Attempt = max(r.Attempt, f.Attempt)
		r.QueuedAt, r.StartedAt, r.EndedAt = f.QueuedAt, f.StartedAt, f.EndedAt
	case !errors.Is(err, fs.ErrNotExist):
		return err
	case last.Number > 0:
		r.State, r.Cause, r.Device = last.State, last.Cause, last.Device
		r.StartedAt, r.EndedAt = last.StartedAt, last.EndedAt
	}
	*r = asStored(*r)
	return nil
}

// attempt stores an attempt and its events.
func (rb *rebuilder) attempt(ctx context.Context, run ablation.RunID, number int) (ablation.Attempt, error) {
	a, told, err := rb.readAttempt(run, number)
	if err != nil {
		return a, err
	}
	err = rb.s.transact(ctx, "store attempt", func(tx *sql.Tx) error { return rb.s.insertAttempt(ctx, tx, a) })
	if err != nil {
		return a, err
	}
	done, err := rb.events(ctx, a)
	if err != nil {
		return a, err
	}
	if !told {
		judge(&a, done, filepath.Join(a.Dir, "exit.json"))
	}
	return a, rb.s.transact(ctx, "store attempt", func(tx *sql.Tx) error { return updateAttempt(ctx, tx, a) })
}

// readAttempt reads what was recorded of an attempt; told is false when only
// its spec and its shim's record are there.
func (rb *rebuilder) readAttempt(run ablation.RunID, number int) (a ablation.Attempt, told bool, err error) {
	dir := rb.s.AttemptDir(run, number)
	err = readJSON(filepath.Join(dir, "attempt.json"), &a)
	told = err == nil
	if errors.Is(err, fs.ErrNotExist) {
		a, err = attemptFromSpec(dir), nil
	}
	a.Run, a.Number, a.Dir = run, number, dir
	return a, told, err
}

// events stores an attempt's events, then the runner's own alerts about it,
// and returns its done event, if any.
func (rb *rebuilder) events(ctx context.Context, a ablation.Attempt) (*trainer.Done, error) {
	var done *trainer.Done
	err := eachLines(filepath.Join(a.Dir, "events.jsonl"), func(l trainer.Lines) error {
		for _, e := range l.Events {
			if e.Done != nil {
				done = e.Done
			}
		}
		return rb.store(ctx, Batch{Run: a.Run, Attempt: a.Number, Offset: l.Offset, Events: l.Events,
			Malformed: l.Malformed, Unknown: l.Unknown, Faults: l.Faults})
	})
	if err != nil {
		return done, err
	}
	for file, kind := range ownFiles {
		err := eachLines(filepath.Join(a.Dir, file), func(l trainer.Lines) error {
			own := slices.DeleteFunc(l.Events, func(e trainer.Event) bool { return e.Kind != kind })
			return rb.store(ctx, Batch{Run: a.Run, Attempt: a.Number, Own: true, Events: own})
		})
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

// ownFiles are the files of an attempt's folder in which the runner keeps
// events of its own, with the kind of each.
var ownFiles = map[string]trainer.Kind{"alerts.jsonl": trainer.KindAlert, "device.jsonl": trainer.KindPoints}

func (rb *rebuilder) store(ctx context.Context, b Batch) error {
	return rb.s.transact(ctx, "store events", func(tx *sql.Tx) error {
		_, err := rb.s.apply(ctx, tx, b)
		return err
	})
}

// eachLines calls take for all that a file of events holds, in parts. A file
// that is not there holds nothing.
func eachLines(path string, take func(trainer.Lines) error) error {
	f := trainer.Follow(path, trainer.FollowOptions{})
	defer f.Close()
	var offset int64
	for {
		lines, err := f.Read(5000)
		if err != nil || lines.Offset == offset {
			return err
		}
		offset = lines.Offset
		if err := take(lines); err != nil {
			return err
		}
	}
}

// keepSeq goes on with the numbers of commits where the old database stopped.
func (rb *rebuilder) keepSeq(ctx context.Context, old string) error {
	if _, err := os.Stat(old); err != nil {
		return nil
	}
	db, err := sql.Open("sqlite3", dsn(old, readerPragmas))
	if err != nil {
		return nil
	}
	defer db.Close()
	var seq int64
	if db.QueryRowContext(ctx, "SELECT value FROM meta WHERE key = 'seq'").Scan(&seq) != nil {
		return nil // damaged: browsers will notice and start over
	}
	return rb.s.transact(ctx, "keep sequence", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `
			INSERT INTO meta (key, value) VALUES ('seq', ?1)
			ON CONFLICT (key) DO UPDATE SET value = max(value, ?1)`, seq)
		return err
	})
}

// numbered lists the entries of dir whose names are numbers, in order.
func numbered(dir string) ([]int64, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var numbers []int64
	for _, e := range entries {
		if n, err := strconv.ParseInt(e.Name(), 10, 64); err == nil && n > 0 && e.IsDir() {
			numbers = append(numbers, n)
		}
	}
	slices.SortFunc(numbers, cmp.Compare)
	return numbers, err
}
