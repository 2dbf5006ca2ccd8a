package trainer

import (
	"errors"
	"fmt"
	"math"
	"strconv"
)

// MarshalJSON writes a number, or one of the strings "NaN", "+Inf", "-Inf".
func (f Float) MarshalJSON() ([]byte, error) { return f.append(nil), nil }

func (f Float) append(b []byte) []byte {
	v := float64(f)
	switch {
	case math.IsNaN(v):
		return append(b, `"NaN"`...)
	case math.IsInf(v, 1):
		return append(b, `"+Inf"`...)
	case math.IsInf(v, -1):
		return append(b, `"-Inf"`...)
	}
	return strconv.AppendFloat(b, v, 'g', -1, 64)
}

// UnmarshalJSON reads what MarshalJSON writes, and nothing else: null, other
// strings and numbers outside float64 are errors.
func (f *Float) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case `"NaN"`:
		*f = Float(math.NaN())
		return nil
	case `"+Inf"`:
		*f = Float(math.Inf(1))
		return nil
	case `"-Inf"`:
		*f = Float(math.Inf(-1))
		return nil
	}
	v, err := strconv.ParseFloat(string(b), 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return &valueError{CauseNumber, fmt.Sprintf("%s is outside float64", clip(b))}
	case err != nil:
		return &valueError{CauseType, fmt.Sprintf(`value %s; allowed: a number, "NaN", "+Inf" or "-Inf"`, clip(b))}
	}
	*f = Float(v)
	return nil
}

// valueError is a fault in a value that is well-formed JSON.
type valueError struct {
	cause Cause
	text  string
}

func (e *valueError) Error() string { return e.text }

// clip shortens a piece of a line for a message.
func clip(b []byte) string {
	const most = 60
	if len(b) <= most {
		return fmt.Sprintf("%q", b)
	}
	return fmt.Sprintf("%q…", b[:most])
}
