package compact

// numbering gives out the numbers of the long language: cities and legs by the
// order in which an episode first sees their rows.
type numbering struct {
	city map[int]int
	hop  map[leg]int
}

// of returns x's number, the next one if it has none; numbers come round
// again, so that there are only n.
func of[K comparable](m map[K]int, x K, n int) int {
	i, known := m[x]
	if !known {
		i = len(m)
		m[x] = i
	}
	return i % n
}

// labelStates draws the labels of the destination's state and the departure's,
// and returns the cities that must have one: those of both states.
func (c *codec) labelStates(q *Query, flip bool) []int {
	c.states = [stateTokens]int{q.state, c.w.stateOf[q.org]}
	if flip {
		c.states[0], c.states[1] = c.states[1], c.states[0]
	}
	c.num = numbering{city: map[int]int{}, hop: map[leg]int{}}
	cities := append([]int{q.org}, c.w.members[q.state]...)
	for _, home := range c.w.members[c.w.stateOf[q.org]] {
		if home != q.org {
			cities = append(cities, home)
		}
	}
	return cities
}

func (c *codec) stateLabel(state int) Token {
	for i, s := range c.states {
		if s == state {
			return tok(tokState, i)
		}
	}
	return tokState
}

// longPrompt encodes a longer trip: origin, state, number of cities, all
// dates, then the wishes as in three-day prompts.
func (c *codec) longPrompt(q *Query) []Token {
	p := []Token{c.label[q.org], c.stateLabel(q.state), tok(tokStops, c.w.stops-2)}
	for d := q.out; d <= q.back; d++ {
		p = append(p, tok(tokDate, d))
	}
	return append(p, q.wishes()...)
}

// longKey is key for the long language.
func (c *codec) longKey(r *row) Token {
	more := func(first, later Token, n, at, i int) Token {
		if at == 0 {
			return tok(first, i)
		}
		return tok(later, (at-1)*n+i)
	}
	switch r.kind {
	case kindFlight:
		switch {
		case r.from == c.org:
			return tok(tokFareOut, r.level)
		case r.city == c.org:
			return tok(tokFareBack, r.level)
		}
		hop := of(c.num.hop, leg{r.from, r.city, r.date}, maxStops-1)
		return tok(tokFareMore, hop*PriceLevels+r.level)
	case kindHotel:
		return more(tokHotel, tokHotelMore, PriceLevels, of(c.num.city, r.city, maxStops), r.level)
	case kindMeal:
		return more(tokCuisine, tokTasteMore, Cuisines, of(c.num.city, r.city, maxStops), r.taste)
	}
	return more(tokSight, tokSightMore, SightKinds, of(c.num.city, r.city, maxStops), r.level)
}

// isLongKey says whether t can stand before the id in a slot of this kind,
// beside the keys of three-day trips.
func isLongKey(slot int, t Token) bool {
	switch slot {
	case slotRide:
		return in(t, tokFareMore, (maxStops-1)*PriceLevels)
	case slotSight:
		return in(t, tokSightMore, (maxStops-1)*SightKinds)
	case slotHotel:
		return in(t, tokHotelMore, (maxStops-1)*PriceLevels)
	}
	return in(t, tokTasteMore, (maxStops-1)*Cuisines)
}

// cityWords are the cities of a state that the episode has words for, which are
// all of them for the two states that have a word.
func (c *codec) cityWords(state int) []Token {
	var out []Token
	for _, city := range c.w.members[state] {
		out = append(out, c.label[city])
	}
	return append(out, TokRows)
}

// toolOf is the tool of a word, -1 if t names none.
func (c *codec) toolOf(t Token) int {
	switch {
	case in(t, TokTool, len(toolWords)):
		return int(t - TokTool)
	case t == tokToolCities && c.w.long():
		return toolCities
	}
	return -1
}

func toolName(tool int) string {
	if tool == toolCities {
		return "cities"
	}
	return toolWords[tool]
}

// stateArgs are the arguments of toolCities.
var stateArgs = []family{{first: tokState, n: stateTokens}}

func argsOf(tool int) []family {
	if tool == toolCities {
		return stateArgs
	}
	return arity[tool]
}
