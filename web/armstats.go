package web

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"alidade/ablation"
	"alidade/stats"
)

// armEstimate is one metric of one arm over its runs.
type armEstimate struct {
	stats.Estimate
	Runs     int  // runs with a value
	NotANum  int  // of which NaN or infinite
	Best     bool // the highest (or lowest) mean
	Equal    bool // not separable from the best after Holm
	Separate bool // a comparison was possible and cleared
}

// armStats estimates a metric for every arm, by arm index.
type armStats struct {
	byArm  map[int]armEstimate
	method string
	low    int64 // steps at which the runs stand
	high   int64
}

// armCache keeps the last estimates of success, which take a bootstrap.
type armCache struct {
	mu   sync.Mutex
	last map[ablation.StudyID]cachedStats
}

type cachedStats struct {
	print string // of the data they were computed from
	stats armStats
}

// seedStats estimates a metric from each run's last value, with Student's t
// over seeds.
func seedStats(runs []ablation.Run, metric string, last map[ablation.RunID]map[string]ablation.Point, lower bool) armStats {
	values := map[int][]float64{}
	out := armStats{byArm: map[int]armEstimate{}, method: "t over seeds", low: math.MaxInt64}
	for _, r := range runs {
		p, ok := last[r.ID][metric]
		if !ok {
			continue
		}
		values[r.Arm.Index] = append(values[r.Arm.Index], p.Value)
		out.low, out.high = min(out.low, p.Step), max(out.high, p.Step)
	}
	for arm, x := range values {
		e := armEstimate{Estimate: stats.TInterval(x, .95), Runs: len(x)}
		for _, v := range x {
			if v-v != 0 {
				e.NotANum++
			}
		}
		out.byArm[arm] = e
	}
	out.markBest(lower)
	return out
}

// markBest finds the best mean.
func (a *armStats) markBest(lower bool) {
	best, at := math.Inf(-1), -1
	for arm, e := range a.byArm {
		v := e.Mean
		if lower {
			v = -v
		}
		if v > best || v == best && arm < at {
			best, at = v, arm
		}
	}
	if at >= 0 && len(a.byArm) > 1 {
		e := a.byArm[at]
		e.Best = true
		a.byArm[at] = e
	}
}

// successStats estimates sampled success of every arm from the per-query
// results of each run's last evaluation, with an interval over queries, and
// compares every arm with the best one on the same queries.
func (s *site) successStats(ctx context.Context, study ablation.StudyID, runs []ablation.Run, last map[ablation.RunID]map[string]ablation.Point) (armStats, error) {
	print := ""
	for _, r := range runs {
		if p, ok := last[r.ID]["eval/success"]; ok {
			print += fmt.Sprintf("%d:%d:%v;", r.ID, p.Step, p.Value)
		}
	}
	if cached, ok := s.arms.get(study, print); ok {
		return cached, nil
	}
	evals, err := s.Store.Evaluations(ctx, runIDs(runs))
	if err != nil {
		return armStats{}, fmt.Errorf("read evaluations: %w", err)
	}
	out := successOf(runs, evals)
	s.arms.put(study, print, out)
	return out, nil
}

func (c *armCache) get(id ablation.StudyID, print string) (armStats, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	got, ok := c.last[id]
	return got.stats, ok && got.print == print
}

func (c *armCache) put(id ablation.StudyID, print string, a armStats) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil || len(c.last) > 100 {
		c.last = map[ablation.StudyID]cachedStats{}
	}
	c.last[id] = cachedStats{print, a}
}

// lastEvaluations picks each run's last sampled evaluation of its policy.
func lastEvaluations(evals []ablation.EvalResult) map[ablation.RunID]ablation.EvalResult {
	out := map[ablation.RunID]ablation.EvalResult{}
	for _, e := range evals {
		if e.Policy != "policy" || e.Mode != "sampled" || e.Samples <= 0 || len(e.Queries) == 0 {
			continue
		}
		if had, ok := out[e.Run]; !ok || e.Step >= had.Step {
			out[e.Run] = e
		}
	}
	return out
}

func successOf(runs []ablation.Run, evals []ablation.EvalResult) armStats {
	out := armStats{byArm: map[int]armEstimate{}, low: math.MaxInt64}
	lastOf := lastEvaluations(evals)
	byArm := map[int][]ablation.EvalResult{}
	for _, r := range runs {
		if e, ok := lastOf[r.ID]; ok {
			byArm[r.Arm.Index] = append(byArm[r.Arm.Index], e)
			out.low, out.high = min(out.low, e.Step), max(out.high, e.Step)
		}
	}
	o := stats.Resampling{Resamples: 1000, Kind: stats.Percentile, Seed: 1}
	queries := 0
	for arm, list := range byArm {
		clusters := queryClusters(list)
		queries = max(queries, len(clusters))
		out.byArm[arm] = armEstimate{Estimate: stats.ClusterMean(clusters, o), Runs: len(list)}
	}
	out.method = fmt.Sprintf("bootstrap over %d queries, given these seeds", queries)
	out.markBest(false)
	out.compareWithBest(byArm, o)
	return out
}

// queryClusters adds up the passes of each query over seeds.
func queryClusters(list []ablation.EvalResult) []stats.Cluster {
	place := map[string]int{}
	var clusters []stats.Cluster
	for _, e := range list {
		for _, q := range e.Queries {
			i, ok := place[q.Query]
			if !ok {
				i = len(clusters)
				place[q.Query] = i
				clusters = append(clusters, stats.Cluster{})
			}
			clusters[i].Sum += float64(q.Passed)
			clusters[i].N += float64(e.Samples)
		}
	}
	return clusters
}

// compareWithBest marks arms whose paired difference from the best is not
// separable after Holm. Arms judged on other queries are not compared.
func (a *armStats) compareWithBest(byArm map[int][]ablation.EvalResult, o stats.Resampling) {
	best := -1
	var others []int
	for arm, e := range a.byArm {
		if e.Best {
			best = arm
		} else {
			others = append(others, arm)
		}
	}
	if best < 0 {
		return
	}
	slices.Sort(others)
	p := make([]float64, len(others))
	for i, arm := range others {
		p[i] = math.NaN()
		x, y := queryRates(byArm[best]), queryRates(byArm[arm])
		var left, right []float64
		for q, v := range x {
			if w, ok := y[q]; ok {
				left, right = append(left, v), append(right, w)
			}
		}
		if len(left) != len(x) || len(left) != len(y) {
			continue
		}
		if e, err := stats.PairedQueries(left, right, stats.Resampling{Resamples: 1, Kind: stats.Percentile}); err == nil {
			p[i] = e.P
		}
	}
	for i, adjusted := range stats.Holm(p) {
		e := a.byArm[others[i]]
		e.Equal = adjusted > .05
		e.Separate = adjusted <= .05
		a.byArm[others[i]] = e
	}
}

func queryRates(list []ablation.EvalResult) map[string]float64 {
	passed, n := map[string]float64{}, map[string]float64{}
	for _, e := range list {
		for _, q := range e.Queries {
			passed[q.Query] += float64(q.Passed)
			n[q.Query] += float64(e.Samples)
		}
	}
	for q := range passed {
		passed[q] /= n[q]
	}
	return passed
}
