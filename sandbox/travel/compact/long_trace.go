package compact

import (
	"math"
	"math/rand/v2"
)

// expertLong is Expert for longer trips: a route drawn from those that can
// satisfy the query, travelled in the order in which it is looked up. It flies
// unless that is unwanted or too dear; three in ten drive where that is
// cheaper.
func (w *World) expertLong(q *Query, noise float64, seed, stream uint64) Trace {
	r := Rand(seed, forExpert, stream, uint64(w.days))
	routes, best := w.feasible(q)
	cities := best.cities
	if len(routes) > 0 {
		cities = routes[r.IntN(len(routes))]
	}
	t, driving := w.tours(q, cities)
	if curious := r.Float64() < 0.3; driving.cost < t.cost && (t.cost > q.Budget || curious) {
		t = driving
	}
	trace := Trace{Query: q, calls: w.survey(q, &t)}
	if noise > 0 {
		trace.withFailures(r, expertFailures)
	}
	trace.picks = w.disturb(r, q, &t, noise)
	return trace
}

// survey is what a tour looks up, in the order of travel.
func (w *World) survey(q *Query, t *tour) []call {
	calls := []call{{tool: toolCities, a: q.state}}
	for i, l := range q.legs(t.cities) {
		if t.drive {
			calls = append(calls, call{tool: toolDistance, a: l.from, b: l.to, mode: modeDrive})
		} else {
			calls = append(calls, call{tool: toolFlight, a: l.from, b: l.to, date: l.date})
		}
		if i < len(t.cities) {
			calls = append(calls, call{tool: toolHotels, a: l.to}, call{tool: toolMeals, a: l.to}, call{tool: toolSights, a: l.to})
		}
	}
	return calls
}

// disturb replaces each pick of a tour by a random one of its kind with
// probability noise, but repeats no restaurant, and returns the plan. A city
// keeps one hotel.
func (w *World) disturb(r *rand.Rand, q *Query, t *tour, noise float64) []pickOf {
	noisy := func() bool { return r.Float64() < noise }
	d := tour{cities: t.cities, drive: t.drive}
	for i, l := range q.legs(t.cities) {
		ride := t.rides[i]
		if !t.drive && noisy() {
			ride = oneOf(r, w.flightsOn(l.from, l.to, l.date))
		}
		d.rides = append(d.rides, ride)
	}
	var sights []int
	for i, c := range t.cities {
		hotel := t.hotels[i]
		if hotel < 0 || noisy() {
			hotel = oneOf(r, w.hotels[c])
		}
		d.hotels = append(d.hotels, hotel)
		meals, left := w.menuOf(r, t, i)
		for k, m := range meals {
			if noisy() {
				meals[k] = oneOf(r, left)
				left = append(without(left, meals[k]), m)
			}
		}
		d.meals = append(d.meals, meals)
		sights = append(sights, oneOf(r, w.sights[c]))
	}
	return d.plan(sights)
}

// menuOf returns the meals of the i-th city in a random order, and the city's
// other restaurants. Where no menu serves every wish any three will do.
func (w *World) menuOf(r *rand.Rand, t *tour, i int) (meals, left []int) {
	left = w.meals[t.cities[i]]
	if t.meals == nil {
		meals = append(meals, left[:3]...)
	} else {
		meals = append(meals, t.meals[i]...)
	}
	r.Shuffle(len(meals), func(a, b int) { meals[a], meals[b] = meals[b], meals[a] })
	for _, m := range meals {
		left = without(left, m)
	}
	return meals, left
}

// randomLong is RandomLegal for longer trips: a random route, and random rows.
func (w *World) randomLong(q *Query, seed, stream uint64) Trace {
	r := Rand(seed, forLegal, stream, uint64(w.days))
	routes := w.routes(q)
	t := tour{cities: routes[r.IntN(len(routes))], drive: q.ride == 1}
	for _, l := range q.legs(t.cities) {
		if t.drive {
			t.rides = append(t.rides, driveTo(l.to, modeDrive))
		} else {
			t.rides = append(t.rides, oneOf(r, w.flightsOn(l.from, l.to, l.date)))
		}
	}
	var sights []int
	for _, c := range t.cities {
		t.hotels = append(t.hotels, oneOf(r, w.hotels[c]))
		meals := append([]int(nil), w.meals[c]...)
		r.Shuffle(len(meals), func(a, b int) { meals[a], meals[b] = meals[b], meals[a] })
		t.meals = append(t.meals, meals[:3])
		sights = append(sights, oneOf(r, w.sights[c]))
	}
	return Trace{Query: q, calls: w.survey(q, &t), picks: t.plan(sights)}
}

