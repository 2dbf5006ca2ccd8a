package synth

import (
	"slices"

	"alidade/sandbox/travel"
)

// World is a travel world with what sampling needs beside look-ups: the routes
// that have flights and the price statistics of the budget rule. It is
// immutable and safe for concurrent use.
type World struct {
	*travel.World
	cities   []travel.City
	routes   [][2]string             // ordered pairs with flights, sorted
	fares    map[[2]string]stats     // over all dates
	sights   map[string][]string     // city → distinct names, file order
	eats     map[string][]restaurant // city → first row of each name
	beds     map[string][]travel.Hotel
	dates    []string // with flights, sorted
	drivable map[[2]string]travel.Distance
	states   map[string]int // cities by state
	wide     []string       // states of more than three cities, in the order of their fourth
}

// restaurant is a row with its cuisines as a bit set over cuisines.
type restaurant struct {
	travel.Restaurant
	food uint16
}

// stats are the least, mean and largest of some prices.
type stats struct {
	min, max, sum float64
	n             int
}

func (s *stats) add(x float64) {
	if s.n == 0 || x < s.min {
		s.min = x
	}
	if s.n == 0 || x > s.max {
		s.max = x
	}
	s.sum += x
	s.n++
}

func (s stats) mean() float64 { return s.sum / float64(s.n) }

// NewWorld indexes tables.
func NewWorld(t travel.Tables) *World { return FromWorld(travel.NewWorld(t)) }

// FromWorld adds the index to a world.
func FromWorld(tw *travel.World) *World {
	w := &World{
		World: tw, cities: tw.Cities(), fares: map[[2]string]stats{}, sights: map[string][]string{},
		eats: map[string][]restaurant{}, beds: map[string][]travel.Hotel{}, drivable: map[[2]string]travel.Distance{},
	}
	days := map[string]bool{}
	tw.EachRoute(func(org, dest, date string, prices []int32) bool {
		if !tw.Known(org) || !tw.Known(dest) {
			return true
		}
		k := [2]string{org, dest}
		s, ok := w.fares[k]
		if !ok {
			w.routes = append(w.routes, k)
		}
		for _, p := range prices {
			s.add(float64(p))
		}
		w.fares[k] = s
		days[date] = true
		return true
	})
	for d := range days {
		w.dates = append(w.dates, d)
	}
	slices.Sort(w.dates)
	slices.SortFunc(w.routes, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	for _, c := range w.cities {
		w.indexPlaces(c.Name)
	}
	tw.EachDistance(func(d travel.Distance) bool {
		if _, ok := travel.DriveCost(d, 1); ok && tw.Known(d.Org) && tw.Known(d.Dest) {
			w.drivable[[2]string{d.Org, d.Dest}] = d
		}
		return true
	})
	w.states = map[string]int{}
	for _, c := range w.cities {
		if w.states[c.State]++; w.states[c.State] == 4 {
			w.wide = append(w.wide, c.State)
		}
	}
	return w
}

// indexPlaces keeps the first row of each name in a city: a plan can only
// name a place, and the checks price its first row.
func (w *World) indexPlaces(city string) {
	seen := map[string]bool{}
	for _, r := range w.Restaurants(city) {
		if usable(r.Name) && !seen[r.Name] {
			seen[r.Name] = true
			w.eats[city] = append(w.eats[city], restaurant{r, foodBits(r.Cuisines)})
		}
	}
	clear(seen)
	for _, a := range w.Attractions(city) {
		if usable(a.Name) && !seen[a.Name] {
			seen[a.Name] = true
			w.sights[city] = append(w.sights[city], a.Name)
		}
	}
	clear(seen)
	for _, h := range w.Hotels(city) {
		if usable(h.Name) && !seen[h.Name] {
			seen[h.Name] = true
			w.beds[city] = append(w.beds[city], h)
		}
	}
}

// usable tells whether a name survives being written into a plan and parsed
// back out: "-" and names with a separator or odd spacing do not.
func usable(name string) bool {
	if name == "" || name == "-" || name[0] == ' ' || name[len(name)-1] == ' ' {
		return false
	}
	for i := range len(name) {
		if name[i] == ';' || name[i] == '\n' || name[i] == '(' {
			return false
		}
	}
	return true
}

// Dates lists the days that have flights, in order.
func (w *World) Dates() []string { return slices.Clone(w.dates) }

// NumRoutes is the number of ordered pairs of cities with flights.
func (w *World) NumRoutes() int { return len(w.routes) }

// CityList returns the cities of the world.
func (w *World) CityList() []travel.City { return slices.Clone(w.cities) }

// candidates are the cities a trip may visit: dest itself, or all cities of a state.
func (w *World) candidates(q travel.Query) []string {
	if q.Days == 3 {
		return []string{q.Dest}
	}
	return w.CitiesIn(q.Dest)
}
