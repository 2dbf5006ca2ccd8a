package travel

import (
	"strings"
	"unicode/utf8"
)

// The two public evaluators are Python programs that take any JSON for a
// plan, and some plans make them stop with an exception. What they do is
// defined by what Python does with each value, so the operations they use are
// written out here. An exception is a panic of type pyError, caught by
// [catch] around each check; it never leaves this package.

// pyError is the name of a Python exception.
type pyError string

const (
	typeError      pyError = "TypeError"
	keyError       pyError = "KeyError"
	indexError     pyError = "IndexError"
	attributeError pyError = "AttributeError"
	valueError     pyError = "ValueError"
)

// catch runs fn and returns the exception it raises, "" for none.
func catch(fn func()) (exception string) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case pyError:
			exception = string(r)
		default:
			panic(r)
		}
	}()
	fn()
	return ""
}

// length is len(plan).
func (p *Plan) length() int {
	switch p.Root.Kind {
	case List:
		return len(p.Days)
	case Object:
		return len(p.Root.Items)
	case String:
		return utf8.RuneCountInString(p.Root.Str)
	}
	panic(typeError)
}

// at is plan[i].
func (p *Plan) at(i int) *RawDay {
	switch p.Root.Kind {
	case List:
		if i >= len(p.Days) {
			panic(indexError)
		}
		return &p.Days[i]
	case Object:
		panic(keyError) // a number is never a key of a JSON object
	case String:
		for _, r := range p.Root.Str {
			if i--; i < 0 {
				return &RawDay{Kind: String, Other: Text(string(r))}
			}
		}
		panic(indexError)
	}
	panic(typeError)
}

// item is day[key].
func (d *RawDay) item(f Field) *Value {
	if d.Kind != Object {
		panic(typeError)
	}
	if d.Fields[f].Kind == Absent {
		panic(keyError)
	}
	return &d.Fields[f]
}

// has is: key in day.
func (d *RawDay) has(f Field) bool {
	if d.Kind == Object {
		return d.Fields[f].Kind != Absent
	}
	return contains(&d.Other, f.String())
}

var none = Value{Kind: Null}

// get is day.get(key).
func (d *RawDay) get(f Field) *Value {
	if d.Kind != Object {
		panic(attributeError)
	}
	if d.Fields[f].Kind == Absent {
		return &none
	}
	return &d.Fields[f]
}

// filled is day[key] if the key is there and the value neither empty nor "-", else nil.
func (d *RawDay) filled(f Field) *Value {
	if !d.has(f) {
		return nil
	}
	return d.item(f).filled()
}

// gotten is the same by day.get(key).
func (d *RawDay) gotten(f Field) *Value { return d.get(f).filled() }

func (v *Value) filled() *Value {
	if !v.truthy() || v.is("-") {
		return nil
	}
	return v
}

// absent is: value in ["", "-"].
func (v *Value) absent() bool { return v.is("") || v.is("-") }

// truthy is bool(day).
func (d *RawDay) truthy() bool {
	if d.Kind != Object {
		return d.Other.truthy()
	}
	return !d.empty()
}

// empty is: day == {}.
func (d *RawDay) empty() bool {
	if d.Kind != Object || len(d.Extra) > 0 {
		return false
	}
	for f := range d.Fields {
		if d.Fields[f].Kind != Absent {
			return false
		}
	}
	return true
}

// count is the number of values of a day that are neither empty nor "-".
func (d *RawDay) count() int {
	n := 0
	for f := range d.Fields {
		if d.Fields[f].filled() != nil {
			n++
		}
	}
	for _, v := range d.Extra {
		if v.filled() != nil {
			n++
		}
	}
	return n
}

// contains is: needle in hay, for a text.
func contains(hay *Value, needle string) bool {
	switch hay.Kind {
	case String:
		return strings.Contains(hay.Str, needle)
	case List:
		for i := range hay.Items {
			if hay.Items[i].is(needle) {
				return true
			}
		}
		return false
	case Object:
		return hay.Get(needle).Kind != Absent
	}
	panic(typeError)
}

// containsValue is: needle in hay, for any value.
func containsValue(hay, needle *Value) bool {
	if needle.Kind == String {
		return contains(hay, needle.Str)
	}
	switch hay.Kind {
	case List:
		for i := range hay.Items {
			if hay.Items[i].equal(needle) {
				return true
			}
		}
		return false
	case Object:
		needle.hashed()
		return false
	}
	panic(typeError)
}

// hashed raises what Python raises for a list or an object in a set.
func (v *Value) hashed() *Value {
	if v.Kind == List || v.Kind == Object {
		panic(typeError)
	}
	return v
}

// searched is the value as the subject of a pattern: only texts can be one.
func (v *Value) searched() string {
	if v.Kind != String {
		panic(typeError)
	}
	return v.Str
}

// split is value.split(";").
func (v *Value) split() string {
	if v.Kind != String {
		panic(attributeError)
	}
	return v.Str
}
