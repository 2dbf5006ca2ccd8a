package stats

import (
	"math"
	"testing"
)

func TestMovingMean(t *testing.T) {
	nan := math.NaN()
	got := MovingMean([]float64{1, 2, nan, 4, 9, math.Inf(1), 3}, 1)
	want := []float64{1.5, 1.5, nan, 6.5, 6.5, math.Inf(1), 3}
	for i := range want {
		if got[i] != want[i] && !(math.IsNaN(got[i]) && math.IsNaN(want[i])) {
			t.Errorf("MovingMean[%d] = %g, want %g", i, got[i], want[i])
		}
	}
	if got := MovingMean([]float64{5}, 3); got[0] != 5 {
		t.Errorf("one point: %v", got)
	}
	// A longer series leaves earlier values as they were.
	long := make([]float64, 500)
	for i := range long {
		long[i] = math.Sin(float64(i) / 9)
	}
	short := MovingMean(long[:300], 7)
	for i, v := range MovingMean(long, 7)[:292] {
		if math.Abs(v-short[i]) > 1e-9 {
			t.Fatalf("the value at %d changes with the length: %g, %g", i, v, short[i])
		}
	}
}
