package synth

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"alidade/sandbox/travel"
)

// Options says which queries to make.
type Options struct {
	N            int
	Mix          [3]int // easy : medium : hard
	Days         int    // 3, 5, 7; 0 = each equally often
	Seed         uint64
	BudgetFactor float64         // multiplies the rule's budget; 0 = 1
	Certify      bool            // keep only queries for which the solver has a plan
	Exclude      map[string]bool // hashes of queries that must not come again (other splits)
	Progress     func(done int)
}

// Counts say what became of the draws.
type Counts struct {
	Drawn, NoRoute, NoBudget, NotProven, Duplicate int
}

// maxDraws bounds the draws per query wanted, so that an impossible request
// (no such trip in this world) ends with an error.
const maxDraws = 4000

// Levels in the order of a mix.
var levels = [3]string{"easy", "medium", "hard"}

// Queries draws queries at exactly the mix asked for (largest remainders),
// none twice, each with a certificate when Certify is set. Solutions come in
// the same order as the queries; without Certify they are nil.
func (w *World) Queries(ctx context.Context, o Options) ([]travel.Query, []Solution, Counts, error) {
	var n Counts
	if o.BudgetFactor == 0 {
		o.BudgetFactor = 1
	}
	quota := Split(o.N, o.Mix)
	r := rng(o.Seed, "queries")
	seen := map[string]bool{}
	var qs []travel.Query
	var sols []Solution
	order := levelOrder(r, quota)
	for _, level := range order {
		for try := 0; ; try++ {
			if err := ctx.Err(); err != nil {
				return nil, nil, n, err
			}
			if try == maxDraws {
				return nil, nil, n, fmt.Errorf("no %s query found in %d draws (%d without a route, %d below the rule's minimum rows, %d not proven solvable): the world is too small for what is asked", level, maxDraws, n.NoRoute, n.NoBudget, n.NotProven)
			}
			n.Drawn++
			q, why := w.draw(r, level, o)
			switch why {
			case drawnNoRoute:
				n.NoRoute++
				continue
			case drawnNoBudget:
				n.NoBudget++
				continue
			}
			h := q.Hash()
			if seen[h] || o.Exclude[h] {
				n.Duplicate++
				continue
			}
			if o.Certify {
				sol := w.Solve(q)
				if !sol.Proven {
					n.NotProven++
					continue
				}
				sols = append(sols, sol)
			}
			seen[h] = true
			q.Text = Text(r, q)
			qs = append(qs, q)
			break
		}
		if o.Progress != nil {
			o.Progress(len(qs))
		}
	}
	return qs, sols, n, nil
}

// Split shares n out by a mix, largest remainders first.
func Split(n int, mix [3]int) [3]int {
	total := mix[0] + mix[1] + mix[2]
	var out [3]int
	if total == 0 {
		return out
	}
	left := n
	var order [3]int
	for i := range mix {
		out[i] = n * mix[i] / total
		left -= out[i]
		order[i] = i
	}
	slices.SortStableFunc(order[:], func(a, b int) int { return n*mix[b]%total - n*mix[a]%total })
	for i := 0; i < left; i++ {
		out[order[i]]++
	}
	return out
}

