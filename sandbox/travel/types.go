package travel

// Flight is one row of the flights table. Times are "HH:MM", dates "YYYY-MM-DD".
type Flight struct {
	Number   string // "F" and digits
	Price    int    // $ a person
	Dep, Arr string
	Elapsed  string // "2 hours 24 minutes"
	Date     string
	Org      string
	Dest     string
	Distance float64 // miles
}

// Hotel is one row of the accommodations table.
type Hotel struct {
	Name      string
	Price     float64 // $ a night and unit
	RoomType  string  // Entire home/apt, Private room, Shared room
	Rules     string  // house rules joined with " & ": "No pets & No smoking"
	MinNights float64
	MaxPeople int // a unit
	Rating    float64
	City      string
}

// Restaurant is one row of the restaurants table.
type Restaurant struct {
	Name     string
	Cost     int    // average $ a person and meal
	Cuisines string // comma and space separated
	Rating   float64
	City     string
}

// Attraction is one row of the attractions table.
type Attraction struct {
	Name     string
	Lat, Lon float64
	Address  string
	Phone    string
	Website  string
	City     string
}

// Distance is one directed row of the distance table.
type Distance struct {
	Org, Dest string
	Duration  string // "14 hours 4 mins"; may be empty
	Distance  string // "1,433 km"; may be empty
}

// Constraints are a query's wishes; empty means not asked.
type Constraints struct {
	HouseRule      string   // smoking, parties, children under 10, visitors, pets
	Cuisine        []string // each must occur at least once
	RoomType       string   // shared room, not shared room, private room, entire room
	Transportation string   // no flight, no self-driving
}

// Query is one request for a trip.
type Query struct {
	Org    string
	Dest   string   // a city for 3 days, a state for 5 and 7
	Days   int      // 3, 5, 7
	Cities int      // to visit: 1, 2, 3
	Dates  []string // Days consecutive dates
	People int
	Wish   Constraints
	Budget float64 // $
	Level  string  // easy, medium, hard
	Text   string
}

// Day is one day of a plan in the benchmark's fields. Fields of a plan that
// came as JSON of another type are kept by the parser in Plan's raw form.
type Day struct {
	Day            int
	City           string // "from A to B" on a day with a move, else "B"
	Transportation string
	Breakfast      string
	Lunch          string
	Dinner         string
	Attraction     string // "Name, City;Name, City;"
	Accommodation  string
}
