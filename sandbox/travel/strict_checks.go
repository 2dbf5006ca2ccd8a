package travel

import "strings"

// route: the trip starts and ends in the departure city, every other city is
// one stretch, known, and lies in the destination.
func (t *strictTrip) route() finding {
	if f := t.wrongKind(FieldCity); f.outcome != "" {
		return f
	}
	var buf [16]strictStop
	stops := buf[:0]
	for i := range t.days {
		d := &t.days[i]
		if !d.readable {
			return unreadableCity(i+1, d.text[FieldCity])
		}
		if d.move {
			stops = append(stops, strictStop{d.from, i + 1})
		}
		stops = append(stops, strictStop{d.to, i + 1})
	}
	if len(stops) == 0 {
		return failPlan("The plan names no city.")
	}
	first, last := stops[0], stops[len(stops)-1]
	if first.city != t.q.Org {
		return wrongStart(t.days[0].text[FieldCity], first.city, t.q.Org)
	}
	if last.city != first.city {
		return notClosed(first.city, last.city, last.day)
	}
	if len(stops) < 3 {
		return failPlan("The plan names %d cities on its way; a round trip names at least 3.", len(stops))
	}
	if f := unbroken(stops); f.outcome != "" {
		return f
	}
	return t.destination(stops)
}

type strictStop struct {
	city string
	day  int
}

// unbroken wants every city but the ends in one stretch of two or more entries.
func unbroken(stops []strictStop) finding {
	last := len(stops) - 1
	for i := 0; i <= last; {
		first, city := i, stops[i].city
		for i <= last && stops[i].city == city {
			i++
		}
		again := false
		for k := range first {
			again = again || stops[k].city == city
		}
		if again && first != last || i-first == 1 && first > 0 && first < last {
			return brokenRoute(city, stops[first].day)
		}
	}
	return pass
}

// destination wants known cities: in the state for long trips, the one city for short ones.
func (t *strictTrip) destination(stops []strictStop) finding {
	last, reached := len(stops)-1, false
	for i, s := range stops {
		if !t.w.Known(s.city) {
			return unknownCity(s.city, s.day)
		}
		if i == 0 || i == last {
			continue
		}
		if t.q.Days > 3 {
			if t.w.State(s.city) != t.q.Dest {
				return otherState(s.city, t.w.State(s.city), t.q.Dest, s.day)
			}
			continue
		}
		if s.city != t.q.Dest && s.city != t.q.Org {
			return otherDestination(s.city, t.q.Dest, s.day)
		}
		reached = reached || s.city == t.q.Dest
	}
	if t.q.Days <= 3 && !reached {
		return failPlan("The plan never visits %s, where the trip is to go.", t.q.Dest)
	}
	return pass
}

// restaurants: no restaurant twice, by name and city.
func (t *strictTrip) restaurants() finding {
	if f := t.wrongKind(mealFields[:]...); f.outcome != "" {
		return f
	}
	for i := range t.days {
		for k := range mealFields {
			m := &t.days[i].meals[k]
			if m.text == "" {
				continue
			}
			for a := 0; a <= i; a++ {
				for b := range mealFields {
					if a == i && b >= k {
						break
					}
					if same(m, &t.days[a].meals[b]) {
						return repeatedMeal(i+1, mealFields[k], m.text, a+1)
					}
				}
			}
		}
	}
	return pass
}

func same(a, b *strictPlace) bool {
	if !a.ok || !b.ok {
		return a.text == b.text
	}
	return a.name == b.name && a.city == b.city
}

// attractions: no attraction twice, the last one counts without its semicolon.
func (t *strictTrip) attractions() finding {
	if f := t.wrongKind(FieldAttraction); f.outcome != "" {
		return f
	}
	for i := range t.sights {
		for k := range i {
			if same(&t.sights[i], &t.sights[k]) {
				return repeatedSight(t.sights[i].day, t.sights[i].text, t.sights[k].day)
			}
		}
	}
	return pass
}

// nights: every stay is as long as the first row of that name demands.
func (t *strictTrip) nights() finding {
	if f := t.wrongKind(FieldAccommodation); f.outcome != "" {
		return f
	}
	for i := range t.days {
		if t.days[i].raw.Fields[FieldAccommodation].Kind == Absent {
			return noKey(i+1, FieldAccommodation)
		}
	}
	for i := 0; i < len(t.days); {
		first, h := i, &t.days[i].hotel
		for i < len(t.days) && same(h, &t.days[i].hotel) {
			i++
		}
		if row := t.days[first].hotelRow; row != nil && float64(i-first) < row.MinNights {
			return tooFewNights(first+1, h.text, i-first, row.MinNights)
		}
	}
	return pass
}

