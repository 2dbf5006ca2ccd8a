package stats

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"
)

// reference holds values that testdata/reference.py computed with scipy.
type reference struct {
	T []struct {
		X                           []float64
		Level, Mean, SD, SE, P, IQM float64
		Low, High                   float64
		Q                           []float64
	}
	Wilson []struct {
		Passed, N        int
		Level, Low, High float64
	}
	BCa []struct {
		X          []float64
		Level      float64
		Replicates []float64
		BCa        []float64 `json:"BCa"`
		Percentile []float64 `json:"percentile"`
	}
	Paired []struct {
		A, B               []float64
		Mean, P, Low, High float64
	}
	Holm []struct {
		P, Adjusted []float64
	}
	Cluster []struct {
		Sums, Counts    []float64
		Mean, Low, High float64
	}
}

func loadReference(t *testing.T) reference {
	t.Helper()
	raw, err := os.ReadFile("testdata/reference.json")
	if err != nil {
		t.Fatal(err)
	}
	var r reference
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func close9(a, b float64) bool {
	return math.Abs(a-b) <= 1e-9*max(1, math.Abs(b))
}

func check(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !close9(got, want) {
		t.Errorf("%s = %.15g, want %.15g", what, got, want)
	}
}

func TestAgainstScipy(t *testing.T) {
	r := loadReference(t)
	for _, c := range r.T {
		e := TInterval(c.X, c.Level)
		check(t, "mean", e.Mean, c.Mean)
		check(t, "SD", e.SD, c.SD)
		check(t, "SE", e.SE, c.SE)
		check(t, "low", e.Interval.Low, c.Low)
		check(t, "high", e.Interval.High, c.High)
		check(t, "p", e.P, c.P)
		check(t, "IQM", IQM(c.X), c.IQM)
		sorted := slices.Sorted(slices.Values(c.X))
		for i, p := range []float64{0, 0.025, 0.3, 0.5, 0.975, 1} {
			check(t, "quantile", Quantile(sorted, p), c.Q[i])
		}
	}
	for _, c := range r.Wilson {
		iv := Wilson(c.Passed, c.N, c.Level)
		check(t, "Wilson low", iv.Low, c.Low)
		check(t, "Wilson high", iv.High, c.High)
	}
	for _, c := range r.Paired {
		e, err := PairedSeeds(c.A, c.B, 0.95)
		if err != nil {
			t.Fatal(err)
		}
		check(t, "paired mean", e.Mean, c.Mean)
		check(t, "paired p", e.P, c.P)
		check(t, "paired low", e.Interval.Low, c.Low)
		check(t, "paired high", e.Interval.High, c.High)
		q, err := PairedQueries(c.A, c.B, Resampling{Resamples: 100})
		if err != nil {
			t.Fatal(err)
		}
		check(t, "paired query p", q.P, c.P)
	}
	for _, c := range r.Holm {
		for i, got := range Holm(c.P) {
			check(t, "Holm", got, c.Adjusted[i])
		}
	}
}

// The interval's ends come from given replicates exactly as scipy takes them.
func TestBootstrapEndsAgainstScipy(t *testing.T) {
	for _, c := range loadReference(t).BCa {
		clusters := make([]Cluster, len(c.X))
		for i, v := range c.X {
			clusters[i] = Cluster{Sum: v, N: 1}
		}
		sorted := slices.Sorted(slices.Values(c.Replicates))
		leaveOneOut := func() []float64 { return jackknife(clusters) }
		for kind, want := range map[string][]float64{BCa: c.BCa, Percentile: c.Percentile} {
			low, high := bounds(sorted, Mean(c.X), leaveOneOut, Resampling{Level: c.Level, Kind: kind})
			check(t, kind+" low", low, want[0])
			check(t, kind+" high", high, want[1])
		}
	}
}

// With many resamples the clustered bootstrap meets scipy's, whose random
// numbers are others.
func TestClusterMeanAgainstScipy(t *testing.T) {
	for _, c := range loadReference(t).Cluster {
		clusters := make([]Cluster, len(c.Sums))
		for i := range c.Sums {
			clusters[i] = Cluster{Sum: c.Sums[i], N: c.Counts[i]}
		}
		e := ClusterMean(clusters, Resampling{Resamples: 50000, Seed: 3})
		check(t, "mean", e.Mean, c.Mean)
		if math.Abs(e.Interval.Low-c.Low) > 0.003 || math.Abs(e.Interval.High-c.High) > 0.003 {
			t.Errorf("cluster interval = [%.4f, %.4f], want close to [%.4f, %.4f]", e.Interval.Low, e.Interval.High, c.Low, c.High)
		}
		general := Bootstrap(len(clusters), func(index []int) float64 {
			sum := 0.0
			for _, i := range index {
				sum += clusters[i].Sum / clusters[i].N
			}
			return sum / float64(len(index))
		}, Resampling{Resamples: 5000, Seed: 3})
		if math.Abs(general.Low-c.Low) > 0.01 || math.Abs(general.High-c.High) > 0.01 {
			t.Errorf("general bootstrap = [%.4f, %.4f], want close to [%.4f, %.4f]", general.Low, general.High, c.Low, c.High)
		}
	}
}

func TestSameSeedSameInterval(t *testing.T) {
	c := []Cluster{{1, 4}, {0, 4}, {3, 4}, {4, 4}, {2, 4}}
	a, b := ClusterMean(c, Resampling{Seed: 7}), ClusterMean(c, Resampling{Seed: 7})
	if a.Interval != b.Interval {
		t.Errorf("same seed: %v and %v", a.Interval, b.Interval)
	}
	if other := ClusterMean(c, Resampling{Seed: 8}); other.SE == a.SE {
		t.Error("another seed gives the very same resamples")
	}
}

func TestFewValues(t *testing.T) {
	for _, c := range []struct {
		x        []float64
		known    bool
		warnings int
	}{
		{nil, false, 1}, {[]float64{0.3}, false, 1}, {[]float64{0.3, 0.4}, true, 1}, {[]float64{0.3, 0.4, 0.5}, true, 1},
		{[]float64{0.1, 0.2, 0.3, 0.4, 0.5}, true, 0}, {[]float64{0.3, math.NaN(), 0.4, 0.5, 0.6, 0.7}, true, 1},
	} {
		e := TInterval(c.x, 0.95)
		if e.Interval.Known() != c.known || len(e.Warnings) != c.warnings {
			t.Errorf("TInterval(%v): known %v, warnings %v; want known %v and %d", c.x, e.Interval.Known(), e.Warnings, c.known, c.warnings)
		}
	}
	if e := TInterval([]float64{0.5, 0.5, 0.5}, 0.95); e.Interval.Low != 0.5 || e.P != 0 {
		t.Errorf("equal values: %+v", e)
	}
	if iv := Wilson(3, 2, 0.95); iv.Known() {
		t.Errorf("3 of 2 passed: %v, want unknown", iv)
	}
	if e := ClusterMean([]Cluster{{1, 4}}, Resampling{}); e.Interval.Known() || len(e.Warnings) == 0 {
		t.Errorf("one query: %+v, want no interval and a warning", e)
	}
}

func TestPairedClustersKeepsNoisesApart(t *testing.T) {
	// Every query gains 0.1 in one seed and 0.3 in the other: no query noise, much seed noise.
	a := [][]float64{{0.2, 0.6, 0.5, 0.4}, {0.4, 0.8, 0.7, 0.6}}
	b := [][]float64{{0.1, 0.5, 0.4, 0.3}, {0.1, 0.5, 0.4, 0.3}}
	c, err := PairedClusters(a, b, Resampling{})
	if err != nil {
		t.Fatal(err)
	}
	check(t, "query mean", c.Query.Mean, 0.2)
	check(t, "seed mean", c.Seed.Mean, 0.2)
	if w := c.Query.Interval.High - c.Query.Interval.Low; w > 1e-9 {
		t.Errorf("query interval is %g wide, want 0", w)
	}
	if w := c.Seed.Interval.Half(); math.Abs(w-12.706204736*0.1) > 1e-6 {
		t.Errorf("seed interval ±%g, want ±1.27", w)
	}
	if c.P() != c.Query.P {
		t.Error("two seeds: P is not that of query noise alone")
	}
	if _, err := PairedClusters(a, [][]float64{{1}, {1, 2}}, Resampling{}); err == nil {
		t.Error("ragged outcomes gave no error")
	}
	if _, err := PairedClusters(a, b[:1], Resampling{}); err == nil {
		t.Error("unequal seeds gave no error")
	}
}

func TestSumIsCompensated(t *testing.T) {
	if got := Sum([]float64{1e16, 1, -1e16, 1}); got != 2 {
		t.Errorf("Sum = %g, want 2", got)
	}
	if got := Sum([]float64{1, math.Inf(1)}); !math.IsInf(got, 1) {
		t.Errorf("Sum with +Inf = %g", got)
	}
}

func TestMinMaxSkipsNaN(t *testing.T) {
	low, high := MinMax([]float64{math.NaN(), 3, -1, math.NaN()})
	if low != -1 || high != 3 {
		t.Errorf("MinMax = %g, %g", low, high)
	}
	if low, _ = MinMax([]float64{math.NaN()}); !math.IsNaN(low) {
		t.Errorf("MinMax of NaN = %g", low)
	}
}
