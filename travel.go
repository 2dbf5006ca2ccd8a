package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"alidade/sandbox/travel"
	"alidade/sandbox/travel/dataset"
	"alidade/sandbox/travel/synth"

	"github.com/spf13/cobra"
)

// travelCommand groups what can be done with the travel sandbox by itself.
func travelCommand() *cobra.Command {
	c := &cobra.Command{Use: "travel", Short: "The travel sandbox by itself: worlds, queries, plans, episodes",
		Long: "The travel sandbox by itself.\n\nA world is generated (--size or --cities), or the public tables of TravelPlanner (--db; flights are generated when the folder has none), " +
			"or the partial database of a file of reference information (--reference). Worlds that take time to make are kept ready in a cache folder and mapped from there.",
		Example: "  alidade travel play --db tables --seed 3\n  alidade travel synth --db tables --n 1000 --out queries.jsonl --card card.json\n  alidade travel score --db tables --queries queries.jsonl --plans plans.jsonl --out verdicts.jsonl"}
	c.AddCommand(travelWorldCommand(), travelSynthCommand(), travelConvertCommand(), travelSolveCommand(), travelPlayCommand(), travelScoreCommand(), travelServeCommand())
	return c
}

// worldFlags say which world a command works on.
type worldFlags struct {
	db, reference, states string
	size                  string
	cities                int
	seed                  uint64
	flights               string
	cache                 string
}

func (f *worldFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.db, "db", "", "folder of TravelPlanner's CSV tables; flights are generated when it has none")
	c.Flags().StringVar(&f.reference, "reference", "", "JSONL file of reference information, for the partial world made from it; needs --states")
	c.Flags().StringVar(&f.states, "states", "", "file of cities and states, a tab between, for --reference")
	c.Flags().StringVar(&f.size, "size", "", "size of a generated world: nano (12 cities), small (60), medium (150), full (312)")
	c.Flags().IntVar(&f.cities, "cities", 60, "cities of a generated world, 4 to 312")
	c.Flags().Uint64Var(&f.seed, "world-seed", 1, "seed of what is generated of the world")
	c.Flags().StringVar(&f.flights, "flights", "march", "days of generated flights: march (31 days of 2022) or half-year (January to June 2022)")
	c.Flags().StringVar(&f.cache, "cache", "", `folder for ready worlds (env ALIDADE_CACHE); "off" for none; empty = the user's cache folder`)
}

// spec turns the flags into a world to open.
func (f *worldFlags) spec() (synth.Spec, error) {
	s := synth.Spec{Dir: f.db, File: f.reference, States: f.states, Cities: f.cities, Seed: f.seed, Cache: f.cacheDir()}
	switch {
	case f.db != "" && f.reference != "":
		return s, fmt.Errorf("--db and --reference are both set, must be one of them")
	case f.reference != "":
		s.Kind = synth.Reference
		if f.states == "" {
			return s, fmt.Errorf("--states is empty, must be the file of cities and states that --reference needs")
		}
	case f.db != "":
		s.Kind = synth.Real
	default:
		s.Kind = synth.Generated
	}
	if f.size != "" {
		n, ok := synth.Sizes()[f.size]
		if !ok {
			return s, fmt.Errorf("--size is %q, must be nano, small, medium or full", f.size)
		}
		s.Cities = n
	}
	switch f.flights {
	case "march":
		s.Window = synth.March()
	case "half-year":
		s.Window = synth.HalfYear()
	default:
		return s, fmt.Errorf("--flights is %q, must be march or half-year", f.flights)
	}
	return s, nil
}

func (f *worldFlags) cacheDir() string {
	dir := f.cache
	if dir == "" {
		dir = os.Getenv("ALIDADE_CACHE")
	}
	switch dir {
	case "":
		return travel.CacheDir()
	case "off":
		return ""
	}
	return dir
}

// open opens the world and names the flag that is to blame when it cannot.
func (f *worldFlags) open() (*synth.World, synth.Spec, travel.Cache, error) {
	s, err := f.spec()
	if err != nil {
		return nil, s, travel.Cache{}, err
	}
	w, c, err := synth.Open(s)
	if err != nil {
		flag := map[string]string{synth.Real: "--db", synth.Reference: "--reference", synth.Generated: "--cities"}[s.Kind]
		return nil, s, c, fmt.Errorf("%s: %w", flag, err)
	}
	return w, s, c, nil
}

