package cpu

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"alidade/ablation"
	"alidade/sandbox/qa"
	"alidade/sandbox/travel"
	"alidade/sandbox/travel/compact"
)

// panelMix is the mix of the held-out panel and of the expert's traces, whatever
// the mix of the RL prompts is: arms that differ in it share the SFT checkpoint.
var panelMix = compact.Mix{4, 3, 3}

// dataset is what a run learns from and is judged on.
type dataset struct {
	hash       string // of the artifact
	world      *compact.World
	test       panel            // held out
	validation panel            // held out, picks the best checkpoint; may be empty
	traces     []compact.Trace  // of the expert, filtered
	prompts    []*compact.Query // of RL

	qa        *qa.World
	questions []*qa.Question // held out
	lessons   []*qa.Question // in SFT
	oodID     string
}

// panel is a fixed set of queries.
type panel struct {
	name    string
	id      string // arms with another one are not comparable
	queries []*compact.Query
	words   []uint64 // that tell its random streams from the test panel's
}

// dataKey is what a dataset depends on.
type dataKey struct {
	Code         string
	World        string
	Seed         uint64
	BudgetFactor float64
	Panel        int
	Mix          string
	Traces       int
	Noise        float64
	Stitched     bool    `json:",omitempty"`
	Renamed      float64 `json:",omitempty"`
	Success      bool    // keep only traces that succeed
	TopShare     float64 // and the best of them
	Prompts      int
	Validation   int
	OOD          int
	OODTraces    int
	Days         int `json:",omitempty"` // of longer trips
}

// makeData generates world, queries and traces. All of it follows from the
// recipe in well under a second, so the artifact is a record to read, not an
// input.
func (r *run) makeData(ctx context.Context) error {
	if err := r.phase("data", 0, false); err != nil {
		return err
	}
	rec := &r.recipe
	d, err := newDataset(rec)
	if err != nil {
		return err
	}
	key := dataKey{Code: codeVersion, World: d.world.Travel.Hash(), Seed: rec.Data.Seed, BudgetFactor: rec.Environment.BudgetFactor,
		Panel: rec.Evaluation.Queries, Mix: rec.Data.Mix, Traces: rec.SFT.Traces, Noise: rec.SFT.Noise, Success: rec.SFT.FilterSuccess, TopShare: rec.SFT.TopShare, Prompts: rec.Data.Prompts,
		Validation: rec.Evaluation.Validation, OOD: rec.Evaluation.OOD, OODTraces: rec.Data.OODTraces, Days: longDays(rec)}
	key.Stitched, key.Renamed = stitched(rec), renamed(rec)
	if d.hash, err = hashOf(key); err != nil {
		return err
	}
	r.data = d
	_, err = r.artifact(ctx, "dataset", key, d.record)
	return err
}

func newDataset(rec *ablation.Recipe) (*dataset, error) {
	w, err := newWorld(rec)
	if err != nil {
		return nil, err
	}
	mix, err := ablation.ParseMix(rec.Data.Mix)
	if err != nil {
		return nil, err
	}
	sets, err := w.Queries(rec.Data.Seed, rec.Environment.BudgetFactor,
		compact.QuerySet{N: rec.Evaluation.Queries, Mix: panelMix},
		compact.QuerySet{N: rec.SFT.Traces, Mix: panelMix},
		compact.QuerySet{N: rec.Data.Prompts, Mix: mix},
		compact.QuerySet{N: rec.Evaluation.Validation, Mix: panelMix})
	if err != nil {
		return nil, err
	}
	d := &dataset{world: w, test: panel{name: "test", queries: sets[0]}, prompts: sets[2],
		validation: panel{name: "validation", queries: sets[3], words: []uint64{1}}, qa: qa.NewWorld(rec.Data.Seed)}
	d.questions, d.lessons = d.qa.Split(rec.Evaluation.OOD, rec.Data.OODTraces)
	d.traces = expertTraces(w, sets[1], rec)
	if len(d.traces) == 0 {
		return nil, fmt.Errorf("none of %d traces succeeds: lower sft.noise (%g) or turn sft.filter_success off", rec.SFT.Traces, rec.SFT.Noise)
	}
	for _, p := range []*panel{&d.test, &d.validation} {
		keys := []any{w.Travel.Hash()}
		for _, q := range p.queries {
			keys = append(keys, q.Key)
		}
		if p.id, err = hashOf(keys); err != nil {
			return nil, err
		}
	}
	keys := []string{d.qa.Hash()}
	if rec.Evaluation.OODKnown {
		keys = append(keys, "known")
	}
	for _, q := range d.questions {
		keys = append(keys, q.Key)
	}
	d.oodID, err = hashOf(keys)
	return d, err
}

