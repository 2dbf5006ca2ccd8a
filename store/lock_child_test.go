package store

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"time"
)

// A child between fork and exec holds the lock file open as well: that must
// keep neither a server that ended in order nor one that was killed from
// being followed by another.
func TestLockSharedWithAChild(t *testing.T) {
	dir := t.TempDir()
	f, err := takeLock(dir)
	if err != nil {
		t.Fatal(err)
	}
	child, err := syscall.Dup(int(f.Fd())) // what a fork does
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	var held *HeldError
	if _, err := takeLock(dir); !errors.As(err, &held) || held.PID != os.Getpid() || time.Since(start) > lockPatience/2 {
		t.Errorf("second lock = %v after %v, want a refusal at once that names this process", err, time.Since(start))
	}
	if err := releaseLock(f); err != nil {
		t.Fatal(err)
	}
	if f, err = takeLock(dir); err != nil {
		t.Fatalf("after an orderly release: %v", err)
	}
	syscall.Close(child)

	// Killed: the file names a process that is gone, and the child lets go soon.
	if err := writeHolder(f, holder{PID: 1 << 30, Since: time.Now()}); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(200*time.Millisecond, func() { f.Close() })
	again, err := takeLock(dir)
	if err != nil {
		t.Fatalf("after the holder's death: %v", err)
	}
	if err := releaseLock(again); err != nil {
		t.Error(err)
	}
}
