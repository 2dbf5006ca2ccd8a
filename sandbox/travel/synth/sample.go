package synth

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"alidade/sandbox/travel"
)

// Sampler names a way to draw the elements of a query.
type Sampler string

// The two published samplers.
const (
	SamplerStar          Sampler = "star"          // Agent-STAR's: trips where flights or roads are
	SamplerTravelPlanner Sampler = "travelplanner" // TravelPlanner's own: any two places, then what is on offer decides
)

// Samplers lists them.
func Samplers() []Sampler { return []Sampler{SamplerStar, SamplerTravelPlanner} }

// Options says which queries to make.
type Options struct {
	N            int
	Mix          [3]int // easy : medium : hard
	Days         int    // 3, 5, 7; 0 = each equally often
	Seed         uint64
	Sampler      Sampler                   // "" = star
	BudgetFactor float64                   // multiplies the rule's budget; 0 = 1
	Feasible     bool                      // also reject what the published feasibility rule rejects, see [World.Feasible]
	Certify      bool                      // keep only queries for which the solver has a plan
	Limits       Limits                    // of the solver
	Exclude      map[string]bool           // hashes of queries that must not come again (other sets)
	Keep         func(hash string) bool    // nil keeps all; see [Splits]
	Write        func(travel.Query) string // writes the text; nil = [Text] with this seed
	Progress     func(done int)
}

// Counts say what became of the draws.
type Counts struct {
	Drawn      int `json:"drawn"`
	NoRoute    int `json:"no_route"`   // no trip with the flights or roads that the sampler wants
	NoBudget   int `json:"no_budget"`  // too little on offer for the budget rule
	Infeasible int `json:"infeasible"` // by the published rule
	NotProven  int `json:"not_proven"` // the solver found no plan
	Duplicate  int `json:"duplicate"`
	OtherSplit int `json:"other_split"`
}

// maxDraws bounds the draws per query wanted, so that an impossible request
// (no such trip in this world) ends with an error.
const maxDraws = 20_000

// Levels in the order of a mix.
var levels = [3]string{"easy", "medium", "hard"}

// Queries draws queries at exactly the mix asked for (largest remainders),
// none twice, each with a certificate when Certify is set. Solutions come in
// the same order as the queries; without Certify they are nil.
func (w *World) Queries(ctx context.Context, o Options) ([]travel.Query, []Solution, Counts, error) {
	if o.BudgetFactor == 0 {
		o.BudgetFactor = 1
	}
	if o.Sampler != "" && !slices.Contains(Samplers(), o.Sampler) {
		return nil, nil, Counts{}, fmt.Errorf("sampler is %q, must be %s or %s", o.Sampler, SamplerStar, SamplerTravelPlanner)
	}
	if o.Days != 0 && trips[o.Days] == (trip{}) {
		return nil, nil, Counts{}, fmt.Errorf("days are %d, must be 3, 5, 7, or 0 for a mix", o.Days)
	}
	d := drawer{w: w, o: o, r: rng(o.Seed, "queries"), seen: map[string]bool{}}
	for _, level := range levelOrder(d.r, Split(o.N, o.Mix)) {
		if err := d.one(ctx, level); err != nil {
			return nil, nil, d.n, err
		}
		if o.Progress != nil {
			o.Progress(len(d.queries))
		}
	}
	return d.queries, d.solutions, d.n, nil
}

// drawer is the state of one Queries.
type drawer struct {
	w *World
	o Options
	r *rand.Rand

	n         Counts
	seen      map[string]bool
	queries   []travel.Query
	solutions []Solution
}

