package compact

import "alidade/sandbox"

// Stitch writes a trace of a three-day trip whose steps are by different
// experts. Each slot of the plan is filled as an expert of its own filled it,
// and the look-ups of each leg are those of the expert who chose its transport.
// Every step is as likely as in a trace of [World.Expert], and every row in the
// plan was shown; but nobody who picked one thing knew of the others, so hotels
// change overnight, restaurants repeat, drives and flights mix, and budgets are
// kept by chance.
func (w *World) Stitch(q *Query, noise float64, seed, stream uint64) Trace {
	one := func(slot int) Trace { return w.Expert(q, noise, seed, sandbox.Mix(stream, forStitch, uint64(slot))) }
	frame := one(-1) // says which slots are filled, and looks the city up
	t := Trace{Query: q}
	ways := map[int][]call{}
	for _, p := range frame.picks {
		by := one(p.slot)
		for _, other := range by.picks {
			if other.slot == p.slot {
				p = other
			}
		}
		switch p.slot {
		case goRide:
			ways[q.org] = by.from(q.org)
		case returnRide:
			ways[q.dest] = by.from(q.dest)
		}
		t.picks = append(t.picks, p)
	}
	t.calls = append(append(t.calls, ways[q.org]...), ways[q.dest]...)
	for _, k := range frame.calls {
		if k.tool != toolFlight && k.tool != toolDistance {
			t.calls = append(t.calls, k)
		}
	}
	return t
}

// from returns the trace's look-ups of ways that leave a city.
func (t *Trace) from(city int) []call {
	var calls []call
	for _, k := range t.calls {
		if (k.tool == toolFlight || k.tool == toolDistance) && k.a == city {
			calls = append(calls, k)
		}
	}
	return calls
}
