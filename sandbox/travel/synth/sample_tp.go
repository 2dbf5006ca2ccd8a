package synth

import (
	"math/rand/v2"
	"strings"

	"alidade/sandbox/travel"
)

// TravelPlanner's own sampler draws any departure city and any destination in
// another state; only the budget rule then asks what is on offer.

// tpCuisines are those a query may ask for.
var tpCuisines = []string{"Chinese", "American", "Italian", "Mexican", "Indian", "Mediterranean", "French"}

// drawTravelPlanner fills in everything but the budget; false means no such trip.
func (w *World) drawTravelPlanner(r *rand.Rand, q *travel.Query) bool {
	dates := w.marchDates()
	if len(dates) < q.Days || len(w.wide) == 0 {
		return false
	}
	if q.Level != "easy" {
		q.People = people(r)
	}
	tpWishes(r, q)
	org := pick(r, w.cities)
	q.Org = org.Name
	if q.Days == 3 {
		dest := pick(r, w.cities)
		if dest.State == org.State {
			return false
		}
		q.Dest = dest.Name
	} else {
		q.Dest = pick(r, w.wide)
		if q.Dest == org.State {
			return false
		}
	}
	q.Dates = window(dates[r.IntN(len(dates)-q.Days+1)], q.Days)
	return true
}

// marchDates are the world's dates within March, or all when it has none there.
func (w *World) marchDates() []string {
	var march []string
	for _, d := range w.dates {
		if strings.HasPrefix(d, "2022-03-") {
			march = append(march, d)
		}
	}
	if len(march) == 0 {
		return w.dates
	}
	return march
}

// tpWishes draws the constraints of a level: one of three, or three of four.
func tpWishes(r *rand.Rand, q *travel.Query) {
	switch q.Level {
	case "medium":
		tpWish(r, q, pick(r, []string{"house rule", "cuisine", "room type"}))
	case "hard":
		kinds, weights := []string{"house rule", "cuisine", "room type", "transportation"}, []float64{0.3, 0.1, 0.3, 0.3}
		var chosen []string
		for range 3 {
			chosen = append(chosen, weighted(r, kinds, weights, chosen))
		}
		for _, kind := range chosen {
			tpWish(r, q, kind)
		}
	}
}

func tpWish(r *rand.Rand, q *travel.Query, kind string) {
	switch kind {
	case "house rule":
		ruleWish(r, q)
	case "room type":
		roomWish(r, q)
	case "transportation":
		q.Wish.Transportation = pick(r, []string{"no self-driving", "no flight"})
	case "cuisine":
		n := 2
		if q.Level == "hard" {
			n = 4
		}
		q.Wish.Cuisine = someOf(r, tpCuisines, n)
	}
}
