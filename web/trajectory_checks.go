package web

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"alidade/templates"
	"alidade/trainer"
)

// checkList are the checks, in the evaluator's order.
var checkList = trainer.Checks()

// nameOfCheck is a check's short name, or its key when it is a stranger.
func nameOfCheck(key string) string {
	for _, c := range checkList {
		if c.Key == key {
			return c.Name
		}
	}
	return templates.Plain(key)
}

// checkName is a check's name on the pages: ours where the key is known, so
// that it is called the same everywhere, else what the trainer calls it.
func checkName(v trainer.Verdict) string {
	for _, c := range checkList {
		if c.Key == v.Check {
			return c.Name
		}
	}
	if v.Name != "" {
		return templates.Plain(v.Name)
	}
	return templates.Plain(v.Check)
}

// checksOf lists every check in two columns with how it came out.
func checksOf(t *trainer.Trajectory) templates.ChecksView {
	var v templates.ChecksView
	for _, family := range []string{"commonsense", "hard"} {
		side := templates.ChecksSide{Name: strings.ToUpper(family[:1]) + family[1:]}
		passed, asked, closed := 0, 0, false
		for _, verdict := range t.Verdicts {
			if verdict.Family != family {
				continue
			}
			item := templates.CheckItem{Name: checkName(verdict), Outcome: outcomeIn(t, verdict), Reason: templates.Plain(verdict.Reason)}
			switch item.Outcome {
			case "pass":
				passed, asked = passed+1, asked+1
			case "fail", "raises":
				asked++
				item.Note, item.Href = failNote(verdict), "#pin-"+verdict.Check
			case "closed":
				asked, closed = asked+1, true
				item.Note = "not evaluated"
			default:
				item.Note = "not asked"
			}
			side.Items = append(side.Items, item)
		}
		side.Score = fmt.Sprintf("%d/%d", passed, asked)
		if closed {
			side.Score += ", gate shut"
		}
		if len(side.Items) > 0 {
			v.Sides = append(v.Sides, side)
		}
	}
	v.Agreement, v.Split = agreement(t)
	return v
}

// wishes are the query's constraints that hard checks ask about.
var wishes = map[string]string{
	"valid_room_rule": "house rule", "valid_room_type": "room type", "valid_cuisine": "cuisine", "valid_transportation": "transportation",
}

// outcomeIn is a verdict's outcome, with one correction: behind a shut gate
// the evaluator closes checks that this query never asks for, and those count
// for nothing.
func outcomeIn(t *trainer.Trajectory, v trainer.Verdict) string {
	wish, optional := wishes[v.Check]
	if v.Outcome == "closed" && optional && len(t.Query.Constraints) > 0 && t.Query.Constraints[wish] == "" {
		return "n/a"
	}
	return v.Outcome
}

// failNote says where a check failed, in a few words.
func failNote(v trainer.Verdict) string {
	if v.Outcome == "raises" {
		return "could not be evaluated"
	}
	note := ""
	if v.Day > 0 {
		note = fmt.Sprintf("day %d", v.Day)
	}
	if f := normalField(v.Field); f != "" && f != "current_city" {
		for _, p := range planFields {
			if p.field == f {
				f = p.word
			}
		}
		if note != "" {
			note += ", "
		}
		note += templates.Plain(f)
	}
	return note
}

