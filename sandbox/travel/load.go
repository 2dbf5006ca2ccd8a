package travel

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// LoadTables reads TravelPlanner's database folder. The tables may stand in
// the benchmark's sub-folders or side by side. Rows with a missing cell are
// left out, except in the distance table. The flights are optional.
func LoadTables(dir string) (Tables, error) {
	t, err := loadPlaces(dir)
	if err != nil {
		return Tables{}, err
	}
	err = eachFlight(dir, func(f *Flight) { t.Flights = append(t.Flights, *f) })
	if err != nil {
		return Tables{}, fmt.Errorf("load tables: %w", err)
	}
	return t, nil
}

// LoadWorld is LoadTables and NewWorld in one, without ever holding the
// flights in their long form: the way to load the public table of 3.8 million.
func LoadWorld(dir string) (*World, error) {
	t, err := loadPlaces(dir)
	if err != nil {
		return nil, err
	}
	b := newFlightBuilder(0)
	if err := eachFlight(dir, b.add); err != nil {
		return nil, fmt.Errorf("load world: %w", err)
	}
	return newWorld(t, b.table()), nil
}

func loadPlaces(dir string) (t Tables, err error) {
	if t.Cities, err = loadCities(find(dir, "background/citySet_with_states.txt")); err != nil {
		return t, fmt.Errorf("load cities: %w", err)
	}
	err = eachRow(find(dir, "accommodations/clean_accommodations_2022.csv"),
		[]string{"NAME", "price", "room type", "house_rules", "minimum nights", "maximum occupancy", "review rate number", "city"}, false,
		func(r *row) {
			t.Hotels = append(t.Hotels, Hotel{Name: r.text(0), Price: r.number(1), RoomType: r.text(2), Rules: r.text(3),
				MinNights: r.number(4), MaxPeople: r.integer(5), Rating: r.number(6), City: r.text(7)})
		})
	if err != nil {
		return t, fmt.Errorf("load accommodations: %w", err)
	}
	err = eachRow(find(dir, "restaurants/clean_restaurant_2022.csv"),
		[]string{"Name", "Average Cost", "Cuisines", "Aggregate Rating", "City"}, false,
		func(r *row) {
			t.Restaurants = append(t.Restaurants, Restaurant{Name: r.text(0), Cost: r.integer(1), Cuisines: r.text(2),
				Rating: r.number(3), City: r.text(4)})
		})
	if err != nil {
		return t, fmt.Errorf("load restaurants: %w", err)
	}
	err = eachRow(find(dir, "attractions/attractions.csv"),
		[]string{"Name", "Latitude", "Longitude", "Address", "Phone", "Website", "City"}, false,
		func(r *row) {
			t.Attractions = append(t.Attractions, Attraction{Name: r.text(0), Lat: r.number(1), Lon: r.number(2), Address: r.text(3),
				Phone: r.text(4), Website: r.text(5), City: r.text(6)})
		})
	if err != nil {
		return t, fmt.Errorf("load attractions: %w", err)
	}
	err = eachRow(find(dir, "googleDistanceMatrix/distance.csv"),
		[]string{"origin", "destination", "duration", "distance"}, true,
		func(r *row) {
			t.Distances = append(t.Distances, Distance{Org: r.gap(0), Dest: r.gap(1), Duration: r.gap(2), Distance: r.gap(3)})
		})
	if err != nil {
		return t, fmt.Errorf("load distances: %w", err)
	}
	return t, nil
}

// eachFlight reads the flight table; it is no error if there is none.
func eachFlight(dir string, take func(*Flight)) error {
	var f Flight
	err := eachRow(find(dir, flightFile),
		[]string{"Flight Number", "Price", "DepTime", "ArrTime", "ActualElapsedTime", "FlightDate", "OriginCityName", "DestCityName", "Distance"}, false,
		func(r *row) {
			f = Flight{Number: string(r.fields[r.cols[0]]), Price: r.integer(1), Dep: r.text(2), Arr: r.text(3), Elapsed: r.text(4),
				Date: r.text(5), Org: r.text(6), Dest: r.text(7), Distance: r.number(8)}
			take(&f)
		})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// flightFile is the flight table's place in a database folder.
const flightFile = "flights/clean_Flights_2022.csv"

// find returns the path of a table in its sub-folder, or beside the others.
func find(dir, name string) string {
	path := filepath.Join(dir, filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		flat := filepath.Join(dir, filepath.Base(path))
		if _, err := os.Stat(flat); err == nil {
			return flat
		}
	}
	return path
}

// loadCities reads lines of city, tab, state.
func loadCities(path string) ([]City, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var cities []City
	for i, line := range strings.Split(string(src), "\n") {
		line = strings.TrimSuffix(line, "\r")
		if line == "" {
			continue
		}
		name, state, ok := strings.Cut(line, "\t")
		if !ok || strings.Contains(state, "\t") {
			return nil, fmt.Errorf("%s:%d: %q must be a city, one tab and a state", path, i+1, clip(line))
		}
		cities = append(cities, City{Name: name, State: state})
	}
	return cities, nil
}
