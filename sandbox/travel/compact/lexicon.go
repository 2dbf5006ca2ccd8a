package compact

// The words that other tasks share with trips, by family and index. Indices
// count from 0 and must lie within the family.

// The tools that look a place up, for [ToolWord].
const (
	ToolFlights = iota
	ToolDistance
	ToolHotels
	ToolRestaurants
	ToolAttractions
	Tools
)

// Sizes of the families below.
const (
	Cuisines   = 9
	SightKinds = 8
	RoomTypes  = 3
	HouseRules = 6
	StayKinds  = 15
)

// ToolWord names a tool.
func ToolWord(i int) Token { return tok(TokTool, i) }

// CityWord is the i-th city label of an episode.
func CityWord(i int) Token { return tok(tokCity, i) }

// ModeWord is driving (0) or taxi (1).
func ModeWord(i int) Token { return tok(tokMode, i) }

// DateWord is a date.
func DateWord(i int) Token { return tok(tokDate, i) }

// IDWord is the i-th row label of an episode.
func IDWord(i int) Token { return tok(TokID, i) }

// CuisineWord is the key of a restaurant.
func CuisineWord(i int) Token { return tok(tokCuisine, i) }

// SightWord is the key of an attraction.
func SightWord(i int) Token { return tok(tokSight, i) }

// HotelPriceWord is the key of a hotel.
func HotelPriceWord(i int) Token { return tok(tokHotel, i) }

// MealPriceWord is a restaurant's price level.
func MealPriceWord(i int) Token { return tok(tokMeal, i) }

// DrivePriceWord is the cost level of a drive.
func DrivePriceWord(i int) Token { return tok(tokDrive, i) }

// HotelWords describe a hotel before its key: room type, house rule, stay.
func HotelWords(room, rule, stay int) []Token {
	return []Token{tok(tokRoom, room), tok(tokRule, rule), tok(tokStay, stay)}
}

// SpareWord is a word that prompts of trips use and calls and results of
// trips never do.
func SpareWord() Token { return tokNoCuisine }

// MealSlot is the second day's lunch.
func MealSlot() Token { return tok(tokSlot, midMeal+1) }

// SightSlot is the second day's attraction.
func SightSlot() Token { return tok(tokSlot, midSight) }

// HotelSlot is the second night's hotel.
func HotelSlot() Token { return tok(tokSlot, midHotel) }

// IsSlot says whether t is a slot label.
func IsSlot(t Token) bool { return in(t, tokSlot, slotTokens) }

// IsKey says whether t can stand before an id.
func IsKey(t Token) bool {
	return in(t, tokSight, SightKinds) || in(t, tokHotel, PriceLevels) || in(t, tokCuisine, Cuisines) || in(t, tokFareOut, 2*PriceLevels)
}

// Say appends tokens, marked as the policy's own or not.
func (s *Script) Say(own bool, tokens ...Token) { s.say(own, tokens...) }
