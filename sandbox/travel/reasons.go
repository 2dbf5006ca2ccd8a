package travel

import (
	"strconv"
	"strings"
)

// Findings in words. Every sentence names day, field and value, and the rule
// that is broken, so that a person can mend the plan without the source.

var fieldWords = [nFields + 1]string{"day number", "current city", "transportation", "breakfast", "attraction", "lunch", "dinner", "accommodation", "plan"}

func quote(s string) string { return strconv.Quote(clip(s)) }

func dollars(x float64) string {
	s := strconv.FormatFloat(x, 'f', -1, 64)
	whole, cents, _ := strings.Cut(s, ".")
	neg := strings.HasPrefix(whole, "-")
	whole = strings.TrimPrefix(whole, "-")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if cents != "" {
		whole += "." + cents
	}
	if neg {
		whole = "-" + whole
	}
	return "$" + whole
}

func wrongStart(value, from, org string) finding {
	return fail(1, FieldCity, value, "Day 1 current city %s leaves from %s, but the trip departs from %s.", quote(value), quote(from), org)
}

func notClosed(first, last string, day int) finding {
	return fail(day, FieldCity, last, "Day %d ends the trip in %s, but it began in %s: a trip must end where it began.", day, quote(last), quote(first))
}

func brokenRoute(city string, day int) finding {
	return fail(day, FieldCity, city, "Day %d current city names %s, which is visited a second time or only passed once: each city must be one stretch of at least two entries.", day, quote(city))
}

func unknownCity(city string, day int) finding {
	return fail(day, FieldCity, city, "Day %d current city %s is not a city of the sandbox.", day, quote(city))
}

func otherState(city, state, dest string, day int) finding {
	return fail(day, FieldCity, city, "Day %d current city %s lies in %s, but the trip visits cities of %s.", day, quote(city), state, dest)
}

func repeatedMeal(day int, f Field, value string, before int) finding {
	if day == before {
		return fail(day, f, value, "Day %d %s %s was already eaten at earlier the same day: every meal of the trip must be at another restaurant.", day, fieldWords[f], quote(value))
	}
	return fail(day, f, value, "Day %d %s %s was already eaten at on day %d: every meal of the trip must be at another restaurant.", day, fieldWords[f], quote(value), before)
}

func repeatedSight(day int, value string, before int) finding {
	return fail(day, FieldAttraction, value, "Day %d attraction %s was already visited on day %d: every attraction may be visited once.", day, quote(value), before)
}

func noKey(day int, f Field) finding {
	return fail(day, f, "", "Day %d has no %s: every day must have the key %q.", day, fieldWords[f], f.String())
}

func tooFewNights(day int, value string, nights int, least float64) finding {
	return fail(day, FieldAccommodation, value, "Day %d accommodation %s is booked for %s in a row, but it takes guests for at least %s.",
		day, quote(value), count(nights, "night"), count(int(least), "night"))
}

func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}

func noDeparture(value string) finding {
	return fail(1, FieldTransportation, value, "Day 1 transportation is empty: the trip must say how it departs.")
}

func conflict(modes [4]int) finding {
	other := modeFlight
	if modes[other] == 0 {
		other = modeTaxi
	}
	if modes[modeDriving] == 0 || modes[other] == 0 {
		return pass
	}
	return fail(max(modes[modeDriving], modes[other]), FieldTransportation, "", "Day %d uses self-driving and day %d %s: one's own car cannot be combined with flights or taxis.",
		modes[modeDriving], modes[other], modeNames[other])
}

func otherWay(day int, value, current string) finding {
	return fail(day, FieldTransportation, value, "Day %d transportation %s does not connect the cities of the day, current city %s.", day, quote(value), quote(current))
}

func otherCity(day int, f Field, value, current string) finding {
	if f == FieldAccommodation {
		return fail(day, f, value, "Day %d accommodation %s is not where the day ends, current city %s.", day, quote(value), quote(current))
	}
	return fail(day, f, value, "Day %d %s %s is not in a city of that day, current city %s.", day, fieldWords[f], quote(value), quote(current))
}

func noSuchPlace(day int, f Field, value, kind, name, city string) finding {
	return fail(day, f, value, "Day %d %s %s: the sandbox has no %s %s in %s.", day, fieldWords[f], quote(value), kind, quote(name), quote(city))
}

