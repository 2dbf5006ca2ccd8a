package compact

import "math"

// leg is one move of a trip.
type leg struct {
	from, to int // cities
	date     int
}

// legs are the moves of a trip through cities with two nights in each.
func (q *Query) legs(cities []int) []leg {
	var out []leg
	at := q.org
	for i, c := range cities {
		out = append(out, leg{at, c, q.out + 2*i})
		at = c
	}
	return append(out, leg{at, q.org, q.back})
}

// tour is a way to spend a trip of two nights a city: its route and what to pick.
type tour struct {
	cities []int
	drive  bool
	rides  []int // by leg: rows, or drives
	hotels []int // by city: rows
	meals  [][]int
	cost   float64 // infinite: not possible
}

// driveTo is the pick of a drive or a taxi ride to a city, in a long plan.
func driveTo(city, mode int) int { return -3 - 2*city - mode }

// driven reads what driveTo wrote.
func driven(row int) (city, mode int) { return (-3 - row) / 2, (-3 - row) % 2 }

// routes lists all orders in which a trip can visit its cities.
func (w *World) routes(q *Query) [][]int {
	all := [][]int{nil}
	for range w.stops {
		var longer [][]int
		for _, r := range all {
		next:
			for _, c := range w.members[q.state] {
				for _, have := range r {
					if have == c {
						continue next
					}
				}
				longer = append(longer, append(append([]int(nil), r...), c))
			}
		}
		all = longer
	}
	return all
}

// flying is the cheapest tour by air, driving the cheapest in one's own car,
// through the same cities. One of them may be impossible or unwanted: its cost
// is infinite then.
func (w *World) tours(q *Query, cities []int) (flying, driving tour) {
	stay := tour{cities: cities}
	for _, c := range cities {
		h, cost := w.cheapestHotelIn(q, c)
		stay.hotels = append(stay.hotels, h)
		stay.cost += cost
	}
	var mealCost float64
	stay.meals, mealCost = w.cheapestMenu(q, cities)
	stay.cost += mealCost
	flying, driving = stay, stay
	driving.drive = true
	cars := float64((q.People + 4) / 5)
	for _, l := range q.legs(cities) {
		f := w.cheapest(w.flightsOn(l.from, l.to, l.date))
		flying.rides = append(flying.rides, f)
		flying.cost += w.rows[f].price * float64(q.People)
		driving.rides = append(driving.rides, driveTo(l.to, modeDrive))
		if rd := w.road(l.from, l.to); rd.ok {
			driving.cost += cars * math.Floor(float64(rd.km)*0.05)
		} else {
			driving.cost = math.Inf(1)
		}
	}
	switch q.ride {
	case 1:
		flying.cost = math.Inf(1)
	case 2:
		driving.cost = math.Inf(1)
	}
	return flying, driving
}

// feasible lists the routes that keep every wish and the budget, and the
// cheapest tour of all.
func (w *World) feasible(q *Query) (routes [][]int, best tour) {
	best.cost = math.Inf(1)
	for _, cities := range w.routes(q) {
		fly, drive := w.tours(q, cities)
		t := fly
		if drive.cost < t.cost {
			t = drive
		}
		if t.cost < best.cost {
			best = t
		}
		if t.cost <= q.Budget {
			routes = append(routes, cities)
		}
	}
	return routes, best
}

// solveLong returns a cheapest plan among those with two nights in every city
// and one kind of transport. Uneven stays and taxis are left out: a query is
// certified by a plan that exists, which this is.
func (w *World) solveLong(q *Query) (Solution, bool) {
	_, best := w.feasible(q)
	if math.IsInf(best.cost, 1) {
		return Solution{Cost: best.cost}, false
	}
	var sights []int
	for _, c := range best.cities {
		sights = append(sights, w.sights[c][0])
	}
	return Solution{Cost: best.cost, picks: best.plan(sights)}, best.cost <= q.Budget
}

// plan puts a tour into its slots, in the order of the days.
func (t *tour) plan(sights []int) []pickOf {
	var p []pickOf
	for i := range t.cities {
		arrive, full := 2*i*slotsPerDay, (2*i+1)*slotsPerDay
		p = append(p, pickOf{arrive + slotRide, t.rides[i]}, pickOf{arrive + slotHotel, t.hotels[i]})
		for k, m := range t.meals[i] {
			p = append(p, pickOf{full + slotBreakfast + k, m})
		}
		p = append(p, pickOf{full + slotSight, sights[i]}, pickOf{full + slotHotel, t.hotels[i]})
	}
	return append(p, pickOf{2*len(t.cities)*slotsPerDay + slotRide, t.rides[len(t.cities)]})
}

// cheapestMenu returns three restaurants in each city that together cover the
// wanted cuisines at the least cost: the best choice in each city for every set
// of cuisines it can cover, then the best way to share the cuisines out.
func (w *World) cheapestMenu(q *Query, cities []int) ([][]int, float64) {
	sets := 1 << len(q.cuisines)
	type menu struct {
		cost  float64
		meals [][]int
	}
	best := make([]menu, sets)
	for s := 1; s < sets; s++ {
		best[s].cost = math.Inf(1)
	}
	for _, c := range cities {
		next := make([]menu, sets)
		for s := range next {
			next[s].cost = math.Inf(1)
		}
		w.threeMeals(c, func(meals [3]int, price float64) {
			covered := 0
			for _, m := range meals {
				for k, taste := range q.cuisines {
					if w.rows[m].taste == taste {
						covered |= 1 << k
					}
				}
			}
			for s, b := range best {
				if u := s | covered; b.cost+price < next[u].cost {
					next[u] = menu{b.cost + price, append(b.meals[:len(b.meals):len(b.meals)], meals[:])}
				}
			}
		})
		best = next
	}
	full := best[sets-1]
	return full.meals, full.cost * float64(q.People)
}

// threeMeals calls f with every three restaurants of a city.
func (w *World) threeMeals(city int, f func(meals [3]int, price float64)) {
	all := w.meals[city]
	for a := range all {
		for b := a + 1; b < len(all); b++ {
			for c := b + 1; c < len(all); c++ {
				f([3]int{all[a], all[b], all[c]}, w.rows[all[a]].price+w.rows[all[b]].price+w.rows[all[c]].price)
			}
		}
	}
}
