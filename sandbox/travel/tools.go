package travel

import (
	"fmt"
	"strconv"
	"strings"
)

// The six tools, by the names policies call them.
const (
	ToolFlight        = "SearchFlight"
	ToolDistance      = "GoogleDistanceMatrix"
	ToolAccommodation = "SearchAccommodation"
	ToolRestaurant    = "SearchRestaurant"
	ToolAttraction    = "SearchAttraction"
	ToolCity          = "SearchCity"
)

// ToolParam is one argument of a tool; all are texts.
type ToolParam struct {
	Name     string
	Help     string
	Enum     []string
	Required bool // the tool refuses a call without it
}

// ToolSpec describes a tool to a policy.
type ToolSpec struct {
	Name   string
	Help   string
	Params []ToolParam
}

// ToolSpecs lists the six tools.
func ToolSpecs() []ToolSpec {
	departure := ToolParam{Name: "departure", Help: "City to leave from.", Required: true}
	destination := ToolParam{Name: "destination", Help: "City to arrive in.", Required: true}
	city := ToolParam{Name: "city", Help: "Name of the city, without its state.", Required: true}
	return []ToolSpec{
		{ToolFlight, "Lists the flights between two cities on a date.", []ToolParam{
			departure, destination, {Name: "date", Help: "Date as YYYY-MM-DD.", Required: true}}},
		{ToolDistance, "Gives duration, distance and cost of going by road between two cities.", []ToolParam{
			departure, destination, {Name: "mode", Help: "How to go.", Enum: []string{"driving", "taxi"}}}},
		{ToolAccommodation, "Lists the accommodations of a city with price, room type, house rules and limits.", []ToolParam{city}},
		{ToolRestaurant, "Lists the restaurants of a city with average cost, cuisines and rating.", []ToolParam{city}},
		{ToolAttraction, "Lists the attractions of a city with address and phone.", []ToolParam{city}},
		{ToolCity, "Lists the cities of a state that can be visited.", []ToolParam{{Name: "state", Help: "Name of the state.", Required: true}}},
	}
}

// KnownTool tells whether there is a tool of that name.
func KnownTool(name string) bool { return toolParams(name) != nil }

// toolParams names a tool's arguments in order.
func toolParams(tool string) []string {
	switch tool {
	case ToolFlight:
		return flightParams[:]
	case ToolDistance:
		return distanceParams[:]
	case ToolAccommodation, ToolRestaurant, ToolAttraction:
		return cityParams[:]
	case ToolCity:
		return stateParams[:]
	}
	return nil
}

var (
	flightParams   = [...]string{"departure", "destination", "date"}
	distanceParams = [...]string{"departure", "destination", "mode"}
	cityParams     = [...]string{"city"}
	stateParams    = [...]string{"state"}
)

// Kinds of Result.Err.
const (
	ErrNoHits      = "no_hits"
	ErrParameters  = "invalid_parameters"
	ErrCall        = "error"        // an argument of the wrong type
	ErrUnknownTool = "unknown_tool" // no tool of that name
)

// Result is what a tool returns: a text for the policy and the same rows for
// people. It is shared between callers: read it only.
type Result struct {
	Text    string
	Columns []string
	Rows    [][]string
	Err     string // "" for hits, else one of the Err constants
}

const advice = " Rethink the search and try again."

// Call runs a tool. Matching is exact; nothing is validated beyond the
// presence of the arguments, so a misspelt city is a search without hits.
// Whatever is wrong with a call comes back as a text; the episode goes on.
func (w *World) Call(tool string, args map[string]any) Result {
	params := toolParams(tool)
	if params == nil {
		return Result{Text: "Tool " + tool + " not found." + advice, Err: ErrUnknownTool}
	}
	var values [3]string
	for i, name := range params {
		arg, ok := args[name]
		if !ok {
			if name == "mode" {
				values[i] = "driving"
				continue
			}
			return Result{Text: "Invalid parameters. Needed: " + strings.Join(params, ", ") + ".", Err: ErrParameters}
		}
		if values[i], ok = arg.(string); !ok {
			return Result{Text: fmt.Sprintf("Tool calling error: argument %s is %s, must be a text", name, toValueKind(arg)), Err: ErrCall}
		}
	}
	return w.Search(tool, values[0], values[1], values[2])
}

