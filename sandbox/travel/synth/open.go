package synth

import (
	"fmt"
	"strconv"
	"time"

	"alidade/sandbox/travel"
)

// Kinds of world.
const (
	Generated = "generated" // everything is made up
	Real      = "real"      // the public tables; with generated flights where they have none
	Reference = "reference" // the partial database of the train set's reference information, for tests
)

// generatorVersion is part of every cache key: raise it when the same seed
// gives other rows.
const generatorVersion = "2"

// Spec says which world to open.
type Spec struct {
	Kind   string // Generated, Real, Reference; "" = Real if Dir is set, else Generated
	Dir    string // Real: folder of tables in TravelPlanner's layout
	File   string // Reference: JSONL of reference information
	States string // Reference: file of cities and states
	Cities int    // Generated: 4 to 312
	Seed   uint64 // of what is generated
	Window Window // of generated flights; zero = March
	Cache  string // folder for ready worlds; "" = none
}

// Sizes are the named sizes of generated worlds, in cities.
func Sizes() map[string]int {
	return map[string]int{"nano": 12, "small": 60, "medium": 150, "full": maxCities}
}

// Open returns a world: from the cache if it is there, else made and kept.
func Open(s Spec) (*World, travel.Cache, error) {
	began := time.Now()
	w, c, err := s.open()
	if err != nil {
		return nil, c, err
	}
	world := FromWorld(w)
	c.Took = time.Since(began)
	return world, c, nil
}

func (s Spec) open() (*travel.World, travel.Cache, error) {
	if s.Window.Days == 0 {
		s.Window = March()
	}
	if s.Window.Days < 0 || s.Window.Days > 366 {
		return nil, travel.Cache{}, fmt.Errorf("flight days %d: want 1 to 366", s.Window.Days)
	}
	kind := s.Kind
	if kind == "" && s.Dir != "" {
		kind = Real
	}
	switch kind {
	case "", Generated:
		if s.Cities < 4 || s.Cities > maxCities {
			return nil, travel.Cache{}, fmt.Errorf("cities %d: want a number from 4 to %d", s.Cities, maxCities)
		}
		o := travel.Origin{Kind: Generated, Detail: s.detail()}
		o.Detail["cities"] = strconv.Itoa(s.Cities)
		return travel.OpenWorld(s.Cache, o, func() (*travel.World, error) {
			t, err := places(s.Seed, s.Cities)
			return s.build(t), err
		})
	case Real:
		if travel.HasFlights(s.Dir) {
			return travel.LoadWorldCached(s.Dir, s.Cache)
		}
		o, err := travel.TableOrigin(s.Dir, s.detail())
		if err != nil {
			return nil, travel.Cache{}, err
		}
		return travel.OpenWorld(s.Cache, o, func() (*travel.World, error) {
			t, err := travel.LoadTables(s.Dir)
			if err != nil {
				return nil, err
			}
			return s.build(t), nil
		})
	case Reference:
		t, err := travel.LoadReference(s.File, s.States)
		if err != nil {
			return nil, travel.Cache{}, err
		}
		return travel.NewWorld(t), travel.Cache{}, nil
	}
	return nil, travel.Cache{}, fmt.Errorf("world is %q, must be %s, %s or %s", s.Kind, Generated, Real, Reference)
}

func (s Spec) detail() map[string]string {
	return map[string]string{"generator": generatorVersion, "seed": strconv.FormatUint(s.Seed, 10),
		"first": s.Window.First.Format(time.DateOnly), "days": strconv.Itoa(s.Window.Days)}
}

// build adds the flights without ever holding them all in their long form.
func (s Spec) build(t travel.Tables) *travel.World {
	return travel.BuildWorld(t, func(add func(*travel.Flight)) { eachFlight(&t, s.Seed, s.Window, add) })
}
