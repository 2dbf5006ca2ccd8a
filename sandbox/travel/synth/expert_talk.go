package synth

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"alidade/sandbox/travel"
	"alidade/trainer"
)

// expert writes the turns of a trace.
type expert struct {
	w      *World
	e      *travel.Episode
	q      travel.Query
	o      TraceOptions
	r      *rand.Rand
	days   []travel.Day
	steps  []step
	needed int // steps without the detours

	next    int // step to take
	repeats int // of the step just taken, after failures
	said    []travel.Message
}

// step is one look-up with the reason for it.
type step struct {
	lookup
	why    string
	detour bool // not needed for the plan
}

// steps lists the look-ups that show every item of the plan, once each.
func (w *World) steps(r *rand.Rand, q travel.Query, sol Solution, days []travel.Day, o TraceOptions) []step {
	var out []step
	sol.Days = days
	seen := map[string]bool{}
	for _, l := range w.lookups(r, q, sol, Deliberative) {
		src, _ := json.Marshal(l.args) // texts cannot fail
		if key := l.tool + string(src); !seen[key] {
			seen[key] = true
			out = append(out, step{lookup: l, why: reason(r, q, l)})
		}
	}
	if o.Style == Reactive && !o.Stitched { // looks up as things come to mind, not in order
		from := 0
		if q.Days > 3 {
			from = 1
		}
		r.Shuffle(len(out)-from, func(i, j int) { out[from+i], out[from+j] = out[from+j], out[from+i] })
	}
	return out
}

// reason says in words what a look-up is for.
func reason(r *rand.Rand, q travel.Query, l lookup) string {
	city, _ := l.args["city"].(string)
	from, _ := l.args["departure"].(string)
	to, _ := l.args["destination"].(string)
	switch l.tool {
	case travel.ToolCity:
		return fmt.Sprintf("the trip visits %d cities in %s, so I first need to know which there are.", q.Cities, q.Dest)
	case travel.ToolFlight:
		return fmt.Sprintf("I need a flight from %s to %s on %v.", from, to, l.args["date"])
	case travel.ToolDistance:
		return fmt.Sprintf("how long is the way from %s to %s by %v, and what does it cost?", from, to, l.args["mode"])
	case travel.ToolAccommodation:
		return fmt.Sprintf("I need a place to stay in %s for %s%s.", city, peopleText(q.People), wishText(q))
	case travel.ToolRestaurant:
		if len(q.Wish.Cuisine) > 0 {
			return fmt.Sprintf("I need meals in %s, with %s among them.", city, join(q.Wish.Cuisine))
		}
		return fmt.Sprintf("I need restaurants in %s, all different.", city)
	}
	return pick(r, []string{fmt.Sprintf("what is there to see in %s?", city), fmt.Sprintf("each full day in %s needs a sight.", city)})
}

func peopleText(n int) string {
	if n == 1 {
		return "one person"
	}
	return strconv.Itoa(n) + " people"
}

