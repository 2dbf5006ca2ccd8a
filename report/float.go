package report

import (
	"encoding/json"
	"math"
	"strconv"
)

// Float is a number whose JSON form keeps NaN and the infinities, as the
// texts "NaN", "+Inf" and "-Inf".
type Float float64

// MarshalJSON implements json.Marshaler.
func (f Float) MarshalJSON() ([]byte, error) {
	v := float64(f)
	switch {
	case math.IsNaN(v):
		return []byte(`"NaN"`), nil
	case math.IsInf(v, 1):
		return []byte(`"+Inf"`), nil
	case math.IsInf(v, -1):
		return []byte(`"-Inf"`), nil
	}
	return json.Marshal(v)
}

// UnmarshalJSON implements json.Unmarshaler.
func (f *Float) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		v, err := strconv.ParseFloat(s, 64)
		*f = Float(v)
		return err
	}
	return json.Unmarshal(b, (*float64)(f))
}

func floats(x []float64) []Float {
	out := make([]Float, len(x))
	for i, v := range x {
		out[i] = Float(v)
	}
	return out
}

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
