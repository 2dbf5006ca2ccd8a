package synth

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"alidade/sandbox"
	"alidade/sandbox/travel"
	"alidade/trainer"
)

// TraceOptions says how experts work and which of their traces are kept.
type TraceOptions struct {
	Style    Style   // "" = deliberative
	Stitched bool    // traces put together from single look-ups, see [World.Trace]
	Explore  float64 // 0..1: chance of each possible detour; 0 = 0.2 deliberative, 0.6 reactive; negative = none
	Vary     float64 // 0..1: chance that a pick is replaced by another that also passes; 0 = 0.5; negative = never
	Noise    float64 // 0..1: chance that a pick is replaced by any other, passing or not

	Samples    int     // traces drawn for a query; 0 = 1
	KeepFailed bool    // keep traces whose plan fails
	TopShare   float64 // share of the kept traces with the best quality; 0 = all

	Failures   travel.Failures
	MaxTurns   int // 0 = 60
	MaxContext int // tokens; 0 = 32,768
	Seed       uint64
}

// Check refuses shares that are none and unknown styles.
func (o TraceOptions) Check() error {
	for name, x := range map[string]float64{"explore": o.Explore, "vary": o.Vary, "noise": o.Noise, "top share": o.TopShare} {
		if math.IsNaN(x) || x > 1 || x < 0 && (name == "noise" || name == "top share") {
			return fmt.Errorf("%s is %v, must be from 0 to 1", name, x)
		}
	}
	if o.Style != "" && o.Style != Deliberative && o.Style != Reactive {
		return fmt.Errorf("style is %q, must be %s or %s", o.Style, Deliberative, Reactive)
	}
	if o.Samples < 0 {
		return fmt.Errorf("samples are %d, must be at least 1", o.Samples)
	}
	return o.Failures.Check(travel.ToolNames())
}

// Trace is what one expert wrote for one query.
type Trace struct {
	Query      travel.Query
	Style      Style
	Stitched   bool
	Messages   []travel.Message // the whole conversation, to train on
	Trajectory trainer.Trajectory
	Quality    Quality
}

// TraceCounts say what became of the traces drawn.
type TraceCounts struct {
	Drawn, Failed, BadForm, BelowShare, Kept int
}

// Traces draws traces for queries with their solutions, keeps those that
// succeed in good form, and of these the top share by quality. They come in
// the order of the queries.
func (w *World) Traces(ctx context.Context, qs []travel.Query, sols []Solution, o TraceOptions) ([]Trace, TraceCounts, error) {
	var n TraceCounts
	if err := o.Check(); err != nil {
		return nil, n, err
	}
	if len(sols) != len(qs) {
		return nil, n, fmt.Errorf("%d solutions for %d queries", len(sols), len(qs))
	}
	var kept []Trace
	for i, q := range qs {
		for s := range max(1, o.Samples) {
			t, err := w.Trace(ctx, q, sols[i], o, sandbox.Mix(uint64(i), uint64(s)))
			if err != nil {
				return nil, n, err
			}
			n.Drawn++
			switch {
			case t.Trajectory.FormatError != "":
				n.BadForm++
			case !t.Trajectory.Success && !o.KeepFailed:
				n.Failed++
			default:
				t.Trajectory.ID = fmt.Sprintf("expert-0-%d-%d", i+1, s)
				t.Trajectory.Group, t.Trajectory.Rollout = fmt.Sprintf("expert-0-%d", i+1), s
				kept = append(kept, t)
			}
		}
	}
	if o.TopShare > 0 && o.TopShare < 1 {
		all := len(kept)
		kept = topShare(kept, o.TopShare)
		n.BelowShare = all - len(kept)
	}
	n.Kept = len(kept)
	return kept, n, nil
}

// topShare keeps the best of the traces, in their order.
func topShare(traces []Trace, share float64) []Trace {
	order := make([]int, len(traces))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(traces[b].Quality.Score, traces[a].Quality.Score) })
	order = order[:int(math.Ceil(share*float64(len(order))))]
	slices.Sort(order)
	out := make([]Trace, len(order))
	for i, k := range order {
		out[i] = traces[k]
	}
	return out
}

