// Package store keeps studies, runs and all that trainers report in one SQLite
// database beside the run folders. Call [Open] first. Anybody may read; a run
// changes only through the [RunWriter], which the runner holds.
//
// Points arrive in a tail of small batches and are moved in the background
// into compressed chunks, one metric each. What [RunWriter.Append] returned for
// is on the disk. The database is an index: [Rebuild] makes it again from the
// folders of the studies, runs and attempts.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	_ "github.com/mattn/go-sqlite3" // the driver named "sqlite3"
)

// Options tunes a store.
type Options struct {
	Logger *slog.Logger // nil = discard
	// ReadOnly opens a store that another process may be serving: no lock, no
	// migration, no writing.
	ReadOnly bool
	// CommitEvery is how long appended batches are collected for one
	// transaction at most; 0 = 100 ms.
	CommitEvery time.Duration
}

// Store is an open data folder. It is safe for concurrent use.
type Store struct {
	dir string
	log *slog.Logger
	o   Options

	write *sql.DB // one connection; nil when read-only
	read  *sql.DB
	lock  *os.File
	st    statements
	codec *codec

	writing      sync.Mutex // held by the one write transaction, until what it gave is settled
	names, words interner
	arms         armCache
	plans        atomic.Int64 // counts what changes the queue other than moves

	appends chan *appendRequest
	rest    *resting
	closing chan struct{}
	closed  sync.Once
	done    sync.WaitGroup
}

// databaseName is the database's file name in the data folder.
const databaseName = "alidade.db"

// Open opens the data folder, made if need be, and brings its database up to
// date. It returns a *HeldError when another process serves the folder,
// ErrNewer when the database was written by a newer program, and ErrDiskFull
// or ErrReadOnly when that is what is wrong. A folder with studies but
// without a database gets one by [Rebuild]. Close the store.
func Open(dir string, o Options) (*Store, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.CommitEvery <= 0 {
		o.CommitEvery = 100 * time.Millisecond
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if o.ReadOnly {
		return openReadOnly(abs, o)
	}
	if err := os.MkdirAll(abs, 0o700); err != nil {
		return nil, fmt.Errorf("open store: %w", plain(abs, err))
	}
	lock, err := takeLock(abs)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", plain(abs, err))
	}
	s, err := openLocked(abs, o)
	if err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("open store: %w", err)
	}
	s.lock = lock
	return s, nil
}

func openLocked(dir string, o Options) (*Store, error) {
	path := filepath.Join(dir, databaseName)
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) && hasStudies(dir) {
		o.Logger.Warn("database missing: rebuilding it from the run folders", "dir", dir)
		if err := rebuildLocked(context.Background(), dir, o.Logger); err != nil {
			return nil, err
		}
	}
	s, err := openDatabase(dir, path, writerPragmas, o)
	if err != nil {
		return nil, err
	}
	s.done.Go(s.commitLoop)
	s.done.Go(s.compactLoop)
	return s, nil
}

// openDatabase opens the database at path, which belongs to the data folder
// dir, without the store's goroutines.
func openDatabase(dir, path, pragmas string, o Options) (*Store, error) {
	s := newStore(dir, o)
	var err error
	if s.write, err = sql.Open("sqlite3", dsn(path, pragmas)); err != nil {
		return nil, err
	}
	s.write.SetMaxOpenConns(1)
	if err := s.start(path); err != nil {
		return nil, errors.Join(plain(dir, err), s.closeDatabases())
	}
	return s, nil
}

func (s *Store) start(path string) error {
	if err := migrate(s.write, path, s.log); err != nil {
		return err
	}
	if err := s.openReaders(path); err != nil {
		return err
	}
	return s.st.prepare(s.write)
}

func openReadOnly(dir string, o Options) (*Store, error) {
	path := filepath.Join(dir, databaseName)
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("open store: no database in %s: %w", dir, err)
	}
	s := newStore(dir, o)
	err := s.openReaders(path)
	if err == nil {
		err = checkVersion(s.read)
	}
	if err != nil {
		return nil, fmt.Errorf("open store: %w", errors.Join(plain(dir, err), s.closeDatabases()))
	}
	return s, nil
}

func newStore(dir string, o Options) *Store {
	return &Store{
		dir: dir, log: o.Logger, o: o, codec: newCodec(),
		names: interner{table: "names"}, words: interner{table: "words"},
		appends: make(chan *appendRequest), rest: newResting(), closing: make(chan struct{}),
	}
}

func (s *Store) openReaders(path string) error {
	var err error
	if s.read, err = sql.Open("sqlite3", dsn(path, readerPragmas)); err != nil {
		return err
	}
	s.read.SetMaxOpenConns(4)
	s.read.SetMaxIdleConns(4)
	return s.read.Ping()
}

// Pragmas stand in the DSN, so that every connection of a pool has them.
const (
	writerPragmas = "_journal_mode=WAL&_synchronous=FULL&_busy_timeout=5000&_txlock=immediate&_foreign_keys=on&_cache_size=-8192"
	readerPragmas = "mode=ro&_query_only=1&_busy_timeout=5000&_cache_size=-2048"
)

func dsn(path, pragmas string) string {
	u := url.URL{Scheme: "file", Path: path, RawQuery: pragmas}
	return u.String()
}

// Dir returns the data folder, absolute.
func (s *Store) Dir() string { return s.dir }

// Close commits what was appended, and gives the folder free. Call it once
// nobody appends any more.
func (s *Store) Close() error {
	var err error
	s.closed.Do(func() {
		close(s.closing)
		s.done.Wait()
		err = s.closeDatabases()
		if s.lock != nil {
			err = errors.Join(err, releaseLock(s.lock))
		}
	})
	return err
}

func (s *Store) closeDatabases() error {
	s.st.close()
	var err error
	if s.read != nil {
		err = s.read.Close()
	}
	if s.write != nil {
		err = errors.Join(err, s.write.Close())
	}
	s.codec.close()
	return err
}

// transact runs fn in a write transaction of its own.
func (s *Store) transact(ctx context.Context, what string, fn func(*sql.Tx) error) error {
	if s.write == nil {
		return fmt.Errorf("%s: the store is open for reading only: %w", what, ErrReadOnly)
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", what, plain(s.dir, err))
	}
	err = fn(tx)
	if err == nil {
		err = tx.Commit()
	} else {
		_ = tx.Rollback()
	}
	s.names.settle(err == nil)
	s.words.settle(err == nil)
	if err != nil {
		return fmt.Errorf("%s: %w", what, plain(s.dir, err))
	}
	return nil
}

// view runs fn in a read transaction: all its queries see the same moment.
func (s *Store) view(ctx context.Context, what string, fn func(*sql.Tx) error) error {
	tx, err := s.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return fmt.Errorf("%s: %w", what, plain(s.dir, err))
	}
	defer tx.Rollback()
	if err := fn(tx); err != nil {
		return fmt.Errorf("%s: %w", what, plain(s.dir, err))
	}
	return nil
}
