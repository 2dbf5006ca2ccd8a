package rllm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// decode reads a body. Keys that are not known are left alone: the client's
// version may be newer.
func decode(body []byte, to any) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return refuse("body", "", "empty", "a JSON object")
	}
	src := quoteNaN(body)
	err := json.Unmarshal(src, to)
	var wrong *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	var badStep *stepError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &badStep):
		return refuse("step", badStep.value, "not a step", "a whole number, 0 or more")
	case errors.As(err, &wrong):
		field := wrong.Field
		if field == "" {
			field = "body"
		}
		return refuse(field, wrong.Value, "wrong type", plain(wrong.Type.String()))
	case errors.As(err, &syntax):
		at := min(max(int(syntax.Offset)-1, 0), len(src))
		return refuse("body", string(src[max(0, at-40):min(len(src), at+40)]), "not JSON: "+err.Error(), "a JSON object")
	}
	return refuse("body", err.Error(), "not readable", "a JSON object")
}

// plain names a Go type in JSON's words.
func plain(t string) string {
	t = strings.TrimPrefix(t, "*")
	switch {
	case strings.HasPrefix(t, "int"), strings.HasPrefix(t, "uint"):
		return "a whole number"
	case strings.HasPrefix(t, "float"):
		return "a number"
	case t == "bool":
		return "true or false"
	case t == "string":
		return "a text"
	case strings.HasPrefix(t, "[]"):
		return "a list"
	}
	return "an object"
}

// bareNumbers are what Python's json writes for numbers that JSON does not have.
var bareNumbers = []string{"-Infinity", "Infinity", "NaN"}

// quoteNaN puts quotes around bare NaN and Infinity outside texts.
func quoteNaN(src []byte) []byte {
	if !bytes.Contains(src, []byte("NaN")) && !bytes.Contains(src, []byte("Infinity")) {
		return src
	}
	out := make([]byte, 0, len(src)+64)
	inText := false
	for i := 0; i < len(src); i++ {
		c := src[i]
		switch {
		case inText && c == '\\' && i+1 < len(src):
			out = append(out, c)
			i++
			c = src[i]
		case c == '"':
			inText = !inText
		case !inText:
			if word := bareAt(src[i:]); word != "" {
				out = append(append(append(out, '"'), word...), '"')
				i += len(word) - 1
				continue
			}
		}
		out = append(out, c)
	}
	return out
}

func bareAt(src []byte) string {
	for _, word := range bareNumbers {
		if bytes.HasPrefix(src, []byte(word)) {
			return word
		}
	}
	return ""
}

// number reads a metric's value. null, true and false are values too: a
// framework's json writes missing numbers as null.
func number(src json.RawMessage) (v float64, ok bool) {
	switch text := strings.Trim(string(src), `"`); text {
	case "null", "NaN", "nan":
		return math.NaN(), true
	case "Infinity", "inf", "+Inf":
		return math.Inf(1), true
	case "-Infinity", "-inf", "-Inf":
		return math.Inf(-1), true
	case "true":
		return 1, true
	case "false":
		return 0, true
	}
	v, err := strconv.ParseFloat(string(src), 64)
	return v, err == nil || errors.Is(err, strconv.ErrRange)
}

// text writes a free-form value for a person: a text as it is, else JSON.
func text(src json.RawMessage) string {
	var s string
	if len(src) == 0 || string(src) == "null" {
		return ""
	}
	if json.Unmarshal(src, &s) == nil {
		return s
	}
	return string(src)
}

// step is a step of training in a body; it must be there.
type step struct {
	set bool
	n   int64
}

// UnmarshalJSON reads a whole number, also one written as 12.0.
func (s *step) UnmarshalJSON(src []byte) error {
	v, err := strconv.ParseFloat(string(src), 64)
	if err != nil || v < 0 || v != math.Trunc(v) || v > 1<<53-1 {
		return &stepError{string(src)}
	}
	s.set, s.n = true, int64(v)
	return nil
}

type stepError struct{ value string }

func (e *stepError) Error() string { return fmt.Sprintf("step is %s", e.value) }
