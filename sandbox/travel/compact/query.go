package compact

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"alidade/sandbox/travel"
)

// Query is a travel query of the nano world with the indices its prompt needs.
type Query struct {
	travel.Query
	Key string // travel.Query.Hash: names the query across arms and seeds

	org, dest  int // dest: of three-day trips
	state      int // of longer ones
	out, back  int // dates
	room, rule int
	ride       int
	cuisines   []int // sorted
}

// Difficulty levels in the order of a mix.
var Levels = [3]string{"easy", "medium", "hard"}

// Mix is a ratio of easy, medium and hard queries; its sum is above 0.
type Mix = [3]int

// levelOf spreads the levels over the indices 0, 1, 2, … so that every run of
// sum(m) queries holds the mix exactly.
func levelOf(m Mix, i int) int {
	i %= m[0] + m[1] + m[2]
	for l, n := range m {
		if i < n {
			return l
		}
		i -= n
	}
	return 0
}

// QuerySet says how many queries to draw and how hard they are.
type QuerySet struct {
	N   int
	Mix Mix
}

// Queries draws disjoint sets of distinct queries, each with its mix exactly,
// each query certified solvable. A set depends on the sets before it, never on
// those after: draw the held-out panel first.
func (w *World) Queries(seed uint64, budgetFactor float64, sets ...QuerySet) ([][]*Query, error) {
	seen := map[string]bool{}
	out := make([][]*Query, len(sets))
	for s, set := range sets {
		for i := range set.N {
			q, err := w.distinct(Rand(seed, forQuery, uint64(s), uint64(i)), levelOf(set.Mix, i), budgetFactor, seen)
			if err != nil {
				return nil, err
			}
			out[s] = append(out[s], q)
		}
	}
	return out, nil
}

const maxDraws = 20_000

func (w *World) distinct(r *rand.Rand, level int, budgetFactor float64, seen map[string]bool) (*Query, error) {
	for range maxDraws {
		q := w.drawAny(r, level, budgetFactor)
		if q == nil || seen[q.Key] {
			continue
		}
		if _, ok := w.Solve(q); !ok {
			continue
		}
		seen[q.Key] = true
		return q, nil
	}
	return nil, fmt.Errorf("no solvable new %s query in %d draws: raise environment.budget_factor (%g) or environment.cities (%d), or ask for fewer queries",
		Levels[level], maxDraws, budgetFactor, len(w.cities))
}

// drawAny draws a query of the world's trips.
func (w *World) drawAny(r *rand.Rand, level int, budgetFactor float64) *Query {
	if w.long() {
		return w.drawLong(r, level, budgetFactor)
	}
	return w.draw(r, level, budgetFactor)
}

// draw samples the elements of a query (the distribution of the benchmark's
// synthesis, cut down to what the nano world has) or returns nil when the
// draw has no candidates.
func (w *World) draw(r *rand.Rand, level int, budgetFactor float64) *Query {
	q := &Query{}
	q.Level, q.Days, q.Cities = Levels[level], days, 1
	q.org, q.dest = r.IntN(len(w.cities)), r.IntN(len(w.cities))
	if q.org == q.dest {
		return nil
	}
	q.out = r.IntN(DateTokens - days + 1)
	q.back = q.out + days - 1
	q.People = 1
	if level > 0 {
		q.People = 2
		if r.IntN(2) == 0 {
			q.People = 3 + r.IntN(maxPeople-2)
		}
	}
	if !w.constrain(r, q, level) {
		return nil
	}
	if q.ride == 1 && !(w.road(q.org, q.dest).ok && w.road(q.dest, q.org).ok) {
		return nil
	}
	factor := [3]float64{1, float64(q.People) * 0.75, float64(q.People) * 0.5}[level]
	base, ok := w.budget(q)
	if !ok {
		return nil
	}
	q.Budget = math.RoundToEven(base*factor*budgetFactor/100) * 100
	w.fill(q)
	q.Text = describe(r, q)
	q.Key = q.Hash()
	return q
}

// constrain draws the wishes: none, one of three, or transport and two of three.
func (w *World) constrain(r *rand.Rand, q *Query, level int) bool {
	const house, cuisine, room = 0, 1, 2
	var kinds []int
	switch level {
	case 1:
		kinds = []int{r.IntN(3)}
	case 2:
		q.ride = 1 + r.IntN(2)
		// two of three without replacement = all but one
		weights := []float64{.35, .30, .35}
		first := weighted(r, weights)
		weights[first] = 0
		kinds = []int{first, weighted(r, weights)}
	}
	for _, k := range kinds {
		switch k {
		case house:
			q.rule = 1 + r.IntN(len(ruleWishes)-1)
		case room:
			q.room = 3 + r.IntN(2)
			if q.People <= 2 {
				q.room = 1 + r.IntN(4)
			}
		case cuisine:
			n, of := 2, len(cuisineWords)-1
			if level == 2 {
				of++
				if r.Float64() < 0.4 {
					n = 3
				}
			}
			wanted := map[int]bool{}
			for _, c := range r.Perm(of)[:n] {
				wanted[c] = true
			}
			for c := range cuisineWords {
				if wanted[c] {
					q.cuisines = append(q.cuisines, c)
				}
			}
		}
	}
	return true
}

