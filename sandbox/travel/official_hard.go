package travel

import "strings"

// officialCost adds up the trip as TravelPlanner's evaluator does: flights by
// their number alone, names by the first row that contains them.
func officialCost(e *evaluation) {
	for i := range e.days() {
		unit := e.p.at(i)
		if v := unit.item(FieldTransportation).filled(); v != nil {
			officialFare(e, i, unit, v)
		}
		for _, m := range mealFields {
			if v := unit.item(m).filled(); v != nil {
				if r := e.w.restaurantLike(officialPlace(v)); r != nil {
					e.spend(i, m, float64(r.Cost*e.q.People))
				}
			}
		}
		if v := unit.item(FieldAccommodation).filled(); v != nil {
			if h, _ := e.w.hotelLike(officialPlace(v)); h != nil {
				e.spend(i, FieldAccommodation, h.Price*h.units(e.q.People))
			}
		}
	}
}

func officialFare(e *evaluation, i int, unit *RawDay, v *Value) {
	text := v.searched()
	from, to, ok := fromTo(text)
	if !ok {
		if from, to, ok = fromTo(unit.item(FieldCity).searched()); !ok {
			return
		}
	}
	switch {
	case containsFold(text, "flight number"):
		e.payFlight(i, text)
	case containsFold(text, "self-driving"):
		e.payRoad(i, stripState(from), stripState(to), modeDriving)
	case containsFold(text, "taxi"):
		e.payRoad(i, stripState(from), stripState(to), modeTaxi)
	}
}

// payFlight pays for the first flight of the number, whatever its route.
func (e *evaluation) payFlight(i int, text string) {
	number, ok := flightNumber(text)
	if !ok {
		panic(indexError)
	}
	if rows := e.w.flights.numbered(number); len(rows) > 0 {
		e.spend(i, FieldTransportation, float64(e.w.flights.price[rows[0]])*float64(e.q.People))
	}
}

// payRoad pays for cars or taxis; without a fee the program multiplies None.
func (e *evaluation) payRoad(i int, from, to string, mode int) {
	fee, ok := e.fee(from, to, mode)
	if !ok {
		panic(typeError)
	}
	if mode == modeTaxi {
		e.spend(i, FieldTransportation, fee*taxis(e.q.People))
		return
	}
	e.spend(i, FieldTransportation, fee*cars(e.q.People))
}

func officialBudget(e *evaluation) finding { return budget(e, officialCost) }

// budget compares the cost, which raises here what it raised on its own.
func budget(e *evaluation, cost func(*evaluation)) finding {
	if !e.priced {
		e.price(cost)
	}
	if e.raised != "" {
		panic(pyError(e.raised))
	}
	return overBudget(e.total, e.q.Budget)
}

func officialRoomRule(e *evaluation) finding {
	wish := e.q.Wish.HouseRule
	if wish == "" {
		return notAsked
	}
	return eachHotel(e, func(unit *RawDay) *Value { return unit.item(FieldAccommodation).filled() }, officialPlace,
		func(day int, v *Value, h *Hotel) finding { return roomRule(day, v.show(), h, wish) })
}

func officialRoomType(e *evaluation) finding {
	wish := e.q.Wish.RoomType
	if wish == "" {
		return notAsked
	}
	return eachHotel(e, func(unit *RawDay) *Value { return unit.item(FieldAccommodation).filled() }, officialPlace,
		func(day int, v *Value, h *Hotel) finding { return roomType(day, v.show(), h, wish) })
}

// eachHotel tests the first matching row of every day's accommodation.
func eachHotel(e *evaluation, read func(*RawDay) *Value, split func(*Value) (string, string), test func(int, *Value, *Hotel) finding) finding {
	for i := range e.days() {
		v := read(e.p.at(i))
		if v == nil {
			continue
		}
		if h, _ := e.w.hotelLike(split(v)); h != nil {
			if f := test(i+1, v, h); f.outcome != "" {
				return f
			}
		}
	}
	return pass
}

func officialCuisine(e *evaluation) finding {
	wanted := e.q.Wish.Cuisine
	if len(wanted) == 0 {
		return notAsked
	}
	found := map[string]bool{}
	for i := range e.days() {
		unit := e.p.at(i)
		for _, m := range mealFields {
			v := unit.item(m).filled()
			if v == nil {
				continue
			}
			name, city := officialPlace(v)
			if city == e.q.Org {
				break // the program gives up the rest of the day
			}
			noteCuisines(e.w.restaurantLike(name, city), wanted, found)
		}
	}
	if len(found) == len(wanted) {
		return pass
	}
	for _, c := range wanted {
		if !found[c] {
			return noCuisine(c, wanted)
		}
	}
	panic(typeError) // a wish said twice: the program returns nothing and its caller stops
}

// noteCuisines marks the wanted cuisines that occur in the text of the row.
func noteCuisines(r *Restaurant, wanted []string, found map[string]bool) {
	if r == nil {
		return
	}
	for _, c := range wanted {
		if strings.Contains(r.Cuisines, c) {
			found[c] = true
		}
	}
}

func officialMode(e *evaluation) finding {
	wish := e.q.Wish.Transportation
	if wish == "" {
		return notAsked
	}
	for i := range e.days() {
		v := e.p.at(i).item(FieldTransportation).filled()
		if v == nil {
			continue
		}
		if wish == "no flight" && contains(v, "Flight") || wish == "no self-driving" && contains(v, "Self-driving") {
			return unwantedMode(i+1, v.show(), wish)
		}
	}
	return pass
}
