package stats

import (
	"math"
	"slices"
)

// Mean is the arithmetic mean; NaN for no values. The sum is compensated
// (Kahan–Babuška), so the order of the values hardly matters.
func Mean(x []float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	return Sum(x) / float64(len(x))
}

// Sum adds x with Kahan–Babuška–Neumaier compensation.
func Sum(x []float64) float64 {
	var sum, c float64
	for _, v := range x {
		t := sum + v
		if math.Abs(sum) >= math.Abs(v) {
			c += (sum - t) + v
		} else {
			c += (v - t) + sum
		}
		sum = t
	}
	if s := sum + c; !math.IsNaN(s) {
		return s
	}
	return sum // an infinity among the values makes the compensation NaN
}

// SD is the sample standard deviation, with n − 1 in the denominator; NaN for
// fewer than two values.
func SD(x []float64) float64 {
	if len(x) < 2 {
		return math.NaN()
	}
	m := Mean(x)
	sq := make([]float64, len(x))
	for i, v := range x {
		sq[i] = (v - m) * (v - m)
	}
	return math.Sqrt(Sum(sq) / float64(len(x)-1))
}

// SE is the standard error of the mean, SD/√n; NaN for fewer than two values.
func SE(x []float64) float64 { return SD(x) / math.Sqrt(float64(len(x))) }

// MinMax returns the smallest and the largest value; NaNs are skipped, and
// both are NaN when nothing is left.
func MinMax(x []float64) (low, high float64) {
	low, high = math.NaN(), math.NaN()
	for _, v := range x {
		if math.IsNaN(v) {
			continue
		}
		if !(low <= v) {
			low = v
		}
		if !(high >= v) {
			high = v
		}
	}
	return low, high
}

// IQM is the interquartile mean: the mean of what is left when ⌊n/4⌋ values
// are cut at each end (the 25 % trimmed mean of Agarwal et al. 2021, "Deep
// reinforcement learning at the edge of the statistical precipice").
func IQM(x []float64) float64 {
	cut := len(x) / 4
	s := slices.Sorted(slices.Values(x))
	return Mean(s[cut : len(s)-cut])
}

// Quantile returns the p-quantile of sorted values by linear interpolation
// between order statistics (type 7 of Hyndman and Fan 1996, the default of R
// and numpy); NaN for no values.
func Quantile(sorted []float64, p float64) float64 {
	n := len(sorted)
	if n == 0 || math.IsNaN(p) {
		return math.NaN()
	}
	h := min(max(p, 0), 1) * float64(n-1)
	i := int(h)
	if i >= n-1 {
		return sorted[n-1]
	}
	return sorted[i] + (h-float64(i))*(sorted[i+1]-sorted[i])
}

// Finite returns the values that are neither NaN nor infinite, and how many
// were left out.
func Finite(x []float64) (kept []float64, left int) {
	kept = make([]float64, 0, len(x))
	for _, v := range x {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			kept = append(kept, v)
		}
	}
	return kept, len(x) - len(kept)
}
