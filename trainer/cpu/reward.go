package cpu

import (
	"maps"
	"slices"

	"alidade/trainer"
)

// withhold takes the whole reward of an over-long rollout back.
func withhold(reward float64, parts []trainer.Component) (float64, []trainer.Component) {
	if reward == 0 {
		return 0, parts
	}
	return 0, append(parts, trainer.Component{Name: "overlong", Value: -reward})
}

// milestones are the parts of the reward that the sub-goals the trip reached
// pay, by name. A format error takes them back like everything else.
func (r *rollout) milestones(pay map[string]float64) []trainer.Component {
	if len(pay) == 0 {
		return nil
	}
	reached := r.s.Milestones()
	var parts []trainer.Component
	for _, name := range slices.Sorted(maps.Keys(pay)) {
		if _, ok := reached[name]; ok {
			parts = append(parts, trainer.Component{Name: "milestone_" + name, Value: pay[name]})
		}
	}
	return parts
}
