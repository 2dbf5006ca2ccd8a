package gpu

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"alidade/ablation"
)

func newPool(t *testing.T, c Config) *Pool {
	t.Helper()
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTopology(t *testing.T) {
	tests := []struct {
		spec       string
		slots      int
		cpus, gpus int
		err        string
	}{
		{spec: "cpu", slots: 3, cpus: 3},
		{spec: "cpu:4", cpus: 4},
		{spec: "sim:8xA100-80G", slots: 2, cpus: 2, gpus: 8},
		{spec: "sim:4xRTX-4090-24G,2xH100-94G", slots: 1, cpus: 1, gpus: 6},
		{spec: "cpu:0", err: "cpu:N"},
		{spec: "gpus", err: `"gpus": want auto`},
		{spec: "sim:8A100", err: `group "8A100"`},
		{spec: "sim:8xA100-80", err: "NxNAME-MEMG"},
		{spec: "sim:2xA100-xG", err: `memory "xG"`},
		{spec: "sim:99999xA-1G", err: "more than 4096"},
		{spec: "cpu", slots: -1, err: "-1"},
	}
	for _, tt := range tests {
		p, err := New(Config{Spec: tt.spec, CPUSlots: tt.slots})
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("New(%q, %d) = %v, want an error with %q", tt.spec, tt.slots, err, tt.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("New(%q): %v", tt.spec, err)
			continue
		}
		if c, g := p.Capacity(KindCPU), p.Capacity(KindGPU); c != tt.cpus || g != tt.gpus {
			t.Errorf("New(%q) has %d cpu and %d gpu, want %d and %d", tt.spec, c, g, tt.cpus, tt.gpus)
		}
		for _, d := range p.Devices() {
			if d.Kind == KindGPU && (!d.Simulated || !strings.Contains(d.Name, "simulated")) {
				t.Errorf("simulated device not labelled: %+v", d)
			}
		}
	}
}

func TestAcquireIsGangOrNothing(t *testing.T) {
	p := newPool(t, Config{Spec: "sim:2xA100-40G,2xA100-80G", CPUSlots: 1})
	big, err := p.Acquire(1, Request{Kind: KindGPU, N: 1, MinMemoryMiB: 80 * 1024})
	if err != nil || big.IDs()[0] != "gpu2" {
		t.Fatalf("Acquire 80 GiB = %v, %v, want gpu2", big.IDs(), err)
	}
	if _, err = p.Acquire(2, Request{Kind: KindGPU, N: 4}); err == nil || errors.Is(err, ErrNever) ||
		err.Error() != "waits for 4 GPUs: 3 free" {
		t.Errorf("Acquire 4 = %v, want to wait with 3 free", err)
	}
	if _, err = p.Acquire(2, Request{Kind: KindGPU, N: 5}); !errors.Is(err, ErrNever) {
		t.Errorf("Acquire 5 of 4 = %v, want ErrNever", err)
	}
	small, err := p.Acquire(3, Request{Kind: KindGPU, N: 2})
	if err != nil || strings.Join(small.IDs(), ",") != "gpu0,gpu1" {
		t.Errorf("Acquire 2 = %v, %v, want the two small ones", small.IDs(), err)
	}
	p.Release(big)
	p.Release(big)
	if _, err = p.Acquire(4, Request{Kind: KindGPU, N: 2}); err != nil {
		t.Errorf("Acquire after release: %v", err)
	}
	p.Release(big) // another run holds it by now
	if d := p.Devices()[3]; d.Run != 4 || d.Free {
		t.Errorf("a stale release freed run 4's device: %+v", d)
	}
}

func TestReserve(t *testing.T) {
	p := newPool(t, Config{Spec: "cpu:2"})
	lease, err := p.Reserve(7, []string{"cpu1", "gpu9"}) // gpu9 was not seen yet
	if err != nil {
		t.Fatal(err)
	}
	if _, err = p.Reserve(8, []string{"cpu0", "cpu1"}); err == nil {
		t.Error("Reserve of a held device succeeded")
	}
	if got, err := p.Acquire(9, Request{Kind: KindCPU, N: 1}); err != nil || got.IDs()[0] != "cpu0" {
		t.Errorf("Acquire = %v, %v, want cpu0", got.IDs(), err)
	}
	p.Release(lease)
	if got, err := p.Acquire(9, Request{Kind: KindCPU, N: 1}); err != nil || got.IDs()[0] != "cpu1" {
		t.Errorf("Acquire after release = %v, %v, want cpu1", got.IDs(), err)
	}
}

// Mixed requests from many goroutines never share a device, and all are served.
func TestNeverOversubscribed(t *testing.T) {
	p := newPool(t, Config{Spec: "sim:4xA100-40G,4xA100-80G", CPUSlots: 1})
	var mu sync.Mutex
	held := make(map[string]ablation.RunID)
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(i)))
			run := ablation.RunID(i + 1)
			for range 50 {
				want := Request{Kind: KindGPU, N: 1 << rng.IntN(4)}
				if want.N <= 4 && rng.IntN(2) == 0 {
					want.MinMemoryMiB = 80 * 1024
				}
				lease, err := p.Acquire(run, want)
				if err != nil {
					continue
				}
				mu.Lock()
				if len(lease.Devices) != want.N {
					t.Errorf("run %d got %d devices, want %d", run, len(lease.Devices), want.N)
				}
				for _, id := range lease.IDs() {
					if by := held[id]; by != 0 {
						t.Errorf("%s given to run %d while run %d holds it", id, run, by)
					}
					held[id] = run
				}
				mu.Unlock()
				mu.Lock()
				for _, id := range lease.IDs() {
					held[id] = 0
				}
				mu.Unlock()
				p.Release(lease)
			}
		})
	}
	wg.Wait()
	for _, d := range p.Devices() {
		if !d.Free {
			t.Errorf("device left held: %+v", d)
		}
	}
}

