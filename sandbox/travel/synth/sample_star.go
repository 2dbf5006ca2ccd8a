package synth

import (
	"math/rand/v2"

	"alidade/sandbox/travel"
)

// Agent-STAR's sampler draws a trip that flights or roads serve, and wishes
// by level.

// starCuisines are those a query may ask for; the last only in hard ones.
var starCuisines = []string{"Chinese", "American", "Italian", "Mexican", "Indian", "Mediterranean", "French", "BBQ", "Fast Food"}

// drawStar fills in everything but the budget; false means no such trip.
func (w *World) drawStar(r *rand.Rand, q *travel.Query) bool {
	if q.Level != "easy" {
		q.People = people(r)
	}
	starWishes(r, q)
	drive := r.IntN(10) == 0
	switch q.Wish.Transportation {
	case "no flight":
		drive = true
	case "no self-driving":
		drive = false
	}
	if drive {
		return w.drivingTrip(r, q)
	}
	return w.flightTrip(r, q)
}

// starWishes draws the constraints of a level.
func starWishes(r *rand.Rand, q *travel.Query) {
	kinds, weights := []string{"house rule", "cuisine", "room type"}, []float64{0.35, 0.30, 0.35}
	switch q.Level {
	case "medium":
		starWish(r, q, pick(r, kinds))
	case "hard":
		q.Wish.Transportation = pick(r, []string{"no self-driving", "no flight"})
		first := weighted(r, kinds, weights, nil)
		starWish(r, q, first)
		starWish(r, q, weighted(r, kinds, weights, []string{first}))
	}
}

func starWish(r *rand.Rand, q *travel.Query, kind string) {
	switch kind {
	case "house rule":
		ruleWish(r, q)
	case "room type":
		roomWish(r, q)
	case "cuisine":
		if q.Level != "hard" {
			q.Wish.Cuisine = someOf(r, starCuisines[:8], 2)
			return
		}
		n := 2
		if r.IntN(100) >= 60 {
			n = 3
		}
		q.Wish.Cuisine = someOf(r, starCuisines, n)
	}
}

// pairTries bounds the route candidates looked at in one draw. The published
// program goes through all of them; what is not found in these is drawn again.
const pairTries = 40

// flightTrip picks a route with flights out and back on the trip's first and
// last day, favouring days with many of them.
func (w *World) flightTrip(r *rand.Rand, q *travel.Query) bool {
	if len(w.routes) == 0 {
		return false
	}
	for range pairTries {
		p := pick(r, w.routes)
		state := w.State(p[1])
		if state == w.State(p[0]) || w.states[state] < 3 {
			continue
		}
		if w.fares[[2]string{p[1], p[0]}].n == 0 {
			continue
		}
		start, ok := w.startDate(r, p, q.Days)
		if !ok {
			continue
		}
		q.Org, q.Dest, q.Dates = p[0], p[1], window(start, q.Days)
		if q.Days > 3 {
			q.Dest = state
		}
		return true
	}
	return false
}

// startDate draws the first day with weight (flights out + 1) × (flights back + 1)
// and takes it if there are at least three flights either way.
func (w *World) startDate(r *rand.Rand, p [2]string, days int) (string, bool) {
	type day struct{ first, out, back int }
	var starts []day
	total := 0
	for i := 0; i+days <= len(w.dates); i++ {
		out := w.CountFlights(p[0], p[1], w.dates[i])
		if out == 0 {
			continue
		}
		back := w.CountFlights(p[1], p[0], w.dates[i+days-1])
		if back == 0 || window(w.dates[i], days)[days-1] != w.dates[i+days-1] {
			continue
		}
		starts = append(starts, day{i, out, back})
		total += (out + 1) * (back + 1)
	}
	if total == 0 {
		return "", false
	}
	x := r.IntN(total)
	for _, s := range starts {
		if x -= (s.out + 1) * (s.back + 1); x < 0 {
			return w.dates[s.first], s.out >= 3 && s.back >= 3
		}
	}
	return "", false
}

// maxDriveKM is the published limit, whose parameter is named miles there.
const maxDriveKM = 600

// drivingTrip picks a destination within a day's drive.
func (w *World) drivingTrip(r *rand.Rand, q *travel.Query) bool {
	if len(w.dates) < q.Days {
		return false
	}
	for range 1000 {
		org := pick(r, w.cities)
		var probe string
		if q.Days == 3 {
			c := pick(r, w.cities)
			if c.State == org.State {
				continue
			}
			probe = c.Name
		} else {
			if len(w.wide) == 0 {
				return false
			}
			state := pick(r, w.wide)
			if state == org.State {
				continue
			}
			probe = pick(r, w.CitiesIn(state))
		}
		d, ok := w.drivable[[2]string{org.Name, probe}]
		if !ok {
			continue
		}
		if km, ok := parseKM(d.Distance); !ok || km > maxDriveKM {
			continue
		}
		q.Org, q.Dest = org.Name, probe
		if q.Days > 3 {
			q.Dest = w.State(probe)
		}
		q.Dates = window(w.dates[r.IntN(len(w.dates)-q.Days+1)], q.Days)
		return true
	}
	return false
}
