package web

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"alidade/templates"
	"alidade/trainer"
)

// planFields are the fields of a day in the order of the itinerary, with the
// word the page uses and the part of the cost bar they belong to.
var planFields = []struct{ field, word, part string }{
	{"transportation", "travel", "travel"},
	{"breakfast", "breakfast", "meals"},
	{"lunch", "lunch", "meals"},
	{"dinner", "dinner", "meals"},
	{"attraction", "see", "sights"},
	{"accommodation", "stay", "stays"},
}

// costParts are the parts of the cost bar in drawing order.
var costParts = []string{"stays", "meals", "travel", "sights"}

// planOf lays the plan out as an itinerary with each failed verdict pinned at
// the item it concerns.
func planOf(t *trainer.Trajectory) templates.PlanView {
	v := templates.PlanView{}
	pins := failedPins(t)
	if len(t.Plan) == 0 {
		v.Empty = undelivered(t)
		v.Whole = append(pins.take(0, ""), pins.rest()...)
		return v
	}
	who := max(t.Query.People, 1)
	v.Caption = "costs in $ for " + plural(who, "person", "people") + "; a failed check is pinned at the item that caused it; t = the turn that found it"
	v.Cost = costOf(t, pins)
	for i, day := range t.Plan {
		v.Days = append(v.Days, dayOf(t, i, day, pins))
	}
	v.Whole = append(pins.take(0, ""), pins.rest()...)
	return v
}

func undelivered(t *trainer.Trajectory) string {
	switch t.End {
	case "turns":
		return "No plan: the turns ran out before an answer."
	case "context":
		return "No plan: the context budget was reached before an answer."
	case "format":
		return "No plan: the episode ended at a format error."
	}
	if t.Answer == "" {
		return "No plan was delivered."
	}
	return "The answer could not be read as a plan."
}

func dayOf(t *trainer.Trajectory, i int, day trainer.Day, pins *pinBoard) templates.DayView {
	n := day.Day
	if n == 0 {
		n = i + 1
	}
	v := templates.DayView{N: n, Title: cityLine(day.City)}
	if i < len(t.Query.Dates) {
		v.Date = dateWords(t.Query.Dates[i])
	}
	if day.Cost > 0 {
		v.Cost = dollars(day.Cost)
	}
	fields := dayFields(day)
	for _, f := range planFields {
		text := strings.Trim(strings.TrimSpace(fields[f.field]), ";")
		pinned := pins.take(n, f.field)
		if empty(text) && len(pinned) == 0 {
			continue
		}
		if empty(text) {
			text = "–"
		}
		if f.field == "transportation" {
			text = transportText(text)
		} else {
			text = itemText(text, day.City)
		}
		item := templates.ItemView{Kind: f.word, Text: text, Pins: pinned}
		if turn := day.Found[f.field]; turn > 0 && turn <= len(t.Turns) {
			item.Found, item.FoundHref = fmt.Sprintf("t%d", turn), fmt.Sprintf("#t%d", turn)
		}
		if cost, ok := day.Costs[f.field]; ok && cost > 0 {
			item.Cost = digits(int64(cost + .5))
		} else if f.part != "sights" && text != "–" {
			item.Cost = "–"
		}
		v.Items = append(v.Items, item)
	}
	v.Pins = append(pins.take(n, ""), pins.take(n, "current_city")...)
	v.Pins = append(v.Pins, pins.day(n)...)
	return v
}

// empty reports whether a plan field names nothing.
func empty(s string) bool { return s == "" || s == "-" || strings.EqualFold(s, "none") }

// cityLine turns "from A to B" into "A → B".
func cityLine(s string) string {
	rest, ok := strings.CutPrefix(s, "from ")
	if !ok {
		return s
	}
	from, to, ok := strings.Cut(rest, " to ")
	if !ok {
		return s
	}
	return from + " → " + to
}

// itemText shortens an item: the city of the day after each name says nothing
// new, and a list of sights needs no closing mark.
func itemText(s, city string) string {
	parts := strings.Split(s, ";")
	for i, p := range parts {
		p = strings.TrimSpace(p)
		if at := strings.LastIndex(p, ", "); at > 0 && strings.Contains(city, p[at+2:]) {
			p = p[:at]
		}
		parts[i] = p
	}
	out, cut := clip(strings.Join(parts, "; "), 400)
	if cut {
		out += "…"
	}
	return out
}

// flightLine matches a flight as plans write it.
var flightLine = regexp.MustCompile(`^Flight Number: *([^,]+),.*Departure Time: *([^,]+), *Arrival Time: *([^,]+)$`)

// transportText shortens the ways of a plan; what is written otherwise stays.
func transportText(s string) string {
	if m := flightLine.FindStringSubmatch(s); m != nil {
		return "Flight " + m[1] + ", " + m[2] + " to " + m[3]
	}
	if mode, _, ok := strings.Cut(s, ", from "); ok {
		if way, ok := wayWords(s); ok {
			if at := strings.LastIndex(way, ", "); at > 0 && strings.HasSuffix(way, "$") {
				way = way[:at] // the cost has a column of its own
			}
			return mode + ", " + way
		}
	}
	out, cut := clip(s, 400)
	if cut {
		out += "…"
	}
	return out
}

