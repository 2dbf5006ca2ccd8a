package report

import (
	"maps"
	"slices"

	"alidade/ablation"
	"alidade/stats"
)

// The policies of evaluations that are not the run's own.
const (
	policyOwn       = "policy"
	policySFT       = "sft"
	policyControl   = "sft-continued"
	policyRandom    = "random-legal"
	policyExpert    = "expert"
	modeSampled     = "sampled"
	modeGreedy      = "greedy"
	panelPreference = "test"
)

// An outcome is one evaluation of one run, query by query.
type outcome struct {
	seed    uint64
	run     ablation.RunID
	step    int64
	samples int
	hash    string
	passed  map[string]int    // query → rollouts that passed
	level   map[string]string // query → difficulty
}

// outcomeOf picks a run's last evaluation of a policy in a mode on the main
// panel; ok is false when there is none.
func outcomeOf(r RunData, policy, mode string) (outcome, bool) {
	best := -1
	for i, e := range r.Evaluations {
		if e.Policy != policy || e.Mode != mode || len(e.Queries) == 0 || e.Samples < 1 {
			continue
		}
		if best < 0 || better(e, r.Evaluations[best]) {
			best = i
		}
	}
	if best < 0 {
		return outcome{}, false
	}
	return newOutcome(r, r.Evaluations[best]), true
}

// better prefers the main panel, then the later step.
func better(a, b ablation.EvalResult) bool {
	if am, bm := a.Panel == panelPreference, b.Panel == panelPreference; am != bm {
		return am
	}
	if a.Panel != b.Panel {
		return a.Panel < b.Panel
	}
	return a.Step >= b.Step
}

// sftOutcome is the SFT checkpoint's evaluation: named so, or the policy's at
// step 0.
func sftOutcome(r RunData) (outcome, bool) {
	if o, ok := outcomeOf(r, policySFT, modeSampled); ok {
		return o, true
	}
	for _, e := range r.Evaluations {
		if e.Policy == policyOwn && e.Mode == modeSampled && e.Step == 0 && e.Samples > 0 && len(e.Queries) > 0 {
			return newOutcome(r, e), true
		}
	}
	return outcome{}, false
}

func newOutcome(r RunData, e ablation.EvalResult) outcome {
	o := outcome{seed: r.Run.Seed, run: r.Run.ID, step: e.Step, samples: e.Samples, hash: e.Hash, passed: map[string]int{}, level: map[string]string{}}
	for _, q := range e.Queries {
		o.passed[q.Query] = q.Passed
		o.level[q.Query] = q.Level
	}
	return o
}

// A table holds outcomes of several seeds on the queries they all have:
// rate[s][q] is the share of rollouts that passed.
type table struct {
	seeds   []uint64
	queries []string
	rate    [][]float64
	samples int // fewest of any seed
}

// newTable lines outcomes up; keep filters queries by difficulty ("" = all).
func newTable(outcomes []outcome, level string) table {
	var t table
	if len(outcomes) == 0 {
		return t
	}
	common := maps.Clone(outcomes[0].passed)
	for _, o := range outcomes[1:] {
		maps.DeleteFunc(common, func(q string, _ int) bool { _, ok := o.passed[q]; return !ok })
	}
	for _, q := range slices.Sorted(maps.Keys(common)) {
		if level == "" || outcomes[0].level[q] == level {
			t.queries = append(t.queries, q)
		}
	}
	for _, o := range outcomes {
		row := make([]float64, len(t.queries))
		for i, q := range t.queries {
			row[i] = float64(o.passed[q]) / float64(o.samples)
		}
		t.seeds = append(t.seeds, o.seed)
		t.rate = append(t.rate, row)
		if t.samples == 0 || o.samples < t.samples {
			t.samples = o.samples
		}
	}
	return t
}

// estimate is the mean over seeds and queries with both noises.
func (t table) estimate(o stats.Resampling) Estimate {
	if len(t.queries) == 0 {
		return Estimate{Mean: Float(nan()), Seeds: len(t.seeds)}
	}
	clusters := make([]stats.Cluster, len(t.queries))
	means := make([]float64, len(t.seeds))
	for s, row := range t.rate {
		means[s] = stats.Mean(row)
		for q, v := range row {
			clusters[q].Sum += v
			clusters[q].N++
		}
	}
	query := stats.ClusterMean(clusters, o)
	if query.Interval.Low == query.Interval.High { // all queries alike: the bootstrap sees no noise
		query.Interval = stats.Wilson(int(query.Mean*float64(len(clusters))+0.5), len(clusters), query.Interval.Level)
	}
	return combine(query, stats.TInterval(means, o.Level), means, len(t.queries), t.samples)
}

// combine puts two estimates of the same mean side by side.
func combine(query, seed stats.Estimate, bySeed []float64, queries, samples int) Estimate {
	e := Estimate{Mean: Float(query.Mean), Seeds: len(bySeed), Queries: queries, Samples: samples, BySeed: floats(bySeed)}
	e.Query, e.Seed = known(query.Interval), known(seed.Interval)
	e.Warnings = append(append(e.Warnings, query.Warnings...), seed.Warnings...)
	return e
}

func known(iv stats.Interval) *Interval {
	if !iv.Known() {
		return nil
	}
	return &Interval{Low: iv.Low, High: iv.High, Method: iv.Method}
}

// scalarEstimate is the mean of one value a seed, with seed noise only.
func scalarEstimate(values []float64, level float64) Estimate {
	seed := stats.TInterval(values, level)
	return Estimate{Mean: Float(seed.Mean), Seeds: len(values), Seed: known(seed.Interval), BySeed: floats(values), Warnings: seed.Warnings}
}
