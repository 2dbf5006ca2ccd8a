package travel

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestWorldIndexes(t *testing.T) {
	tables := smallTables()
	tables.Flights = append(tables.Flights, Flight{"odd 7", 1, "1", "2", "3", "4", "Alder", "Birch", 0.5})
	w := NewWorld(tables)
	for _, f := range tables.Flights {
		if got := w.Flights(f.Org, f.Dest, f.Date); !slices.Contains(got, f) {
			t.Errorf("Flights(%s, %s, %s) = %v, lacks %v", f.Org, f.Dest, f.Date, got, f)
		}
		if got := w.FlightsByNumber(f.Number); !slices.Contains(got, f) {
			t.Errorf("FlightsByNumber(%s) = %v, lacks %v", f.Number, got, f)
		}
	}
	if got := w.FlightsByNumber("F0000001"); len(got) != 2 || got[0].Price != 100 || got[1].Price != 300 {
		t.Errorf("file order is lost: %v", got)
	}
	if w.FlightsByNumber("F9999999") != nil || w.Flights("Alder", "Birch", "2023-01-01") != nil || w.FlightsByNumber("odd") != nil {
		t.Error("hits where there are none")
	}
	if got := w.CitiesIn("South"); !slices.Equal(got, []string{"Birch", "Birchfield", "Cedar"}) || w.State("Cedar") != "South" || w.State("Nowhere") != "" {
		t.Errorf("CitiesIn = %v", got)
	}
	if h := w.Hotel("Twin House", "Birch"); h == nil || h.Price != 200 {
		t.Errorf("Hotel = %+v, want the first row", h)
	}
	if a, b := w.Hash(), smallWorld().Hash(); a == b || len(a) != 16 || b != smallWorld().Hash() {
		t.Errorf("hashes %s, %s", a, b)
	}
}

func TestCosts(t *testing.T) {
	for _, test := range []struct {
		d          Distance
		people     int
		drive, cab float64
		ok         bool
	}{
		{Distance{Duration: "14 hours 4 mins", Distance: "1,433 km"}, 1, 71, 1433, true},
		{Distance{Duration: "58 mins", Distance: "56.4 km"}, 5, 2, 112, true},
		{Distance{Duration: "58 mins", Distance: "56.4 km"}, 6, 4, 112, true},
		{Distance{Duration: "58 mins", Distance: "56.4 km"}, 9, 4, 168, true},
		{Distance{Duration: "1 day 3 hours", Distance: "2,799 km"}, 1, 0, 0, false},
		{Distance{Duration: "", Distance: "2,799 km"}, 1, 0, 0, false},
		{Distance{Duration: "1 hour", Distance: ""}, 1, 0, 0, false},
		{Distance{Duration: "1 hour", Distance: "far"}, 1, 0, 0, false},
	} {
		drive, ok1 := DriveCost(test.d, test.people)
		cab, ok2 := TaxiCost(test.d, test.people)
		if ok1 != test.ok || ok2 != test.ok || test.ok && (drive != test.drive || cab != test.cab) {
			t.Errorf("%v for %d: %v %v %v %v, want %v %v %v", test.d, test.people, drive, ok1, cab, ok2, test.drive, test.cab, test.ok)
		}
	}
}