func travelWorldCommand() *cobra.Command {
	var f worldFlags
	var out string
	c := &cobra.Command{
		Use: "world", Short: "Open a world and say what is in it; --out writes its tables", Args: cobra.NoArgs,
		Example: "  alidade travel world --db tables\n  alidade travel world --size full --flights half-year\n  alidade travel world --size nano --out folder",
		RunE: func(c *cobra.Command, _ []string) error {
			w, s, cache, err := f.open()
			if err != nil {
				return err
			}
			if err := describeWorld(c.OutOrStdout(), w, s, cache); err != nil {
				return err
			}
			if out == "" {
				return nil
			}
			if err := w.Write(out); err != nil {
				return fmt.Errorf("--out: %w", err)
			}
			return nil
		},
	}
	f.add(c)
	c.Flags().StringVar(&out, "out", "", "folder to write the tables to, in TravelPlanner's layout")
	return c
}

func describeWorld(out io.Writer, w *synth.World, s synth.Spec, cache travel.Cache) error {
	d := dataset.Describe(s.Kind, w.World)
	t := w.Tables()
	dates := w.Dates()
	span := "none"
	if len(dates) > 0 {
		span = fmt.Sprintf("%s to %s", dates[0], dates[len(dates)-1])
	}
	ready := "made in " + cache.Took.Round(time.Millisecond).String()
	switch {
	case cache.Hit:
		ready = fmt.Sprintf("mapped in %s from %s, %.1f MiB", cache.Took.Round(time.Millisecond), cache.Path, float64(cache.Bytes)/(1<<20))
	case cache.Path != "":
		ready += fmt.Sprintf(" and kept as %s, %.1f MiB", cache.Path, float64(cache.Bytes)/(1<<20))
	case cache.Why != "":
		ready += "; " + cache.Why
	}
	_, err := fmt.Fprintf(out, "world          %s, hash %s\ncities         %d in %d states\naccommodations %d\nrestaurants    %d\nattractions    %d\ndistances      %d\nflights        %d on %d routes, %s\nready          %s\n",
		d.Kind, d.Hash, d.Cities, d.States, len(t.Hotels), len(t.Restaurants), len(t.Attractions), len(t.Distances), d.Flights, w.NumRoutes(), span, ready)
	return err
}

func travelSolveCommand() *cobra.Command {
	var f worldFlags
	var queries, out string
	var limit time.Duration
	c := &cobra.Command{
		Use: "solve", Short: "Solve a file of queries and judge the plans", Args: cobra.NoArgs,
		Long: "Solve a file of queries: the cheapest plan with two nights in each city, three meals and a sight on each full day. A query without one is \"not proven\", as a plan of another form may exist.",
		RunE: func(c *cobra.Command, _ []string) error {
			w, _, _, err := f.open()
			if err != nil {
				return err
			}
			lines, err := dataset.Read(queries)
			if err != nil {
				return fmt.Errorf("--queries: %w", err)
			}
			return solveAll(c.Context(), c.OutOrStdout(), w, lines, out, synth.Limits{Time: limit})
		},
	}
	f.add(c)
	c.Flags().StringVar(&queries, "queries", "", "JSONL or Parquet file of queries")
	c.Flags().StringVar(&out, "out", "", "JSONL file for the plans, as a submission: idx, query, plan")
	c.Flags().DurationVar(&limit, "time", 30*time.Second, "limit of time for one query")
	_ = c.MarkFlagRequired("queries") // the flag exists
	return c
}

func solveAll(ctx context.Context, out io.Writer, w *synth.World, lines []travel.QueryLine, path string, limits synth.Limits) error {
	proven := 0
	plans := make([][]travel.Day, len(lines))
	for i := range lines {
		q := lines[i].Query
		s := w.SolveWithin(ctx, q, limits)
		if err := ctx.Err(); err != nil {
			return err
		}
		if !s.Proven {
			fmt.Fprintf(out, "%4d  not proven: %s\n", i+1, s.Reason)
			continue
		}
		plans[i] = s.Days
		j := travel.Judge(w.World, q, travel.NewPlan(s.Days), travel.Strict)
		if j.Success {
			proven++
		}
		fmt.Fprintf(out, "%4d  %.0f of %.0f $, strict %v\n", i+1, s.Cost, q.Budget, j.Success)
	}
	fmt.Fprintf(out, "%d of %d solved\n", proven, len(lines))
	if path == "" {
		return nil
	}
	err := dataset.WriteFile(path, func(f io.Writer) error { return writePlans(f, lines, plans) })
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}

