package travel

import (
	"fmt"
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
	r := Result{Columns: columns(tool), Rows: w.listed(tool, of)}
	if len(r.Rows) == 0 {
		return nothing(nouns[tool] + " in " + of)
	}
	r.Text = render(tool, "in "+of, r.Rows, len(r.Rows))
	if r.Err == "" { // names without hits are not kept: there is no end of them
		w.listings.Store(listing{tool, strings.Clone(of)}, &r)
	}
	return r
}
