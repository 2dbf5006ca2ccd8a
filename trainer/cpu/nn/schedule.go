package nn

import (
	"fmt"
	"math"
)

// Schedule is a learning rate over optimizer steps: linear warm-up to Peak,
// then constant or half a cosine down to Floor at step Total.
type Schedule struct {
	Kind   string  // "constant" or "cosine"
	Peak   float64 // learning rate after warm-up
	Floor  float64 // where the cosine ends; not used by "constant"
	Warmup int64   // steps of warm-up, 0 for none
	Total  int64   // steps in all, for "cosine"
}

// Validate reports the first field that is out of range.
func (s Schedule) Validate() error {
	switch {
	case s.Kind != "constant" && s.Kind != "cosine":
		return fmt.Errorf("schedule kind %q: allowed are \"constant\" and \"cosine\"", s.Kind)
	case !(s.Peak >= 0) || math.IsInf(s.Peak, 0):
		return fmt.Errorf("schedule peak %v: allowed is a finite number from 0", s.Peak)
	case !(s.Floor >= 0 && s.Floor <= s.Peak):
		return fmt.Errorf("schedule floor %v: allowed is 0 to the peak %v", s.Floor, s.Peak)
	case s.Warmup < 0:
		return fmt.Errorf("schedule warmup %d: allowed is 0 or more", s.Warmup)
	case s.Kind == "cosine" && s.Total <= s.Warmup:
		return fmt.Errorf("schedule total %d: allowed is more than the warm-up of %d", s.Total, s.Warmup)
	}
	return nil
}

// At returns the learning rate of step i, counted from 0.
func (s Schedule) At(i int64) float64 {
	if i < s.Warmup {
		return s.Peak * float64(i+1) / float64(s.Warmup)
	}
	if s.Kind != "cosine" {
		return s.Peak
	}
	part := min(float64(i-s.Warmup)/float64(max(s.Total-s.Warmup, 1)), 1)
	return s.Floor + (s.Peak-s.Floor)*(1+math.Cos(math.Pi*part))/2
}
