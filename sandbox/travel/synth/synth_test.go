package synth_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"alidade/sandbox/travel"
	"alidade/sandbox/travel/synth"
)

// small is a generated world that many tests share; it is never changed.
func small(t testing.TB) *synth.World {
	t.Helper()
	tables, err := synth.Generate(7, 48)
	if err != nil {
		t.Fatal(err)
	}
	return synth.NewWorld(tables)
}

// real is the public tables with generated flights; skipped where absent.
func real(t testing.TB) *synth.World {
	t.Helper()
	dir := os.Getenv("ALIDADE_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "..", "shared")
	}
	dir = filepath.Join(dir, "data", "travelplanner", "tables")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("TravelPlanner's tables are not on this machine")
	}
	tables, err := travel.LoadTables(dir)
	if err != nil {
		t.Fatal(err)
	}
	synth.AddFlights(&tables, 1)
	return synth.NewWorld(tables)
}

var mix = [3]int{4, 3, 3}

func TestSolvedPlansPassStrict(t *testing.T) {
	for _, c := range []struct {
		name  string
		world *synth.World
		n     int
	}{{"generated", small(t), 120}, {"public tables", real(t), 100}} {
		t.Run(c.name, func(t *testing.T) {
			qs, sols, counts, err := c.world.Queries(t.Context(), synth.Options{N: c.n, Mix: mix, Seed: 3, Certify: true})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d queries: %+v", len(qs), counts)
			for i, q := range qs {
				j := travel.Judge(c.world.World, q, travel.NewPlan(sols[i].Days), travel.Strict)
				if !j.Success {
					t.Errorf("query %d (%s, %d days): the solver's plan fails strict: %s", i, q.Level, q.Days, failures(j))
				}
				if j.Cost == nil || *j.Cost != sols[i].Cost {
					t.Errorf("query %d: the checks price the plan at %v, the solver at %v", i, j.Cost, sols[i].Cost)
				}
				if missing := synth.States(q.Text, q); len(missing) > 0 {
					t.Errorf("query %d: text does not state %v: %s", i, missing, q.Text)
				}
			}
		})
	}
}

func failures(j travel.Judgement) string {
	var out []string
	for _, v := range j.Verdicts {
		if v.Outcome != "pass" && v.Outcome != "n/a" {
			out = append(out, v.Check+" "+v.Outcome+": "+v.Reason)
		}
	}
	return strings.Join(out, "; ")
}

func TestSameSeedSameQueries(t *testing.T) {
	draw := func(seed uint64) string {
		tables, err := synth.Generate(9, 30)
		if err != nil {
			t.Fatal(err)
		}
		w := synth.NewWorld(tables)
		qs, sols, _, err := w.Queries(t.Context(), synth.Options{N: 30, Mix: mix, Seed: seed, Certify: true})
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%s %+v %+v", w.Hash(), qs, sols)
	}
	first, again := draw(1), draw(1)
	if first != again {
		t.Error("the same seed gave other queries")
	}
	if first == draw(2) {
		t.Error("another seed gave the same queries")
	}
}

func TestMixIsExactAndNothingTwice(t *testing.T) {
	w := small(t)
	qs, _, _, err := w.Queries(t.Context(), synth.Options{N: 200, Mix: mix, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	seen := map[string]bool{}
	for _, q := range qs {
		count[q.Level]++
		if seen[q.Hash()] {
			t.Errorf("query %s twice", q.Hash())
		}
		seen[q.Hash()] = true
	}
	if count["easy"] != 80 || count["medium"] != 60 || count["hard"] != 60 {
		t.Errorf("mix %v, want 80, 60, 60", count)
	}
	more, _, _, err := w.Queries(t.Context(), synth.Options{N: 100, Mix: mix, Seed: 2, Exclude: seen})
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range more {
		if seen[q.Hash()] {
			t.Errorf("an excluded query came again")
		}
	}
}

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		n    int
		mix  [3]int
		want [3]int
	}{
		{10, [3]int{4, 3, 3}, [3]int{4, 3, 3}},
		{1, [3]int{4, 3, 3}, [3]int{1, 0, 0}},
		{100, [3]int{1, 1, 1}, [3]int{34, 33, 33}},
		{7, [3]int{0, 0, 5}, [3]int{0, 0, 7}},
		{5, [3]int{}, [3]int{}},
	} {
		if got := synth.Split(c.n, c.mix); got != c.want {
			t.Errorf("Split(%d, %v) = %v, want %v", c.n, c.mix, got, c.want)
		}
	}
}

