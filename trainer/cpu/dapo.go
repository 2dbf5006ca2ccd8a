package cpu

import (
	"alidade/ablation"
	"alidade/trainer"
)

// dapo is GRPO with token-mean loss, a raised upper clip (the recipe's),
// dynamic sampling and an over-long penalty, without KL.
func dapo(o *objective, a *ablation.Algorithm) {
	grpoTCR(o, a)
	o.Std, o.Filter = "group", true
}

// overlongPenalty is 0 up to the buffer, then falls in a line to −penalty at
// the limit: min(−(length − (limit − buffer))/buffer·penalty, 0).
func (o *objective) overlongPenalty(response int) float64 {
	return min(-float64(response-(o.Limit-o.Buffer))/float64(o.Buffer)*o.Penalty, 0)
}

// shape adds the penalty to a reward.
func (o *objective) shape(response int, reward float64, parts []trainer.Component) (float64, []trainer.Component) {
	p := o.overlongPenalty(response)
	if p == 0 {
		return reward, parts
	}
	return reward + p, append(parts, trainer.Component{Name: "overlong", Value: p})
}

// spreadGroups returns the rollouts of those groups whose members differ in
// the metric, at most want groups. Groups follow one another.
func (o *objective) spreadGroups(all []*rollout, want int) (kept []*rollout) {
	for first := 0; first < len(all); {
		end, differ := first, false
		for end < len(all) && all[end].group == all[first].group {
			differ = differ || o.filterValue(all[end]) != o.filterValue(all[first])
			end++
		}
		if differ && want > 0 {
			kept = append(kept, all[first:end]...)
			want--
		}
		first = end
	}
	return kept
}

func (o *objective) filterValue(r *rollout) float64 {
	if o.FilterMetric == "acc" {
		return share(r.judged.Success)
	}
	return r.reward
}
