package synth

import (
	"math"
	"strings"

	"alidade/sandbox/travel"
)

// Days and what a trip of that length buys: flights, nights, meals, and the
// least rows that must be on offer (the public synthesis program's numbers).
type trip struct{ legs, nights, meals int }

var trips = map[int]trip{3: {2, 3, 9}, 5: {3, 5, 15}, 7: {4, 7, 21}}

// budget sets q.Budget by the benchmark's rule: a mix of the cheapest, average
// and dearest flight, hotel and meal on offer, times a factor for the level,
// times scale, rounded to hundreds (half to even). It reports false when too
// little is on offer for the rule.
func (w *World) budget(q *travel.Query, scale float64) bool {
	t := trips[q.Days]
	flight, ok := w.transportStats(*q)
	if !ok {
		return false
	}
	var bed, meal stats
	want := wantedFood(*q)
	for _, c := range w.candidates(*q) {
		for _, h := range w.beds[c] {
			if h.MaxPeople >= q.People && hotelFits(h, q.Wish) {
				bed.add(h.Price)
			}
		}
		for _, r := range w.eats[c] {
			if want == 0 || r.food&want != 0 {
				meal.add(float64(r.Cost))
			}
		}
	}
	if bed.n < t.nights || meal.n < t.meals {
		return false
	}
	mode := func(f func(stats) float64) float64 {
		return float64(t.legs)*f(flight) + float64(t.nights)*f(bed) + float64(t.meals)*f(meal)
	}
	low := mode(func(s stats) float64 { return s.min })
	avg := mode(stats.mean)
	high := mode(func(s stats) float64 { return s.max })
	var base float64
	switch q.Days {
	case 3:
		base = (avg + low) / 2
	case 5:
		base = avg
	default:
		base = (avg + high) / 2
	}
	factor := 1.0
	switch q.Level {
	case "medium":
		factor = float64(q.People) * 0.75
	case "hard":
		factor = float64(q.People) * 0.5
	}
	q.Budget = math.RoundToEven(base*factor*scale/100) * 100
	return q.Budget > 0
}

// transportStats are the prices of one leg from home: driving under "no
// flight", otherwise flights on the trip's dates (a state) or on any date (a city).
func (w *World) transportStats(q travel.Query) (stats, bool) {
	var s stats
	if q.Wish.Transportation == "no flight" {
		for _, c := range w.candidates(q) {
			if d, ok := w.drivable[[2]string{q.Org, c}]; ok {
				cost, _ := travel.DriveCost(d, 1)
				s.add(cost)
				return s, true
			}
		}
		return s, false
	}
	for _, c := range w.candidates(q) {
		if q.Days == 3 {
			s = w.fares[[2]string{q.Org, c}]
			continue
		}
		for _, date := range q.Dates {
			for _, f := range w.Flights(q.Org, c, date) {
				s.add(float64(f.Price))
			}
		}
	}
	return s, s.n > 0
}

// hotelFits says whether a hotel meets the room wishes, as the strict checks read them.
func hotelFits(h travel.Hotel, wish travel.Constraints) bool {
	if wish.HouseRule != "" && strings.Contains(h.Rules, "No "+wish.HouseRule) {
		return false
	}
	switch wish.RoomType {
	case "shared room":
		return h.RoomType == "Shared room"
	case "not shared room":
		return h.RoomType != "Shared room"
	case "private room":
		return h.RoomType == "Private room"
	case "entire room":
		return h.RoomType == "Entire home/apt"
	}
	return true
}

// wantedFood is the query's cuisines as a bit set.
func wantedFood(q travel.Query) uint16 {
	var bits uint16
	for _, c := range q.Wish.Cuisine {
		bits |= foodBit(c)
	}
	return bits
}
