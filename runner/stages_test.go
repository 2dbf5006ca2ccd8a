package runner

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"alidade/ablation"
	"alidade/gpu"
)

func sftStage(key string) []ablation.Stage {
	return []ablation.Stage{{Kind: ablation.StageBase, Key: "base"}, {Kind: ablation.StageSFT, Key: key, BySeed: true}}
}

// The words, and what ends a wait.
func TestStages(t *testing.T) {
	onDisk := true
	s := &stages{data: "/data", exists: func(string) bool { return onDisk }}
	waits := func(key string, seed uint64) string { return waitsFor(s.now(), sftStage(key), seed) }
	step := func(what, key string, seed uint64, want string) {
		t.Helper()
		if got := waits(key, seed); got != want {
			t.Errorf("%s: a run of %s, seed %d: %q, want %q", what, key, seed, got, want)
		}
	}
	step("nothing lives", "a", 1, "")
	s.begin(3, sftStage("a"), 1)
	step("run 3 lives", "a", 1, "waits for the base model of run 3")
	step("run 3 lives", "b", 2, "waits for the base model of run 3")
	s.has(3, ablation.StageBase, "artifacts/base/x")
	step("its base is there", "a", 1, "waits for the SFT checkpoint of run 3")
	step("its base is there", "a", 2, "")
	step("its base is there", "b", 1, "")
	s.has(3, "dataset", "artifacts/dataset/x")
	step("another artifact", "a", 1, "waits for the SFT checkpoint of run 3")
	s.has(3, ablation.StageSFT, "artifacts/sft/x")
	step("its SFT is there", "a", 1, "")
	s.begin(4, sftStage("a"), 1)
	step("another begins on what is there", "a", 1, "")
	onDisk = false
	step("what was there has been deleted", "a", 1, "waits for the base model of run 4")
	if !s.left(4) || s.left(4) {
		t.Error("left does not say whether the run was making something")
	}
	step("run 4 has failed", "a", 1, "")
	s.begin(5, nil, 1)
	step("a run that shares nothing", "a", 1, "")
}

// Forty runs of a simulated node that share SFT stages, some of which fail in
// the middle of one: no stage is made by two at once, nobody waits for a run
// that does not live, all end, and what waits for a stage keeps no device from
// others.
func TestSharedStagesOfASimulatedNode(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	past := 0
	for round := range rounds() {
		n := newStageNode(rand.New(rand.NewPCG(seed, uint64(round))))
		n.run(t)
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
		past += n.past
	}
	if past < rounds() {
		t.Errorf("%d runs went past one that waited for a stage: it keeps devices from others", past)
	}
}

type stageRun struct {
	wish
	shared         []ablation.Stage
	seed           uint64
	priority       int
	arrives        time.Time
	prepare, train time.Duration // until its artifact is there, and from then on
	fails          int           // attempts that end half-way through the preparation

	starts time.Time // zero = queued
	has    bool      // its artifact is there
	ended  bool
	ids    []string
}

type stageNode struct {
	now     time.Time
	devices []gpu.Device
	runs    []*stageRun
	stages  stages
	held    int // waits that were seen
	past    int // runs that went past one that waited for a stage
	serial  time.Duration
}

func newStageNode(rng *rand.Rand) *stageNode {
	n := &stageNode{now: time.Unix(1_000_000, 0), devices: gpus(8, 80)}
	n.stages.exists = func(string) bool { return true }
	for i := range 40 {
		r := &stageRun{
			wish: wish{run: ablation.RunID(i + 1), want: gpu.Request{Kind: gpu.KindGPU, N: 1 << rng.IntN(4)}}, seed: uint64(rng.IntN(2)),
			priority: rng.IntN(2), arrives: n.now.Add(time.Duration(rng.IntN(3600)) * time.Second),
			prepare: time.Duration(10+rng.IntN(900)) * time.Second, train: time.Duration(10+rng.IntN(900)) * time.Second,
		}
		if key := rng.IntN(4); key > 0 {
			r.shared = sftStage(fmt.Sprint(key))[1:]
			r.fails = rng.IntN(3)
		}
		if rng.IntN(2) == 0 {
			r.most = r.prepare + r.train
		}
		n.runs = append(n.runs, r)
		n.serial += time.Duration(1+r.fails) * (r.prepare + r.train + 20*time.Second)
	}
	return n
}

