package synth

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"alidade/sandbox/travel"
)

// States reports what of the query its text does not state: the names of the
// missing parts, none when the text is complete. It is the check that a text
// written by a language model has to pass, so it takes numbers as digits or
// words and dates in the usual forms, but wants names as whole words and a
// refusal for what is refused.
func States(text string, q travel.Query) []string {
	t := statement{low: strings.ToLower(text)}
	t.need("org", t.word(q.Org))
	t.need("dest", t.word(q.Dest))
	t.need("days", t.counted(q.Days, `[- ]days?`))
	if len(q.Dates) > 0 {
		t.need("first date", t.date(q.Dates[0]))
		t.need("last date", t.date(q.Dates[len(q.Dates)-1]))
	}
	t.need("budget", t.word(money(q.Budget)[1:]) || t.word(strconv.FormatFloat(q.Budget, 'f', 0, 64)))
	if q.People > 1 {
		t.need("people", t.counted(q.People, "") || q.People == 2 && t.word("couple"))
	}
	if q.Cities > 1 {
		t.need("cities", t.counted(q.Cities, `\s(\w+\s){0,2}(cities|places|stops|destinations)`))
	}
	t.wishes(q.Wish)
	return t.missing
}

type statement struct {
	low     string
	missing []string
}

func (t *statement) need(part string, stated bool) {
	if !stated {
		t.missing = append(t.missing, part)
	}
}

// word tells whether a name or number stands in the text by itself.
func (t *statement) word(s string) bool {
	s = strings.ToLower(s)
	for at := 0; s != ""; {
		i := strings.Index(t.low[at:], s)
		if i < 0 {
			return false
		}
		start, end := at+i, at+i+len(s)
		if (start == 0 || !isLetter(t.low[start-1])) && (end == len(t.low) || !isLetter(t.low[end])) {
			return true
		}
		at = start + 1
	}
	return false
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c >= 0x80 }

var numberWords = []string{"zero", "one", "two", "three", "four", "five", "six", "seven", "eight"}

// counted tells whether a number stands there, in digits or in words, with
// what follows it.
func (t *statement) counted(n int, behind string) bool {
	number := strconv.Itoa(n)
	if n >= 0 && n < len(numberWords) {
		number += "|" + numberWords[n]
	}
	return t.match(`\b(` + number + `)` + behind + `\b`)
}

func (t *statement) match(pattern string) bool { return regexp.MustCompile(pattern).MatchString(t.low) }

// date accepts 2022-03-01, and the month's name with the day as a number.
func (t *statement) date(s string) bool {
	if strings.Contains(t.low, s) {
		return true
	}
	d, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return true // the query's own fault
	}
	month := strings.ToLower(d.Month().String())
	return (t.word(month) || t.word(month[:3])) && t.match(`\b0?`+strconv.Itoa(d.Day())+`(st|nd|rd|th)?\b`)
}

// refused matches a word of refusal shortly before a pattern.
func (t *statement) refused(pattern string) bool {
	return t.match(`\b(no|not|nobody|none|never|without|avoid\w*|exclud\w*|except|but|instead of|rather than|other than|\w+n't|\w+n’t)\b[^.,;!?]{0,40}(` + pattern + `)`)
}

func (t *statement) wishes(wish travel.Constraints) {
	for _, c := range wish.Cuisine {
		t.need("cuisine "+c, t.word(c) || c == "BBQ" && (t.word("barbecue") || t.word("barbeque")))
	}
	switch wish.HouseRule {
	case "":
	case "smoking":
		t.need("house rule", t.match(`\bsmok`))
	case "parties":
		t.need("house rule", t.match(`\bpart(y|ies)\b`))
	case "children under 10":
		t.need("house rule", t.match(`\b(children|kids?|child)\b`) && t.counted(10, "") || t.match(`\bunder (10|ten)\b`))
	case "visitors":
		t.need("house rule", t.match(`\b(visitors?|guests?)\b`))
	case "pets":
		t.need("house rule", t.match(`\bpets?\b|\bpet-`))
	default:
		t.need("house rule", t.word(wish.HouseRule))
	}
	switch wish.RoomType {
	case "":
	case "not shared room":
		t.need("room type", t.refused(`shar(ed|ing)`))
	case "entire room":
		t.need("room type", t.match(`\b(entire|whole)\b[^.]{0,20}\b(rooms?|places?|homes?|houses?|apartments?|units?|accommodations?)\b`))
	case "shared room", "private room":
		t.need("room type", t.match(`\b`+strings.TrimSuffix(wish.RoomType, " room")+` (rooms?|accommodations?)\b`))
	default:
		t.need("room type", t.word(wish.RoomType))
	}
	switch wish.Transportation {
	case "no flight":
		t.need("transportation", t.refused(`fl(y|ight|ying|own)|plane|air`))
	case "no self-driving":
		t.need("transportation", t.refused(`driv`))
	}
}
