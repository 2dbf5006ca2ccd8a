package synth

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"alidade/sandbox/travel"
)

// Window is the span of days for which flights are generated.
type Window struct {
	First time.Time
	Days  int
}

// March is the month that the benchmark's own queries lie in; HalfYear is
// what Agent-STAR's sampler draws from and about what the public table has.
func March() Window { return Window{time.Date(2022, time.March, 1, 0, 0, 0, 0, time.UTC), 31} }

// HalfYear is January to June 2022.
func HalfYear() Window { return Window{time.Date(2022, time.January, 1, 0, 0, 0, 0, time.UTC), 181} }

// dates lists the window's days.
func (w Window) dates() []string {
	out := make([]string, w.Days)
	for i := range out {
		out[i] = w.First.AddDate(0, 0, i).Format(time.DateOnly)
	}
	return out
}

// flightPairs is how many ordered pairs of cities a world has flights
// between: about what the public table has on a day.
const flightPairs = 4200

// AddFlights generates flights for every day of March 2022 between cities
// that have a distance row, with the measured shape: 1 to 33 a route and day,
// median 3, price 0.20 to 0.50 $ a mile. Routes exist in both directions, as
// in the public data. It replaces t.Flights.
func AddFlights(t *travel.Tables, seed uint64) {
	t.Flights = make([]travel.Flight, 0, flightPairs*March().Days*5)
	eachFlight(t, seed, March(), func(f *travel.Flight) { t.Flights = append(t.Flights, *f) })
}

// eachFlight is AddFlights for any window, one flight at a time.
func eachFlight(t *travel.Tables, seed uint64, window Window, take func(*travel.Flight)) {
	r := rng(seed, "flights")
	state := map[string]string{}
	for _, c := range t.Cities {
		state[c.Name] = c.State
	}
	dist := map[[2]string]float64{}
	var pairs [][2]string
	for _, d := range t.Distances {
		km, ok := parseKM(d.Distance)
		if !ok || state[d.Org] == "" || state[d.Dest] == "" {
			continue
		}
		dist[[2]string{d.Org, d.Dest}] = km
		if d.Org < d.Dest && state[d.Org] != state[d.Dest] {
			pairs = append(pairs, [2]string{d.Org, d.Dest})
		}
	}
	// Within a state, cities are linked more thinly: trips there go by road.
	for _, d := range t.Distances {
		if d.Org < d.Dest && state[d.Org] == state[d.Dest] && state[d.Org] != "" && r.IntN(100) < 30 {
			if _, ok := dist[[2]string{d.Org, d.Dest}]; ok {
				pairs = append(pairs, [2]string{d.Org, d.Dest})
			}
		}
	}
	r.Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
	pairs = pairs[:min(len(pairs), flightPairs/2)]
	a := airline{r: r, days: window.dates(), number: 3500000, take: take, elapsed: map[int]string{}}
	for i := range a.clock {
		a.clock[i] = clock(i)
	}
	for _, p := range pairs {
		for _, leg := range [2][2]string{p, {p[1], p[0]}} {
			km, ok := dist[leg]
			if !ok {
				km = dist[p]
			}
			a.fly(leg, km/kmPerMile/roadFactor)
		}
	}
}

// airline makes the flights of routes.
type airline struct {
	r       *rand.Rand
	days    []string
	number  int
	take    func(*travel.Flight)
	clock   [1440]string
	elapsed map[int]string
}

// fly makes one directed route's flights on all days.
func (a *airline) fly(leg [2]string, miles float64) {
	r := a.r
	busy := math.Exp(r.NormFloat64()*0.7 + math.Log(3.5)) // flights a day
	for _, day := range a.days {
		n := int(math.Round(busy * (0.7 + 0.6*r.Float64())))
		n = min(n, 33)
		for range n {
			mins := int(miles/8) + 25 + r.IntN(20)
			dep := 300 + r.IntN(1080)
			a.number++
			took, ok := a.elapsed[mins]
			if !ok {
				took = elapsed(mins)
				a.elapsed[mins] = took
			}
			a.take(&travel.Flight{
				Number: "F" + strconv.Itoa(a.number + 10_000_000)[1:], Price: max(25, int(miles*(0.2+0.3*r.Float64()))),
				Dep: a.clock[dep%1440], Arr: a.clock[(dep+mins)%1440], Elapsed: took, Date: day,
				Org: leg[0], Dest: leg[1], Distance: math.Round(miles),
			})
		}
	}
}

func clock(mins int) string { mins %= 1440; return fmt.Sprintf("%02d:%02d", mins/60, mins%60) }

func elapsed(mins int) string {
	if mins < 60 {
		return fmt.Sprintf("%d minutes", mins)
	}
	return fmt.Sprintf("%d hours %d minutes", mins/60, mins%60)
}

// parseKM reads "1,433 km".
func parseKM(s string) (float64, bool) {
	num, ok := strings.CutSuffix(s, " km")
	if !ok {
		return 0, false
	}
	x, err := strconv.ParseFloat(strings.ReplaceAll(num, ",", ""), 64)
	return x, err == nil
}
