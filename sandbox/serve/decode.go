package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"alidade/ablation"
)

// decode reads exactly one JSON object with known keys only. An empty body is
// an empty object. Its errors name the key, its value and what is allowed.
func decode(src []byte, to any) error {
	src = bytes.TrimSpace(src)
	if len(src) == 0 {
		src = []byte("{}")
	}
	d := json.NewDecoder(bytes.NewReader(src))
	d.DisallowUnknownFields()
	err := d.Decode(to)
	if err == nil {
		if _, err := d.Token(); !errors.Is(err, io.EOF) {
			return &Problem{Status: http.StatusBadRequest, Text: "there is text behind the JSON object"}
		}
		return required(src, to)
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return refuse(firstOf(wrong.Field, "body"), firstOf(literal(src, wrong), wrong.Value), typeWords(wrong.Type))
	}
	if bad := unknownKeys(src, reflect.TypeOf(to).Elem()); len(bad) > 0 {
		return &ablation.Invalid{Fields: bad}
	}
	return &Problem{Status: http.StatusBadRequest, Text: "the body is not sound JSON: " + err.Error()}
}

// required tells which keys that must be there are absent. They are those
// whose zero value would be taken for a value.
func required(src []byte, to any) error {
	v := reflect.ValueOf(to).Elem()
	var bad []ablation.FieldError
	var keys map[string]json.RawMessage
	for i := range v.NumField() {
		name, rest, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if rest != "" || !v.Field(i).IsZero() {
			continue
		}
		if keys == nil {
			_ = json.Unmarshal(src, &keys) // it was decoded before
		}
		if _, ok := keys[name]; !ok {
			bad = append(bad, ablation.FieldError{Field: name, Problem: "missing", Allowed: typeWords(v.Type().Field(i).Type)})
		}
	}
	if len(bad) > 0 {
		return &ablation.Invalid{Fields: bad}
	}
	return nil
}

func unknownKeys(src []byte, t reflect.Type) []ablation.FieldError {
	var keys map[string]json.RawMessage
	if json.Unmarshal(src, &keys) != nil {
		return nil
	}
	names := fieldNames(t)
	var bad []ablation.FieldError
	for key, value := range keys {
		known := slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, key) })
		if !known {
			f := fieldError(key, string(value), strings.Join(names, ", "))
			f.Problem, f.Suggestion = "unknown key", ablation.Nearest(key, names)
			bad = append(bad, f)
		}
	}
	slices.SortFunc(bad, func(a, b ablation.FieldError) int { return strings.Compare(a.Field, b.Field) })
	return bad
}

// fieldNames lists the JSON keys of a struct.
func fieldNames(t reflect.Type) []string {
	names := make([]string, 0, t.NumField())
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// literal returns a top-level value as it was written.
func literal(src []byte, e *json.UnmarshalTypeError) string {
	var keys map[string]json.RawMessage
	if json.Unmarshal(src, &keys) != nil {
		return ""
	}
	return string(keys[e.Field])
}

func typeWords(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Uint64:
		return "a whole number, 0 to 18446744073709551615"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list"
	case reflect.Pointer:
		return typeWords(t.Elem())
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	return fmt.Sprintf("a %s", t.Kind())
}
