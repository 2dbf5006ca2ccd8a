package travel

import "strings"

// officialProgram is TravelPlanner's evaluator, quirks included.
var officialProgram = program{
	checks: [nChecks]func(*evaluation) finding{
		officialRoute, officialRestaurants, officialAttractions, officialNights, officialTransportation, officialCity, officialSandbox, officialComplete,
		officialBudget, officialRoomRule, officialRoomType, officialCuisine, officialMode,
	},
	order: [nChecks]Check{
		CheckRoute, CheckRestaurants, CheckAttractions, CheckNights, CheckTransportation, CheckCity, CheckSandbox, CheckComplete,
		CheckCuisine, CheckRoomRule, CheckMode, CheckRoomType, CheckBudget,
	},
	cost: officialCost,
}

// officialMove reads the two cities of a day's current_city that contains
// "from", without their states. No match stops the program.
func officialMove(v *Value) (from, to string) {
	from, to, ok := fromTo(v.searched())
	if !ok {
		panic(typeError)
	}
	return stripState(from), stripState(to)
}

// officialPlace splits "Name, City(State)".
func officialPlace(v *Value) (name, city string) { return placeOf(v.searched()) }

func placeOf(s string) (name, city string) {
	name, city, ok := nameCity(s)
	if ok {
		city = trim(stripState(city))
	}
	return name, city
}

func officialRoute(e *evaluation) finding {
	var cities []Value
	var day []int
	for i := range e.days() {
		v := e.p.at(i).item(FieldCity)
		if !contains(v, "from") {
			cities, day = append(cities, Text(stripState(v.searched()))), append(day, i+1)
			continue
		}
		from, to := officialMove(v)
		if i == 0 && from != e.q.Org {
			return wrongStart(v.Str, from, e.q.Org)
		}
		cities, day = append(cities, Text(from), Text(to)), append(day, i+1, i+1)
	}
	if len(cities) == 0 {
		panic(indexError)
	}
	return e.route(cities, day)
}

// route judges the list of cities; day says from which day each comes.
func (e *evaluation) route(cities []Value, day []int) finding {
	last := len(cities) - 1
	if !cities[0].equal(&cities[last]) {
		return notClosed(cities[0].show(), cities[last].show(), day[last])
	}
	if len(cities) < 3 {
		return failPlan("The plan names %d cities on its way; a round trip names at least 3.", len(cities))
	}
	if i := brokenRun(cities); i >= 0 {
		return brokenRoute(cities[i].show(), day[i])
	}
	for i := range cities {
		city := cities[i].hashed()
		if city.Kind != String || !e.w.Known(city.Str) {
			return unknownCity(city.show(), day[i])
		}
		if i > 0 && i < last && e.q.Days > 3 && e.w.State(city.Str) != e.q.Dest {
			return otherState(city.Str, e.w.State(city.Str), e.q.Dest, day[i])
		}
	}
	return pass
}

func officialRestaurants(e *evaluation) finding {
	return diverseMeals(e, mealFields, (*RawDay).filled)
}

// diverseMeals refuses a second meal whose raw text was there before.
func diverseMeals(e *evaluation, order [3]Field, read func(*RawDay, Field) *Value) finding {
	type meal struct {
		v   *Value
		day int
	}
	var seen []meal
	for i := range e.days() {
		unit := e.p.at(i)
		for _, f := range order {
			v := read(unit, f)
			if v == nil {
				continue
			}
			for _, s := range seen {
				if s.v.equal(v) {
					return repeatedMeal(i+1, f, v.show(), s.day)
				}
			}
			seen = append(seen, meal{v, i + 1})
		}
	}
	return pass
}

func officialAttractions(e *evaluation) finding { return diverseSights(e, (*RawDay).filled) }

// diverseSights refuses a second terminated piece with the same raw text.
func diverseSights(e *evaluation, read func(*RawDay, Field) *Value) (f finding) {
	seen := map[string]int{}
	for i := range e.days() {
		v := read(e.p.at(i), FieldAttraction)
		if v == nil {
			continue
		}
		ok := sights(v.split(), false, func(s string) bool {
			if day, again := seen[s]; again {
				f = repeatedSight(i+1, s, day)
				return false
			}
			seen[s] = i + 1
			return true
		})
		if !ok {
			return f
		}
	}
	return pass
}

