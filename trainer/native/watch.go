package native

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"alidade/trainer"
)

// watch follows the process of one stage.
type watch struct {
	r     *run
	stage string
	plan  Plan
	job   Job

	known   map[string]bool // checkpoints that were announced
	looked  time.Time       // at checkpoints
	bad     int             // lines that no source understood
	total   int64
	began   time.Time
	quieted bool
}

// follow polls until the process has ended, and judges its end.
func (w *watch) follow(ctx context.Context, p *process) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	var told <-chan time.Time
	stopping := ctx.Done()
	for {
		select {
		case <-tick.C:
			if err := w.poll(false); err != nil {
				w.r.log.Error("read what the trainer writes", "err", err)
			}
		case <-w.r.cfg.Save:
			if w.plan.Save != nil {
				if err := w.plan.Save(); err != nil {
					w.r.log.Warn("checkpoint asked for", "err", err)
				}
			}
		case <-stopping:
			stopping, told = nil, time.After(termAfter)
		case <-told:
			_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		case <-p.ended:
			return errors.Join(w.end(ctx, p), p.close())
		}
	}
}

// poll reads all sources once, and looks for checkpoints now and then.
func (w *watch) poll(last bool) error {
	var errs []error
	for rank, s := range w.plan.Sources {
		err := s.Poll(last, func(x Reading) {
			w.bad += x.Bad
			w.total = max(w.total, x.Total)
			w.r.book.read(rank, x)
		})
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.Name(), err))
		}
	}
	errs = append(errs, w.r.book.settle(last))
	if last || time.Since(w.looked) > checkpointEvery {
		w.looked = time.Now()
		errs = append(errs, w.checkpoints())
	}
	return errors.Join(append(errs, w.quiet())...)
}

// quiet alerts once when nothing was heard of a process since its start.
func (w *watch) quiet() error {
	limit := w.plan.Quiet
	if limit == 0 {
		limit = 15 * time.Minute
	}
	w.r.book.mu.Lock()
	heard, lines := w.r.book.heard, w.r.book.lines
	w.r.book.mu.Unlock()
	if w.quieted || lines > 0 || time.Since(heard) < limit {
		return nil
	}
	w.quieted = true
	return w.r.out.Alert(trainer.Alert{Level: "warn", Code: "native-quiet", Step: w.r.last,
		Text: fmt.Sprintf("stage %s has written no metric and played no episode for %v; its log is native/%s/stderr.log", w.stage, limit, w.stage)})
}

// checkpoints announces those of the main phase that are new.
func (w *watch) checkpoints() error {
	if w.plan.Checkpoints == nil || w.stage != StageRL {
		return nil
	}
	list, err := w.plan.Checkpoints()
	if err != nil {
		return fmt.Errorf("look for checkpoints: %w", err)
	}
	for _, c := range list {
		if w.known[c.Path] {
			continue
		}
		path := c.Path
		if rel, err := filepath.Rel(w.r.spec.Dir, c.Path); err == nil && !strings.HasPrefix(rel, "..") {
			path = rel
		}
		if err := w.r.out.Checkpoint(trainer.Checkpoint{Step: c.Step, Path: path, Bytes: size(c.Path)}); err != nil {
			return err
		}
		w.known[c.Path] = true
	}
	return nil
}

// end judges how the process ended.
func (w *watch) end(ctx context.Context, p *process) error {
	if err := w.poll(true); err != nil {
		return err
	}
	if w.bad > 0 {
		err := w.r.out.Alert(trainer.Alert{Level: "info", Code: "native-unread", Step: w.r.last,
			Text: fmt.Sprintf("%d lines that %s wrote in stage %s were not understood", w.bad, w.r.recipe.Trainer.Kind, w.stage)})
		if err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	exit := p.exit()
	if w.plan.Finished != nil {
		last := w.r.last
		if w.stage != StageRL { // its steps are not the run's progress
			last = w.r.book.newestStep()
		}
		if ok, reason := w.plan.Finished(last, exit); !ok {
			return fmt.Errorf("%s: %s%s", w.stage, reason, p.stderr.because())
		}
		return nil
	}
	switch {
	case exit != 0:
		return fmt.Errorf("%s: %s ended with exit code %d at step %d%s", w.stage, w.r.recipe.Trainer.Kind, exit, w.r.last, p.stderr.because())
	case w.stage == StageRL && w.r.last < w.job.Steps:
		return fmt.Errorf("%s: %s ended with exit code 0 at step %d of %d", w.stage, w.r.recipe.Trainer.Kind, w.r.last, w.job.Steps)
	}
	return nil
}
