package stats

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// An Interval is a confidence interval and the name of its method, short
// enough for a table note: "t over 5 seeds". Low and High are NaN when no
// interval can be given.
type Interval struct {
	Low, High float64
	Level     float64 // nominal coverage, e.g. 0.95
	Method    string
}

// Known says whether the interval has both ends.
func (iv Interval) Known() bool { return !math.IsNaN(iv.Low) && !math.IsNaN(iv.High) }

// Half is half the width, what stands after "±".
func (iv Interval) Half() float64 { return (iv.High - iv.Low) / 2 }

// Clears says whether the whole interval lies on one side of x.
func (iv Interval) Clears(x float64) bool { return iv.Known() && (iv.Low > x || iv.High < x) }

// Within says whether the whole interval lies between low and high.
func (iv Interval) Within(low, high float64) bool {
	return iv.Known() && iv.Low >= low && iv.High <= high
}

func unknown(level float64, method string) Interval {
	return Interval{Low: math.NaN(), High: math.NaN(), Level: level, Method: method}
}

// An Estimate is a mean with its interval. SD, SE and the interval are NaN
// when there are too few values for them; Warnings say why, and are shown.
type Estimate struct {
	N        int // values used
	Mean     float64
	SD       float64 // of the values
	SE       float64 // of the mean
	Interval Interval
	P        float64 // two-sided, of the mean against 0; NaN when unknown
	Warnings []string
}

// Fewest seeds with which a seed interval is useful, and with which it is
// comfortable. Below these, [TInterval] warns.
const (
	UsefulSeeds = 3
	EnoughSeeds = 5
)

// TInterval estimates the mean of values that are independent draws, one per
// seed, with Student's t interval: mean ± t(n−1, (1+level)/2) · SD/√n (Student
// 1908). It holds for values that are close to normal; its coverage for n = 3,
// 5 and 10 is simulated in the tests. Values that are not finite are left out
// with a warning.
func TInterval(x []float64, level float64) Estimate {
	kept, left := Finite(x)
	e := tEstimate(kept, level, fmt.Sprintf("t over %d seeds", len(kept)))
	if left > 0 {
		e.Warnings = append(e.Warnings, fmt.Sprintf("%d of %d values are not finite and left out", left, len(x)))
	}
	switch n := len(kept); {
	case n == 0:
		e.Warnings = append(e.Warnings, "no values")
	case n == 1:
		e.Interval.Method = "one seed"
		e.Warnings = append(e.Warnings, "1 seed: no seed interval")
	case n < UsefulSeeds:
		e.Warnings = append(e.Warnings, fmt.Sprintf("%d seeds: the seed interval is very wide", n))
	case n < EnoughSeeds:
		e.Warnings = append(e.Warnings, fmt.Sprintf("%d seeds are few: the seed interval is wide", n))
	}
	return e
}

// tEstimate is the t interval and the two-sided t test against 0.
func tEstimate(x []float64, level float64, method string) Estimate {
	e := Estimate{N: len(x), Mean: Mean(x), SD: SD(x), SE: SE(x), P: math.NaN(), Interval: unknown(level, method)}
	if len(x) < 2 {
		return e
	}
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(len(x) - 1)}
	half := t.Quantile((1+level)/2) * e.SE
	e.Interval.Low, e.Interval.High = e.Mean-half, e.Mean+half
	switch {
	case e.SE > 0:
		e.P = 2 * t.CDF(-math.Abs(e.Mean/e.SE))
	case e.Mean == 0:
		e.P = 1
	default:
		e.P = 0 // all values equal and not 0
	}
	return e
}

// Wilson is Wilson's score interval for a proportion of passed out of n
// independent trials (Wilson 1927; Brown, Cai and DasGupta 2001). It stays
// inside [0, 1] and holds at 0 and n. It is for trials that do not share a
// query: several samples of the same queries need [ClusterMean].
func Wilson(passed, n int, level float64) Interval {
	method := fmt.Sprintf("Wilson, n = %d", n)
	if n <= 0 || passed < 0 || passed > n {
		return unknown(level, method)
	}
	z := distuv.UnitNormal.Quantile((1 + level) / 2)
	p, nf := float64(passed)/float64(n), float64(n)
	d := 1 + z*z/nf
	centre := (p + z*z/(2*nf)) / d
	half := z / d * math.Sqrt(p*(1-p)/nf+z*z/(4*nf*nf))
	iv := Interval{Low: max(0, centre-half), High: min(1, centre+half), Level: level, Method: method}
	if passed == 0 {
		iv.Low = 0
	}
	if passed == n {
		iv.High = 1
	}
	return iv
}

// BinomialSE is √(p(1−p)/n), the standard error of a published rate p on n
// test queries of which nothing else is known.
func BinomialSE(p float64, n int) float64 {
	if n <= 0 {
		return math.NaN()
	}
	return math.Sqrt(p * (1 - p) / float64(n))
}

// ZTest returns z and the two-sided p value of a difference of two
// independent values with known standard errors.
func ZTest(diff, se1, se2 float64) (z, p float64) {
	z = diff / math.Hypot(se1, se2)
	return z, 2 * distuv.UnitNormal.CDF(-math.Abs(z))
}