func officialNights(e *evaluation) finding {
	return minimumNights(e, officialPlace, func(v *Value) bool { return !v.absent() })
}

// minimumNights tests each stay whose text names exactly one row.
func minimumNights(e *evaluation, split func(*Value) (string, string), named func(*Value) bool) finding {
	var nights []*Value
	for i := range e.days() {
		unit := e.p.at(i)
		if !unit.has(FieldAccommodation) {
			return noKey(i+1, FieldAccommodation)
		}
		nights = append(nights, unit.item(FieldAccommodation))
	}
	for _, s := range stays(nights) {
		if !named(s.value) {
			continue
		}
		hotel, only := e.w.hotelLike(split(s.value))
		if only && float64(s.nights) < hotel.MinNights {
			return tooFewNights(s.first+1, s.value.show(), s.nights, hotel.MinNights)
		}
	}
	return pass
}

func officialTransportation(e *evaluation) finding {
	first := e.p.at(0).item(FieldTransportation).filled()
	if first == nil {
		return noDeparture(e.p.at(0).item(FieldTransportation).show())
	}
	modes := [4]int{} // first day of each mode
	note := func(day int, v *Value) {
		if m := officialModeOf(v); modes[m] == 0 {
			modes[m] = day
		}
	}
	note(1, first)
	for i := range e.days() {
		if v := e.p.at(i).filled(FieldTransportation); v != nil {
			note(i+1, v)
		}
	}
	return conflict(modes)
}

// The modes of transport.
const (
	modeOther = iota
	modeFlight
	modeTaxi
	modeDriving
)

var modeNames = [4]string{"something else", "a flight", "a taxi", "self-driving"}

func officialModeOf(v *Value) int {
	text := v.split()
	switch {
	case containsFold(text, "taxi"):
		return modeTaxi
	case containsFold(text, "self-driving"):
		return modeDriving
	case containsFold(text, "flight"):
		return modeFlight
	}
	return modeOther
}

func officialCity(e *evaluation) finding {
	for i := range e.days() {
		unit := e.p.at(i)
		current := unit.item(FieldCity)
		var cities []string
		if contains(current, "from") {
			from, to := officialMove(current)
			cities = []string{from, to}
		} else {
			cities = strings.Split(stripState(current.searched()), "") // the program walks the letters
		}
		if f := within(i+1, unit, current, cities); f.outcome != "" {
			return f
		}
	}
	return pass
}

// within tests the fields of a day against the cities, or the letters of a city.
func within(day int, unit *RawDay, current *Value, cities []string) finding {
	if v := unit.filled(FieldTransportation); v != nil {
		for _, c := range cities {
			if !contains(v, c) {
				return otherWay(day, v.show(), current.Str)
			}
		}
	}
	in := func(v *Value) bool {
		found := false
		for _, c := range cities {
			found = contains(v, c) || found
		}
		return found
	}
	for _, f := range mealFields {
		if v := unit.filled(f); v != nil && !in(v) {
			return otherCity(day, f, v.show(), current.Str)
		}
	}
	if v := unit.filled(FieldAttraction); v != nil {
		var f finding
		if !sights(v.split(), false, func(s string) bool {
			piece := Text(s)
			if in(&piece) {
				return true
			}
			f = otherCity(day, FieldAttraction, s, current.Str)
			return false
		}) {
			return f
		}
	}
	if v := unit.filled(FieldAccommodation); v != nil {
		if len(cities) == 0 {
			panic(indexError)
		}
		if !contains(v, cities[len(cities)-1]) {
			return otherCity(day, FieldAccommodation, v.show(), current.Str)
		}
	}
	return pass
}

func officialSandbox(e *evaluation) finding {
	for i := range e.days() {
		unit := e.p.at(i)
		if v := unit.item(FieldTransportation).filled(); v != nil {
			if f := officialTrip(e, i, unit, v); f.outcome != "" {
				return f
			}
		}
		for _, m := range mealFields {
			if v := unit.filled(m); v != nil {
				if name, city := officialPlace(v); e.w.restaurantLike(name, city) == nil {
					return noSuchPlace(i+1, m, v.show(), "restaurant", name, city)
				}
			}
		}
		if f := sightsExist(e, i, unit.filled(FieldAttraction), placeOf); f.outcome != "" {
			return f
		}
		if v := unit.filled(FieldAccommodation); v != nil {
			name, city := officialPlace(v)
			if h, _ := e.w.hotelLike(name, city); h == nil {
				return noSuchPlace(i+1, FieldAccommodation, v.show(), "accommodation", name, city)
			}
		}
	}
	return pass
}

