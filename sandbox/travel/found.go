package travel

import (
	"strings"

	"alidade/trainer"
)

// found says for each field of a day which turn, counted from 1, first showed
// what stands there; a field whose item was never shown is left out. That is
// how a reader sees whether a plan rests on what the tools said.
func (e *Episode) found(d *Day) map[string]int {
	found := map[string]int{}
	note := func(f Field, turn int) {
		if turn > 0 {
			found[f.String()] = turn
		}
	}
	note(FieldTransportation, e.rideShown(d))
	for _, f := range mealFields {
		note(f, e.placeShown(ToolRestaurant, d.get(f)))
	}
	note(FieldAccommodation, e.placeShown(ToolAccommodation, d.Accommodation))
	for rest := d.Attraction; rest != ""; {
		piece, tail, _ := strings.Cut(rest, ";")
		if turn := e.placeShown(ToolAttraction, trim(piece)); turn > 0 {
			note(FieldAttraction, turn)
			break
		}
		rest = tail
	}
	city := cityOf(d.City)
	if _, to, ok := fromTo(d.City); ok {
		city = cityOf(to)
	}
	note(FieldCity, e.shown(ToolCity, func(c *trainer.Call, o *trainer.Observed) bool { return hasCell(o, 0, city) }))
	if len(found) == 0 {
		return nil
	}
	return found
}

// shown returns the first turn of a tool that fits, 0 for none.
func (e *Episode) shown(tool string, fits func(*trainer.Call, *trainer.Observed) bool) int {
	for i := range e.turns {
		t := &e.turns[i]
		if t.Call != nil && t.Call.Tool == tool && t.Observe != nil && len(t.Observe.Rows) > 0 && fits(t.Call, t.Observe) {
			return i + 1
		}
	}
	return 0
}

func (e *Episode) placeShown(tool, text string) int {
	p := readPlace(text, 0)
	if !p.ok {
		return 0
	}
	return e.shown(tool, func(c *trainer.Call, o *trainer.Observed) bool {
		return argOf(c, "city") == p.city && hasCell(o, 0, p.name)
	})
}

func (e *Episode) rideShown(d *Day) int {
	if number, ok := flightNumber(d.Transportation); ok {
		number = trim(number)
		return e.shown(ToolFlight, func(c *trainer.Call, o *trainer.Observed) bool { return hasCell(o, 0, number) })
	}
	from, to, ok := fromTo(d.Transportation)
	if !ok {
		if from, to, ok = fromTo(d.City); !ok || d.Transportation == "" || d.Transportation == "-" {
			return 0
		}
	}
	from, to = cityOf(from), cityOf(to)
	return e.shown(ToolDistance, func(c *trainer.Call, o *trainer.Observed) bool {
		return argOf(c, "departure") == from && argOf(c, "destination") == to
	})
}

func argOf(c *trainer.Call, name string) string {
	for _, a := range c.Args {
		if a.Name == name {
			return a.Value
		}
	}
	return ""
}

func hasCell(o *trainer.Observed, column int, value string) bool {
	for _, row := range o.Rows {
		if column < len(row) && trim(row[column]) == value {
			return true
		}
	}
	return false
}
