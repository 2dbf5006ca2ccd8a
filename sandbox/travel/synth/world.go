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
func NewWorld(t travel.Tables) *World {
	w := &World{
		World: travel.NewWorld(t), fares: map[[2]string]stats{}, sights: map[string][]string{},
		eats: map[string][]restaurant{}, beds: map[string][]travel.Hotel{}, drivable: map[[2]string]travel.Distance{},
	}
	known := map[string]bool{}
	for _, c := range t.Cities {
		known[c.Name] = true
		w.cities = append(w.cities, c)
	}
	days := map[string]bool{}
	for _, f := range t.Flights {
		if !known[f.Org] || !known[f.Dest] {
			continue
		}
		k := [2]string{f.Org, f.Dest}
		s, ok := w.fares[k]
		if !ok {
			w.routes = append(w.routes, k)
		}
		s.add(float64(f.Price))
		w.fares[k] = s
		days[f.Date] = true
	}
	for d := range days {
		w.dates = append(w.dates, d)
	}
	slices.Sort(w.dates)
	slices.SortFunc(w.routes, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	w.indexPlaces(t)
	for _, d := range t.Distances {
		if !known[d.Org] || !known[d.Dest] {
			continue
		}
		if _, ok := travel.DriveCost(d, 1); ok {
			if k := [2]string{d.Org, d.Dest}; w.drivable[k].Org == "" {
				w.drivable[k] = d
			}
		}
	}
	return w
}

// indexPlaces keeps the first row of each name in a city: a plan can only
// name a place, and the checks price its first row.
func (w *World) indexPlaces(t travel.Tables) {
	type place struct{ city, name string }
	seen := map[place]bool{}
	for _, r := range t.Restaurants {
		if p := (place{r.City, r.Name}); usable(r.Name) && !seen[p] {
			seen[p] = true
			w.eats[r.City] = append(w.eats[r.City], restaurant{r, foodBits(r.Cuisines)})
		}
	}
	clear(seen)
	for _, a := range t.Attractions {
		if p := (place{a.City, a.Name}); usable(a.Name) && !seen[p] {
			seen[p] = true
			w.sights[a.City] = append(w.sights[a.City], a.Name)
		}
	}
	clear(seen)
	for _, h := range t.Hotels {
		if p := (place{h.City, h.Name}); usable(h.Name) && !seen[p] {
			seen[p] = true
			w.beds[h.City] = append(w.beds[h.City], h)
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

// CityList returns the cities of the world.
func (w *World) CityList() []travel.City { return slices.Clone(w.cities) }

// candidates are the cities a trip may visit: dest itself, or all cities of a state.
func (w *World) candidates(q travel.Query) []string {
	if q.Days == 3 {
		return []string{q.Dest}
	}
	return w.CitiesIn(q.Dest)
}
