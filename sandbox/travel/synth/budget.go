package synth

import (
	"math"
	"strings"

	"alidade/sandbox/travel"
)

// Days and what a trip of that length buys: flights, nights, meals. The same
// numbers are the least rows that must be on offer in Agent-STAR's program.
type trip struct{ legs, nights, meals int }

var trips = map[int]trip{3: {2, 3, 9}, 5: {3, 5, 15}, 7: {4, 7, 21}}

// budget sets q.Budget by the benchmark's rule: a mix of the cheapest, average
// and dearest flight, hotel and meal on offer, times a factor for the level,
// times scale, rounded to hundreds (half to even). It reports false when too
// little is on offer for the rule. The two samplers' programs differ in what
// they count and ask for; a draw on which theirs stops is none here.
func (w *World) budget(q *travel.Query, rule Sampler, scale float64) bool {
	o, ok := w.starOffer(q)
	if rule == SamplerTravelPlanner {
		o, ok = w.tpOffer(q)
	}
	if !ok || o.flight.n == 0 || o.bed.n == 0 || o.meal.n == 0 {
		return false
	}
	t := trips[q.Days]
	mode := func(f func(stats) float64) float64 {
		return float64(t.legs)*f(o.flight) + float64(t.nights)*f(o.bed) + float64(t.meals)*f(o.meal)
	}
	low, avg, high := mode(func(s stats) float64 { return s.min }), mode(stats.mean), mode(func(s stats) float64 { return s.max })
	base := avg
	switch q.Days {
	case 3:
		base = (avg + low) / 2
	case 7:
		base = (avg + high) / 2
		if rule == SamplerTravelPlanner { // which rounds this one twice
			base = hundreds(base)
		}
	}
	factor := 1.0
	switch q.Level {
	case "medium":
		factor = float64(q.People) * 0.75
	case "hard":
		factor = float64(q.People) * 0.5
	}
	q.Budget = hundreds(base * factor * scale)
	return q.Budget > 0
}

// hundreds rounds to hundreds, half to even.
func hundreds(x float64) float64 { return math.RoundToEven(x/100) * 100 }

// offer is what the budget rule takes its statistics over.
type offer struct{ flight, bed, meal stats }

// starOffer follows Agent-STAR's program. Easy queries leave out the number of
// people; a wish needs at least as many rows as the trip buys, after the room
// type and again after the house rule; "no flight" prices the drive to the
// destination, or to the first city of the state, in every mode.
func (w *World) starOffer(q *travel.Query) (o offer, ok bool) {
	t, wish := trips[q.Days], q.Wish
	group := q.People
	if q.Level == "easy" {
		group = 0
	}
	o.bed, ok = w.bedOffer(*q, wish, group, t.nights)
	if !ok {
		return o, false
	}
	o.meal = w.mealOffer(*q, wish)
	if len(wish.Cuisine) > 0 && o.meal.n < t.meals {
		return o, false
	}
	if wish.Transportation == "no flight" {
		d, ok := w.drivable[[2]string{q.Org, w.candidates(*q)[0]}]
		if !ok {
			return o, false
		}
		cost, _ := travel.DriveCost(d, 1)
		o.flight.add(cost)
		return o, true
	}
	o.flight = w.flightOffer(*q)
	if wish.Transportation == "no self-driving" {
		least := 2
		if q.Days > 3 {
			least = 10
		}
		if w.flightsOn(*q, q.Dates[0]) < least {
			return o, false
		}
	}
	return o, true
}

