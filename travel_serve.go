package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"alidade/ablation"
	sandboxserve "alidade/sandbox/serve"
	"alidade/sandbox/travel"
	"alidade/sandbox/travel/dataset"

	"github.com/spf13/cobra"
)

// serveFlags say which episodes are offered to trainers, and where.
type serveFlags struct {
	world   worldFlags
	queries []string
	addr    string
	token   string
	noAuth  bool

	profile, reward string
	stages, weights string
	failures        travel.Failures
	rates           []string
	turns, tokens   int
	form            string
	strict          bool
	idle            time.Duration
	episodes        int
}

func travelServeCommand() *cobra.Command {
	var f serveFlags
	c := &cobra.Command{
		Use: "serve", Short: "Serve episodes to trainers over HTTP, WebSocket or a Unix socket", Args: cobra.NoArgs,
		Long: "Serve episodes to trainers. Clients send the token as \"Authorization: Bearer TOKEN\"; it is taken from ALIDADE_TOKEN, or made and printed. GET /openapi.json describes everything.",
		Example: "  alidade travel serve --db tables --queries train=train.jsonl --queries eval=test.jsonl --failure-rate 0.05\n" +
			"  alidade travel serve --size full --queries queries.jsonl --addr unix:/tmp/travel.sock",
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	f.world.add(c)
	c.Flags().StringArrayVar(&f.queries, "queries", nil, "JSONL or Parquet file of queries, or SPLIT=FILE; may be given several times; splits named eval, validation, val and test are without failures")
	c.Flags().StringVar(&f.addr, "addr", "127.0.0.1:7718", "host:port, or unix:PATH")
	c.Flags().StringVar(&f.token, "token-file", "", "file that holds the token; empty = env ALIDADE_TOKEN, else one is made")
	c.Flags().BoolVar(&f.noAuth, "no-auth", false, "serve without a token, on loopback and Unix sockets only")
	c.Flags().StringVar(&f.profile, "profile", "strict", "evaluator that pays the reward: strict, star or official")
	c.Flags().StringVar(&f.reward, "reward", travel.RewardSum, strings.Join(travel.RewardKinds(), ", "))
	c.Flags().StringVar(&f.stages, "stages", "", "shares of the steps under SUM, MACRO and SUCCESS for staged rewards, such as 0.4,0.4,0.2")
	c.Flags().StringVar(&f.weights, "weights", "", "for WEIGHTED: score=weight, comma separated, such as success=1,cs_micro=0.2")
	c.Flags().Float64Var(&f.failures.Rate, "failure-rate", 0, "chance that a tool call fails")
	c.Flags().StringVar(&f.failures.Kind, "failure-kind", "", "unavailable, timeout, truncated, stale, corrupted, latency or mixed")
	c.Flags().StringArrayVar(&f.rates, "tool-failure-rate", nil, "TOOL=RATE, instead of --failure-rate for one tool; may be given several times")
	c.Flags().Float64Var(&f.failures.LatencyMS, "failure-latency", 0, "mean latency that kind latency adds, ms; 0 = 1000")
	c.Flags().Uint64Var(&f.failures.Seed, "failure-seed", 1, "seed of the failures, the same in every arm")
	c.Flags().IntVar(&f.turns, "max-turns", 60, "turns of an episode")
	c.Flags().IntVar(&f.tokens, "max-tokens", 32768, "context of an episode, tokens")
	c.Flags().StringVar(&f.form, "form", sandboxserve.FormNative, "how prompts tell the policy to write, unless an episode asks for another: native or react")
	c.Flags().BoolVar(&f.strict, "strict-answer", false, "the answer must be the JSON list of days alone")
	c.Flags().DurationVar(&f.idle, "idle", 15*time.Minute, "an episode untouched for this long is dropped")
	c.Flags().IntVar(&f.episodes, "max-episodes", 16384, "live episodes at once")
	_ = c.MarkFlagRequired("queries") // the flag exists
	return c
}

func (f *serveFlags) run(c *cobra.Command) error {
	log := slog.New(slog.NewTextHandler(c.ErrOrStderr(), nil))
	config, err := f.config()
	if err != nil {
		return err
	}
	config.Logger = log
	w, _, _, err := f.world.open()
	if err != nil {
		return err
	}
	config.World = w.World
	s, err := sandboxserve.New(config)
	if err != nil {
		return err
	}
	l, err := sandboxserve.Listen(c.Context(), f.addr)
	if err != nil {
		return fmt.Errorf("--addr: %w", err)
	}
	fmt.Fprintf(c.OutOrStdout(), "serving episodes on %s\n", l.Addr())
	if config.Token != "" && f.token == "" && os.Getenv("ALIDADE_TOKEN") == "" {
		fmt.Fprintf(c.OutOrStdout(), "token %s\n", config.Token)
	}
	return s.Serve(c.Context(), l)
}

// config checks the flags that make up the rules of the episodes.
func (f *serveFlags) config() (sandboxserve.Config, error) {
	c := sandboxserve.Config{Profile: travel.Profile(f.profile), Failures: f.failures, MaxTurns: f.turns, MaxTokens: f.tokens, Form: f.form,
		StrictPlan: f.strict, NoAuth: f.noAuth, Idle: f.idle, MaxEpisodes: f.episodes, Tasks: sandboxserve.Tasks{}}
	var err error
	if _, err = travel.ParseProfile(f.profile); err != nil {
		return c, fmt.Errorf("--%w", err)
	}
	if c.Reward, err = f.pay(); err != nil {
		return c, err
	}
	for _, pair := range f.rates {
		if c.Failures.Tools == nil {
			c.Failures.Tools = map[string]float64{}
		}
		tool, text, _ := strings.Cut(pair, "=")
		if c.Failures.Tools[tool], err = strconv.ParseFloat(text, 64); err != nil {
			return c, fmt.Errorf("--tool-failure-rate is %q, must be TOOL=RATE", pair)
		}
	}
	if err := c.Failures.Check(travel.ToolNames()); err != nil {
		return c, fmt.Errorf("--failure-rate, --failure-kind or --tool-failure-rate: %w", err)
	}
	if c.Token, err = f.secret(); err != nil {
		return c, err
	}
	for _, arg := range f.queries {
		split, path, named := strings.Cut(arg, "=")
		if !named {
			split, path = "train", arg
		}
		lines, err := dataset.Read(path)
		if err != nil {
			return c, fmt.Errorf("--queries: %w", err)
		}
		for _, l := range lines {
			id := l.ID
			if id == "" {
				id = l.Query.Hash()
			}
			c.Tasks[split] = append(c.Tasks[split], sandboxserve.Task{ID: id, Query: l.Query})
		}
	}
	return c, nil
}

func (f *serveFlags) pay() (travel.Reward, error) {
	r := travel.Reward{Kind: f.reward}
	for _, s := range list(f.stages) {
		x, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return r, fmt.Errorf("--stages has %q, must be shares such as 0.4,0.4,0.2", s)
		}
		r.Stages = append(r.Stages, x)
	}
	weights := map[string]string{}
	for _, s := range list(f.weights) {
		name, text, _ := strings.Cut(s, "=")
		weights[name] = text
	}
	var err error
	if r.Weights, err = ablation.Numbers(weights); err != nil {
		return r, fmt.Errorf("--weights: %w", err)
	}
	if err := r.Check(); err != nil {
		flag := "--reward"
		switch {
		case slices.Contains(travel.RewardKinds(), f.reward) && len(r.Stages) > 0:
			flag = "--stages"
		case f.reward == travel.RewardWeighted:
			flag = "--weights"
		}
		return r, fmt.Errorf("%s: %w", flag, err)
	}
	return r, nil
}

// secret is the token that clients must send.
func (f *serveFlags) secret() (string, error) {
	switch {
	case f.noAuth:
		return "", nil
	case f.token == "":
		if t := os.Getenv("ALIDADE_TOKEN"); t != "" {
			return t, nil
		}
		return rand.Text(), nil
	}
	src, err := os.ReadFile(f.token)
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	t := strings.TrimSpace(string(src))
	if t == "" {
		return "", errors.New("--token-file is empty, must hold the token")
	}
	return t, nil
}