func stitched(rec *ablation.Recipe) bool { return rec.SFT.TracesKind == "stitched" }

// renamed is the share of question traces that call their tool by another word.
func renamed(rec *ablation.Recipe) float64 {
	if rec.Data.OODTraces == 0 {
		return 0
	}
	return rec.Data.OODRenamed
}

// expertTraces writes one trace a query and keeps those that the recipe wants,
// in the order of the queries.
func expertTraces(w *compact.World, queries []*compact.Query, rec *ablation.Recipe) []compact.Trace {
	type graded struct {
		trace compact.Trace
		at    int
		worth float64 // the share of its budget that it leaves, 1 more for success and 1 less without
	}
	write := w.Expert
	if stitched(rec) {
		write = w.Stitch
	}
	var all []graded
	for i, q := range queries {
		g := graded{trace: write(q, rec.SFT.Noise, rec.Data.Seed, uint64(i)), at: i}
		if rec.SFT.FilterSuccess || rec.SFT.TopShare > 0 {
			j := w.Judge(g.trace)
			if rec.SFT.FilterSuccess && !j.Success {
				continue
			}
			g.worth = 2*share(j.Success) - 1
			if j.Cost != nil {
				g.worth += 1 - *j.Cost/q.Budget
			}
		}
		all = append(all, g)
	}
	if n := rec.SFT.TopShare; n > 0 && n < 1 {
		slices.SortStableFunc(all, func(a, b graded) int { return cmp.Compare(b.worth, a.worth) })
		all = all[:int(math.Ceil(n*float64(len(all))))]
		slices.SortFunc(all, func(a, b graded) int { return a.at - b.at })
	}
	traces := make([]compact.Trace, len(all))
	for i, g := range all {
		traces[i] = g.trace
	}
	return traces
}

// record writes the dataset for people: one JSON line a query, and the traces
// in words.
func (d *dataset) record(dir string) (map[string]any, error) {
	var train []*compact.Query
	var words strings.Builder
	for i, t := range d.traces {
		train = append(train, t.Query)
		words.WriteString(compact.Show(d.world.Write(t, uint64(i)).Tokens) + "\n")
	}
	for name, queries := range map[string][]*compact.Query{"panel.jsonl": d.test.queries, "validation.jsonl": d.validation.queries, "sft.jsonl": train, "prompts.jsonl": d.prompts} {
		if err := writeQueries(filepath.Join(dir, name), queries); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "traces.txt"), []byte(words.String()), 0o644); err != nil {
		return nil, err
	}
	return map[string]any{"cities": d.world.Cities(), "panel": len(d.test.queries), "validation": len(d.validation.queries), "questions": len(d.questions), "question_traces": len(d.lessons), "traces": len(d.traces), "prompts": len(d.prompts), "panel_hash": d.test.id}, nil
}

func writeQueries(path string, queries []*compact.Query) error {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for _, q := range queries {
		line := struct {
			Hash  string
			Query travel.Query
		}{q.Key, q.Query}
		if err := enc.Encode(line); err != nil {
			return err
		}
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}
