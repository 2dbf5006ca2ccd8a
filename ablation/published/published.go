// Package published holds results that others have published, as data: each
// [Value] says what was measured, under which arm of which recipe keys, by
// which protocol, where it is printed and how firmly it is known. Reports draw
// them hollow and dashed beside a study's own results. [For] finds the values
// that belong to a study template; [Value.Comparable] says why a value may not
// be compared with a study in level.
//
// Only numbers are kept here; the sources are cited by arXiv number and place.
package published

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"alidade/ablation"
)

// Strength says how firmly a value is known.
type Strength string

// The strengths, firmest first.
const (
	Exact   Strength = "exact"    // printed in a table, on a bar or in a configuration
	ReadOff Strength = "read off" // taken from prose or from the height of a bar
	Derived Strength = "derived"  // arithmetic on exact values
)

// Units of values.
const (
	Fraction = "fraction"  // 0–1
	GPUHours = "GPU-hours" // of the whole training
	Minutes  = "min/step"
)

// A Value is one published number.
type Value struct {
	Set      string         `json:"set"`    // the table or figure it belongs to, e.g. "star-table-1"
	Label    string         `json:"label"`  // of the arm: "MACRO, 1.5B"
	Levels   map[string]any `json:"levels"` // recipe key → level, as far as recipes have keys for it
	Scale    string         `json:"scale,omitempty"`
	Metric   string         `json:"metric"` // in this program's names: eval/success …
	Value    float64        `json:"value"`
	Unit     string         `json:"unit"`
	Protocol Protocol       `json:"protocol"`
	Source   Source         `json:"source"`
	Strength Strength       `json:"strength"`
	Note     string         `json:"note,omitempty"`
}

// A Protocol says how a value was measured.
type Protocol struct {
	Model   string `json:"model"`
	Test    string `json:"test"`              // test set and evaluator
	Queries int    `json:"queries,omitempty"` // of the test set; 0 = not known
	Runs    int    `json:"runs"`              // training runs behind the value
	Decode  string `json:"decode,omitempty"`  // how answers were sampled
}

// A Source is where a value is printed.
type Source struct {
	ArXiv string `json:"arxiv"`
	Place string `json:"place"` // "Table 1"
}

// String is the citation: "arXiv 2603.21972, Table 1".
func (s Source) String() string { return "arXiv " + s.ArXiv + ", " + s.Place }

// String is the protocol in a few words.
func (p Protocol) String() string {
	parts := []string{p.Model, p.Test}
	if p.Queries > 0 {
		parts = append(parts, thousands(p.Queries)+" queries")
	}
	if p.Runs == 1 {
		parts = append(parts, "one run")
	} else if p.Runs > 1 {
		parts = append(parts, fmt.Sprintf("%d runs", p.Runs))
	}
	return strings.Join(parts, ", ")
}

func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// All returns every value, in the order of the sources.
func All() []Value {
	var all []Value
	for _, build := range []func() []Value{
		rewardScale, outOfDomain, difficulty, algorithmScale, largeModels, dataSize, failureRate,
		agentSFTData, agentRecipe, agentModels, dapoSteps,
	} {
		all = append(all, build()...)
	}
	return all
}

// Set returns the values of one table or figure.
func Set(name string) []Value {
	return slices.DeleteFunc(All(), func(v Value) bool { return v.Set != name })
}

// Sets lists the names of the tables and figures.
func Sets() []string {
	seen := map[string]bool{}
	for _, v := range All() {
		seen[v.Set] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// subjects maps a word in a template's id to the sets that speak of it.
var subjects = []struct {
	word string
	sets []string
}{
	{"reward", []string{"star-table-1"}},
	{"scale", []string{"star-table-1"}},
	{"size", nil}, // data-size and model-size: decided by the other word
	{"model", []string{"star-table-1"}},
	{"policy", []string{"star-table-1"}},
	{"domain", []string{"star-table-2"}},
	{"difficulty", []string{"star-table-3"}},
	{"mix", []string{"star-table-3"}},
	{"algorithm", []string{"star-table-4"}},
	{"data", []string{"star-figure-5"}},
	{"prompts", []string{"star-figure-5"}},
	{"failure", []string{"star-figure-6"}},
	{"tcr", []string{"agentrl-recipe"}},
	{"agentrl", []string{"agentrl-recipe"}},
}

// For returns the published values that a study template's id refers to, e.g.
// "reward-scale", "difficulty", "failure-rate", or the name of a set itself;
// nil when there are none.
func For(templateID string) []Value {
	base := templateID
	for _, size := range []string{"-quick", "-proxy", "-paper"} {
		base = strings.TrimSuffix(base, size)
	}
	if base == "star-figure-4" { // drawn from Table 1
		base = "star-table-1"
	}
	if v := Set(base); len(v) > 0 {
		return v
	}
	words := strings.FieldsFunc(strings.ToLower(templateID), func(r rune) bool { return r == '-' || r == '_' || r == '.' || r == '/' })
	want := map[string]bool{}
	for _, w := range words {
		for _, s := range subjects {
			if strings.TrimSuffix(w, "s") == strings.TrimSuffix(s.word, "s") {
				for _, set := range s.sets {
					want[set] = true
				}
			}
		}
	}
	if want["star-table-4"] { // algorithm × scale is Table 4, not Table 1
		delete(want, "star-table-1")
	}
	if want["star-table-3"] || want["star-figure-5"] {
		delete(want, "star-table-1")
	}
	return slices.DeleteFunc(All(), func(v Value) bool { return !want[v.Set] })
}

// Comparable says whether the value may be compared in level with the results
// of a study, and if not, why, as the rest of a sentence that begins "not
// comparable because". What can still be compared then is the shape: order of
// arms and direction of change.
func (v Value) Comparable(st ablation.Study) (bool, string) {
	r := st.Base
	var why []string
	if r.Trainer.Kind == "cpu" || r.Model.Size != v.Protocol.Model {
		why = append(why, fmt.Sprintf("the published policy is %s, not %s", v.Protocol.Model, policyName(r)))
	}
	if r.Environment.Kind != "travel" || r.Environment.World != "public" {
		why = append(why, fmt.Sprintf("it was judged on %s, not on this study's world %q", testName(v.Protocol), r.Environment.World))
	}
	if r.Reward.Profile != "official" && strings.Contains(v.Protocol.Test, "official") {
		why = append(why, fmt.Sprintf("by the official checks, not the %s ones", r.Reward.Profile))
	}
	if v.Protocol.Runs == 1 {
		why = append(why, "it is one run, so its seed noise is unknown")
	}
	return len(why) == 0, strings.Join(why, "; ")
}

func policyName(r ablation.Recipe) string {
	if r.Trainer.Kind == "cpu" {
		return "an embedded proxy policy"
	}
	return r.Model.Size
}

func testName(p Protocol) string {
	if p.Queries > 0 {
		return thousands(p.Queries) + " queries of " + p.Test
	}
	return p.Test
}
