package travel

// Plan is an answer: a list of days, each a JSON value. The JSON types are
// kept, because the benchmark's own evaluators do different things to a null,
// a number and a text, and their verdicts can only be reproduced from these.
// The zero Plan is undelivered.
type Plan struct {
	Root Value    // the whole JSON value, for plans that are not a list
	Days []RawDay // when Root is a list
}

// RawDay is one entry of a plan.
type RawDay struct {
	Value                 // the entry as such; an object in a sound plan
	Fields [nFields]Value // by Field; Kind Absent when the key is missing
}

// Field numbers the keys of a day that the checks read.
type Field uint8

// The fields of a day, in the order in which a day passes.
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
)

var fieldNames = [nFields]string{"day", "current_city", "transportation", "breakfast", "attraction", "lunch", "dinner", "accommodation"}

// String returns the field's key in a plan.
func (f Field) String() string { return fieldNames[f] }
