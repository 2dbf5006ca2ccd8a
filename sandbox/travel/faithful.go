package travel

import "strings"

// program is one of the two public evaluators.
type program struct {
	checks [nChecks]func(*evaluation) finding
	order  [nChecks]Check // in which the program calls them
	cost   func(*evaluation)
}

// evaluation is the state of one judgement by a public program.
type evaluation struct {
	w     *World
	q     *Query
	p     *Plan
	total float64 // $
	costs []map[string]float64

	priced bool   // the cost function has run
	raised string // its exception
}

// judgeFaithful calls every check on its own, so that the others are known
// even when one raises.
func judgeFaithful(w *World, q *Query, p *Plan, prog *program, j *Judgement) {
	e := &evaluation{w: w, q: q, p: p}
	e.price(prog.cost)
	j.CostRaised = e.raised
	if j.CostRaised == "" {
		total := e.total
		j.Cost = &total
	}
	j.DayCosts = e.costs
	e.run(prog, j, prog.order[:nCommonsense])
	j.GateOpen = j.Raised == "" && j.passed(CheckComplete) && j.passed(CheckSandbox)
	if !j.GateOpen {
		j.closeGate()
		return
	}
	e.run(prog, j, prog.order[nCommonsense:])
}

func (e *evaluation) run(prog *program, j *Judgement, order []Check) {
	for _, c := range order {
		var f finding
		exception := catch(func() { f = prog.checks[c](e) })
		if exception != "" {
			f = finding{outcome: OutcomeRaises, field: noField, value: exception,
				reason: "The public program stops here with " + exception + ": it cannot read a value of this kind or form."}
			if j.Raised == "" {
				j.Raised, j.RaisedAt = exception, c.Key()
			}
		}
		f.write(&j.Verdicts[c])
	}
}

// days is min(question["days"], len(plan)).
func (e *evaluation) days() int { return min(e.q.Days, e.p.length()) }

// price runs the cost function and keeps what it raises.
func (e *evaluation) price(cost func(*evaluation)) {
	e.priced = true
	e.raised = catch(func() { cost(e) })
}

// spend adds to the total and to the field's cost on a day counted from 0.
func (e *evaluation) spend(day int, f Field, amount float64) {
	e.total += amount
	e.costs = addCost(e.costs, day, f, amount)
}

func addCost(costs []map[string]float64, day int, f Field, amount float64) []map[string]float64 {
	for len(costs) <= day {
		costs = append(costs, nil)
	}
	if costs[day] == nil {
		costs[day] = make(map[string]float64, 6)
	}
	costs[day][f.String()] += amount
	return costs
}

// restaurantLike returns the first restaurant of a city whose name contains the text.
func (w *World) restaurantLike(name, city string) *Restaurant {
	rows := w.restaurants[city]
	for i := range rows {
		if strings.Contains(rows[i].Name, name) {
			return &rows[i]
		}
	}
	return nil
}

func (w *World) attractionLike(name, city string) *Attraction {
	rows := w.attractions[city]
	for i := range rows {
		if strings.Contains(rows[i].Name, name) {
			return &rows[i]
		}
	}
	return nil
}

// hotelLike returns the first such accommodation and whether it is the only one.
func (w *World) hotelLike(name, city string) (first *Hotel, only bool) {
	rows := w.hotels[city]
	for i := range rows {
		if strings.Contains(rows[i].Name, name) {
			if first != nil {
				return first, false
			}
			first = &rows[i]
		}
	}
	return first, first != nil
}

// wrongRoom tells whether a room type breaks a wish for one.
func wrongRoom(wish, room string) bool {
	switch wish {
	case "not shared room":
		return room == "Shared room"
	case "shared room":
		return room != "Shared room"
	case "private room":
		return room != "Private room"
	case "entire room":
		return room != "Entire home/apt"
	}
	return false
}

// forbids tells whether house rules forbid what the guest wants.
func forbids(rules, wish string) bool {
	switch wish {
	case "smoking", "parties", "children under 10", "visitors", "pets":
		return strings.Contains(rules, "No "+wish)
	}
	return false
}

// stays groups equal neighbouring accommodations.
type stay struct {
	value  *Value
	first  int // day, from 0
	nights int
}

func stays(values []*Value) []stay {
	var list []stay
	for i, v := range values {
		if n := len(list); n > 0 && v.equal(list[n-1].value) {
			list[n-1].nights++
			continue
		}
		list = append(list, stay{v, i, 1})
	}
	return list
}

// brokenRun looks for a city that comes again or that is only passed once.
// The list has at least three entries; it returns the index at fault or -1.
func brokenRun(cities []Value) int {
	for i := 0; i < len(cities); {
		first := i
		city := cities[i].hashed()
		seen := false
		for k := 0; k < first; k++ {
			seen = seen || cities[k].equal(city)
		}
		if seen && first != 0 && first != len(cities)-1 {
			return first
		}
		for i < len(cities) && cities[i].equal(city) {
			i++
		}
		if i-first == 1 && first > 0 && first < len(cities)-1 {
			return first
		}
	}
	return -1
}

const filler = "You don't need to fill in the information for this or later days."

var mealFields = [3]Field{FieldBreakfast, FieldLunch, FieldDinner}

// lateMeals is the order in which Agent-STAR's evaluator walks the meals.
var lateMeals = [3]Field{FieldLunch, FieldDinner, FieldBreakfast}

var infoFields = [6]Field{FieldTransportation, FieldBreakfast, FieldLunch, FieldDinner, FieldAttraction, FieldAccommodation}
