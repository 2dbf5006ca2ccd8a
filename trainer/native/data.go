package native

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"alidade/ablation"
	"alidade/sandbox"
	"alidade/sandbox/travel"
	"alidade/sandbox/travel/synth"
	"alidade/trainer"
)

const (
	splitTrain = "train"
	splitEval  = "eval"

	// panelMix is the mix of the panel and of the expert's queries, whatever that of the RL
	// prompts is: arms that differ in it are judged alike and share the SFT checkpoint.
	panelMix = "4:3:3"

	// splits keep the panel apart from the rest by the hash of a query; they are
	// the defaults of the travel commands and of the kind endpoint.
	splits = "train:8,validation:1,test:1"
)

// taskSet is what a run learns from and is judged on: it follows from the
// recipe alone, so that all arms and seeds of a study share it.
type taskSet struct {
	world  *synth.World
	train  []travel.Query
	eval   []travel.Query
	traces []synth.Trace
	panel  string // hash of the panel: evaluations with another one are not comparable
}

// dataKey is what the data files depend on.
type dataKey struct {
	Code         string
	World        string
	Seed         uint64
	Days         int
	BudgetFactor float64
	File         string
	Prompts      int
	Mix          string
	Panel        int
	Form         string
	SFT          ablation.SFT
	MaxTurns     int
	MaxTokens    int
}

// makeData draws queries and traces and writes them as files, once for all
// runs that need the same.
func (r *run) makeData(ctx context.Context) error {
	if err := r.out.Phase(trainer.Phase{Name: "data"}); err != nil {
		return err
	}
	var err error
	if r.set, err = newTaskSet(ctx, r.recipe, r.spec.Artifacts); err != nil {
		return fmt.Errorf("data: %w", err)
	}
	c := r.recipe
	key := dataKey{Code: Version, World: r.set.world.Hash(), Seed: c.Data.Seed, Days: c.Environment.Days, BudgetFactor: c.Environment.BudgetFactor,
		File: c.Data.QueriesFile, Prompts: c.Data.Prompts, Mix: c.Data.Mix, Panel: c.Evaluation.Queries, Form: formOf(c), SFT: sftData(c.SFT),
		MaxTurns: c.Environment.MaxTurns, MaxTokens: c.Environment.MaxTokens}
	dir, err := r.artifact(ctx, "dataset", key, func(dir string) (map[string]any, error) { return r.set.write(dir, formOf(c)) })
	if err != nil {
		return err
	}
	r.data = Data{Train: filepath.Join(dir, trainFile), Eval: filepath.Join(dir, evalFile), TrainN: len(r.set.train), EvalN: len(r.set.eval), Seed: c.Data.Seed}
	if len(r.set.traces) > 0 {
		r.data.Traces = filepath.Join(dir, tracesFile)
	}
	return nil
}

// sftData are the keys of SFT that the traces depend on.
func sftData(s ablation.SFT) ablation.SFT {
	return ablation.SFT{Traces: s.Traces, Noise: s.Noise, FilterSuccess: s.FilterSuccess, FilterFormat: s.FilterFormat, TopShare: s.TopShare, TracesKind: s.TracesKind}
}

func formOf(r ablation.Recipe) string {
	if r.Environment.Form == FormTools {
		return FormTools
	}
	return FormReact
}

// The forms in which a policy writes, as the recipe names them.
const (
	FormReact = "react"
	FormTools = "tools"
)

// newTaskSet draws the panel first, then the expert's queries, then the RL
// prompts, each apart from those before: more prompts do not change the rest.
func newTaskSet(ctx context.Context, r ablation.Recipe, artifacts string) (*taskSet, error) {
	world, err := synth.OpenRecipe(r, artifacts)
	if err != nil {
		return nil, err
	}
	s := &taskSet{world: world}
	d := &drawing{set: s, r: r, taken: map[string]bool{}}
	if r.Data.QueriesFile != "" {
		err = d.fromFile(ctx)
	} else {
		err = d.synthesise(ctx)
	}
	if err != nil {
		return nil, err
	}
	if len(s.train) == 0 {
		return nil, errors.New("recipe.data.prompts: there are no RL prompts, at least one is needed")
	}
	var h uint64
	for _, q := range s.eval {
		for _, c := range []byte(q.Hash()) {
			h = sandbox.Mix(h, uint64(c))
		}
	}
	s.panel = fmt.Sprintf("%016x", h)
	return s, nil
}

