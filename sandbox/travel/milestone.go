package travel

import (
	"maps"
	"slices"

	"alidade/sandbox"
	"alidade/trainer"
)

// milestoneTable names the sub-goals that can be paid when an episode first
// reaches them, each with the call that reaches it. They are outside the
// published design, whose rewards are terminal and belong to the trajectory.
var milestoneTable = []struct {
	name, help string
	reached    func(e *Episode, c *trainer.Call) bool
}{
	{"way_out", "a way from the departure city to a destination was shown", func(e *Episode, c *trainer.Call) bool {
		return isRoad(c) && argOf(c, "departure") == e.q.Org && e.isDest(argOf(c, "destination"))
	}},
	{"way_home", "a way from a destination to the departure city was shown", func(e *Episode, c *trainer.Call) bool {
		return isRoad(c) && e.isDest(argOf(c, "departure")) && argOf(c, "destination") == e.q.Org
	}},
	{"cities", "the cities of the destination state were shown", func(e *Episode, c *trainer.Call) bool {
		return c.Tool == ToolCity && argOf(c, "state") == e.q.Dest
	}},
	{"hotels", "the accommodations of a destination were shown", cityShown(ToolAccommodation)},
	{"restaurants", "the restaurants of a destination were shown", cityShown(ToolRestaurant)},
	{"attractions", "the attractions of a destination were shown", cityShown(ToolAttraction)},
}

// milestonePlan is reached by a delivered plan, at the end.
const milestonePlan = "plan"

// MilestoneNames lists the sub-goals that a recipe may pay for.
func MilestoneNames() []string {
	names := make([]string, 0, len(milestoneTable)+1)
	for _, m := range milestoneTable {
		names = append(names, m.name)
	}
	return append(names, milestonePlan)
}

type milestone struct {
	name string
	turn int // 1-based
}

func isRoad(c *trainer.Call) bool { return c.Tool == ToolFlight || c.Tool == ToolDistance }

func cityShown(tool string) func(*Episode, *trainer.Call) bool {
	return func(e *Episode, c *trainer.Call) bool { return c.Tool == tool && e.isDest(argOf(c, "city")) }
}

// isDest tells whether a city may be visited on the trip.
func (e *Episode) isDest(city string) bool {
	return city != "" && (city == e.q.Dest || e.w.State(city) == e.q.Dest)
}

// reach notes the sub-goals that a call reached for the first time. A failed
// or empty search reaches none.
func (e *Episode) reach(c *trainer.Call, obs *trainer.Observed) {
	if len(obs.Rows) == 0 || obs.Injected != "" && obs.Injected != sandbox.Latency {
		return
	}
	for i := range milestoneTable {
		m := &milestoneTable[i]
		if _, paid := e.c.Milestones[m.name]; paid && !e.has(m.name) && m.reached(e, c) {
			e.reached = append(e.reached, milestone{m.name, len(e.turns)})
		}
	}
}

func (e *Episode) has(name string) bool {
	return slices.ContainsFunc(e.reached, func(m milestone) bool { return m.name == name })
}

// Milestones returns the turn, counted from 1, at which each sub-goal was reached.
func (e *Episode) Milestones() map[string]int {
	turns := make(map[string]int, len(e.reached))
	for _, m := range e.reached {
		turns[m.name] = m.turn
	}
	return turns
}

// milestonePay are the parts of the reward that the sub-goals pay, by name.
func (e *Episode) milestonePay() []trainer.Component {
	var parts []trainer.Component
	for _, name := range slices.Sorted(maps.Keys(e.c.Milestones)) {
		if e.has(name) {
			parts = append(parts, trainer.Component{Name: "milestone_" + name, Value: e.c.Milestones[name]})
		}
	}
	return parts
}
