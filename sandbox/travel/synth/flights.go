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

// The generated flights cover this window: the month that the benchmark's own
// queries lie in.
var firstDay = time.Date(2022, time.March, 1, 0, 0, 0, 0, time.UTC)

const flightDays = 31

// dates lists the window's days.
func dates() []string {
	out := make([]string, flightDays)
	for i := range out {
		out[i] = firstDay.AddDate(0, 0, i).Format(time.DateOnly)
	}
	return out
}

// flightPairs is how many ordered pairs of cities a world has flights
// between: about what the public table has on a day.
const flightPairs = 4200

// AddFlights generates flights between cities that have a distance row, with
// the measured shape: 1 to 33 a route and day, median 3, price 0.20 to 0.50 $
// a mile. Routes exist in both directions, as in the public data. It replaces
// t.Flights.
func AddFlights(t *travel.Tables, seed uint64) {
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
	days := dates()
	t.Flights = make([]travel.Flight, 0, len(pairs)*2*flightDays*5)
	number := 3500000
	for _, p := range pairs {
		for _, leg := range [2][2]string{p, {p[1], p[0]}} {
			km, ok := dist[leg]
			if !ok {
				km = dist[p]
			}
			t.Flights = route(r, t.Flights, leg, km/kmPerMile/roadFactor, days, &number)
		}
	}
}

// route appends one directed route's flights on all days.
func route(r *rand.Rand, out []travel.Flight, leg [2]string, miles float64, days []string, number *int) []travel.Flight {
	busy := math.Exp(r.NormFloat64()*0.7 + math.Log(3.5)) // flights a day
	for _, day := range days {
		n := int(math.Round(busy * (0.7 + 0.6*r.Float64())))
		n = min(n, 33)
		for range n {
			mins := int(miles/8) + 25 + r.IntN(20)
			dep := 300 + r.IntN(1080)
			*number++
			out = append(out, travel.Flight{
				Number: fmt.Sprintf("F%07d", *number), Price: max(25, int(miles*(0.2+0.3*r.Float64()))),
				Dep: clock(dep), Arr: clock(dep + mins), Elapsed: elapsed(mins), Date: day,
				Org: leg[0], Dest: leg[1], Distance: math.Round(miles),
			})
		}
	}
	return out
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
