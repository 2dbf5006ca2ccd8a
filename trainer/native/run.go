package native

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"alidade/ablation"
	"alidade/trainer"
)

// Config holds what a run needs beside its spec.
type Config struct {
	Logger         *slog.Logger     // nil discards
	Save           <-chan os.Signal // each asks for a checkpoint; nil = never
	Stdout, Stderr io.Writer        // get a copy of what native processes print; nil = none
}

// run is an attempt under way.
type run struct {
	spec   trainer.Spec
	recipe ablation.Recipe
	cfg    Config
	log    *slog.Logger
	out    *trainer.Writer

	adapter  Adapter
	python   string
	versions Versions
	machine  Machine
	set      *taskSet
	data     Data
	env      EnvServer
	token    string // of the environment server
	book     *book  // what episodes and metrics were read, and are written
	model    string // what RL starts from
	last     int64  // the last step of the main phase
}

// all is the run from first to last.
func (r *run) all(ctx context.Context, adapters []Adapter) error {
	findings, err := r.prepare(ctx, adapters)
	if err := r.hello(findings); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	if err := r.judge(findings); err != nil {
		return err
	}
	if err := r.makeData(ctx); err != nil {
		return err
	}
	stop, err := r.serve(ctx)
	if err != nil {
		return err
	}
	defer stop()
	return r.stages(ctx)
}

// prepare finds the adapter, its interpreter and versions, and what can be
// said before anything starts.
func (r *run) prepare(ctx context.Context, adapters []Adapter) ([]Verdict, error) {
	i := slices.IndexFunc(adapters, func(a Adapter) bool { return a.Kind() == r.recipe.Trainer.Kind })
	if i < 0 {
		return nil, fmt.Errorf("recipe.trainer.kind %q has no adapter; allowed: %s", r.recipe.Trainer.Kind, kinds(adapters))
	}
	r.adapter = adapters[i]
	var err error
	if r.python, err = Interpreter(r.recipe, dataFolder(r.spec)); err != nil {
		return nil, err
	}
	if r.versions, err = r.adapter.Probe(ctx, r.python); err != nil {
		return nil, err
	}
	r.machine = ThisMachine(ctx, dataFolder(r.spec))
	if len(r.spec.Devices) > 0 && strings.HasPrefix(r.spec.Devices[0], "cpu") {
		r.machine.DeviceGiB = nil
	}
	r.model = r.recipe.Native.Model
	return r.adapter.Check(r.recipe, r.versions, r.machine), nil
}

func kinds(adapters []Adapter) string {
	names := make([]string, len(adapters))
	for i, a := range adapters {
		names[i] = a.Kind()
	}
	return strings.Join(names, ", ")
}

// hello says who trains: versions, and what was resolved.
func (r *run) hello(findings []Verdict) error {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	info := map[string]string{"model": r.recipe.Native.Model, "python": r.python}
	maps.Copy(info, r.versions)
	for _, v := range findings {
		if v.Level == Note {
			info[v.Code] = v.Text
		}
	}
	return r.out.Hello(trainer.Hello{
		Trainer: "alidade-" + r.recipe.Trainer.Kind, Version: Version, PID: os.Getpid(), Host: host,
		TotalSteps: int64(r.recipe.Budget.Steps), Info: info,
	})
}

// judge prints the findings, writes warnings as alerts, and returns an error
// for what is refused.
func (r *run) judge(findings []Verdict) error {
	if what := r.versions["emulated"]; what != "" { // the test tool; nobody shall take its figures for results
		if err := r.out.Alert(trainer.Alert{Level: "bad", Code: "emulated", Text: "this run is emulated and is no result: " + what}); err != nil {
			return err
		}
	}
	var refused []string
	for _, v := range findings {
		fmt.Fprintln(r.stdout(), v)
		switch v.Level {
		case Refuse:
			refused = append(refused, v.reason())
		case Warn:
			if err := r.out.Alert(trainer.Alert{Level: "warn", Code: v.Code, Text: v.reason()}); err != nil {
				return err
			}
		}
	}
	if len(refused) > 0 {
		return fmt.Errorf("refused before the start: %s", strings.Join(refused, "; "))
	}
	return nil
}

func (r *run) stdout() io.Writer {
	if r.cfg.Stdout == nil {
		return io.Discard
	}
	return r.cfg.Stdout
}

// reason is the verdict as a sentence: key, value, what is wrong, what is allowed.
func (v Verdict) reason() string {
	s := v.Text
	switch {
	case v.Key != "" && v.Value != "":
		s = fmt.Sprintf("%s is %s: %s", v.Key, v.Value, v.Text)
	case v.Key != "":
		s = v.Key + ": " + v.Text
	}
	if v.Fix != "" {
		s += "; " + v.Fix
	}
	return s
}

// String is the verdict as a line of a log.
func (v Verdict) String() string { return fmt.Sprintf("%s %s: %s", v.Level, v.Code, v.reason()) }

// lookUp finds an interpreter and makes its path absolute. Symbolic links are
// kept: a virtual environment is known by them.
func lookUp(name, field string) (string, error) {
	p, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s: %w", field, err)
	}
	return filepath.Abs(p)
}