func noSuchFlight(day int, value, number, from, to, date string) finding {
	on := ""
	if date != "" {
		on = " on " + date
	}
	return fail(day, FieldTransportation, value, "Day %d transportation %s: the sandbox has no flight %s from %s to %s%s.", day, quote(value), quote(number), quote(from), quote(to), on)
}

func noNumber(day int, value string) finding {
	return fail(day, FieldTransportation, value, "Day %d transportation %s is a flight without a readable \"Flight Number: \".", day, quote(value))
}

func noSuchRoad(day int, value string, mode int, from, to string) finding {
	return fail(day, FieldTransportation, value, "Day %d transportation %s: the sandbox offers no %s from %s to %s within a day.",
		day, quote(value), strings.TrimPrefix(modeNames[mode], "a "), quote(from), quote(to))
}

func wrongDays(got, want int) finding {
	return failPlan("The plan fills in %s, but the trip lasts %s.", count(got, "day"), count(want, "day"))
}

func cityNumber(got, want int) finding {
	if got == want {
		return pass
	}
	what := " cities"
	if got == 1 {
		what = " city"
	}
	return failPlan("The plan visits %d%s besides the departure city, but the trip asks for %d.", got, what, want)
}

func emptyField(day int, f Field, when string) finding {
	return fail(day, f, "", "Day %d %s is empty, but it is needed on %s.", day, fieldWords[f], when)
}

// halfFull wants half of six fields a day to be filled in.
func halfFull(total, days int) finding {
	if float64(total)/float64(6*days) < 0.5 {
		return failPlan("The plan fills in %d values, but at least half of 6 a day are needed: %d.", total, 3*days)
	}
	return pass
}

func overBudget(cost, limit float64) finding {
	if cost <= limit {
		return pass
	}
	return finding{outcome: OutcomeFail, field: noField, value: dollars(cost),
		reason: "The trip costs " + dollars(cost) + ", which is " + dollars(cost-limit) + " over the budget of " + dollars(limit) + "."}
}

func roomRule(day int, value string, h *Hotel, wish string) finding {
	if !forbids(h.Rules, wish) {
		return pass
	}
	return fail(day, FieldAccommodation, value, "Day %d accommodation %s has the rules %s, but the guests want %s to be allowed.", day, quote(value), quote(h.Rules), wish)
}

func roomType(day int, value string, h *Hotel, wish string) finding {
	if !wrongRoom(wish, h.RoomType) {
		return pass
	}
	return fail(day, FieldAccommodation, value, "Day %d accommodation %s is of type %s, but the guests want: %s.", day, quote(value), quote(h.RoomType), wish)
}

func noCuisine(missing string, wanted []string) finding {
	f := failPlan("No meal outside the departure city offers %s, but the guests want each of: %s.", missing, strings.Join(wanted, ", "))
	f.value = missing
	return f
}

func unwantedMode(day int, value, wish string) finding {
	return fail(day, FieldTransportation, value, "Day %d transportation %s, but the guests want %s.", day, quote(value), wish)
}

func unreadableCity(day int, value string) finding {
	if value == "" {
		return fail(day, FieldCity, value, "Day %d current city is empty: every day must say where it is spent.", day)
	}
	return fail(day, FieldCity, value, "Day %d current city %s cannot be read: it must be a city, or \"from A to B\" on a day with a move.", day, quote(value))
}

func otherDestination(city, dest string, day int) finding {
	return fail(day, FieldCity, city, "Day %d current city %s is not %s, where the trip is to go.", day, quote(city), dest)
}

func missingPlace(day int, f Field, p *strictPlace, kind string) finding {
	if !p.ok {
		return fail(day, f, p.text, "Day %d %s %s cannot be read: it must be written \"Name, City\".", day, fieldWords[f], quote(p.text))
	}
	return noSuchPlace(day, f, p.text, kind, p.name, p.city)
}

func unknownMode(day int, value string) finding {
	return fail(day, FieldTransportation, value, "Day %d transportation %s names none of flight, taxi and self-driving: the sandbox offers no other transport.", day, quote(value))
}

func severalModes(day int, value string) finding {
	return fail(day, FieldTransportation, value, "Day %d transportation %s names more than one of flight, taxi and self-driving: a day has one.", day, quote(value))
}