func sightsExist(e *evaluation, i int, v *Value, split func(string) (string, string)) (f finding) {
	if v == nil {
		return pass
	}
	f = pass
	sights(v.split(), false, func(s string) bool {
		name, city := split(s)
		if e.w.attractionLike(name, city) == nil {
			f = noSuchPlace(i+1, FieldAttraction, s, "attraction", name, city)
		}
		return f.outcome == ""
	})
	return f
}

// officialTrip tests one transport text; a mode it does not know passes.
func officialTrip(e *evaluation, i int, unit *RawDay, v *Value) finding {
	text := v.searched()
	from, to, ok := fromTo(text)
	if !ok {
		from, to, ok = fromTo(unit.item(FieldCity).searched())
	}
	if ok {
		from, to = stripState(from), stripState(to)
	}
	switch {
	case containsFold(text, "flight number"):
		if !ok {
			panic(valueError)
		}
		number, found := flightNumber(text)
		if !found {
			panic(indexError)
		}
		if e.w.flights.onRoute(number, from, to, "") == 0 {
			return noSuchFlight(i+1, text, number, from, to, "")
		}
	case containsFold(text, "self-driving"):
		if !ok {
			from, to = "-", "-"
		}
		if _, drives := e.fee(from, to, modeDriving); !drives {
			return noSuchRoad(i+1, text, modeDriving, from, to)
		}
	case containsFold(text, "taxi"):
		if !ok {
			from, to = "-", "-"
		}
		if _, drives := e.fee(from, to, modeTaxi); !drives {
			return noSuchRoad(i+1, text, modeTaxi, from, to)
		}
	}
	return pass
}

// fee is the fee of one car or taxi between two cities; ok is false when
// there is none. A distance that is no number stops the program.
func (e *evaluation) fee(from, to string, mode int) (fee float64, ok bool) {
	row, found := e.w.distances[route{from, to}]
	if !found || row.empty || row.days {
		return 0, false
	}
	if row.fault != "" {
		panic(pyError(row.fault))
	}
	if mode == modeTaxi {
		return row.taxiFee()
	}
	return row.driveFee()
}

func officialComplete(e *evaluation) finding {
	n := e.days()
	valid := 0
	for i := range n {
		unit := e.p.at(i)
		if !unit.empty() && !unit.item(FieldCity).is(filler) {
			valid++
		}
	}
	if valid != e.q.Days {
		return wrongDays(valid, e.q.Days)
	}
	if f := officialCityNumber(e, n); f.outcome != "" {
		return f
	}
	total := 0
	for i := range n {
		unit := e.p.at(i)
		for _, f := range infoFields {
			if !unit.has(f) {
				return noKey(i+1, f)
			}
		}
		city := unit.item(FieldCity)
		from, to := contains(city, "from "), contains(city, "to ")
		switch {
		case (from || to) && unit.item(FieldTransportation).absent():
			return emptyField(i+1, FieldTransportation, "a day with a move")
		case !from && !contains(city, " to ") && unit.item(FieldAttraction).absent():
			return emptyField(i+1, FieldAttraction, "a full day")
		case i != e.q.Days-1 && unit.item(FieldAccommodation).absent():
			return emptyField(i+1, FieldAccommodation, "every night but the last day's")
		}
		for _, m := range mealFields {
			if !from && unit.item(m).absent() {
				return emptyField(i+1, m, "a full day")
			}
		}
		total += unit.count()
	}
	return halfFull(total, e.q.Days)
}

func officialCityNumber(e *evaluation, n int) finding {
	set := map[string]bool{}
	for i := range n {
		v := e.p.at(i).item(FieldCity)
		if !contains(v, "from") {
			set[stripState(v.searched())] = true
			continue
		}
		from, to := officialMove(v)
		if i == 0 && from != e.q.Org {
			return wrongStart(v.Str, from, e.q.Org)
		}
		set[from], set[to] = true, true
	}
	delete(set, e.q.Org)
	return cityNumber(len(set), e.q.Cities)
}