// writePlans writes a submission; a query without a plan has null.
func writePlans(w io.Writer, lines []travel.QueryLine, plans [][]travel.Day) error {
	for i := range lines {
		plan := json.RawMessage("null")
		if plans[i] != nil {
			plan = json.RawMessage(travel.JSONPlan(plans[i]))
		}
		src, err := json.Marshal(struct {
			Idx     int             `json:"idx"`
			QueryID string          `json:"query_id,omitempty"`
			Query   string          `json:"query"`
			Plan    json.RawMessage `json:"plan"`
		}{i + 1, lines[i].ID, lines[i].Query.Text, plan})
		if err != nil {
			return err
		}
		if _, err := w.Write(append(src, '\n')); err != nil {
			return err
		}
	}
	return nil
}

func travelPlayCommand() *cobra.Command {
	var f worldFlags
	var queries string
	var index int
	var seed uint64
	c := &cobra.Command{
		Use: "play", Short: "Act as the agent: call tools, write a plan, see it judged", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			w, _, _, err := f.open()
			if err != nil {
				return err
			}
			q, err := oneQuery(c.Context(), w, queries, index, seed)
			if err != nil {
				return err
			}
			return travel.Play(c.Context(), c.InOrStdin(), c.OutOrStdout(), w.World, q)
		},
	}
	f.add(c)
	c.Flags().StringVar(&queries, "queries", "", "JSONL or Parquet file of queries; empty = synthesise one")
	c.Flags().IntVar(&index, "index", 1, "which query, from 1")
	c.Flags().Uint64Var(&seed, "seed", 1, "seed of the synthesised queries")
	return c
}

// oneQuery is the index-th query of a file, or of those synthesised.
func oneQuery(ctx context.Context, w *synth.World, file string, index int, seed uint64) (travel.Query, error) {
	if index < 1 {
		return travel.Query{}, fmt.Errorf("--index is %d, must be at least 1", index)
	}
	if file == "" {
		qs, _, _, err := w.Queries(ctx, synth.Options{N: index, Mix: [3]int{4, 3, 3}, Seed: seed, Certify: true})
		if err != nil {
			return travel.Query{}, err
		}
		return qs[index-1], nil
	}
	lines, err := dataset.Read(file)
	if err != nil {
		return travel.Query{}, fmt.Errorf("--queries: %w", err)
	}
	if index > len(lines) {
		return travel.Query{}, fmt.Errorf("--index is %d, must be 1 to %d", index, len(lines))
	}
	return lines[index-1].Query, nil
}

func travelScoreCommand() *cobra.Command {
	var o travel.ScoreOptions
	var profile string
	c := &cobra.Command{
		Use: "score", Short: "Judge plans as the public benchmark does", Args: cobra.NoArgs,
		Long: "Judge plans as the public benchmark does: one JSON line for each (query, plan) pair.\n\nProfiles: official is TravelPlanner's evaluator with its quirks, star is Agent-STAR's variant, strict is what the rules mean.",
		RunE: func(c *cobra.Command, _ []string) error {
			if !slices.Contains(travel.Profiles(), travel.Profile(profile)) {
				return fmt.Errorf("--profile is %q, must be official, star or strict", profile)
			}
			o.Profile = travel.Profile(profile)
			if o.Cache == "off" {
				o.Cache = ""
			}
			return travel.ScoreFiles(o)
		},
	}
	c.Flags().StringVar(&o.DB, "db", "", "database folder in TravelPlanner's layout")
	c.Flags().StringVar(&o.Queries, "queries", "", "JSONL file of queries")
	c.Flags().StringVar(&o.Plans, "plans", "", "JSONL file of plans")
	c.Flags().StringVar(&profile, "profile", "strict", "official, star or strict")
	c.Flags().StringVar(&o.Out, "out", "", "JSONL file for the verdicts")
	c.Flags().StringVar(&o.Metrics, "metrics", "", "JSON file for the six rates")
	c.Flags().StringVar(&o.Cache, "cache", os.Getenv("ALIDADE_CACHE"), `folder for the ready world (env ALIDADE_CACHE); empty or "off" = read the tables each time`)
	for _, f := range []string{"db", "queries", "plans", "out"} {
		_ = c.MarkFlagRequired(f) // the flags exist
	}
	return c
}

// list splits a flag of several values.
func list(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
}
