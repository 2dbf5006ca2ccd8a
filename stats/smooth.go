package stats

import "math"

// MovingMean is the centred moving mean over 2·half + 1 of the series' own
// points, fewer at the ends; values that are not finite are skipped, and stay
// as they are at their own place. The smoothed value at a point depends on its
// neighbours only, not on zoom, width or how long the series is.
func MovingMean(y []float64, half int) []float64 {
	out := make([]float64, len(y))
	var sum float64
	count := 0
	add := func(i, sign int) {
		if i >= 0 && i < len(y) && !math.IsNaN(y[i]) && !math.IsInf(y[i], 0) {
			sum += float64(sign) * y[i]
			count += sign
		}
	}
	for i := range min(half, len(y)) {
		add(i, 1)
	}
	for i := range y {
		add(i+half, 1)
		add(i-half-1, -1)
		out[i] = y[i]
		if !math.IsNaN(y[i]) && !math.IsInf(y[i], 0) {
			out[i] = sum / float64(count)
		}
	}
	return out
}
