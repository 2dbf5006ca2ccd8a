package verl

import (
	"fmt"
	"hash/fnv"

	"alidade/ablation"
)

// evaluation makes a result of a complete validation dump. The queries are
// known by their ground truth; the panel's hash is theirs.
func (d *dumps) evaluation(f *dumpFile) *ablation.EvalResult {
	e := &ablation.EvalResult{Panel: d.Panel, Policy: "policy", Mode: "sampled", Step: f.step}
	at := map[string]int{}
	rollouts := map[string]int{}
	for i := range f.rows {
		q := f.rows[i].query
		if q == "" {
			q = f.rows[i].group
		}
		if len(q) > 64 {
			q = shortHash(q)
		}
		k, seen := at[q]
		if !seen {
			k = len(e.Queries)
			at[q] = k
			e.Queries = append(e.Queries, ablation.QueryResult{Query: q})
		}
		rollouts[q]++
		e.Samples = max(e.Samples, rollouts[q])
		if f.rows[i].passed {
			e.Queries[k].Passed++
		}
	}
	panel := fnv.New64a()
	for _, q := range keysOf(at) {
		_, _ = panel.Write([]byte(q))
		_, _ = panel.Write([]byte{0})
	}
	e.Hash = fmt.Sprintf("%016x", panel.Sum64())
	return e
}

func shortHash(s string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s))
	return fmt.Sprintf("%016x", h.Sum64())
}
