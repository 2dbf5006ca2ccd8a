package report

import (
	"time"

	"alidade/ablation"
	"alidade/ablation/published"
	"alidade/report/chart"
)

// FormatVersion is the version of report.json.
const FormatVersion = 1

// A Report is the finding of a study and everything it rests on. Rates are
// fractions here; renderers show them in %.
type Report struct {
	Format     int        `json:"format"`
	Made       *time.Time `json:"made,omitempty"`
	Version    string     `json:"version,omitempty"`
	Study      StudyInfo  `json:"study"`
	Partial    string     `json:"partial,omitempty"` // why this is not the last word; empty for a finished study
	Headline   string     `json:"headline"`
	Metric     Metric     `json:"metric"` // primary
	Level      float64    `json:"level"`  // of all intervals
	Comparable Guard      `json:"comparability"`

	Arms        []Arm        `json:"arms"`
	Baselines   []Baseline   `json:"baselines,omitempty"`
	Results     []Result     `json:"results"` // arm × metric
	Comparisons []Comparison `json:"comparisons"`
	Curves      []XCurve     `json:"curves,omitempty"`
	Published   []Published  `json:"published,omitempty"`

	Costs      Costs      `json:"costs"`
	Sick       []Sick     `json:"sick,omitempty"`
	Examples   []Examples `json:"examples,omitempty"`
	Limits     []string   `json:"limits"`
	Provenance Provenance `json:"provenance"`
	Figures    []Figure   `json:"figures"`
}

// StudyInfo names the study and its design.
type StudyInfo struct {
	ID            ablation.StudyID  `json:"id"`
	Name          string            `json:"name"`
	Question      string            `json:"question,omitempty"`
	Template      string            `json:"template,omitempty"`
	Design        ablation.Design   `json:"design"`
	Factors       []ablation.Factor `json:"factors,omitempty"`
	Seeds         []uint64          `json:"seeds"`
	MinDifference float64           `json:"min_difference,omitempty"`
	Text          string            `json:"text"` // the design in sentences
	RunsPlanned   int               `json:"runs_planned"`
	RunsUsed      int               `json:"runs_used"`
	Notes         string            `json:"notes,omitempty"`
}

// A Metric is a measured quantity and how to show it.
type Metric struct {
	Key    string `json:"key"`
	Name   string `json:"name"`   // "sampled success"
	Unit   string `json:"unit"`   // "%", "nats", "tokens", ""
	Points string `json:"points"` // unit of differences: "points" for rates
	Rate   bool   `json:"rate"`   // a fraction, shown in %
	Lower  bool   `json:"lower_is_better,omitempty"`
}

// A Guard says whether the arms may be compared.
type Guard struct {
	OK          bool     `json:"ok"`
	Shared      []string `json:"shared"`                // what all runs have in common, in words
	Problems    []string `json:"problems,omitempty"`    // what makes a comparison doubtful
	Differences []string `json:"differences,omitempty"` // recipe keys in which arms differ, with their values
}

// An Arm is one combination of levels.
type Arm struct {
	Index  int              `json:"index"`
	Label  string           `json:"label"`
	Levels map[string]any   `json:"levels,omitempty"`
	Hash   string           `json:"recipe_hash"`
	Seeds  []uint64         `json:"seeds"` // whose runs are used
	Runs   []ablation.RunID `json:"runs"`
	Note   string           `json:"note,omitempty"` // "no finished run", "1 of 2 runs"
	Style  chart.Style      `json:"-"`
}

// An Estimate is a mean with both of its noises, each named by its method.
type Estimate struct {
	Mean     Float     `json:"mean"`
	Seeds    int       `json:"n_seeds"`
	Queries  int       `json:"n_queries,omitempty"` // 0 = not an evaluation over queries
	Samples  int       `json:"samples,omitempty"`   // rollouts a query
	Query    *Interval `json:"query_interval,omitempty"`
	Seed     *Interval `json:"seed_interval,omitempty"`
	BySeed   []Float   `json:"by_seed"`
	Warnings []string  `json:"warnings,omitempty"`
}

// An Interval is a confidence interval with its method.
type Interval struct {
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Method string  `json:"method"`
}

