package travel

// starProgram is Agent-STAR's evaluator, quirks included.
var starProgram = program{
	checks: [nChecks]func(*evaluation) finding{
		starRoute, starRestaurants, starAttractions, starNights, starTransportation, starCity, starSandbox, starComplete,
		starBudget, starRoomRule, starRoomType, starCuisine, starMode,
	},
	order: [nChecks]Check{
		CheckComplete, CheckSandbox, CheckRestaurants, CheckAttractions, CheckNights, CheckRoute, CheckTransportation, CheckCity,
		CheckCuisine, CheckRoomType, CheckRoomRule, CheckMode, CheckBudget,
	},
	cost: starCost,
}

// starMove reads the two cities of a current_city that contains "from"; each
// is null without a match.
func starMove(v *Value) (from, to Value) {
	a, b, ok := fromTo(v.searched())
	if !ok {
		return none, none
	}
	return Text(a), Text(b)
}

// starPlace splits "Name, City"; a state stays part of the city.
func starPlace(v *Value) (name, city string) { return starPlaceOf(v.searched()) }

func starPlaceOf(s string) (name, city string) {
	name, city, _ = nameCity(s)
	return name, city
}

func starRoute(e *evaluation) finding {
	var cities []Value
	var day []int
	for i := range e.days() {
		v := e.p.at(i).item(FieldCity)
		if !contains(v, "from") {
			cities, day = append(cities, *v), append(day, i+1)
			continue
		}
		from, to := starMove(v)
		if i == 0 && !from.is(e.q.Org) {
			return wrongStart(v.Str, from.show(), e.q.Org)
		}
		cities, day = append(cities, from, to), append(day, i+1, i+1)
	}
	if len(cities) == 0 {
		return failPlan("The plan names no city.")
	}
	return e.route(cities, day)
}

func starRestaurants(e *evaluation) finding { return diverseMeals(e, lateMeals, (*RawDay).gotten) }

func starAttractions(e *evaluation) finding { return diverseSights(e, (*RawDay).gotten) }

func starNights(e *evaluation) finding {
	return minimumNights(e, starPlace, func(v *Value) bool { return v.truthy() && !v.absent() })
}

// starModeOf takes everything that is neither a flight nor a taxi for driving.
func starModeOf(v *Value) int {
	text := v.split()
	switch {
	case containsFold(text, "flight"):
		return modeFlight
	case containsFold(text, "taxi"):
		return modeTaxi
	}
	return modeDriving
}

func starTransportation(e *evaluation) finding {
	first := e.p.at(0).item(FieldTransportation).filled()
	if first == nil {
		return noDeparture(e.p.at(0).item(FieldTransportation).show())
	}
	var modes [4]int
	modes[starModeOf(first)] = 1
	for i := range e.days() {
		if v := e.p.at(i).gotten(FieldTransportation); v != nil {
			if m := starModeOf(v); modes[m] == 0 {
				modes[m] = i + 1
			}
		}
	}
	return conflict(modes)
}

func starCity(e *evaluation) finding {
	for i := range e.days() {
		unit := e.p.at(i)
		current := unit.get(FieldCity)
		if unit.Fields[FieldCity].Kind == Absent {
			empty := Text("")
			current = &empty
		}
		cities := []Value{*current}
		if contains(current, "from") {
			from, to := starMove(current)
			cities = []Value{from, to}
		}
		if f := starWithin(i+1, unit, current, cities); f.outcome != "" {
			return f
		}
	}
	return pass
}

func starWithin(day int, unit *RawDay, current *Value, cities []Value) finding {
	if unit.has(FieldTransportation) && !unit.item(FieldTransportation).is("-") {
		v := unit.item(FieldTransportation)
		for i := range cities {
			if !containsValue(v, &cities[i]) {
				return otherWay(day, v.show(), current.show())
			}
		}
	}
	in := func(v *Value) bool {
		found := false
		for i := range cities {
			found = containsValue(v, &cities[i]) || found
		}
		return found
	}
	for _, f := range mealFields {
		if v := unit.gotten(f); v != nil && !in(v) {
			return otherCity(day, f, v.show(), current.show())
		}
	}
	if v := unit.gotten(FieldAttraction); v != nil {
		var f finding
		if !sights(v.split(), false, func(s string) bool {
			piece := Text(s)
			if in(&piece) {
				return true
			}
			f = otherCity(day, FieldAttraction, s, current.show())
			return false
		}) {
			return f
		}
	}
	if v := unit.gotten(FieldAccommodation); v != nil && !containsValue(v, &cities[len(cities)-1]) {
		return otherCity(day, FieldAccommodation, v.show(), current.show())
	}
	return pass
}

