package serve

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"alidade/ablation"
	"alidade/sandbox/travel"
	"alidade/trainer"
)

// Forms in which a policy is told to write.
const (
	FormNative = "native" // the model's own tool calls; the last message is the plan
	FormReact  = "react"  // think, tool_call and answer tags in the text
)

// Config says which episodes are served, to whom, and how many at once. World
// and Tasks are needed; zero values of the rest are the defaults named.
type Config struct {
	World *travel.World
	Tasks Tasks

	Profile    travel.Profile     // pays the reward; "" = strict
	Reward     travel.Reward      // kind "" = SUM
	Milestones map[string]float64 // sub-goals that pay, by travel.MilestoneNames; no part of the published rewards
	Failures   travel.Failures    // Seed is the experiment's: the same in every arm
	Clean      []string           // splits without failures; nil = eval, validation, val, test
	Wait       bool               // wait out injected latency rather than only report it
	MaxTurns   int                // turns of an episode, the answer being one; 0 = 60
	MaxTokens  int                // context of an episode, tokens; 0 = 32,768
	Count      func(string) int   // tokens of a text; nil = a quarter of its bytes
	Form       string             // unless an episode asks for another; "" = native
	System     string             // system prompt; "" = the form's own
	StrictPlan bool               // the answer must be exactly the JSON list, nothing around it

	Token  string // every request must carry it; "" = whoever mounts the handler checks
	NoAuth bool   // Serve accepts an empty token on loopback and Unix sockets

	Idle        time.Duration // an episode untouched for this long is dropped; 0 = 15 min
	MaxEpisodes int           // live episodes; 0 = 16,384
	MaxBytes    int64         // held by live episodes; 0 = 1 GiB
	MaxBody     int64         // bytes of a request or message; 0 = 4 MiB
	MaxInFlight int           // requests worked on at once; 0 = 4,096
	MaxBatch    int           // operations in a batch; 0 = 4,096
	MaxSockets  int           // WebSocket connections; 0 = 1,024

	Record func(trainer.Trajectory) // gets every scored episode; called from many goroutines
	Logger *slog.Logger             // nil = silent
}

// ConfigOf reads under which rules a recipe's episodes run. seed is the
// run's. World, Tasks and Token are left to the caller.
func ConfigOf(r ablation.Recipe, seed uint64) (Config, error) {
	e, err := travel.ConfigOf(r, seed)
	if err != nil {
		return Config{}, err
	}
	chat := travel.ReactOf(r)
	return Config{Profile: e.Profile, Reward: travel.RewardOf(r), Milestones: e.Milestones, Failures: e.Failures,
		MaxTurns: e.MaxTurns, MaxTokens: chat.MaxContext, StrictPlan: chat.StrictPlan}, nil
}

// prepare fills in the defaults and refuses what cannot be served.
func (c *Config) prepare() error {
	if c.World == nil {
		return errors.New("world is nil, must be set")
	}
	if c.Profile == "" {
		c.Profile = travel.Strict
	}
	if _, err := travel.ParseProfile(string(c.Profile)); err != nil {
		return err
	}
	if c.Reward.Kind == "" {
		c.Reward.Kind = travel.RewardSum
	}
	if err := c.Reward.Check(); err != nil {
		return err
	}
	for name := range c.Milestones {
		if !slices.Contains(travel.MilestoneNames(), name) {
			return fmt.Errorf("milestone is %q, must be one of %s", name, strings.Join(travel.MilestoneNames(), ", "))
		}
	}
	if err := c.Failures.Check(travel.ToolNames()); err != nil {
		return err
	}
	if c.Clean == nil {
		c.Clean = []string{"eval", "validation", "val", "test"}
	}
	if c.Form == "" {
		c.Form = FormNative
	}
	if c.Form != FormNative && c.Form != FormReact {
		return fmt.Errorf("form is %q, must be %s or %s", c.Form, FormNative, FormReact)
	}
	if strings.ContainsAny(c.Token, " \t\r\n") {
		return errors.New("token has blanks, must have none")
	}
	if c.Count == nil {
		c.Count = func(s string) int { return (len(s) + 3) / 4 }
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c.limits()
}

func (c *Config) limits() error {
	for _, l := range []struct {
		name     string
		value    *int
		standard int
	}{
		{"max_turns", &c.MaxTurns, 60},
		{"max_tokens", &c.MaxTokens, 32_768},
		{"max_episodes", &c.MaxEpisodes, 16_384},
		{"max_in_flight", &c.MaxInFlight, 4_096},
		{"max_batch", &c.MaxBatch, 4_096},
		{"max_sockets", &c.MaxSockets, 1_024},
	} {
		if *l.value < 0 {
			return fmt.Errorf("%s is %d, must be 1 or more, or 0 for %d", l.name, *l.value, l.standard)
		}
		if *l.value == 0 {
			*l.value = l.standard
		}
	}
	if c.MaxBytes < 0 || c.MaxBody < 0 || c.Idle < 0 {
		return fmt.Errorf("max_bytes is %d, max_body %d, idle %v: must be more than 0, or 0 for the default", c.MaxBytes, c.MaxBody, c.Idle)
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = 1 << 30
	}
	if c.MaxBody == 0 {
		c.MaxBody = 4 << 20
	}
	if c.Idle == 0 {
		c.Idle = 15 * time.Minute
	}
	return nil
}