// transportation: the trip says how it departs, and one's own car is not
// combined with flights or taxis.
func (t *strictTrip) transportation() finding {
	if f := t.wrongKind(FieldTransportation); f.outcome != "" {
		return f
	}
	if len(t.days) == 0 || t.days[0].text[FieldTransportation] == "" {
		return noDeparture("")
	}
	var modes [4]int
	for i := range t.days {
		if m := t.days[i].single(); modes[m] == 0 {
			modes[m] = i + 1
		}
	}
	return conflict(modes)
}

// currentCity: what a day holds is in a city of that day, by equality.
func (t *strictTrip) currentCity() finding {
	if f := t.wrongKind(FieldCity, FieldTransportation, FieldBreakfast, FieldLunch, FieldDinner, FieldAttraction, FieldAccommodation); f.outcome != "" {
		return f
	}
	for i := range t.days {
		if f := t.dayInCity(i, &t.days[i]); f.outcome != "" {
			return f
		}
	}
	return pass
}

func (t *strictTrip) dayInCity(i int, d *strictDay) finding {
	current := d.text[FieldCity]
	if !d.readable && current != "" {
		return unreadableCity(i+1, current)
	}
	if s := d.text[FieldTransportation]; s != "" {
		switch {
		case d.move && !(d.ownRoute && d.rideFrom == d.from && d.rideTo == d.to):
			return otherWay(i+1, s, current)
		case !d.move && d.ownRoute && (d.rideFrom != d.to || d.rideTo != d.to):
			return otherWay(i+1, s, current)
		case !d.move && !d.ownRoute && !strings.Contains(s, d.to):
			return otherWay(i+1, s, current)
		}
	}
	in := func(p *strictPlace) bool { return p.ok && (p.city == d.to || d.move && p.city == d.from) }
	for k, f := range mealFields {
		if m := &d.meals[k]; m.text != "" && !in(m) {
			return otherCity(i+1, f, m.text, current)
		}
	}
	for k := d.first; k < d.after; k++ {
		if !in(&t.sights[k]) {
			return otherCity(i+1, FieldAttraction, t.sights[k].text, current)
		}
	}
	if h := &d.hotel; h.text != "" && (!h.ok || h.city != d.to) {
		return otherCity(i+1, FieldAccommodation, h.text, current)
	}
	return pass
}

// sandbox: everything named exists, flights on that day's date.
func (t *strictTrip) sandbox() finding {
	if f := t.wrongKind(FieldTransportation, FieldBreakfast, FieldLunch, FieldDinner, FieldAttraction, FieldAccommodation); f.outcome != "" {
		return f
	}
	for i := range t.days {
		d := &t.days[i]
		if f := t.rideExists(i, d); f.outcome != "" {
			return f
		}
		for k, f := range mealFields {
			if m := &d.meals[k]; m.text != "" && d.mealRow[k] == nil {
				return missingPlace(i+1, f, m, "restaurant")
			}
		}
		for k := d.first; k < d.after; k++ {
			if s := &t.sights[k]; t.w.Attraction(s.name, s.city) == nil {
				return missingPlace(i+1, FieldAttraction, s, "attraction")
			}
		}
		if d.hotel.text != "" && d.hotelRow == nil {
			return missingPlace(i+1, FieldAccommodation, &d.hotel, "accommodation")
		}
	}
	return pass
}

func (t *strictTrip) rideExists(i int, d *strictDay) finding {
	s := d.text[FieldTransportation]
	if s == "" {
		return pass
	}
	from, to := d.ride()
	switch mode := d.single(); mode {
	case modeFlight:
		if d.number == "" {
			return noNumber(i+1, s)
		}
		if d.flight == 0 {
			return noSuchFlight(i+1, s, d.number, from, to, t.date(i))
		}
	case modeTaxi, modeDriving:
		row, found := t.w.distances[route{from, to}]
		if _, ok := row.driveFee(); !found || !ok {
			return noSuchRoad(i+1, s, mode, from, to)
		}
	default:
		if d.modes == 0 {
			return unknownMode(i+1, s)
		}
		return severalModes(i+1, s)
	}
	return pass
}

// complete: all days, all keys, the asked number of cities, and every field
// that the kind of day needs.
func (t *strictTrip) complete() finding {
	if f := t.wrongKind(FieldCity, FieldTransportation, FieldBreakfast, FieldLunch, FieldDinner, FieldAttraction, FieldAccommodation); f.outcome != "" {
		return f
	}
	valid := 0
	for i := range t.days {
		if s := t.days[i].text[FieldCity]; s != "" && s != filler {
			valid++
		}
	}
	if valid != t.q.Days {
		return wrongDays(valid, t.q.Days)
	}
	if f := t.cityNumber(); f.outcome != "" {
		return f
	}
	filled := 0
	for i := range t.days {
		d := &t.days[i]
		for f := range d.raw.Fields {
			if d.raw.Fields[f].filled() != nil {
				filled++
			}
		}
		if f := t.dayComplete(i, d); f.outcome != "" {
			return f
		}
	}
	return halfFull(filled, t.q.Days)
}

