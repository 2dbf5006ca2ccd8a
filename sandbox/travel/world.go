package travel

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"math"
	"sync"
)

// City is a city the benchmark knows and the state it lies in.
type City struct{ Name, State string }

// Tables are the rows a [World] is made of, in file order. The order counts:
// where a name is ambiguous the first row is the one that is priced.
type Tables struct {
	Cities      []City
	Flights     []Flight
	Hotels      []Hotel
	Restaurants []Restaurant
	Attractions []Attraction
	Distances   []Distance
}

// World is a set of tables with the indexes that tools and checks need. It
// does not change and is safe for concurrent use. The slices its methods
// return belong to it: read them only.
type World struct {
	cities  []City
	stateOf map[string]string
	inState map[string][]string

	flights     flightTable
	hotels      map[string][]Hotel // by city
	restaurants map[string][]Restaurant
	attractions map[string][]Attraction
	distances   map[route]distanceRow

	hotelByName      map[place]*Hotel // first row of that exact name, without blanks at its ends
	restaurantByName map[place]*Restaurant
	attractionByName map[place]*Attraction

	listings sync.Map // listing → *Result, made at the first call
	hashOnce sync.Once
	hash     string
}

type route struct{ org, dest string }

type place struct{ name, city string }

// NewWorld indexes tables. The tables may be dropped afterwards.
func NewWorld(t Tables) *World {
	return BuildWorld(t, func(add func(*Flight)) {
		for i := range t.Flights {
			add(&t.Flights[i])
		}
	})
}

// BuildWorld is NewWorld for flights that need not all be held at once: each
// hands them over one by one, in file order; t.Flights is left out.
func BuildWorld(t Tables, each func(add func(*Flight))) *World {
	b := newFlightBuilder(len(t.Flights))
	each(b.add)
	return newWorld(t, b.table())
}

func newWorld(t Tables, flights flightTable) *World {
	w := &World{
		cities:           append([]City(nil), t.Cities...),
		stateOf:          make(map[string]string, len(t.Cities)),
		inState:          map[string][]string{},
		flights:          flights,
		hotels:           groupBy(t.Hotels, func(h *Hotel) string { return h.City }),
		restaurants:      groupBy(t.Restaurants, func(r *Restaurant) string { return r.City }),
		attractions:      groupBy(t.Attractions, func(a *Attraction) string { return a.City }),
		distances:        make(map[route]distanceRow, len(t.Distances)),
		hotelByName:      make(map[place]*Hotel, len(t.Hotels)),
		restaurantByName: make(map[place]*Restaurant, len(t.Restaurants)),
		attractionByName: make(map[place]*Attraction, len(t.Attractions)),
	}
	for _, c := range t.Cities {
		w.stateOf[c.Name] = c.State
		w.inState[c.State] = append(w.inState[c.State], c.Name)
	}
	firstByName(w.hotels, w.hotelByName, func(h *Hotel) string { return h.Name })
	firstByName(w.restaurants, w.restaurantByName, func(r *Restaurant) string { return r.Name })
	firstByName(w.attractions, w.attractionByName, func(a *Attraction) string { return a.Name })
	for _, d := range t.Distances {
		key := route{d.Org, d.Dest}
		if _, seen := w.distances[key]; !seen && d.Org != "" && d.Dest != "" {
			w.distances[key] = readDistance(d)
		}
	}
	return w
}

// groupBy copies rows city by city, keeping their order.
func groupBy[T any](rows []T, city func(*T) string) map[string][]T {
	counts := map[string]int{}
	for i := range rows {
		counts[city(&rows[i])]++
	}
	groups := make(map[string][]T, len(counts))
	for i := range rows {
		c := city(&rows[i])
		g, ok := groups[c]
		if !ok {
			g = make([]T, 0, counts[c])
		}
		groups[c] = append(g, rows[i])
	}
	return groups
}

