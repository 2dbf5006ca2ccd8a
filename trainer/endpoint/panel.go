package endpoint

import (
	"context"
	"fmt"

	"alidade/ablation"
	"alidade/sandbox"
	"alidade/sandbox/travel"
	"alidade/sandbox/travel/synth"
)

// splits keeps the panel apart from queries that were made for training under
// the same names and weights, the defaults of the travel commands.
const splits = "train:8,validation:1,test:1"

// panel is what is asked: the queries, the same for all arms and seeds.
type panel struct {
	world   *synth.World
	queries []travel.Query
	hash    string // of the queries in order
}

// job is one episode to be played.
type job struct {
	id     string
	query  int
	sample int
}

// Queries opens the world of a recipe and returns the queries that its runs
// ask. artifacts is the folder that keeps large worlds; "" keeps none.
func Queries(ctx context.Context, r ablation.Recipe, artifacts string) (*synth.World, []travel.Query, error) {
	p, err := newPanel(ctx, r, artifacts)
	if err != nil {
		return nil, nil, err
	}
	return p.world, p.queries, nil
}

func newPanel(ctx context.Context, r ablation.Recipe, artifacts string) (*panel, error) {
	world, err := synth.OpenRecipe(r, artifacts)
	if err != nil {
		return nil, err
	}
	p := &panel{world: world}
	if r.Data.QueriesFile != "" {
		if p.queries, _, err = travel.LoadQueries(r.Data.QueriesFile); err != nil {
			return nil, fmt.Errorf("recipe.data.queries_file: %w", err)
		}
		p.queries = p.queries[:min(len(p.queries), r.Evaluation.Queries)]
	} else if err := p.draw(ctx, r); err != nil {
		return nil, err
	}
	if len(p.queries) == 0 {
		return nil, fmt.Errorf("no queries to ask: recipe.data.queries_file %s is empty", r.Data.QueriesFile)
	}
	var h uint64
	for _, q := range p.queries {
		for _, c := range []byte(q.Hash()) {
			h = sandbox.Mix(h, uint64(c))
		}
	}
	p.hash = fmt.Sprintf("%016x", h)
	return p, nil
}

// draw synthesises queries that the solver can answer.
func (p *panel) draw(ctx context.Context, r ablation.Recipe) error {
	mix, err := ablation.ParseMix(r.Data.Mix)
	if err != nil {
		return fmt.Errorf("recipe.data.mix: %w", err)
	}
	s, err := synth.ParseSplits(splits)
	if err != nil {
		return err
	}
	keep, err := s.Keep("test")
	if err != nil {
		return err
	}
	p.queries, _, _, err = p.world.Queries(ctx, synth.Options{
		N: r.Evaluation.Queries, Mix: mix, Days: r.Environment.Days, Seed: r.Data.Seed,
		BudgetFactor: r.Environment.BudgetFactor, Certify: true, Keep: keep,
	})
	if err != nil {
		return fmt.Errorf("draw the panel: %w", err)
	}
	return nil
}

// jobs lists all episodes, all queries once before any twice.
func (p *panel) jobs(samples int) []job {
	var out []job
	for s := range samples {
		for q := range p.queries {
			out = append(out, job{id: fmt.Sprintf("eval-endpoint-%d-%d", q, s), query: q, sample: s})
		}
	}
	return out
}
