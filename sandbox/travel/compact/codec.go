package compact

import (
	"fmt"
	"strings"
)

// codec is one labelling: which token names which city and row. Labels are
// given out in a random order, rows when they are first shown.
type codec struct {
	w     *World
	city  [CityTokens]int // token → city
	label map[int]Token   // city → token

	ids  []int // order in which ids are given out
	next int
	id   map[int]int // row → id
	row  []int       // id → row, -1 = never shown
	org  int

	num    numbering // of the long language
	states [stateTokens]int
}

// newCodec labels q's cities and others, twelve in all. The labelling depends
// on seed and the cities only.
func (w *World) newCodec(q *Query, seed uint64) *codec {
	r := Rand(seed, forLabels)
	c := &codec{w: w, label: make(map[int]Token, CityTokens), id: make(map[int]int, 24), org: q.org}
	chosen := []int{q.org, q.dest}
	if w.long() {
		chosen = c.labelStates(q, r.IntN(2) == 0)
	}
	for len(chosen) < CityTokens {
		city := r.IntN(len(w.cities))
		fresh := true
		for _, have := range chosen {
			fresh = fresh && have != city
		}
		if fresh {
			chosen = append(chosen, city)
		}
	}
	for i, at := range r.Perm(CityTokens) {
		c.city[at] = chosen[i]
		c.label[chosen[i]] = tok(tokCity, at)
	}
	c.ids = r.Perm(w.idTokens())
	c.row = make([]int, len(c.ids))
	for i := range c.row {
		c.row[i] = -1
	}
	return c
}

// show returns the token of a row, giving it one if it has none. When all
// ids are in use the oldest is taken back.
func (c *codec) show(row int) Token {
	if id, ok := c.id[row]; ok {
		return tok(TokID, id)
	}
	id := c.ids[c.next%len(c.ids)]
	c.next++
	if old := c.row[id]; old >= 0 {
		delete(c.id, old)
	}
	c.id[row], c.row[id] = id, row
	return tok(TokID, id)
}

// prompt encodes the query.
func (c *codec) prompt(q *Query) []Token {
	if c.w.long() {
		return c.longPrompt(q)
	}
	return append([]Token{c.label[q.org], c.label[q.dest], tok(tokDate, q.out), tok(tokDate, q.back)}, q.wishes()...)
}

// wishes is what the second half of a prompt says, up to its end.
func (q *Query) wishes() []Token {
	p := []Token{tok(tokPeople, q.People-1), tok(tokBudget, q.budgetStep()), tok(tokRoomWish, q.room), tok(tokRuleWish, q.rule), tok(tokRideWish, q.ride)}
	for i := range wishCuisine {
		if i < len(q.cuisines) {
			p = append(p, tok(tokCuisine, q.cuisines[i]))
		} else {
			p = append(p, tok(tokNoCuisine, i))
		}
	}
	return append(p, TokGo)
}

// arity lists what a tool's arguments are, in order.
var arity = [5][]family{
	toolFlight:   {{first: tokCity, n: CityTokens}, {first: tokCity, n: CityTokens}, {first: tokDate, n: DateTokens}},
	toolDistance: {{first: tokMode, n: 2}, {first: tokCity, n: CityTokens}, {first: tokCity, n: CityTokens}},
	toolHotels:   {{first: tokCity, n: CityTokens}},
	toolMeals:    {{first: tokCity, n: CityTokens}},
	toolSights:   {{first: tokCity, n: CityTokens}},
}

// encodeCall writes a call as tokens.
func (c *codec) encodeCall(k call) []Token {
	switch k.tool {
	case toolCities:
		return []Token{tokToolCities, c.stateLabel(k.a)}
	case toolFlight:
		return []Token{tok(TokTool, k.tool), c.label[k.a], c.label[k.b], tok(tokDate, k.date)}
	case toolDistance:
		return []Token{tok(TokTool, k.tool), tok(tokMode, k.mode), c.label[k.a], c.label[k.b]}
	}
	return []Token{tok(TokTool, k.tool), c.label[k.a]}
}

// decodeCall reads what encodeCall wrote; the tokens must be of the right
// families.
func (c *codec) decodeCall(t []Token) call {
	k := call{tool: c.toolOf(t[0])}
	switch k.tool {
	case toolCities:
		k.a = c.states[t[1]-tokState]
	case toolFlight:
		k.a, k.b, k.date = c.city[t[1]-tokCity], c.city[t[2]-tokCity], int(t[3]-tokDate)
	case toolDistance:
		k.mode, k.a, k.b = int(t[1]-tokMode), c.city[t[2]-tokCity], c.city[t[3]-tokCity]
	default:
		k.a = c.city[t[1]-tokCity]
	}
	return k
}

