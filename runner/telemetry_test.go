package runner_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"alidade/ablation"
	"alidade/gpu"
	"alidade/runner"
)

// smi is a program that answers as nvidia-smi does, from a file.
type smi struct {
	t   *testing.T
	dir string
}

func newSMI(t *testing.T) smi {
	t.Helper()
	s := smi{t, t.TempDir()}
	script := fmt.Sprintf("#!/bin/sh\ncd %s\ncase \"$1\" in --query-gpu=*) cat gpus;; *) cat procs;; esac\n", s.dir)
	if err := os.WriteFile(s.path(), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	s.says("0, GPU-aaaa, NVIDIA H100, 81559, 4, 50, 400, 60, Disabled, 00000000:3B:00.0, 0\n1, GPU-bbbb, NVIDIA H100, 81559, 4, 50, 100, 60, Disabled, 00000000:AF:00.0, 0\n", "")
	return s
}

func (s smi) path() string { return filepath.Join(s.dir, "nvidia-smi") }

func (s smi) says(gpus, procs string) {
	s.t.Helper()
	for name, text := range map[string]string{"gpus": gpus, "procs": procs} {
		if err := os.WriteFile(filepath.Join(s.dir, name+".new"), []byte(text), 0o600); err != nil {
			s.t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(s.dir, name+".new"), filepath.Join(s.dir, name)); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s smi) devices() gpu.Config {
	return gpu.Config{SMI: s.path(), NoLibrary: true, CPUSlots: 1, SampleEvery: 50 * time.Millisecond}
}

// Readings become series of the run, energy and cost are those of its
// attempt, a stranger on its device is told.
func TestReadingsOfARun(t *testing.T) {
	t.Parallel()
	s := newSMI(t)
	g := newRig(t, "", rigOptions{devices: s.devices(), settings: runner.Settings{PricePerGPUHour: 3600}, timing: runner.Timing{Readings: 50 * time.Millisecond}})
	id := g.launch(1_000_000, 1, "ok", 20*time.Millisecond)[0].ID
	g.waitStep(id, 10)
	device := g.run(id).Device
	if !strings.HasPrefix(device, "gpu") {
		t.Fatalf("device = %q, want a GPU", device)
	}
	uuid := map[string]string{"gpu0": "GPU-aaaa", "gpu1": "GPU-bbbb"}[device]
	gpus, err := os.ReadFile(filepath.Join(s.dir, "gpus"))
	if err != nil {
		t.Fatal(err)
	}
	s.says(string(gpus), fmt.Sprintf("%s, %d, /usr/bin/stranger, 9000\n%s, %d, trainer, 100\n", uuid, os.Getpid(), uuid, g.attempt(id, 1).PID))
	until(t, "alert about the stranger", func() bool { _, ok := g.alerts(id)["foreign-process"]; return ok })
	if a := g.alerts(id)["foreign-process"]; !strings.Contains(a.Text, "stranger") {
		t.Errorf("alert = %+v", a)
	}
	n := strings.TrimPrefix(device, "gpu")
	energy := func() float64 {
		last, err := g.store.Last(t.Context(), []ablation.RunID{id}, []string{"gpu/energy_j", "gpu/" + n + "/util", "gpu/" + n + "/power_w"})
		if err != nil {
			t.Fatal(err)
		}
		if u, ok := last[id]["gpu/"+n+"/util"]; ok && u.Value != 0.5 {
			t.Errorf("utilisation = %g, want 0.5", u.Value)
		}
		return last[id]["gpu/energy_j"].Value
	}
	until(t, "energy", func() bool { return energy() > 100 })
	if err := g.runner.Stop(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	run := g.wait(id, ablation.Stopped)
	a := g.attempt(id, 1)
	took := a.EndedAt.Sub(a.StartedAt).Seconds()
	power := map[string]float64{"gpu0": 400, "gpu1": 100}[device]
	if a.EnergyJ < 100 || a.EnergyJ > 1.2*power*time.Since(a.StartedAt).Seconds() || math.Abs(a.Cost-a.DeviceS) > 1e-9 || math.Abs(a.DeviceS-took) > 0.01 {
		t.Errorf("attempt = %+v over %.1f s at %g W", a, took, power)
	}
	if run.Step < 10 {
		t.Errorf("readings moved the run's step to %d", run.Step)
	}
}

// A GPU falls off the bus: its run fails with that cause, the device is put
// away, also for the next server, and the rest of the queue goes on elsewhere.
func TestDeviceVanishes(t *testing.T) {
	t.Parallel()
	s := newSMI(t)
	data := t.TempDir()
	o := rigOptions{devices: s.devices()}
	g := newRig(t, data, o)
	runs := g.launch(1_000_000, 3, "ok", 20*time.Millisecond)
	g.waitStep(runs[0].ID, 3)
	g.waitStep(runs[1].ID, 3)
	lost := runs[0].ID
	if g.run(lost).Device != "gpu0" {
		lost = runs[1].ID
	}
	gpus, err := os.ReadFile(filepath.Join(s.dir, "gpus"))
	if err != nil {
		t.Fatal(err)
	}
	s.says(string(gpus)[strings.Index(string(gpus), "\n")+1:], "")
	until(t, "device put away", func() bool { return put(g, "gpu0") })
	until(t, "notice", func() bool {
		all, err := g.store.Alerts(t.Context(), 0, 0, 10)
		return err == nil && len(all) > 0 && all[0].Code == "device-fault" && strings.Contains(all[0].Text, "vanished")
	})
	if err := g.runner.Stop(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	g.wait(lost, ablation.Stopped)
	until(t, "reason of the third run", func() bool { return strings.Contains(g.runner.Status().Waiting[runs[2].ID], "waits for 1 GPU: 0 free") })
	g.stop()

	g = newRig(t, data, o)
	until(t, "device still put away", func() bool { return len(g.runner.Devices()) == 2 || put(g, "gpu0") }) // it is not listed any more
	other := runs[0].ID + runs[1].ID - lost
	if err := g.runner.Stop(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	g.wait(runs[2].ID, ablation.Running)
	if d := g.run(runs[2].ID).Device; d != "gpu1" && d != "gpu0" {
		t.Errorf("the third run is on %q", d)
	}
	s.says(string(gpus), "") // the GPU comes back: a person has to take it into use
	until(t, "the device is back, and away", func() bool {
		for _, d := range g.runner.Devices() {
			if d.UUID == "GPU-aaaa" {
				return d.Quarantined && !d.Free
			}
		}
		return false
	})
	for _, d := range g.runner.Devices() {
		if d.UUID == "GPU-aaaa" {
			if err := g.runner.Unquarantine(t.Context(), d.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	until(t, "in use again", func() bool {
		for _, d := range g.runner.Devices() {
			if d.UUID == "GPU-aaaa" && (d.Free || d.Run != 0) {
				return true
			}
		}
		return false
	})
}

func put(g *rig, id string) bool {
	for _, d := range g.runner.Devices() {
		if d.ID == id {
			return d.Quarantined
		}
	}
	return false
}
