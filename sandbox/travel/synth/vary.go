package synth

import (
	"math/rand/v2"
	"slices"
	"strings"

	"alidade/sandbox/travel"
)

// vary replaces picks of a plan, so that traces of one query differ and do not
// all take the cheapest of everything. A replacement stays only if the plan
// still passes; noise puts in what may not.
func (w *World) vary(r *rand.Rand, q travel.Query, plan []travel.Day, o TraceOptions) []travel.Day {
	days := slices.Clone(plan)
	passes := func() bool {
		j := travel.Judge(w.World, q, travel.NewPlan(days), travel.Strict)
		return j.Success
	}
	if o.Vary > 0 && passes() {
		for _, change := range w.changes(r, q, days) {
			if r.Float64() >= o.Vary {
				continue
			}
			before := slices.Clone(days)
			if change(); !passes() {
				copy(days, before)
			}
		}
	}
	if o.Noise > 0 {
		for _, change := range w.changes(r, q, days) {
			if r.Float64() < o.Noise {
				change()
			}
		}
	}
	return days
}

// changes are the picks of a plan that can be made otherwise.
func (w *World) changes(r *rand.Rand, q travel.Query, days []travel.Day) []func() {
	var list []func()
	for i := range days {
		d := &days[i]
		city, from, moves := dayCity(d.City)
		home := city == q.Org
		if moves && strings.HasPrefix(d.Transportation, "Flight") && i < len(q.Dates) {
			list = append(list, func() {
				if flights := w.Flights(from, city, q.Dates[i]); len(flights) > 0 {
					d.Transportation = flightText(pick(r, flights))
				}
			})
		}
		meals := []*string{&d.Breakfast, &d.Lunch, &d.Dinner}
		at := city
		switch {
		case home: // on the way home only a breakfast, where the night was spent
			meals, at = meals[:1], from
		case moves:
			meals = meals[2:]
		}
		for _, meal := range meals {
			list = append(list, func() {
				if eats := w.eats[at]; len(eats) > 0 {
					*meal = pick(r, eats).Name + ", " + at
				}
			})
		}
		if home {
			continue
		}
		list = append(list, func() {
			if s := w.sights[city]; len(s) > 0 {
				d.Attraction = pick(r, s) + ", " + city + ";"
				if other := pick(r, s); r.IntN(3) == 0 && !strings.HasPrefix(d.Attraction, other+", ") {
					d.Attraction += other + ", " + city + ";"
				}
			}
		})
		if moves { // the nights of a stay change together
			list = append(list, func() {
				if beds := w.beds[city]; len(beds) > 0 {
					hotel := pick(r, beds).Name + ", " + city
					for k := i; k < len(days) && strings.HasSuffix(days[k].Accommodation, ", "+city); k++ {
						days[k].Accommodation = hotel
					}
				}
			})
		}
	}
	return list
}

// dayCity reads where a day ends and, if it moves, where it starts.
func dayCity(s string) (city, from string, moves bool) {
	rest, ok := strings.CutPrefix(s, "from ")
	if !ok {
		return s, "", false
	}
	from, city, ok = strings.Cut(rest, " to ")
	return city, from, ok
}
