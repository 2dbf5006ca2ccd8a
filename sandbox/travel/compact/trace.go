package compact

import "math/rand/v2"

// A Trace is an episode with rows and cities in place of tokens, so that it
// can be written down under a new labelling at every use.
type Trace struct {
	Query *Query
	calls []call
	picks []pickOf
}

// call is one tool call. fail: the tool was not available and the call is
// made again.
type call struct {
	tool int
	a, b int // cities
	date int
	mode int
	fail bool
}

// expertFailures is the rate of tool failures in expert traces: the policy
// must have seen a failure and its cure.
const expertFailures = 0.03

// Expert writes the trace of a solver that looks everything up, then picks
// cheapest valid rows; each pick is replaced by a random row of its kind with
// probability noise (but never by a repeated restaurant). Half of the traces
// have a dinner on the first evening. Stream numbers the trace under seed.
func (w *World) Expert(q *Query, noise float64, seed, stream uint64) Trace {
	if w.long() {
		return w.expertLong(q, noise, seed, stream)
	}
	r := Rand(seed, forExpert, stream)
	t := Trace{Query: q}
	failures := expertFailures
	if noise == 0 {
		failures = 0
	}
	ride := w.expertRide(r, &t, noise)
	t.calls = append(t.calls, call{tool: toolHotels, a: q.dest}, call{tool: toolMeals, a: q.dest}, call{tool: toolSights, a: q.dest})
	t.withFailures(r, failures)
	noisy := func() bool { return r.Float64() < noise }

	hotel, _ := w.cheapestHotel(q)
	if noisy() {
		hotel = oneOf(r, w.hotels[q.dest])
	}
	meals, _ := w.cheapestMeals(q)
	r.Shuffle(len(meals), func(i, j int) { meals[i], meals[j] = meals[j], meals[i] })
	left := w.meals[q.dest]
	for _, m := range meals {
		left = without(left, m)
	}
	for i, m := range meals {
		if noisy() {
			meals[i] = oneOf(r, left)
			left = append(without(left, meals[i]), m)
		}
	}
	dinner := -1
	if r.IntN(2) == 0 {
		dinner = w.cheapest(left)
		if noisy() {
			dinner = oneOf(r, left)
		}
		if noise == 0 { // the clean expert never risks the budget
			dinner = -1
		}
	}
	t.picks = plan(ride, hotel, meals, dinner, oneOf(r, w.sights[q.dest]))
	return t
}

// expertRide looks for flights unless they are unwanted, and for the road when
// flying is unwanted, does not fit the budget, or in three of ten traces.
func (w *World) expertRide(r *rand.Rand, t *Trace, noise float64) [2]int {
	q := t.Query
	best, cost := w.cheapestRide(q)
	curious := r.Float64() < 0.3
	if q.ride != 1 {
		t.calls = append(t.calls,
			call{tool: toolFlight, a: q.org, b: q.dest, date: q.out},
			call{tool: toolFlight, a: q.dest, b: q.org, date: q.back})
		fly := [2]int{w.cheapest(w.flightsOn(q.org, q.dest, q.out)), w.cheapest(w.flightsOn(q.dest, q.org, q.back))}
		fare := (w.rows[fly[0]].price + w.rows[fly[1]].price) * float64(q.People)
		_, hotel := w.cheapestHotel(q)
		_, meals := w.cheapestMeals(q)
		if fare <= cost || fare+hotel+meals <= q.Budget && !(curious && q.ride == 0) {
			for i, rows := range [][]int{w.flightsOn(q.org, q.dest, q.out), w.flightsOn(q.dest, q.org, q.back)} {
				if r.Float64() < noise {
					fly[i] = oneOf(r, rows)
				}
			}
			return fly
		}
	}
	for i, ends := range [][2]int{{q.org, q.dest}, {q.dest, q.org}} {
		switch best[i] {
		case rideDrive:
			t.calls = append(t.calls, call{tool: toolDistance, a: ends[0], b: ends[1], mode: modeDrive})
		case rideTaxi:
			t.calls = append(t.calls, call{tool: toolDistance, a: ends[0], b: ends[1], mode: modeTaxi})
		}
	}
	return best
}

// withFailures makes calls fail with probability p and repeats those that do.
func (t *Trace) withFailures(r *rand.Rand, p float64) {
	var calls []call
	for _, c := range t.calls {
		for p > 0 && r.Float64() < p {
			failed := c
			failed.fail = true
			calls = append(calls, failed)
		}
		calls = append(calls, c)
	}
	t.calls = calls
}

// RandomLegal writes the trace of a policy that knows the rules of the form
// and nothing about value: it looks up what it needs, then picks existing rows
// at random, repeats no restaurant, stays in one hotel and keeps the transport
// wish. Its success is the floor a learned policy is read against.
func (w *World) RandomLegal(q *Query, seed, stream uint64) Trace {
	if w.long() {
		return w.randomLong(q, seed, stream)
	}
	r := Rand(seed, forLegal, stream)
	t := Trace{Query: q}
	ride := [2]int{rideDrive, rideDrive}
	if q.ride == 1 {
		t.calls = append(t.calls, call{tool: toolDistance, a: q.org, b: q.dest}, call{tool: toolDistance, a: q.dest, b: q.org})
	} else {
		t.calls = append(t.calls, call{tool: toolFlight, a: q.org, b: q.dest, date: q.out}, call{tool: toolFlight, a: q.dest, b: q.org, date: q.back})
		ride = [2]int{oneOf(r, w.flightsOn(q.org, q.dest, q.out)), oneOf(r, w.flightsOn(q.dest, q.org, q.back))}
	}
	t.calls = append(t.calls, call{tool: toolHotels, a: q.dest}, call{tool: toolMeals, a: q.dest}, call{tool: toolSights, a: q.dest})
	meals := append([]int(nil), w.meals[q.dest]...)
	r.Shuffle(len(meals), func(i, j int) { meals[i], meals[j] = meals[j], meals[i] })
	dinner := -1
	if r.IntN(2) == 0 {
		dinner = meals[3]
	}
	t.picks = plan(ride, oneOf(r, w.hotels[q.dest]), meals[:3], dinner, oneOf(r, w.sights[q.dest]))
	return t
}
