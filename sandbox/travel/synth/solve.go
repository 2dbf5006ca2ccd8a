package synth

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"time"

	"alidade/sandbox/travel"
)

// Solution is what the solver found for a query.
type Solution struct {
	Days   []travel.Day
	Cities []string // visited, in order
	Cost   float64  // $
	Proven bool     // a plan within budget exists: this one
	Exact  bool     // the search was not cut off: no plan of the standard form is cheaper
	Reason string   // when not proven, why the search found none
	Nodes  int      // routes looked at
}

// Limits bound a search. Zero values mean the defaults: 2 million nodes, no
// limit of time. Nodes cut a search at the same place every time; time does
// not, so sets of queries that are to repeat exactly should not hit it.
type Limits struct {
	Nodes int
	Time  time.Duration
}

const maxNodes = 2_000_000

// Solve looks for the cheapest plan of the standard form: two nights in each
// city to visit, three meals and a sight on each full day, and home on the
// last day. Within that form the search is exact. A plan it finds is a
// certificate; when it finds none, one of another form may still exist, so
// the query is "not proven", never "unsolvable".
func (w *World) Solve(q travel.Query) Solution {
	return w.SolveWithin(context.Background(), q, Limits{})
}

// SolveWithin is Solve within limits. A search that is cut off proves a query
// if it has found a plan within the budget by then, else it says that it was
// cut off.
func (w *World) SolveWithin(ctx context.Context, q travel.Query, l Limits) Solution {
	t, ok := trips[q.Days]
	if !ok || len(q.Dates) != q.Days {
		return Solution{Reason: fmt.Sprintf("%d days with %d dates: want 3, 5 or 7 consecutive dates", q.Days, len(q.Dates))}
	}
	s := &search{w: w, q: q, want: wantedFood(q), best: math.Inf(1), ctx: ctx, left: l.Nodes}
	if s.left <= 0 {
		s.left = maxNodes
	}
	nodes := s.left
	if l.Time > 0 {
		s.deadline = time.Now().Add(l.Time)
	}
	if bits.OnesCount16(s.want) != len(distinct(q.Wish.Cuisine)) {
		return Solution{Reason: "a wanted cuisine does not occur in this world"}
	}
	for _, c := range w.candidates(q) {
		if c == q.Org {
			continue
		}
		if st, ok := s.stay(c); ok {
			s.stays = append(s.stays, st)
		}
	}
	visits := t.legs - 1
	if len(s.stays) < visits {
		return Solution{Reason: fmt.Sprintf("%d of the cities on offer have a fitting hotel, 3 restaurants and a sight; %d are to be visited", len(s.stays), visits)}
	}
	for _, m := range s.modes() {
		s.mode = m
		s.extend(nil, 0, q.Org)
	}
	nodes -= s.left
	if s.cut != "" && (s.chosen == nil || s.best > q.Budget) {
		return Solution{Nodes: nodes, Reason: "the search was cut off " + s.cut + ": not proven"}
	}
	switch {
	case s.chosen == nil:
		return Solution{Reason: "no way to get to the cities and home again on these dates"}
	case s.best > q.Budget:
		return Solution{Cost: s.best, Reason: fmt.Sprintf("the cheapest plan of the standard form costs %.0f $, the budget is %.0f $", s.best, q.Budget)}
	}
	sol := s.solution()
	sol.Exact, sol.Nodes = s.cut == "", nodes
	return sol
}

// spend counts a node and tells whether the search may go on.
func (s *search) spend() bool {
	if s.cut != "" {
		return false
	}
	s.left--
	switch {
	case s.left < 0:
		s.left, s.cut = 0, "at its limit of nodes"
	case s.left%1024 == 0 && s.ctx.Err() != nil:
		s.cut = "from outside"
	case s.left%256 == 0 && !s.deadline.IsZero() && time.Now().After(s.deadline):
		s.cut = "at its limit of time"
	}
	return s.cut == ""
}

func distinct(list []string) map[string]bool {
	m := map[string]bool{}
	for _, x := range list {
		m[x] = true
	}
	return m
}

// travelMode is what a whole trip may use: a plan must not mix driving with
// flights or taxis.
type travelMode struct{ drive, fly, taxi bool }

// search is the state of one Solve.
type search struct {
	w     *World
	q     travel.Query
	want  uint16
	stays []stay
	mode  travelMode

	ctx      context.Context // of one Solve
	deadline time.Time
	left     int    // nodes
	cut      string // why the search was cut off

	best   float64
	chosen *choice
}

