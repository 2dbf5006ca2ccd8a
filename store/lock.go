package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// holder is what the lock file says of the process that holds it. The kernel
// gives the lock free when that process ends, however it ends: what a dead
// process or a machine before its reboot has written there means nothing.
type holder struct {
	PID   int       `json:"pid"`
	Since time.Time `json:"since"`
}

// takeLock locks the data folder for this process.
func takeLock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock data folder: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		held := &HeldError{Dir: dir}
		var h holder
		if b, err := io.ReadAll(io.LimitReader(f, 4096)); err == nil && json.Unmarshal(b, &h) == nil {
			held.PID, held.Since = h.PID, h.Since
		}
		_ = f.Close()
		return nil, held
	}
	if err == nil {
		err = writeHolder(f, holder{PID: os.Getpid(), Since: time.Now().UTC().Truncate(time.Millisecond)})
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock data folder: %w", err)
	}
	return f, nil
}

func writeHolder(f *os.File, h holder) error {
	b, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.WriteAt(append(b, '\n'), 0)
	return err
}

// releaseLock gives the folder free. The file stays: removing it would let two
// processes lock two files of that name.
func releaseLock(f *os.File) error {
	return errors.Join(f.Truncate(0), f.Close())
}
