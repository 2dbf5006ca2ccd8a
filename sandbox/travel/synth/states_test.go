package synth

import (
	"slices"
	"strings"
	"testing"

	"alidade/sandbox/travel"
)

func TestStates(t *testing.T) {
	q := travel.Query{Org: "Bend", Dest: "Texas", Days: 5, Cities: 2, People: 4, Budget: 12_300, Level: "hard",
		Dates: []string{"2022-03-04", "2022-03-05", "2022-03-06", "2022-03-07", "2022-03-08"},
		Wish:  travel.Constraints{HouseRule: "children under 10", Cuisine: []string{"BBQ", "Indian"}, RoomType: "not shared room", Transportation: "no flight"}}
	good := "We are four people from Bend and want five days in Texas, March 4th to March 8th, two different cities, without flying, " +
		"no shared rooms, with children under 10, barbecue and Indian food, for 12300 dollars."
	if missing := States(good, q); len(missing) > 0 {
		t.Errorf("complete text: missing %v", missing)
	}
	for _, c := range []struct{ old, now, want string }{
		{"Bend", "South Bender", "org"}, {"Texas", "Ohio", "dest"}, {"five days", "some days", "days"}, {"March 4th", "March 14th", "first date"},
		{"March 8th", "later", "last date"}, {"12300", "123000", "budget"}, {"four people", "some people", "people"}, {"two different cities", "cities", "cities"},
		{"barbecue", "grilled", "cuisine BBQ"}, {"Indian", "Indiana", "cuisine Indian"}, {"with children under 10", "with family", "house rule"},
		{"no shared rooms", "a shared room", "room type"}, {"without flying", "with flights", "transportation"},
	} {
		text := strings.Replace(good, c.old, c.now, 1)
		if missing := States(text, q); !slices.Contains(missing, c.want) {
			t.Errorf("%q: missing %v, want %s among them", text, missing, c.want)
		}
	}
}

// TestTemplateTextsStateEverything goes through all wishes, phrasings and both numbers.
func TestTemplateTextsStateEverything(t *testing.T) {
	r := rng(1, "test")
	for range 5000 {
		q := travel.Query{Org: pick(r, []string{"Bend", "South Bend", "St. Petersburg"}), Dest: "Jackson", Days: pick(r, []int{3, 5, 7}), People: 1 + r.IntN(8), Budget: float64(100 * (1 + r.IntN(400)))}
		q.Cities = trips[q.Days].legs - 1
		q.Dates = window("2022-03-2"+string(rune('0'+r.IntN(9))), q.Days)
		q.Level = pick(r, levels[:])
		starWishes(r, &q)
		if r.IntN(2) == 0 {
			q.Wish.RoomType = pick(r, []string{"shared room", "not shared room", "private room", "entire room"})
		}
		text := Text(r, q)
		if missing := States(text, q); len(missing) > 0 {
			t.Fatalf("%q leaves out %v of %+v", text, missing, q)
		}
	}
}

func FuzzStates(f *testing.F) {
	f.Add("Two of us, 3-day trip from Reno to Tampa, no flights.", "Reno", 3)
	f.Fuzz(func(t *testing.T, text, city string, days int) {
		q := travel.Query{Org: city, Dest: city, Days: days, People: days, Cities: days, Budget: float64(days), Dates: []string{text, city},
			Wish: travel.Constraints{HouseRule: city, Cuisine: []string{text, city}, RoomType: city, Transportation: "no flight"}}
		_ = States(text, q)
		_ = tidy(text)
	})
}
