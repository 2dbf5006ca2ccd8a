// Package solver is the trainer without a policy: the exact solver answers
// synthesised queries, or the plans that come with a file of queries are
// judged, and each trip becomes a trajectory that can be opened and compared
// like any other. It is how a world, a set of queries or the checks
// themselves are looked at.
package solver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"alidade/ablation"
	"alidade/sandbox/travel"
	"alidade/sandbox/travel/synth"
	"alidade/trainer"
)

// Version is part of what a run records about its trainer.
const Version = "1"

// Main runs the spec at path and returns the process's exit code.
func Main(ctx context.Context, path string) int {
	spec, err := trainer.ReadSpec(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	w, err := trainer.NewWriter(spec.Events, trainer.WriterOptions{Every: 100 * time.Millisecond})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	step, err := Run(ctx, spec, w)
	done := trainer.Done{OK: err == nil, Step: step, Reason: "finished"}
	code := 0
	switch {
	case errors.Is(err, context.Canceled):
		done.Reason = "stopped"
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		done.Reason, code = err.Error(), 1
	}
	if err := errors.Join(w.Done(done), w.Close()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// Run judges data.prompts trips, one a step, and returns the last step.
func Run(ctx context.Context, spec trainer.Spec, w *trainer.Writer) (int64, error) {
	r := spec.Recipe
	world, err := world(r)
	if err != nil {
		return 0, err
	}
	host, _ := os.Hostname()
	total := r.Data.Prompts
	var queries []travel.Query
	var plans []travel.Plan
	if r.Data.QueriesFile != "" {
		if queries, plans, err = travel.LoadQueries(r.Data.QueriesFile); err != nil {
			return 0, fmt.Errorf("recipe.data.queries_file: %w", err)
		}
		if r.Data.Plans == "annotated" && len(plans) != len(queries) {
			return 0, fmt.Errorf("recipe.data.plans annotated: %s has %d plans for %d queries", r.Data.QueriesFile, len(plans), len(queries))
		}
		total = min(total, len(queries))
	}
	err = errors.Join(
		w.Hello(trainer.Hello{Trainer: "alidade-solver", Version: Version, PID: os.Getpid(), Host: host, TotalSteps: int64(total), Info: map[string]string{"world": world.Hash()}}),
		w.Phase(trainer.Phase{Name: "data"}),
	)
	if err != nil {
		return 0, err
	}
	var sols []synth.Solution
	if queries == nil {
		mix, err := ablation.ParseMix(r.Data.Mix)
		if err != nil {
			return 0, err
		}
		var counts synth.Counts
		queries, sols, counts, err = world.Queries(ctx, synth.Options{
			N: total, Mix: mix, Days: r.Environment.Days, Seed: r.Data.Seed ^ spec.Seed<<32, Sampler: synth.Sampler(r.Data.Sampler), BudgetFactor: r.Environment.BudgetFactor, Certify: true,
		})
		if err != nil {
			return 0, err
		}
		if err := keep(spec, world, w, queries, sols, counts); err != nil {
			return 0, err
		}
		if err := w.Points(0, map[string]float64{
			"data/drawn": float64(counts.Drawn), "data/no_route": float64(counts.NoRoute), "data/no_budget": float64(counts.NoBudget),
			"data/not_proven": float64(counts.NotProven), "data/duplicate": float64(counts.Duplicate),
		}); err != nil {
			return 0, err
		}
	}
	if err := w.Phase(trainer.Phase{Name: "judge", Total: int64(total), Main: true}); err != nil {
		return 0, err
	}
	j := &judge{spec: spec, world: world, out: w}
	for i, q := range queries[:total] {
		if err := ctx.Err(); err != nil {
			return int64(i), err
		}
		t := j.trip(ctx, i, q, plans, sols)
		if err := j.record(int64(i+1), t); err != nil {
			return int64(i), err
		}
	}
	return int64(total), j.finish(int64(total))
}

// world builds the world that the recipe names.
func world(r ablation.Recipe) (*synth.World, error) {
	var t travel.Tables
	var err error
	switch e := r.Environment; e.World {
	case "real":
		if t, err = travel.LoadTables(e.Tables); err != nil {
			return nil, fmt.Errorf("recipe.environment.tables: %w", err)
		}
		if len(t.Flights) == 0 {
			synth.AddFlights(&t, r.Data.Seed)
		}
	case "reference":
		t, err = travel.LoadReference(filepath.Join(e.Tables, "train_ref_info.jsonl"), filepath.Join(e.Tables, "city_states.tsv"))
		if err != nil {
			return nil, fmt.Errorf("recipe.environment.tables: %w", err)
		}
	case "full":
		t, err = synth.Generate(r.Data.Seed, 312)
	case "small", "nano":
		t, err = synth.Generate(r.Data.Seed, e.Cities)
	default:
		return nil, fmt.Errorf("recipe.environment.world %q: allowed: nano, small, full, real, reference", e.World)
	}
	if err != nil {
		return nil, err
	}
	return synth.NewWorld(t), nil
}
