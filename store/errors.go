package store

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"github.com/mattn/go-sqlite3"
)

// Errors that callers ask for with errors.Is. What an unknown id gives is
// ablation.ErrNotFound, what a move against the rules gives ablation.ErrConflict.
var (
	ErrNewer    = errors.New("database is newer than this program")
	ErrDiskFull = errors.New("disk full")
	ErrReadOnly = errors.New("cannot be written")
	ErrClosed   = errors.New("store is closed")
)

// HeldError says that another process serves the data folder.
type HeldError struct {
	Dir   string
	PID   int // 0 = unknown
	Since time.Time
}

// Error implements error.
func (e *HeldError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("data folder %s is served by another process", e.Dir)
	}
	return fmt.Sprintf("data folder %s is served by process %d since %s; stop it first, or choose another folder with --data",
		e.Dir, e.PID, e.Since.Local().Format(time.DateTime))
}

// plain gives errors of the disk their class and names the folder, so that a
// person knows what to do.
func plain(dir string, err error) error {
	if err == nil {
		return nil
	}
	for _, class := range []error{ErrNewer, ErrDiskFull, ErrReadOnly} {
		if errors.Is(err, class) {
			return err
		}
	}
	var lite sqlite3.Error
	errors.As(err, &lite)
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), lite.Code == sqlite3.ErrFull:
		return fmt.Errorf("%w: no space left in data folder %s: %w", ErrDiskFull, dir, err)
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission), lite.Code == sqlite3.ErrReadonly, lite.Code == sqlite3.ErrPerm:
		return fmt.Errorf("data folder %s %w: %w", dir, ErrReadOnly, err)
	case lite.Code == sqlite3.ErrCantOpen:
		return fmt.Errorf("database in %s cannot be opened; does the folder exist, and may this user read it? %w", dir, err)
	case lite.Code == sqlite3.ErrCorrupt, lite.Code == sqlite3.ErrNotADB:
		return fmt.Errorf("database in %s is damaged; alidade rebuild makes it again from the run folders: %w", dir, err)
	}
	return err
}

// isUnique reports whether err is a row that was there already.
func isUnique(err error) bool {
	var lite sqlite3.Error
	return errors.As(err, &lite) && (lite.ExtendedCode == sqlite3.ErrConstraintUnique || lite.ExtendedCode == sqlite3.ErrConstraintPrimaryKey)
}
