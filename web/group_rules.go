package web

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"alidade/templates"
	"alidade/trainer"
)

// otherRewards are the published rewards as functions of a rollout's scores.
var otherRewards = []struct {
	name string
	of   func(s map[string]float64) float64
}{
	{"SUM", func(s map[string]float64) float64 {
		return s["cs_micro"] + s["cs_macro"] + s["hard_micro"] + s["hard_macro"] + s["success"]
	}},
	{"MACRO", func(s map[string]float64) float64 { return s["cs_macro"] + s["hard_macro"] + s["success"] }},
	{"SUCCESS", func(s map[string]float64) float64 { return s["success"] }},
}

// rescored is the group under one reward.
type rescored struct {
	name       string
	advantages []float64
	stats      spread
}

// rescore scores the group's rollouts by each reward; a format error earns 0
// under all of them. It returns nil when a rollout has no scores.
func rescore(group []trainer.Trajectory) []rescored {
	for _, t := range group {
		if len(t.Scores) == 0 && t.FormatError == "" && len(t.Plan) > 0 {
			return nil
		}
	}
	own, said := statsOf(rewardsOf(group)), groupSpread(group)
	scale := 1.0 // the trainer's SD over ours, which divides by G
	if own.sd > 0 {
		scale = said.sd / own.sd
	}
	var out []rescored
	for _, rule := range otherRewards {
		rewards := make([]float64, len(group))
		for i, t := range group {
			if t.FormatError == "" {
				rewards[i] = rule.of(t.Scores)
			}
		}
		r := rescored{name: rule.name, stats: statsOf(rewards), advantages: make([]float64, len(group))}
		r.stats.sd *= scale
		for i, x := range rewards {
			if r.stats.sd > 0 {
				r.advantages[i] = (x - r.stats.mean) / r.stats.sd
			}
		}
		out = append(out, r)
	}
	return out
}

// rulesOf draws how each rollout's advantage changes under another reward.
func rulesOf(group []trainer.Trajectory) *templates.RulesView {
	scored := rescore(group)
	if scored == nil {
		return nil
	}
	const width, top, base = 560.0, 44.0, 196.0
	reach := .5
	for _, r := range scored {
		for _, a := range r.advantages {
			reach = max(reach, math.Abs(a))
		}
	}
	xs := []float64{84, 280, 480}
	y := func(a float64) float64 { return (top+base)/2 - a/reach*(base-top)/2 }
	v := &templates.RulesView{ViewBox: "0 0 560 222", Mean: fmt.Sprintf("M%s %sH%s", unit(xs[0]-28), unit(y(0)), unit(xs[2]+28))}
	used := strings.ToUpper(group[0].RewardKind)
	for k, r := range scored {
		c := templates.RuleColumn{X: unit(xs[k]), Name: r.name, SD: "SD " + fixed(r.stats.sd, 2), Stem: fmt.Sprintf("M%s %sV%s", unit(xs[k]), unit(top), unit(base))}
		if r.name == used {
			c.Note = "used in this run"
		}
		if r.stats.sd == 0 {
			c.SD = "no gradient"
		}
		v.Columns = append(v.Columns, c)
		v.Labels = append(v.Labels, tieLabels(group, r.advantages, xs[k], k == 0, y)...)
	}
	from := max(slices.IndexFunc(scored, func(r rescored) bool { return r.name == used }), 0)
	for i := range group {
		line := templates.RuleLine{Title: fmt.Sprintf("rollout %d", group[i].Rollout+1)}
		for k, r := range scored {
			pen := "L"
			if k == 0 {
				pen = "M"
			}
			line.Path += fmt.Sprintf("%s%s %s", pen, unit(xs[k]), unit(y(r.advantages[i])))
			v.Dots = append(v.Dots, templates.Dot{X: unit(xs[k]), Y: unit(y(r.advantages[i])), R: "2.6"})
			line.Changes = line.Changes || scored[from].advantages[i]*r.advantages[i] < 0
		}
		v.Lines = append(v.Lines, line)
	}
	for k, r := range scored {
		if k != from {
			v.Findings = append(v.Findings, findingOf(group, scored[from], r))
		}
	}
	return v
}

// findingOf says what reward r would do to the group instead of the one used.
func findingOf(group []trainer.Trajectory, used, r rescored) templates.RuleFinding {
	switch {
	case r.stats.sd == 0 && used.stats.sd == 0:
		return templates.RuleFinding{Icon: "info", Head: r.name + ": no gradient either.", Text: "All score " + fixed(r.stats.mean, 0) + "."}
	case r.stats.sd == 0:
		return templates.RuleFinding{Icon: "warn", Head: r.name + ": this group loses its gradient.", Text: "All score " + fixed(r.stats.mean, 0) + "."}
	case used.stats.sd == 0:
		return templates.RuleFinding{Icon: "info", Head: r.name + ": this group gains a gradient.", Text: "SD " + fixed(r.stats.sd, 2) + "."}
	}
	var turned []string
	tied := map[string]int{}
	for i, t := range group {
		if used.advantages[i]*r.advantages[i] < 0 {
			turned = append(turned, fmt.Sprint(t.Rollout+1))
		}
		tied[fixed(r.advantages[i], 6)]++
	}
	levels := fmt.Sprintf("It tells %s apart.", plural(len(tied), "level", "levels"))
	if len(turned) == 0 {
		return templates.RuleFinding{Icon: "info", Head: r.name + ": nobody changes side.", Text: levels}
	}
	return templates.RuleFinding{Icon: "info", Head: r.name + ": " + plural(len(turned), "rollout changes", "rollouts change") + " sign.", Text: "Pushed the other way: " + listed(turned) + ". " + levels}
}

// tieLabels names the rollouts at each height of a column: "3 = 4", or how
// many when they are many; before the column or after it.
func tieLabels(group []trainer.Trajectory, advantages []float64, x float64, before bool, y func(float64) float64) []templates.ChartLabel {
	type place struct {
		y     float64
		names []string
	}
	var places []place
	for i, a := range advantages {
		at := y(a)
		k := slices.IndexFunc(places, func(p place) bool { return math.Abs(p.y-at) < .5 })
		if k < 0 {
			places = append(places, place{y: at})
			k = len(places) - 1
		}
		places[k].names = append(places[k].names, fmt.Sprint(group[i].Rollout+1))
	}
	slices.SortFunc(places, func(a, b place) int { return int(math.Copysign(1, a.y-b.y)) })
	var out []templates.ChartLabel
	last := -99.0
	for _, p := range places {
		text := strings.Join(p.names, " = ")
		if len(p.names) > 4 {
			text = fmt.Sprintf("%d tie", len(p.names))
		}
		ly := max(p.y+4, last+11)
		last = ly
		label := templates.ChartLabel{X: unit(x + 8), Y: unit(ly), Text: text, Anchor: "start"}
		if before {
			label.X, label.Anchor = unit(x-8), "end"
		}
		out = append(out, label)
	}
	return out
}
