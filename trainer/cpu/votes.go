package cpu

import "fmt"

// ballot is what one rollout answered, and whether that was right.
type ballot struct {
	answer string // "" = none
	right  bool
}

// ballots collects the answers of rollouts by query. Rollouts of a query
// follow one another.
func ballots(all []*rollout) [][]ballot {
	var out [][]ballot
	for _, o := range all {
		if o.group == len(out) {
			out = append(out, nil)
		}
		b := ballot{right: o.judged.Success}
		if o.s != nil {
			b.answer = o.s.Answer()
		} else {
			b.answer, b.right = o.q.Answer(), o.q.Correct()
		}
		out[o.group] = append(out[o.group], b)
	}
	return out
}

// votes adds pass@k (the chance that one of k of the rollouts is right, without
// bias, for k = 2, 4, 8 … and all) and maj@n (whether the most frequent answer
// of all is) under a prefix, if there is more than one rollout a query.
func votes(m map[string]float64, prefix string, queries [][]ballot) {
	if len(queries) == 0 || len(queries[0]) < 2 {
		return
	}
	n := len(queries[0])
	for k := 2; ; k *= 2 {
		k = min(k, n)
		sum := 0.0
		for _, q := range queries {
			sum += passAt(k, q)
		}
		m[fmt.Sprintf("%spass_at_%d", prefix, k)] = sum / float64(len(queries))
		if k == n {
			break
		}
	}
	sum := 0.0
	for _, q := range queries {
		sum += share(majority(q))
	}
	m[fmt.Sprintf("%smaj_at_%d", prefix, n)] = sum / float64(len(queries))
}

// passAt is 1 − C(n−c, k)/C(n, k), for c right ones among n.
func passAt(k int, q []ballot) float64 {
	wrong := 0
	for _, b := range q {
		if !b.right {
			wrong++
		}
	}
	none := 1.0
	for i := range k {
		none *= max(float64(wrong-i), 0) / float64(len(q)-i)
	}
	return 1 - none
}

// majority says whether the most frequent answer is right; of answers equally
// frequent the first given counts. No answer is no vote.
func majority(q []ballot) bool {
	count, best := map[string]int{}, -1
	for _, b := range q {
		if b.answer != "" {
			count[b.answer]++
		}
	}
	for i, b := range q {
		if b.answer != "" && (best < 0 || count[b.answer] > count[q[best].answer]) {
			best = i
		}
	}
	return best >= 0 && q[best].right
}