func wishText(q travel.Query) string {
	var parts []string
	if q.Wish.RoomType != "" {
		parts = append(parts, q.Wish.RoomType)
	}
	if q.Wish.HouseRule != "" {
		parts = append(parts, q.Wish.HouseRule+" allowed")
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// explore puts detours among the steps: other cities, the other way to
// travel, a slip of the pen, a second look.
func (x *expert) explore(sol Solution) {
	chance := func(p float64) bool { return x.o.Explore > 0 && x.r.Float64() < x.o.Explore*p }
	var out []step
	for i, s := range x.steps {
		if chance(0.12) && s.tool != travel.ToolCity {
			out = append(out, x.slip(s))
		}
		out = append(out, s)
		city, _ := s.args["city"].(string)
		switch s.tool {
		case travel.ToolFlight, travel.ToolDistance:
			if chance(0.5) && x.q.Wish.Transportation == "" {
				out = append(out, x.otherWay(s))
			}
			if other := x.otherCity(sol); i == 0 && other != "" && chance(0.8) {
				args := map[string]any{"departure": x.q.Org, "destination": other, "date": x.q.Dates[0]}
				out = append(out, step{lookup{travel.ToolFlight, args}, "I also compare how to get to " + other + ".", true})
			}
		case travel.ToolAccommodation:
			if other := x.otherCity(sol); other != "" && chance(0.4) {
				out = append(out, step{lookup{travel.ToolAccommodation, map[string]any{"city": other}}, "is there something better in " + other + "?", true})
			}
		}
		if x.o.Style == Reactive && city != "" && chance(0.25) {
			again := s
			again.why, again.detour = "let me look at that list once more.", true
			out = append(out, again)
		}
	}
	x.steps = out
}

// slip is a look-up that goes wrong: a state behind the city, or another year.
func (x *expert) slip(s step) step {
	args := map[string]any{}
	for k, v := range s.args {
		args[k] = v
	}
	switch city, ok := args["city"].(string); {
	case ok:
		args["city"] = city + " (" + x.w.State(city) + ")"
	case s.tool == travel.ToolFlight:
		args["date"] = strings.Replace(fmt.Sprint(args["date"]), "2022-", "2023-", 1)
	default:
		args["destination"] = fmt.Sprint(args["destination"]) + ", " + x.w.State(fmt.Sprint(args["destination"]))
	}
	return step{lookup{s.tool, args}, s.why, true}
}

// otherWay looks at the road where the plan flies and the other way round.
func (x *expert) otherWay(s step) step {
	from, to := s.args["departure"], s.args["destination"]
	if s.tool == travel.ToolFlight {
		return step{lookup{travel.ToolDistance, map[string]any{"departure": from, "destination": to, "mode": "driving"}}, "would driving be better?", true}
	}
	return step{lookup{travel.ToolFlight, map[string]any{"departure": from, "destination": to, "date": x.q.Dates[0]}}, "would a flight be better?", true}
}

// otherCity is a city of the destination state that the plan leaves out.
func (x *expert) otherCity(sol Solution) string {
	if x.q.Days == 3 {
		return ""
	}
	var rest []string
next:
	for _, c := range x.w.candidates(x.q) {
		for _, used := range sol.Cities {
			if c == used || c == x.q.Org {
				continue next
			}
		}
		rest = append(rest, c)
	}
	if len(rest) == 0 {
		return ""
	}
	return pick(x.r, rest)
}

const maxRepeats = 8

// turn is the expert as a policy: what it writes next.
func (x *expert) turn(_ context.Context, messages []travel.Message) (string, error) {
	var thought string
	last := x.e.Last()
	failed := last != nil && last.Observe != nil && (last.Observe.Injected == "unavailable" || last.Observe.Injected == "timeout")
	switch {
	case failed && x.repeats < maxRepeats && !x.o.Stitched:
		x.repeats++
		x.next--
		thought = pick(x.r, []string{"The tool does not answer. I try the same call again.", "That failed for a moment; once more."})
	case last == nil && !x.o.Stitched:
		thought = x.opening()
	case !x.o.Stitched:
		x.repeats = 0
		thought = x.comment(last)
	}
	var text string
	if x.next < len(x.steps) {
		s := &x.steps[x.next]
		x.next++
		if thought == "" || x.repeats == 0 {
			thought = strings.TrimSpace(thought + " " + sentence(s.why))
		}
		call, err := callJSON(s.lookup)
		if err != nil {
			return "", err
		}
		text = "<think>" + thought + "</think>\n<tool_call>" + call + "</tool_call>"
	} else {
		thought = strings.TrimSpace(thought + " " + x.closing())
		text = "<think>" + thought + "</think>\n<answer>\n" + travel.JSONPlan(x.days) + "\n</answer>"
	}
	x.said = append(append(x.said[:0:0], messages...), travel.Message{Role: "assistant", Content: text})
	return text, nil
}

func sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// callJSON writes a call with its arguments in the tool's order.
func callJSON(l lookup) (string, error) {
	var b strings.Builder
	name, err := json.Marshal(l.tool)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(&b, `{"name": %s, "arguments": {`, name)
	for _, t := range travel.ToolSpecs() {
		if t.Name != l.tool {
			continue
		}
		for i, p := range t.Params {
			value, err := json.Marshal(l.args[p.Name])
			if err != nil {
				return "", err
			}
			if i > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, `"%s": %s`, p.Name, value)
		}
	}
	b.WriteString("}}")
	return b.String(), nil
}

// opening is the first thought: a deliberative expert lays out what there is
// to do, a reactive one starts.
func (x *expert) opening() string {
	if x.o.Style == Reactive {
		return ""
	}
	q := x.q
	parts := []string{fmt.Sprintf("%d days from %s for %s, %s to %s, with a budget of %s.", q.Days, q.Org, peopleText(q.People), q.Dates[0], q.Dates[len(q.Dates)-1], money(q.Budget))}
	if q.Days > 3 {
		parts = append(parts, fmt.Sprintf("Two nights in each of %d cities in %s work out.", q.Cities, q.Dest))
	}
	var wishes []string
	if q.Wish.Transportation != "" {
		wishes = append(wishes, q.Wish.Transportation)
	}
	if w := wishText(q); w != "" {
		wishes = append(wishes, strings.Trim(w, " ()"))
	}
	if len(q.Wish.Cuisine) > 0 {
		wishes = append(wishes, join(q.Wish.Cuisine)+" among the meals")
	}
	if len(wishes) > 0 {
		parts = append(parts, "To keep in mind: "+strings.Join(wishes, "; ")+".")
	}
	return strings.Join(append(parts, "I look up the way there and back, then places to stay, meals and sights."), " ")
}

// comment says what the last answer means for the plan.
func (x *expert) comment(last *trainer.Turn) string {
	c, o := last.Call, last.Observe
	if c == nil || o == nil {
		return ""
	}
	if len(o.Rows) == 0 {
		return pick(x.r, []string{"Nothing came back for that; I have to ask otherwise.", "No result. I check the spelling and go on."})
	}
	if x.next > 0 && x.steps[x.next-1].detour {
		return pick(x.r, []string{"That does not make it better; I keep to my choice.", "Good to know, but I stay with what I have."})
	}
	switch c.Tool {
	case travel.ToolCity:
		return fmt.Sprintf("There are %d cities; I consider %s.", len(o.Rows), join(x.cities()))
	case travel.ToolFlight:
		for _, row := range o.Rows {
			if x.uses(row[0]) {
				return fmt.Sprintf("%s at $%s a person, %s to %s, suits: $%s for %s.", row[0], row[1], row[2], row[3], times(row[1], x.q.People), peopleText(x.q.People))
			}
		}
		return fmt.Sprintf("%d flights, but the road is the better choice here.", len(o.Rows))
	case travel.ToolDistance:
		row := o.Rows[0]
		return fmt.Sprintf("From %s to %s it takes %s and costs $%s a vehicle.", row[1], row[2], row[3], row[5])
	}
	return x.commentPlaces(c.Tool, o)
}

func (x *expert) commentPlaces(tool string, o *trainer.Observed) string {
	var used []string
	for _, row := range o.Rows {
		if !x.uses(row[0] + ", ") {
			continue
		}
		if tool == travel.ToolAccommodation {
			return fmt.Sprintf("%s, %s, is $%s a night, takes %s and asks for a minimum of nights of %s; its rules (%s) fit.", row[0], strings.ToLower(row[2]), strings.TrimSuffix(row[1], ".0"), row[5], strings.TrimSuffix(row[4], ".0"), row[3])
		}
		used = append(used, row[0])
	}
	if len(used) == 0 {
		return ""
	}
	if tool == travel.ToolAttraction {
		return "I take " + join(used) + "."
	}
	return fmt.Sprintf("Of the %d restaurants I choose %s.", len(o.Rows), join(used))
}

// uses tells whether a text stands in the plan.
func (x *expert) uses(s string) bool {
	for i := range x.days {
		d := &x.days[i]
		for _, f := range []string{d.Transportation, d.Breakfast, d.Lunch, d.Dinner, d.Attraction, d.Accommodation} {
			if strings.Contains(f, s) {
				return true
			}
		}
	}
	return false
}

func (x *expert) cities() []string {
	var list []string
	for i := range x.days {
		if city, _, moves := dayCity(x.days[i].City); moves && city != x.q.Org {
			list = append(list, city)
		}
	}
	return list
}

func times(price string, n int) string {
	p, err := strconv.Atoi(price)
	if err != nil {
		return price
	}
	return strconv.Itoa(p * n)
}

// closing is the last thought: a deliberative expert adds up.
func (x *expert) closing() string {
	if x.o.Stitched {
		return "Now I write the plan."
	}
	if x.o.Style == Reactive {
		return "That is everything; here is the plan."
	}
	j := travel.Judge(x.w.World, x.q, travel.NewPlan(x.days), travel.Strict)
	sums := map[string]float64{}
	total := 0.0
	for _, day := range j.DayCosts {
		for field, cost := range day {
			total += cost
			switch field {
			case "transportation", "accommodation":
				sums[field] += cost
			default:
				sums["meals"] += cost
			}
		}
	}
	return fmt.Sprintf("Adding up: transport $%.0f, stays $%.0f, meals $%.0f, together $%.0f of $%.0f. No restaurant or sight comes twice. Here is the plan.",
		sums["transportation"], sums["accommodation"], sums["meals"], total, x.q.Budget)
}
