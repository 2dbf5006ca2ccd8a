package compact

import (
	"fmt"
	"math/rand/v2"
)

// Word lists of an invented country. Some names are awkward on purpose: they
// hold commas, quotes, ampersands and accents, or contain one another, as
// real listings do.
var (
	cityHeads = []string{"Alder", "Bram", "Cinder", "Dun", "Elm", "Fen", "Glen", "Haver", "Iron", "Juniper", "Kes", "Lark", "Marl", "North", "Oak", "Pell", "Quill", "Raven", "Silver", "Thorn", "Umber", "Vale", "Wren", "Yar"}
	cityTails = []string{"ford", "mouth", "bury", "haven", "wick", "ton", "dale", "port", "field", "stead"}
	cityOdd   = []string{"St. Osric", "Port Alder", "Winslow", "Winslow Falls", "Jarrow-on-Sea", "O'Dell", "Le Marais", "Coeur Vert", "Bend", "South Bend"}
	states    = []string{"Ardmore", "Belmarch", "Corran", "Drumlin", "Estwold", "Farrow", "Galloway Shore", "Hartsmoor", "Islay", "Kestrel Coast", "Lorne", "Merrow", "Norwold", "Orrin", "Pentland"}

	hotelAdjectives = []string{"Bright", "Quiet", "Sunny", "Charming", "Spacious", "Cozy", "Modern", "Rustic", "Private", "Lovely"}
	hotelNouns      = []string{"loft", "studio", "garden flat", "townhouse room", "2 bedroom apt", "bunk room", "attic suite", "cottage", "duplex", "guest room"}
	hotelPlaces     = []string{"near the station", "by the canal", "close to the park", "in the old town", "with a roof deck", "on Mill Lane", "w/ parking", "above the bakery"}
	hotelHouses     = []string{"Heron", "Foundry", "Lantern", "Mariner's", "Old Mint", "Two Bridges", "Sparrow", "Granary"}

	mealHeads = []string{"Golden", "Blue", "Little", "Old", "Hungry", "Wild", "Royal", "Smoky", "Corner", "Lucky"}
	mealNouns = [9][]string{
		{"Dragon", "Lotus House", "Wok"}, {"Diner", "Grill", "Supper Club"}, {"Trattoria", "Osteria", "Pizzeria"},
		{"Cantina", "Taqueria", "Cocina"}, {"Tandoor", "Masala Room", "Curry Leaf"}, {"Meze", "Olive Table", "Kebab Garden"},
		{"Brasserie", "Bistro", "Café Élise"}, {"Smokehouse", "Pit", "Ribs & Co."}, {"Burger Stop", "Drive-In", "Chicken Shack"},
	}
	sightHeads = []string{"Harbor", "Railway", "Botanical", "Victory", "Stone", "Union", "Riverside", "Old Mill", "Founders'", "Lakeside", "Mercer", "Whitcombe"}
)

// cityName returns the i-th of a list of distinct names that r shuffled.
func cityNames(r *rand.Rand, n int) []string {
	var names []string
	for _, h := range cityHeads {
		for _, t := range cityTails {
			names = append(names, h+t)
		}
	}
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	odd := append([]string(nil), cityOdd...)
	odd = odd[:min(len(odd), n/4)]
	names = append(odd, names...)[:n]
	r.Shuffle(n, func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names
}

func pick(r *rand.Rand, words []string) string { return words[r.IntN(len(words))] }

// hotelName invents a listing in the city.
func hotelName(r *rand.Rand, city string) string {
	switch r.IntN(6) {
	case 0: // a comma inside the name
		return fmt.Sprintf("%s %s, %s", pick(r, hotelAdjectives), pick(r, hotelNouns), pick(r, hotelPlaces))
	case 1:
		return fmt.Sprintf("%s House & Rooms", pick(r, hotelHouses))
	case 2:
		return fmt.Sprintf("*%s* %s %s!", pick(r, hotelAdjectives), pick(r, hotelNouns), pick(r, hotelPlaces))
	case 3: // contains the city's name
		return fmt.Sprintf("The %s of %s", pick(r, hotelHouses), city)
	case 4:
		return fmt.Sprintf("\"%s\" %s", pick(r, hotelHouses), pick(r, hotelNouns))
	default:
		return fmt.Sprintf("%s %s %s", pick(r, hotelAdjectives), pick(r, hotelNouns), pick(r, hotelPlaces))
	}
}

// mealName invents a restaurant of the cuisine.
func mealName(r *rand.Rand, cuisine int, city string) string {
	noun := pick(r, mealNouns[cuisine])
	switch r.IntN(5) {
	case 0:
		return fmt.Sprintf("%s's %s", pick(r, []string{"Marlow", "Nadia", "Ines", "Abe", "Wendell"}), noun)
	case 1:
		return fmt.Sprintf("%s %s, %s branch", pick(r, mealHeads), noun, city)
	default:
		return fmt.Sprintf("%s %s", pick(r, mealHeads), noun)
	}
}

// sightName invents an attraction whose last word is its kind.
func sightName(r *rand.Rand, kind int) string {
	if r.IntN(8) == 0 {
		return fmt.Sprintf("%s, %s & %s", pick(r, sightHeads), pick(r, sightHeads), sightWords[kind])
	}
	return fmt.Sprintf("%s %s", pick(r, sightHeads), sightWords[kind])
}
