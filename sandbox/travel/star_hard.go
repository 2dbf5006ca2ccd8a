package travel

// starCost adds up the trip as Agent-STAR's evaluator does: every transport
// that is neither flight nor taxi is priced as driving.
func starCost(e *evaluation) {
	for i := range e.days() {
		unit := e.p.at(i)
		if v := unit.gotten(FieldTransportation); v != nil {
			starFare(e, i, unit, v)
		}
		for _, m := range mealFields {
			if v := unit.gotten(m); v != nil {
				if r := e.w.restaurantLike(starPlace(v)); r != nil {
					e.spend(i, m, float64(r.Cost*e.q.People))
				}
			}
		}
		if v := unit.item(FieldAccommodation).filled(); v != nil {
			if h, _ := e.w.hotelLike(starPlace(v)); h != nil {
				e.spend(i, FieldAccommodation, h.Price*h.units(e.q.People))
			}
		}
	}
}

func starFare(e *evaluation, i int, unit *RawDay, v *Value) {
	text := v.searched()
	from, to, ok := fromTo(text)
	if !ok {
		if from, to, ok = fromTo(unit.item(FieldCity).searched()); !ok {
			return
		}
	}
	switch mode := starModeOf(v); mode {
	case modeFlight:
		e.payFlight(i, text)
	default:
		e.payRoad(i, from, to, mode)
	}
}

func starBudget(e *evaluation) finding { return budget(e, starCost) }

func starHotel(unit *RawDay) *Value { return unit.gotten(FieldAccommodation) }

func starRoomRule(e *evaluation) finding {
	wish := e.q.Wish.HouseRule
	if wish == "" {
		return notAsked
	}
	return eachHotel(e, starHotel, starPlace, func(day int, v *Value, h *Hotel) finding { return roomRule(day, v.show(), h, wish) })
}

func starRoomType(e *evaluation) finding {
	wish := e.q.Wish.RoomType
	if wish == "" {
		return notAsked
	}
	return eachHotel(e, starHotel, starPlace, func(day int, v *Value, h *Hotel) finding { return roomType(day, v.show(), h, wish) })
}

func starCuisine(e *evaluation) finding {
	wanted := e.q.Wish.Cuisine
	if len(wanted) == 0 {
		return notAsked
	}
	found := map[string]bool{}
	for i := range e.days() {
		unit := e.p.at(i)
		for _, m := range mealFields {
			if v := unit.gotten(m); v != nil {
				if name, city := starPlace(v); city != e.q.Org {
					noteCuisines(e.w.restaurantLike(name, city), wanted, found)
				}
			}
		}
	}
	for _, c := range wanted {
		if !found[c] {
			return noCuisine(c, wanted)
		}
	}
	return pass
}

func starMode(e *evaluation) finding {
	wish := e.q.Wish.Transportation
	if wish == "" {
		return notAsked
	}
	for i := range e.days() {
		v := e.p.at(i).gotten(FieldTransportation)
		if v == nil {
			continue
		}
		if m := starModeOf(v); wish == "no flight" && m == modeFlight || wish == "no self-driving" && m == modeDriving {
			return unwantedMode(i+1, v.show(), wish)
		}
	}
	return pass
}
