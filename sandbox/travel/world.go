package travel

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
