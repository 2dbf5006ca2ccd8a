package stats

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// A Comparison is the difference of two policies (or two sets of seeds) on the
// same queries, with the two sources of noise side by side. Query.Mean and
// Seed.Mean are the same difference when the design is balanced.
type Comparison struct {
	Query Estimate // paired by query, given these seeds
	Seed  Estimate // paired by seed; interval unknown below two seeds
}

// PairedQueries estimates the mean of per-query differences: the interval by
// resampling queries, P by the paired t test over queries, which the central
// limit theorem carries for the hundred queries of a panel.
func PairedQueries(a, b []float64, o Resampling) (Estimate, error) {
	if len(a) != len(b) {
		return Estimate{}, fmt.Errorf("paired queries: %d values against %d", len(a), len(b))
	}
	diff := make([]float64, len(a))
	clusters := make([]Cluster, len(a))
	for i := range a {
		diff[i] = a[i] - b[i]
		clusters[i] = Cluster{Sum: diff[i], N: 1}
	}
	e := ClusterMean(clusters, o)
	e.P = tEstimate(diff, e.Interval.Level, "").P
	return e, nil
}

// PairedSeeds estimates the mean of per-seed differences with a t interval and
// the paired t test.
func PairedSeeds(a, b []float64, level float64) (Estimate, error) {
	if len(a) != len(b) {
		return Estimate{}, fmt.Errorf("paired seeds: %d values against %d", len(a), len(b))
	}
	diff := make([]float64, len(a))
	for i := range a {
		diff[i] = a[i] - b[i]
	}
	return TInterval(diff, level), nil
}

// PairedClusters compares two rectangular sets of outcomes, rows seeds and
// columns queries: a[s][q] and b[s][q] are the same seed and query under two
// treatments. Query noise is estimated over columns, of differences averaged
// over seeds; seed noise over rows, of differences averaged over queries.
func PairedClusters(a, b [][]float64, o Resampling) (Comparison, error) {
	o = o.withDefaults()
	if len(a) == 0 || len(a) != len(b) {
		return Comparison{}, fmt.Errorf("paired clusters: %d seeds against %d", len(a), len(b))
	}
	qa, err := columnMeans(a)
	if err != nil {
		return Comparison{}, err
	}
	qb, err := columnMeans(b)
	if err != nil {
		return Comparison{}, err
	}
	query, err := PairedQueries(qa, qb, o)
	if err != nil {
		return Comparison{}, err
	}
	seed, err := PairedSeeds(rowMeans(a), rowMeans(b), o.Level)
	return Comparison{Query: query, Seed: seed}, err
}

func rowMeans(x [][]float64) []float64 {
	out := make([]float64, len(x))
	for i, row := range x {
		out[i] = Mean(row)
	}
	return out
}

func columnMeans(x [][]float64) ([]float64, error) {
	out := make([]float64, len(x[0]))
	for _, row := range x {
		if len(row) != len(out) {
			return nil, fmt.Errorf("paired clusters: a seed has %d queries, the first has %d", len(row), len(out))
		}
		for j, v := range row {
			out[j] += v
		}
	}
	for j := range out {
		out[j] /= float64(len(x))
	}
	return out, nil
}

// P is the p value of a claim that must hold against both sources of noise:
// the larger of the two (intersection–union test, Berger 1982). With fewer
// than [UsefulSeeds] seeds, seed noise cannot be judged and the claim is about
// these seeds only: the query p value.
func (c Comparison) P() float64 {
	if c.Seed.N < UsefulSeeds || math.IsNaN(c.Seed.P) {
		return c.Query.P
	}
	return max(c.Query.P, c.Seed.P)
}

// Holm returns p values adjusted for looking at all of them, by Holm's
// step-down method (Holm 1979), in the order given. NaNs stay NaN and do not
// count.
func Holm(p []float64) []float64 {
	out := make([]float64, len(p))
	order := make([]int, 0, len(p))
	for i, v := range p {
		out[i] = v
		if !math.IsNaN(v) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(p[i], p[j]) })
	running := 0.0
	for rank, i := range order {
		running = max(running, min(1, p[i]*float64(len(order)-rank)))
		out[i] = running
	}
	return out
}