// stay is the cheapest way to spend two nights and one full day in a city,
// for each set of wanted cuisines that its meals cover.
type stay struct {
	city  string
	hotel travel.Hotel
	bed   float64           // $ for both nights
	meals map[uint16]eating // covered wanted cuisines → cheapest meals
}

// eating is a choice of restaurants: the full day's three, then, only where
// they help to cover a cuisine, dinner on arrival and breakfast on departure.
type eating struct {
	cost  float64
	picks []int // into World.eats[city]
}

type choice struct {
	mode  travelMode
	stays []int
	cover []uint16
}

// modes lists the transport a plan may use under the query's wish.
func (s *search) modes() []travelMode {
	switch s.q.Wish.Transportation {
	case "no flight":
		return []travelMode{{drive: true}, {taxi: true}}
	case "no self-driving":
		return []travelMode{{fly: true, taxi: true}}
	}
	return []travelMode{{drive: true}, {fly: true, taxi: true}}
}

// stay builds the options of one city.
func (s *search) stay(city string) (stay, bool) {
	st := stay{city: city, bed: math.Inf(1)}
	for _, h := range s.w.beds[city] {
		if h.MinNights > 2 || h.MaxPeople < 1 || !hotelFits(h, s.q.Wish) {
			continue
		}
		units := math.Ceil(float64(s.q.People) / float64(h.MaxPeople))
		if cost := 2 * h.Price * units; cost < st.bed {
			st.bed, st.hotel = cost, h
		}
	}
	if math.IsInf(st.bed, 1) || len(s.w.sights[city]) == 0 {
		return st, false
	}
	st.meals = s.eatings(city)
	return st, len(st.meals) > 0
}

const maxMeals = 5 // a full day's three, dinner on arrival, breakfast on departure

// eatings is a small dynamic program over the city's restaurants: the cheapest
// way to pick 3 to 5 of them that covers each set of wanted cuisines.
func (s *search) eatings(city string) map[uint16]eating {
	type state struct {
		n    int
		mask uint16
	}
	table := map[state]eating{{0, 0}: {}}
	for i, r := range s.w.eats[city] {
		next := make(map[state]eating, len(table)*2)
		for k, e := range table {
			next[k] = e
		}
		for k, e := range table {
			if k.n == maxMeals {
				continue
			}
			nk := state{k.n + 1, k.mask | r.food&s.want}
			cost := e.cost + float64(r.Cost*s.q.People)
			if old, ok := next[nk]; ok && (old.cost < cost || (old.cost == cost && !before(e.picks, i, old.picks))) {
				continue
			}
			next[nk] = eating{cost, append(append(make([]int, 0, k.n+1), e.picks...), i)}
		}
		table = next
	}
	out := map[uint16]eating{}
	for k, e := range table {
		if k.n < 3 {
			continue
		}
		if old, ok := out[k.mask]; !ok || e.cost < old.cost || (e.cost == old.cost && len(e.picks) < len(old.picks)) {
			out[k.mask] = e
		}
	}
	return out
}

// before breaks ties between equally dear choices, so that the result does
// not depend on the order of a map.
func before(picks []int, last int, old []int) bool {
	for i, p := range picks {
		if p != old[i] {
			return p < old[i]
		}
	}
	return last < old[len(picks)]
}

// extend adds one more city to the route, or closes it.
func (s *search) extend(route []int, cost float64, at string) {
	if !s.spend() {
		return
	}
	visits := trips[s.q.Days].legs - 1
	if len(route) == visits {
		home, ok := s.leg(at, s.q.Org, s.q.Dates[s.q.Days-1])
		if ok {
			s.close(route, cost+home.cost)
		}
		return
	}
	date := s.q.Dates[2*len(route)]
next:
	for i, st := range s.stays {
		for _, j := range route {
			if i == j {
				continue next
			}
		}
		leg, ok := s.leg(at, st.city, date)
		if !ok {
			continue
		}
		if c := cost + leg.cost + st.bed; c < s.best {
			s.extend(append(route[:len(route):len(route)], i), c, st.city)
		}
	}
}