// Trace plays one expert through a real conversation: it reads what the tools
// show, says what it makes of it, looks up what its plan needs, takes detours,
// repeats a call after an injected failure, and answers. A stitched trace has
// the same form, but every look-up stands for itself: no thought refers to
// what was shown, nothing is explored or repeated. n tells traces of one query
// apart. The error is that of ctx.
func (w *World) Trace(ctx context.Context, q travel.Query, sol Solution, o TraceOptions, n uint64) (Trace, error) {
	if o.Style == "" {
		o.Style = Deliberative
	}
	if o.Explore == 0 {
		o.Explore = map[Style]float64{Deliberative: 0.2, Reactive: 0.6}[o.Style]
	}
	if o.Vary == 0 {
		o.Vary = 0.5
	}
	if o.MaxTurns == 0 {
		o.MaxTurns = 60
	}
	if o.Stitched {
		o.Explore, o.Failures = -1, travel.Failures{}
	}
	seed := sandbox.Mix(o.Seed, hashSeed(q.Hash()), n)
	r := rng(seed, "trace")
	days := w.vary(r, q, sol.Days, o)
	e := travel.NewEpisode(w.World, q, travel.EpisodeConfig{Failures: o.Failures, ID: seed, MaxTurns: o.MaxTurns})
	x := &expert{w: w, e: e, q: q, o: o, r: r, days: days, steps: w.steps(r, q, sol, days, o)}
	x.needed = len(x.steps)
	x.explore(sol)
	if err := travel.React(ctx, e, x.turn, travel.ReactConfig{MaxContext: o.MaxContext}); err != nil {
		return Trace{}, err
	}
	e.Reward(travel.RewardSum, nil, 0)
	t := e.Trajectory()
	t.Phase, t.Policy, t.Mode = "expert", "expert", "expert"
	t.Labels = map[string]string{"style": string(o.Style)}
	if o.Stitched {
		t.Labels["style"] = "stitched"
	}
	return Trace{Query: q, Style: o.Style, Stitched: o.Stitched, Messages: x.said, Trajectory: t, Quality: quality(&t, x.needed)}, nil
}

// Quality is a score of a trace with its parts, each from 0 to 1. The weights
// are a choice of this program, not a published one.
type Quality struct {
	Score    float64 `json:"score"`
	Grounded float64 `json:"grounded"` // share of the plan's items that a tool has shown
	Economy  float64 `json:"economy"`  // look-ups needed over calls made
	Clean    float64 `json:"clean"`    // share of calls without an error
	Full     float64 `json:"full"`     // share of the plan's fields that are filled
	Thought  float64 `json:"thought"`  // share of turns with a thought of five words or more
}

func quality(t *trainer.Trajectory, needed int) Quality {
	var q Quality
	items, shown, fields, filled := 0.0, 0.0, 0.0, 0.0
	for _, d := range t.Plan {
		for name, value := range map[string]string{"transportation": d.Transportation, "breakfast": d.Breakfast, "lunch": d.Lunch,
			"dinner": d.Dinner, "attraction": d.Attraction, "accommodation": d.Accommodation} {
			fields++
			if value == "" || value == "-" {
				continue
			}
			filled++
			items++
			if d.Found[name] > 0 {
				shown++
			}
		}
	}
	words := 0.0
	for i := range t.Turns {
		if countWords(t.Turns[i].Think) >= 5 {
			words++
		}
	}
	share := func(part, whole float64) float64 {
		if whole <= 0 {
			return 0
		}
		return min(1, part/whole)
	}
	q.Grounded, q.Full = share(shown, items), share(filled, fields)
	q.Economy = share(float64(needed), float64(t.ToolCalls))
	q.Clean = 1 - share(float64(t.ToolErrors), float64(t.ToolCalls))
	q.Thought = share(words, float64(len(t.Turns)))
	q.Score = 0.35*q.Grounded + 0.25*q.Economy + 0.15*q.Clean + 0.15*q.Full + 0.1*q.Thought
	return q
}

func countWords(s string) int {
	n, in := 0, false
	for _, c := range s {
		space := c == ' ' || c == '\n' || c == '\t'
		if !space && !in {
			n++
		}
		in = !space
	}
	return n
}
