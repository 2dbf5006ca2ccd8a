package runner_test

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"alidade/ablation"
	"alidade/gpu"
	"alidade/runner"
	"alidade/runner/local"
	"alidade/store"
)

// From a line in events.jsonl to Publish, with commits grouped by 25 ms:
// eight trainers write 10,000 points a second together.
func BenchmarkLineToPublish(b *testing.B) {
	for b.Loop() {
		const runs, steps = 8, 800
		var delays []time.Duration
		g := benchRig(b, func(c store.Commit) {
			now := time.Now()
			for _, p := range c.Points {
				delays = append(delays, now.Sub(p.Wall)) // Publish is called by one life at a time below
			}
		})
		launchBench(b, g, "ok12", steps, runs, "8")
		slices.Sort(delays)
		b.ReportMetric(float64(delays[len(delays)/2].Milliseconds()), "ms/p50")
		b.ReportMetric(float64(delays[len(delays)*99/100].Milliseconds()), "ms/p99")
	}
}

// One trainer writes as fast as it can: how fast the runner stores what piled
// up.
func BenchmarkCatchUp(b *testing.B) {
	for b.Loop() {
		const steps = 20_000
		points := 0
		g := benchRig(b, func(c store.Commit) { points += len(c.Points) })
		began := time.Now()
		launchBench(b, g, "ok12", steps, 1, "0")
		b.ReportMetric(float64(points)/time.Since(began).Seconds(), "points/s")
	}
}

type benchRunner struct {
	store  *store.Store
	runner *runner.Runner
}

func benchRig(b *testing.B, publish func(store.Commit)) benchRunner {
	b.Helper()
	st, err := store.Open(b.TempDir(), store.Options{CommitEvery: 25 * time.Millisecond})
	if err != nil {
		b.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	launcher, err := local.New(exe)
	if err != nil {
		b.Fatal(err)
	}
	pool, err := gpu.New(gpu.Config{Spec: "cpu:8"})
	if err != nil {
		b.Fatal(err)
	}
	lock := make(chan struct{}, 1)
	r, err := runner.New(runner.Config{Store: st, Devices: pool, Launcher: launcher, Exe: exe, MinFree: -1,
		Publish: func(c store.Commit) {
			lock <- struct{}{}
			publish(c)
			<-lock
		}})
	if err != nil {
		b.Fatal(err)
	}
	return benchRunner{st, r}
}

// launchBench runs a study to its end.
func launchBench(b *testing.B, g benchRunner, mode string, steps, seeds int, delay string) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- g.runner.Run(ctx) }()
	_, runs, err := g.runner.Launch(ctx, study(b, "bench", steps, seeds, "fake", mode, delay, "{spec}"), "")
	if err != nil {
		b.Fatal(err)
	}
	for left := len(runs); left > 0; {
		time.Sleep(20 * time.Millisecond)
		ended, err := g.store.Runs(ctx, store.RunFilter{States: []ablation.State{ablation.Succeeded, ablation.Failed}})
		if err != nil {
			b.Fatal(err)
		}
		left = len(runs) - len(ended)
	}
	cancel()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	if err := g.store.Close(); err != nil {
		b.Fatal(err)
	}
}