func TestToolTexts(t *testing.T) {
	w := smallWorld()
	for _, test := range []struct {
		tool string
		args map[string]any
		err  string
		want string
		rows int
	}{
		{ToolFlight, map[string]any{"departure": "Alder", "destination": "Birch", "date": "2022-03-01"}, "",
			"SearchFlight from Alder to Birch on 2022-03-01: 1 flight found.\n1. [F0000001] $100. Departure: 08:00, arrival: 09:30, elapsed time: 1 hours 30 minutes, distance: 500.0 miles\n", 1},
		{ToolFlight, map[string]any{"departure": "Alder", "destination": "Birch", "date": "tomorrow"}, ErrNoHits,
			"There is no flight from Alder to Birch on tomorrow. Rethink the search and try again.", 0},
		{ToolFlight, map[string]any{"departure": "Alder"}, ErrParameters, "Invalid parameters. Needed: departure, destination, date.", 0},
		{ToolDistance, map[string]any{"departure": "Birch", "destination": "Cedar", "mode": "taxi"}, "",
			"GoogleDistanceMatrix found:\ntaxi, from Birch to Cedar, duration: 58 mins, distance: 56.4 km, cost: $56", 1},
		{ToolDistance, map[string]any{"departure": "Birch", "destination": "Cedar"}, "",
			"GoogleDistanceMatrix found:\ndriving, from Birch to Cedar, duration: 58 mins, distance: 56.4 km, cost: $2", 1},
		{ToolDistance, map[string]any{"departure": "Birch", "destination": "Cedar", "mode": "drivign"}, "",
			"GoogleDistanceMatrix found:\ndrivign, from Birch to Cedar, duration: 58 mins, distance: 56.4 km, cost: $56", 1},
		{ToolDistance, map[string]any{"departure": "Birch", "destination": "Dogwood"}, ErrNoHits, "No valid information found. Rethink the search and try again.", 0},
		{ToolDistance, map[string]any{"departure": "Dogwood", "destination": "Alder"}, ErrNoHits, "Sorry, the distance between Dogwood and Alder cannot be found.", 0},
		{ToolDistance, map[string]any{"departure": "Alder", "destination": "Dogwood"}, ErrNoHits, "The trip takes longer than a single day, so there is no cost for it. Consider another means of transport.", 0},
		{ToolAccommodation, map[string]any{"city": "Cedar"}, "",
			"SearchAccommodation in Cedar: 1 accommodation found.\n1. [Elm Lodge] $90.0 a night. Room type: Private room. House rules: No children under 10. Minimum nights: 1.0. Maximum occupancy: 3. Review rate number: 4.0\n", 1},
		{ToolAccommodation, map[string]any{"city": "cedar"}, ErrNoHits, "There is no accommodation in cedar. Rethink the search and try again.", 0},
		{ToolRestaurant, map[string]any{"city": "Birchfield"}, "", "SearchRestaurant in Birchfield: 1 restaurant found.\n1. [Salt] Average cost: $9. Cuisines: Tea. Rating: 2.0\n", 1},
		{ToolAttraction, map[string]any{"city": "Cedar"}, "", "SearchAttraction in Cedar: 1 attraction found.\n1. [Lake](http://lake) Address: 4 Low St. Phone: 114\n", 1},
		{ToolCity, map[string]any{"state": "South"}, "", "SearchCity in South: 3 cities found.\nBirch, Birchfield, Cedar", 3},
		{ToolCity, map[string]any{"state": "Nowhere"}, ErrNoHits, "There is no city in Nowhere. Rethink the search and try again.", 0},
		{ToolCity, map[string]any{"state": 5.0}, ErrCall, "Tool calling error: argument state is a number, must be a text", 0},
		{"SearchMoon", nil, ErrUnknownTool, "Tool SearchMoon not found. Rethink the search and try again.", 0},
	} {
		for range 2 { // the second time from the cache
			r := w.Call(test.tool, test.args)
			if r.Text != test.want || r.Err != test.err || len(r.Rows) != test.rows {
				t.Errorf("%s %v = %q %q %d rows, want %q %q %d", test.tool, test.args, r.Text, r.Err, len(r.Rows), test.want, test.err, test.rows)
			}
			for _, row := range r.Rows {
				if len(row) != len(r.Columns) {
					t.Errorf("%s: row %v under columns %v", test.tool, row, r.Columns)
				}
			}
		}
	}
	if r := w.Call(ToolRestaurant, map[string]any{"city": "Birch"}); !strings.Contains(r.Text, "\n\n2. [") {
		t.Errorf("hits are not a blank line apart: %q", r.Text)
	}
}

func TestRealTables(t *testing.T) {
	tables, err := LoadTables(shared(t, "tables"))
	if err != nil {
		t.Fatal(err)
	}
	got := []int{len(tables.Cities), len(tables.Restaurants), len(tables.Hotels), len(tables.Attractions), len(tables.Distances), len(tables.Flights)}
	if want := []int{312, 9551, 4285, 5302, 17602, 0}; !slices.Equal(got, want) {
		t.Errorf("rows = %v, want %v", got, want)
	}
	w := NewWorld(tables)
	for _, c := range tables.Cities {
		for _, r := range w.Restaurants(c.Name) {
			if r.City != c.Name {
				t.Fatalf("%+v in %s", r, c.Name)
			}
		}
	}
}

