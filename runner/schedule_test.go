package runner

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"alidade/ablation"
	"alidade/gpu"
	"alidade/store"
)

// idle makes a runner that is not running, with n queued runs.
func idle(tb testing.TB, n int, devices gpu.Config) *Runner {
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

// A disk below the floor pauses the queue and leaves one alert for each time.
func TestFullDiskIsToldOnce(t *testing.T) {
	r := idle(t, 1, gpu.Config{Spec: "cpu:1"})
	r.cfg.MinFree = 100
	free := int64(50)
	r.free = func(string) (int64, error) { return free, nil }
	for range 3 {
		if !r.paused(t.Context()) {
			t.Fatal("the queue goes on below the floor")
		}
	}
	told := func() int {
		t.Helper()
		all, err := r.store.Alerts(t.Context(), 0, 0, 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range all {
			if a.Code != "disk-low" || a.Run != 0 || !strings.Contains(a.Text, "floor") {
				t.Errorf("alert = %+v", a)
			}
		}
		return len(all)
	}
	if n := told(); n != 1 {
		t.Errorf("%d alerts, want one", n)
	}
	free = 200
	if r.paused(t.Context()) || r.Status().Reason != "" {
		t.Errorf("still paused with space: %+v", r.Status())
	}
	free = 10
	r.paused(t.Context())
	if n := told(); n != 2 {
		t.Errorf("%d alerts after the second time, want two", n)
	}
}

func TestPauseOfTheQueueOutlivesTheServer(t *testing.T) {
	r := idle(t, 1, gpu.Config{Spec: "cpu:1"})
	if err := r.PauseQueue(t.Context(), "maintenance"); err != nil {
		t.Fatal(err)
	}
	again, err := New(r.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if !again.paused(t.Context()) || again.Status().Reason != "maintenance" {
		t.Errorf("status = %+v, want paused for maintenance", again.Status())
	}
	items, err := again.Queue(t.Context())
	if err != nil || len(items) != 1 || items[0].Reason != "the queue is paused: maintenance" {
		t.Errorf("Queue = %+v, %v", items, err)
	}
	if err := again.ResumeQueue(t.Context()); err != nil || again.paused(t.Context()) {
		t.Errorf("still paused after ResumeQueue (%v)", err)
	}
}

func TestOrderOfTheQueue(t *testing.T) {
	r := idle(t, 4, gpu.Config{Spec: "cpu:1"})
	ctx := t.Context()
	order := func() string {
		t.Helper()
		items, err := r.Queue(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, it := range items {
			ids = append(ids, fmt.Sprint(it.ID))
		}
		return strings.Join(ids, " ")
	}
	for _, step := range []struct {
		do   func() error
		want string
	}{
		{func() error { return nil }, "1 2 3 4"},
		{func() error { return r.SetPriority(ctx, 3, 5) }, "3 1 2 4"},
		{func() error { return r.MoveFirst(ctx, 4) }, "4 3 1 2"},
		{func() error { return r.MoveLast(ctx, 1) }, "4 3 2 1"},
		{func() error { return r.PauseRun(ctx, 4) }, "4 3 2 1"},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if got := order(); got != step.want {
			t.Errorf("order = %s, want %s", got, step.want)
		}
	}
	if err := r.SetPriority(ctx, 3, ablation.MaxPriority+1); !errors.Is(err, ablation.ErrInvalid) {
		t.Errorf("a priority out of range: %v, want ErrInvalid", err)
	}
	if err := r.SetPriority(ctx, 99, 1); !errors.Is(err, ablation.ErrNotFound) {
		t.Errorf("SetPriority of no run: %v, want ErrNotFound", err)
	}
	if err := r.pass(ctx); err != nil {
		t.Fatal(err)
	}
	if got := r.Status().Waiting[4]; got != heldByPerson {
		t.Errorf("run 4 waits for %q, want %q", got, heldByPerson)
	}
}

// A pass over a long queue: all devices taken; a paused study; behind an SFT
// stage that a live run makes; right after another study was launched.
func BenchmarkPass(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		for _, how := range []string{"devices taken", "study paused", "stage being made", "right after a launch"} {
			b.Run(fmt.Sprintf("queued=%d/%s", n, how), func(b *testing.B) {
				r := idle(b, n, gpu.Config{Spec: "cpu:1"})
				if _, err := r.cfg.Devices.Acquire(999_999, gpu.Request{Kind: gpu.KindCPU, N: 1}); err != nil {
					b.Fatal(err)
				}
				if err := r.store.SetStudyPaused(b.Context(), 1, how == "study paused"); err != nil {
					b.Fatal(err)
				}
				if how == "stage being made" {
					r.stages.begin(999_999, sftStage("a"), 1)
				}
				if err := r.pass(b.Context()); err != nil {
					b.Fatal(err)
				}
				if how == "stage being made" {
					for key, n := range r.queue.needs {
						n.stages = sftStage("a")[1:] // for other seeds: each run is looked at
						r.queue.needs[key] = n
					}
				}
				var took, cpu time.Duration
				for b.Loop() {
					if how == "right after a launch" {
						b.StopTimer()
						launchMore(b, r, 20)
						b.StartTimer()
					}
					began, used := time.Now(), cpuTime(b)
					if err := r.pass(b.Context()); err != nil {
						b.Fatal(err)
					}
					took += time.Since(began)
					cpu += cpuTime(b) - used
				}
				b.ReportMetric(float64(took.Microseconds())/1000/float64(b.N), "ms/pass")
				b.ReportMetric(float64(cpu.Microseconds())/1000/float64(b.N), "cpu-ms/pass")
			})
		}
	}
}

// cpuTime is what this process has used: on a busy machine it says more than
// the clock.
func cpuTime(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// launchMore queues n runs of another study.
func launchMore(tb testing.TB, r *Runner, n int) {
	tb.Helper()
	base, _ := ablation.PresetNamed("command")
	study := ablation.Study{Name: "more", Base: base, Design: ablation.DesignGrid, Metric: "reward/mean"}
	for i := range n {
		study.Seeds = append(study.Seeds, uint64(i+1))
	}
	if _, _, err := r.Launch(tb.Context(), study, ""); err != nil {
		tb.Fatal(err)
	}
}

// The copy of the queue follows launches, moves, changes of order and runs
// that others stored, and is always what the table would give.
func TestCopyOfTheQueue(t *testing.T) {
	r := idle(t, 20, gpu.Config{Spec: "cpu:1"})
	ctx := t.Context()
	check := func(what string) {
		t.Helper()
		got, err := r.queue.load(ctx, r.store)
		if err != nil {
			t.Fatal(err)
		}
		want, err := r.store.Queued(ctx, 0)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("after %s the copy differs from the table (-table +copy):\n%s", what, diff)
		}
	}
	check("the first load")
	launchMore(t, r, 5)
	check("a launch")
	if err := r.SetPriority(ctx, 7, 3); err != nil {
		t.Fatal(err)
	}
	launchMore(t, r, 3)
	check("a launch behind a run of higher priority")
	if err := r.Stop(ctx, 3); err != nil {
		t.Fatal(err)
	}
	if err := r.Stop(ctx, 28); err != nil {
		t.Fatal(err)
	}
	check("two stops")
	rec, err := r.store.Study(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	rec.Study.Seeds, rec.Study.Priority = []uint64{500, 501}, 9
	planned, err := ablation.Expand(rec.Study)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.store.AddRuns(ctx, 1, planned); err != nil { // not through the runner
		t.Fatal(err)
	}
	if err := r.Stop(ctx, 29); err != nil { // before it is known
		t.Fatal(err)
	}
	check("runs that another stored")
	if err := r.Resume(ctx, 3); err != nil {
		t.Fatal(err)
	}
	check("a run that is queued again")
}

// What a recipe asks for, on machines with and without GPUs.
func TestNeed(t *testing.T) {
	for _, spec := range []string{"cpu:4", "sim:2xA100-80G"} {
		r := idle(t, 1, gpu.Config{Spec: spec, CPUSlots: 4})
		gpus := strings.HasPrefix(spec, "sim")
		for _, tt := range []struct {
			name string
			in   ablation.Trainer
			want string
		}{
			{"embedded", ablation.Trainer{Kind: "cpu", Devices: 1}, "1 CPU slot"},
			{"endpoint", ablation.Trainer{Kind: "endpoint", Devices: 1}, "1 CPU slot"},
			{"command", ablation.Trainer{Kind: "command", Devices: 2}, map[bool]string{true: "2 GPUs", false: "2 CPU slots"}[gpus]},
			{"command, auto", ablation.Trainer{Kind: "command", Devices: 1, Device: "auto"}, map[bool]string{true: "1 GPU", false: "1 CPU slot"}[gpus]},
			{"command on CPU slots", ablation.Trainer{Kind: "command", Devices: 2, Device: "cpu"}, "2 CPU slots"},
			{"command on GPUs", ablation.Trainer{Kind: "command", Devices: 1, Device: "gpu"}, "1 GPU"},
			{"command with memory", ablation.Trainer{Kind: "command", Devices: 1, MemoryGiB: 80}, "1 GPU of 80 GiB"},
			{"framework", ablation.Trainer{Kind: "trl", Devices: 4, MemoryGiB: 70}, "4 GPUs of 70 GiB"},
			{"framework on CPU slots", ablation.Trainer{Kind: "trl", Devices: 1, Device: "cpu"}, "1 CPU slot"},
		} {
			if got := r.need(ablation.Recipe{Trainer: tt.in}).String(); got != tt.want {
				t.Errorf("%s on %s: %s, want %s", tt.name, spec, got, tt.want)
			}
		}
	}
}
