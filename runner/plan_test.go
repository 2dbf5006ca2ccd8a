package runner

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"alidade/ablation"
	"alidade/gpu"
)

func gpus(n int, gib int64) []gpu.Device {
	var out []gpu.Device
	for i := range n {
		out = append(out, gpu.Device{ID: fmt.Sprintf("gpu%d", i), Kind: gpu.KindGPU, MemoryMiB: gib * 1024, Free: true})
	}
	return out
}

func hold(devices []gpu.Device, run ablation.RunID, ids ...int) {
	for _, i := range ids {
		devices[i].Free, devices[i].Run = false, run
	}
}

// The words that people read.
func TestReasons(t *testing.T) {
	devices := gpus(4, 80)
	hold(devices, 90, 0, 1)
	p := newPlan(time.Now(), devices, nil)
	for _, tt := range []struct {
		w    wish
		want string
	}{
		{wish{run: 101, want: gpu.Request{Kind: gpu.KindGPU, N: 8}}, "needs 8 GPUs: this machine has 4: no such devices here"}, // waits alone
		{wish{run: 102, want: gpu.Request{Kind: gpu.KindGPU, N: 4, MinMemoryMiB: 80 << 10}}, "waits for 4 GPUs of 80 GiB: 2 free"},
		{wish{run: 103, want: gpu.Request{Kind: gpu.KindGPU, N: 1}}, "waits behind run 102 for 1 GPU"},
		{wish{run: 104, want: gpu.Request{Kind: gpu.KindGPU, N: 1}}, "waits behind run 102 for 1 GPU"},
	} {
		if ids, reason := p.consider(tt.w); ids != nil || reason != tt.want {
			t.Errorf("run %d: %v, %q; want %q", tt.w.run, ids, reason, tt.want)
		}
	}
}

// Around a reservation: devices that it does not need, and short runs.
func TestBackFill(t *testing.T) {
	now := time.Now()
	devices := append(gpus(4, 80), gpu.Device{ID: "small0", Kind: gpu.KindGPU, MemoryMiB: 24 << 10, Free: true})
	hold(devices, 90, 0, 1)
	ends := map[ablation.RunID]time.Time{90: now.Add(time.Hour)}
	next := func(reserved map[string]*reservation) *plan {
		p := newPlan(now, devices, reserved)
		p.ends = func(run ablation.RunID) (time.Time, bool) { at, ok := ends[run]; return at, ok }
		return p
	}
	large := wish{run: 1, want: gpu.Request{Kind: gpu.KindGPU, N: 4, MinMemoryMiB: 80 << 10}}
	one := gpu.Request{Kind: gpu.KindGPU, N: 1}
	p := next(nil)
	p.consider(large)
	for _, tt := range []struct {
		name string
		w    wish
		want string
	}{
		{"too long for the gap", wish{run: 2, want: gpu.Request{Kind: gpu.KindGPU, N: 1, MinMemoryMiB: 80 << 10}, most: 2 * time.Hour}, ""},
		{"onto the device that nobody reserved", wish{run: 3, want: one, most: 2 * time.Hour}, "small0"},
		{"of unknown length", wish{run: 4, want: one}, ""},
		{"short enough", wish{run: 5, want: one, most: time.Minute}, "gpu2"},
	} {
		if ids, reason := p.consider(tt.w); strings.Join(ids, ",") != tt.want {
			t.Errorf("%s: got %v (%s), want %q", tt.name, ids, reason, tt.want)
		}
	}
	// The promised hour has passed, run 90 goes on: nothing more is back-filled.
	reserved := p.blocked
	now = now.Add(2 * time.Hour)
	ends[90] = now.Add(time.Hour)
	p = next(reserved)
	p.consider(large)
	if ids, _ := p.consider(wish{run: 6, want: gpu.Request{Kind: gpu.KindGPU, N: 1, MinMemoryMiB: 80 << 10}, most: time.Second}); ids != nil {
		t.Errorf("back-filled onto %v after the promised time", ids)
	}
	// It ends: the large one gets what was kept.
	hold(devices, 0, 0, 1)
	devices[0].Free, devices[1].Free = true, true
	if ids, reason := next(p.blocked).consider(large); len(ids) != 4 {
		t.Errorf("the large run got %v (%s), want four devices", ids, reason)
	}
}

func TestQuarantinedDevicesAreNotGiven(t *testing.T) {
	devices := gpus(2, 80)
	devices[0].Quarantined, devices[0].Free = true, false
	p := newPlan(time.Now(), devices, nil)
	if ids, _ := p.consider(wish{run: 1, want: gpu.Request{Kind: gpu.KindGPU, N: 1}}); strings.Join(ids, ",") != "gpu1" {
		t.Errorf("got %v, want gpu1", ids)
	}
	if _, reason := p.consider(wish{run: 2, want: gpu.Request{Kind: gpu.KindGPU, N: 2}}); !strings.Contains(reason, "this machine has 1") {
		t.Errorf("reason = %q", reason)
	}
}

// rounds is how often a simulation is played: more in the slow drill.
func rounds() int {
	if os.Getenv("ALIDADE_SLOW") != "" {
		return 200
	}
	return 25
}

