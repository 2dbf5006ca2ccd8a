package synth

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"alidade/sandbox/travel"
)

// Shape of the generated tables. The figures are those measured on the public
// data's destination cities (counts, shares, ranges).
const (
	maxCities  = 312
	kmPerMile  = 1.609344
	roadFactor = 1.25 // road distance over great-circle distance
	roadSpeed  = 95.0 // km/h
)

// Generate makes the tables of a world with the given number of cities
// (4 to 312) in one state for about five of them, and flights for every day of March
// 2022. Everything is drawn from the seed.
func Generate(seed uint64, cities int) (travel.Tables, error) {
	t, err := places(seed, cities)
	if err == nil {
		AddFlights(&t, seed)
	}
	return t, err
}

// places makes everything but the flights.
func places(seed uint64, cities int) (travel.Tables, error) {
	if cities < 4 || cities > maxCities {
		return travel.Tables{}, fmt.Errorf("cities %d: want a number from 4 to %d", cities, maxCities)
	}
	r := rng(seed, "world")
	var t travel.Tables
	names := cityNames(r, cities)
	states := stateSizes(cities)
	at := map[string][2]float64{}
	i := 0
	for s, size := range states {
		lat, lon := 30+r.Float64()*17, -120+r.Float64()*45
		for range size {
			c := names[i]
			i++
			t.Cities = append(t.Cities, travel.City{Name: c, State: stateNames[s]})
			at[c] = [2]float64{lat + r.NormFloat64()*1.2, lon + r.NormFloat64()*1.5}
		}
	}
	for _, c := range t.Cities {
		t.Restaurants = append(t.Restaurants, restaurants(r, c.Name)...)
		t.Hotels = append(t.Hotels, hotels(r, c.Name)...)
		t.Attractions = append(t.Attractions, attractions(r, c.Name, at[c.Name])...)
	}
	t.Distances = distances(r, t.Cities, at)
	return t, nil
}

// stateSizes spreads the cities over states as the public list does, where 312
// cities lie in 64 of them: the largest has 23, 34 have more than three, 41
// at least three. Small worlds have about six cities a state, and less uneven,
// so that trips through a state are possible.
func stateSizes(cities int) []int {
	n := max(2, (cities*64+maxCities/2)/maxCities)
	small := cities < 120
	if small {
		n = max(2, cities/6)
	}
	weights := make([]float64, n)
	total := 0.0
	for i := range weights {
		k := float64(i) * 64 / float64(n)
		switch {
		case small:
			weights[i] = 3 + 4*math.Exp(-k/20)
		case k < 34:
			weights[i] = 4 + 19*math.Exp(-k/5.5)
		case k < 41:
			weights[i] = 3
		default:
			weights[i] = 1.5
		}
		total += weights[i]
	}
	sizes := make([]int, n)
	left := cities
	for i := range sizes {
		sizes[i] = max(1, int(weights[i]/total*float64(cities)))
		left -= sizes[i]
	}
	for i := 0; left != 0; i = (i + 1) % n { // what rounding left over
		if left > 0 {
			sizes[i]++
			left--
		} else if sizes[i] > 1 {
			sizes[i]--
			left++
		}
	}
	return sizes
}

func restaurants(r *rand.Rand, city string) []travel.Restaurant {
	n := 18 + int(r.ExpFloat64()*12)
	n = min(n, 62)
	out := make([]travel.Restaurant, 0, n)
	for range n {
		var food []string
		for i, c := range cuisines {
			share := 0.37
			if i >= commonFood {
				share = 0.145
			}
			if r.Float64() < share {
				food = append(food, c)
			}
		}
		for len(food) < 2 {
			if c := pick(r, cuisines); !slices.Contains(food, c) {
				food = append(food, c)
			}
		}
		r.Shuffle(len(food), func(i, j int) { food[i], food[j] = food[j], food[i] })
		out = append(out, travel.Restaurant{
			Name: restaurantName(r), Cost: 10 + r.IntN(92) + r.IntN(10), City: city,
			Cuisines: strings.Join(food[:min(len(food), 6)], ", "), Rating: math.Round(r.Float64()*49) / 10,
		})
	}
	return out
}

