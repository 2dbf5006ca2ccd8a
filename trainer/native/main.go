package native

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

	"alidade/ablation"
	"alidade/trainer"
)

// Version is part of what a run records about its trainer.
const Version = "1"

// Main runs the spec at path with the adapter of its kind and returns the
// process's exit code: 0 when it finished or stopped on request.
func Main(ctx context.Context, adapters []Adapter, path string) int {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	spec, err := trainer.ReadSpec(path)
	if err != nil {
		log.Error("spec refused", "err", err)
		return 2
	}
	save := make(chan os.Signal, 1)
	signal.Notify(save, syscall.SIGUSR1)
	defer signal.Stop(save)
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := Run(ctx, spec, adapters, Config{Logger: log, Save: save, Stdout: os.Stdout, Stderr: os.Stderr}); err != nil {
		log.Error("run ended", "err", err)
		return 1
	}
	return 0
}

// Run runs a spec. The end of ctx is a stop on request and no error: the
// native process has been asked to save and end. A run that fails says so in
// its done event and returns the error.
func Run(ctx context.Context, spec trainer.Spec, adapters []Adapter, cfg Config) error {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(spec.Dir, 0o755); err != nil {
		return fmt.Errorf("run folder: %w", err)
	}
	out, err := trainer.NewWriter(spec.Events, trainer.WriterOptions{Every: 200 * time.Millisecond})
	if err != nil {
		return err
	}
	r := &run{spec: spec, recipe: spec.Recipe, cfg: cfg, log: cfg.Logger, out: out, last: spec.ResumeStep}
	r.book = newBook(r)
	err = r.all(ctx, adapters)
	done := trainer.Done{OK: err == nil, Step: r.last, Reason: "finished"}
	switch {
	case err != nil && ctx.Err() != nil:
		done.Reason, err = "stopped", nil
	case err != nil:
		done.Reason = err.Error()
	}
	return errors.Join(err, out.Done(done), out.Close())
}

// Data is the data folder of a spec: the one that holds its artifacts.
func dataFolder(spec trainer.Spec) string { return filepath.Dir(spec.Artifacts) }

// EnvironmentDir is where `alidade trainers install KIND` puts a kind's
// Python environment.
func EnvironmentDir(data, kind string) string { return filepath.Join(data, "trainers", kind) }

// Interpreter is the Python that a recipe's trainer runs in: the one it
// names, else the environment that was installed in the data folder, else
// python3 of the search path.
func Interpreter(r ablation.Recipe, data string) (string, error) {
	if p := r.Native.Python; p != "" {
		return lookUp(p, "recipe.native.python")
	}
	installed := filepath.Join(EnvironmentDir(data, r.Trainer.Kind), "bin", "python")
	if _, err := os.Stat(installed); err == nil {
		return filepath.Abs(installed)
	}
	return lookUp("python3", "python3")
}
