package travel

// A world small enough to read, with what the rules trip over: one name in two
// cities, names within names, a duplicated name, a road of a day, a number
// that flies twice.

func smallTables() Tables {
	return Tables{
		Cities: []City{{"Alder", "North"}, {"Birch", "South"}, {"Birchfield", "South"}, {"Cedar", "South"}, {"Dogwood", "West"}},
		Flights: []Flight{
			{"F0000001", 100, "08:00", "09:30", "1 hours 30 minutes", "2022-03-01", "Alder", "Birch", 500},
			{"F0000002", 80, "18:00", "19:30", "1 hours 30 minutes", "2022-03-03", "Birch", "Alder", 500},
			{"F0000001", 300, "08:00", "09:30", "1 hours 30 minutes", "2022-03-02", "Alder", "Birch", 500},
			{"F0000003", 90, "08:00", "09:30", "1 hours 30 minutes", "2022-03-01", "Alder", "Dogwood", 400},
			{"F0000004", 70, "10:00", "11:00", "1 hours 0 minutes", "2022-03-05", "Cedar", "Alder", 300},
		},
		Hotels: []Hotel{
			{"Oak Inn", 120, "Private room", "No pets", 1, 2, 4, "Birch"},
			{"Oak Inn Annex", 60, "Shared room", "No smoking & No parties", 3, 2, 3, "Birch"},
			{"Twin House", 200, "Entire home/apt", "No visitors", 2, 4, 5, "Birch"},
			{"Twin House", 10, "Shared room", "No pets", 1, 1, 1, "Birch"},
			{"Elm Lodge", 90, "Private room", "No children under 10", 1, 3, 4, "Cedar"},
			{"Oak Inn", 30, "Shared room", "No pets", 1, 2, 2, "Birchfield"},
		},
		Restaurants: []Restaurant{
			{"Salt", 20, "Italian, Tea", 4, "Birch"},
			{"Salt & Smoke", 30, "BBQ, American", 4, "Birch"},
			{"Fig", 10, "Cafe", 3, "Birch"},
			{"Plum", 15, "Mexican, Fast Food", 3, "Birch"},
			{"Pear", 25, "Chinese", 4, "Birch"},
			{"Quince", 12, "Bakery", 4, "Birch"},
			{"Home", 5, "French", 3, "Alder"},
			{"Rye", 22, "Indian", 4, "Cedar"},
			{"Oat", 11, "Tea", 4, "Cedar"},
			{"Malt", 13, "Pizza", 4, "Cedar"},
			{"Hops", 14, "Cafe", 4, "Cedar"},
			{"Salt", 9, "Tea", 2, "Birchfield"},
		},
		Attractions: []Attraction{
			{"Old Mill", 1, 2, "1 Mill St", "111", "http://mill", "Birch"},
			{"Museum of Art, East", 1, 2, "2 Art St", "112", "http://art", "Birch"},
			{"Tower", 1, 2, "3 High St", "113", "http://tower", "Birch"},
			{"Lake", 1, 2, "4 Low St", "114", "http://lake", "Cedar"},
		},
		Distances: []Distance{
			{"Alder", "Birch", "8 hours 4 mins", "801 km"}, {"Birch", "Alder", "8 hours 9 mins", "803 km"},
			{"Birch", "Cedar", "58 mins", "56.4 km"}, {"Cedar", "Alder", "9 hours", "1,001 km"},
			{"Alder", "Dogwood", "1 day 2 hours", "2,000 km"}, {"Dogwood", "Alder", "", ""},
		},
	}
}

func smallWorld() *World { return NewWorld(smallTables()) }

func smallQuery() Query {
	return Query{Org: "Alder", Dest: "Birch", Days: 3, Cities: 1, Dates: []string{"2022-03-01", "2022-03-02", "2022-03-03"},
		People: 1, Budget: 2000, Level: "easy", Text: "Three days in Birch."}
}

// smallPlan costs 100 + 80 for flights, 2 × 120 for nights, 20 + 30 + 10 + 15 + 25 for meals: 520 $.
func smallPlan() []Day {
	return []Day{
		{1, "from Alder to Birch", "Flight Number: F0000001, from Alder to Birch, Departure Time: 08:00, Arrival Time: 09:30",
			"-", "-", "Salt, Birch", "Tower, Birch;", "Oak Inn, Birch"},
		{2, "Birch", "-", "Salt & Smoke, Birch", "Fig, Birch", "Plum, Birch", "Old Mill, Birch;Museum of Art, East, Birch;", "Oak Inn, Birch"},
		{3, "from Birch to Alder", "Flight Number: F0000002, from Birch to Alder, Departure Time: 18:00, Arrival Time: 19:30",
			"Pear, Birch", "-", "-", "-", "-"},
	}
}

func longQuery() Query {
	return Query{Org: "Alder", Dest: "South", Days: 5, Cities: 2, People: 1, Budget: 3000, Level: "easy",
		Dates: []string{"2022-03-01", "2022-03-02", "2022-03-03", "2022-03-04", "2022-03-05"}, Text: "Five days in the South."}
}

func longPlan() []Day {
	return []Day{
		{1, "from Alder to Birch", "Self-driving, from Alder to Birch, duration: 8 hours 4 mins, distance: 801 km, cost: 40",
			"-", "-", "Salt, Birch", "Tower, Birch;", "Oak Inn, Birch"},
		{2, "Birch", "-", "Salt & Smoke, Birch", "Fig, Birch", "Plum, Birch", "Old Mill, Birch;", "Oak Inn, Birch"},
		{3, "from Birch to Cedar", "Self-driving, from Birch to Cedar, duration: 58 mins, distance: 56.4 km, cost: 2",
			"-", "-", "-", "-", "Elm Lodge, Cedar"},
		{4, "Cedar", "-", "Rye, Cedar", "Oat, Cedar", "Malt, Cedar", "Lake, Cedar;", "Elm Lodge, Cedar"},
		{5, "from Cedar to Alder", "Self-driving, from Cedar to Alder, duration: 9 hours, distance: 1,001 km, cost: 50",
			"-", "Hops, Cedar", "-", "-", "-"},
	}
}
