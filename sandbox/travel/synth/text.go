package synth

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"alidade/sandbox/travel"
)

// Text writes a query in words, with one of several phrasings for each part.
// Every wish is stated; [States] checks that.
func Text(r *rand.Rand, q travel.Query) string {
	parts := []string{opening(r, q)}
	if s := wishes(r, q); s != "" {
		parts = append(parts, s)
	}
	budget := money(q.Budget)
	parts = append(parts, pick(r, []string{
		"The budget for the whole trip is " + budget + ".",
		"We can spend " + budget + " in all.",
		"All costs together must stay within " + budget + ".",
	}))
	text := strings.Join(parts, " ")
	if q.People == 1 {
		text = strings.Replace(text, "We can spend", "I can spend", 1)
	}
	return text
}

func opening(r *rand.Rand, q travel.Query) string {
	who := "me"
	if q.People > 1 {
		who = fmt.Sprintf("a group of %d", q.People)
	}
	goal := q.Dest
	if q.Days > 3 {
		goal = fmt.Sprintf("%d cities in %s", q.Cities, q.Dest)
	}
	from, to := longDate(q.Dates[0]), longDate(q.Dates[len(q.Dates)-1])
	return pick(r, []string{
		fmt.Sprintf("Plan a %d-day trip for %s from %s to %s, %s to %s.", q.Days, who, q.Org, goal, from, to),
		fmt.Sprintf("I need an itinerary for %s: we leave %s on %s, see %s and are home on %s, %d days in all.", who, q.Org, from, goal, to, q.Days),
		fmt.Sprintf("From %s to %s, starting in %s: make a plan for %s that visits %s over %d days.", from, to, q.Org, who, goal, q.Days),
	})
}

func wishes(r *rand.Rand, q travel.Query) string {
	var out []string
	if h := q.Wish.HouseRule; h != "" {
		out = append(out, pick(r, []string{"The place to stay must allow " + h + ".", "Accommodation where " + h + " are fine is a must."}))
		if h == "smoking" {
			out[len(out)-1] = pick(r, []string{"The place to stay must allow smoking.", "Accommodation where smoking is fine is a must."})
		}
	}
	if t := q.Wish.RoomType; t != "" {
		out = append(out, map[string]string{
			"shared room":     "We want a shared room.",
			"not shared room": "Anything but a shared room will do.",
			"private room":    "We want a private room.",
			"entire room":     "We want an entire room to ourselves.",
		}[t])
	}
	if c := q.Wish.Cuisine; len(c) > 0 {
		list := join(c)
		out = append(out, pick(r, []string{"At some point we want to eat " + list + ".", "Meals should include " + list + "."}))
	}
	switch q.Wish.Transportation {
	case "no flight":
		out = append(out, pick(r, []string{"We do not fly.", "Please no flights."}))
	case "no self-driving":
		out = append(out, pick(r, []string{"Nobody of us drives, so no self-driving.", "Please no self-driving."}))
	}
	s := strings.Join(out, " ")
	if q.People == 1 {
		s = strings.NewReplacer("We want", "I want", "we want", "I want", "We do not", "I do not", "to ourselves", "to myself", "Nobody of us drives", "I do not drive").Replace(s)
	}
	return s
}

func join(list []string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], ", ") + " and " + list[len(list)-1]
}

func longDate(s string) string {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return s
	}
	return t.Format("2 January 2006")
}

// money writes 1700 as "$1,700".
func money(x float64) string {
	s := strconv.FormatFloat(x, 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return "$" + s
}
