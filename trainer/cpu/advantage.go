package cpu

import "math"

// advantages sets the advantage of every rollout from the rewards of its group
// (mean and standard deviation, n−1 in the denominator), as the objective
// says. Rollouts of a group follow one another. Over-long ones count in the
// statistics; with mask they leave the loss. It returns the share of groups
// without spread: they give no gradient and leave the loss as well, unless
// they are compared across groups or the loss has a term without advantage.
func advantages(all []*rollout, o *objective) (zeroVariance float64) {
	const eps = 1e-6 // added to the standard deviation, as verl does
	groups, zero := 0, 0
	for first := 0; first < len(all); {
		end := first
		sum := 0.0
		for end < len(all) && all[end].group == all[first].group {
			sum += all[end].reward
			end++
		}
		n := float64(end - first)
		mean, squares := sum/n, 0.0
		for _, r := range all[first:end] {
			squares += (r.reward - mean) * (r.reward - mean)
		}
		std := math.Sqrt(squares / max(n-1, 1))
		spread := std > 1e-9
		groups++
		if !spread {
			zero++
		}
		for _, r := range all[first:end] {
			r.mean, r.std = mean, std
			r.inLoss = (spread || o.Std == "batch" || o.everywhere()) && !(o.Overlong == "mask" && r.s.Overlong())
			r.advantage = 0
			switch {
			case o.Baseline == "batch":
				r.advantage = r.reward
			case !spread:
			case o.Baseline == "leave-one-out":
				r.advantage = (r.reward - mean) * n / (n - 1)
			case o.Std == "group":
				r.advantage = r.reward - mean
				r.advantage /= std + eps
			default:
				r.advantage = r.reward - mean
			}
		}
		first = end
	}
	if o.Std == "batch" {
		whiten(all)
	}
	if o.Tree != nil {
		shareAdvantages(all)
	}
	return float64(zero) / float64(groups)
}

// adv is the advantage of the rollout's k-th token.
func (r *rollout) adv(k int) float64 {
	if r.tokenAdv != nil {
		return r.tokenAdv[k]
	}
	return r.advantage
}
