package compact

import (
	"fmt"
	"sync"
)

// Token is a word of the compact language, 0 ≤ t < [VocabSize].
type Token = int32

// Sizes of the word families.
const (
	CityTokens  = 12 // cities an episode can name
	DateTokens  = 10 // dates of the world
	IDTokens    = 40 // rows an episode can name at a time
	PriceLevels = 8  // price levels of each kind of row
	maxPeople   = 8
	budgetSteps = 18 // half-octave steps of the budget, from $128
	wishCuisine = 3  // cuisine slots of the prompt
	days        = 3
	slotsPerDay = 6
	slotTokens  = days * slotsPerDay
)

// PromptLen is the number of tokens of every prompt.
const PromptLen = 13

// The first token of each family; a family's tokens follow one another.
const (
	TokPlan      = iota // opens the plan
	TokEnd              // closes the plan
	TokGo               // closes the prompt
	TokRows             // closes a tool's rows
	TokNone             // a tool found nothing
	TokFail             // a tool was not available
	TokTool             // 5 tools
	tokMode      = TokTool + 5
	tokCity      = tokMode + 2
	tokDate      = tokCity + CityTokens
	tokPeople    = tokDate + DateTokens
	tokBudget    = tokPeople + maxPeople
	tokRoomWish  = tokBudget + budgetSteps
	tokRuleWish  = tokRoomWish + 5
	tokRideWish  = tokRuleWish + 6
	tokNoCuisine = tokRideWish + 3 // one for each slot
	tokCuisine   = tokNoCuisine + wishCuisine
	tokFareOut   = tokCuisine + 9
	tokFareBack  = tokFareOut + PriceLevels
	tokDrive     = tokFareBack + PriceLevels // cost of a drive
	tokTaxi      = tokDrive + PriceLevels    // cost of a taxi ride
	tokHotel     = tokTaxi + PriceLevels     // price of a night
	tokRoom      = tokHotel + PriceLevels
	tokRule      = tokRoom + 3
	tokStay      = tokRule + 6 // minimum nights × occupancy
	tokMeal      = tokStay + 15
	tokSight     = tokMeal + PriceLevels // kind of attraction
	tokSlot      = tokSight + 8
	TokID        = tokSlot + slotTokens
	VocabSize    = TokID + IDTokens // 225
)

// TokThink opens and closes a thought where the policy may think; in prompts
// the same word closes the prompt.
const TokThink = TokGo

// The tools in token order.
const (
	toolFlight = iota
	toolDistance
	toolHotels
	toolMeals
	toolSights
)

// The ways to drive in token order.
const (
	modeDrive = iota
	modeTaxi
)

// The slots of a day in token order.
const (
	slotRide = iota
	slotBreakfast
	slotLunch
	slotDinner
	slotSight
	slotHotel
)

var (
	toolWords    = [5]string{"flights", "distance", "hotels", "restaurants", "attractions"}
	slotWords    = [slotsPerDay]string{"transport", "breakfast", "lunch", "dinner", "attraction", "hotel"}
	modeWords    = [2]string{"driving", "taxi"}
	roomTypes    = [3]string{"Entire home/apt", "Private room", "Shared room"}
	roomWishes   = [5]string{"", "shared room", "not shared room", "private room", "entire room"}
	ruleWords    = [6]string{"", "No smoking", "No parties", "No children under 10", "No visitors", "No pets"}
	ruleWishes   = [6]string{"", "smoking", "parties", "children under 10", "visitors", "pets"}
	rideWishes   = [3]string{"", "no flight", "no self-driving"}
	cuisineWords = [9]string{"Chinese", "American", "Italian", "Mexican", "Indian", "Mediterranean", "French", "BBQ", "Fast Food"}
	stayNights   = [3]int{1, 2, 3}
	stayPeople   = [5]int{2, 3, 4, 6, 8}
	sightWords   = [8]string{"Museum", "Park", "Tower", "Market", "Theater", "Bridge", "Garden", "Zoo"}
)

// A family is a run of tokens with a common meaning.
type family struct {
	first Token
	n     int
	word  func(i int) string
}

func families() []family {
	list := func(words []string) func(int) string { return func(i int) string { return words[i] } }
	level := func(kind string) func(int) string {
		return func(i int) string { return fmt.Sprintf("%s%d", kind, i+1) }
	}
	wish := func(none string, words []string) func(int) string {
		return func(i int) string {
			if words[i] == "" {
				return none
			}
			return "want:" + words[i]
		}
	}
	return []family{
		{TokPlan, 6, list([]string{"plan", "end", "go", "end-rows", "none", "unavailable"})},
		{TokTool, 5, list(toolWords[:])},
		{tokMode, 2, list(modeWords[:])},
		{tokCity, CityTokens, func(i int) string { return fmt.Sprintf("city%c", 'A'+i) }},
		{tokDate, DateTokens, level("day")},
		{tokPeople, maxPeople, level("people")},
		{tokBudget, budgetSteps, level("budget")},
		{tokRoomWish, 5, wish("any-room", roomWishes[:])},
		{tokRuleWish, 6, wish("any-rule", ruleWishes[:])},
		{tokRideWish, 3, wish("any-ride", rideWishes[:])},
		{tokNoCuisine, wishCuisine, level("any-cuisine")},
		{tokCuisine, 9, list(cuisineWords[:])},
		{tokFareOut, PriceLevels, level("out$")},
		{tokFareBack, PriceLevels, level("back$")},
		{tokDrive, PriceLevels, level("drive$")},
		{tokTaxi, PriceLevels, level("taxi$")},
		{tokHotel, PriceLevels, level("night$")},
		{tokRoom, 3, list(roomTypes[:])},
		{tokRule, 6, func(i int) string {
			if i == 0 {
				return "no-rule"
			}
			return ruleWords[i]
		}},
		{tokStay, 15, func(i int) string { return fmt.Sprintf("min%d-max%d", stayNights[i/5], stayPeople[i%5]) }},
		{tokMeal, PriceLevels, level("meal$")},
		{tokSight, 8, list(sightWords[:])},
		{tokSlot, slotTokens, func(i int) string {
			return slotWord(i)
		}},
		{TokID, IDTokens, level("#")},
	}
}

// Words returns the vocabulary of three-day trips, for people.
func Words() []string { return append([]string(nil), words()[:VocabSize]...) }

// LongWords returns the vocabulary of longer trips. It begins with [Words].
func LongWords() []string { return append([]string(nil), words()...) }

var words = sync.OnceValue(func() []string {
	list := make([]string, LongVocabSize)
	for _, f := range append(families(), longFamilies()...) {
		for i := range f.n {
			list[int(f.first)+i] = f.word(i)
		}
	}
	return list
})

// tok returns the i-th token of a family.
func tok(first Token, i int) Token { return first + Token(i) }

// in says whether t belongs to the family of n tokens that starts at first.
func in(t, first Token, n int) bool { return t >= first && int(t-first) < n }
