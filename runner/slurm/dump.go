package slurm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"alidade/runner"
	"alidade/runner/shim"
)

// Dump implements runner.Dumper: the job's shim is asked, and its answer comes
// as a file.
func (l *Launcher) Dump(ctx context.Context, h runner.Handle) (string, error) {
	rec, err := parse(h)
	if err != nil {
		return "", err
	}
	switch s, err := shim.ReadHandle(h.Dir); {
	case err != nil:
		return "", fmt.Errorf("job %s has not started", rec.Job)
	case !s.Left.IsZero():
		return "", fmt.Errorf("job %s has ended", rec.Job)
	}
	before := dumps(h.Dir)
	if _, _, err := deliver(ctx, h, rec, shim.AskDump); err != nil {
		return "", err
	}
	for {
		if now := dumps(h.Dir); len(now) > len(before) {
			text, err := os.ReadFile(slices.Max(now))
			return string(text), err
		}
		select {
		case <-ctx.Done():
			return "", errors.New("the job's node gave no answer in time")
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func dumps(dir string) []string {
	all, _ := filepath.Glob(filepath.Join(dir, "dump-*.txt")) // the pattern is good
	return all
}
