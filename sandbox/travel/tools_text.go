package travel

import (
	"strconv"
	"strings"
)

// What a tool returns is a table; its text is written from the table's cells
// alone, so that a spoilt table gets a text in the same form.

var columnTable = map[string][]string{
	ToolFlight:        {"Flight", "Price", "Departure", "Arrival", "Elapsed", "Miles"},
	ToolDistance:      {"Mode", "From", "To", "Duration", "Distance", "Cost"},
	ToolAccommodation: {"Name", "Price", "Room type", "House rules", "Minimum nights", "Maximum occupancy", "Rating"},
	ToolRestaurant:    {"Name", "Average cost", "Cuisines", "Rating"},
	ToolAttraction:    {"Name", "Website", "Address", "Phone"},
	ToolCity:          {"City"},
}

// columns names a tool's columns; read them only.
func columns(tool string) []string { return columnTable[tool] }

var nouns = map[string]string{
	ToolFlight: "flight", ToolAccommodation: "accommodation", ToolRestaurant: "restaurant", ToolAttraction: "attraction", ToolCity: "city",
}

func nothing(what string) Result {
	return Result{Text: "There is no " + what + "." + advice, Err: ErrNoHits}
}

// decimal writes a number as the tables have it: always with a point.
func decimal(x float64) string {
	s := strconv.FormatFloat(x, 'f', -1, 64)
	if !strings.ContainsRune(s, '.') {
		s += ".0"
	}
	return s
}

// render writes a table as the tool's text: a head line with what was asked
// and the number of hits, then a numbered line a hit, a blank line apart.
func render(tool, asked string, rows [][]string, hits int) string {
	var b strings.Builder
	if tool == ToolDistance {
		row := rows[0]
		put(&b, ToolDistance, " found:\n", row[0], ", from ", row[1], " to ", row[2], ", duration: ", row[3], ", distance: ", row[4], ", cost: $", row[5])
		return b.String()
	}
	b.Grow(100 * (len(rows) + 1))
	noun := nouns[tool]
	if hits != 1 && strings.HasSuffix(noun, "y") {
		noun = noun[:len(noun)-1] + "ie"
	}
	put(&b, tool, " ", asked, ": ", count(hits, noun), " found.\n")
	for i, row := range rows {
		if tool == ToolCity {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(row[0])
			continue
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(strconv.Itoa(i + 1))
		b.WriteString(". [")
		renderRow(&b, tool, row)
	}
	return b.String()
}

// renderRow writes one hit behind its number.
func renderRow(b *strings.Builder, tool string, row []string) {
	switch tool {
	case ToolFlight:
		put(b, row[0], "] $", row[1], ". Departure: ", row[2], ", arrival: ", row[3], ", elapsed time: ", row[4], ", distance: ", row[5], " miles\n")
	case ToolAccommodation:
		put(b, row[0], "] $", row[1], " a night. Room type: ", row[2], ". House rules: ", row[3], ". Minimum nights: ", row[4],
			". Maximum occupancy: ", row[5], ". Review rate number: ", row[6], "\n")
	case ToolRestaurant:
		put(b, row[0], "] Average cost: $", row[1], ". Cuisines: ", row[2], ". Rating: ", row[3], "\n")
	default:
		put(b, row[0], "](", row[1], ") Address: ", row[2], ". Phone: ", row[3], "\n")
	}
}

func put(b *strings.Builder, texts ...string) {
	for _, s := range texts {
		b.WriteString(s)
	}
}

func (w *World) searchFlights(org, dest, date string) Result {
	start, end := w.flights.group(org, dest, date)
	if start == end {
		return nothing("flight from " + org + " to " + dest + " on " + date)
	}
	n, width := int(end-start), len(columns(ToolFlight))
	r := Result{Columns: columns(ToolFlight), Rows: make([][]string, n)}
	cells := make([]string, n*width)
	for i := range n {
		row := cells[i*width : (i+1)*width : (i+1)*width]
		w.flights.cells(start+uint32(i), row)
		r.Rows[i] = row
	}
	r.Text = render(ToolFlight, "from "+org+" to "+dest+" on "+date, r.Rows, n)
	return r
}

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
	r := Result{Columns: columns(ToolDistance), Rows: [][]string{{mode, org, dest, row.Duration, row.Distance.Distance, strconv.FormatFloat(fee, 'f', -1, 64)}}}
	r.Text = render(ToolDistance, "", r.Rows, 1)
	return r
}

// listed is the table that a tool lists for a city or a state.
func (w *World) listed(tool, of string) [][]string {
	var rows [][]string
	switch tool {
	case ToolAccommodation:
		for _, h := range w.hotels[of] {
			rows = append(rows, []string{h.Name, decimal(h.Price), h.RoomType, h.Rules, decimal(h.MinNights), strconv.Itoa(h.MaxPeople), decimal(h.Rating)})
		}
	case ToolRestaurant:
		for _, x := range w.restaurants[of] {
			rows = append(rows, []string{x.Name, strconv.Itoa(x.Cost), x.Cuisines, decimal(x.Rating)})
		}
	case ToolAttraction:
		for _, x := range w.attractions[of] {
			rows = append(rows, []string{x.Name, x.Website, x.Address, x.Phone})
		}
	case ToolCity:
		for _, c := range w.inState[of] {
			rows = append(rows, []string{c})
		}
	}
	return rows
}