// strollLong is Stroll for longer trips: legal calls about the query's places
// in random order, then random slots filled with what they showed.
func (w *World) strollLong(q *Query, seed, stream uint64) Trace {
	r := Rand(seed, forStroll, stream, uint64(w.days))
	t := Trace{Query: q}
	routes := w.routes(q)
	cities := routes[r.IntN(len(routes))]
	menu := []call{{tool: toolCities, a: q.state}}
	for _, l := range q.legs(cities) {
		if r.IntN(8) == 0 {
			l.to = cities[r.IntN(len(cities))]
		}
		if r.IntN(4) == 0 || l.from == l.to {
			menu = append(menu, call{tool: toolDistance, a: l.from, b: l.to, mode: r.IntN(2)})
		} else {
			menu = append(menu, call{tool: toolFlight, a: l.from, b: l.to, date: l.date})
		}
	}
	for _, c := range cities {
		menu = append(menu, call{tool: toolHotels, a: c}, call{tool: toolMeals, a: c}, call{tool: toolSights, a: c})
	}
	look := menu
	if r.IntN(4) > 0 { // the list of cities comes first
		look = menu[1:]
	}
	r.Shuffle(len(look), func(i, j int) { look[i], look[j] = look[j], look[i] })
	t.calls = menu[:4+r.IntN(len(menu)-3)]
	t.withFailures(r, expertFailures)
	t.picks = w.scatter(r, q, w.seen(t.calls), cities)
	return t
}

// seen are the rows that calls show, by kind.
func (w *World) seen(calls []call) map[kind][]int {
	shown := map[kind][]int{}
	for _, k := range calls {
		switch {
		case k.fail:
		case k.tool == toolFlight:
			shown[kindFlight] = append(shown[kindFlight], w.flightsOn(k.a, k.b, k.date)...)
		case k.tool == toolHotels:
			shown[kindHotel] = append(shown[kindHotel], w.hotels[k.a]...)
		case k.tool == toolMeals:
			shown[kindMeal] = append(shown[kindMeal], w.meals[k.a]...)
		case k.tool == toolSights:
			shown[kindSight] = append(shown[kindSight], w.sights[k.a]...)
		}
	}
	return shown
}

// scatter fills random slots with random rows.
func (w *World) scatter(r *rand.Rand, q *Query, shown map[kind][]int, cities []int) []pickOf {
	var picks []pickOf
	share := 0.2 + 0.4*r.Float64()
	for slot := range w.days * slotsPerDay {
		if r.Float64() > share {
			continue
		}
		rows := shown[[...]kind{kindFlight, kindMeal, kindMeal, kindMeal, kindSight, kindHotel}[slot%slotsPerDay]]
		switch {
		case slot%slotsPerDay == slotRide && r.IntN(3) == 0:
			to := q.org
			if i := r.IntN(len(cities) + 1); i < len(cities) {
				to = cities[i]
			}
			picks = append(picks, pickOf{slot, driveTo(to, r.IntN(2))})
		case len(rows) > 0:
			picks = append(picks, pickOf{slot, oneOf(r, rows)})
		}
	}
	return picks
}

// RecallLong is Recall in the words of the long language. Own marks the keys as
// well: each time one of those that fit the slot and are left. In a long plan
// a key that no row showed is likelier to slip in, and this is where a base
// learns to name shown ones.
func RecallLong(seed, stream uint64) Script {
	r := Rand(seed, forRecall, stream, LongVocabSize)
	var s Script
	ids := r.Perm(LongIDTokens)
	type pair struct{ slot, key, id Token }
	var pairs []pair
	used := map[Token]bool{}
	one := func(first, later Token, n int) Token {
		if i := r.IntN(maxStops * n); i >= n {
			return tok(later, i-n)
		}
		return tok(first, r.IntN(n))
	}
	for n := 10 + int(math.Floor(21*r.Float64())); len(pairs) < n; {
		kind := r.IntN(slotsPerDay)
		p := pair{slot: slotToken(kind + slotsPerDay*r.IntN(maxDays)), id: tok(TokID, ids[len(pairs)])}
		switch kind {
		case slotRide:
			if i := r.IntN(4 * PriceLevels); i < 2*PriceLevels {
				p.key = tok(tokFareOut, i)
			} else {
				p.key = tok(tokFareMore, i-2*PriceLevels)
			}
		case slotSight:
			p.key = one(tokSight, tokSightMore, SightKinds)
		case slotHotel:
			p.key = one(tokHotel, tokHotelMore, PriceLevels)
		default:
			p.key = one(tokCuisine, tokTasteMore, Cuisines)
		}
		if used[p.key] {
			continue
		}
		used[p.key] = true
		pairs = append(pairs, p)
		if kind != slotRide && kind != slotSight {
			s.say(false, tok(tokMeal, r.IntN(PriceLevels))) // something in between, as real rows have
		}
		s.say(false, p.key, p.id)
	}
	s.say(false, TokRows, TokPlan)
	for range 2 {
		for _, i := range r.Perm(len(pairs)) {
			s.say(false, pairs[i].slot)
			s.say(true, pairs[i].key, pairs[i].id)
		}
	}
	s.say(false, TokEnd)
	return s
}
