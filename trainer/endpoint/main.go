package endpoint

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"alidade/trainer"
)

// Version is part of what a run records about its trainer.
const Version = "1"

const phase = "eval"

// Main runs the spec at path and returns the process's exit code: 0 when it
// finished or stopped on request.
func Main(ctx context.Context, path string) int {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	spec, err := trainer.ReadSpec(path)
	if err != nil {
		log.Error("spec refused", "err", err)
		return 2
	}
	signal.Ignore(syscall.SIGUSR1) // "save now": every reply is saved as it comes
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := Run(ctx, spec, Config{Logger: log}); err != nil {
		log.Error("run ended", "err", err)
		return 1
	}
	return 0
}

// Config holds what a run needs beside its spec.
type Config struct {
	Logger *slog.Logger // nil discards

	firstWait time.Duration // before a call's first retry; 0 = half a second
}

// Run plays all episodes of the spec that no earlier attempt has finished. The
// end of ctx is a stop on request and no error. A run that fails, for money,
// for the server, for too many invalid episodes, says so in its done event and
// returns the error; a later attempt goes on where it ended.
func Run(ctx context.Context, spec trainer.Spec, cfg Config) error {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(spec.Dir, 0o755); err != nil {
		return fmt.Errorf("run folder: %w", err)
	}
	out, err := trainer.NewWriter(spec.Events, trainer.WriterOptions{}) // each line at once: it is what a later attempt goes by
	if err != nil {
		return err
	}
	r := &run{spec: spec, recipe: spec.Recipe, log: cfg.Logger, out: out, sum: newTally(), done: map[string]bool{}, invalid: map[string]invalid{}, ended: make(chan struct{})}
	err = r.all(ctx, cfg.firstWait)
	done := trainer.Done{OK: err == nil, Step: r.step(err == nil), Reason: "finished"}
	switch {
	case err != nil && ctx.Err() != nil:
		done.Reason, err = "stopped", nil
	case err != nil:
		done.Reason = err.Error()
	}
	return errors.Join(err, out.Done(done), out.Close())
}

// all is the run from first to last.
func (r *run) all(ctx context.Context, firstWait time.Duration) error {
	key, err := readKey(r.recipe.Endpoint, filepath.Dir(r.spec.Artifacts))
	if err != nil {
		return err
	}
	var spent float64
	if r.journal, r.replies, spent, err = openJournal(runDir(r.spec)); err != nil {
		return err
	}
	defer func() { _ = r.journal.close() }() // every line is written already
	r.ask = newCaller(r.recipe.Endpoint, key, spent)
	if firstWait > 0 {
		r.ask.first = firstWait
	}
	r.model = r.recipe.Endpoint.Model
	r.total = r.recipe.Evaluation.Queries * max(1, r.recipe.Evaluation.Samples)
	if err := r.open(ctx); err != nil {
		return err
	}
	if err := r.remember(); err != nil {
		return err
	}
	err = errors.Join(
		r.hello(),
		r.out.Phase(trainer.Phase{Name: phase, Step: int64(r.sum.n), Total: int64(r.total), Main: true}),
	)
	if err != nil {
		return err
	}
	if err = r.passes(ctx); ctx.Err() != nil {
		return err
	}
	return errors.Join(err, r.finish(err))
}

// open finds out what is asked, and who.
func (r *run) open(ctx context.Context) error {
	var err error
	if r.model, err = r.ask.modelName(ctx); err != nil {
		return err
	}
	if r.panel, err = newPanel(ctx, r.recipe, r.spec.Artifacts); err != nil {
		return err
	}
	r.jobs = r.panel.jobs(max(1, r.recipe.Evaluation.Samples))
	r.total = len(r.jobs)
	return nil
}

func (r *run) hello() error {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	form := "tools"
	if r.react() {
		form = "react"
	}
	return r.out.Hello(trainer.Hello{
		Trainer: "alidade-endpoint", Version: Version, PID: os.Getpid(), Host: host, TotalSteps: int64(r.total),
		Info: map[string]string{
			"model": r.model, "server": r.recipe.Endpoint.URL, "form": form, "world": r.panel.world.Hash(), "panel": r.panel.hash,
			"finished before": fmt.Sprint(r.sum.n),
		},
	})
}