func firstByName[T any](groups map[string][]T, index map[place]*T, name func(*T) string) {
	for city, rows := range groups {
		for i := range rows {
			key := place{trim(name(&rows[i])), city}
			if _, seen := index[key]; !seen {
				index[key] = &rows[i]
			}
		}
	}
}

// Hotels lists the accommodations of a city in file order.
func (w *World) Hotels(city string) []Hotel { return w.hotels[city] }

// Restaurants lists the restaurants of a city in file order.
func (w *World) Restaurants(city string) []Restaurant { return w.restaurants[city] }

// Attractions lists the attractions of a city in file order.
func (w *World) Attractions(city string) []Attraction { return w.attractions[city] }

// Distance returns the distance row of a directed pair of cities.
func (w *World) Distance(org, dest string) (Distance, bool) {
	d, ok := w.distances[route{org, dest}]
	return d.Distance, ok
}

// Hotel returns the first accommodation of exactly this name in a city, or
// nil. Blanks at the ends of a name do not count, here and in the other two.
func (w *World) Hotel(name, city string) *Hotel { return w.hotelByName[place{name, city}] }

// Restaurant returns the first restaurant of exactly this name in a city, or nil.
func (w *World) Restaurant(name, city string) *Restaurant {
	return w.restaurantByName[place{name, city}]
}

// Attraction returns the first attraction of exactly this name in a city, or nil.
func (w *World) Attraction(name, city string) *Attraction {
	return w.attractionByName[place{name, city}]
}

// EachDistance calls yield for every pair of cities that has a distance row,
// in no particular order, until it returns false.
func (w *World) EachDistance(yield func(Distance) bool) {
	for _, d := range w.distances {
		if !yield(d.Distance) {
			return
		}
	}
}

// State returns the state of a city, "" for an unknown one.
func (w *World) State(city string) string { return w.stateOf[city] }

// Known tells whether the city is in the city list.
func (w *World) Known(city string) bool {
	_, ok := w.stateOf[city]
	return ok
}

// CitiesIn lists the cities of a state in file order.
func (w *World) CitiesIn(state string) []string { return w.inState[state] }

// Cities lists all cities in file order.
func (w *World) Cities() []City { return w.cities }

// Hash identifies the world's content: 16 hex digits over all rows in their
// order within a city, route or state. It is computed at the first call.
func (w *World) Hash() string {
	w.hashOnce.Do(func() {
		h := sha256.New()
		for _, c := range w.cities {
			hashText(h, c.Name, c.State)
		}
		for _, c := range sortedKeys(w.hotels) {
			for _, r := range w.hotels[c] {
				hashText(h, c, r.Name, r.RoomType, r.Rules)
				hashNumber(h, r.Price, r.MinNights, float64(r.MaxPeople), r.Rating)
			}
		}
		for _, c := range sortedKeys(w.restaurants) {
			for _, r := range w.restaurants[c] {
				hashText(h, c, r.Name, r.Cuisines)
				hashNumber(h, float64(r.Cost), r.Rating)
			}
		}
		for _, c := range sortedKeys(w.attractions) {
			for _, r := range w.attractions[c] {
				hashText(h, c, r.Name, r.Address, r.Phone, r.Website)
				hashNumber(h, r.Lat, r.Lon)
			}
		}
		for _, k := range sortedRoutes(w.distances) {
			d := w.distances[k]
			hashText(h, d.Org, d.Dest, d.Duration, d.Distance.Distance)
		}
		w.flights.hash(h)
		w.hash = hex.EncodeToString(h.Sum(nil)[:8])
	})
	return w.hash
}

func hashText(h hash.Hash, texts ...string) {
	var n [4]byte
	for _, s := range texts {
		binary.LittleEndian.PutUint32(n[:], uint32(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
}

func hashNumber(h hash.Hash, numbers ...float64) {
	var b [8]byte
	for _, x := range numbers {
		binary.LittleEndian.PutUint64(b[:], math.Float64bits(x))
		h.Write(b[:])
	}
}
