package cpu

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"alidade/trainer"
	"alidade/trainer/cpu/nn"
)

// Main runs the embedded trainer on a spec file and returns its exit code:
// 0 when it finished or stopped on request, 1 otherwise. SIGTERM asks for a
// checkpoint and an orderly end, SIGUSR1 for a checkpoint now.
func Main(ctx context.Context, specPath string) int {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	spec, err := trainer.ReadSpec(specPath)
	if err != nil {
		log.Error("spec refused", "err", err)
		return 1
	}
	runtime.GOMAXPROCS(spec.Threads)
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, os.Interrupt)
	defer stop()
	save := make(chan os.Signal, 1)
	signal.Notify(save, syscall.SIGUSR1)
	defer signal.Stop(save)
	if err := Run(ctx, spec, Config{Logger: log, Save: save}); err != nil {
		log.Error("run failed", "err", err)
		return 1
	}
	return 0
}

// Config holds what a run needs beside its spec.
type Config struct {
	Logger *slog.Logger     // nil discards
	Save   <-chan os.Signal // each value asks for a checkpoint; may be nil
}

// Run trains as the spec says until the last step or until ctx is done, which
// is a stop on request and no error: the run is checkpointed and can be
// resumed. A run that fails says so in its done event and returns the error.
func Run(ctx context.Context, spec trainer.Spec, cfg Config) error {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(spec.Dir, 0o755); err != nil {
		return fmt.Errorf("run folder: %w", err)
	}
	out, err := trainer.NewWriter(spec.Events, trainer.WriterOptions{Every: 50 * time.Millisecond})
	if err != nil {
		return err
	}
	r := &run{spec: spec, recipe: spec.Recipe, log: cfg.Logger, save: cfg.Save, out: out}
	err = r.train(ctx)
	if errors.Is(err, nn.ErrNotFinite) && !r.warned {
		err = errors.Join(err, r.alert("bad", "nan", fmt.Sprintf("%v; the run stops, and nothing of it is kept", err)))
	}
	done := trainer.Done{OK: err == nil, Step: r.step, Reason: "finished"}
	switch {
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		done.Reason, err = "stopped", nil
	case err != nil:
		done.Reason = err.Error()
	}
	return errors.Join(err, out.Done(done), out.Close())
}
