package ablation

import (
	"fmt"
	"slices"
)

// A Study is a question and the design that answers it. It is what a study
// file holds and what the New study page makes.
type Study struct {
	Name          string           `json:"name"`               // short, file-name safe
	Question      string           `json:"question,omitempty"` // one sentence; heads the report
	Template      string           `json:"template,omitempty"` // id of the study template it started from; links published values
	Base          Recipe           `json:"base"`               // complete, defaults filled in
	Factors       []Factor         `json:"factors,omitempty"`
	Design        Design           `json:"design"`         // grid, one-factor, list
	Arms          []map[string]any `json:"arms,omitempty"` // design list: recipe key → level, one map an arm
	Seeds         []uint64         `json:"seeds"`
	Metric        string           `json:"metric"`                   // primary metric, e.g. "eval/success"
	MinDifference float64          `json:"min_difference,omitempty"` // smallest difference that matters, in the metric's unit (success: a fraction)
	Concurrency   int              `json:"concurrency,omitempty"`    // most runs at once; 0 = no limit
	Priority      int              `json:"priority,omitempty"`       // of its runs in the queue; larger first
	Halving       *Halving         `json:"halving,omitempty"`        // stop weak runs early; nil = every run goes to its end
	Notes         string           `json:"notes,omitempty"`
}

// Halving ends weak runs early, by asynchronous successive halving: at each
// rung a run goes on only if its metric is among the best 1/Reduction of the
// runs that have reached that rung so far. What is ended is censored, not
// failed.
type Halving struct {
	Metric    string  `json:"metric"`    // larger is better, e.g. "eval/success"
	Rungs     []int64 `json:"rungs"`     // steps, ascending
	Reduction int     `json:"reduction"` // 2 or more
}

// Keeps reports whether a run goes on at a rung: values are those of all runs
// that have reached it, its own among them. With fewer runs than Reduction
// nothing can be said and it goes on.
func (h Halving) Keeps(own float64, values []float64) bool {
	n := len(values)
	if n < h.Reduction {
		return true
	}
	better := 0
	for _, v := range values {
		if v > own {
			better++
		}
	}
	return better < max(1, n/h.Reduction)
}

// check returns what is wrong with the halving.
func (h Halving) check() []FieldError {
	var bad []FieldError
	add := func(field, value, allowed string) {
		bad = append(bad, FieldError{Field: "halving." + field, Value: value, Problem: "wrong value", Allowed: allowed})
	}
	if h.Metric == "" {
		add("metric", "", "the name of a metric that is better when larger, such as eval/success")
	}
	if h.Reduction < 2 || h.Reduction > 100 {
		add("reduction", fmt.Sprint(h.Reduction), "a whole number from 2 to 100: of so many runs one goes on")
	}
	if len(h.Rungs) == 0 || h.Rungs[0] < 1 || !slices.IsSorted(h.Rungs) || len(slices.Compact(slices.Clone(h.Rungs))) != len(h.Rungs) {
		add("rungs", fmt.Sprint(h.Rungs), "steps from 1 up, ascending, such as [20, 60, 180]")
	}
	return bad
}

// Design names how factors become arms.
type Design string

// The designs of the first release.
const (
	DesignGrid      Design = "grid"
	DesignOneFactor Design = "one-factor"
	DesignList      Design = "list"
)

// A Factor is an axis of the study: any recipe key and its values.
type Factor struct {
	Key    string `json:"key"`            // recipe key, e.g. "reward.kind"
	Name   string `json:"name,omitempty"` // label; defaults to the last part of the key
	Levels []any  `json:"levels"`         // values of the key's type; the first is the reference level
}

// An Arm is one combination of levels, hence one recipe.
type Arm struct {
	Index  int            `json:"index"`  // 0-based place in the design
	Label  string         `json:"label"`  // "MACRO", "MACRO × 5 %"; "base" when there is no factor
	Levels map[string]any `json:"levels"` // recipe key → value, only the factors
	Recipe Recipe         `json:"recipe"`
	Hash   string         `json:"hash"` // of the canonical recipe JSON; hex, 16 digits
}

// A Planned run is what Expand yields: one arm with one seed.
type Planned struct {
	Arm  Arm
	Seed uint64
}