func TestLoadErrors(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	wants := func(part string) {
		t.Helper()
		if _, err := LoadTables(dir); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error = %v, want …%s…", err, part)
		}
	}
	wants("load cities")
	write("background/citySet_with_states.txt", "Birch\tSouth\nAlder North")
	wants(`citySet_with_states.txt:2: "Alder North" must be a city, one tab and a state`)
	write("background/citySet_with_states.txt", "Birch\tSouth")
	wants("load accommodations")
	write("clean_accommodations_2022.csv", "NAME,price,room type,house_rules,minimum nights,maximum occupancy,city\n")
	wants(`no column "review rate number"`)
	write("clean_accommodations_2022.csv", "NAME,price,room type,house_rules,minimum nights,maximum occupancy,review rate number,city\nInn,12,Private room,No pets,1,two,4,Birch\n")
	wants(`clean_accommodations_2022.csv:2: maximum occupancy is "two", must be a number`)
	write("clean_accommodations_2022.csv", "NAME,price,room type,house_rules,minimum nights,maximum occupancy,review rate number,city\n"+
		"\"Inn, \"\"the\"\"\nold\",12,Private room,No pets,1,2,4,Birch\nGone,12,Private room,,1,2,4,Birch\nGone,12,Private room,N/A,1,2,4,Birch\n")
	write("clean_restaurant_2022.csv", "Name,Average Cost,Cuisines,Aggregate Rating,City\r\nSalt,10,Tea,4.5,Birch\r\n\r\nShort,10,Tea\r\n")
	write("attractions.csv", "Name,Latitude,Longitude,Address,Phone,Website,City\n")
	write("distance.csv", "origin,destination,cost,duration,distance\nBirch,Alder,,,\n")
	tables, err := LoadTables(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(tables.Hotels) != 1 || tables.Hotels[0].Name != "Inn, \"the\"\nold" || len(tables.Restaurants) != 1 || len(tables.Distances) != 1 {
		t.Errorf("tables = %+v", tables)
	}
	write("clean_Flights_2022.csv", "Flight Number,Price,DepTime,ArrTime,ActualElapsedTime,FlightDate,OriginCityName,DestCityName,Distance\nF1,1,1,1,1,1,A,B,5,9\n")
	wants("10 cells, must be at most 9 as in the header")
}

func FuzzCSV(f *testing.F) {
	f.Add([]byte("a,b\n1,2\n"))
	f.Add([]byte("\xef\xbb\xbfa,b\r\"x\"\"y\"z,\"\n\",\n\n,"))
	f.Add(bytes.Repeat([]byte("a,"), 1000))
	f.Fuzz(func(t *testing.T, src []byte) {
		n := 0
		_ = readRows(bytes.NewReader(src), "fuzz.csv", []string{"a"}, true, func(r *row) {
			n++
			_, _, _ = r.text(0), r.gap(0), r.integer(0)
		})
		if n > len(src) {
			t.Errorf("%d rows of %d bytes", n, len(src))
		}
	})
}

func TestGoldenTables(t *testing.T) {
	a := goldenWorld(t)
	tables, err := LoadTables(shared(t, "golden", "db"))
	if err != nil {
		t.Fatal(err)
	}
	if b := NewWorld(tables); a.Hash() != b.Hash() {
		t.Errorf("LoadWorld and NewWorld(LoadTables) differ: %s, %s", a.Hash(), b.Hash())
	}
	seen := map[string]bool{}
	a.EachFlight(func(fl Flight) bool { seen[fmt.Sprint(fl)] = true; return true })
	for _, fl := range tables.Flights {
		if !seen[fmt.Sprint(fl)] {
			t.Fatalf("flight %+v is lost", fl)
		}
	}
}

func TestQueryHash(t *testing.T) {
	q := smallQuery()
	same := q
	same.Text, same.Level = "other words", "hard"
	other := q
	other.Wish.Cuisine = []string{"Tea"}
	if len(q.Hash()) != 16 || q.Hash() != same.Hash() || q.Hash() == other.Hash() {
		t.Errorf("hashes %s %s %s", q.Hash(), same.Hash(), other.Hash())
	}
	if !reflect.DeepEqual(other.Wishes(), map[string]string{"budget": "$2,000", "cuisine": "Tea"}) || other.HardChecks() != 2 {
		t.Errorf("wishes %v", other.Wishes())
	}
}
