package web

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"alidade/ablation"
	"alidade/store"
	"alidade/templates"
)

// history is what earlier runs tell about how long a run takes.
type history struct {
	runs    []ablation.Run // finished ones
	devices int            // that runs may use here
	now     time.Time
}

// historyFor is how long what was read of earlier runs stands: the form asks
// with every pause of the typist.
const historyFor = 10 * time.Second

// historyRuns is how many of the newest finished runs are looked at.
const historyRuns = 400

// pastRuns keeps the finished runs for a while.
type pastRuns struct {
	mu   sync.Mutex
	at   time.Time
	runs []ablation.Run
}

// history reads finished runs, or takes those read a moment ago, and counts
// devices.
func (p *pastRuns) history(ctx context.Context, s *site) (history, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := s.now()
	if p.at.IsZero() || now.Sub(p.at) > historyFor || now.Before(p.at) {
		runs, err := s.Store.Runs(ctx, store.RunFilter{States: []ablation.State{ablation.Succeeded}})
		if err != nil {
			return history{}, fmt.Errorf("finished runs: %w", err)
		}
		p.at, p.runs = now, runs[max(0, len(runs)-historyRuns):]
	}
	h := history{runs: p.runs, now: now}
	for _, d := range s.devices() {
		if d.Run != 0 || d.Free {
			h.devices++
		}
	}
	return h, nil
}

// perRun estimates a run of recipe r: the median over finished runs of the
// same trainer, model and group size, in proportion to their steps. n is how
// many there were.
func (h history) perRun(r *ablation.Recipe) (d time.Duration, n int) {
	var times []float64
	for _, run := range h.runs {
		e := &run.Arm.Recipe
		if e.Trainer.Kind != r.Trainer.Kind || e.Model.Size != r.Model.Size || e.Environment.World != r.Environment.World || !run.EndedAt.After(run.StartedAt) || run.StartedAt.IsZero() {
			continue
		}
		work, asked := workOf(e), workOf(r)
		if work <= 0 {
			continue
		}
		times = append(times, run.EndedAt.Sub(run.StartedAt).Seconds()*asked/work)
	}
	if len(times) == 0 {
		return 0, 0
	}
	slices.Sort(times)
	return time.Duration(times[len(times)/2] * float64(time.Second)), len(times)
}

// workOf is roughly what a run's time goes with: rollouts sampled in RL and
// in evaluation.
func workOf(r *ablation.Recipe) float64 {
	rollouts := float64(r.Budget.Steps * r.Algorithm.GroupSize * r.Algorithm.PromptsPerStep)
	if r.Trainer.Kind == "solver" {
		rollouts = float64(r.Data.Prompts)
	}
	if every := r.Evaluation.Every; every > 0 {
		rollouts += float64(r.Budget.Steps/every+2*r.Evaluation.Samples) * float64(r.Evaluation.Queries)
	}
	return rollouts
}

// total estimates all arms with all seeds: device time and time to the end.
// known is false when some arm has nothing to compare with.
func (h history) total(arms []ablation.Arm, seeds int) (device, wall time.Duration, from int, known bool) {
	longest := time.Duration(0)
	for i := range arms {
		d, n := h.perRun(&arms[i].Recipe)
		if n == 0 {
			return 0, 0, 0, false
		}
		need := max(arms[i].Recipe.Trainer.Devices, 1)
		device += d * time.Duration(seeds*need)
		longest = max(longest, d)
		from = max(from, n)
	}
	wall = max(device/time.Duration(max(h.devices, 1)), longest)
	return device, wall, from, len(arms) > 0
}

// timeWords says how long the study takes, for the launch bar.
func (h history) timeWords(arms []ablation.Arm, seeds int) string {
	_, wall, from, known := h.total(arms, seeds)
	if !known {
		return "no earlier run like these to take the time from"
	}
	words := "about " + hourMinutes(wall)
	if h.devices > 0 {
		words += " on " + plural(h.devices, "device", "devices")
	}
	return words + ", by " + plural(from, "earlier run", "earlier runs")
}

// facts are the estimate for the outlook.
func (h history) facts(arms []ablation.Arm, seeds int) []templates.Fact {
	device, wall, _, known := h.total(arms, seeds)
	if !known {
		return []templates.Fact{{Label: "time", Value: "–", Unit: "no earlier run like these"}}
	}
	clock, day := clockTime(h.now.Add(wall), h.now)
	end := "done at " + clock
	if day != "" {
		end += " " + day
	}
	return []templates.Fact{
		{Label: "time", Value: hourMinutes(wall), Unit: end},
		{Label: "device-hours", Value: hoursText(device.Hours())},
	}
}
