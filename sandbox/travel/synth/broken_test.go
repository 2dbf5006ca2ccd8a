package synth_test

import (
	"slices"
	"strings"
	"testing"

	"alidade/sandbox/travel"
	"alidade/sandbox/travel/synth"
)

// breaks changes one thing in a plan that passes, or in its query, for each
// check; false means that this plan does not lend itself to it.
var breaks = []struct {
	check string
	apply func(w *synth.World, q *travel.Query, d []travel.Day) bool
}{
	{"is_reasonable_visiting_city", func(w *synth.World, q *travel.Query, d []travel.Day) bool {
		for _, c := range w.CityList() {
			if q.Days == 3 && c.Name != q.Dest && c.Name != q.Org {
				q.Dest = c.Name
				return true
			}
			if q.Days > 3 && c.State != q.Dest {
				q.Dest = c.State
				return true
			}
		}
		return false
	}},
	{"is_valid_restaurants", func(_ *synth.World, q *travel.Query, d []travel.Day) bool {
		d[1].Lunch = d[1].Breakfast
		q.Budget *= 10
		return q.Wish.Cuisine == nil
	}},
	{"is_valid_attractions", func(_ *synth.World, _ *travel.Query, d []travel.Day) bool {
		d[1].Attraction += d[1].Attraction
		return true
	}},
	{"is_valid_accommodation", func(w *synth.World, q *travel.Query, d []travel.Day) bool {
		q.Wish.RoomType, q.Wish.HouseRule, q.Budget = "", "", 1e9
		for _, h := range w.Hotels(d[1].City) {
			if first := w.Hotel(h.Name, d[1].City); h.MinNights > 2 && first != nil && first.MinNights > 2 {
				d[0].Accommodation = h.Name + ", " + d[1].City
				d[1].Accommodation = d[0].Accommodation
				return true
			}
		}
		return false
	}},
	{"is_valid_transportation", func(w *synth.World, q *travel.Query, d []travel.Day) bool {
		last := &d[len(d)-1]
		if !strings.HasPrefix(d[0].Transportation, "Flight") {
			return false
		}
		rest, _ := strings.CutPrefix(last.City, "from ")
		from, to, _ := strings.Cut(rest, " to ")
		row, ok := w.Distance(from, to)
		if _, drives := travel.DriveCost(row, 1); !ok || !drives {
			return false
		}
		last.Transportation = "Self-driving, from " + from + " to " + to
		q.Wish.Transportation, q.Budget = "", 1e9
		return true
	}},
	{"is_valid_information_in_current_city", func(w *synth.World, q *travel.Query, d []travel.Day) bool {
		q.Budget = 1e9
		for _, c := range w.CityList() {
			visited := slices.ContainsFunc(d, func(x travel.Day) bool { return strings.Contains(x.City, c.Name) })
			if list := w.Restaurants(c.Name); !visited && len(list) > 0 {
				d[1].Lunch = list[0].Name + ", " + c.Name
				return q.Wish.Cuisine == nil
			}
		}
		return false
	}},
	{"is_valid_information_in_sandbox", func(_ *synth.World, q *travel.Query, d []travel.Day) bool {
		d[1].Breakfast = "No Such Place, " + d[1].City
		return q.Wish.Cuisine == nil
	}},
	{"is_not_absent", func(_ *synth.World, q *travel.Query, d []travel.Day) bool {
		d[1].Dinner = "-"
		return q.Wish.Cuisine == nil
	}},
	{"valid_cost", func(_ *synth.World, q *travel.Query, _ []travel.Day) bool { q.Budget = 1; return true }},
	{"valid_room_rule", func(w *synth.World, q *travel.Query, d []travel.Day) bool {
		name, _, _ := strings.Cut(d[1].Accommodation, ", "+d[1].City)
		h := w.Hotel(name, d[1].City)
		if h == nil {
			return false
		}
		rule, _, _ := strings.Cut(h.Rules, " & ")
		q.Wish.HouseRule = strings.TrimPrefix(rule, "No ")
		return true
	}},
	{"valid_room_type", func(w *synth.World, q *travel.Query, d []travel.Day) bool {
		name, _, _ := strings.Cut(d[1].Accommodation, ", "+d[1].City)
		h := w.Hotel(name, d[1].City)
		if h == nil {
			return false
		}
		q.Wish.RoomType = map[string]string{"Shared room": "private room", "Private room": "entire room", "Entire home/apt": "shared room"}[h.RoomType]
		return true
	}},
	{"valid_cuisine", func(w *synth.World, q *travel.Query, d []travel.Day) bool {
		eaten := map[string]bool{}
		for i := range d {
			for _, meal := range []string{d[i].Breakfast, d[i].Lunch, d[i].Dinner} {
				k := strings.LastIndex(meal, ", ")
				if k < 0 {
					continue
				}
				for c := range strings.SplitSeq(w.Restaurant(meal[:k], meal[k+2:]).Cuisines, ", ") {
					eaten[c] = true
				}
			}
		}
		for _, c := range []string{"French", "Chinese", "Indian", "Mediterranean", "Mexican", "Italian", "American"} {
			if !eaten[c] {
				q.Wish.Cuisine = append(slices.Clone(q.Wish.Cuisine), c)
				return true
			}
		}
		return false
	}},
	{"valid_transportation", func(_ *synth.World, q *travel.Query, d []travel.Day) bool {
		switch {
		case strings.HasPrefix(d[0].Transportation, "Flight"):
			q.Wish.Transportation = "no flight"
		case strings.HasPrefix(d[0].Transportation, "Self-driving"):
			q.Wish.Transportation = "no self-driving"
		default:
			return false
		}
		return true
	}},
}

// TestBrokenPlansFailTheRuleBroken expects the check for what was changed, and
// only that one, to fail. Behind a shut gate the hard checks are closed.
func TestBrokenPlansFailTheRuleBroken(t *testing.T) {
	w := small(t)
	qs, sols, _, err := w.Queries(t.Context(), synth.Options{N: 150, Mix: mix, Seed: 5, Certify: true})
	if err != nil {
		t.Fatal(err)
	}
	tried := map[string]int{}
	for i := range qs {
		for _, b := range breaks {
			q, days := qs[i], slices.Clone(sols[i].Days)
			if !b.apply(w, &q, days) {
				continue
			}
			tried[b.check]++
			j := travel.Judge(w.World, q, travel.NewPlan(days), travel.Strict)
			for _, v := range j.Verdicts {
				if v.Outcome == "fail" && v.Check != b.check {
					t.Errorf("query %d broken for %s also fails %s: %s", i, b.check, v.Check, v.Reason)
				}
				if v.Check == b.check && (v.Outcome != "fail" || v.Reason == "") {
					t.Errorf("query %d broken for %s: %s %q", i, b.check, v.Outcome, v.Reason)
				}
			}
		}
	}
	if len(breaks) != 13 {
		t.Errorf("%d of 13 checks are broken", len(breaks))
	}
	for _, b := range breaks {
		if tried[b.check] < 10 {
			t.Errorf("%s was broken in %d plans only", b.check, tried[b.check])
		}
	}
	t.Logf("broken plans by check: %v", tried)
}