func weighted(r *rand.Rand, weights []float64) int {
	sum := 0.0
	for _, x := range weights {
		sum += x
	}
	u := r.Float64() * sum
	for i, x := range weights {
		if u < x {
			return i
		}
		u -= x
	}
	return len(weights) - 1
}

// budget is the benchmark's budget rule for three days, before the factor:
// the mean of its average and lowest estimates, each 2 fares, 3 nights and 9
// meals. It reports false when a group of candidates is empty.
func (w *World) budget(q *Query) (float64, bool) {
	var fares, nights, meals stat
	if q.ride == 1 {
		km := w.road(q.org, q.dest).km
		fares.add(math.Floor(float64(km) * 0.05))
	} else {
		for d := range DateTokens {
			for _, f := range w.flightsOn(q.org, q.dest, d) {
				fares.add(w.rows[f].price)
			}
		}
	}
	for _, h := range w.hotels[q.dest] {
		if row := &w.rows[h]; stayPeople[row.stay%len(stayPeople)] >= q.People && q.roomOK(row) && q.ruleOK(row) {
			nights.add(row.price)
		}
	}
	for _, m := range w.meals[q.dest] {
		if row := &w.rows[m]; len(q.cuisines) == 0 || q.wants(row.taste) {
			meals.add(row.price)
		}
	}
	if fares.n == 0 || nights.n == 0 || meals.n == 0 {
		return 0, false
	}
	average := 2*fares.mean() + 3*nights.mean() + 9*meals.mean()
	lowest := 2*fares.low + 3*nights.low + 9*meals.low
	return (average + lowest) / 2, true
}

type stat struct {
	n              int
	sum, low, high float64
}

func (s *stat) add(x float64) {
	if s.n == 0 || x < s.low {
		s.low = x
	}
	if s.n == 0 || x > s.high {
		s.high = x
	}
	s.n++
	s.sum += x
}

func (s *stat) mean() float64 { return s.sum / float64(s.n) }

// fill writes the indices as the benchmark's fields.
func (w *World) fill(q *Query) {
	q.Org, q.Dest = w.cities[q.org].Name, w.cities[q.dest].Name
	for d := range days {
		q.Dates = append(q.Dates, w.dates[q.out+d])
	}
	q.wish()
}

// wish writes the wishes as the benchmark's fields.
func (q *Query) wish() {
	q.Wish = travel.Constraints{HouseRule: ruleWishes[q.rule], RoomType: roomWishes[q.room], Transportation: rideWishes[q.ride]}
	for _, c := range q.cuisines {
		q.Wish.Cuisine = append(q.Wish.Cuisine, cuisineWords[c])
	}
}

func (q *Query) wants(cuisine int) bool {
	for _, c := range q.cuisines {
		if c == cuisine {
			return true
		}
	}
	return false
}

func (q *Query) roomOK(h *row) bool {
	switch roomWishes[q.room] {
	case "shared room":
		return h.room == 2
	case "not shared room":
		return h.room != 2
	case "private room":
		return h.room == 1
	case "entire room":
		return h.room == 0
	}
	return true
}

// ruleOK: rules and wishes are listed in the same order.
func (q *Query) ruleOK(h *row) bool { return q.rule == 0 || h.rule != q.rule }

// units returns the hotel units that q's people need.
func (q *Query) units(h *row) float64 {
	cap := stayPeople[h.stay%len(stayPeople)]
	return float64((q.People + cap - 1) / cap)
}

// budgetStep returns the half-octave of the budget, from $128.
func (q *Query) budgetStep() int {
	step := int(math.Floor(2 * (math.Log2(max(q.Budget, 1)) - 7)))
	return min(max(step, 0), budgetSteps-1)
}

// describe writes the query in words.
func describe(r *rand.Rand, q *Query) string {
	var b strings.Builder
	who := "I am travelling alone"
	if q.People > 1 {
		who = fmt.Sprintf("We are %d people", q.People)
	}
	switch way := r.IntN(3); {
	case q.Days > days:
		b.WriteString(q.opening(way, who))
	case way == 0:
		fmt.Fprintf(&b, "Please plan a 3-day trip from %s to %s, from %s to %s. %s", q.Org, q.Dest, q.Dates[0], q.Dates[2], who)
	case way == 1:
		fmt.Fprintf(&b, "I need a 3-day itinerary: leaving %s on %s, visiting %s, back home on %s. %s", q.Org, q.Dates[0], q.Dest, q.Dates[2], who)
	default:
		fmt.Fprintf(&b, "Could you arrange three days in %s for me, %s to %s, starting in %s? %s", q.Dest, q.Dates[0], q.Dates[2], q.Org, who)
	}
	fmt.Fprintf(&b, " and the budget is $%g.", q.Budget)
	if q.room > 0 {
		fmt.Fprintf(&b, " The accommodation must be: %s.", roomWishes[q.room])
	}
	if q.rule > 0 {
		fmt.Fprintf(&b, " It has to allow %s.", ruleWishes[q.rule])
	}
	if len(q.cuisines) > 0 {
		fmt.Fprintf(&b, " We want to try %s food.", strings.Join(q.Wish.Cuisine, " and "))
	}
	if q.ride > 0 {
		fmt.Fprintf(&b, " Transport: %s, please.", rideWishes[q.ride])
	}
	return b.String()
}
