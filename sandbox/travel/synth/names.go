package synth

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Word lists for made-up names. City names are made so that some contain
// others (Marlow, Marlowville), as in the public data, which is what trips up
// substring tests.
var (
	cityRoots  = []string{"Marlow", "Ashby", "Carver", "Denton", "Ellis", "Farrow", "Granger", "Halden", "Irving", "Jasper", "Kendal", "Lowell", "Mercer", "Norwood", "Orchard", "Perrin", "Quincy", "Redmond", "Sutter", "Tolland", "Upton", "Vernon", "Warren", "Yarrow", "Alder", "Briar", "Cedar", "Dover", "Easton", "Fenwick"}
	citySuffix = []string{"", "ville", "burg", " Falls", " Beach", " Springs", " City", "ton", " Heights", "field"}
	cityPrefix = []string{"Port ", "St. ", "New ", "Fort ", "South ", "Lake "}

	stateNames = []string{"Alabama", "Alaska", "Arizona", "Arkansas", "California", "Colorado", "Connecticut", "Florida", "Georgia", "Hawaii", "Idaho", "Illinois", "Indiana", "Iowa", "Kansas", "Kentucky", "Louisiana", "Maine", "Maryland", "Massachusetts", "Michigan", "Minnesota", "Mississippi", "Missouri", "Montana", "Nebraska", "Nevada", "New Hampshire", "New Jersey", "New Mexico", "New York", "North Carolina", "North Dakota", "Ohio", "Oklahoma", "Oregon", "Pennsylvania", "Rhode Island", "South Carolina", "South Dakota", "Tennessee", "Texas", "Utah", "Virginia", "Washington", "West Virginia", "Wisconsin", "Wyoming",
		"District of Columbia", "Puerto Rico", "Guam", "American Samoa", "England", "Scotland", "Ontario", "Quebec", "Victoria", "Queensland", "Bavaria", "Tuscany", "Normandy", "Catalonia", "Zealand", "Uusimaa"}

	adjectives = []string{"Golden", "Quiet", "Copper", "Sunny", "Old", "Little", "Blue", "Crimson", "Cozy", "Grand", "Silver", "Hidden", "Rustic", "Bright", "Velvet", "Maple", "Harbor", "Northern", "Lucky", "Wild"}
	nouns      = []string{"Lantern", "Fig", "Anchor", "Sparrow", "Kettle", "Orchid", "Compass", "Pepper", "Willow", "Ember", "Otter", "Saffron", "Juniper", "Mango", "Harvest", "Pearl", "Fox", "Olive", "Meadow", "Tide"}
	eateries   = []string{"Kitchen", "Cafe", "Grill", "Diner", "Bakery", "House", "Bistro", "Table", "Corner", "& Sons"}
	lodging    = []string{"loft", "apartment", "studio", "room", "house", "suite", "garden flat", "bungalow"}
	lodgeMore  = []string{"near the park", "by the river", "with balcony", "2 blocks from the station", "close to downtown", "w/ free parking", "5 min to the beach"}
	sights     = []string{"Museum of Art", "Botanical Garden", "Science Center", "History Museum", "Zoo", "State Park", "Aquarium", "Old Town", "Observatory", "Lighthouse", "Sculpture Walk", "Market Hall"}

	cuisines   = []string{"Seafood", "Fast Food", "BBQ", "Tea", "Desserts", "Bakery", "Cafe", "Pizza", "American", "Indian", "Mediterranean", "Italian", "Chinese", "French", "Mexican"}
	commonFood = 8 // the first eight occur in 35–39 % of rows each, the rest in 13–16 %

	houseRules = []string{"No parties", "No pets", "No visitors", "No smoking", "No children under 10"}
)

// cityNames makes n distinct names.
func cityNames(r *rand.Rand, n int) []string {
	var all []string
	for _, suffix := range citySuffix {
		for _, root := range cityRoots {
			all = append(all, root+suffix)
		}
	}
	for _, prefix := range cityPrefix {
		for _, root := range cityRoots {
			all = append(all, prefix+root)
		}
	}
	// The plain roots and their longer relatives come early, so that small
	// worlds have contained names too.
	head := cityRoots[:min(n/3+1, len(cityRoots))]
	names := append([]string(nil), head...)
	seen := map[string]bool{}
	for _, h := range head {
		seen[h] = true
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, c := range all {
		if len(names) >= n {
			break
		}
		if !seen[c] {
			seen[c] = true
			names = append(names, c)
		}
	}
	for i := 2; len(names) < n; i++ {
		names = append(names, fmt.Sprintf("%s %d", all[i%len(all)], i))
	}
	names = names[:n]
	r.Shuffle(n, func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names
}

func restaurantName(r *rand.Rand) string {
	name := pick(r, adjectives) + " " + pick(r, nouns)
	if r.IntN(10) < 8 {
		name += " " + pick(r, eateries)
	}
	return name
}

func hotelName(r *rand.Rand) string {
	name := pick(r, adjectives) + " " + pick(r, lodging) + " " + pick(r, lodgeMore)
	if r.IntN(100) < 15 { // as often as in the public data
		name = strings.Replace(name, " ", ", ", 1)
	}
	return fmt.Sprintf("%s #%d", name, r.IntN(900)+100)
}

func sightName(r *rand.Rand, city string) string {
	name := pick(r, adjectives) + " " + pick(r, nouns) + " " + pick(r, sights)
	switch r.IntN(100) {
	case 0:
		return name + ", East Wing"
	case 1, 2, 3, 4, 5, 6, 7, 8, 9, 10:
		return city + " " + pick(r, sights)
	}
	return name
}