func dateWords(s string) string {
	d, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return templates.Plain(s)
	}
	return d.Format("Mon 2 January")
}

// costOf draws the plan's cost against the budget.
func costOf(t *trainer.Trajectory, pins *pinBoard) *templates.CostView {
	const width, height = 560.0, 12.0
	sums, total := map[string]float64{}, 0.0
	for _, day := range t.Plan {
		for _, f := range planFields {
			sums[f.part] += day.Costs[f.field]
			total += day.Costs[f.field]
		}
	}
	if t.Cost != nil && (total == 0 || *t.Cost > total+.5) {
		sums["not itemised"] = *t.Cost - total
		total = *t.Cost
	}
	if total <= 0 && t.Budget <= 0 {
		return nil
	}
	v := &templates.CostView{ViewBox: fmt.Sprintf("0 0 %s 34", unit(width)), Tone: "off"}
	scale := width / max(total, t.Budget, 1)
	x := 0.0
	for i, part := range append(slices.Clone(costParts), "not itemised") {
		sum := sums[part]
		if sum <= 0 {
			continue
		}
		class := fmt.Sprintf("shade-%d", i+1)
		v.Segs = append(v.Segs, templates.CostSeg{Class: class, X: unit(x), W: unit(max(sum*scale-1, .5)), Title: part + " " + dollars(sum)})
		v.Rows = append(v.Rows, templates.CostRow{Class: class, Label: part, Value: digits(int64(sum + .5))})
		x += sum * scale
	}
	if t.Budget > 0 {
		bx := t.Budget * scale
		v.BudgetX, v.LabelX, v.Anchor = unit(min(bx, width-1)), unit(bx), "middle"
		if bx > width-70 {
			v.LabelX, v.Anchor = unit(width), "end"
		}
		v.Budget = "budget " + dollars(t.Budget)
		if total > t.Budget {
			v.Over = &templates.StripMask{X: unit(bx), W: unit((total - t.Budget) * scale)}
		}
	}
	switch {
	case t.Cost == nil && total == 0:
		v.Sentence = "the cost could not be counted; the budget is " + dollars(t.Budget)
	case t.Budget <= 0:
		v.Sentence = dollars(total) + ", no budget given"
	case total > t.Budget:
		v.Tone, v.Sentence = "bad", dollars(total)+" of "+dollars(t.Budget)+": "+dollars(total-t.Budget)+" over"
	default:
		v.Tone, v.Sentence = "ok", dollars(total)+" of "+dollars(t.Budget)+": "+dollars(t.Budget-total)+" left"
	}
	v.Pins = pins.check("valid_cost")
	if v.Tone == "bad" && len(v.Pins) > 0 { // the sentence says it already
		v.ID, v.Pins = v.Pins[0].ID, v.Pins[1:]
	}
	return v
}

// A pinBoard hands each failed verdict out once, at the most exact place that
// asks for it.
type pinBoard struct{ left []trainer.Verdict }

func failedPins(t *trainer.Trajectory) *pinBoard {
	b := &pinBoard{}
	for _, v := range t.Verdicts {
		if v.Outcome == "fail" || v.Outcome == "raises" {
			b.left = append(b.left, v)
		}
	}
	return b
}

func (b *pinBoard) pull(match func(trainer.Verdict) bool) []templates.PinView {
	var out []templates.PinView
	kept := b.left[:0]
	for _, v := range b.left {
		if match(v) {
			out = append(out, pinOf(v))
		} else {
			kept = append(kept, v)
		}
	}
	b.left = kept
	return out
}

func (b *pinBoard) take(day int, field string) []templates.PinView {
	return b.pull(func(v trainer.Verdict) bool { return v.Day == day && normalField(v.Field) == field })
}

// day hands out what is left for a day, whatever its field.
func (b *pinBoard) day(n int) []templates.PinView {
	return b.pull(func(v trainer.Verdict) bool { return v.Day == n })
}

func (b *pinBoard) check(key string) []templates.PinView {
	return b.pull(func(v trainer.Verdict) bool { return v.Check == key })
}

func (b *pinBoard) rest() []templates.PinView {
	return b.pull(func(trainer.Verdict) bool { return true })
}

func pinOf(v trainer.Verdict) templates.PinView {
	reason := v.Reason
	if reason == "" {
		reason = "fails"
		if v.Value != "" {
			reason += " for " + v.Value
		}
	}
	if v.Day > 0 { // the pin is at its day
		reason = strings.TrimPrefix(strings.TrimPrefix(reason, fmt.Sprintf("Day %d: ", v.Day)), fmt.Sprintf("day %d: ", v.Day))
	}
	return templates.PinView{ID: "pin-" + v.Check, Name: checkName(v), Reason: reason}
}

// normalField maps the spellings of a plan field to the benchmark's own.
func normalField(f string) string {
	f = strings.ToLower(strings.ReplaceAll(f, " ", "_"))
	switch f {
	case "transport":
		return "transportation"
	case "stay", "hotel":
		return "accommodation"
	case "attractions":
		return "attraction"
	case "city":
		return "current_city"
	}
	return f
}
