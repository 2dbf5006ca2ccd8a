package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestThinKeepsWhatMustBeSeen(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	y := make([]float64, 1_000_000)
	for i := range y {
		y[i] = rng.Float64()
	}
	y[123_456], y[654_321] = 40, -40
	y[777_000], y[888_000], y[999_000] = math.NaN(), math.Inf(1), math.Inf(-1)
	for _, limit := range []int{8, 9, 50, 400, 1500, 100_000} {
		kept := Thin(y, limit)
		if len(kept) > limit {
			t.Errorf("Thin to %d kept %d", limit, len(kept))
		}
		if !slices.IsSorted(kept) || len(slices.Compact(slices.Clone(kept))) != len(kept) {
			t.Errorf("Thin to %d: indices are not strictly rising", limit)
		}
		for _, i := range []int{0, 123_456, 654_321, 777_000, 888_000, 999_000, len(y) - 1} {
			if !slices.Contains(kept, i) {
				t.Errorf("Thin to %d lost the point at %d (%g)", limit, i, y[i])
			}
		}
	}
}

func TestThinManyGaps(t *testing.T) {
	y := make([]float64, 10_000)
	for i := range y {
		y[i] = math.NaN()
		if i%3 == 0 {
			y[i] = float64(i)
		}
	}
	if kept := Thin(y, 100); len(kept) > 100 || len(kept) < 50 {
		t.Errorf("Thin of a series full of gaps kept %d, want 50 to 100", len(kept))
	}
}

func TestThinShort(t *testing.T) {
	for _, n := range []int{0, 1, 2, 8} {
		if got := Thin(make([]float64, n), 3); len(got) != n {
			t.Errorf("Thin of %d values kept %d, want all", n, len(got))
		}
	}
	if got := Thin(make([]float64, 5000), 0); len(got) != 5000 {
		t.Errorf("limit 0 kept %d, want all", len(got))
	}
}

func BenchmarkThin(b *testing.B) {
	y := make([]float64, 100_000)
	for i := range y {
		y[i] = math.Sin(float64(i))
	}
	for b.Loop() {
		Thin(y, 1000)
	}
}