// agreement says in one line whether the three evaluators agree.
func agreement(t *trainer.Trajectory) (string, bool) {
	if len(t.Passes) < 2 {
		return "", false
	}
	names := make([]string, 0, len(t.Passes))
	for _, n := range []string{"strict", "star", "official"} {
		if _, ok := t.Passes[n]; ok {
			names = append(names, n)
		}
	}
	for n := range t.Passes {
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	slices.Sort(names[min(3, len(names)):])
	var pass, fail []string
	for _, n := range names {
		if t.Passes[n] {
			pass = append(pass, templates.Plain(n))
		} else {
			fail = append(fail, templates.Plain(n))
		}
	}
	switch {
	case len(fail) == 0:
		return "Judged " + times(len(names)) + ": " + listed(pass) + " all pass the plan.", false
	case len(pass) == 0:
		return "Judged " + times(len(names)) + ": " + listed(fail) + " agree that the plan fails.", false
	}
	return capital(listed(pass)) + " " + verb(len(pass), "passes", "pass") + " this plan, " + listed(fail) + " " + verb(len(fail), "does not", "do not") + ": it uses a hole in the looser rules.", true
}

func times(n int) string {
	switch n {
	case 2:
		return "twice"
	case 3:
		return "three ways"
	}
	return fmt.Sprintf("%d ways", n)
}

func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// componentNames are the parts of a reward in drawing order.
var componentNames = []struct{ Key, Name, Class string }{
	{"cs_micro", "commonsense micro", "part-cs-micro"},
	{"cs_macro", "commonsense macro", "part-cs-macro"},
	{"hard_micro", "hard micro", "part-hard-micro"},
	{"hard_macro", "hard macro", "part-hard-macro"},
	{"success", "success", "part-success"},
	{"format_error", "format error", "part-format"},
	{"delivery", "delivered", "part-other"},
	{"schema", "schema", "part-other"},
}

func componentName(key string) (name, class string) {
	for _, c := range componentNames {
		if c.Key == key {
			return c.Name, c.Class
		}
	}
	return nameOfCheck(key), "part-other"
}

// componentOrder sorts components as componentNames does, strangers last.
func componentOrder(key string) int {
	for i, c := range componentNames {
		if c.Key == key {
			return i
		}
	}
	return len(componentNames)
}

// partsOf draws the reward as parts stacked from zero: positive ones to the
// right, negative ones to the left, a mark at their sum.
func partsOf(t *trainer.Trajectory) templates.PartsView {
	const width = 560.0
	v := templates.PartsView{Total: fixed(t.Reward, 3)}
	parts := slices.Clone(t.Components)
	slices.SortStableFunc(parts, func(a, b trainer.Component) int { return componentOrder(a.Name) - componentOrder(b.Name) })
	up, down, sum := 0.0, 0.0, 0.0
	for _, c := range parts {
		sum += c.Value
		if c.Value > 0 {
			up += c.Value
		} else {
			down += c.Value
		}
	}
	lo, hi := down, max(up, rewardRange(t.RewardKind), .001)
	scale := width / (hi - lo)
	at := func(x float64) float64 { return (x - lo) * scale }
	right, left := 0.0, 0.0
	for _, c := range parts {
		name, class := componentName(c.Name)
		v.Rows = append(v.Rows, templates.CostRow{Class: class, Label: name, Value: signedPart(c.Value)})
		if c.Value == 0 || math.IsNaN(c.Value) {
			continue
		}
		x, w := at(right), c.Value*scale
		if c.Value > 0 {
			right += c.Value
		} else {
			left += c.Value
			x, w = at(left), -c.Value*scale
		}
		v.Segs = append(v.Segs, templates.CostSeg{Class: class, X: unit(x), W: unit(max(w-1, .5)), Title: name + " " + signedPart(c.Value)})
	}
	v.ViewBox = fmt.Sprintf("0 0 %s 22", unit(width))
	v.Zero = fmt.Sprintf("M%s 0V22M%s 0V22", unit(at(0)), unit(at(hi)))
	v.TotalX = unit(min(at(t.Reward), width-1))
	if math.Abs(sum-t.Reward) > 1e-6 {
		v.Note = "The parts add up to " + fixed(sum, 3) + ", not to the reward."
	}
	return v
}

func signedPart(x float64) string { return fixed(x, 3) }

// rewardRange is the most a reward of this kind can pay; 0 = not known.
func rewardRange(kind string) float64 {
	kind = strings.ToUpper(kind)
	if _, stage, ok := strings.Cut(kind, "/"); ok {
		kind = stage
	}
	switch kind {
	case "SUM":
		return 5
	case "MACRO":
		return 3
	case "SUCCESS", "RANDOM":
		return 1
	}
	return 0
}
