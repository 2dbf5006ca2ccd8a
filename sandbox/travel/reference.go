package travel

import (
	"fmt"
	"strings"
)

// LoadReference rebuilds a partial database from a file of reference
// information: a line a query, each an object from a title such as
// "Restaurants in Austin" to the rows a tool returned. The first list of a
// city counts. cities is the file of cities and states. Enough to judge plans
// that stay on the routes of those queries, and too little to search in.
func LoadReference(path, cities string) (Tables, error) {
	list, err := loadCities(cities)
	if err != nil {
		return Tables{}, fmt.Errorf("load reference: %w", err)
	}
	r := referenceReader{t: Tables{Cities: list}, seen: map[string]bool{}}
	err = eachLine(path, func(_ int, src []byte) error {
		v, err := ParseValue(src)
		if err != nil {
			return err
		}
		if v.Kind != Object {
			return fmt.Errorf("reference information is %s, must be an object", v.Kind)
		}
		for i, title := range v.Keys {
			if !r.seen[title] {
				r.seen[title] = true
				r.add(title, v.Items[i])
			}
		}
		return nil
	})
	if err != nil {
		return Tables{}, fmt.Errorf("load reference: %w", err)
	}
	return r.t, nil
}

type referenceReader struct {
	t    Tables
	seen map[string]bool // titles, and routes of distances
}

// add takes what one title holds; a sentence instead of rows means there are none.
func (r *referenceReader) add(title string, v Value) {
	switch {
	case strings.HasPrefix(title, "Restaurants in "):
		for _, x := range v.Items {
			r.t.Restaurants = append(r.t.Restaurants, Restaurant{Name: x.Get("Name").Str, Cost: int(x.Get("Average Cost").Num),
				Cuisines: x.Get("Cuisines").Str, Rating: x.Get("Aggregate Rating").Num, City: x.Get("City").Str})
		}
	case strings.HasPrefix(title, "Accommodations in "):
		for _, x := range v.Items {
			r.t.Hotels = append(r.t.Hotels, Hotel{Name: x.Get("NAME").Str, Price: x.Get("price").Num, RoomType: x.Get("room type").Str,
				Rules: x.Get("house_rules").Str, MinNights: x.Get("minimum nights").Num, MaxPeople: int(x.Get("maximum occupancy").Num),
				Rating: x.Get("review rate number").Num, City: x.Get("city").Str})
		}
	case strings.HasPrefix(title, "Attractions in "):
		for _, x := range v.Items {
			r.t.Attractions = append(r.t.Attractions, Attraction{Name: x.Get("Name").Str, Lat: x.Get("Latitude").Num, Lon: x.Get("Longitude").Num,
				Address: x.Get("Address").Str, Phone: x.Get("Phone").Str, Website: x.Get("Website").Str, City: x.Get("City").Str})
		}
	case strings.HasPrefix(title, "Flight from "):
		for _, x := range v.Items {
			r.t.Flights = append(r.t.Flights, Flight{Number: x.Get("Flight Number").Str, Price: int(x.Get("Price").Num),
				Dep: x.Get("DepTime").Str, Arr: x.Get("ArrTime").Str, Elapsed: x.Get("ActualElapsedTime").Str, Date: x.Get("FlightDate").Str,
				Org: x.Get("OriginCityName").Str, Dest: x.Get("DestCityName").Str, Distance: x.Get("Distance").Num})
		}
	case strings.HasPrefix(title, "Self-driving from "), strings.HasPrefix(title, "Taxi from "):
		r.road(v.Str)
	}
}

// road reads "mode, from A to B, duration: X, distance: Y, cost: Z".
func (r *referenceReader) road(s string) {
	from, to, ok := fromTo(s)
	_, rest, found := strings.Cut(s, ", duration: ")
	if !ok || !found || r.seen["road "+from+" to "+to] {
		return
	}
	duration, rest, ok1 := strings.Cut(rest, ", distance: ")
	distance, _, ok2 := strings.Cut(rest, ", cost: ")
	if ok1 && ok2 {
		r.seen["road "+from+" to "+to] = true
		r.t.Distances = append(r.t.Distances, Distance{Org: from, Dest: to, Duration: duration, Distance: distance})
	}
}
