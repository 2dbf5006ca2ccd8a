package web

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"alidade/templates"
	"alidade/trainer"
)

// contribution is one component's part of one rollout's advantage: its own
// deviation from the group's mean, divided by what the advantage is divided
// by. The parts of a rollout add up to its advantage exactly.
func contributions(group []trainer.Trajectory, component string, divisor float64) []float64 {
	values := componentValues(group, component)
	mean := statsOf(values).mean
	out := make([]float64, len(values))
	for i, x := range values {
		out[i] = (x - mean) / divisor
	}
	return out
}

func componentValues(group []trainer.Trajectory, component string) []float64 {
	out := make([]float64, len(group))
	for i, t := range group {
		for _, c := range t.Components {
			if c.Name == component {
				out[i] += c.Value
			}
		}
	}
	return out
}

// componentsIn lists the components of a group in drawing order.
func componentsIn(group []trainer.Trajectory) []string {
	var names []string
	for _, t := range group {
		for _, c := range t.Components {
			if !slices.Contains(names, c.Name) {
				names = append(names, c.Name)
			}
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return componentOrder(a) - componentOrder(b) })
	return names
}

// divisorOf is what the group's advantages were divided by.
func divisorOf(group []trainer.Trajectory, s spread) float64 {
	if a := group[0].Advantage; a != nil && a.Norm == "group-mean" {
		return 1
	}
	return s.sd
}

// splitOf draws each advantage as a diverging stack of reward components.
func splitOf(group []trainer.Trajectory) *templates.SplitView {
	const left, width, pitch = 78.0, 560.0, 24.0
	stats := groupSpread(group)
	divisor := divisorOf(group, stats)
	names := componentsIn(group)
	parts := make([][]float64, len(names))
	var still []string
	reach := 0.0
	for k, name := range names {
		parts[k] = contributions(group, name, divisor)
	}
	for i := range group {
		up, down := 0.0, 0.0
		for k := range names {
			up += max(parts[k][i], 0)
			down += min(parts[k][i], 0)
		}
		reach = max(reach, up, -down)
	}
	tick := tickStep(reach)
	reach = math.Ceil(reach/tick-1e-9) * tick
	height := float64(len(group))*pitch + 4
	v := &templates.SplitView{ViewBox: fmt.Sprintf("0 0 %s %s", unit(width), unit(height+18)), Exact: "exact for a sum; the mark is the total"}
	x := func(a float64) float64 { return left + (a+reach)/(2*reach)*(width-left-16) }
	for a := -reach; a <= reach+tick/2; a += tick {
		v.Grid += fmt.Sprintf("M%s 0V%s", unit(x(a)), unit(height))
		v.Ticks = append(v.Ticks, templates.ChartLabel{X: unit(x(a)), Y: unit(height + 13), Text: signed(a, decimalsOf(tick))})
	}
	v.Zero = fmt.Sprintf("M%s 0V%s", unit(x(0)), unit(height))
	for i := range group {
		y := float64(i)*pitch + 4
		total := (group[i].Reward - stats.mean) / divisor
		row := templates.SplitRow{Y: unit(y), LabelY: unit(y + 11), Label: fmt.Sprint(group[i].Rollout + 1), Value: signed(total, 2)}
		row.Total = fmt.Sprintf("M%s %sv18", unit(x(total)), unit(y-2))
		right, leftEdge := 0.0, 0.0
		for k, name := range names {
			a := parts[k][i]
			if math.Abs(a) < 1e-9 {
				continue
			}
			label, class := componentName(name)
			from := right
			if a > 0 {
				right += a
			} else {
				leftEdge += a
				from = leftEdge
			}
			w := math.Abs(a) / (2 * reach) * (width - left - 16)
			row.Segs = append(row.Segs, templates.CostSeg{Class: class, X: unit(x(from)), W: unit(w), Title: label + " " + signed(a, 2)})
		}
		v.Rows = append(v.Rows, row)
	}
	for k, name := range names {
		label, class := componentName(name)
		if allZero(parts[k]) {
			still = append(still, label)
			continue
		}
		v.Keys = append(v.Keys, templates.CostRow{Class: class, Label: label})
	}
	v.Note = splitNote(still, group, divisor)
	return v
}

func splitNote(still []string, group []trainer.Trajectory, divisor float64) string {
	var parts []string
	if len(still) > 0 {
		parts = append(parts, capital(listed(still))+" "+verb(len(still), "is", "are")+" the same in all "+inWords(len(group))+" and "+verb(len(still), "adds", "add")+" nothing.")
	}
	if divisor != 1 {
		parts = append(parts, "Contribution to the advantage, in group SDs. Dividing by the SD of "+fixed(divisor, 3)+" scales every bar alike and changes no share.")
	} else {
		parts = append(parts, "Contribution to the advantage, in units of reward.")
	}
	return strings.Join(parts, " ")
}

func allZero(xs []float64) bool {
	return !slices.ContainsFunc(xs, func(x float64) bool { return math.Abs(x) > 1e-9 })
}

func tickStep(reach float64) float64 {
	for _, step := range []float64{.1, .2, .5, 1, 2, 5, 10, 50, 100} {
		if reach/step <= 3 {
			return step
		}
	}
	return reach / 2
}

func decimalsOf(step float64) int {
	if step < 1 {
		return 1
	}
	return 0
}

// shareOf says which component the group's signal comes from: its covariance
// with the reward over the reward's variance.
func shareOf(group []trainer.Trajectory) *templates.ShareView {
	const width = 560.0
	rewards := rewardsOf(group)
	stats := statsOf(rewards)
	v := &templates.ShareView{ViewBox: "0 0 560 32"}
	x, best, bestShare := 0.0, "", 0.0
	type share struct {
		name string
		of   float64
	}
	var shares []share
	positive := 0.0
	for _, name := range componentsIn(group) {
		values, cov := componentValues(group, name), 0.0
		mean := statsOf(values).mean
		for i := range values {
			cov += (values[i] - mean) * (rewards[i] - stats.mean) / float64(len(values))
		}
		s := share{name, cov / (stats.sd * stats.sd)}
		positive += max(s.of, 0)
		shares = append(shares, s)
	}
	slices.SortStableFunc(shares, func(a, b share) int {
		switch {
		case a.of > b.of:
			return -1
		case a.of < b.of:
			return 1
		}
		return 0
	})
	var against []string
	for _, s := range shares {
		label, class := componentName(s.name)
		if s.of < -.005 {
			against = append(against, label+" "+signed(s.of*100, 0)+thin+"%")
			continue
		}
		if s.of < .005 {
			continue
		}
		if best == "" {
			best, bestShare = label, s.of
		}
		w := s.of / positive * width
		v.Segs = append(v.Segs, templates.CostSeg{Class: class, X: unit(x), W: unit(max(w-1, .5)), Title: label + " " + fixed(s.of*100, 0) + thin + "%"})
		if w > 30 {
			v.Labels = append(v.Labels, templates.ChartLabel{X: unit(x), Y: "28", Text: fixed(s.of*100, 0) + thin + "%"})
		}
		x += w
	}
	v.Note = fmt.Sprintf("%s%% of what this group teaches is %s.", fixed(bestShare*100, 0)+thin, best)
	if len(against) > 0 {
		v.Note += " Against the rest: " + listed(against) + "."
	}
	return v
}
