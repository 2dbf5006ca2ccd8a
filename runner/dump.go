package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"alidade/ablation"
	"alidade/runner/shim"
)

const dumpTimeout = 20 * time.Second

// Dump says what each process of a live run is doing, for a run that has
// stalled: its state and where it waits, from /proc, and the Python stacks
// where py-spy is installed. It changes nothing in the run. The text is kept
// in the attempt's folder as dump-<time>.txt.
func (r *Runner) Dump(ctx context.Context, id ablation.RunID) (string, error) {
	dumper, _ := r.cfg.Launcher.(Dumper)
	sweeper, ok := r.cfg.Launcher.(Sweeper)
	if !ok && dumper == nil {
		return "", errors.New("dump: the run's processes are not on this machine")
	}
	run, err := r.store.Run(ctx, id)
	if err != nil {
		return "", fmt.Errorf("dump run %d: %w", id, err)
	}
	if !run.State.Live() {
		return "", fmt.Errorf("dump run %d: it is %s: %w", id, run.State, ablation.ErrConflict)
	}
	dir := r.attemptDir(id, run.Attempt)
	h, err := r.cfg.Launcher.Attach(ctx, dir)
	if err != nil {
		return "", fmt.Errorf("dump run %d: %w", id, err)
	}
	ctx, cancel := context.WithTimeout(ctx, dumpTimeout)
	defer cancel()
	if dumper != nil {
		text, err := dumper.Dump(ctx, h)
		if err != nil {
			return text, fmt.Errorf("dump run %d: its node: %w", id, err)
		}
		return text, nil
	}
	text := shim.Dump(ctx, fmt.Sprintf("run %d, attempt %d", id, run.Attempt), sweeper.Leftovers(ctx, h, 0))
	if err := os.WriteFile(filepath.Join(dir, shim.DumpName(time.Now())), []byte(text), 0o600); err != nil {
		return text, fmt.Errorf("keep dump: %w", err)
	}
	return text, nil
}

// lastDump is the newest dump in an attempt's folder; "" = none.
func lastDump(dir string) string {
	all, err := filepath.Glob(filepath.Join(dir, "dump-*.txt"))
	if err != nil || len(all) == 0 {
		return ""
	}
	return slices.Max(all) // named by their time
}