// levelOrder shuffles the levels of all queries, so that any prefix of the
// set has about the mix.
func levelOrder(r *rand.Rand, quota [3]int) []string {
	var out []string
	for i, n := range quota {
		for range n {
			out = append(out, levels[i])
		}
	}
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

type drawn int

const (
	drawnOK drawn = iota
	drawnNoRoute
	drawnNoBudget
)

// draw makes one query by the published distributions of the STAR synthesis:
// trip source, group size, and kinds of wishes by level.
func (w *World) draw(r *rand.Rand, level string, o Options) (travel.Query, drawn) {
	q := travel.Query{Level: level, Days: o.Days, People: 1}
	if q.Days == 0 {
		q.Days = pick(r, []int{3, 5, 7})
	}
	q.Cities = trips[q.Days].legs - 1
	if level != "easy" {
		q.People = 2
		if r.IntN(2) == 1 {
			q.People = 3 + r.IntN(6)
		}
	}
	w.wishes(r, &q)
	drive := r.IntN(10) == 0
	switch q.Wish.Transportation {
	case "no flight":
		drive = true
	case "no self-driving":
		drive = false
	}
	if drive {
		if !w.drivingTrip(r, &q) {
			return q, drawnNoRoute
		}
	} else if !w.flightTrip(r, &q) {
		return q, drawnNoRoute
	}
	if !w.budget(&q, o.BudgetFactor) {
		return q, drawnNoBudget
	}
	return q, drawnOK
}

// askedCuisines are those a query may ask for; the last only in hard ones.
var askedCuisines = []string{"Chinese", "American", "Italian", "Mexican", "Indian", "Mediterranean", "French", "BBQ", "Fast Food"}

// wishes draws the constraints of a level.
func (w *World) wishes(r *rand.Rand, q *travel.Query) {
	switch q.Level {
	case "medium":
		w.wish(r, q, pick(r, []string{"house rule", "cuisine", "room type"}))
	case "hard":
		q.Wish.Transportation = pick(r, []string{"no self-driving", "no flight"})
		first := weighted(r, "")
		w.wish(r, q, first)
		w.wish(r, q, weighted(r, first))
	}
}

// weighted picks a kind of wish with the published weights, leaving one out.
func weighted(r *rand.Rand, without string) string {
	kinds := []string{"house rule", "cuisine", "room type"}
	weights := []float64{0.35, 0.30, 0.35}
	total := 0.0
	for i, k := range kinds {
		if k != without {
			total += weights[i]
		}
	}
	x := r.Float64() * total
	for i, k := range kinds {
		if k == without {
			continue
		}
		if x -= weights[i]; x < 0 {
			return k
		}
	}
	if without == kinds[2] {
		return kinds[1]
	}
	return kinds[2]
}

func (w *World) wish(r *rand.Rand, q *travel.Query, kind string) {
	switch kind {
	case "house rule":
		q.Wish.HouseRule = pick(r, []string{"smoking", "parties", "children under 10", "visitors", "pets"})
	case "room type":
		types := []string{"shared room", "not shared room", "private room", "entire room"}
		if q.People > 2 {
			types = []string{"private room", "entire room"}
		}
		q.Wish.RoomType = pick(r, types)
	case "cuisine":
		n, from := 2, 8
		if q.Level == "hard" {
			from = 9
			if r.IntN(100) >= 60 {
				n = 3
			}
		}
		for _, i := range r.Perm(from)[:n] {
			q.Wish.Cuisine = append(q.Wish.Cuisine, askedCuisines[i])
		}
	}
}

// pairTries bounds the route candidates looked at in one draw.
const pairTries = 40

// flightTrip picks a route with flights out and back on the trip's first and
// last day, favouring days with many of them.
func (w *World) flightTrip(r *rand.Rand, q *travel.Query) bool {
	if len(w.routes) == 0 {
		return false
	}
	for range pairTries {
		p := pick(r, w.routes)
		state := w.State(p[1])
		if state == w.State(p[0]) || len(w.CitiesIn(state)) < 3 {
			continue
		}
		if w.fares[[2]string{p[1], p[0]}].n == 0 {
			continue
		}
		start, ok := w.startDate(r, p, q.Days)
		if !ok {
			continue
		}
		q.Org, q.Dest, q.Dates = p[0], p[1], window(start, q.Days)
		if q.Days > 3 {
			q.Dest = state
		}
		return true
	}
	return false
}

// startDate draws the first day with weight (flights out + 1) × (flights back + 1)
// among those with at least three flights either way.
func (w *World) startDate(r *rand.Rand, p [2]string, days int) (string, bool) {
	var starts []string
	var weights []int
	total := 0
	for i := 0; i+days <= len(w.dates); i++ {
		out := len(w.Flights(p[0], p[1], w.dates[i]))
		back := len(w.Flights(p[1], p[0], w.dates[i+days-1]))
		if out < 3 || back < 3 {
			continue
		}
		starts = append(starts, w.dates[i])
		weights = append(weights, (out+1)*(back+1))
		total += (out + 1) * (back + 1)
	}
	if total == 0 {
		return "", false
	}
	x := r.IntN(total)
	for i, wt := range weights {
		if x -= wt; x < 0 {
			return starts[i], true
		}
	}
	return "", false
}

const maxDriveKM = 600

// drivingTrip picks a destination within a day's drive.
func (w *World) drivingTrip(r *rand.Rand, q *travel.Query) bool {
	if len(w.dates) < q.Days {
		return false
	}
	for range 1000 {
		org, probe := pick(r, w.cities), pick(r, w.cities)
		if org.State == probe.State || org.Name == probe.Name {
			continue
		}
		if q.Days > 3 && len(w.CitiesIn(probe.State)) <= 3 {
			continue
		}
		d, ok := w.drivable[[2]string{org.Name, probe.Name}]
		if !ok {
			continue
		}
		if km, ok := parseKM(d.Distance); !ok || km > maxDriveKM {
			continue
		}
		q.Org, q.Dest = org.Name, probe.Name
		if q.Days > 3 {
			q.Dest = probe.State
		}
		q.Dates = window(w.dates[r.IntN(len(w.dates)-q.Days+1)], q.Days)
		return true
	}
	return false
}

// window lists the trip's dates from its first day.
func window(start string, days int) []string {
	t, err := time.Parse(time.DateOnly, start)
	if err != nil {
		return nil
	}
	out := make([]string, days)
	for i := range out {
		out[i] = t.AddDate(0, 0, i).Format(time.DateOnly)
	}
	return out
}