func TestImpossibleRequestsEndWithAReason(t *testing.T) {
	if _, err := synth.Generate(1, 3); err == nil {
		t.Error("a world of 3 cities was made")
	}
	tables, err := synth.Generate(1, 4)
	if err != nil {
		t.Fatal(err)
	}
	tables.Flights, tables.Distances = nil, nil
	w := synth.NewWorld(tables)
	_, _, _, err = w.Queries(t.Context(), synth.Options{N: 5, Mix: mix, Days: 7, Seed: 1, Certify: true})
	if err == nil || !strings.Contains(err.Error(), "world is too small") {
		t.Errorf("Queries = %v, want the reason that the world is too small", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, _, err := w.Queries(ctx, synth.Options{N: 5, Mix: mix, Seed: 1}); err == nil {
		t.Error("a cancelled draw went on")
	}
}

func TestNotProvenSaysWhy(t *testing.T) {
	w := small(t)
	qs, _, _, err := w.Queries(t.Context(), synth.Options{N: 5, Mix: mix, Seed: 11, Certify: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range qs {
		q.Budget = 10
		if s := w.Solve(q); s.Proven || !strings.Contains(s.Reason, "budget") {
			t.Errorf("Solve with 10 $ = proven %v, %q", s.Proven, s.Reason)
		}
		q.Dates = q.Dates[:1]
		if s := w.Solve(q); s.Proven || s.Reason == "" {
			t.Errorf("Solve with one date = proven %v, %q", s.Proven, s.Reason)
		}
	}
}

func TestExpertTrajectoriesSucceed(t *testing.T) {
	w := small(t)
	qs, sols, _, err := w.Queries(t.Context(), synth.Options{N: 20, Mix: mix, Seed: 4, Certify: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, q := range qs {
		c := travel.EpisodeConfig{ID: uint64(i), MaxTurns: 60, Profile: travel.Strict, Failures: travel.Failures{Rate: 0.2, Seed: 1}}
		tr := w.Expert(t.Context(), q, sols[i], c, synth.Reactive, 1)
		if !tr.Success || len(tr.Plan) != q.Days || tr.ToolCalls == 0 {
			t.Errorf("query %d: success %v, %d plan days, %d calls", i, tr.Success, len(tr.Plan), tr.ToolCalls)
		}
		for _, d := range tr.Plan {
			for field, value := range map[string]string{"transportation": d.Transportation, "breakfast": d.Breakfast, "lunch": d.Lunch, "dinner": d.Dinner, "attraction": d.Attraction, "accommodation": d.Accommodation} {
				if value != "-" && d.Found[field] == 0 {
					t.Errorf("query %d day %d: no call showed %s %q", i, d.Day, field, value)
				}
			}
		}
	}
}

// TestShape holds a generated world against the measured shape of the public data.
func TestShape(t *testing.T) {
	tables, err := synth.Generate(1, 60)
	if err != nil {
		t.Fatal(err)
	}
	per := func(n int) float64 { return float64(n) / 60 }
	for _, c := range []struct {
		what      string
		got       float64
		low, high float64
	}{
		{"restaurants a city", per(len(tables.Restaurants)), 25, 35},
		{"hotels a city", per(len(tables.Hotels)), 10, 14},
		{"attractions a city", per(len(tables.Attractions)), 11, 20},
		{"states", float64(countStates(tables)), 8, 12},
	} {
		if c.got < c.low || c.got > c.high {
			t.Errorf("%s: %.1f, want %v to %v", c.what, c.got, c.low, c.high)
		}
	}
	contained := 0
	for _, a := range tables.Cities {
		for _, b := range tables.Cities {
			if a.Name != b.Name && strings.Contains(b.Name, a.Name) {
				contained++
			}
		}
	}
	if contained == 0 {
		t.Error("no city name is contained in another; the real data's awkwardness is missing")
	}
}

// TestFullShape holds the full generated world against the public city list.
func TestFullShape(t *testing.T) {
	tables, err := synth.Generate(1, 312)
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[string]int{}
	names := map[string]bool{}
	for _, c := range tables.Cities {
		sizes[c.State]++
		names[c.Name] = true
	}
	wide, three, most := 0, 0, 0
	for _, n := range sizes {
		most = max(most, n)
		if n > 3 {
			wide++
		}
		if n >= 3 {
			three++
		}
	}
	if len(names) != 312 || len(sizes) != 64 || wide != 34 || three != 41 || most < 20 || most > 26 {
		t.Errorf("%d names in %d states, %d with more than three cities, %d with three, the largest has %d; want 312, 64, 34, 41, about 23", len(names), len(sizes), wide, three, most)
	}
	routes := map[[2]string]map[string]int{}
	for _, f := range tables.Flights {
		k := [2]string{f.Org, f.Dest}
		if routes[k] == nil {
			routes[k] = map[string]int{}
		}
		routes[k][f.Date]++
		if share := float64(f.Price) / f.Distance; f.Price > 25 && (share < 0.15 || share > 0.55) {
			t.Fatalf("flight %+v costs %.2f $ a mile", f, share)
		}
	}
	var counts []int
	for _, byDate := range routes {
		for _, n := range byDate {
			counts = append(counts, n)
		}
	}
	slices.Sort(counts)
	if low, mid, high := counts[0], counts[len(counts)/2], counts[len(counts)-1]; low < 1 || mid < 2 || mid > 5 || high > 33 {
		t.Errorf("flights a route and day %d to %d, median %d", low, high, mid)
	}
}

func countStates(tables travel.Tables) int {
	m := map[string]bool{}
	for _, c := range tables.Cities {
		m[c.State] = true
	}
	return len(m)
}

func BenchmarkSolve(b *testing.B) {
	w := small(b)
	qs, _, _, err := w.Queries(b.Context(), synth.Options{N: 64, Mix: mix, Seed: 1})
	if err != nil {
		b.Fatal(err)
	}
	i := 0
	for b.Loop() {
		w.Solve(qs[i%len(qs)])
		i++
	}
}

func BenchmarkCertifiedQueries(b *testing.B) {
	w := small(b)
	for b.Loop() {
		if _, _, _, err := w.Queries(b.Context(), synth.Options{N: 100, Mix: mix, Seed: rand.Uint64(), Certify: true}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(100*float64(b.N)/b.Elapsed().Seconds(), "queries/s")
}
