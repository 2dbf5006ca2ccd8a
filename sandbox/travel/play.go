package travel

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Play lets a person be the agent in a terminal: they call the tools, fill in
// a plan field by field, and have it judged by all three profiles. It returns
// at the end of the input, at "quit", or when ctx is done between two lines.
func Play(ctx context.Context, in io.Reader, out io.Writer, w *World, q Query) error {
	p := &player{out: out, e: NewEpisode(w, q, EpisodeConfig{}), days: make([]Day, q.Days)}
	for i := range p.days {
		p.days[i] = emptyDay(i + 1)
	}
	p.say("%s\n", p.request())
	p.help()
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for p.say("\n> "); ctx.Err() == nil && p.err == nil && lines.Scan(); p.say("\n> ") {
		if quit := p.do(strings.TrimSpace(lines.Text())); quit {
			return p.err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read input: %w", err)
	}
	return p.err
}

func emptyDay(n int) Day {
	return Day{Day: n, City: "-", Transportation: "-", Breakfast: "-", Lunch: "-", Dinner: "-", Attraction: "-", Accommodation: "-"}
}

type player struct {
	out  io.Writer
	e    *Episode
	days []Day
	err  error // the first write that failed
}

func (p *player) say(format string, args ...any) {
	if _, err := fmt.Fprintf(p.out, format, args...); err != nil && p.err == nil {
		p.err = fmt.Errorf("write output: %w", err)
	}
}

func (p *player) request() string {
	q := p.e.q
	var b strings.Builder
	if q.Text != "" {
		b.WriteString(q.Text + "\n\n")
	}
	fmt.Fprintf(&b, "from %s to %s, %d days (%s), %s to visit, %s, budget %s",
		q.Org, q.Dest, q.Days, strings.Join(q.Dates, ", "), plural(q.Cities, "city", "cities"), plural(q.People, "person", "people"), dollars(q.Budget))
	wishes := q.Wishes()
	for _, name := range sortedKeys(wishes) {
		if name != "budget" {
			fmt.Fprintf(&b, "\n%s: %s", name, wishes[name])
		}
	}
	return b.String()
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

const playHelp = `
Tools (arguments separated by " | "):
  flights FROM | TO | DATE        flights on a date, YYYY-MM-DD
  road FROM | TO [| taxi]         duration, distance and cost by car or taxi
  hotels CITY                     accommodations
  food CITY                       restaurants
  sights CITY                     attractions
  cities STATE                    cities of a state
Plan:
  set DAY FIELD VALUE             fields: city transport breakfast attraction lunch dinner hotel
                                  city: "B", or "from A to B" on a day with a move
                                  transport: "Flight Number: F1234567, from A to B" or "Self-driving, from A to B" or "Taxi, from A to B"
                                  meals, hotel: "Name, City"; attraction: "Name, City;Name, City;"
  plan                            show the plan
  load JSON                       take a whole plan as a JSON list
  judge                           judge the plan by all profiles; you may go on afterwards
  query                           show the request again
  help, quit
`

func (p *player) help() { p.say("%s", playHelp) }

// do acts on one line and tells whether to stop.
func (p *player) do(line string) (quit bool) {
	verb, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	switch strings.ToLower(verb) {
	case "":
	case "help", "?":
		p.help()
	case "quit", "exit":
		return true
	case "query":
		p.say("%s\n", p.request())
	case "flights":
		p.call(ToolFlight, rest)
	case "road":
		if strings.Count(rest, "|") == 1 {
			rest += " | driving"
		}
		p.call(ToolDistance, rest)
	case "hotels":
		p.call(ToolAccommodation, rest)
	case "food":
		p.call(ToolRestaurant, rest)
	case "sights":
		p.call(ToolAttraction, rest)
	case "cities":
		p.call(ToolCity, rest)
	case "set":
		p.set(rest)
	case "plan":
		p.say("%s", FormatPlan(p.days))
	case "load":
		p.load(rest)
	case "judge":
		p.judge()
	default:
		p.say("There is no command %q; type help.\n", clip(verb))
	}
	return false
}

func (p *player) call(tool, rest string) {
	params := toolParams(tool)
	values := strings.Split(rest, "|")
	if rest == "" || len(values) != len(params) {
		p.say("This needs %s.\n", strings.Join(params, " | "))
		return
	}
	args := map[string]any{}
	for i, name := range params {
		args[name] = strings.TrimSpace(values[i])
	}
	p.say("%s\n", p.e.Call(tool, args).Text)
}

func (p *player) set(rest string) {
	day, rest, _ := strings.Cut(rest, " ")
	name, value, _ := strings.Cut(strings.TrimSpace(rest), " ")
	n, err := strconv.Atoi(day)
	if err != nil || n < 1 || n > len(p.days) {
		p.say("The day is %q, must be 1 to %d.\n", clip(day), len(p.days))
		return
	}
	f := textField(name)
	if name == "hotel" {
		f = FieldAccommodation
	}
	if f == noField {
		p.say("The field is %q, must be city, transport, breakfast, attraction, lunch, dinner or hotel.\n", clip(name))
		return
	}
	if value = strings.TrimSpace(value); value == "" {
		value = "-"
	}
	p.days[n-1].set(f, value)
}

func (p *player) load(rest string) {
	plan, err := ParsePlan(rest)
	if err != nil {
		p.say("Not loaded: %v\n", err)
		return
	}
	p.days = plan.Strict()
}

func (p *player) judge() {
	plan := NewPlan(p.days)
	for _, pr := range Profiles() {
		j := Judge(p.e.w, p.e.q, plan, pr)
		result := "fails " + strings.Join(j.Failed(), ", ")
		if j.Success {
			result = "passes"
		}
		p.say("%-8s %s", pr, result)
		if j.Cost != nil {
			p.say("; it costs %s of %s", dollars(*j.Cost), dollars(p.e.q.Budget))
		}
		p.say("\n")
		if pr == Strict {
			p.say("%s", j.Explain())
		}
	}
	p.say("%s so far: %s\n", plural(p.e.calls, "tool call", "tool calls"), strings.Join(p.counts(), ", "))
}

func (p *player) counts() []string {
	var list []string
	for tool, n := range p.e.tools {
		list = append(list, fmt.Sprintf("%s %d", tool, n))
	}
	slices.Sort(list)
	return list
}
