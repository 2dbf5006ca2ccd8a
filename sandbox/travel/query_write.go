package travel

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
)

// queryRecord is a query in the benchmark's own keys, as its files have it.
type queryRecord struct {
	ID         string           `json:"query_id,omitempty"`
	Org        string           `json:"org"`
	Dest       string           `json:"dest"`
	Days       int              `json:"days"`
	Cities     int              `json:"visiting_city_number"`
	Dates      []string         `json:"date"`
	People     int              `json:"people_number"`
	Constraint constraintRecord `json:"local_constraint"`
	Budget     float64          `json:"budget"`
	Text       string           `json:"query"`
	Level      string           `json:"level"`
	Plan       json.RawMessage  `json:"annotated_plan,omitempty"`
	Reference  json.RawMessage  `json:"reference_information,omitempty"`
	Model      string           `json:"generated_model,omitempty"` // who wrote the text, in Agent-STAR's files
}

type constraintRecord struct {
	HouseRule      *string  `json:"house rule"`
	Cuisine        []string `json:"cuisine"`
	RoomType       *string  `json:"room type"`
	Transportation *string  `json:"transportation"`
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func (l *QueryLine) record() queryRecord {
	q := &l.Query
	return queryRecord{ID: l.ID, Org: q.Org, Dest: q.Dest, Days: q.Days, Cities: q.Cities, Dates: q.Dates, People: q.People,
		Constraint: constraintRecord{orNull(q.Wish.HouseRule), q.Wish.Cuisine, orNull(q.Wish.RoomType), orNull(q.Wish.Transportation)},
		Budget:     q.Budget, Text: q.Text, Level: q.Level, Model: l.Model}
}

// MarshalJSON writes the query in the benchmark's keys, with the annotated
// plan if there is one. [LoadQueryLines] reads it back.
func (l QueryLine) MarshalJSON() ([]byte, error) {
	r := l.record()
	if l.Plan.Delivered() {
		r.Plan = annotatedJSON(l.Plan.Strict())
	}
	if l.Reference != nil {
		src, err := plainJSON(l.Reference)
		if err != nil {
			return nil, err
		}
		r.Reference = src
	}
	return plainJSON(r)
}

// UnmarshalJSON reads one line of a query file.
func (l *QueryLine) UnmarshalJSON(src []byte) error {
	v, err := ParseValue(src)
	if err != nil {
		return err
	}
	*l, err = readQuery(v)
	return err
}

// annotatedJSON writes a plan as the train set has it: the day under "days".
func annotatedJSON(days []Day) json.RawMessage {
	type record struct {
		Day            int    `json:"days"`
		City           string `json:"current_city"`
		Transportation string `json:"transportation"`
		Breakfast      string `json:"breakfast"`
		Attraction     string `json:"attraction"`
		Lunch          string `json:"lunch"`
		Dinner         string `json:"dinner"`
		Accommodation  string `json:"accommodation"`
	}
	list := make([]record, len(days))
	for i := range days {
		d := &days[i]
		list[i] = record{d.Day, d.City, d.Transportation, d.Breakfast, d.Attraction, d.Lunch, d.Dinner, d.Accommodation}
	}
	src, _ := plainJSON(list) // texts and numbers cannot fail
	return src
}

// plainJSON writes JSON without the escapes for HTML.
func plainJSON(x any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(x); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// WriteQueryLines writes a query file, a line each.
func WriteQueryLines(w io.Writer, lines []QueryLine) error {
	for i := range lines {
		src, err := lines[i].MarshalJSON()
		if err != nil {
			return err
		}
		if _, err := w.Write(append(src, '\n')); err != nil {
			return err
		}
	}
	return nil
}

// Reference is what the tools say about the route of a plan, in the
// benchmark's form: a title such as "Restaurants in Austin" to rows or to a
// sentence that there are none. [LoadReference] reads lines of it back.
func (w *World) Reference(q Query, days []Day) map[string]any {
	ref := map[string]any{}
	for i := range days {
		from, to, moves := fromTo(days[i].City)
		from, to = cityOf(from), cityOf(to)
		if !moves {
			to = cityOf(days[i].City)
		}
		if to != q.Org {
			ref["Attractions in "+to] = rowsOr(w.attractions[to], func(a *Attraction) any {
				return map[string]any{"Name": a.Name, "Latitude": a.Lat, "Longitude": a.Lon, "Address": a.Address, "Phone": a.Phone, "Website": a.Website, "City": a.City}
			}, "There is no attraction in this city.")
			ref["Restaurants in "+to] = rowsOr(w.restaurants[to], func(r *Restaurant) any {
				return map[string]any{"Name": r.Name, "Average Cost": r.Cost, "Cuisines": r.Cuisines, "Aggregate Rating": r.Rating, "City": r.City}
			}, "There is no restaurant in this city.")
			ref["Accommodations in "+to] = rowsOr(w.hotels[to], func(h *Hotel) any {
				return map[string]any{"NAME": h.Name, "price": h.Price, "room type": h.RoomType, "house_rules": h.Rules, "minimum nights": h.MinNights,
					"maximum occupancy": h.MaxPeople, "review rate number": h.Rating, "city": h.City}
			}, "There is no accommodation in this city.")
		}
		if moves && i < len(q.Dates) {
			w.referRoute(ref, from, to, q.Dates[i])
		}
	}
	return ref
}

// referRoute adds the ways between two cities.
func (w *World) referRoute(ref map[string]any, from, to, date string) {
	ref["Flight from "+from+" to "+to+" on "+date] = rowsOr(w.Flights(from, to, date), func(f *Flight) any {
		return map[string]any{"Flight Number": f.Number, "Price": f.Price, "DepTime": f.Dep, "ArrTime": f.Arr, "ActualElapsedTime": f.Elapsed,
			"FlightDate": f.Date, "OriginCityName": f.Org, "DestCityName": f.Dest, "Distance": f.Distance}
	}, "There is no flight from "+from+" to "+to+" on "+date+".")
	d := w.distances[route{from, to}]
	for title, fee := range map[string]func() (float64, bool){"Self-driving": d.driveFee, "Taxi": d.taxiFee} {
		text := "No valid information."
		if cost, ok := fee(); ok && d.Duration != "" {
			mode := "self-driving"
			if title == "Taxi" {
				mode = "taxi"
			}
			text = mode + ", from " + from + " to " + to + ", duration: " + d.Duration + ", distance: " + d.Distance.Distance + ", cost: " + strconv.FormatFloat(cost, 'f', -1, 64)
		}
		ref[title+" from "+from+" to "+to] = text
	}
}

func rowsOr[T any](rows []T, record func(*T) any, none string) any {
	if len(rows) == 0 {
		return none
	}
	list := make([]any, len(rows))
	for i := range rows {
		list[i] = record(&rows[i])
	}
	return list
}
