package compact

// Recall writes a sequence that asks for looking things up and nothing else:
// rows of a key and an id, then the same keys in another order, each after a
// slot label, to be followed by its id. Own marks those ids. It is what the
// base checkpoint learns first.
func Recall(seed, stream uint64) Script {
	r := Rand(seed, forRecall, stream)
	var s Script
	ids := r.Perm(IDTokens)
	type pair struct{ slot, key, id Token }
	var pairs []pair
	used := map[Token]bool{}
	for len(pairs) < 10+r.IntN(9) {
		kind := [...]int{slotRide, slotBreakfast, slotLunch, slotDinner, slotSight, slotHotel}[r.IntN(slotsPerDay)]
		p := pair{slot: tok(tokSlot, kind+slotsPerDay*r.IntN(days)), id: tok(TokID, ids[len(pairs)])}
		switch kind {
		case slotRide:
			p.key = tok(tokFareOut, r.IntN(2*PriceLevels))
		case slotSight:
			p.key = tok(tokSight, r.IntN(len(sightWords)))
		case slotHotel:
			p.key = tok(tokHotel, r.IntN(PriceLevels))
		default:
			p.key = tok(tokCuisine, r.IntN(len(cuisineWords)))
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
			s.say(false, pairs[i].slot, pairs[i].key)
			s.say(true, pairs[i].id)
		}
	}
	s.say(false, TokEnd)
	return s
}

// StrollScript writes a stroll about a query of its own, solvable or not.
func (w *World) StrollScript(seed, stream uint64) Script {
	r := Rand(seed, forStroll, stream, 1)
	for {
		if q := w.drawAny(r, r.IntN(len(Levels)), 0.5+r.Float64()); q != nil {
			return w.Write(w.Stroll(q, seed, stream), r.Uint64())
		}
	}
}

// Stroll writes the trace of a policy that knows the form of calls and plans
// and nothing else: legal calls in random order, mostly about the query's own
// cities and dates, then random slots filled with random rows it was shown.
// It is what the base checkpoint learns last: reading, calling, copying, but
// not what a good trip is.
func (w *World) Stroll(q *Query, seed, stream uint64) Trace {
	if w.long() {
		return w.strollLong(q, seed, stream)
	}
	r := Rand(seed, forStroll, stream)
	t := Trace{Query: q}
	city := func(usual int) int {
		if r.IntN(8) > 0 {
			return usual
		}
		if r.IntN(2) == 0 {
			return q.org
		}
		return q.dest
	}
	menu := []call{
		{tool: toolFlight, a: city(q.org), b: city(q.dest), date: q.out},
		{tool: toolFlight, a: city(q.dest), b: city(q.org), date: q.back},
		{tool: toolDistance, a: city(q.org), b: city(q.dest), mode: r.IntN(2)},
		{tool: toolDistance, a: city(q.dest), b: city(q.org), mode: r.IntN(2)},
		{tool: toolHotels, a: city(q.dest)},
		{tool: toolMeals, a: city(q.dest)},
		{tool: toolSights, a: city(q.dest)},
	}
	r.Shuffle(len(menu), func(i, j int) { menu[i], menu[j] = menu[j], menu[i] })
	t.calls = menu[:3+r.IntN(len(menu)-2)]
	t.withFailures(r, expertFailures)
	shown := w.seen(t.calls)
	for slot := range slotTokens {
		if r.IntN(2) == 0 {
			continue
		}
		rows := shown[[...]kind{kindFlight, kindMeal, kindMeal, kindMeal, kindSight, kindHotel}[slot%slotsPerDay]]
		switch {
		case slot%slotsPerDay == slotRide && r.IntN(3) == 0:
			t.picks = append(t.picks, pickOf{slot, rideDrive - r.IntN(2)})
		case len(rows) > 0:
			t.picks = append(t.picks, pickOf{slot, oneOf(r, rows)})
		}
	}
	return t
}
