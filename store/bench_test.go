package store

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"alidade/ablation"
	"alidade/trainer"
)

// BenchmarkIngest appends as 20 runs do that each write 10 metrics a step:
// batches of 250 steps, all runs at once, group commits, synchronous FULL, and
// the job that moves points to rest beside it. It reports points/s and, after
// all is at rest, bytes/point of the database file.
func BenchmarkIngest(b *testing.B) {
	for _, kind := range []string{"float32", "float64"} {
		b.Run(kind, func(b *testing.B) { benchIngest(b, kind == "float32") })
	}
}

func benchIngest(b *testing.B, single bool) {
	const runs, metrics, batchSteps, batches = 20, 10, 250, 10
	value := func(r *rand.Rand, step int) float64 {
		v := math.Exp(-float64(step)/1000) + 0.1*r.NormFloat64()
		if single {
			return float64(float32(v))
		}
		return v
	}
	var stored int64
	var spent time.Duration
	var perPoint float64
	for b.Loop() {
		b.StopTimer()
		s := benchStore(b, runs/2)
		all := make([][][]trainer.Event, runs)
		for r := range all {
			rnd := rand.New(rand.NewPCG(uint64(r), 1))
			for k := range batches {
				var events []trainer.Event
				for i := range batchSteps {
					step := k*batchSteps + i
					values := map[string]float64{}
					for m := range metrics {
						values[fmt.Sprintf("metric/%d", m)] = value(rnd, step)
					}
					e := points(int64(step), values)
					e.T += int64(rnd.IntN(200))
					events = append(events, e)
				}
				all[r] = append(all[r], events)
			}
		}
		empty := fileBytes(b, s)
		b.StartTimer()
		began := time.Now()
		var wg sync.WaitGroup
		for r := range runs {
			wg.Go(func() {
				f := &feeder{t: b, w: s.RunWriter(), run: ablation.RunID(r + 1), attempt: 1}
				for _, events := range all[r] {
					f.append(events...)
				}
			})
		}
		wg.Wait()
		spent += time.Since(began)
		stored += runs * metrics * batchSteps * batches
		b.StopTimer()
		for r := range runs {
			if err := s.compactRun(b.Context(), ablation.RunID(r+1), true); err != nil {
				b.Fatal(err)
			}
		}
		perPoint = float64(fileBytes(b, s)-empty) / (runs * metrics * batchSteps * batches)
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(stored)/spent.Seconds(), "points/s")
	b.ReportMetric(perPoint, "bytes/point")
	b.ReportMetric(0, "ns/op")
}

