package ablation

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
	Notes         string           `json:"notes,omitempty"`
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
