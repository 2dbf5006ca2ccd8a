package travel

import (
	"testing"
)

// One core: go test -bench . -cpu 1.

func BenchmarkJudge(b *testing.B) {
	w := smallWorld()
	for _, size := range []struct {
		name string
		q    Query
		p    Plan
	}{{"3 days", smallQuery(), NewPlan(smallPlan())}, {"5 days", longQuery(), NewPlan(longPlan())}} {
		for _, pr := range Profiles() {
			b.Run(size.name+"/"+string(pr), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					Judge(w, size.q, size.p, pr)
				}
			})
		}
	}
}

func BenchmarkJudgeBad(b *testing.B) {
	w, q := smallWorld(), smallQuery()
	days := smallPlan()
	days[1].Lunch, days[1].Breakfast, days[2].Transportation = "Nowhere, Birch", "Salt, Birch", "Train"
	p := NewPlan(days)
	for b.Loop() {
		Judge(w, q, p, Strict)
	}
}

// BenchmarkJudgeGolden judges all golden pairs, sound and broken, by each profile.
func BenchmarkJudgeGolden(b *testing.B) {
	w, pairs := goldenWorld(b), goldenPairs(b)
	for _, pr := range Profiles() {
		b.Run(string(pr), func(b *testing.B) {
			n := 0
			for b.Loop() {
				p := &pairs[n%len(pairs)]
				Judge(w, p.query, p.plan, pr)
				n++
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "evaluations/s")
		})
	}
}

func BenchmarkTools(b *testing.B) {
	tables, err := LoadTables(shared(b, "tables"))
	if err != nil {
		b.Fatal(err)
	}
	w := NewWorld(tables)
	g := goldenWorld(b)
	var flight Flight
	g.EachFlight(func(f Flight) bool { flight = f; return false })
	cities := w.Cities()
	bench := func(name string, call func(i int) Result) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				call(n)
				n++
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "calls/s")
		})
	}
	for _, tool := range []string{ToolRestaurant, ToolAccommodation, ToolAttraction} {
		bench(tool, func(i int) Result { return w.Call(tool, map[string]any{"city": cities[i%len(cities)].Name}) })
	}
	bench(ToolCity, func(i int) Result { return w.Call(ToolCity, map[string]any{"state": cities[i%len(cities)].State}) })
	bench(ToolDistance, func(i int) Result {
		d := tables.Distances[i%len(tables.Distances)]
		return w.Call(ToolDistance, map[string]any{"departure": d.Org, "destination": d.Dest, "mode": "taxi"})
	})
	bench(ToolFlight, func(i int) Result {
		return g.Call(ToolFlight, map[string]any{"departure": flight.Org, "destination": flight.Dest, "date": flight.Date})
	})
}

func BenchmarkEpisode(b *testing.B) {
	w, q, p := smallWorld(), smallQuery(), NewPlan(smallPlan())
	b.ReportAllocs()
	for b.Loop() {
		e := NewEpisode(w, q, EpisodeConfig{})
		e.Search(ToolFlight, "Alder", "Birch", "2022-03-01")
		e.Search(ToolFlight, "Birch", "Alder", "2022-03-03")
		for _, tool := range []string{ToolRestaurant, ToolAttraction, ToolAccommodation} {
			e.Search(tool, "Birch", "", "")
		}
		e.Finish(p, EndAnswer, "")
		e.Reward(RewardSum, nil, 0)
	}
}

func BenchmarkParsePlan(b *testing.B) {
	text := JSONPlan(smallPlan())
	for b.Loop() {
		if _, err := ParsePlan(text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLoadWorld(b *testing.B) {
	dir := shared(b, "tables")
	for b.Loop() {
		if _, err := LoadWorld(dir); err != nil {
			b.Fatal(err)
		}
	}
}
