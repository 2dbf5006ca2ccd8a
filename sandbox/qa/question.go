package qa

import (
	"fmt"
	"math/rand/v2"

	"alidade/sandbox"
	"alidade/sandbox/travel/compact"
)

// Kinds of question, in the order in which panels mix them.
var Kinds = [4]string{"single", "two-hop", "comparison", "unseen"}

const (
	single = iota
	twoHop
	comparison
	unseen
)

// Question is a question with one right answer.
type Question struct {
	Kind string
	Key  string // names the question across arms and seeds
	Text string

	kind   int
	tool   int // of compact's tools; -1 = events
	city   [2]int
	hint   compact.Token // the key or price that it names
	answer int           // row
	calls  []call        // that answer it
}

// call looks rows of a kind up in a city.
type call struct {
	kind kind
	city int
}

// Questions draws n distinct questions from a stream of the world's seed,
// evenly over the kinds; seen ones are left out and added to.
func (w *World) Questions(n int, stream uint64, kinds int, seen map[string]bool) []*Question {
	var out []*Question
	for i := 0; len(out) < n && i < 1000*n; i++ {
		q := w.draw(compact.Rand(w.seed, forQuestion, stream, uint64(i)), len(out)%kinds)
		if q == nil || seen[q.Key] {
			continue
		}
		seen[q.Key] = true
		out = append(out, q)
	}
	return out
}

// Split draws the panel of all kinds and traces of the seen ones, disjoint.
func (w *World) Split(panel, traces int) (held, train []*Question) {
	seen := map[string]bool{}
	held = w.Questions(panel, 0, len(Kinds), seen)
	return held, w.Questions(traces, 1, unseen, seen)
}

// draw makes a question of a kind, or nil when the draw has no single answer.
func (w *World) draw(r *rand.Rand, k int) *Question {
	q := &Question{kind: k, Kind: Kinds[k], city: [2]int{r.IntN(cities), r.IntN(cities)}}
	a, b := &w.city[q.city[0]], &w.city[q.city[1]]
	if q.city[0] == q.city[1] {
		return nil
	}
	switch k {
	case single:
		what := kind(r.IntN(3))
		q.tool = [3]int{compact.ToolHotels, compact.ToolRestaurants, compact.ToolAttractions}[what]
		w.ask(q, a[what][r.IntN(len(a[what]))])
	case twoHop:
		from := &w.rows[a[restaurant][r.IntN(len(a[restaurant]))]]
		q.tool, q.hint, q.answer = compact.ToolRestaurants, compact.MealPriceWord(from.level), -1
		for _, i := range b[restaurant] {
			if w.rows[i].key == from.key {
				q.answer = i
			}
		}
		if q.answer < 0 {
			return nil
		}
		q.calls = []call{{restaurant, q.city[0]}, {restaurant, q.city[1]}}
		q.Text = fmt.Sprintf("Which restaurant of town %d serves what the one at price level %d in town %d does?", q.city[1]+1, from.level+1, q.city[0]+1)
	case comparison:
		x, y := w.cheapest(a[hotel]), w.cheapest(b[hotel])
		if w.rows[x].key == w.rows[y].key {
			return nil
		}
		q.tool, q.answer = compact.ToolHotels, x
		if w.rows[y].key < w.rows[x].key {
			q.answer = y
		}
		q.calls = []call{{hotel, q.city[0]}, {hotel, q.city[1]}}
		q.Text = fmt.Sprintf("Which is the cheapest hotel of towns %d and %d?", q.city[0]+1, q.city[1]+1)
	case unseen:
		q.tool = -1
		w.ask(q, a[event][r.IntN(len(a[event]))])
	}
	q.Key = fmt.Sprintf("%016x", sandbox.Mix(w.seed, uint64(k), uint64(q.tool+1), uint64(q.city[0]), uint64(q.city[1]), uint64(q.hint), uint64(q.answer)))
	return q
}

// ask asks for a row of the first city by its key.
func (w *World) ask(q *Question, answer int) {
	r := &w.rows[answer]
	q.answer, q.hint, q.city[1] = answer, r.keyWord(), q.city[0]
	q.calls = []call{{r.kind, q.city[0]}}
	q.Text = fmt.Sprintf("Which %s of town %d is %q?", [4]string{"hotel", "restaurant", "attraction", "event"}[r.kind], q.city[0]+1, compact.Show([]compact.Token{q.hint}))
}

func (w *World) cheapest(rows []int) int {
	best := rows[0]
	for _, i := range rows {
		if w.rows[i].key < w.rows[best].key {
			best = i
		}
	}
	return best
}