// one draws until a query of the level is good.
func (d *drawer) one(ctx context.Context, level string) error {
	before := d.n
	days := d.o.Days // stays while draws are refused, so that each length comes equally often
	if days == 0 {
		days = pick(d.r, []int{3, 5, 7})
	}
	for range maxDraws {
		if err := ctx.Err(); err != nil {
			return err
		}
		d.n.Drawn++
		if d.try(ctx, level, days) {
			return nil
		}
	}
	return fmt.Errorf("no %s query of %d days found in %d draws (%d without a route, %d below the budget rule's rows, %d infeasible, %d not proven solvable, %d twice, %d of another split): the world is too small for what is asked",
		level, days, maxDraws, d.n.NoRoute-before.NoRoute, d.n.NoBudget-before.NoBudget, d.n.Infeasible-before.Infeasible,
		d.n.NotProven-before.NotProven, d.n.Duplicate-before.Duplicate, d.n.OtherSplit-before.OtherSplit)
}

// try makes one draw and keeps it if it is good.
func (d *drawer) try(ctx context.Context, level string, days int) bool {
	q := travel.Query{Level: level, Days: days, People: 1}
	q.Cities = trips[q.Days].legs - 1
	route := d.w.drawStar
	if d.o.Sampler == SamplerTravelPlanner {
		route = d.w.drawTravelPlanner
	}
	if !route(d.r, &q) {
		d.n.NoRoute++
		return false
	}
	if !d.w.budget(&q, d.o.Sampler, d.o.BudgetFactor) {
		d.n.NoBudget++
		return false
	}
	h := q.Hash()
	if d.o.Keep != nil && !d.o.Keep(h) {
		d.n.OtherSplit++
		return false
	}
	if d.seen[h] || d.o.Exclude[h] {
		d.n.Duplicate++
		return false
	}
	if d.o.Feasible && !d.w.Feasible(q).OK {
		d.n.Infeasible++
		return false
	}
	if d.o.Certify {
		sol := d.w.SolveWithin(ctx, q, d.o.Limits)
		if !sol.Proven {
			d.n.NotProven++
			return false
		}
		d.solutions = append(d.solutions, sol)
	}
	d.seen[h] = true
	if d.o.Write != nil {
		q.Text = d.o.Write(q)
	} else {
		q.Text = Text(d.r, q)
	}
	d.queries = append(d.queries, q)
	return true
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

// people draws the size of a group: two half of the time, else three to eight.
func people(r *rand.Rand) int {
	if r.IntN(2) == 1 {
		return 3 + r.IntN(6)
	}
	return 2
}

// weighted picks a kind with its weight, leaving out those in without.
func weighted(r *rand.Rand, kinds []string, weights []float64, without []string) string {
	total := 0.0
	for i, k := range kinds {
		if !slices.Contains(without, k) {
			total += weights[i]
		}
	}
	x := r.Float64() * total
	last := ""
	for i, k := range kinds {
		if slices.Contains(without, k) {
			continue
		}
		if last = k; x < weights[i] {
			break
		}
		x -= weights[i]
	}
	return last
}

// someOf picks n different elements.
func someOf(r *rand.Rand, list []string, n int) []string {
	var out []string
	for _, i := range r.Perm(len(list))[:n] {
		out = append(out, list[i])
	}
	return out
}

// roomWish and ruleWish draw a wish for the accommodation.
func roomWish(r *rand.Rand, q *travel.Query) {
	types := []string{"shared room", "not shared room", "private room", "entire room"}
	if q.People > 2 {
		types = []string{"private room", "entire room"}
	}
	q.Wish.RoomType = pick(r, types)
}

func ruleWish(r *rand.Rand, q *travel.Query) {
	q.Wish.HouseRule = pick(r, []string{"smoking", "parties", "children under 10", "visitors", "pets"})
}

// ParseSampler reads a sampler's name.
func ParseSampler(s string) (Sampler, error) {
	if slices.Contains(Samplers(), Sampler(s)) {
		return Sampler(s), nil
	}
	var names []string
	for _, x := range Samplers() {
		names = append(names, string(x))
	}
	return "", fmt.Errorf("sampler is %q, must be %s", s, strings.Join(names, " or "))
}
