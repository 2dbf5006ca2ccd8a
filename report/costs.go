package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"alidade/ablation"
)

// costs adds up the time of all attempts, of runs that count and runs that do not.
func (b *builder) costs() {
	var c Costs
	var first, last time.Time
	for _, r := range b.in.Runs {
		spent := r.duration()
		if spent == 0 {
			continue
		}
		devices := max(1, r.Run.Arm.Recipe.Trainer.Devices)
		hours := spent.Hours() * float64(devices)
		if strings.Contains(r.device(), "gpu") {
			c.GPUHours += hours
		} else {
			c.CPUHours += hours
		}
		c.Runs = append(c.Runs, RunCost{
			Run: r.Run.ID, Arm: r.Run.Arm.Index, Seed: r.Run.Seed, Minutes: spent.Minutes(), Device: r.device(), Attempts: max(1, len(r.Attempts)),
		})
		for _, span := range r.spans() {
			if first.IsZero() || span[0].Before(first) {
				first = span[0]
			}
			if span[1].After(last) {
				last = span[1]
			}
		}
	}
	c.Wall = last.Sub(first).Hours()
	b.report.Costs = c
}

// spans are the start and end of each attempt that has both.
func (r RunData) spans() [][2]time.Time {
	var out [][2]time.Time
	for _, a := range r.Attempts {
		if end := a.EndedAt; !a.StartedAt.IsZero() && end.After(a.StartedAt) {
			out = append(out, [2]time.Time{a.StartedAt, end})
		}
	}
	if len(out) == 0 && r.Run.EndedAt.After(r.Run.StartedAt) && !r.Run.StartedAt.IsZero() {
		out = append(out, [2]time.Time{r.Run.StartedAt, r.Run.EndedAt})
	}
	return out
}

func (r RunData) duration() time.Duration {
	var d time.Duration
	for _, s := range r.spans() {
		d += s[1].Sub(s[0])
	}
	return d
}

func (r RunData) device() string {
	if r.Run.Device != "" {
		return r.Run.Device
	}
	for _, a := range slices.Backward(r.Attempts) {
		if a.Device != "" {
			return a.Device
		}
	}
	return "cpu"
}

// sick lists the runs that failed, were stopped or lost, needed more than one
// attempt, logged values that are not finite, or raised an alert.
func (b *builder) sick() {
	for _, r := range b.in.Runs {
		var what []string
		switch r.Run.State {
		case ablation.Failed, ablation.Stopped, ablation.Lost:
			cause := r.Run.Cause
			if cause == "" {
				cause = "no cause recorded"
			}
			what = append(what, fmt.Sprintf("%s at step %d: %s", r.Run.State, r.Run.Step, cause))
		}
		if n := len(r.Attempts); n > 1 {
			what = append(what, fmt.Sprintf("%d attempts; the last went on from step %d", n, r.Attempts[n-1].FirstStep))
		}
		what = append(what, r.notFinite()...)
		what = append(what, r.alerts()...)
		if len(what) == 0 {
			continue
		}
		used := slices.ContainsFunc(b.arms, func(a armData) bool { return slices.Contains(a.Runs, r.Run.ID) })
		b.report.Sick = append(b.report.Sick, Sick{Run: r.Run.ID, Arm: r.Run.Arm.Index, Seed: r.Run.Seed, State: r.Run.State, Used: used, What: strings.Join(what, "; ")})
	}
}

// mostAlerts bounds how many alerts of a run are told one by one.
const mostAlerts = 3

func (r RunData) alerts() []string {
	var out []string
	more := 0
	for _, a := range r.Alerts {
		switch {
		case a.Level != "bad" && a.Level != "warn":
		case len(out) < mostAlerts:
			out = append(out, fmt.Sprintf("alert at step %d: %s", a.Step, strings.TrimSuffix(a.Text, ".")))
		default:
			more++
		}
	}
	if more > 0 {
		out = append(out, fmt.Sprintf("%d more alerts", more))
	}
	return out
}

// notFinite describes NaN and infinities among the drawn series.
func (r RunData) notFinite() []string {
	var out []string
	for _, m := range sortedKeys(r.Series) {
		count, first := 0, int64(0)
		for _, p := range r.Series[m] {
			if !isFinite(p.Value) {
				if count == 0 {
					first = p.Step
				}
				count++
			}
		}
		if count > 0 {
			out = append(out, fmt.Sprintf("%s not finite at %s from step %d on", m, plural(count, "point", "points"), first))
		}
	}
	return out
}

// examples takes, for each arm, one best, typical and worst trajectory: those
// of the first used run that has them.
func (b *builder) examples() {
	for _, a := range b.arms {
		for _, r := range a.runs {
			if len(r.Examples) > 0 {
				b.report.Examples = append(b.report.Examples, Examples{Arm: a.Index, Examples: r.Examples})
				break
			}
		}
	}
}
