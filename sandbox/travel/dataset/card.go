package dataset

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"alidade/sandbox/travel"
	"alidade/sandbox/travel/synth"
)

// Card describes a set of queries: how it was made and what is in it. It is a
// value: the same set has the same card.
type Card struct {
	Name    string `json:"name"`
	World   World  `json:"world"`
	Made    Made   `json:"made"`
	Queries int    `json:"queries"`

	Levels  map[string]int `json:"levels"`
	Days    map[int]int    `json:"days"`
	People  map[int]int    `json:"people"`
	Wishes  map[string]int `json:"wishes"`           // queries with this kind of wish
	Details map[string]int `json:"details"`          // queries with this very wish, "cuisine: French"
	Models  map[string]int `json:"models,omitempty"` // who wrote the texts; "template" for the templates

	Counts   *synth.Counts `json:"counts,omitempty"`   // of the draws
	Solvable *Share        `json:"solvable,omitempty"` // of the draws that the solver was asked about
	Feasible *Share        `json:"feasible,omitempty"` // of the draws that the published rule was asked about

	Histograms []Histogram `json:"histograms"`
}

// World identifies the world of a set.
type World struct {
	Kind    string `json:"kind"`
	Hash    string `json:"hash"`
	Cities  int    `json:"cities"`
	States  int    `json:"states"`
	Flights int    `json:"flights"`
}

// Made says how a set was made, as far as it is known.
type Made struct {
	Sampler      string  `json:"sampler,omitempty"`
	Mix          string  `json:"mix,omitempty"`
	Seed         uint64  `json:"seed,omitempty"`
	Split        string  `json:"split,omitempty"`
	BudgetFactor float64 `json:"budget_factor,omitempty"`
	Certified    bool    `json:"certified"` // every query has a plan that passes strict
	From         string  `json:"from,omitempty"`
}

// Share is a part of a whole.
type Share struct {
	Part  int     `json:"part"`
	Whole int     `json:"whole"`
	Share float64 `json:"share"`
}

func newShare(part, whole int) *Share {
	if whole == 0 {
		return nil
	}
	return &Share{part, whole, float64(part) / float64(whole)}
}

// Histogram counts values in bins of equal width, all and by level.
type Histogram struct {
	Name    string           `json:"name"`
	Unit    string           `json:"unit,omitempty"`
	Edges   []float64        `json:"edges"` // one more than there are bins
	Counts  []int            `json:"counts"`
	ByLevel map[string][]int `json:"by_level"`
	Mean    float64          `json:"mean"`
}

// Describe says what a world is, for a card.
func Describe(kind string, w *travel.World) World {
	states := map[string]bool{}
	for _, c := range w.Cities() {
		states[c.State] = true
	}
	return World{Kind: kind, Hash: w.Hash(), Cities: len(w.Cities()), States: len(states), Flights: w.NumFlights()}
}

// NewCard describes a set. counts is nil when the set was not drawn here;
// solutions are the certificates in the order of the queries, or nil.
func NewCard(name string, world World, made Made, lines []travel.QueryLine, solutions []synth.Solution, counts *synth.Counts) Card {
	c := Card{Name: name, World: world, Made: made, Queries: len(lines), Counts: counts,
		Levels: map[string]int{}, Days: map[int]int{}, People: map[int]int{}, Wishes: map[string]int{}, Details: map[string]int{}, Models: map[string]int{}}
	for i := range lines {
		c.count(&lines[i])
	}
	if counts != nil && made.Certified {
		c.Solvable = newShare(len(lines), len(lines)+counts.NotProven)
	}
	if counts != nil && counts.Infeasible > 0 {
		kept := len(lines) + counts.NotProven
		c.Feasible = newShare(kept, kept+counts.Infeasible)
	}
	levels := make([]string, len(lines))
	values := func(of func(i int) float64) []float64 {
		list := make([]float64, len(lines))
		for i := range lines {
			list[i] = of(i)
		}
		return list
	}
	for i := range lines {
		levels[i] = lines[i].Query.Level
	}
	c.add("budget", "$", levels, values(func(i int) float64 { return lines[i].Query.Budget }), 0)
	c.add("budget a person and day", "$", levels, values(func(i int) float64 {
		return lines[i].Query.Budget / float64(max(1, lines[i].Query.People*lines[i].Query.Days))
	}), 0)
	c.add("wishes", "", levels, values(func(i int) float64 { return float64(lines[i].Query.HardChecks() - 1) }), 1)
	c.add("words of the text", "", levels, values(func(i int) float64 { return float64(len(strings.Fields(lines[i].Query.Text))) }), 0)
	if len(solutions) == len(lines) && len(lines) > 0 {
		c.add("cheapest plan over budget", "", levels, values(func(i int) float64 { return solutions[i].Cost / lines[i].Query.Budget }), 0.1)
	}
	return c
}

