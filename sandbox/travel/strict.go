package travel

import (
	"strings"
	"sync"
)

// judgeStrict applies the strict profile: what the rules mean. It reads the
// plan once into a trip and then judges the trip; docs/sandbox.md lists check
// by check where it departs from the public evaluators and why.
func judgeStrict(w *World, q *Query, p *Plan, j *Judgement) {
	t := trips.Get().(*strictTrip)
	defer t.release()
	t.w, t.q = w, q
	fault := t.read(p)
	if fault.outcome != "" {
		for c := range Check(nCommonsense) {
			fault.write(&j.Verdicts[c])
		}
	} else {
		t.commonsense(j)
	}
	total := t.price(j)
	j.Cost = &total
	j.GateOpen = j.passed(CheckComplete) && j.passed(CheckSandbox)
	if !j.GateOpen {
		j.closeGate()
		return
	}
	t.hard(j, total)
}

// trips keeps the scratch of finished judgements: one is made at every rollout.
var trips = sync.Pool{New: func() any {
	return &strictTrip{days: make([]strictDay, 0, 8), sights: make([]strictPlace, 0, 48)}
}}

// release gives the scratch back, without what it points to.
func (t *strictTrip) release() {
	clear(t.days)
	clear(t.sights)
	t.w, t.q, t.days, t.sights = nil, nil, t.days[:0], t.sights[:0]
	trips.Put(t)
}

func (t *strictTrip) commonsense(j *Judgement) {
	put := func(c Check, f finding) { f.write(&j.Verdicts[c]) }
	put(CheckRoute, t.route())
	put(CheckRestaurants, t.restaurants())
	put(CheckAttractions, t.attractions())
	put(CheckNights, t.nights())
	put(CheckTransportation, t.transportation())
	put(CheckCity, t.currentCity())
	put(CheckSandbox, t.sandbox())
	put(CheckComplete, t.complete())
}

func (t *strictTrip) hard(j *Judgement, total float64) {
	put := func(c Check, f finding) { f.write(&j.Verdicts[c]) }
	put(CheckBudget, overBudget(total, t.q.Budget))
	put(CheckRoomRule, t.roomRule())
	put(CheckRoomType, t.roomType())
	put(CheckCuisine, t.cuisine())
	put(CheckMode, t.mode())
}

// strictTrip is a plan as understood by the strict profile.
type strictTrip struct {
	w      *World
	q      *Query
	days   []strictDay
	sights []strictPlace // of all days
}

type strictDay struct {
	raw  *RawDay
	text [nFields]string // trimmed; "" when absent, null, empty or "-"
	bad  Field           // first field that is not a text, noField if all are

	move     bool   // current_city says "from A to B"
	readable bool   // current_city could be read
	from, to string // cities of a move; to is the city of a full day

	modes        uint8 // bit set of the modes the transport text names
	ownRoute     bool  // the transport text says from where to where
	rideFrom     string
	rideTo       string
	flight       uint32 // row + 1; 0 = none
	number       string
	meals        [3]strictPlace
	hotel        strictPlace
	hotelRow     *Hotel
	mealRow      [3]*Restaurant
	first, after int // sights[first:after]
}

// strictPlace is a "Name, City" item.
type strictPlace struct {
	text, name, city string
	ok               bool // it has a comma and a city behind it
	day              int  // 1-based
}

// cityOf drops "(State)" and blanks.
func cityOf(s string) string { return trim(stripState(s)) }

// readPlace splits at the last comma. Unlike the public pattern it lets a
// name run over several lines.
func readPlace(s string, day int) strictPlace {
	p := strictPlace{text: s, day: day}
	i := strings.LastIndexByte(s, ',')
	if i < 0 {
		return p
	}
	p.name, p.city = trim(s[:i]), cityOf(s[i+1:])
	p.ok = p.city != ""
	return p
}

// read takes the first days of the plan apart. A plan or entry of the wrong
// kind is a fault that fails every commonsense check.
func (t *strictTrip) read(p *Plan) finding {
	if p.Root.Kind != List {
		return failPlan("The plan is %s, but it must be a list of days.", p.Root.Kind)
	}
	fault := pass
	for i := 0; i < len(p.Days) && i < t.q.Days; i++ {
		raw := &p.Days[i]
		if raw.Kind != Object && fault.outcome == "" {
			fault = fail(i+1, noField, raw.Other.show(), "Day %d of the plan is %s, but every day must be an object with its fields.", i+1, raw.Kind)
		}
		t.days = append(t.days, strictDay{raw: raw, bad: noField})
		t.readDay(&t.days[i], i)
	}
	return fault
}