// result encodes what a call returns.
func (c *codec) result(k call) []Token {
	if k.fail {
		return []Token{TokFail}
	}
	var rows []int
	switch k.tool {
	case toolCities:
		return c.cityWords(k.a)
	case toolDistance:
		rd := c.w.road(k.a, k.b)
		if !rd.ok {
			return []Token{TokNone}
		}
		first := Token(tokDrive)
		if k.mode == modeTaxi {
			first = tokTaxi
		}
		return []Token{tok(first, min(rd.km/220, PriceLevels-1)), TokRows}
	case toolFlight:
		rows = c.w.flightsOn(k.a, k.b, k.date)
	case toolHotels:
		rows = c.w.hotels[k.a]
	case toolMeals:
		rows = c.w.meals[k.a]
	case toolSights:
		rows = c.w.sights[k.a]
	}
	if len(rows) == 0 {
		return []Token{TokNone}
	}
	var out []Token
	for _, i := range rows {
		row := &c.w.rows[i]
		switch row.kind {
		case kindHotel:
			out = append(out, tok(tokRoom, row.room), tok(tokRule, row.rule), tok(tokStay, row.stay))
		case kindMeal:
			out = append(out, tok(tokMeal, row.level))
		}
		out = append(out, c.key(row), c.show(i))
	}
	return append(out, TokRows)
}

// key is the token that stands before a row's id, in results and in plans:
// what the row is picked by.
func (c *codec) key(r *row) Token {
	if c.w.long() {
		return c.longKey(r)
	}
	switch r.kind {
	case kindFlight:
		if r.from == c.org {
			return tok(tokFareOut, r.level)
		}
		return tok(tokFareBack, r.level)
	case kindHotel:
		return tok(tokHotel, r.level)
	case kindMeal:
		return tok(tokCuisine, r.taste)
	}
	return tok(tokSight, r.level)
}

// isKey says whether t can stand before the id in a slot of this kind, in
// either language.
func isKey(slot int, t Token) bool {
	if isLongKey(slot, t) {
		return true
	}
	switch slot {
	case slotRide:
		return in(t, tokFareOut, 2*PriceLevels)
	case slotSight:
		return in(t, tokSight, len(sightWords))
	case slotHotel:
		return in(t, tokHotel, PriceLevels)
	}
	return in(t, tokCuisine, len(cuisineWords))
}

// encodePlan writes picks as tokens: label, key, id for each; a drive or a
// taxi ride is a word after its label, and the city it goes to in a longer trip.
func (c *codec) encodePlan(picks []pickOf) []Token {
	out := []Token{TokPlan}
	for _, p := range picks {
		out = append(out, slotToken(p.slot))
		switch {
		case p.row == rideDrive:
			out = append(out, tokMode+modeDrive)
		case p.row == rideTaxi:
			out = append(out, tokMode+modeTaxi)
		case p.row < 0:
			city, mode := driven(p.row)
			out = append(out, tok(tokMode, mode), c.label[city])
		default:
			out = append(out, c.key(&c.w.rows[p.row]), c.show(p.row))
		}
	}
	return append(out, TokEnd)
}

// Script is an episode as tokens. Own marks those the policy writes.
type Script struct {
	Tokens []Token
	Own    []bool
}

func (s *Script) say(own bool, tokens ...Token) {
	for _, t := range tokens {
		s.Tokens = append(s.Tokens, t)
		s.Own = append(s.Own, own)
	}
}

// Write writes the trace under the labelling of seed.
func (w *World) Write(t Trace, labels uint64) Script { return w.write(t, labels, 0) }

// WriteDeliberate writes the trace with a thought before the plan: the keys of
// what it is going to pick, in order, at most budget tokens in all.
func (w *World) WriteDeliberate(t Trace, labels uint64, budget int) Script {
	return w.write(t, labels, budget)
}

func (w *World) write(t Trace, labels uint64, think int) Script {
	c := w.newCodec(t.Query, labels)
	var s Script
	s.say(false, c.prompt(t.Query)...)
	for _, k := range t.calls {
		s.say(true, c.encodeCall(k)...)
		s.say(false, c.result(k)...)
	}
	if think > 2 {
		s.say(true, c.draft(t.picks, think-2)...)
	}
	s.say(true, c.encodePlan(t.picks)...)
	return s
}

// draft is a thought of at most n words between its marks.
func (c *codec) draft(picks []pickOf, n int) []Token {
	out := []Token{TokThink}
	for _, p := range picks {
		if p.row >= 0 && len(out) <= n {
			out = append(out, c.key(&c.w.rows[p.row]))
		}
	}
	return append(out, TokThink)
}

// Show writes tokens in words, for people.
func Show(tokens []Token) string {
	all := words()
	var b strings.Builder
	for i, t := range tokens {
		if i > 0 {
			b.WriteByte(' ')
		}
		if t < 0 || int(t) >= len(all) {
			fmt.Fprintf(&b, "?%d", t)
			continue
		}
		b.WriteString(all[t])
	}
	return b.String()
}