// A Result is one arm under one metric.
type Result struct {
	Arm    int    `json:"arm"`
	Metric Metric `json:"metric"`
	Step   int64  `json:"step"`
	Estimate
}

// A Baseline is a policy that is not an arm: random-legal, expert, the SFT
// checkpoint, SFT continued.
type Baseline struct {
	Key   string `json:"key"` // random_legal, expert, sft, sft_continued
	Label string `json:"label"`
	Estimate
}

// Families of comparisons; Holm's correction is within a family.
const (
	OverSFT     = "over SFT"
	OverControl = "over SFT continued"
	Between     = "between arms"
)

// Verdicts.
const (
	Clear     = "clear"
	Undecided = "undecided"
)

// A Comparison is a difference on the same queries and seeds.
type Comparison struct {
	Family   string `json:"family"`
	A        int    `json:"a"` // arm
	B        int    `json:"b"` // arm, or −1 in the families over a baseline
	Label    string `json:"label"`
	Estimate        // of the difference
	P        Float  `json:"p"`      // two-sided; the larger of both noises from three seeds on
	HolmP    Float  `json:"holm_p"` // within the family
	Verdict  string `json:"verdict"`
	Grade    string `json:"grade"`            // A separable and replicated, B separable on these seeds, C not separable
	Remark   string `json:"remark,omitempty"` // "smaller than the 2 points that matter"
}

// An XCurve is the primary metric against a numeric or ordered factor.
type XCurve struct {
	Factor string   `json:"factor"`
	Label  string   `json:"label"`
	Points []XPoint `json:"points"`
	NoFit  string   `json:"no_fit"` // why no curve is fitted
}

// XPoint is one arm on an XCurve.
type XPoint struct {
	Arm    int     `json:"arm"`
	Series string  `json:"series"` // the other factors' levels
	X      float64 `json:"x"`
	Label  string  `json:"label"`
}

// Published is a published value beside this study.
type Published struct {
	published.Value
	SE         Float  `json:"binomial_se"` // of its test set alone
	Arm        int    `json:"arm"`         // that has the same levels; −1 = none
	Comparable bool   `json:"comparable"`
	Why        string `json:"why,omitempty"` // "not comparable because …"
}

// Costs is what the study took.
type Costs struct {
	CPUHours float64   `json:"cpu_hours"`
	GPUHours float64   `json:"gpu_hours"`
	Wall     float64   `json:"wall_hours"` // first start to last end
	Runs     []RunCost `json:"runs"`
}

// RunCost is one run's time over all its attempts.
type RunCost struct {
	Run      ablation.RunID `json:"run"`
	Arm      int            `json:"arm"`
	Seed     uint64         `json:"seed"`
	Minutes  float64        `json:"minutes"`
	Device   string         `json:"device"`
	Attempts int            `json:"attempts"`
}

// Sick is a run that needs a word.
type Sick struct {
	Run   ablation.RunID `json:"run"`
	Arm   int            `json:"arm"`
	Seed  uint64         `json:"seed"`
	State ablation.State `json:"state"`
	Used  bool           `json:"used"` // in the results
	What  string         `json:"what"`
}

// Examples are one arm's trajectories worth reading.
type Examples struct {
	Arm      int       `json:"arm"`
	Examples []Example `json:"examples"`
}

// Provenance lets somebody make the numbers again.
type Provenance struct {
	DataHash string            `json:"data_hash"` // of every number the report is computed from
	Study    string            `json:"study_hash"`
	Panel    string            `json:"panel_hash,omitempty"`
	Trainer  map[string]string `json:"trainer,omitempty"` // what all trainers said of themselves
	Datasets []string          `json:"datasets,omitempty"`
	Seed     uint64            `json:"bootstrap_seed"`
	Resample int               `json:"bootstrap_resamples"`
	Commands []string          `json:"commands"`
}

// A Figure is a chart with its place in the report.
type Figure struct {
	Name     string      `json:"name"` // of the file, without suffix
	Title    string      `json:"title"`
	Subtitle string      `json:"subtitle"`
	Source   string      `json:"source,omitempty"`
	Section  string      `json:"section"`
	Chart    chart.Chart `json:"-"`
}
