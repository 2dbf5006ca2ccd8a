package runner

import (
	"fmt"
	"testing"
	"time"

	"alidade/ablation"
	"alidade/gpu"
	"alidade/store"
)

// queue makes a runner that is not running, with n queued runs.
func queue(tb testing.TB, n int, devices gpu.Config) *Runner {
	tb.Helper()
	st, err := store.Open(tb.TempDir(), store.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = st.Close() })
	pool, err := gpu.New(devices)
	if err != nil {
		tb.Fatal(err)
	}
	r, err := New(Config{Store: st, Devices: pool, Launcher: noLauncher{}, Exe: "/nowhere", MinFree: -1})
	if err != nil {
		tb.Fatal(err)
	}
	base, _ := ablation.PresetNamed("command")
	study := ablation.Study{Name: "queue", Base: base, Design: ablation.DesignGrid, Metric: "reward/mean"}
	for i := range n {
		study.Seeds = append(study.Seeds, uint64(i+1))
	}
	if _, _, err := r.Launch(tb.Context(), study, ""); err != nil {
		tb.Fatal(err)
	}
	return r
}

type noLauncher struct{ Launcher }

// Large and small requests in one queue: a small one never passes a large one
// that waits for the same kind of device.
func TestLargeRequestsAreNotStarved(t *testing.T) {
	r := queue(t, 1, gpu.Config{Spec: "sim:4xA100-80G", CPUSlots: 1})
	p := &pass{r: r, studies: map[ablation.StudyID]ablation.StudyRecord{1: {ID: 1}}, active: map[ablation.StudyID]int{},
		behind: map[string]ablation.RunID{}, waiting: map[ablation.RunID]string{}}
	if _, err := r.cfg.Devices.Acquire(90, gpu.Request{Kind: gpu.KindGPU, N: 2}); err != nil {
		t.Fatal(err)
	}
	recipe := func(devices int, gib float64) ablation.Run {
		run := ablation.Run{Study: 1}
		run.Arm.Recipe.Trainer = ablation.Trainer{Kind: kindCommand, Devices: devices, MemoryGiB: gib}
		return run
	}
	for i, tt := range []struct {
		run  ablation.Run
		want string
	}{
		{recipe(8, 0), "needs 8 GPUs: this machine has 4: no such devices here"}, // waits alone
		{recipe(4, 80), "waits for 4 GPUs of 80 GiB: 2 free"},
		{recipe(1, 0), "waits behind run 102 for 1 GPU"},
	} {
		tt.run.ID = ablation.RunID(101 + i)
		started, err := p.consider(t.Context(), tt.run)
		if err != nil || started || p.waiting[tt.run.ID] != tt.want {
			t.Errorf("consider(%d) = %v, %v, %q; want %q", tt.run.ID, started, err, p.waiting[tt.run.ID], tt.want)
		}
	}
	cpu := ablation.Run{ID: 200, Study: 1}
	cpu.Arm.Recipe.Trainer = ablation.Trainer{Kind: "cpu", Devices: 1}
	if want := r.need(cpu.Arm.Recipe); want.Kind != gpu.KindCPU || p.behind[want.Kind] != 0 {
		t.Errorf("a CPU run waits behind GPU runs: %+v", want)
	}
}

// A pass over a long queue, all devices taken, and with a paused study.
func BenchmarkPass(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		for _, paused := range []bool{false, true} {
			b.Run(fmt.Sprintf("queued=%d/paused=%v", n, paused), func(b *testing.B) {
				r := queue(b, n, gpu.Config{Spec: "cpu:1"})
				if _, err := r.cfg.Devices.Acquire(999_999, gpu.Request{Kind: gpu.KindCPU, N: 1}); err != nil {
					b.Fatal(err)
				}
				if err := r.store.SetStudyPaused(b.Context(), 1, paused); err != nil {
					b.Fatal(err)
				}
				began := time.Now()
				for b.Loop() {
					if err := r.pass(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(time.Since(began).Milliseconds())/float64(b.N), "ms/pass")
			})
		}
	}
}
