package rllm

import (
	"math"
	"strconv"

	"alidade/trainer"
)

// epsilon keeps rLLM's division by a standard deviation finite.
const epsilon = 1e-6

// advantages computes what rLLM pays each member of a group. Its standard
// deviation is the population's (numpy's default), unlike verl's; a group of
// one has mean 0 and deviation 1. Estimators that are no function of the
// group's rewards have none.
func (s *Server) advantages(b *batch, group map[string]string) map[string]*trainer.Advantage {
	members := map[string][]string{}
	for _, id := range b.order {
		if g := group[id]; g != "" {
			members[g] = append(members[g], id)
		}
	}
	out := make(map[string]*trainer.Advantage, len(b.order))
	for _, list := range members {
		rewards := make([]float64, len(list))
		for i, id := range list {
			rewards[i] = b.episodes[id].reward()
		}
		for i, a := range groupAdvantages(s.cfg.Estimator, s.cfg.ByStd, rewards) {
			out[list[i]] = &a
		}
	}
	return out
}

// groupAdvantages computes a group's advantages by one of rLLM's estimators;
// nil for one that is no function of the group alone.
func groupAdvantages(estimator string, byStd bool, rewards []float64) []trainer.Advantage {
	n := float64(len(rewards))
	mean, std := 0.0, 1.0
	if n > 1 {
		sum, squares := 0.0, 0.0
		for _, r := range rewards {
			sum += r
		}
		mean = sum / n
		for _, r := range rewards {
			squares += (r - mean) * (r - mean)
		}
		std = math.Sqrt(squares / n)
	}
	out := make([]trainer.Advantage, len(rewards))
	for i, r := range rewards {
		a := trainer.Advantage{Value: r - mean, Mean: mean, Std: std, Norm: "group-mean", Zero: n > 1 && std == 0, InLoss: !(n > 1 && std == 0)}
		switch {
		case estimator == "rloo" && n > 1:
			a.Value *= n / (n - 1)
		case estimator == "rloo":
			a.Value = r
		case estimator != "grpo":
			return nil
		case byStd:
			a.Value, a.Norm = a.Value/(std+epsilon), "group-std"
		}
		out[i] = a
	}
	return out
}

func short(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

func share(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