func (t *strictTrip) readDay(d *strictDay, i int) {
	for f := FieldCity; f < nFields; f++ {
		switch v := &d.raw.Fields[f]; v.Kind {
		case String:
			if s := trim(v.Str); s != "-" {
				d.text[f] = s
			}
		case Absent, Null:
		default:
			if d.bad == noField {
				d.bad = f
			}
		}
	}
	d.readCity()
	d.readRide()
	for k, f := range mealFields {
		if d.text[f] != "" {
			d.meals[k] = readPlace(d.text[f], i+1)
			d.mealRow[k] = t.w.Restaurant(d.meals[k].name, d.meals[k].city)
		}
	}
	if s := d.text[FieldAccommodation]; s != "" {
		d.hotel = readPlace(s, i+1)
		d.hotelRow = t.w.Hotel(d.hotel.name, d.hotel.city)
	}
	d.first = len(t.sights)
	if s := d.text[FieldAttraction]; s != "" {
		for rest := s; rest != ""; {
			piece, tail, _ := strings.Cut(rest, ";")
			if piece = trim(piece); piece != "" {
				t.sights = append(t.sights, readPlace(piece, i+1))
			}
			rest = tail
		}
	}
	d.after = len(t.sights)
	if d.modes == 1<<modeFlight {
		d.number, _ = flightNumber(d.text[FieldTransportation])
		d.number = trim(d.number)
		from, to := d.ride()
		d.flight = t.w.flights.onRoute(d.number, from, to, t.date(i))
	}
}

func (d *strictDay) readCity() {
	s := d.text[FieldCity]
	d.move = strings.Contains(s, "from")
	if !d.move {
		d.to = cityOf(s)
		d.readable = d.to != ""
		return
	}
	from, to, ok := fromTo(s)
	d.from, d.to = cityOf(from), cityOf(to)
	d.readable = ok && d.from != "" && d.to != ""
}

func (d *strictDay) readRide() {
	s := d.text[FieldTransportation]
	if s == "" {
		return
	}
	d.modes = modesIn(s)
	from, to, ok := fromTo(s)
	d.rideFrom, d.rideTo = cityOf(from), cityOf(to)
	d.ownRoute = ok && d.rideFrom != "" && d.rideTo != ""
}

// ride returns from where to where the transport goes: what its own text
// says, else the move of the day.
func (d *strictDay) ride() (from, to string) {
	if d.ownRoute {
		return d.rideFrom, d.rideTo
	}
	return d.from, d.to
}

// date is the day's date, "" when the query has none for it.
func (t *strictTrip) date(i int) string {
	if i < len(t.q.Dates) {
		return t.q.Dates[i]
	}
	return ""
}

// single returns the one mode the transport text names, modeOther if it
// names none or several.
func (d *strictDay) single() int {
	switch d.modes {
	case 1 << modeFlight:
		return modeFlight
	case 1 << modeTaxi:
		return modeTaxi
	case 1 << modeDriving:
		return modeDriving
	}
	return modeOther
}

var modeWords = [...]struct {
	word string
	mode uint8
}{
	{"flight", modeFlight}, {"taxi", modeTaxi}, {"self-driving", modeDriving}, {"driving", modeDriving}, {"drive", modeDriving}, {"car", modeDriving},
}

// modesIn finds the modes whose words stand in a text, as whole words in any case.
func modesIn(s string) (set uint8) {
	for i := 0; i < len(s); {
		if !isWordByte(s[i]) {
			i++
			continue
		}
		end := i + 1
		for end < len(s) && isWordByte(s[end]) {
			end++
		}
		for k := range modeWords {
			if m := &modeWords[k]; end-i == len(m.word) && hasPrefixFold(s[i:end], m.word) {
				set |= 1 << m.mode
			}
		}
		i = end
	}
	return set
}

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c >= '0' && c <= '9' || c >= 0x80
}

// wrongKind fails when one of the fields is not a text.
func (t *strictTrip) wrongKind(fields ...Field) finding {
	for i := range t.days {
		if t.days[i].bad == noField {
			continue
		}
		for _, f := range fields {
			if v := &t.days[i].raw.Fields[f]; v.Kind != String && v.Kind != Null && v.Kind != Absent {
				return fail(i+1, f, v.show(), "Day %d %s is %s, but it must be a text.", i+1, fieldWords[f], v.Kind)
			}
		}
	}
	return pass
}
