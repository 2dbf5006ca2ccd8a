package travel

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"sort"
	"strconv"
	"strings"
)

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

var kindNames = [...]string{"absent", "null", "a truth value", "a number", "a text", "a list", "an object"}

// String names the kind as reasons do: "a list".
func (k Kind) String() string { return kindNames[k] }

// Value is one JSON value with its type.
type Value struct {
	Kind  Kind
	Int   bool     // the number was written without point or exponent
	Num   float64  // the number, or 0 and 1 for a truth value
	Str   string   // the text
	Items []Value  // elements of a list, values of an object
	Keys  []string // keys of an object, sorted, parallel to Items
}

// Text makes a text value.
func Text(s string) Value { return Value{Kind: String, Str: s} }

// ParseValue reads one JSON value and refuses anything after it.
func ParseValue(src []byte) (Value, error) {
	dec := json.NewDecoder(bytes.NewReader(src))
	dec.UseNumber()
	var x any
	if err := dec.Decode(&x); err != nil {
		return Value{}, fmt.Errorf("parse json: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return Value{}, fmt.Errorf("parse json: text after the value at byte %d", dec.InputOffset())
	}
	return toValue(x), nil
}

// UnmarshalJSON keeps the JSON type.
func (v *Value) UnmarshalJSON(src []byte) error {
	x, err := ParseValue(src)
	if err == nil {
		*v = x
	}
	return err
}

// toValue converts what encoding/json (with UseNumber) decoded into any.
func toValue(x any) Value {
	switch x := x.(type) {
	case nil:
		return Value{Kind: Null}
	case bool:
		if x {
			return Value{Kind: Bool, Num: 1}
		}
		return Value{Kind: Bool}
	case json.Number:
		n, _ := x.Float64() // out of range gives ±Inf, which is as true as the number
		return Value{Kind: Number, Num: n, Int: !strings.ContainsAny(string(x), ".eE")}
	case string:
		return Text(x)
	case []any:
		v := Value{Kind: List, Items: make([]Value, len(x))}
		for i := range x {
			v.Items[i] = toValue(x[i])
		}
		return v
	case map[string]any:
		v := Value{Kind: Object, Items: make([]Value, len(x)), Keys: make([]string, 0, len(x))}
		for k := range x {
			v.Keys = append(v.Keys, k)
		}
		sort.Strings(v.Keys)
		for i, k := range v.Keys {
			v.Items[i] = toValue(x[k])
		}
		return v
	}
	return Value{Kind: Null}
}

// MarshalJSON writes the value with its type.
func (v Value) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	v.write(&b)
	return b.Bytes(), nil
}

func (v *Value) write(b *bytes.Buffer) {
	switch v.Kind {
	case Bool:
		b.WriteString(strconv.FormatBool(v.Num != 0))
	case Number:
		if v.Num > 1e300 || v.Num < -1e300 {
			b.WriteString("0")
			return
		}
		b.WriteString(strconv.FormatFloat(v.Num, 'f', -1, 64))
	case String:
		writeJSONString(b, v.Str)
	case List:
		b.WriteByte('[')
		for i := range v.Items {
			if i > 0 {
				b.WriteByte(',')
			}
			v.Items[i].write(b)
		}
		b.WriteByte(']')
	case Object:
		b.WriteByte('{')
		for i := range v.Items {
			if i > 0 {
				b.WriteByte(',')
			}
			writeJSONString(b, v.Keys[i])
			b.WriteByte(':')
			v.Items[i].write(b)
		}
		b.WriteByte('}')
	default:
		b.WriteString("null")
	}
}

// writeJSONString writes s quoted, without escaping what HTML would need.
func writeJSONString(b *bytes.Buffer, s string) {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string into a buffer cannot fail
	b.Truncate(b.Len() - 1)
}

// Get returns the value under a key; Kind Absent when there is none.
func (v *Value) Get(key string) Value {
	if v.Kind == Object {
		for i, k := range v.Keys {
			if k == key {
				return v.Items[i]
			}
		}
	}
	return Value{}
}

// truthy tells whether Python takes the value for true.
func (v *Value) truthy() bool {
	switch v.Kind {
	case Bool, Number:
		return v.Num != 0
	case String:
		return v.Str != ""
	case List, Object:
		return len(v.Items) > 0
	}
	return false
}

// is tells whether the value is exactly this text.
func (v *Value) is(s string) bool { return v.Kind == String && v.Str == s }

// equal compares as Python does: a truth value is a number, objects ignore order.
func (v *Value) equal(o *Value) bool {
	switch {
	case (v.Kind == Bool || v.Kind == Number) && (o.Kind == Bool || o.Kind == Number):
		return v.Num == o.Num
	case v.Kind != o.Kind:
		return false
	case v.Kind == String:
		return v.Str == o.Str
	case v.Kind == List || v.Kind == Object:
		if len(v.Items) != len(o.Items) {
			return false
		}
		for i := range v.Items {
			if v.Kind == Object && v.Keys[i] != o.Keys[i] || !v.Items[i].equal(&o.Items[i]) {
				return false
			}
		}
	}
	return true
}

// show returns the value for a reason: a text as it is, else its JSON.
func (v *Value) show() string {
	if v.Kind == String {
		return v.Str
	}
	if v.Kind == Absent {
		return ""
	}
	b, _ := v.MarshalJSON()
	return string(b)
}
