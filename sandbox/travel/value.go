package travel

// Kind is the JSON type of a [Value].
type Kind uint8

// The kinds of value; Absent means the key is not there.
const (
	Absent Kind = iota
	Null
	Bool
	Number
	String
	List
	Object
)

// Value is one JSON value with its type.
type Value struct {
	Kind  Kind
	Int   bool     // the number was written without point or exponent
	Num   float64  // number, or 0/1 of a boolean
	Str   string   // text of a string
	Items []Value  // elements of a list, values of an object
	Keys  []string // keys of an object, parallel to Items
}
