package synth

import (
	"context"
	"math/rand/v2"

	"alidade/sandbox/travel"
	"alidade/trainer"
)

// Style is how many look-ups an expert makes.
type Style string

// Deliberative looks up what the plan needs; Reactive looks around more and
// checks things twice.
const (
	Deliberative Style = "deliberative"
	Reactive     Style = "reactive"
)

// Expert plays the solution through a real episode: it looks up everything
// the plan will contain, retries after an injected failure, and answers. The
// trajectory is judged like any other.
func (w *World) Expert(ctx context.Context, q travel.Query, sol Solution, c travel.EpisodeConfig, style Style, seed uint64) trainer.Trajectory {
	e := travel.NewEpisode(w.World, q, c)
	r := rng(seed, "expert")
	for _, call := range w.lookups(r, q, sol, style) {
		for range maxRetries {
			if ctx.Err() != nil {
				break
			}
			if obs := e.Call(call.tool, call.args); obs.Injected == "" {
				break
			}
		}
	}
	e.Finish(travel.NewPlan(sol.Days), "answer", "")
	return e.Trajectory()
}

const maxRetries = 8

type lookup struct {
	tool string
	args map[string]any
}

// lookups lists the calls that show every item of the plan.
func (w *World) lookups(r *rand.Rand, q travel.Query, sol Solution, style Style) []lookup {
	var out []lookup
	add := func(tool string, args map[string]any) { out = append(out, lookup{tool, args}) }
	if q.Days > 3 {
		add(travel.ToolCity, map[string]any{"state": q.Dest})
	}
	at := q.Org
	stops := append(append([]string(nil), sol.Cities...), q.Org)
	for k, to := range stops {
		date := q.Dates[min(2*k, len(q.Dates)-1)]
		text := sol.Days[min(2*k, len(sol.Days)-1)].Transportation
		flown := len(text) > 0 && text[0] == 'F'
		if flown || (q.Wish.Transportation != "no flight" && (style == Reactive || r.IntN(2) == 0)) {
			add(travel.ToolFlight, map[string]any{"departure": at, "destination": to, "date": date})
		}
		if !flown || style == Reactive {
			mode := "driving"
			if len(text) > 0 && text[0] == 'T' {
				mode = "taxi"
			}
			add(travel.ToolDistance, map[string]any{"departure": at, "destination": to, "mode": mode})
		}
		at = to
	}
	for _, c := range sol.Cities {
		places := []string{travel.ToolAccommodation, travel.ToolRestaurant, travel.ToolAttraction}
		if style == Reactive {
			r.Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
		}
		for _, tool := range places {
			add(tool, map[string]any{"city": c})
		}
	}
	if style == Reactive && q.Days > 3 {
		for _, c := range w.candidates(q) {
			if r.IntN(4) == 0 {
				add(travel.ToolAccommodation, map[string]any{"city": c})
			}
		}
	}
	return out
}
