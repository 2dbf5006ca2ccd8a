package compact

import (
	"fmt"
	"math"
	"math/rand/v2"

	"alidade/sandbox/travel"
)

// Cities a nano world can have.
const (
	MinCities = 12
	MaxCities = 60
)

// Rows of a city or a connection.
const (
	flightsEach = 3
	hotelsEach  = 4
	mealsEach   = 6
	sightsEach  = 3
)

// Middle prices of the levels, in dollars. Prices vary by 4% within a level,
// so levels never overlap.
var (
	farePrices  = [PriceLevels]int{64, 96, 132, 176, 230, 292, 364, 448}
	hotelPrices = [PriceLevels]int{58, 96, 142, 205, 290, 400, 560, 780}
	mealPrices  = [PriceLevels]int{12, 18, 25, 34, 45, 58, 74, 96}
)

// kind is what a row describes.
type kind uint8

const (
	kindFlight kind = iota
	kindHotel
	kindMeal
	kindSight
)

// row is one row of the world's tables as the compact language sees it.
type row struct {
	kind  kind
	level int // price level, or the kind of attraction
	price float64
	name  string // as plans write it: flight number or name
	city  int    // of a flight: the destination
	from  int    // of a flight
	date  int    // of a flight
	room  int    // of a hotel, index into roomTypes
	rule  int    // of a hotel, index into ruleWords
	stay  int    // of a hotel: nights×5 + occupancy
	taste int    // of a restaurant, index into cuisineWords
	text  string // of a flight: what a plan writes
}

// road is a directed row of the distance table.
type road struct {
	ok       bool // there is a row with a cost
	km       int
	duration string
	distance string
}

// World is a nano world: travel tables, and the same rows indexed for tokens.
// It never changes and may be used by many goroutines.
type World struct {
	Travel *travel.World // the tables, for the tools and the judge

	cities  []travel.City
	dates   [DateTokens]string
	rows    []row
	flights [][]int // (from×cities + to)×dates + date → rows
	hotels  [][]int // city → rows
	meals   [][]int
	sights  [][]int
	roads   []road // from×cities + to
	code    map[string]int

	days, stops int     // of its trips
	members     [][]int // state → cities; of longer trips only
	stateOf     []int   // city → state
}

// NewWorld generates the nano world of a data seed, for trips of three days.
func NewWorld(seed uint64, cities int) (*World, error) {
	if cities < MinCities || cities > MaxCities {
		return nil, fmt.Errorf("environment.cities: %d: a nano world has %d to %d cities", cities, MinCities, MaxCities)
	}
	r := Rand(seed, forWorld, uint64(cities))
	w := &World{code: map[string]int{}, days: days, stops: 1}
	for i, name := range cityNames(r, cities) {
		w.cities = append(w.cities, travel.City{Name: name, State: states[i%max(3, cities/4)%len(states)]})
		w.code[name] = i
	}
	for i := range w.dates {
		w.dates[i] = fmt.Sprintf("2022-03-%02d", i+5)
	}
	t := travel.Tables{Cities: w.cities}
	w.addRoads(r, &t)
	w.addFlights(r, &t)
	for c := range w.cities {
		w.addCity(r, &t, c)
	}
	w.Travel = travel.NewWorld(t)
	return w, nil
}

// Cities returns the number of cities.
func (w *World) Cities() int { return len(w.cities) }

// addRoads places the cities on a map of 2400 × 1500 km and measures the
// roads between them. Journeys of more than a day have no cost, a few
// connections are unknown: half of all pairs can be driven.
func (w *World) addRoads(r *rand.Rand, t *travel.Tables) {
	n := len(w.cities)
	x, y := make([]float64, n), make([]float64, n)
	for i := range n {
		x[i], y[i] = r.Float64()*2400, r.Float64()*1500
	}
	w.roads = make([]road, n*n)
	for a := range n {
		for b := range n {
			if a == b || r.IntN(25) == 0 {
				continue
			}
			km := int(math.Hypot(x[a]-x[b], y[a]-y[b])*(1.15+0.1*r.Float64())) + 40
			minutes := km * 60 / 68
			d := road{ok: minutes < 24*60, km: km, distance: thousands(km) + " km"}
			switch {
			case !d.ok:
				d.duration = fmt.Sprintf("%d day %d hours", minutes/1440, minutes%1440/60)
			case minutes < 60:
				d.duration = fmt.Sprintf("%d mins", minutes)
			default:
				d.duration = fmt.Sprintf("%d hours %d mins", minutes/60, minutes%60)
			}
			w.roads[a*n+b] = d
			t.Distances = append(t.Distances, travel.Distance{
				Org: w.cities[a].Name, Dest: w.cities[b].Name, Duration: d.duration, Distance: d.distance})
		}
	}
}

func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}

func (w *World) addFlights(r *rand.Rand, t *travel.Tables) {
	n := len(w.cities)
	w.flights = make([][]int, n*n*DateTokens)
	number := 3500000
	for a := range n {
		for b := range n {
			if a == b {
				continue
			}
			for d := range DateTokens {
				at := (a*n+b)*DateTokens + d
				for _, level := range r.Perm(PriceLevels)[:flightsEach] {
					number += 1 + r.IntN(40)
					w.flights[at] = append(w.flights[at], w.addFlight(r, t, a, b, d, level, number))
				}
			}
		}
	}
}

