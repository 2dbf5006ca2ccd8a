package compact

import (
	"math"
	"math/rand/v2"
)

// A pick fills one slot of a plan.
type pickOf struct {
	slot int // 0 ≤ slot < slotTokens: day × kind
	row  int // index into the world's rows, or rideDrive, rideTaxi
}

const (
	rideDrive = -1
	rideTaxi  = -2
)

// The slots a plan needs in a 3-day round trip, and the optional dinner.
const (
	goRide     = 0*slotsPerDay + slotRide
	goDinner   = 0*slotsPerDay + slotDinner
	goHotel    = 0*slotsPerDay + slotHotel
	midMeal    = 1*slotsPerDay + slotBreakfast // and the two after it
	midSight   = 1*slotsPerDay + slotSight
	midHotel   = 1*slotsPerDay + slotHotel
	returnRide = 2*slotsPerDay + slotRide
)

// Solution is a cheapest plan for a query.
type Solution struct {
	Cost  float64
	picks []pickOf
}

// Solve returns a cheapest plan that satisfies every wish, and whether it
// keeps the budget. For three days it is exact: the parts of a nano trip (ride, hotel, three
// meals of day 2) do not interact except through the sum.
func (w *World) Solve(q *Query) (Solution, bool) {
	if w.long() {
		return w.solveLong(q)
	}
	ride, rideCost := w.cheapestRide(q)
	hotel, hotelCost := w.cheapestHotel(q)
	meals, mealCost := w.cheapestMeals(q)
	s := Solution{Cost: rideCost + hotelCost + mealCost}
	if math.IsInf(s.Cost, 1) {
		return s, false
	}
	s.picks = plan(ride, hotel, meals, -1, w.sights[q.dest][0])
	return s, s.Cost <= q.Budget
}

// plan puts picks into their slots. dinner < 0 leaves the first evening free.
func plan(ride [2]int, hotel int, meals []int, dinner, sight int) []pickOf {
	p := []pickOf{{goRide, ride[0]}}
	if dinner >= 0 {
		p = append(p, pickOf{goDinner, dinner})
	}
	p = append(p, pickOf{goHotel, hotel})
	for i, m := range meals {
		p = append(p, pickOf{midMeal + i, m})
	}
	return append(p, pickOf{midSight, sight}, pickOf{midHotel, hotel}, pickOf{returnRide, ride[1]})
}

// cheapestRide returns the way there and back. Driving and flying do not mix,
// and a taxi is only ever mixed with flights, which is never cheaper here
// than the better of two pure choices unless only one taxi ride is cheap.
func (w *World) cheapestRide(q *Query) ([2]int, float64) {
	best, cost := [2]int{}, math.Inf(1)
	try := func(ride [2]int, c float64) {
		if c < cost {
			best, cost = ride, c
		}
	}
	there, home := w.road(q.org, q.dest), w.road(q.dest, q.org)
	if q.ride != 2 && there.ok && home.ok {
		cars := float64((q.People + 4) / 5)
		try([2]int{rideDrive, rideDrive}, cars*(math.Floor(float64(there.km)*0.05)+math.Floor(float64(home.km)*0.05)))
	}
	legs := [2][2]float64{} // leg → flight, taxi
	flights := [2]int{}
	for leg, from := range [2][3]int{{q.org, q.dest, q.out}, {q.dest, q.org, q.back}} {
		legs[leg] = [2]float64{math.Inf(1), math.Inf(1)}
		if q.ride != 1 {
			f := w.cheapest(w.flightsOn(from[0], from[1], from[2]))
			flights[leg], legs[leg][0] = f, w.rows[f].price*float64(q.People)
		}
		if rd := w.road(from[0], from[1]); rd.ok {
			legs[leg][1] = float64(rd.km * ((q.People + 3) / 4))
		}
	}
	for a := range 2 {
		for b := range 2 {
			ride := [2]int{flights[0], flights[1]}
			if a == 1 {
				ride[0] = rideTaxi
			}
			if b == 1 {
				ride[1] = rideTaxi
			}
			try(ride, legs[0][a]+legs[1][b])
		}
	}
	return best, cost
}

func (w *World) cheapest(rows []int) int {
	best := rows[0]
	for _, i := range rows {
		if w.rows[i].price < w.rows[best].price {
			best = i
		}
	}
	return best
}

// validHotels returns the hotels of a city that satisfy q's wishes for two
// nights.
func (w *World) validHotels(q *Query, city int) []int {
	var ok []int
	for _, h := range w.hotels[city] {
		row := &w.rows[h]
		if stayNights[row.stay/len(stayPeople)] <= days-1 && q.roomOK(row) && q.ruleOK(row) {
			ok = append(ok, h)
		}
	}
	return ok
}

func (w *World) cheapestHotel(q *Query) (int, float64) { return w.cheapestHotelIn(q, q.dest) }

// cheapestHotelIn is the cheapest hotel of a city that satisfies q for two
// nights, and what they cost; -1 if there is none.
func (w *World) cheapestHotelIn(q *Query, city int) (int, float64) {
	best, cost := -1, math.Inf(1)
	for _, h := range w.validHotels(q, city) {
		if c := 2 * w.rows[h].price * q.units(&w.rows[h]); c < cost {
			best, cost = h, c
		}
	}
	return best, cost
}

// cheapestMeals returns three different restaurants that cover the wanted
// cuisines (every restaurant has one, no two the same).
func (w *World) cheapestMeals(q *Query) ([]int, float64) {
	var must, rest []int
	for _, m := range w.meals[q.dest] {
		if q.wants(w.rows[m].taste) {
			must = append(must, m)
		} else {
			rest = append(rest, m)
		}
	}
	if len(must) < len(q.cuisines) {
		return nil, math.Inf(1)
	}
	for len(must) < 3 {
		m := w.cheapest(rest)
		must = append(must, m)
		rest = without(rest, m)
	}
	cost := 0.0
	for _, m := range must {
		cost += w.rows[m].price * float64(q.People)
	}
	return must, cost
}

func without(rows []int, drop int) []int {
	var out []int
	for _, i := range rows {
		if i != drop {
			out = append(out, i)
		}
	}
	return out
}

func oneOf(r *rand.Rand, rows []int) int { return rows[r.IntN(len(rows))] }
