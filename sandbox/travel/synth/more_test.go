package synth_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"alidade/sandbox"
	"alidade/sandbox/travel"
	"alidade/sandbox/travel/synth"
)

// TestSameSeedSameFailures goes through all kinds.
func TestSameSeedSameFailures(t *testing.T) {
	w := small(t)
	qs, sols := solved(t, w, 12)
	o := synth.TraceOptions{Failures: travel.Failures{Rate: 0.5, Seed: 4, Kind: sandbox.Mixed}, Style: synth.Reactive}
	kinds := func() (list []string) {
		got, _ := traces(t, w, qs, sols, o)
		for _, x := range got {
			for _, turn := range x.Trajectory.Turns {
				if turn.Observe != nil {
					list = append(list, turn.Observe.Injected)
				}
			}
		}
		return list
	}
	a := kinds()
	if !slices.Equal(a, kinds()) {
		t.Error("the same seed gave other failures")
	}
	for _, kind := range sandbox.FailureKinds()[:6] {
		if !slices.Contains(a, kind) {
			t.Errorf("no failure of kind %s in %d calls", kind, len(a))
		}
	}
}

func TestSamplersFollowTheirDistributions(t *testing.T) {
	w := small(t)
	for _, sampler := range synth.Samplers() {
		qs, _, _, err := w.Queries(t.Context(), synth.Options{N: 900, Mix: [3]int{1, 1, 1}, Seed: 3, Sampler: sampler})
		if err != nil {
			t.Fatal(err)
		}
		days, cuisines := map[int]int{}, map[int]int{}
		for _, q := range qs {
			days[q.Days]++
			n := q.HardChecks() - 1
			switch q.Level {
			case "easy":
				if q.People != 1 || n != 0 {
					t.Errorf("%s: easy query %+v", sampler, q)
				}
			case "medium":
				if q.People < 2 || q.People > 8 || n != 1 || q.Wish.Transportation != "" {
					t.Errorf("%s: medium query %+v", sampler, q)
				}
			case "hard":
				if q.People < 2 || n != 3 || sampler == synth.SamplerStar && q.Wish.Transportation == "" {
					t.Errorf("%s: hard query %+v", sampler, q)
				}
				cuisines[len(q.Wish.Cuisine)]++
			}
			if q.People > 2 && strings.Contains(q.Wish.RoomType, "shared") {
				t.Errorf("%s: a group of %d asks for a %s", sampler, q.People, q.Wish.RoomType)
			}
			if q.Budget <= 0 || int(q.Budget)%100 != 0 || len(q.Dates) != q.Days || q.Cities != (q.Days-1)/2 {
				t.Errorf("%s: %+v", sampler, q)
			}
			if w.State(q.Org) == w.State(q.Dest) || q.Days > 3 && w.State(q.Org) == q.Dest {
				t.Errorf("%s: from %s to %s stays in the state", sampler, q.Org, q.Dest)
			}
		}
		for _, d := range []int{3, 5, 7} {
			if days[d] < 240 || days[d] > 360 {
				t.Errorf("%s: days %v, want about 300 each", sampler, days)
			}
		}
		if sampler == synth.SamplerTravelPlanner && (cuisines[4] == 0 || cuisines[2] > 0) || sampler == synth.SamplerStar && (cuisines[2] <= cuisines[3] || cuisines[4] > 0) {
			t.Errorf("%s: numbers of cuisines in hard queries %v", sampler, cuisines)
		}
	}
}

func TestFeasibleFollowsThePublishedRule(t *testing.T) {
	w := small(t)
	qs, _, counts, err := w.Queries(t.Context(), synth.Options{N: 60, Mix: mix, Seed: 3, Feasible: true})
	if err != nil {
		t.Fatal(err)
	}
	if counts.Infeasible == 0 {
		t.Error("nothing was infeasible")
	}
	for _, q := range qs {
		f := w.Feasible(q)
		if !f.OK || q.Budget < 0.7*(f.Transport+f.Hotels+f.Meals) {
			t.Errorf("%+v: %+v", q, f)
		}
		q.Budget = 1
		if f := w.Feasible(q); f.OK || !strings.Contains(f.Reason, "budget") {
			t.Errorf("with 1 $: %+v", f)
		}
		q.People = 100
		if f := w.Feasible(q); f.OK || !strings.Contains(f.Reason, "accommodations") {
			t.Errorf("with 100 people: %+v", f)
		}
	}
}

func TestSolverLimits(t *testing.T) {
	w := small(t)
	qs, _, _, err := w.Queries(t.Context(), synth.Options{N: 10, Mix: mix, Days: 7, Seed: 3, Certify: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range qs {
		full := w.Solve(q)
		if !full.Proven || !full.Exact || full.Nodes == 0 {
			t.Fatalf("solved %+v", full)
		}
		if cut := w.SolveWithin(t.Context(), q, synth.Limits{Nodes: 1}); cut.Proven || !strings.Contains(cut.Reason, "cut off at its limit of nodes: not proven") {
			t.Errorf("with one node: %+v", cut)
		}
		some := w.SolveWithin(t.Context(), q, synth.Limits{Nodes: full.Nodes / 2})
		if some.Proven {
			j := travel.Judge(w.World, q, travel.NewPlan(some.Days), travel.Strict)
			if some.Exact || !j.Success || some.Cost < full.Cost {
				t.Errorf("with half the nodes: %v $, exact %v, strict %v; the cheapest is %v $", some.Cost, some.Exact, j.Success, full.Cost)
			}
		}
		if late := w.SolveWithin(t.Context(), q, synth.Limits{Time: time.Nanosecond}); late.Exact && late.Nodes > 300 {
			t.Errorf("a nanosecond was enough for %d nodes", late.Nodes)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if s := w.SolveWithin(ctx, qs[0], synth.Limits{}); s.Exact && s.Nodes > 2000 {
		t.Errorf("a cancelled search went on for %d nodes", s.Nodes)
	}
}

func TestSplitsKeepSetsApart(t *testing.T) {
	w := small(t)
	splits, err := synth.ParseSplits("train:6,eval:1")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for _, name := range splits.Names() {
		keep, err := splits.Keep(name)
		if err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(2) {
			qs, _, counts, err := w.Queries(t.Context(), synth.Options{N: 60, Mix: mix, Seed: seed, Keep: keep})
			if err != nil {
				t.Fatal(err)
			}
			if counts.OtherSplit == 0 {
				t.Errorf("%s: %+v", name, counts)
			}
			for _, q := range qs {
				if other := seen[q.Hash()]; other != "" && other != name {
					t.Errorf("a query is in %s and %s", other, name)
				}
				seen[q.Hash()] = name
			}
		}
	}
}
