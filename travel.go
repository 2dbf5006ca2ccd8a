package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"alidade/ablation"
	"alidade/sandbox/travel"
	"alidade/sandbox/travel/synth"

	"github.com/spf13/cobra"
)

// travelCommand groups what can be done with the travel sandbox by itself.
func travelCommand() *cobra.Command {
	c := &cobra.Command{Use: "travel", Short: "The travel sandbox by itself: synthesise, solve, play, score"}
	c.AddCommand(travelSynthCommand(), travelSolveCommand(), travelPlayCommand(), travelScoreCommand())
	return c
}

// worldFlags say which world a command works on.
type worldFlags struct {
	db     string
	cities int
	seed   uint64
}

func (f *worldFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.db, "db", "", "folder of TravelPlanner's CSV tables; flights are generated when it has none; empty = a generated world")
	c.Flags().IntVar(&f.cities, "cities", 60, "cities of a generated world, 4 to 312")
	c.Flags().Uint64Var(&f.seed, "seed", 1, "seed of the world and the queries")
}

func (f *worldFlags) world() (*synth.World, error) {
	if f.db == "" {
		t, err := synth.Generate(f.seed, f.cities)
		if err != nil {
			return nil, fmt.Errorf("--%w", err)
		}
		return synth.NewWorld(t), nil
	}
	t, err := travel.LoadTables(f.db)
	if err != nil {
		return nil, fmt.Errorf("--db: %w", err)
	}
	if len(t.Flights) == 0 {
		synth.AddFlights(&t, f.seed)
	}
	return synth.NewWorld(t), nil
}

func travelSynthCommand() *cobra.Command {
	var f worldFlags
	var n, days int
	var mix, out string
	c := &cobra.Command{
		Use: "synth", Short: "Synthesise queries, each with a certificate that a plan exists", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			m, err := ablation.ParseMix(mix)
			if err != nil {
				return fmt.Errorf("--mix: %w", err)
			}
			w, err := f.world()
			if err != nil {
				return err
			}
			qs, _, counts, err := w.Queries(c.Context(), synth.Options{N: n, Mix: m, Days: days, Seed: f.seed, Certify: true})
			if err != nil {
				return err
			}
			if err := writeLines(out, c.OutOrStdout(), qs); err != nil {
				return err
			}
			fmt.Fprintf(c.ErrOrStderr(), "%d queries from %d draws: %d without a route, %d below the minimum rows, %d not proven solvable, %d twice\n", len(qs), counts.Drawn, counts.NoRoute, counts.NoBudget, counts.NotProven, counts.Duplicate)
			return nil
		},
	}
	f.add(c)
	c.Flags().IntVar(&n, "n", 100, "queries")
	c.Flags().IntVar(&days, "days", 0, "3, 5 or 7; 0 = each equally often")
	c.Flags().StringVar(&mix, "mix", "4:3:3", "easy:medium:hard")
	c.Flags().StringVar(&out, "out", "", "JSONL file; empty = standard output")
	return c
}

func writeLines(path string, std io.Writer, qs []travel.Query) (err error) {
	w := std
	if path != "" {
		file, err := os.Create(path)
		if err != nil {
			return fmt.Errorf("--out: %w", err)
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		w = file
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, q := range qs {
		if err := enc.Encode(q); err != nil {
			return err
		}
	}
	return nil
}

func travelSolveCommand() *cobra.Command {
	var f worldFlags
	var queries string
	c := &cobra.Command{
		Use: "solve", Short: "Solve a file of queries and judge the plans", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			w, err := f.world()
			if err != nil {
				return err
			}
			qs, _, err := travel.LoadQueries(queries)
			if err != nil {
				return fmt.Errorf("--queries: %w", err)
			}
			return solveAll(c.Context(), c.OutOrStdout(), w, qs)
		},
	}
	f.add(c)
	c.Flags().StringVar(&queries, "queries", "", "JSONL file of queries")
	_ = c.MarkFlagRequired("queries") // the flag exists
	return c
}

func solveAll(ctx context.Context, out io.Writer, w *synth.World, qs []travel.Query) error {
	proven := 0
	for i, q := range qs {
		if err := ctx.Err(); err != nil {
			return err
		}
		s := w.Solve(q)
		if !s.Proven {
			fmt.Fprintf(out, "%4d  not proven: %s\n", i+1, s.Reason)
			continue
		}
		j := travel.Judge(w.World, q, travel.NewPlan(s.Days), travel.Strict)
		if j.Success {
			proven++
		}
		fmt.Fprintf(out, "%4d  %.0f of %.0f $, strict %v\n", i+1, s.Cost, q.Budget, j.Success)
	}
	fmt.Fprintf(out, "%d of %d solved\n", proven, len(qs))
	return nil
}

func travelPlayCommand() *cobra.Command {
	var f worldFlags
	var queries string
	var index int
	c := &cobra.Command{
		Use: "play", Short: "Act as the agent: call tools, write a plan, see it judged", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			w, err := f.world()
			if err != nil {
				return err
			}
			q, err := f.query(c.Context(), w, queries, index)
			if err != nil {
				return err
			}
			return travel.Play(c.Context(), c.InOrStdin(), c.OutOrStdout(), w.World, q)
		},
	}
	f.add(c)
	c.Flags().StringVar(&queries, "queries", "", "JSONL file of queries; empty = synthesise")
	c.Flags().IntVar(&index, "index", 1, "which query, from 1")
	return c
}

// query is the index-th query of a file, or of those synthesised.
func (f *worldFlags) query(ctx context.Context, w *synth.World, file string, index int) (travel.Query, error) {
	var qs []travel.Query
	var err error
	if file != "" {
		if qs, _, err = travel.LoadQueries(file); err != nil {
			return travel.Query{}, fmt.Errorf("--queries: %w", err)
		}
	} else if qs, _, _, err = w.Queries(ctx, synth.Options{N: max(index, 1), Mix: [3]int{4, 3, 3}, Seed: f.seed, Certify: true}); err != nil {
		return travel.Query{}, err
	}
	if index < 1 || index > len(qs) {
		return travel.Query{}, fmt.Errorf("--index %d: want 1 to %d", index, len(qs))
	}
	return qs[index-1], nil
}

func travelScoreCommand() *cobra.Command {
	var o travel.ScoreOptions
	var profile string
	c := &cobra.Command{
		Use: "score", Short: "Judge plans as the public benchmark does", Args: cobra.NoArgs,
		Long: "Judge plans as the public benchmark does: one JSON line for each (query, plan) pair.\n\nProfiles: official is TravelPlanner's evaluator with its quirks, star is Agent-STAR's variant, strict is what the rules mean.",
		RunE: func(c *cobra.Command, _ []string) error {
			o.Profile = travel.Profile(profile)
			return travel.ScoreFiles(o)
		},
	}
	c.Flags().StringVar(&o.DB, "db", "", "database folder in TravelPlanner's layout")
	c.Flags().StringVar(&o.Queries, "queries", "", "JSONL file of queries")
	c.Flags().StringVar(&o.Plans, "plans", "", "JSONL file of plans")
	c.Flags().StringVar(&profile, "profile", "strict", "official, star or strict")
	c.Flags().StringVar(&o.Out, "out", "", "JSONL file for the verdicts")
	c.Flags().StringVar(&o.Metrics, "metrics", "", "JSON file for the six rates")
	for _, f := range []string{"db", "queries", "plans", "out"} {
		_ = c.MarkFlagRequired(f) // the flags exist
	}
	return c
}
