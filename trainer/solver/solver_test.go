package solver_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"alidade/ablation"
	"alidade/sandbox/travel"
	"alidade/trainer"
	"alidade/trainer/solver"
)

// shared finds the benchmark's data; tests that need it skip without it.
func shared(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("ALIDADE_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared")
	}
	dir = filepath.Join(dir, "data", "travelplanner")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("TravelPlanner's data are not on this machine")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	return abs
}

// run executes the solver recipe and returns its events.
func run(t *testing.T, change func(*ablation.Recipe)) []trainer.Event {
	t.Helper()
	r, _ := ablation.PresetNamed("solver")
	change(&r)
	dir := t.TempDir()
	spec := trainer.Spec{Version: trainer.Version, Run: 1, Study: "t", Arm: "base", Attempt: 1, Seed: 1, Recipe: r, Dir: dir, Events: filepath.Join(dir, "events.jsonl"), Artifacts: filepath.Join(dir, "artifacts"), Threads: 1}
	path := filepath.Join(dir, "spec.json")
	if err := trainer.WriteSpec(path, spec); err != nil {
		t.Fatal(err)
	}
	if code := solver.Main(t.Context(), path); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	f, err := os.Open(spec.Events)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in := trainer.NewReader(f, trainer.ReaderOptions{})
	var out []trainer.Event
	for in.Next() {
		out = append(out, in.Event())
	}
	if err := in.Err(); err != nil || in.Malformed() > 0 {
		t.Fatalf("events: %v, %d malformed", err, in.Malformed())
	}
	return out
}

func tally(events []trainer.Event) (n, passed int, rates map[string]float64, failed []string) {
	rates = map[string]float64{}
	for _, e := range events {
		switch e.Kind {
		case trainer.KindTrajectory:
			n++
			if e.Trajectory.Success {
				passed++
				continue
			}
			for _, v := range e.Trajectory.Verdicts {
				if v.Outcome == "fail" {
					failed = append(failed, v.Reason)
				}
			}
		case trainer.KindPoints:
			for k, v := range e.Points.Values {
				rates[k] = float64(v)
			}
		}
	}
	return n, passed, rates, failed
}

func TestSolverOnAGeneratedWorld(t *testing.T) {
	n, passed, rates, failed := tally(run(t, func(r *ablation.Recipe) { r.Data.Prompts = 25 }))
	if n != 25 || passed != 25 || rates["eval/success"] != 1 {
		t.Errorf("%d of %d trips pass, eval/success %v: %v", passed, n, rates["eval/success"], failed)
	}
}

// TestSolverOnThePublicTables: 100 queries synthesised on the benchmark's own
// rows, all solved and all passing the strict checks.
func TestSolverOnThePublicTables(t *testing.T) {
	dir := shared(t)
	n, passed, _, failed := tally(run(t, func(r *ablation.Recipe) {
		r.Environment.World, r.Environment.Tables = "real", filepath.Join(dir, "tables")
	}))
	if n != 100 || passed != 100 {
		t.Errorf("%d of %d trips pass: %v", passed, n, failed)
	}
}

// TestHumanPlans judges the 45 train queries' own plans: official passes all,
// strict all but the one that visits attractions of other cities.
func TestHumanPlans(t *testing.T) {
	dir := shared(t)
	n, passed, rates, failed := tally(run(t, func(r *ablation.Recipe) {
		r.Environment.World, r.Environment.Tables = "reference", dir
		r.Data.QueriesFile, r.Data.Plans = filepath.Join(dir, "train_queries.jsonl"), "annotated"
	}))
	if n != 45 || passed != 44 {
		t.Errorf("strict passes %d of %d: %v", passed, n, failed)
	}
	if rates["eval/success_"+string(travel.Official)] != 1 {
		t.Errorf("official passes %v of the human plans, want all", rates["eval/success_official"])
	}
	if len(failed) == 0 || !strings.Contains(strings.Join(failed, " "), "San Antonio") {
		t.Errorf("the failing plan's reasons do not name the city: %v", failed)
	}
}
