package web

import (
	"math"
	"time"

	"alidade/ablation"
)

// progress says where a set of runs stands and when it will be done.
type progress struct {
	Runs     int                    `json:"runs"`
	ByState  map[ablation.State]int `json:"by_state"`
	Steps    int64                  `json:"steps"`        // done, of all runs
	Total    int64                  `json:"total_steps"`  // of all runs, as far as known
	Hours    float64                `json:"device_hours"` // spent by all attempts that are known
	LeftS    float64                `json:"left_s"`       // seconds to the end of what is queued and running; -1 = unknown
	Finished int                    `json:"finished"`     // ended, however
	Live     int                    `json:"live"`         // starting, running, stopping
	Waiting  int                    `json:"waiting"`
}

// progressOf sums up runs. The time left assumes that queued runs go at the
// pace of the ones seen so far, as many at once as now.
func progressOf(runs []ablation.Run, now time.Time) progress {
	p := progress{Runs: len(runs), ByState: map[ablation.State]int{}, LeftS: -1}
	var known int64
	var knownRuns int
	for _, r := range runs {
		p.ByState[r.State]++
		switch {
		case r.State.Terminal():
			p.Finished++
		case r.State.Live():
			p.Live++
		case r.State == ablation.Queued:
			p.Waiting++
		}
		if t := totalSteps(r); t > 0 {
			known += t
			knownRuns++
		}
		p.Steps += r.Step
		p.Hours += runTime(r, now).Hours() * float64(max(1, r.Arm.Recipe.Trainer.Devices))
	}
	p.Total = known
	if knownRuns > 0 && knownRuns < len(runs) {
		p.Total += known / int64(knownRuns) * int64(len(runs)-knownRuns)
	}
	p.LeftS = leftSeconds(runs, p, now)
	return p
}

// totalSteps is what the trainer said, or else what the recipe asks for.
func totalSteps(r ablation.Run) int64 {
	if r.TotalSteps > 0 {
		return r.TotalSteps
	}
	return int64(r.Arm.Recipe.Budget.Steps)
}

// runTime is how long a run has gone or went; waiting in the queue does not
// count.
func runTime(r ablation.Run, now time.Time) time.Duration {
	if r.StartedAt.IsZero() {
		return 0
	}
	end := r.EndedAt
	if end.IsZero() || end.Before(r.StartedAt) {
		end = now
	}
	if r.State == ablation.Queued { // waits for a second attempt
		end = r.StartedAt
	}
	return max(0, end.Sub(r.StartedAt))
}

// runLeft is the time a running run still needs, at its pace so far; ok is
// false before its first step.
func runLeft(r ablation.Run, now time.Time) (left time.Duration, ok bool) {
	total := totalSteps(r)
	if r.State != ablation.Running || r.Step <= 0 || total <= 0 {
		return 0, false
	}
	perStep := runTime(r, now).Seconds() / float64(r.Step)
	return time.Duration(perStep * float64(max(0, total-r.Step)) * float64(time.Second)), true
}

func leftSeconds(runs []ablation.Run, p progress, now time.Time) float64 {
	if p.Live+p.Waiting == 0 {
		return 0
	}
	// seconds a whole run takes, from those seen
	var whole, seen, work, longest float64
	for _, r := range runs {
		switch {
		case r.State == ablation.Succeeded && !r.StartedAt.IsZero():
			whole += runTime(r, now).Seconds()
			seen++
		case r.State == ablation.Running && r.Step > 0 && totalSteps(r) > 0:
			whole += runTime(r, now).Seconds() / float64(r.Step) * float64(totalSteps(r))
			seen++
		}
	}
	if seen == 0 {
		return -1
	}
	mean := whole / seen
	for _, r := range runs {
		left := 0.0
		switch {
		case r.State == ablation.Queued:
			left = mean
		case r.State.Live():
			left = mean
			if d, ok := runLeft(r, now); ok {
				left = d.Seconds()
			}
		}
		work += left
		longest = math.Max(longest, left)
	}
	return math.Max(longest, work/float64(max(1, p.Live)))
}
