package travel

import (
	"strconv"

	"alidade/trainer"
)

// Field numbers the keys of a day that the checks read.
type Field uint8

// The fields of a day, in the order in which a plan lists them.
const (
	FieldDay Field = iota
	FieldCity
	FieldTransportation
	FieldBreakfast
	FieldAttraction
	FieldLunch
	FieldDinner
	FieldAccommodation
	nFields
	noField = nFields
)

var fieldNames = [nFields + 1]string{"day", "current_city", "transportation", "breakfast", "attraction", "lunch", "dinner", "accommodation", ""}

// String returns the field's key in a plan.
func (f Field) String() string { return fieldNames[f] }

// Plan is an answer: a list of days, each a JSON value. The JSON types are
// kept, because the benchmark's own evaluators do different things to a null,
// a number and a text, and their verdicts can only be reproduced from these.
// The zero Plan is undelivered. A Plan is not changed by judging it.
type Plan struct {
	Root Value    // the JSON value when it is not a list; Kind List otherwise, with Items left out
	Days []RawDay // the entries when it is a list
}

// RawDay is one entry of a plan.
type RawDay struct {
	Kind   Kind             // Object in a sound plan
	Other  Value            // the entry when it is not an object
	Fields [nFields]Value   // by Field; Kind Absent when the key is missing
	Extra  map[string]Value // keys that no check knows
}

// NewPlan makes a plan from days of texts.
func NewPlan(days []Day) Plan {
	p := Plan{Root: Value{Kind: List}, Days: make([]RawDay, len(days))}
	for i := range days {
		d, r := &days[i], &p.Days[i]
		r.Kind = Object
		r.Fields = [nFields]Value{
			FieldDay:            {Kind: Number, Int: true, Num: float64(d.Day)},
			FieldCity:           Text(d.City),
			FieldTransportation: Text(d.Transportation),
			FieldBreakfast:      Text(d.Breakfast),
			FieldAttraction:     Text(d.Attraction),
			FieldLunch:          Text(d.Lunch),
			FieldDinner:         Text(d.Dinner),
			FieldAccommodation:  Text(d.Accommodation),
		}
	}
	return p
}

// PlanOf makes a plan of any JSON value.
func PlanOf(v Value) Plan {
	if v.Kind != List {
		return Plan{Root: v}
	}
	p := Plan{Root: Value{Kind: List}, Days: make([]RawDay, len(v.Items))}
	for i := range v.Items {
		p.Days[i] = rawDay(v.Items[i])
	}
	return p
}

func rawDay(v Value) RawDay {
	if v.Kind != Object {
		return RawDay{Kind: v.Kind, Other: v}
	}
	d := RawDay{Kind: Object}
	for i, k := range v.Keys {
		if f := fieldOf(k); f != noField && d.Fields[f].Kind == Absent {
			d.Fields[f] = v.Items[i]
			continue
		}
		if d.Extra == nil {
			d.Extra = map[string]Value{}
		}
		d.Extra[k] = v.Items[i]
	}
	return d
}

// fieldOf finds the field of a key; annotated plans write "days" for "day".
func fieldOf(key string) Field {
	if key == "days" {
		return FieldDay
	}
	for f, name := range fieldNames[:nFields] {
		if name == key {
			return Field(f)
		}
	}
	return noField
}

// Delivered tells whether there is a plan at all: null, [], {}, "" are none.
func (p *Plan) Delivered() bool {
	if p.Root.Kind == List {
		return len(p.Days) > 0
	}
	return p.Root.truthy()
}

// sound tells whether every day is an object that has all seven texts.
func (p *Plan) sound() bool {
	for i := range p.Days {
		d := &p.Days[i]
		for f := FieldCity; f < nFields; f++ {
			if d.Kind != Object || d.Fields[f].Kind != String {
				return false
			}
		}
	}
	return len(p.Days) > 0
}

// Strict returns the days as texts: what is not a text becomes its JSON, null
// and what is missing become "".
func (p Plan) Strict() []Day {
	days := make([]Day, len(p.Days))
	for i := range p.Days {
		r, d := &p.Days[i], &days[i]
		d.Day = i + 1
		if v := &r.Fields[FieldDay]; v.Kind == Number {
			d.Day = int(v.Num)
		} else if n, err := strconv.Atoi(v.Str); err == nil {
			d.Day = n
		}
		for f := FieldCity; f < nFields; f++ {
			if v := &r.Fields[f]; v.Kind != Null && v.Kind != Absent {
				d.set(f, v.show())
			}
		}
	}
	return days
}

func (d *Day) set(f Field, s string) {
	switch f {
	case FieldCity:
		d.City = s
	case FieldTransportation:
		d.Transportation = s
	case FieldBreakfast:
		d.Breakfast = s
	case FieldAttraction:
		d.Attraction = s
	case FieldLunch:
		d.Lunch = s
	case FieldDinner:
		d.Dinner = s
	case FieldAccommodation:
		d.Accommodation = s
	}
}

// record copies a day into the form that trajectories carry.
func (d *Day) record() trainer.Day {
	return trainer.Day{
		Day: d.Day, City: d.City, Transportation: d.Transportation, Breakfast: d.Breakfast,
		Lunch: d.Lunch, Dinner: d.Dinner, Attraction: d.Attraction, Accommodation: d.Accommodation,
	}
}