func (n *stageNode) run(t *testing.T) {
	t.Helper()
	var reserved map[string]*reservation
	end := n.now.Add(time.Hour + n.serial)
	for ; n.now.Before(end); n.now = n.now.Add(10 * time.Second) {
		if n.advance(t) == 0 {
			if n.held == 0 {
				t.Error("no run ever waited for a stage")
			}
			return
		}
		reserved = n.pass(t, reserved)
	}
	t.Error("starved: not all runs have ended, though one after the other would have")
}

// advance lets time pass for the runs that live, and counts those to come.
func (n *stageNode) advance(t *testing.T) (left int) {
	t.Helper()
	making := make(map[ablation.Stage]ablation.RunID)
	for _, r := range n.runs {
		switch gone := n.now.Sub(r.starts); {
		case r.ended || r.starts.IsZero():
		case !r.has && r.fails > 0 && gone >= r.prepare/2:
			n.stages.left(r.run) // it has failed; a person, or the runner, queues it again
			r.fails--
			r.starts, r.ids = time.Time{}, nil
		case gone >= r.prepare+r.train:
			n.stages.left(r.run)
			r.ended, r.ids = true, nil
		case !r.has && gone >= r.prepare:
			r.has = true
			n.stages.has(r.run, ablation.StageSFT, "there")
		}
		if !r.ended {
			left++
		}
		if r.ended || r.starts.IsZero() || r.has || len(r.shared) == 0 {
			continue
		}
		st := r.shared[0].Of(r.seed)
		if by := making[st]; by != 0 && !n.stages.there(st) {
			t.Fatalf("runs %d and %d make the same stage", by, r.run)
		}
		making[st] = r.run
	}
	return left
}

func (n *stageNode) pass(t *testing.T, reserved map[string]*reservation) map[string]*reservation {
	t.Helper()
	live := make(map[ablation.RunID]bool)
	for i := range n.devices {
		n.devices[i].Free, n.devices[i].Run = true, 0
	}
	for _, r := range n.runs {
		live[r.run] = !r.starts.IsZero() && !r.ended
		for _, id := range r.ids {
			i := slices.IndexFunc(n.devices, func(d gpu.Device) bool { return d.ID == id })
			if !n.devices[i].Free {
				t.Fatalf("%s is held by runs %d and %d", id, n.devices[i].Run, r.run)
			}
			n.devices[i].Free, n.devices[i].Run = false, r.run
		}
	}
	p := newPlan(n.now, n.devices, reserved)
	queued := slices.DeleteFunc(slices.Clone(n.runs), func(r *stageRun) bool {
		return r.ended || !r.starts.IsZero() || r.arrives.After(n.now)
	})
	slices.SortStableFunc(queued, func(a, b *stageRun) int {
		if a.priority != b.priority {
			return b.priority - a.priority
		}
		return a.arrives.Compare(b.arrives)
	})
	waiting, making := false, n.stages.now()
	for _, r := range queued {
		if why := waitsFor(making, r.shared, r.seed); why != "" {
			if by := making[r.shared[0].Of(r.seed)]; !live[by] {
				t.Fatalf("run %d %s, which does not live", r.run, why)
			}
			n.held++
			waiting = true
			continue
		}
		ids, _ := p.consider(r.wish)
		if ids == nil {
			continue
		}
		if waiting {
			n.past++
		}
		r.starts, r.ids, r.has, live[r.run] = n.now, ids, false, true
		n.stages.begin(r.run, r.shared, r.seed)
		making = n.stages.now()
	}
	return p.blocked
}
