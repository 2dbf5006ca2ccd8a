package ablation

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Get returns the value of a recipe key in its canonical type: int64, uint64,
// float64, bool, string, []string, []float64 or map[string]string.
func Get(r *Recipe, key string) (any, error) {
	v, ok := locate(reflect.ValueOf(r).Elem(), key)
	if !ok {
		return nil, unknownKey(key)
	}
	switch v.Kind() {
	case reflect.Int, reflect.Int64:
		return v.Int(), nil
	case reflect.Uint64:
		return v.Uint(), nil
	}
	return v.Interface(), nil
}

// Set gives a recipe key a value, which may come from YAML, JSON or a form
// (texts of numbers and booleans are accepted for those kinds). A value of
// the wrong type or out of range is refused by a FieldError.
func Set(r *Recipe, key string, value any) error {
	f, ok := FieldOf(key)
	if !ok {
		return unknownKey(key)
	}
	v, ok := locate(reflect.ValueOf(r).Elem(), key)
	if !ok {
		return unknownKey(key)
	}
	canon, err := f.Coerce(value)
	if err != nil {
		return err
	}
	v.Set(reflect.ValueOf(canon).Convert(v.Type()))
	return nil
}

// Coerce returns value in the field's canonical type, or a FieldError.
func (f Field) Coerce(value any) (any, error) {
	bad := func(problem string) (any, error) {
		return nil, FieldError{Field: f.Key, Value: fmt.Sprint(value), Problem: problem, Allowed: f.Allowed()}
	}
	switch f.Kind {
	case KindInt:
		n, ok := asFloat(value)
		if !ok || n != math.Trunc(n) {
			return bad("wrong type")
		}
		if !f.inRange(n) {
			return bad("out of range")
		}
		return int64(n), nil
	case KindUint:
		if s, ok := value.(string); ok {
			n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 64)
			if err != nil {
				return bad("wrong type")
			}
			return n, nil
		}
		n, ok := asFloat(value)
		if !ok || n != math.Trunc(n) || n < 0 || n > 1<<53 {
			return bad("wrong type")
		}
		return uint64(n), nil
	case KindFloat:
		n, ok := asFloat(value)
		if !ok || math.IsNaN(n) || math.IsInf(n, 0) {
			return bad("wrong type")
		}
		if !f.inRange(n) {
			return bad("out of range")
		}
		return n, nil
	case KindBool:
		switch b := value.(type) {
		case bool:
			return b, nil
		case string:
			if v, err := strconv.ParseBool(b); err == nil {
				return v, nil
			}
		}
		return bad("wrong type")
	case KindEnum:
		s, ok := value.(string)
		if !ok {
			return bad("wrong type")
		}
		if !slices.Contains(f.Enum, s) {
			e := FieldError{Field: f.Key, Value: s, Problem: "unknown value", Allowed: f.Allowed(), Suggestion: Nearest(s, f.Enum)}
			return nil, e
		}
		return s, nil
	case KindString:
		s, ok := value.(string)
		if !ok {
			return bad("wrong type")
		}
		return s, nil
	case KindList:
		return coerceList(f, value)
	case KindFloats:
		return coerceFloats(f, value)
	case KindMap:
		return coerceMap(f, value)
	}
	return bad("unknown kind of field")
}

func (f Field) inRange(n float64) bool {
	return (f.Min == 0 && f.Max == 0) || (n >= f.Min && n <= f.Max)
}

func asFloat(v any) (float64, bool) {
	switch n := v.(type) {
	case int:
		return float64(n), true
	case int64:
		return float64(n), true
	case uint64:
		return float64(n), true
	case float64:
		return n, true
	case string:
		x, err := strconv.ParseFloat(strings.TrimSpace(n), 64)
		return x, err == nil
	}
	return 0, false
}

func coerceList(f Field, value any) (any, error) {
	switch l := value.(type) {
	case nil:
		return []string(nil), nil
	case []string:
		return l, nil
	case []any:
		out := make([]string, len(l))
		for i, x := range l {
			s, ok := x.(string)
			if !ok {
				return nil, FieldError{Field: f.Key, Value: fmt.Sprint(x), Problem: "wrong type", Allowed: f.Allowed()}
			}
			out[i] = s
		}
		return out, nil
	}
	return nil, FieldError{Field: f.Key, Value: fmt.Sprint(value), Problem: "wrong type", Allowed: f.Allowed()}
}

func coerceFloats(f Field, value any) (any, error) {
	var items []any
	switch l := value.(type) {
	case nil:
		return []float64(nil), nil
	case []float64:
		for _, x := range l {
			items = append(items, x)
		}
	case []any:
		items = l
	case string:
		for _, s := range strings.FieldsFunc(l, func(r rune) bool { return r == ',' || r == ' ' }) {
			items = append(items, s)
		}
	default:
		return nil, FieldError{Field: f.Key, Value: fmt.Sprint(value), Problem: "wrong type", Allowed: f.Allowed()}
	}
	out := make([]float64, len(items))
	for i, x := range items {
		n, ok := asFloat(x)
		if !ok || !f.inRange(n) || math.IsNaN(n) {
			return nil, FieldError{Field: f.Key, Value: fmt.Sprint(x), Problem: "wrong value", Allowed: f.Allowed()}
		}
		out[i] = n
	}
	return out, nil
}

func coerceMap(f Field, value any) (any, error) {
	out := map[string]string{}
	switch m := value.(type) {
	case nil:
		return out, nil
	case map[string]string:
		return m, nil
	case map[string]any:
		for k, x := range m {
			s, ok := x.(string)
			if n, isNumber := asFloat(x); f.numeric() && isNumber {
				s, ok = strconv.FormatFloat(n, 'g', -1, 64), true
			}
			if !ok {
				return nil, FieldError{Field: f.Key + "." + k, Value: fmt.Sprint(x), Problem: "wrong type", Allowed: "a text"}
			}
			out[k] = s
		}
		return out, nil
	}
	return nil, FieldError{Field: f.Key, Value: fmt.Sprint(value), Problem: "wrong type", Allowed: f.Allowed()}
}

// locate finds the struct field whose JSON path is key.
func locate(v reflect.Value, key string) (reflect.Value, bool) {
	name, rest, nested := strings.Cut(key, ".")
	t := v.Type()
	for i := range t.NumField() {
		tag, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if tag != name {
			continue
		}
		if !nested {
			return v.Field(i), true
		}
		if v.Field(i).Kind() == reflect.Struct {
			return locate(v.Field(i), rest)
		}
		return reflect.Value{}, false
	}
	return reflect.Value{}, false
}

func unknownKey(key string) error {
	return FieldError{Field: key, Problem: "unknown key", Suggestion: Nearest(key, FieldKeys()), Allowed: "a recipe key, such as reward.kind or data.prompts"}
}
