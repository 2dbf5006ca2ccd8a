package stats

import (
	"math"
	"slices"
)

// smallestThin is the least limit [Thin] honours: both ends, one bucket's
// minimum and maximum, and one of each kind of value that is not finite.
const smallestThin = 8

// Thin picks at most limit of the values y and returns their indices in
// order. It keeps the first and the last, the smallest and the largest of
// each bucket of equal length, and of each bucket the first NaN, +Inf and
// −Inf: a spike or a hole is never lost. A limit of 0 keeps all; limits below
// 8 count as 8.
func Thin(y []float64, limit int) []int {
	if limit <= 0 || len(y) <= max(limit, smallestThin) {
		all := make([]int, len(y))
		for i := range all {
			all[i] = i
		}
		return all
	}
	limit = max(limit, smallestThin)
	buckets := (limit - 2) / 2
	for {
		kept := thinInto(y, buckets)
		if len(kept) <= limit || buckets == 1 {
			return kept
		}
		buckets = max(1, min(buckets-1, buckets*limit/len(kept)))
	}
}

// thinInto thins the values between the ends into equal buckets.
func thinInto(y []float64, buckets int) []int {
	kept := make([]int, 0, 2*buckets+2)
	kept = append(kept, 0)
	inner := len(y) - 2
	for b := range buckets {
		from, to := 1+b*inner/buckets, 1+(b+1)*inner/buckets
		kept = appendExtremes(kept, y, from, to)
	}
	return append(kept, len(y)-1)
}

// appendExtremes appends the indices of y[from:to] that must be seen.
func appendExtremes(kept []int, y []float64, from, to int) []int {
	low, high, nan, posInf, negInf := -1, -1, -1, -1, -1
	for i := from; i < to; i++ {
		switch v := y[i]; {
		case math.IsNaN(v):
			if nan < 0 {
				nan = i
			}
		case math.IsInf(v, 1):
			if posInf < 0 {
				posInf = i
			}
		case math.IsInf(v, -1):
			if negInf < 0 {
				negInf = i
			}
		default:
			if low < 0 || v < y[low] {
				low = i
			}
			if high < 0 || v > y[high] {
				high = i
			}
		}
	}
	at := len(kept)
	for _, i := range [...]int{low, high, nan, posInf, negInf} {
		if i >= 0 && !slices.Contains(kept[at:], i) {
			kept = append(kept, i)
		}
	}
	slices.Sort(kept[at:])
	return kept
}
