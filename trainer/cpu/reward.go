package cpu

import "alidade/trainer"

// withhold takes the whole reward of an over-long rollout back.
func withhold(reward float64, parts []trainer.Component) (float64, []trainer.Component) {
	if reward == 0 {
		return 0, parts
	}
	return 0, append(parts, trainer.Component{Name: "overlong", Value: -reward})
}
