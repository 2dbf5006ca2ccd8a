package travel

import (
	"bufio"
	"encoding/csv"
	"os"
	"path/filepath"
	"strconv"
)

// WriteTables writes a database folder in TravelPlanner's layout, which
// [LoadTables] and the benchmark's own programs read.
func WriteTables(dir string, t Tables) error {
	return writeTables(dir, t, func(yield func(Flight) bool) {
		for _, f := range t.Flights {
			if !yield(f) {
				return
			}
		}
	})
}

// Write writes the world as a database folder in TravelPlanner's layout.
func (w *World) Write(dir string) error { return writeTables(dir, w.Tables(), w.EachFlight) }

func writeTables(dir string, t Tables, flights func(func(Flight) bool)) error {
	number := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
	if err := writeCities(dir, t.Cities); err != nil {
		return err
	}
	err := writeTable(dir, "accommodations/clean_accommodations_2022.csv",
		[]string{"NAME", "room type", "price", "minimum nights", "review rate number", "house_rules", "maximum occupancy", "city"}, func(put func(...string)) {
			for _, h := range t.Hotels {
				put(h.Name, h.RoomType, decimal(h.Price), decimal(h.MinNights), decimal(h.Rating), h.Rules, strconv.Itoa(h.MaxPeople), h.City)
			}
		})
	if err != nil {
		return err
	}
	err = writeTable(dir, "restaurants/clean_restaurant_2022.csv", []string{"Name", "Average Cost", "Cuisines", "Aggregate Rating", "City"}, func(put func(...string)) {
		for _, r := range t.Restaurants {
			put(r.Name, strconv.Itoa(r.Cost), r.Cuisines, decimal(r.Rating), r.City)
		}
	})
	if err != nil {
		return err
	}
	err = writeTable(dir, "attractions/attractions.csv", []string{"Name", "Latitude", "Longitude", "Address", "Phone", "Website", "City"}, func(put func(...string)) {
		for _, a := range t.Attractions {
			put(a.Name, number(a.Lat), number(a.Lon), a.Address, a.Phone, a.Website, a.City)
		}
	})
	if err != nil {
		return err
	}
	err = writeTable(dir, "googleDistanceMatrix/distance.csv", []string{"origin", "destination", "cost", "duration", "distance"}, func(put func(...string)) {
		for _, d := range t.Distances {
			put(d.Org, d.Dest, "", d.Duration, d.Distance)
		}
	})
	if err != nil {
		return err
	}
	return writeTable(dir, flightFile, []string{"Flight Number", "Price", "DepTime", "ArrTime", "ActualElapsedTime", "FlightDate", "OriginCityName", "DestCityName", "Distance"}, func(put func(...string)) {
		flights(func(f Flight) bool {
			put(f.Number, strconv.Itoa(f.Price), f.Dep, f.Arr, f.Elapsed, f.Date, f.Org, f.Dest, decimal(f.Distance))
			return true
		})
	})
}

func create(dir, name string) (*os.File, error) {
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	return os.Create(path)
}

func writeTable(dir, name string, head []string, rows func(put func(...string))) error {
	f, err := create(dir, name)
	if err != nil {
		return err
	}
	w := csv.NewWriter(bufio.NewWriterSize(f, 1<<20))
	out := w.Write(head)
	rows(func(cells ...string) {
		if out == nil {
			out = w.Write(cells)
		}
	})
	w.Flush()
	for _, e := range []error{w.Error(), f.Close()} {
		if out == nil {
			out = e
		}
	}
	return out
}

// writeCities writes the three lists of the background folder.
func writeCities(dir string, cities []City) error {
	var pairs, names, states []byte
	seen := map[string]bool{}
	for i, c := range cities {
		if i > 0 {
			pairs, names = append(pairs, '\n'), append(names, '\n')
		}
		pairs = append(pairs, c.Name+"\t"+c.State...)
		names = append(names, c.Name...)
		if !seen[c.State] {
			seen[c.State] = true
			states = append(states, c.State+"\n"...)
		}
	}
	for name, src := range map[string][]byte{"citySet_with_states.txt": pairs, "citySet.txt": names, "stateSet.txt": states} {
		f, err := create(dir, "background/"+name)
		if err != nil {
			return err
		}
		_, err = f.Write(src)
		if e := f.Close(); err == nil {
			err = e
		}
		if err != nil {
			return err
		}
	}
	return nil
}