func (t *strictTrip) cityNumber() finding {
	var buf [16]string
	cities := buf[:0]
	add := func(c string) {
		if c == t.q.Org {
			return
		}
		for _, seen := range cities {
			if seen == c {
				return
			}
		}
		cities = append(cities, c)
	}
	for i := range t.days {
		d := &t.days[i]
		if !d.readable {
			return unreadableCity(i+1, d.text[FieldCity])
		}
		if d.move {
			add(d.from)
		}
		add(d.to)
	}
	if t.q.Cities == 0 {
		return pass
	}
	return cityNumber(len(cities), t.q.Cities)
}

func (t *strictTrip) dayComplete(i int, d *strictDay) finding {
	for _, f := range infoFields {
		if d.raw.Fields[f].Kind == Absent {
			return noKey(i+1, f)
		}
		if d.text[f] != "" {
			continue
		}
		switch {
		case f == FieldTransportation:
			if d.move {
				return emptyField(i+1, f, "a day with a move")
			}
		case f == FieldAccommodation:
			if i < t.q.Days-1 {
				return emptyField(i+1, f, "every night but the last day's")
			}
		case !d.move:
			return emptyField(i+1, f, "a full day")
		}
	}
	return pass
}

// price adds up what can be priced, whatever the gate, and notes it by day.
func (t *strictTrip) price(j *Judgement) (total float64) {
	people := t.q.People
	spend := func(i int, f Field, amount float64) {
		total += amount
		j.DayCosts = addCost(j.DayCosts, i, f, amount)
	}
	j.DayCosts = make([]map[string]float64, 0, len(t.days))
	for i := range t.days {
		d := &t.days[i]
		from, to := d.ride()
		switch d.single() {
		case modeFlight:
			if d.flight != 0 {
				spend(i, FieldTransportation, float64(t.w.flights.price[d.flight-1])*float64(people))
			}
		case modeTaxi:
			row, found := t.w.distances[route{from, to}]
			if fee, ok := row.taxiFee(); found && ok {
				spend(i, FieldTransportation, fee*taxis(people))
			}
		case modeDriving:
			row, found := t.w.distances[route{from, to}]
			if fee, ok := row.driveFee(); found && ok {
				spend(i, FieldTransportation, fee*cars(people))
			}
		}
		for k, f := range mealFields {
			if r := d.mealRow[k]; r != nil {
				spend(i, f, float64(r.Cost)*float64(people))
			}
		}
		if h := d.hotelRow; h != nil {
			spend(i, FieldAccommodation, h.Price*h.units(people))
		}
	}
	return total
}

func (t *strictTrip) roomRule() finding {
	wish := t.q.Wish.HouseRule
	if wish == "" {
		return notAsked
	}
	for i := range t.days {
		if h := t.days[i].hotelRow; h != nil {
			if f := roomRule(i+1, t.days[i].hotel.text, h, wish); f.outcome != "" {
				return f
			}
		}
	}
	return pass
}

func (t *strictTrip) roomType() finding {
	wish := t.q.Wish.RoomType
	if wish == "" {
		return notAsked
	}
	for i := range t.days {
		if h := t.days[i].hotelRow; h != nil {
			if f := roomType(i+1, t.days[i].hotel.text, h, wish); f.outcome != "" {
				return f
			}
		}
	}
	return pass
}

// cuisine: every wish is met by a meal outside the departure city.
func (t *strictTrip) cuisine() finding {
	wanted := t.q.Wish.Cuisine
	if len(wanted) == 0 {
		return notAsked
	}
wishes:
	for _, c := range wanted {
		for i := range t.days {
			for k, r := range t.days[i].mealRow {
				if r != nil && t.days[i].meals[k].city != t.q.Org && offers(r.Cuisines, c) {
					continue wishes
				}
			}
		}
		return noCuisine(c, wanted)
	}
	return pass
}

// offers tells whether a cuisine is an entry of a comma separated list.
func offers(list, cuisine string) bool {
	for list != "" {
		entry, rest, _ := strings.Cut(list, ",")
		if trim(entry) == cuisine {
			return true
		}
		list = rest
	}
	return false
}

func (t *strictTrip) mode() finding {
	wish := t.q.Wish.Transportation
	if wish == "" {
		return notAsked
	}
	for i := range t.days {
		m := t.days[i].single()
		if wish == "no flight" && m == modeFlight || wish == "no self-driving" && m == modeDriving {
			return unwantedMode(i+1, t.days[i].text[FieldTransportation], wish)
		}
	}
	return pass
}
