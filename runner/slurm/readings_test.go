package slurm_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"alidade/ablation"
	"alidade/runner"
	"alidade/runner/launchertest"
	"alidade/store"
)

// nvidiaSMI puts a program before the path that answers as nvidia-smi does on a
// node of two GPUs.
func nvidiaSMI(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	script := `#!/bin/sh
case "$1" in --query-gpu=*)
echo "0, GPU-aaaa, NVIDIA H200, 143771, 1000, 50, 400, 60, Disabled, 00000000:3B:00.0, 0"
echo "1, GPU-bbbb, NVIDIA H200, 143771, 4, 0, 100, 30, Disabled, 00000000:AF:00.0, 0";;
esac
`
	if err := os.WriteFile(filepath.Join(dir, "nvidia-smi"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// The GPU that Slurm gave the job is read on its node, and its readings become
// series, energy and cost of the run, also those of a time without a server.
func TestReadings(t *testing.T) {
	if _, err := os.Stat("/dev/nvidiactl"); err == nil {
		t.Skip("this machine has GPUs of its own, which would be read in place of the test's")
	}
	launchertest.Cluster(t, "--gpus", "2")
	nvidiaSMI(t)
	data, price := t.TempDir(), runner.Settings{PricePerGPUHour: 3600}
	price.Slurm = runner.SlurmSettings{}
	g := newPricedRig(t, data, price)
	id := g.launch(t, commands(t, "read", 1, 110, "100"))[0]
	until(t, "a first reading", func() bool { return len(g.series(t, id, "gpu/0/util")) > 0 })
	g.stop()
	time.Sleep(4 * time.Second) // of readings that nobody takes
	g = newPricedRig(t, data, price)
	until(t, "the end", func() bool { return g.run(t, id).State == ablation.Succeeded })
	attempts, err := g.store.Attempts(context.Background(), id)
	if err != nil || len(attempts) != 1 {
		t.Fatalf("%d attempts, %v", len(attempts), err)
	}
	a := attempts[0]
	took := a.EndedAt.Sub(a.StartedAt).Seconds()
	util := g.series(t, id, "gpu/0/util")
	if n := int(took / 2.5); len(util) < n || len(util) > int(took)+1 {
		t.Errorf("%d readings in %.1f s, want about one in 2 s", len(util), took)
	}
	for i, p := range util {
		if p.Value != 0.5 || i > 0 && p.Step <= util[i-1].Step {
			t.Errorf("reading %d = %+v after %+v", i, p, util[max(0, i-1)])
		}
	}
	if other := g.series(t, id, "gpu/1/util"); len(other) > 0 {
		t.Errorf("the GPU of somebody else was read: %v", other)
	}
	covered := float64(util[len(util)-1].Step - util[0].Step)
	if math.Abs(a.EnergyJ-400*covered) > 400*1.5 {
		t.Errorf("energy = %g J over %g s at 400 W", a.EnergyJ, covered)
	}
	if math.Abs(a.DeviceS-took) > 0.05 || math.Abs(a.Cost-a.DeviceS) > 1e-6 {
		t.Errorf("device seconds %g, cost %g; want %g of each", a.DeviceS, a.Cost, took)
	}
}

func (g *rig) series(t *testing.T, id ablation.RunID, metric string) []ablation.Point {
	t.Helper()
	all, err := g.store.Series(context.Background(), store.SeriesQuery{Runs: []ablation.RunID{id}, Metrics: []string{metric}})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		return nil
	}
	return all[0].Points
}
