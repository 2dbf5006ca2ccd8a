package compact

import "fmt"

// Trips of five and seven days: a departure city, and two or three cities of
// one state with two nights each. They speak a language of their own, the long
// one: the words of three-day trips, which keep their numbers, and more.
//
// In a state of four cities every one has hotels, restaurants and attractions
// of the same levels and cuisines, so that a key alone would not name a row of
// the episode. Places are therefore keyed by the order in which their cities
// were first looked up ("Italian@2"), flights between them by the order in
// which the legs were. The slots of four more days and the ids follow suit.

// More word families of the long language.
const (
	LongIDTokens = 72 // rows an episode can name at a time
	maxStops     = 3  // cities of a seven-day trip
	maxDays      = 2*maxStops + 1
	stateTokens  = 2 // states an episode can name
	longSlots    = maxDays * slotsPerDay
	moreSlots    = longSlots - slotTokens

	tokMoreSlots  = TokID + LongIDTokens     // days 4 to 7
	tokHotelMore  = tokMoreSlots + moreSlots // keys in the second and third city
	tokTasteMore  = tokHotelMore + (maxStops-1)*PriceLevels
	tokSightMore  = tokTasteMore + (maxStops-1)*Cuisines
	tokFareMore   = tokSightMore + (maxStops-1)*SightKinds // between two cities of the state
	tokState      = tokFareMore + (maxStops-1)*PriceLevels
	tokStops      = tokState + stateTokens
	tokToolCities = tokStops + maxStops - 1
	LongVocabSize = tokToolCities + 1 // 352
)

// toolCities lists the cities of a state; only the long language has it.
const toolCities = 5

// longFamilies are the words that three-day trips lack.
func longFamilies() []family {
	level := func(kind string) func(int) string {
		return func(i int) string { return fmt.Sprintf("%s%d", kind, i+1) }
	}
	at := func(n int, word func(i int) string) func(int) string {
		return func(i int) string { return fmt.Sprintf("%s@%d", word(i%n), i/n+2) }
	}
	return []family{
		{TokID, LongIDTokens, level("#")},
		{tokMoreSlots, moreSlots, func(i int) string { return slotWord(i + slotTokens) }},
		{tokHotelMore, (maxStops - 1) * PriceLevels, at(PriceLevels, level("night$"))},
		{tokTasteMore, (maxStops - 1) * Cuisines, at(Cuisines, func(i int) string { return cuisineWords[i] })},
		{tokSightMore, (maxStops - 1) * SightKinds, at(SightKinds, func(i int) string { return sightWords[i] })},
		{tokFareMore, (maxStops - 1) * PriceLevels, at(PriceLevels, level("hop$"))},
		{tokState, stateTokens, func(i int) string { return fmt.Sprintf("state%c", 'A'+i) }},
		{tokStops, maxStops - 1, func(i int) string { return fmt.Sprintf("%d-cities", i+2) }},
		{tokToolCities, 1, func(int) string { return "cities" }},
	}
}

func slotWord(slot int) string {
	return fmt.Sprintf("day%d-%s", slot/slotsPerDay+1, slotWords[slot%slotsPerDay])
}

// slotToken is the label of a slot, in either language.
func slotToken(slot int) Token {
	if slot < slotTokens {
		return tok(tokSlot, slot)
	}
	return tok(tokMoreSlots, slot-slotTokens)
}

// slotOf is the slot of a label, -1 if t is none.
func slotOf(t Token) int {
	switch {
	case in(t, tokSlot, slotTokens):
		return int(t - tokSlot)
	case in(t, tokMoreSlots, moreSlots):
		return int(t-tokMoreSlots) + slotTokens
	}
	return -1
}

// IsID says whether t names a row, in either language.
func IsID(t Token) bool { return in(t, TokID, LongIDTokens) }

// ForDays returns the same world with the queries, traces and language of
// trips of 3, 5 or 7 days. The tables are shared.
func (w *World) ForDays(days int) (*World, error) {
	if days != 3 && days != 5 && days != 7 {
		return nil, fmt.Errorf("environment.days: %d: trips of a nano world take 3, 5 or 7 days", days)
	}
	v := *w
	v.days, v.stops, v.members = days, days/2, nil
	if !v.long() {
		return &v, nil
	}
	v.stateOf = make([]int, len(v.cities))
	of := map[string]int{}
	for c, city := range v.cities {
		s, known := of[city.State]
		if !known {
			s = len(v.members)
			of[city.State] = s
			v.members = append(v.members, nil)
		}
		v.members[s] = append(v.members[s], c)
		v.stateOf[c] = s
	}
	return &v, nil
}

// Days is the length of the world's trips.
func (w *World) Days() int { return w.days }

// long says whether the world's trips speak the long language.
func (w *World) long() bool { return w.days > 3 }

// VocabSize is the number of words of the world's language.
func (w *World) VocabSize() int { return VocabFor(w.days) }

// VocabFor is the number of words of the language of trips of so many days.
func VocabFor(days int) int {
	if days > 3 {
		return LongVocabSize
	}
	return VocabSize
}

// PromptLen is the number of tokens of the world's prompts.
func (w *World) PromptLen() int { return PromptFor(w.days) }

// PromptFor is the number of tokens of the prompts of trips of so many days.
func PromptFor(days int) int {
	if days > 3 {
		return PromptLen - 1 + days // all dates, and the number of cities
	}
	return PromptLen
}

// Limits are the usual tool-call and context budgets of an episode by the days
// of its trip: about half more than a careful episode takes.
func Limits(days int) (turns, tokens int) {
	switch days {
	case 5:
		return 18, 320
	case 7:
		return 24, 448
	}
	return 12, 180
}

// rows an episode of the world's language can name at a time.
func (w *World) idTokens() int {
	if w.long() {
		return LongIDTokens
	}
	return IDTokens
}