func starSandbox(e *evaluation) finding {
	for i := range e.days() {
		unit := e.p.at(i)
		if v := unit.gotten(FieldTransportation); v != nil {
			if f := starTrip(e, i, unit, v); f.outcome != "" {
				return f
			}
		}
		for _, m := range lateMeals {
			if v := unit.gotten(m); v != nil {
				if name, city := starPlace(v); e.w.restaurantLike(name, city) == nil {
					return noSuchPlace(i+1, m, v.show(), "restaurant", name, city)
				}
			}
		}
		if f := sightsExist(e, i, unit.gotten(FieldAttraction), starPlaceOf); f.outcome != "" {
			return f
		}
		if v := unit.gotten(FieldAccommodation); v != nil {
			name, city := starPlace(v)
			if h, _ := e.w.hotelLike(name, city); h == nil {
				return noSuchPlace(i+1, FieldAccommodation, v.show(), "accommodation", name, city)
			}
		}
	}
	return pass
}

// starTrip tests one transport text: everything but a flight needs a road.
func starTrip(e *evaluation, i int, unit *RawDay, v *Value) finding {
	text := v.searched()
	from, to, ok := fromTo(text)
	if !ok {
		from, to, _ = fromTo(unit.item(FieldCity).searched())
	}
	if starModeOf(v) == modeFlight {
		number, found := flightNumber(text)
		if !found {
			return noNumber(i+1, text)
		}
		if e.w.flights.onRoute(number, from, to, "") == 0 {
			return noSuchFlight(i+1, text, number, from, to, "")
		}
		return pass
	}
	row, found := e.w.distances[route{from, to}]
	if _, drives := row.driveFee(); !found || !drives {
		return noSuchRoad(i+1, text, modeDriving, from, to)
	}
	return pass
}

func starComplete(e *evaluation) finding {
	n := e.days()
	valid := 0
	for i := range n {
		if unit := e.p.at(i); unit.truthy() {
			if v := unit.get(FieldCity); v.truthy() && !v.is(filler) {
				valid++
			}
		}
	}
	if valid != e.q.Days {
		return wrongDays(valid, e.q.Days)
	}
	if e.q.Cities > 0 {
		if f := starCityNumber(e, n); f.outcome != "" {
			return f
		}
	}
	total := 0
	for i := range n {
		unit := e.p.at(i)
		city := unit.item(FieldCity)
		for _, f := range infoFields {
			if !unit.has(f) {
				return noKey(i+1, f)
			}
			if !unit.item(f).absent() {
				continue
			}
			switch {
			case f == FieldTransportation:
				if contains(city, "from ") || contains(city, "to ") {
					return emptyField(i+1, f, "a day with a move")
				}
			case f == FieldAccommodation:
				if i < e.q.Days-1 {
					return emptyField(i+1, f, "every night but the last day's")
				}
			case !contains(city, "from "):
				return emptyField(i+1, f, "a full day")
			}
		}
		total += unit.count()
	}
	return halfFull(total, e.q.Days)
}

func starCityNumber(e *evaluation, n int) finding {
	var set []Value
	add := func(v Value) {
		v.hashed()
		for i := range set {
			if set[i].equal(&v) {
				return
			}
		}
		if !v.is(e.q.Org) {
			set = append(set, v)
		}
	}
	for i := range n {
		v := e.p.at(i).item(FieldCity)
		if !contains(v, "from") {
			add(*v)
			continue
		}
		from, to := starMove(v)
		if i == 0 && !from.is(e.q.Org) {
			return wrongStart(v.Str, from.show(), e.q.Org)
		}
		add(from)
		add(to)
	}
	return cityNumber(len(set), e.q.Cities)
}