func (w *World) addFlight(r *rand.Rand, t *travel.Tables, a, b, date, level, number int) int {
	miles := 200 + r.IntN(1400)
	took := 40 + miles/8
	dep := 5*60 + r.IntN(17*60)
	f := travel.Flight{
		Number: fmt.Sprintf("F%07d", number), Price: jitter(r, farePrices[level]), Date: w.dates[date],
		Dep: clock(dep), Arr: clock(dep + took), Elapsed: fmt.Sprintf("%d hours %d minutes", took/60, took%60),
		Org: w.cities[a].Name, Dest: w.cities[b].Name, Distance: float64(miles),
	}
	t.Flights = append(t.Flights, f)
	return w.add(row{kind: kindFlight, level: level, price: float64(f.Price), name: f.Number, from: a, city: b, date: date,
		text: fmt.Sprintf("Flight Number: %s, from %s to %s, Departure Time: %s, Arrival Time: %s", f.Number, f.Org, f.Dest, f.Dep, f.Arr)})
}

func clock(minutes int) string { return fmt.Sprintf("%02d:%02d", minutes/60%24, minutes%60) }

func jitter(r *rand.Rand, price int) int {
	return int(math.Round(float64(price) * (0.96 + 0.08*r.Float64())))
}

// addCity fills a city with hotels, restaurants and attractions.
func (w *World) addCity(r *rand.Rand, t *travel.Tables, c int) {
	city := w.cities[c].Name
	taken := map[string]bool{}
	fresh := func(name func() string) string {
		for {
			if s := name(); !taken[s] {
				taken[s] = true
				return s
			}
		}
	}
	w.hotels = append(w.hotels, nil)
	w.meals = append(w.meals, nil)
	w.sights = append(w.sights, nil)
	for i, level := range r.Perm(PriceLevels)[:hotelsEach] {
		// 40% want three nights, which a 3-day trip never stays; the
		// first two never do.
		nights := r.IntN(2)
		if i > 1 && r.Float64() < 0.8 {
			nights = 2
		}
		room := []int{0, 0, 0, 1, 1, 1, 2}[r.IntN(7)]
		rule, cap := r.IntN(len(ruleWords)), r.IntN(len(stayPeople))
		h := travel.Hotel{
			Name: fresh(func() string { return hotelName(r, city) }), Price: float64(jitter(r, hotelPrices[level])),
			RoomType: roomTypes[room], Rules: ruleWords[rule], MinNights: float64(stayNights[nights]),
			MaxPeople: stayPeople[cap], Rating: float64(1 + r.IntN(5)), City: city,
		}
		t.Hotels = append(t.Hotels, h)
		w.hotels[c] = append(w.hotels[c], w.add(row{kind: kindHotel, level: level, price: h.Price, name: h.Name,
			city: c, room: room, rule: rule, stay: nights*len(stayPeople) + cap}))
	}
	r.Shuffle(hotelsEach, func(i, j int) { w.hotels[c][i], w.hotels[c][j] = w.hotels[c][j], w.hotels[c][i] })
	levels := r.Perm(PriceLevels)
	for i, taste := range r.Perm(len(cuisineWords))[:mealsEach] {
		m := travel.Restaurant{
			Name: fresh(func() string { return mealName(r, taste, city) }), Cost: jitter(r, mealPrices[levels[i]]),
			Cuisines: cuisineWords[taste], Rating: math.Round(20+29*r.Float64()) / 10, City: city,
		}
		t.Restaurants = append(t.Restaurants, m)
		w.meals[c] = append(w.meals[c], w.add(row{kind: kindMeal, level: levels[i], price: float64(m.Cost), name: m.Name, city: c, taste: taste}))
	}
	for _, what := range r.Perm(len(sightWords))[:sightsEach] {
		a := travel.Attraction{
			Name: fresh(func() string { return sightName(r, what) }), Lat: 30 + 15*r.Float64(), Lon: -120 + 40*r.Float64(),
			Address: fmt.Sprintf("%d %s St, %s", 1+r.IntN(999), pick(r, cityHeads), city),
			Phone:   fmt.Sprintf("(555) 01%d-%04d", r.IntN(10), r.IntN(10000)),
			Website: fmt.Sprintf("https://example.org/%d-%d", c, what), City: city,
		}
		t.Attractions = append(t.Attractions, a)
		w.sights[c] = append(w.sights[c], w.add(row{kind: kindSight, level: what, name: a.Name, city: c}))
	}
}

func (w *World) add(r row) int {
	w.rows = append(w.rows, r)
	return len(w.rows) - 1
}

func (w *World) road(a, b int) road { return w.roads[a*len(w.cities)+b] }

func (w *World) flightsOn(a, b, date int) []int {
	return w.flights[(a*len(w.cities)+b)*DateTokens+date]
}
