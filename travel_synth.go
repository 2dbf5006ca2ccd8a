package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"alidade/ablation"
	"alidade/sandbox/travel"
	"alidade/sandbox/travel/dataset"
	"alidade/sandbox/travel/synth"

	"github.com/spf13/cobra"
)

// synthFlags say which queries to draw and what to write of them.
type synthFlags struct {
	world   worldFlags
	o       synth.Options
	mix     string
	sampler string

	split, splits string
	exclude       []string

	out, form, card, name string
	plans, references     bool

	tracesOut string
	trace     synth.TraceOptions
	style     string

	endpoint, models, keyEnv string
	tries                    int
}

func travelSynthCommand() *cobra.Command {
	var f synthFlags
	c := &cobra.Command{
		Use: "synth", Short: "Synthesise queries, each with a certificate that a plan exists, and expert traces", Args: cobra.NoArgs,
		Long: "Synthesise queries at exactly the mix asked for, none twice. Unless --certify=false, each has a plan that passes every check of the strict profile.\n\n" +
			"The text comes from templates; --translate asks a language model behind an endpoint that speaks OpenAI's chat completions, and keeps its text only if it still states every part of the query. " +
			"The key is read from the environment variable that --key-env names.",
		Example: "  alidade travel synth --db tables --n 1000 --out queries.jsonl --card card.json\n" +
			"  alidade travel synth --size full --n 1000 --split train --splits train:8,validation:1,test:1 --out train.parquet --form verl\n" +
			"  alidade travel synth --db tables --n 500 --out sft.jsonl --traces traces.jsonl --samples 4 --top-share 0.25",
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	f.world.add(c)
	c.Flags().IntVar(&f.o.N, "n", 100, "queries")
	c.Flags().IntVar(&f.o.Days, "days", 0, "3, 5 or 7; 0 = each equally often")
	c.Flags().StringVar(&f.mix, "mix", "4:3:3", "easy:medium:hard")
	c.Flags().Uint64Var(&f.o.Seed, "seed", 1, "seed of the queries and traces")
	c.Flags().StringVar(&f.sampler, "sampler", "star", "star (Agent-STAR's) or travelplanner (TravelPlanner's own)")
	c.Flags().Float64Var(&f.o.BudgetFactor, "budget-factor", 1, "multiplies the budget of the benchmark's rule")
	c.Flags().BoolVar(&f.o.Feasible, "feasible", true, "reject what the published feasibility rule rejects")
	c.Flags().BoolVar(&f.o.Certify, "certify", true, "keep only queries for which the solver has a plan")
	c.Flags().IntVar(&f.o.Limits.Nodes, "solver-nodes", 0, "limit of the solver's nodes for one query; 0 = 2 million")
	c.Flags().DurationVar(&f.o.Limits.Time, "solver-time", 0, "limit of the solver's time for one query; 0 = none. A set drawn under it may not repeat exactly")
	c.Flags().StringVar(&f.splits, "splits", "train:8,validation:1,test:1", "sets and their weights, for --split")
	c.Flags().StringVar(&f.split, "split", "", "draw only queries of this set; sets are disjoint by the hash of a query, whatever the seeds")
	c.Flags().StringArrayVar(&f.exclude, "exclude", nil, "file of queries that must not come again; may be given several times")
	c.Flags().StringVar(&f.out, "out", "-", "file for the queries; - = standard output")
	c.Flags().StringVar(&f.form, "form", "", "travelplanner, star, verl or trl; empty = by the name of --out")
	c.Flags().BoolVar(&f.plans, "plans", false, "write the solver's plan as annotated_plan")
	c.Flags().BoolVar(&f.references, "reference-information", false, "write what the tools say about the plan's route as reference_information")
	c.Flags().StringVar(&f.card, "card", "", "file for the data set card, as JSON and as Markdown")
	c.Flags().StringVar(&f.name, "name", "travel queries", "name of the set on its card")
	f.addTraces(c)
	c.Flags().StringVar(&f.endpoint, "translate", "", "base URL of an endpoint for the texts, such as http://127.0.0.1:8000/v1; empty = templates")
	c.Flags().StringVar(&f.models, "models", "", "models at the endpoint, comma separated; one is drawn for each query")
	c.Flags().StringVar(&f.keyEnv, "key-env", "OPENAI_API_KEY", "environment variable that holds the endpoint's key")
	c.Flags().IntVar(&f.tries, "tries", 10, "tries for a text before the template stands in")
	return c
}

func (f *synthFlags) addTraces(c *cobra.Command) {
	c.Flags().StringVar(&f.tracesOut, "traces", "", "JSONL or Parquet file for expert traces, as chat messages for fine-tuning")
	c.Flags().StringVar(&f.style, "style", "deliberative", "deliberative (few calls) or reactive (many)")
	c.Flags().BoolVar(&f.trace.Stitched, "stitched", false, "traces put together from single look-ups, without exploration or reference between turns")
	c.Flags().Float64Var(&f.trace.Explore, "explore", 0, "0 to 1, chance of each possible detour; 0 = the style's own, -1 = none")
	c.Flags().Float64Var(&f.trace.Vary, "vary", 0, "0 to 1, chance that a pick is replaced by another that passes; 0 = 0.5, -1 = never")
	c.Flags().Float64Var(&f.trace.Noise, "noise", 0, "0 to 1, chance that a pick is replaced by any other; traces that fail are left out")
	c.Flags().IntVar(&f.trace.Samples, "samples", 1, "traces drawn for a query")
	c.Flags().Float64Var(&f.trace.TopShare, "top-share", 0, "share of the traces kept, by quality; 0 = all")
	c.Flags().Float64Var(&f.trace.Failures.Rate, "failure-rate", 0, "chance that a tool call of an expert fails and is repeated")
	c.Flags().StringVar(&f.trace.Failures.Kind, "failure-kind", "", "unavailable, timeout, truncated, stale, corrupted, latency or mixed")
}

// options checks the flags that make up the drawing.
func (f *synthFlags) options() error {
	var err error
	if f.o.Mix, err = ablation.ParseMix(f.mix); err != nil {
		return fmt.Errorf("--mix: %w", err)
	}
	if f.o.N < 1 {
		return fmt.Errorf("--n is %d, must be at least 1", f.o.N)
	}
	if f.o.Days != 0 && f.o.Days != 3 && f.o.Days != 5 && f.o.Days != 7 {
		return fmt.Errorf("--days is %d, must be 3, 5, 7, or 0 for a mix", f.o.Days)
	}
	if f.o.BudgetFactor <= 0 {
		return fmt.Errorf("--budget-factor is %v, must be above 0", f.o.BudgetFactor)
	}
	if f.o.Sampler, err = synth.ParseSampler(f.sampler); err != nil {
		return fmt.Errorf("--%w", err)
	}
	if f.split != "" {
		splits, err := synth.ParseSplits(f.splits)
		if err != nil {
			return fmt.Errorf("--%w", err)
		}
		if f.o.Keep, err = splits.Keep(f.split); err != nil {
			return fmt.Errorf("--%w", err)
		}
	}
	f.o.Exclude = map[string]bool{}
	for _, path := range f.exclude {
		lines, err := dataset.Read(path)
		if err != nil {
			return fmt.Errorf("--exclude: %w", err)
		}
		for i := range lines {
			f.o.Exclude[lines[i].Query.Hash()] = true
		}
	}
	f.trace.Style, f.trace.Seed, f.trace.Failures.Seed = synth.Style(f.style), f.o.Seed, f.o.Seed
	if err := f.trace.Check(); err != nil {
		return fmt.Errorf("traces: %w", err)
	}
	if (f.tracesOut != "" || f.plans || f.references) && !f.o.Certify {
		return fmt.Errorf("--certify is false, must be true for --traces, --plans and --reference-information")
	}
	if f.endpoint != "" && len(list(f.models)) == 0 {
		return fmt.Errorf("--models is empty, must name at least one model at the endpoint of --translate")
	}
	return nil
}

func (f *synthFlags) run(c *cobra.Command) error {
	if err := f.options(); err != nil {
		return err
	}
	w, spec, _, err := f.world.open()
	if err != nil {
		return err
	}
	began := time.Now()
	qs, sols, counts, err := w.Queries(c.Context(), f.o)
	if err != nil {
		return err
	}
	log := c.ErrOrStderr()
	fmt.Fprintf(log, "%d queries in %s from %d draws: %d without a route, %d below the minimum rows, %d infeasible, %d not proven solvable, %d twice, %d of another split\n",
		len(qs), time.Since(began).Round(time.Millisecond), counts.Drawn, counts.NoRoute, counts.NoBudget, counts.Infeasible, counts.NotProven, counts.Duplicate, counts.OtherSplit)
	lines := f.lines(w, qs, sols)
	if err := f.translate(c.Context(), log, lines); err != nil {
		return err
	}
	if err := dataset.Write(f.out, f.form, lines, dataset.Rows{Split: f.split}); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	if err := f.writeCard(w, spec, lines, sols, counts); err != nil {
		return err
	}
	return f.writeTraces(c.Context(), log, w, lines, sols)
}

func (f *synthFlags) lines(w *synth.World, qs []travel.Query, sols []synth.Solution) []travel.QueryLine {
	lines := make([]travel.QueryLine, len(qs))
	for i := range qs {
		lines[i] = travel.QueryLine{ID: qs[i].Hash(), Query: qs[i]}
		if f.plans {
			lines[i].Plan = travel.NewPlan(sols[i].Days)
		}
		if f.references {
			lines[i].Reference = w.Reference(qs[i], sols[i].Days)
		}
	}
	return lines
}

// translators is how many texts are asked for at the same time.
const translators = 4

// translate replaces the texts by a language model's.
func (f *synthFlags) translate(ctx context.Context, log io.Writer, lines []travel.QueryLine) error {
	if f.endpoint == "" {
		return nil
	}
	t := &synth.Translator{Endpoint: f.endpoint, Models: list(f.models), Key: os.Getenv(f.keyEnv), Tries: f.tries, Seed: f.o.Seed}
	work := make(chan int)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var failed error
	templates, why := 0, ""
	for range translators {
		wg.Go(func() {
			for i := range work {
				got, err := t.Translate(ctx, lines[i].Query)
				mu.Lock()
				if err != nil {
					failed = err
				} else {
					lines[i].Query.Text, lines[i].Model = got.Text, got.Model
				}
				if err == nil && got.Model == "" {
					templates, why = templates+1, got.Why
				}
				mu.Unlock()
			}
		})
	}
	for i := range lines {
		work <- i
	}
	close(work)
	wg.Wait()
	if failed != nil {
		return failed
	}
	if templates > 0 {
		fmt.Fprintf(log, "%d of %d texts are templates; the last reason: %s\n", templates, len(lines), why)
	}
	return nil
}

func (f *synthFlags) writeCard(w *synth.World, spec synth.Spec, lines []travel.QueryLine, sols []synth.Solution, counts synth.Counts) error {
	if f.card == "" {
		return nil
	}
	made := dataset.Made{Sampler: f.sampler, Mix: f.mix, Seed: f.o.Seed, Split: f.split, BudgetFactor: f.o.BudgetFactor, Certified: f.o.Certify}
	if err := dataset.WriteCard(f.card, dataset.NewCard(f.name, dataset.Describe(spec.Kind, w.World), made, lines, sols, &counts)); err != nil {
		return fmt.Errorf("--card: %w", err)
	}
	return nil
}

func (f *synthFlags) writeTraces(ctx context.Context, log io.Writer, w *synth.World, lines []travel.QueryLine, sols []synth.Solution) error {
	if f.tracesOut == "" {
		return nil
	}
	qs := make([]travel.Query, len(lines))
	for i := range lines {
		qs[i] = lines[i].Query
	}
	traces, n, err := w.Traces(ctx, qs, sols, f.trace)
	if err != nil {
		return err
	}
	fmt.Fprintf(log, "%d traces of %d: %d failed, %d out of form, %d below the top share\n", n.Kept, n.Drawn, n.Failed, n.BadForm, n.BelowShare)
	if err := dataset.WriteTraces(f.tracesOut, traces); err != nil {
		return fmt.Errorf("--traces: %w", err)
	}
	return nil
}

func travelConvertCommand() *cobra.Command {
	var f worldFlags
	var in, out, form, split, card, name string
	var tools bool
	c := &cobra.Command{
		Use: "convert", Short: "Read a set of queries in one form and write it in another, with its card", Args: cobra.NoArgs,
		Example: "  alidade travel convert --in train.jsonl --out train.parquet --form trl --split train",
		RunE: func(c *cobra.Command, _ []string) error {
			lines, err := dataset.Read(in)
			if err != nil {
				return fmt.Errorf("--in: %w", err)
			}
			if out != "" {
				if err := dataset.Write(out, form, lines, dataset.Rows{Split: split, Tools: tools}); err != nil {
					return fmt.Errorf("--out: %w", err)
				}
			}
			if card == "" {
				return nil
			}
			w, spec, _, err := f.open()
			if err != nil {
				return err
			}
			if err := dataset.WriteCard(card, dataset.NewCard(name, dataset.Describe(spec.Kind, w.World), dataset.Made{Split: split, From: in}, lines, nil, nil)); err != nil {
				return fmt.Errorf("--card: %w", err)
			}
			return nil
		},
	}
	f.add(c)
	c.Flags().StringVar(&in, "in", "", "JSONL (TravelPlanner's or Agent-STAR's) or Parquet file of queries")
	c.Flags().StringVar(&out, "out", "", "file to write; - = standard output")
	c.Flags().StringVar(&form, "form", "", "travelplanner, star, verl or trl; empty = by the name of --out")
	c.Flags().StringVar(&split, "split", "", "name of the set, for the rows and the card")
	c.Flags().BoolVar(&tools, "native", false, "prompts for native tool calls instead of the text form")
	c.Flags().StringVar(&card, "card", "", "file for the data set card")
	c.Flags().StringVar(&name, "name", "travel queries", "name of the set on its card")
	_ = c.MarkFlagRequired("in") // the flag exists
	return c
}
