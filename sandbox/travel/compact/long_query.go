package compact

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// drawLong samples the elements of a five- or seven-day query, as draw does for
// three days: the destination is a state, and the budget is the benchmark's rule
// over all of its cities.
func (w *World) drawLong(r *rand.Rand, level int, budgetFactor float64) *Query {
	q := &Query{dest: -1}
	q.Level, q.Days, q.Cities = Levels[level], w.days, w.stops
	q.org, q.state = r.IntN(len(w.cities)), r.IntN(len(w.members))
	if w.stateOf[q.org] == q.state || len(w.members[q.state]) < w.stops {
		return nil
	}
	q.out = r.IntN(DateTokens - w.days + 1)
	q.back = q.out + w.days - 1
	q.People = 1
	if level > 0 {
		q.People = 2
		if r.IntN(2) == 0 {
			q.People = 3 + r.IntN(maxPeople-2)
		}
	}
	if !w.constrain(r, q, level) {
		return nil
	}
	factor := [3]float64{1, float64(q.People) * 0.75, float64(q.People) * 0.5}[level]
	base, ok := w.budgetLong(q)
	if !ok {
		return nil
	}
	q.Budget = math.RoundToEven(base*factor*budgetFactor/100) * 100
	w.fillLong(q)
	q.Text = describe(r, q)
	q.Key = q.Hash()
	return q
}

// budgetLong is the benchmark's budget rule for five days (its average estimate:
// 3 fares, 5 nights, 15 meals) and seven days (the mean of average and highest: 4,
// 7 and 21), before the factor. Fares are of the trip's dates, or a drive to the
// state's first city that can be driven to.
func (w *World) budgetLong(q *Query) (float64, bool) {
	var fares, nights, meals stat
	for _, c := range w.members[q.state] {
		if q.ride == 1 {
			if rd := w.road(q.org, c); rd.ok && fares.n == 0 {
				fares.add(math.Floor(float64(rd.km) * 0.05))
			}
		} else {
			for d := q.out; d <= q.back; d++ {
				for _, f := range w.flightsOn(q.org, c, d) {
					fares.add(w.rows[f].price)
				}
			}
		}
		for _, h := range w.hotels[c] {
			if row := &w.rows[h]; stayPeople[row.stay%len(stayPeople)] >= q.People && q.roomOK(row) && q.ruleOK(row) {
				nights.add(row.price)
			}
		}
		for _, m := range w.meals[c] {
			if row := &w.rows[m]; len(q.cuisines) == 0 || q.wants(row.taste) {
				meals.add(row.price)
			}
		}
	}
	if fares.n == 0 || nights.n == 0 || meals.n == 0 {
		return 0, false
	}
	f, h, m := float64(w.stops+1), float64(w.days), float64(3*w.days)
	average := f*fares.mean() + h*nights.mean() + m*meals.mean()
	if w.days == 5 {
		return average, true
	}
	return (average + f*fares.high + h*nights.high + m*meals.high) / 2, true
}

// fillLong writes the indices as the benchmark's fields.
func (w *World) fillLong(q *Query) {
	q.Org, q.Dest = w.cities[q.org].Name, w.cities[w.members[q.state][0]].State
	for d := q.out; d <= q.back; d++ {
		q.Dates = append(q.Dates, w.dates[d])
	}
	q.wish()
}

// opening is the first sentence of a longer trip, in one of three phrasings.
func (q *Query) opening(way int, who string) string {
	last := q.Dates[len(q.Dates)-1]
	switch way {
	case 0:
		return fmt.Sprintf("Please plan a %d-day trip from %s to %d cities in %s, from %s to %s. %s", q.Days, q.Org, q.Cities, q.Dest, q.Dates[0], last, who)
	case 1:
		return fmt.Sprintf("I need a %d-day itinerary: leaving %s on %s, visiting %d cities of %s, back home on %s. %s", q.Days, q.Org, q.Dates[0], q.Cities, q.Dest, last, who)
	}
	return fmt.Sprintf("Could you arrange %d days in %s for me, with %d cities to see, %s to %s, starting in %s? %s", q.Days, q.Dest, q.Cities, q.Dates[0], last, q.Org, who)
}