// benchStore is a store with 2n running runs and the default group commit.
func benchStore(b *testing.B, n int) *Store {
	b.Helper()
	s, err := Open(b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	for _, r := range create(b, s, n) {
		start(b, s, r.ID, 1, 0)
	}
	return s
}

// fileBytes is the size of the database less its free pages.
func fileBytes(b *testing.B, s *Store) int64 {
	b.Helper()
	var pages, free, size int64
	for query, into := range map[string]*int64{"PRAGMA page_count": &pages, "PRAGMA freelist_count": &free, "PRAGMA page_size": &size} {
		if err := s.read.QueryRow(query).Scan(into); err != nil {
			b.Fatal(err)
		}
	}
	return (pages - free) * size
}

// BenchmarkSeries reads one metric of 5,000 steps, whole and thinned, of one
// run and of many.
func BenchmarkSeries(b *testing.B) {
	const n, steps = 50, 5000
	s := benchStore(b, n/2)
	defer s.Close()
	var ids []ablation.RunID
	for r := range n {
		id := ablation.RunID(r + 1)
		ids = append(ids, id)
		f := &feeder{t: b, w: s.RunWriter(), run: id, attempt: 1}
		var events []trainer.Event
		for step := range int64(steps) {
			events = append(events, points(step, map[string]float64{"a": rand.NormFloat64(), "b": 1}))
		}
		f.append(events...)
		if err := s.compactRun(b.Context(), id, true); err != nil {
			b.Fatal(err)
		}
	}
	for _, bench := range []struct {
		name string
		runs []ablation.RunID
		most int
	}{{"1 run, all", ids[:1], 0}, {"1 run, 500 points", ids[:1], 500}, {"50 runs, 500 points", ids, 500}} {
		b.Run(bench.name, func(b *testing.B) {
			for b.Loop() {
				got, err := s.Series(b.Context(), SeriesQuery{Runs: bench.runs, Metrics: []string{"a"}, MaxPoints: bench.most})
				if err != nil || len(got) != len(bench.runs) {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkTrajectories lists and opens trajectories in a store of 100,000.
func BenchmarkTrajectories(b *testing.B) {
	const n = 100_000
	s := benchStore(b, 4)
	defer s.Close()
	rnd := rand.New(rand.NewPCG(1, 2))
	began := time.Now()
	var wg sync.WaitGroup
	for r := range 8 {
		f := &feeder{t: b, w: s.RunWriter(), run: ablation.RunID(r + 1), attempt: 1}
		for k := range n / 8 / 500 {
			var events []trainer.Event
			for i := range 500 {
				events = append(events, trajectory(int64(k), i, func(t *trainer.Trajectory) {
					t.Reward, t.Success = rnd.Float64(), rnd.IntN(3) == 0
					t.Query.Hash = fmt.Sprintf("%016x", rnd.IntN(300))
					t.Query.Text = fmt.Sprintf("A trip number %d from Reno to Bend with a budget of %d", rnd.IntN(300), rnd.IntN(3000))
				}))
			}
			f.append(events...)
		}
	}
	wg.Wait()
	b.Logf("stored %d trajectories in %v", n, time.Since(began))
	yes, low := true, 0.9
	for name, f := range map[string]TrajectoryFilter{
		"first page":       {Limit: 50},
		"of a study":       {Study: 1, Limit: 50},
		"by reward":        {Study: 1, Sort: "-reward", Limit: 50},
		"reward and tool":  {Study: 1, RewardMin: &low, Tool: "SearchFlight", Limit: 50},
		"failed check":     {Study: 1, FailedCheck: "is_valid_restaurants", Success: &yes, Limit: 50},
		"text":             {Study: 1, Text: "budget 2999", Limit: 50},
		"text, many found": {Study: 1, Text: "reno", Limit: 50},
		"last page":        {Study: 1, Limit: 50, Offset: n - 50},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, _, err := s.Trajectories(b.Context(), f); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			if _, _, err := s.Trajectory(b.Context(), 1, "rl-0-0-7"); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkOpen opens a store of 10,000 runs and lists them.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	s, err := Open(dir, Options{})
	if err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	create(b, s, 5000)
	b.Logf("created 10,000 runs in %v", time.Since(began))
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	b.Run("open and close", func(b *testing.B) {
		for b.Loop() {
			s, err := Open(dir, Options{})
			if err != nil {
				b.Fatal(err)
			}
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
	s, err = Open(dir, Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	b.Run("list runs", func(b *testing.B) {
		for b.Loop() {
			runs, err := s.Runs(b.Context(), RunFilter{})
			if err != nil || len(runs) != 10_000 {
				b.Fatal(len(runs), err)
			}
		}
	})
}

// BenchmarkIngestFile follows an events file of 20 metrics a line into the
// store: reading, decoding, storing.
func BenchmarkIngestFile(b *testing.B) {
	const metrics, steps = 20, 10_000
	values := map[string]float64{}
	for m := range metrics {
		values[fmt.Sprintf("metric/%d", m)] = 1 / float64(m+3)
	}
	var stored int64
	for b.Loop() {
		b.StopTimer()
		s := benchStore(b, 1)
		out, err := trainer.NewWriter(filepath.Join(s.AttemptDir(1, 1), "events.jsonl"), trainer.WriterOptions{Every: time.Second})
		if err != nil {
			b.Fatal(err)
		}
		for step := range int64(steps) {
			if err := out.Points(step, values); err != nil {
				b.Fatal(err)
			}
		}
		if err := out.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		follow(b, s, 1, 1, 5000)
		stored += metrics * steps
		b.StopTimer()
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(stored)/b.Elapsed().Seconds(), "points/s")
}