// fakeSMI writes a program that answers as nvidia-smi does from two files.
func fakeSMI(t *testing.T, gpus, procs string) (path string, set func(gpus, procs string)) {
	t.Helper()
	dir := t.TempDir()
	set = func(gpus, procs string) {
		for name, text := range map[string]string{"gpus": gpus, "procs": procs} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	set(gpus, procs)
	path = filepath.Join(dir, "nvidia-smi")
	script := fmt.Sprintf("#!/bin/sh\ncd %s\n[ -e hang ] && exec sleep 60\ncase \"$1\" in\n--query-gpu=*) cat gpus;;\n*) cat procs;;\nesac\n[ ! -e broken ] || { echo 'NVML: GPU is lost' >&2; exit 15; }\n", dir)
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return path, set
}

const twoGPUs = `0, GPU-aaaa, NVIDIA H100 80GB HBM3, 81559, 4, 37, 123.45, 40, Disabled, 00000000:3B:00.0, 0
1, GPU-bbbb, NVIDIA H100 80GB HBM3, 81559, 30000, 0, [N/A], 41, [N/A], 00000000:AF:00.0, [N/A]
`

func TestForeignContextIsNotFree(t *testing.T) {
	path, set := fakeSMI(t, twoGPUs, "GPU-bbbb, 4242, /usr/bin/python3, 29000\n")
	p := newPool(t, Config{SMI: path, NoLibrary: true, CPUSlots: 1})
	if !p.HasGPUs() {
		t.Error("HasGPUs before the first reading = false, want true")
	}
	if _, err := p.Acquire(1, Request{Kind: KindGPU, N: 2}); err == nil || errors.Is(err, ErrNever) {
		t.Errorf("Acquire before the first reading = %v, want to wait", err)
	}
	if err := p.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	d := p.Devices()
	if len(d) != 3 || !d[1].Free || d[1].Util != 0.37 || d[1].PowerW != 123.45 || d[1].MemoryMiB != 81559 {
		t.Errorf("gpu0 = %+v", d[1])
	}
	if d[2].Free || d[2].Holder != "python3 (pid 4242)" {
		t.Errorf("a device with a foreign context: %+v, want it held by python3", d[2])
	}
	lease, err := p.Acquire(1, Request{Kind: KindGPU, N: 1, MinMemoryMiB: 80 * 1024})
	if err != nil || lease.Devices[0].UUID != "GPU-aaaa" {
		t.Fatalf("Acquire = %+v, %v, want GPU-aaaa", lease, err)
	}
	p.Release(lease)
	if p.Devices()[1].Free {
		t.Error("a GPU just given back is free before a newer reading")
	}
	set(twoGPUs, "")
	if err := p.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	d = p.Devices()
	if !d[1].Free || d[2].Free || !strings.Contains(d[2].Note, "30000 MiB") {
		t.Errorf("after the reading: gpu0 free %v, gpu1 %+v; want free, and held by an unseen process", d[1].Free, d[2])
	}
}

func TestReadingsFail(t *testing.T) {
	for _, how := range []string{"hang", "broken"} {
		t.Run(how, func(t *testing.T) {
			path, _ := fakeSMI(t, twoGPUs, "")
			p := newPool(t, Config{SMI: path, NoLibrary: true, CPUSlots: 1, Timeout: 2 * time.Second})
			if err := p.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(filepath.Dir(path), how), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			p.smi.timeout = 200 * time.Millisecond
			began := time.Now()
			if err := p.Refresh(context.Background()); err == nil {
				t.Error("Refresh with a sick nvidia-smi succeeded")
			}
			if took := time.Since(began); took > 3*time.Second {
				t.Errorf("Refresh took %s", took)
			}
			for _, d := range p.Devices()[1:] {
				if d.Free || d.StaleSince.IsZero() || !strings.Contains(d.Note, "no fresh reading") {
					t.Errorf("stale device: %+v, want not free and stale", d)
				}
			}
			if _, err := p.Acquire(1, Request{Kind: KindCPU, N: 1}); err != nil {
				t.Errorf("CPU slots must not suffer: %v", err)
			}
		})
	}
}

func TestNoDriver(t *testing.T) {
	p := newPool(t, Config{SMI: "/nowhere/nvidia-smi", CPUSlots: 2})
	if err := p.Refresh(t.Context()); err != nil || p.HasGPUs() || len(p.Devices()) != 2 {
		t.Errorf("without a driver: %v, HasGPUs %v, %d devices; want 2 CPU slots", err, p.HasGPUs(), len(p.Devices()))
	}
	if _, err := p.Acquire(1, Request{Kind: KindGPU, N: 1}); !errors.Is(err, ErrNever) {
		t.Errorf("Acquire of a GPU = %v, want ErrNever", err)
	}
}