func hotels(r *rand.Rand, city string) []travel.Hotel {
	n := 6 + r.IntN(13)
	out := make([]travel.Hotel, 0, n)
	for range n {
		h := travel.Hotel{Name: hotelName(r), City: city, Price: float64(51 + r.IntN(1145)), Rating: float64(1 + r.IntN(5))}
		switch x := r.IntN(100); {
		case x < 52:
			h.RoomType = "Entire home/apt"
		case x < 98:
			h.RoomType = "Private room"
		default:
			h.RoomType = "Shared room"
		}
		count := 1
		switch x := r.IntN(790); {
		case x < 118:
			count = 3
		case x < 353:
			count = 2
		}
		perm := r.Perm(len(houseRules))[:count]
		rules := make([]string, count)
		for i, p := range perm {
			rules[i] = houseRules[p]
		}
		h.Rules = strings.Join(rules, " & ")
		switch x := r.IntN(100); {
		case x < 24:
			h.MinNights = 1
		case x < 49:
			h.MinNights = 2
		case x < 63:
			h.MinNights = 3
		default:
			h.MinNights = float64(4 + int(r.ExpFloat64()*10))
		}
		h.MaxPeople = min(1+int(r.ExpFloat64()*2.2), 11)
		if r.IntN(100) < 35 {
			h.MaxPeople = 2
		}
		out = append(out, h)
	}
	return out
}

func attractions(r *rand.Rand, city string, at [2]float64) []travel.Attraction {
	n := 11 + r.IntN(10)
	out := make([]travel.Attraction, 0, n)
	for range n {
		out = append(out, travel.Attraction{
			Name: sightName(r, city), City: city,
			Lat: at[0] + r.NormFloat64()*0.05, Lon: at[1] + r.NormFloat64()*0.05,
			Address: fmt.Sprintf("%d %s St, %s", 1+r.IntN(2000), pick(r, nouns), city),
			Phone:   fmt.Sprintf("(%03d) %03d-%04d", 200+r.IntN(700), 200+r.IntN(700), r.IntN(10000)),
			Website: fmt.Sprintf("https://%s-%d.example/", strings.ToLower(pick(r, nouns)), r.IntN(1000)),
		})
	}
	return out
}

// distances gives each ordered pair of a state, and a share of the others, a
// row. A→B and B→A differ a little, as in the public table.
func distances(r *rand.Rand, cities []travel.City, at map[string][2]float64) []travel.Distance {
	var out []travel.Distance
	share := math.Min(1, 18000/float64(len(cities)*len(cities)))
	for _, a := range cities {
		for _, b := range cities {
			if a == b || (a.State != b.State && r.Float64() > share) {
				continue
			}
			km := haversine(at[a.Name], at[b.Name])*roadFactor*(0.99+0.02*r.Float64()) + 3
			d := travel.Distance{Org: a.Name, Dest: b.Name, Duration: duration(km), Distance: kilometres(km)}
			if r.IntN(200) == 0 {
				d.Duration, d.Distance = "", ""
			}
			out = append(out, d)
		}
	}
	return out
}

func haversine(a, b [2]float64) float64 {
	const rad = math.Pi / 180
	dlat, dlon := (b[0]-a[0])*rad, (b[1]-a[1])*rad
	h := math.Pow(math.Sin(dlat/2), 2) + math.Cos(a[0]*rad)*math.Cos(b[0]*rad)*math.Pow(math.Sin(dlon/2), 2)
	return 2 * 6371 * math.Asin(math.Sqrt(h))
}

func duration(km float64) string {
	mins := int(km / roadSpeed * 60)
	switch {
	case mins >= 24*60:
		return fmt.Sprintf("%d day %d hours", mins/1440, mins%1440/60)
	case mins >= 60:
		return fmt.Sprintf("%d hours %d mins", mins/60, mins%60)
	}
	return fmt.Sprintf("%d mins", mins)
}

func kilometres(km float64) string {
	if km < 100 {
		return fmt.Sprintf("%.1f km", km)
	}
	n := int(km)
	if n >= 1000 {
		return fmt.Sprintf("%d,%03d km", n/1000, n%1000)
	}
	return fmt.Sprintf("%d km", n)
}
