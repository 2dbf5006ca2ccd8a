package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Bootstrap kinds.
const (
	Percentile = "percentile" // the quantiles of the resampled values
	BCa        = "BCa"        // bias-corrected and accelerated
)

// Resampling says how to bootstrap. The zero value means 2,000 resamples,
// level 0.95, BCa, seed 0. The same options give the same interval.
type Resampling struct {
	Resamples int
	Level     float64
	Kind      string // Percentile or BCa
	Seed      uint64
}

// stream is the second half of every generator's seed.
const stream = 0x9e3779b97f4a7c15

func (r Resampling) withDefaults() Resampling {
	if r.Resamples <= 0 {
		r.Resamples = 2000
	}
	if r.Level <= 0 || r.Level >= 1 {
		r.Level = 0.95
	}
	if r.Kind == "" {
		r.Kind = BCa
	}
	return r
}

// A Cluster is a set of values that share a source, such as the rollouts of
// one query: its sum and how many values it holds.
type Cluster struct {
	Sum float64
	N   float64
}

// ClusterMean estimates Σ sums / Σ counts with an interval from resampling
// whole clusters (Davison and Hinkley 1997, section 3.8). With one cluster a
// query this is the query noise of an evaluation, given the policies. SD and
// SE are of the resampled means; P is NaN.
func ClusterMean(c []Cluster, o Resampling) Estimate {
	o = o.withDefaults()
	e := Estimate{N: len(c), Mean: ratio(c), SD: math.NaN(), SE: math.NaN(), P: math.NaN()}
	e.Interval = unknown(o.Level, bootstrapMethod(o.Kind, len(c)))
	if len(c) < 2 {
		e.Warnings = append(e.Warnings, fmt.Sprintf("%d queries: no query interval", len(c)))
		return e
	}
	replicates := resample(c, o)
	e.SE = SD(replicates)
	e.SD = e.SE * math.Sqrt(float64(len(c)))
	e.Interval.Low, e.Interval.High = bounds(replicates, e.Mean, func() []float64 { return jackknife(c) }, o)
	if len(c) < 30 {
		e.Warnings = append(e.Warnings, fmt.Sprintf("%d queries are few: the query interval is narrow of its nominal coverage", len(c)))
	}
	return e
}

func bootstrapMethod(kind string, n int) string {
	return fmt.Sprintf("%s bootstrap over %d queries", kind, n)
}

// ratio is the mean over all values of all clusters.
func ratio(c []Cluster) float64 {
	var sum, n float64
	for _, k := range c {
		sum += k.Sum
		n += k.N
	}
	return sum / n
}

// resample draws the replicates of the clustered mean, sorted. One 64-bit
// number gives two indices, by multiply and shift (Lemire 2019); the bias of
// at most n/2³² is far below anything a bootstrap can resolve.
func resample(c []Cluster, o Resampling) []float64 {
	sums, counts := make([]float64, len(c)), make([]float64, len(c))
	equal := true
	for i, k := range c {
		sums[i], counts[i] = k.Sum, k.N
		equal = equal && k.N == c[0].N
	}
	rng := rand.NewPCG(o.Seed, stream)
	n := uint64(len(c))
	out := make([]float64, o.Resamples)
	for b := range out {
		var sum, count float64
		for i := uint64(0); i < n; i += 2 {
			u := rng.Uint64()
			first, second := (u>>32)*n>>32, (u&0xffffffff)*n>>32
			sum += sums[first]
			count += counts[first]
			if i+1 < n {
				sum += sums[second]
				count += counts[second]
			}
		}
		if equal {
			count = float64(n) * c[0].N
		}
		out[b] = sum / count
	}
	slices.Sort(out)
	return out
}

// jackknife returns the clustered mean without each cluster in turn.
func jackknife(c []Cluster) []float64 {
	var sum, n float64
	for _, k := range c {
		sum += k.Sum
		n += k.N
	}
	out := make([]float64, len(c))
	for i, k := range c {
		out[i] = (sum - k.Sum) / (n - k.N)
	}
	return out
}

// bounds picks the interval's ends from sorted replicates.
func bounds(replicates []float64, estimate float64, leaveOneOut func() []float64, o Resampling) (low, high float64) {
	tail := (1 - o.Level) / 2
	lowP, highP := tail, 1-tail
	if o.Kind == BCa {
		lowP, highP = BCaLevels(replicates, estimate, leaveOneOut(), o.Level)
	}
	return Quantile(replicates, lowP), Quantile(replicates, highP)
}

// BCaLevels returns the quantile levels of the bias-corrected and accelerated
// interval (Efron 1987; Efron and Tibshirani 1993, chapter 14.3): bias z0 from
// the share of replicates below the estimate, ties counting half;
// acceleration from the leave-one-out values. Where all replicates are equal
// it returns the plain percentile levels.
func BCaLevels(sorted []float64, estimate float64, leaveOneOut []float64, level float64) (low, high float64) {
	tail := (1 - level) / 2
	below, _ := slices.BinarySearch(sorted, estimate)
	equal := 0
	for below+equal < len(sorted) && sorted[below+equal] == estimate {
		equal++
	}
	share := (float64(below) + float64(equal)/2) / float64(len(sorted))
	if share <= 0 || share >= 1 {
		return tail, 1 - tail
	}
	z0 := distuv.UnitNormal.Quantile(share)

	m := Mean(leaveOneOut)
	var s2, s3 float64
	for _, v := range leaveOneOut {
		d := m - v
		s2 += d * d
		s3 += d * d * d
	}
	a := 0.0
	if s2 > 0 {
		a = s3 / (6 * math.Pow(s2, 1.5))
	}
	at := func(p float64) float64 {
		z := z0 + distuv.UnitNormal.Quantile(p)
		return distuv.UnitNormal.CDF(z0 + z/(1-a*z))
	}
	return at(tail), at(1 - tail)
}

// Bootstrap gives the interval of any statistic of n independent values by
// resampling their indices. It is slower than [ClusterMean]; use it for
// statistics that are not means, such as [IQM].
func Bootstrap(n int, stat func(index []int) float64, o Resampling) Interval {
	o = o.withDefaults()
	iv := unknown(o.Level, bootstrapMethod(o.Kind, n))
	if n < 2 {
		return iv
	}
	index := make([]int, n)
	for i := range index {
		index[i] = i
	}
	estimate := stat(index)
	rng := rand.New(rand.NewPCG(o.Seed, stream))
	replicates := make([]float64, o.Resamples)
	for b := range replicates {
		for i := range index {
			index[i] = rng.IntN(n)
		}
		replicates[b] = stat(index)
	}
	slices.Sort(replicates)
	iv.Low, iv.High = bounds(replicates, estimate, func() []float64 { return leaveOut(n, stat) }, o)
	return iv
}

func leaveOut(n int, stat func([]int) float64) []float64 {
	out := make([]float64, n)
	index := make([]int, 0, n-1)
	for i := range n {
		index = index[:0]
		for j := range n {
			if j != i {
				index = append(index, j)
			}
		}
		out[i] = stat(index)
	}
	return out
}