func (c *Card) count(l *travel.QueryLine) {
	q := &l.Query
	c.Levels[q.Level]++
	c.Days[q.Days]++
	c.People[q.People]++
	model := l.Model
	if model == "" {
		model = "template"
	}
	c.Models[model]++
	note := func(kind string, wishes ...string) {
		if len(wishes) == 0 || wishes[0] == "" {
			return
		}
		c.Wishes[kind]++
		for _, x := range wishes {
			c.Details[kind+": "+x]++
		}
	}
	note("house rule", q.Wish.HouseRule)
	note("cuisine", q.Wish.Cuisine...)
	note("room type", q.Wish.RoomType)
	note("transportation", q.Wish.Transportation)
}

// add makes a histogram; width 0 gives about a dozen round bins.
func (c *Card) add(name, unit string, levels []string, values []float64, width float64) {
	if len(values) == 0 {
		return
	}
	low, high := slices.Min(values), slices.Max(values)
	if width == 0 {
		width = roundWidth((high - low) / 12)
	}
	first := math.Floor(low / width)
	bins := int(math.Floor(high/width)-first) + 1
	h := Histogram{Name: name, Unit: unit, Edges: make([]float64, bins+1), Counts: make([]int, bins), ByLevel: map[string][]int{}}
	for i := range h.Edges {
		h.Edges[i] = math.Round((first+float64(i))*width*1e9) / 1e9
	}
	for i, x := range values {
		bin := min(int(math.Floor(x/width)-first), bins-1)
		h.Counts[bin]++
		if h.ByLevel[levels[i]] == nil {
			h.ByLevel[levels[i]] = make([]int, bins)
		}
		h.ByLevel[levels[i]][bin]++
		h.Mean += x / float64(len(values))
	}
	c.Histograms = append(c.Histograms, h)
}

// roundWidth is the next of 1, 2, 5 times a power of ten.
func roundWidth(x float64) float64 {
	if x <= 0 {
		return 1
	}
	p := math.Pow(10, math.Floor(math.Log10(x)))
	for _, f := range []float64{1, 2, 5} {
		if x <= f*p {
			return f * p
		}
	}
	return 10 * p
}

// Markdown writes the card for people.
func (c Card) Markdown() string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("# %s\n", c.Name)
	p("%d travel queries in a %s world of %d cities in %d states with %d flights (hash %s).", c.Queries, c.World.Kind, c.World.Cities, c.World.States, c.World.Flights, c.World.Hash)
	if c.Made.Sampler != "" {
		p("Drawn by the %s sampler at %s easy : medium : hard, seed %d.", c.Made.Sampler, c.Made.Mix, c.Made.Seed)
	}
	if c.Made.From != "" {
		p("Read from %s.", c.Made.From)
	}
	if c.Made.Split != "" {
		p("Split %s, by hash of the query.", c.Made.Split)
	}
	if c.Made.Certified {
		p("Every query has a plan that passes every check of the strict profile.")
	}
	if c.Solvable != nil {
		p("Of the draws that came as far as the solver %.1f %% (%d of %d) were proven solvable; the others were not proven and left out.", 100*c.Solvable.Share, c.Solvable.Part, c.Solvable.Whole)
	}
	if c.Feasible != nil {
		p("The published feasibility rule kept %.1f %% (%d of %d).", 100*c.Feasible.Share, c.Feasible.Part, c.Feasible.Whole)
	}
	if n := c.Counts; n != nil {
		p("\n%d draws: %d without a route, %d below the budget rule's rows, %d infeasible, %d not proven, %d twice, %d of another split.", n.Drawn, n.NoRoute, n.NoBudget, n.Infeasible, n.NotProven, n.Duplicate, n.OtherSplit)
	}
	table(&b, "level", c.Levels, []string{"easy", "medium", "hard"}, c.Queries)
	table(&b, "days", c.Days, slices.Sorted(maps.Keys(c.Days)), c.Queries)
	table(&b, "people", c.People, slices.Sorted(maps.Keys(c.People)), c.Queries)
	table(&b, "wish", c.Wishes, slices.Sorted(maps.Keys(c.Wishes)), c.Queries)
	table(&b, "wish in detail", c.Details, slices.Sorted(maps.Keys(c.Details)), c.Queries)
	table(&b, "text by", c.Models, slices.Sorted(maps.Keys(c.Models)), c.Queries)
	for _, h := range c.Histograms {
		h.markdown(&b)
	}
	return b.String()
}

func table[K comparable](b *strings.Builder, title string, counts map[K]int, order []K, total int) {
	if len(counts) == 0 {
		return
	}
	fmt.Fprintf(b, "\n| %s | queries | share |\n|---|---:|---:|\n", title)
	for _, k := range order {
		fmt.Fprintf(b, "| %v | %d | %.1f %% |\n", k, counts[k], 100*float64(counts[k])/float64(max(1, total)))
	}
}

const barWidth = 40

func (h *Histogram) markdown(b *strings.Builder) {
	unit := ""
	if h.Unit != "" {
		unit = ", " + h.Unit
	}
	fmt.Fprintf(b, "\n%s%s (mean %.4g)\n\n```\n", h.Name, unit, h.Mean)
	most := slices.Max(h.Counts)
	for i, n := range h.Counts {
		bar := strings.Repeat("#", (n*barWidth+most-1)/most)
		fmt.Fprintf(b, "%10.4g – %-10.4g %6d %s\n", h.Edges[i], h.Edges[i+1], n, bar)
	}
	b.WriteString("```\n")
}
