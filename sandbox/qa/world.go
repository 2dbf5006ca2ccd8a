package qa

import (
	"fmt"

	"alidade/sandbox"
	"alidade/sandbox/travel/compact"
)

const cities = 30

// kind is what a row describes.
type kind int

const (
	hotel kind = iota
	restaurant
	attraction
	event
)

// row is one row of the world.
type row struct {
	kind  kind
	key   int // price level, cuisine or kind of attraction
	words [3]int
	level int // of a restaurant
	name  string
}

// World is a small world of hotels, restaurants, attractions and events. It
// never changes and may be used by many goroutines.
type World struct {
	seed uint64
	rows []row
	city [cities][4][]int // city → kind → rows
}

// The purposes of random streams.
const (
	forWorld = 1000 + iota
	forQuestion
	forLabels
	forNames
)

// perKind is how many rows a city has of each kind.
var perKind = [4]int{hotel: 4, restaurant: 6, attraction: 3, event: 3}

// NewWorld generates the world of a data seed. It has nothing in common with
// the travel world of that seed.
func NewWorld(seed uint64) *World {
	r := compact.Rand(seed, forWorld)
	w := &World{seed: seed}
	keys := [4]int{hotel: compact.PriceLevels, restaurant: compact.Cuisines, attraction: compact.SightKinds, event: compact.SightKinds}
	names := [4]string{"hotel", "restaurant", "attraction", "event"}
	for c := range cities {
		for k := range w.city[c] {
			levels := r.Perm(compact.PriceLevels)
			for i, key := range r.Perm(keys[k])[:perKind[k]] {
				w.city[c][k] = append(w.city[c][k], len(w.rows))
				w.rows = append(w.rows, row{kind: kind(k), key: key, level: levels[i],
					words: [3]int{r.IntN(compact.RoomTypes), r.IntN(compact.HouseRules), r.IntN(compact.StayKinds)},
					name:  fmt.Sprintf("%s %d of town %d", names[k], i+1, c+1)})
			}
		}
	}
	return w
}

// Hash identifies the world.
func (w *World) Hash() string { return fmt.Sprintf("%016x", sandbox.Mix(w.seed, forWorld)) }

// keyWord is the token that stands before a row's id.
func (r *row) keyWord() compact.Token {
	switch r.kind {
	case hotel:
		return compact.HotelPriceWord(r.key)
	case restaurant:
		return compact.CuisineWord(r.key)
	}
	return compact.SightWord(r.key)
}
