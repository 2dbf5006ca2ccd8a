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

// lockPatience is how long a lock of nobody is waited for: between the fork
// and the exec of a trainer's shim the child shares the lock, so a server that
// was killed just then seems to hold it a moment longer.
const lockPatience = 2 * time.Second

// takeLock locks the data folder for this process.
func takeLock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock data folder: %w", err)
	}
	for end := time.Now().Add(lockPatience); ; time.Sleep(10 * time.Millisecond) {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			break
		}
		h := readHolder(f)
		if h.alive() || time.Now().After(end) {
			_ = f.Close()
			return nil, &HeldError{Dir: dir, PID: h.PID, Since: h.Since}
		}
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

// readHolder reads what the lock file says; nothing when it says nothing.
func readHolder(f *os.File) holder {
	var h holder
	b := make([]byte, 4096)
	n, err := f.ReadAt(b, 0)
	if (err == nil || errors.Is(err, io.EOF)) && json.Unmarshal(b[:n], &h) == nil {
		return h
	}
	return holder{}
}

// alive tells whether the process that is said to hold the lock still runs.
func (h holder) alive() bool {
	err := syscall.Kill(h.PID, 0)
	return h.PID > 0 && (err == nil || errors.Is(err, syscall.EPERM))
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
	// Unlocked by name, not only by closing: a child between fork and exec may
	// still hold the file open.
	return errors.Join(f.Truncate(0), syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close())
}
