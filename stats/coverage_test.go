package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// coverage repeats a draw and counts how often the interval holds the truth.
func coverage(repeats int, truth float64, draw func(*rand.Rand) Interval) float64 {
	rng := rand.New(rand.NewPCG(11, 13))
	held := 0
	for range repeats {
		if iv := draw(rng); iv.Low <= truth && truth <= iv.High {
			held++
		}
	}
	return float64(held) / float64(repeats)
}

// Nominal 95 % intervals hold the truth in 93 to 97 % of simulated studies in
// the cases for which the package is documented.
func TestCoverage(t *testing.T) {
	if raceOn {
		t.Skip("one thread of arithmetic: tested without the race detector")
	}
	if testing.Short() {
		t.Skip("a simulation")
	}
	seeds := func(n int) func(*rand.Rand) Interval {
		return func(rng *rand.Rand) Interval {
			x := make([]float64, n)
			for i := range x {
				x[i] = 0.3 + 0.04*rng.NormFloat64()
			}
			return TInterval(x, 0.95).Interval
		}
	}
	wilson := func(n int, p float64) func(*rand.Rand) Interval {
		return func(rng *rand.Rand) Interval {
			k := 0
			for range n {
				if rng.Float64() < p {
					k++
				}
			}
			return Wilson(k, n, 0.95)
		}
	}
	for _, c := range []struct {
		name    string
		repeats int
		truth   float64
		draw    func(*rand.Rand) Interval
	}{
		{"t, 3 seeds", 6000, 0.3, seeds(3)},
		{"t, 5 seeds", 6000, 0.3, seeds(5)},
		{"t, 10 seeds", 6000, 0.3, seeds(10)},
		{"Wilson, 256 queries, 30 %", 6000, 0.3, wilson(256, 0.3)},
		{"Wilson, 256 queries, 8 %", 6000, 0.08, wilson(256, 0.08)},
		{"BCa, 120 queries × 4 samples", 1200, panelTruth, panel(120, BCa)},
		{"percentile, 120 queries × 4 samples", 1200, panelTruth, panel(120, Percentile)},
		{"BCa, 256 queries × 4 samples", 1200, panelTruth, panel(256, BCa)},
		{"BCa, paired difference over 120 queries", 3000, 0.15, pairedPanel(120)},
	} {
		if got := coverage(c.repeats, c.truth, c.draw); got < 0.93 || got > 0.97 {
			t.Errorf("%s: covers %.3f, want 0.93 to 0.97", c.name, got)
		} else {
			t.Logf("%s: covers %.3f", c.name, got)
		}
	}
}

// Query difficulty is beta distributed: chance of success u² of a uniform u,
// so 1/3 in the mean and very uneven between queries.
const panelTruth = 1.0 / 3

func panel(queries int, kind string) func(*rand.Rand) Interval {
	return func(rng *rand.Rand) Interval {
		c := make([]Cluster, queries)
		for i := range c {
			chance := rng.Float64()
			chance *= chance
			c[i] = Cluster{Sum: passes(rng, chance, 4), N: 4}
		}
		return ClusterMean(c, Resampling{Resamples: 400, Kind: kind, Seed: rng.Uint64()}).Interval
	}
}

func pairedPanel(queries int) func(*rand.Rand) Interval {
	return func(rng *rand.Rand) Interval {
		a, b := make([]float64, queries), make([]float64, queries)
		for i := range a {
			chance := 0.8 * rng.Float64()
			a[i] = passes(rng, chance+0.15, 4) / 4
			b[i] = passes(rng, chance, 4) / 4
		}
		e, err := PairedQueries(a, b, Resampling{Resamples: 400, Seed: rng.Uint64()})
		if err != nil {
			return Interval{Low: math.NaN()}
		}
		return e.Interval
	}
}

func passes(rng *rand.Rand, chance float64, n int) float64 {
	k := 0.0
	for range n {
		if rng.Float64() < chance {
			k++
		}
	}
	return k
}

// Where nothing differs, Holm keeps the chance of any false "clear" near 5 %.
func TestHolmKeepsTheFamilyError(t *testing.T) {
	if testing.Short() {
		t.Skip("a simulation")
	}
	rng := rand.New(rand.NewPCG(5, 6))
	false0, repeats := 0, 1500
	for range repeats {
		p := make([]float64, 6)
		for i := range p {
			x := make([]float64, 5)
			for k := range x {
				x[k] = rng.NormFloat64()
			}
			p[i] = TInterval(x, 0.95).P
		}
		for _, v := range Holm(p) {
			if v < 0.05 {
				false0++
				break
			}
		}
	}
	if got := float64(false0) / float64(repeats); got > 0.065 {
		t.Errorf("family error %.3f, want at most about 0.05", got)
	}
}

// 28 paired comparisons of a panel of 256 queries with 2,000 resamples: what a
// report of eight arms asks for.
func BenchmarkComparisons(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	arms := make([][][]float64, 8)
	for i := range arms {
		arms[i] = make([][]float64, 5)
		for s := range arms[i] {
			arms[i][s] = make([]float64, 256)
			for q := range arms[i][s] {
				arms[i][s][q] = passes(rng, 0.3, 4) / 4
			}
		}
	}
	for b.Loop() {
		for i := range arms {
			for j := i + 1; j < len(arms); j++ {
				if _, err := PairedClusters(arms[i], arms[j], Resampling{}); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
}