// tpOffer follows TravelPlanner's program. Medium queries leave out their
// wish; a wish needs at least three, five or seven rows; "no flight" needs two
// flights on the first day and a first row of at most 800 miles, and is
// priced like flying.
func (w *World) tpOffer(q *travel.Query) (o offer, ok bool) {
	wish, group := q.Wish, q.People
	switch q.Level {
	case "easy":
		group = 0
	case "medium":
		wish = travel.Constraints{}
	}
	o.bed, ok = w.bedOffer(*q, wish, group, q.Days)
	if !ok {
		return o, false
	}
	o.meal = w.mealOffer(*q, wish)
	if len(wish.Cuisine) > 0 && o.meal.n < q.Days {
		return o, false
	}
	o.flight = w.flightOffer(*q)
	switch wish.Transportation {
	case "no self-driving":
		return o, w.flightsOn(*q, q.Dates[0]) >= 2
	case "no flight":
		return o, w.flightsOn(*q, q.Dates[0]) >= 2 && w.firstMiles(*q) <= 800
	}
	return o, true
}

// bedOffer are the accommodations' prices; false when a wish leaves fewer
// rows than least. group 0 takes every size.
func (w *World) bedOffer(q travel.Query, wish travel.Constraints, group, least int) (s stats, ok bool) {
	typed := 0
	for _, c := range w.candidates(q) {
		for _, h := range w.Hotels(c) {
			if h.MaxPeople < group || !typeFits(h, wish) {
				continue
			}
			typed++
			if ruleFits(h, wish) {
				s.add(h.Price)
			}
		}
	}
	short := wish.RoomType != "" && typed < least || wish.HouseRule != "" && s.n < least
	return s, !short
}

// mealOffer are the restaurants' prices, with a wish those that have any of
// the wanted cuisines.
func (w *World) mealOffer(q travel.Query, wish travel.Constraints) (s stats) {
	for _, c := range w.candidates(q) {
		for _, r := range w.Restaurants(c) {
			if len(wish.Cuisine) == 0 || containsAny(r.Cuisines, wish.Cuisine) {
				s.add(float64(r.Cost))
			}
		}
	}
	return s
}

// flightOffer are the prices out: on any date to a city, on the trip's dates to a state.
func (w *World) flightOffer(q travel.Query) (s stats) {
	if q.Days == 3 {
		return w.fares[[2]string{q.Org, q.Dest}]
	}
	for _, c := range w.candidates(q) {
		for _, date := range q.Dates {
			for _, p := range w.Prices(q.Org, c, date) {
				s.add(float64(p))
			}
		}
	}
	return s
}

// flightsOn counts the flights out on a date.
func (w *World) flightsOn(q travel.Query, date string) int {
	n := 0
	for _, c := range w.candidates(q) {
		n += w.CountFlights(q.Org, c, date)
	}
	return n
}

// firstMiles is the distance of the first flight out on the trip's dates.
func (w *World) firstMiles(q travel.Query) float64 {
	for _, c := range w.candidates(q) {
		for _, date := range q.Dates {
			if list := w.Flights(q.Org, c, date); len(list) > 0 {
				return list[0].Distance
			}
		}
	}
	return math.Inf(1)
}

// hotelFits says whether a hotel meets the room wishes, as the strict checks read them.
func hotelFits(h travel.Hotel, wish travel.Constraints) bool {
	return typeFits(h, wish) && (wish.HouseRule == "" || !strings.Contains(h.Rules, "No "+wish.HouseRule))
}

func typeFits(h travel.Hotel, wish travel.Constraints) bool {
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

// ruleFits is the synthesis programs' test, which ignores case.
func ruleFits(h travel.Hotel, wish travel.Constraints) bool {
	return wish.HouseRule == "" || !strings.Contains(strings.ToLower(h.Rules), "no "+strings.ToLower(wish.HouseRule))
}

// containsAny is the synthesis programs' test of cuisines: part of the text, any case.
func containsAny(text string, words []string) bool {
	text = strings.ToLower(text)
	for _, x := range words {
		if strings.Contains(text, strings.ToLower(x)) {
			return true
		}
	}
	return false
}

// wantedFood is the query's cuisines as a bit set.
func wantedFood(q travel.Query) uint16 {
	var bits uint16
	for _, c := range q.Wish.Cuisine {
		bits |= foodBit(c)
	}
	return bits
}