func toValueKind(x any) string {
	switch x.(type) {
	case nil:
		return "null"
	case bool:
		return "a truth value"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return "a number"
}

// Search is Call with the arguments in the tool's order; those it does not
// have are ignored. For a program that makes its own calls.
func (w *World) Search(tool, a, b, c string) Result {
	switch tool {
	case ToolFlight:
		return w.searchFlights(a, b, c)
	case ToolDistance:
		return w.searchDistance(a, b, c)
	case ToolAccommodation, ToolRestaurant, ToolAttraction, ToolCity:
		return w.listing(tool, a)
	}
	return Result{Text: "Tool " + tool + " not found." + advice, Err: ErrUnknownTool}
}

type listing struct{ tool, of string }

// listing returns what a tool lists for a city or state; a list is made once.
func (w *World) listing(tool, of string) Result {
	if r, ok := w.listings.Load(listing{tool, of}); ok {
		return *r.(*Result)
	}
	var r Result
	switch tool {
	case ToolAccommodation:
		r = listHotels(of, w.hotels[of])
	case ToolRestaurant:
		r = listRestaurants(of, w.restaurants[of])
	case ToolAttraction:
		r = listAttractions(of, w.attractions[of])
	default:
		r = listCities(of, w.inState[of])
	}
	if r.Err == "" { // names without hits are not kept: there is no end of them
		w.listings.Store(listing{tool, strings.Clone(of)}, &r)
	}
	return r
}

func nothing(what string) Result {
	return Result{Text: "There is no " + what + "." + advice, Err: ErrNoHits}
}

// head is the first line of a list of hits.
func head(b *strings.Builder, tool, asked string, n int, noun string) {
	if n != 1 && strings.HasSuffix(noun, "y") {
		noun = noun[:len(noun)-1] + "ie"
	}
	fmt.Fprintf(b, "%s %s: %s found.\n", tool, asked, count(n, noun))
}

// item begins a numbered hit; hits are a blank line apart.
func item(b *strings.Builder, i int) {
	if i > 0 {
		b.WriteByte('\n')
	}
	b.WriteString(strconv.Itoa(i + 1))
	b.WriteString(". ")
}

// decimal writes a number as the tables have it: always with a point.
func decimal(x float64) string {
	s := strconv.FormatFloat(x, 'f', -1, 64)
	if !strings.ContainsRune(s, '.') {
		s += ".0"
	}
	return s
}

var flightColumns = []string{"Flight", "Price", "Departure", "Arrival", "Elapsed", "Miles"}

func (w *World) searchFlights(org, dest, date string) Result {
	start, end := w.flights.group(org, dest, date)
	if start == end {
		return nothing("flight from " + org + " to " + dest + " on " + date)
	}
	n := int(end - start)
	r := Result{Columns: flightColumns, Rows: make([][]string, n)}
	var b strings.Builder
	b.Grow(100 * (n + 1))
	head(&b, ToolFlight, "from "+org+" to "+dest+" on "+date, n, "flight")
	cells := make([]string, n*len(flightColumns))
	for i := range n {
		f := &w.flights.rows[int(start)+i]
		row := cells[i*len(flightColumns) : (i+1)*len(flightColumns) : (i+1)*len(flightColumns)]
		row[0], row[1] = w.flights.numberText(f.number), strconv.Itoa(int(f.price))
		row[2], row[3], row[4] = w.flights.symbols[f.dep], w.flights.symbols[f.arr], w.flights.symbols[f.elapsed]
		row[5] = decimal(f.distance)
		r.Rows[i] = row
		item(&b, i)
		for _, s := range [...]string{"[", row[0], "] $", row[1], ". Departure: ", row[2], ", arrival: ", row[3],
			", elapsed time: ", row[4], ", distance: ", row[5], " miles\n"} {
			b.WriteString(s)
		}
	}
	r.Text = b.String()
	return r
}

var distanceColumns = []string{"Mode", "From", "To", "Duration", "Distance", "Cost"}

// searchDistance answers for one car or taxi. A mode without "driving" in it
// is priced as a taxi.
func (w *World) searchDistance(org, dest, mode string) Result {
	row, ok := w.distances[route{org, dest}]
	switch {
	case !ok:
		return Result{Text: "No valid information found." + advice, Err: ErrNoHits}
	case row.empty || row.fault != "":
		return Result{Text: "Sorry, the distance between " + org + " and " + dest + " cannot be found.", Err: ErrNoHits}
	case row.days:
		return Result{Text: "The trip takes longer than a single day, so there is no cost for it. Consider another means of transport.", Err: ErrNoHits}
	}
	fee, _ := row.taxiFee()
	if strings.Contains(mode, "driving") {
		fee, _ = row.driveFee()
	}
	cost := strconv.FormatFloat(fee, 'f', -1, 64)
	return Result{
		Text: ToolDistance + " found:\n" + mode + ", from " + org + " to " + dest + ", duration: " + row.Duration +
			", distance: " + row.Distance.Distance + ", cost: $" + cost,
		Columns: distanceColumns,
		Rows:    [][]string{{mode, org, dest, row.Duration, row.Distance.Distance, cost}},
	}
}

var hotelColumns = []string{"Name", "Price", "Room type", "House rules", "Minimum nights", "Maximum occupancy", "Rating"}

func listHotels(city string, rows []Hotel) Result {
	if len(rows) == 0 {
		return nothing("accommodation in " + city)
	}
	r := Result{Columns: hotelColumns, Rows: make([][]string, len(rows))}
	var b strings.Builder
	head(&b, ToolAccommodation, "in "+city, len(rows), "accommodation")
	for i := range rows {
		h := &rows[i]
		row := []string{h.Name, decimal(h.Price), h.RoomType, h.Rules, decimal(h.MinNights), strconv.Itoa(h.MaxPeople), decimal(h.Rating)}
		r.Rows[i] = row
		item(&b, i)
		fmt.Fprintf(&b, "[%s] $%s a night. Room type: %s. House rules: %s. Minimum nights: %s. Maximum occupancy: %s. Review rate number: %s\n",
			row[0], row[1], row[2], row[3], row[4], row[5], row[6])
	}
	r.Text = b.String()
	return r
}

var restaurantColumns = []string{"Name", "Average cost", "Cuisines", "Rating"}

func listRestaurants(city string, rows []Restaurant) Result {
	if len(rows) == 0 {
		return nothing("restaurant in " + city)
	}
	r := Result{Columns: restaurantColumns, Rows: make([][]string, len(rows))}
	var b strings.Builder
	head(&b, ToolRestaurant, "in "+city, len(rows), "restaurant")
	for i := range rows {
		x := &rows[i]
		row := []string{x.Name, strconv.Itoa(x.Cost), x.Cuisines, decimal(x.Rating)}
		r.Rows[i] = row
		item(&b, i)
		fmt.Fprintf(&b, "[%s] Average cost: $%s. Cuisines: %s. Rating: %s\n", row[0], row[1], row[2], row[3])
	}
	r.Text = b.String()
	return r
}

var attractionColumns = []string{"Name", "Website", "Address", "Phone"}

func listAttractions(city string, rows []Attraction) Result {
	if len(rows) == 0 {
		return nothing("attraction in " + city)
	}
	r := Result{Columns: attractionColumns, Rows: make([][]string, len(rows))}
	var b strings.Builder
	head(&b, ToolAttraction, "in "+city, len(rows), "attraction")
	for i := range rows {
		x := &rows[i]
		r.Rows[i] = []string{x.Name, x.Website, x.Address, x.Phone}
		item(&b, i)
		fmt.Fprintf(&b, "[%s](%s) Address: %s. Phone: %s\n", x.Name, x.Website, x.Address, x.Phone)
	}
	r.Text = b.String()
	return r
}

var cityColumns = []string{"City"}

func listCities(state string, cities []string) Result {
	if len(cities) == 0 {
		return nothing("city in " + state)
	}
	r := Result{Columns: cityColumns, Rows: make([][]string, len(cities))}
	for i := range cities {
		r.Rows[i] = cities[i : i+1 : i+1]
	}
	var b strings.Builder
	head(&b, ToolCity, "in "+state, len(cities), "city")
	b.WriteString(strings.Join(cities, ", "))
	r.Text = b.String()
	return r
}