// close combines the cities' meals so that all wanted cuisines are covered.
func (s *search) close(route []int, cost float64) {
	type part struct {
		cost  float64
		cover []uint16
	}
	parts := map[uint16]part{0: {}}
	for _, i := range route {
		next := map[uint16]part{}
		for mask, p := range parts {
			for m, e := range s.stays[i].meals {
				k, c := mask|m, p.cost+e.cost
				if old, ok := next[k]; !ok || c < old.cost || (c == old.cost && less16(append(p.cover[:len(p.cover):len(p.cover)], m), old.cover)) {
					next[k] = part{c, append(p.cover[:len(p.cover):len(p.cover)], m)}
				}
			}
		}
		parts = next
	}
	if p, ok := parts[s.want]; ok && cost+p.cost < s.best {
		s.best = cost + p.cost
		s.chosen = &choice{mode: s.mode, stays: append([]int(nil), route...), cover: p.cover}
	}
}

func less16(a, b []uint16) bool {
	for i := range a {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}

// hop is one leg of a trip as the plan writes it.
type hop struct {
	cost float64
	text string
	tool string // the tool that shows it
}

func flightText(f travel.Flight) string {
	return "Flight Number: " + f.Number + ", from " + f.Org + " to " + f.Dest + ", Departure Time: " + f.Dep + ", Arrival Time: " + f.Arr
}

// leg is the cheapest way from a to b on a date in the current mode.
func (s *search) leg(a, b, date string) (hop, bool) {
	best := hop{cost: math.Inf(1)}
	if s.mode.fly {
		if f, ok := s.w.CheapestFlight(a, b, date); ok {
			best = hop{float64(f.Price * s.q.People), flightText(f), travel.ToolFlight}
		}
	}
	d, ok := s.w.drivable[[2]string{a, b}]
	if !ok {
		return best, !math.IsInf(best.cost, 1)
	}
	if s.mode.drive {
		if c, ok := travel.DriveCost(d, s.q.People); ok && c < best.cost {
			best = hop{c, fmt.Sprintf("Self-driving, from %s to %s, duration: %s, distance: %s, cost: %.0f", a, b, d.Duration, d.Distance, c), travel.ToolDistance}
		}
	}
	if s.mode.taxi {
		if c, ok := travel.TaxiCost(d, s.q.People); ok && c < best.cost {
			best = hop{c, fmt.Sprintf("Taxi, from %s to %s, duration: %s, distance: %s, cost: %.0f", a, b, d.Duration, d.Distance, c), travel.ToolDistance}
		}
	}
	return best, !math.IsInf(best.cost, 1)
}

// solution writes the chosen route as plan days.
func (s *search) solution() Solution {
	c := s.chosen
	s.mode = c.mode
	sol := Solution{Cost: s.best, Proven: true}
	at := s.q.Org
	for k, i := range c.stays {
		st := s.stays[i]
		e := st.meals[c.cover[k]]
		name := func(j int) string {
			if j >= len(e.picks) {
				return "-"
			}
			return s.w.eats[st.city][e.picks[j]].Name + ", " + st.city
		}
		hotel := st.hotel.Name + ", " + st.city
		leg, _ := s.leg(at, st.city, s.q.Dates[2*k])
		arrive := travel.Day{Day: 2*k + 1, City: "from " + at + " to " + st.city, Transportation: leg.text, Breakfast: "-", Lunch: "-", Dinner: name(3), Attraction: "-", Accommodation: hotel}
		if k > 0 && len(sol.Days) > 0 {
			arrive.Breakfast = sol.carry(s, k)
		}
		sight := s.w.sights[st.city][0]
		full := travel.Day{Day: 2*k + 2, City: st.city, Transportation: "-", Breakfast: name(0), Lunch: name(1), Dinner: name(2), Attraction: sight + ", " + st.city + ";", Accommodation: hotel}
		sol.Days = append(sol.Days, arrive, full)
		sol.Cities = append(sol.Cities, st.city)
		at = st.city
	}
	home, _ := s.leg(at, s.q.Org, s.q.Dates[s.q.Days-1])
	last := travel.Day{Day: s.q.Days, City: "from " + at + " to " + s.q.Org, Transportation: home.text, Breakfast: sol.carry(s, len(c.stays)), Lunch: "-", Dinner: "-", Attraction: "-", Accommodation: "-"}
	sol.Days = append(sol.Days, last)
	return sol
}

// carry is the breakfast on the day of departure from the k-th city, where
// the fifth meal of its choice goes.
func (sol *Solution) carry(s *search, k int) string {
	st := s.stays[s.chosen.stays[k-1]]
	e := st.meals[s.chosen.cover[k-1]]
	if len(e.picks) < maxMeals {
		return "-"
	}
	return s.w.eats[st.city][e.picks[4]].Name + ", " + st.city
}