// A simulated node of eight GPUs and forty mixed requests, with estimates that
// are right, wrong or absent: no device is ever given twice, every run starts,
// and no run waits for more than the work that was there before it allows.
func TestSimulatedNode(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for round := range rounds() {
		simulate(t, rand.New(rand.NewPCG(seed, uint64(round))))
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
}

type simRun struct {
	wish
	priority      int
	arrives       time.Time
	takes         time.Duration
	starts, ended time.Time
	ids           []string
}

func simulate(t *testing.T, rng *rand.Rand) {
	t.Helper()
	start := time.Unix(1_000_000, 0)
	now := start
	devices := append(gpus(4, 40), gpus(4, 80)...)
	for i := range devices {
		devices[i].ID = fmt.Sprintf("gpu%d", i)
	}
	runs := make([]*simRun, 40)
	for i := range runs {
		w := wish{run: ablation.RunID(i + 1), want: gpu.Request{Kind: gpu.KindGPU, N: 1 << rng.IntN(4)}}
		if w.want.N <= 4 && rng.IntN(3) == 0 {
			w.want.MinMemoryMiB = 80 << 10
		}
		r := &simRun{wish: w, priority: rng.IntN(2), arrives: start.Add(time.Duration(rng.IntN(3600)) * time.Second), takes: time.Duration(1+rng.IntN(1800)) * time.Second}
		switch rng.IntN(3) {
		case 0:
			r.most = r.takes // right
		case 1:
			r.most = time.Duration(1+rng.IntN(1800)) * time.Second // wrong
		}
		runs[i] = r
	}
	var reserved map[string]*reservation
	for range 20_000 {
		// What has ended gives its devices back.
		held := make(map[string]*simRun)
		left := 0
		for _, r := range runs {
			if !r.starts.IsZero() && r.ended.IsZero() && !now.Before(r.starts.Add(r.takes)) {
				r.ended = now
			}
			if r.ended.IsZero() {
				left++
			}
			if !r.starts.IsZero() && r.ended.IsZero() {
				for _, id := range r.ids {
					if by := held[id]; by != nil {
						t.Fatalf("%s is held by runs %d and %d", id, by.run, r.run)
					}
					held[id] = r
				}
			}
		}
		if left == 0 {
			checkStarvation(t, runs)
			return
		}
		for i := range devices {
			devices[i].Free, devices[i].Run = true, 0
			if by := held[devices[i].ID]; by != nil {
				devices[i].Free, devices[i].Run = false, by.run
			}
		}
		p := newPlan(now, devices, reserved)
		p.ends = func(id ablation.RunID) (time.Time, bool) {
			r := runs[id-1]
			if r.most == 0 || r.starts.IsZero() {
				return time.Time{}, false
			}
			end := r.starts.Add(r.most)
			return end, end.After(now)
		}
		var queued []*simRun
		for _, r := range runs {
			if r.starts.IsZero() && !r.arrives.After(now) {
				queued = append(queued, r)
			}
		}
		slices.SortStableFunc(queued, func(a, b *simRun) int {
			if a.priority != b.priority {
				return b.priority - a.priority
			}
			return a.arrives.Compare(b.arrives)
		})
		for _, r := range queued {
			ids, _ := p.consider(r.wish)
			if ids == nil {
				continue
			}
			if len(ids) != r.want.N {
				t.Fatalf("run %d got %d devices, want %d", r.run, len(ids), r.want.N)
			}
			for _, id := range ids {
				i := slices.IndexFunc(devices, func(d gpu.Device) bool { return d.ID == id })
				if !devices[i].Free || !r.want.Fits(devices[i]) || p.taken[id] != r.run {
					t.Fatalf("run %d got %s, which is not free or does not fit", r.run, id)
				}
			}
			r.starts, r.ids = now, ids
		}
		reserved = p.blocked
		now = now.Add(10 * time.Second)
	}
	t.Fatal("starved: not all runs have ended")
}

// checkStarvation bounds each wait by the work of all that could rightly go
// first, done one after the other, and what back-filling may add.
func checkStarvation(t *testing.T, runs []*simRun) {
	t.Helper()
	for _, r := range runs {
		var before, longest time.Duration
		for _, o := range runs {
			longest = max(longest, o.takes)
			if o.priority > r.priority || o.priority == r.priority && o.arrives.Before(r.arrives) || o.starts.Before(r.arrives) {
				before += o.takes + 20*time.Second
			}
		}
		// Each head in turn may be held up once by a back-filled run whose estimate was wrong.
		if waited, most := r.starts.Sub(r.arrives), before+41*longest; waited > most {
			t.Errorf("run %d (%s) waited %s, at most %s can be right", r.run, r.want, waited, most)
		}
	}
}

// A stream of small runs that never ends does not keep a large one waiting.
func TestStreamOfSmallRuns(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	devices := gpus(8, 80)
	type one struct {
		run ablation.RunID
		end time.Time
	}
	held := make(map[string]one)
	var reserved map[string]*reservation
	next := ablation.RunID(100)
	for minute := range 600 {
		p := newPlan(now, devices, reserved)
		for i := range devices {
			h, busy := held[devices[i].ID]
			if busy && !now.Before(h.end) {
				delete(held, devices[i].ID)
				busy = false
			}
			devices[i].Free, devices[i].Run = !busy, 0
			if busy {
				devices[i].Run = h.run
			}
		}
		p.ends = func(run ablation.RunID) (time.Time, bool) { // always too early
			return now.Add(time.Minute), true
		}
		if minute > 0 {
			if ids, _ := p.consider(wish{run: 1, want: gpu.Request{Kind: gpu.KindGPU, N: 8}}); ids != nil {
				if minute > 60 {
					t.Errorf("the large run started after %d minutes", minute)
				}
				return
			}
		}
		for range 8 {
			next++
			ids, _ := p.consider(wish{run: next, want: gpu.Request{Kind: gpu.KindGPU, N: 1}, most: 30 * time.Second}) // wrong: it takes half an hour
			for _, id := range ids {
				held[id] = one{next, now.Add(time.Duration(10+int(next)%20) * time.Minute)}
			}
		}
		reserved = p.blocked
		now = now.Add(time.Minute)
	}
	t.Error("the large run never started")
}