// drawing is the making of a taskSet.
type drawing struct {
	set   *taskSet
	r     ablation.Recipe
	taken map[string]bool // hashes of queries that have a place already
}

// synthesise draws all queries.
func (d *drawing) synthesise(ctx context.Context) error {
	var err error
	if d.set.eval, _, err = d.draw(ctx, "evaluation.queries", "test", d.r.Evaluation.Queries, panelMix, d.r.Data.Seed); err != nil {
		return err
	}
	if err := d.drawTraces(ctx); err != nil {
		return err
	}
	d.set.train, _, err = d.draw(ctx, "data.prompts", "train", d.r.Data.Prompts, d.r.Data.Mix, d.r.Data.Seed)
	return err
}

// fromFile takes the prompts from the recipe's file. The panel is drawn beside
// it where the world has more queries, else it is the end of the file.
func (d *drawing) fromFile(ctx context.Context) error {
	qs, _, err := travel.LoadQueries(d.r.Data.QueriesFile)
	if err != nil {
		return fmt.Errorf("recipe.data.queries_file: %w", err)
	}
	if len(qs) == 0 {
		return fmt.Errorf("recipe.data.queries_file %s is empty", d.r.Data.QueriesFile)
	}
	for _, q := range qs {
		d.taken[q.Hash()] = true
	}
	if d.r.Environment.World == "reference" {
		n := min(d.r.Evaluation.Queries, len(qs)/2)
		d.set.eval, qs = qs[len(qs)-n:], qs[:len(qs)-n]
	} else if d.set.eval, _, err = d.draw(ctx, "evaluation.queries", "test", d.r.Evaluation.Queries, panelMix, d.r.Data.Seed); err != nil {
		return err
	} else if err := d.drawTraces(ctx); err != nil {
		return err
	}
	if d.r.Data.Prompts > 0 {
		qs = qs[:min(len(qs), d.r.Data.Prompts)]
	}
	d.set.train = qs
	return nil
}

// draw synthesises queries that the solver can answer, none of which is taken.
func (d *drawing) draw(ctx context.Context, field, split string, n int, mixText string, seed uint64) ([]travel.Query, []synth.Solution, error) {
	if n == 0 {
		return nil, nil, nil
	}
	mix, err := ablation.ParseMix(mixText)
	if err != nil {
		return nil, nil, fmt.Errorf("recipe.data.mix: %w", err)
	}
	s, err := synth.ParseSplits(splits)
	if err != nil {
		return nil, nil, err
	}
	keep, err := s.Keep(split)
	if err != nil {
		return nil, nil, err
	}
	qs, sols, _, err := d.set.world.Queries(ctx, synth.Options{
		N: n, Mix: mix, Days: d.r.Environment.Days, Seed: seed, BudgetFactor: d.r.Environment.BudgetFactor,
		Certify: true, Keep: keep, Exclude: d.taken,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("recipe.%s: draw %d queries: %w", field, n, err)
	}
	for _, q := range qs {
		d.taken[q.Hash()] = true
	}
	return qs, sols, nil
}

// drawTraces lets the expert play queries of its own.
func (d *drawing) drawTraces(ctx context.Context) error {
	s := d.r.SFT
	if s.Traces == 0 {
		return nil
	}
	qs, sols, err := d.draw(ctx, "sft.traces", "train", s.Traces, panelMix, sandbox.Mix(d.r.Data.Seed, 0x5f7))
	if err != nil {
		return err
	}
	d.set.traces, _, err = d.set.world.Traces(ctx, qs, sols, synth.TraceOptions{
		Stitched: s.TracesKind == "stitched", Noise: s.Noise, KeepFailed: !s.FilterSuccess, TopShare: s.TopShare, Seed: d.r.Data.Seed,
		MaxTurns: d.r.Environment.MaxTurns, MaxContext: d.r.Environment.MaxTokens,
	})
	if err != nil {
		return err
	}
	if len(d.set.traces) == 0 {
		return fmt.Errorf("recipe.sft.traces: none of %d expert traces is kept: lower sft.noise (%g), turn sft.filter_success off, or raise environment.max_turns (%d) and max_tokens (%d)",
			s.Traces, s.Noise, d.r.Environment.MaxTurns, d.r.Environment.MaxTokens)
	}
	return nil
}
