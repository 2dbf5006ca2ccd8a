package travel

import (
	"fmt"
	"strings"

	"alidade/trainer"
)

// Profile names one reading of the 13 constraints.
type Profile string

// The profiles. Official and Star reproduce the two public evaluators with
// all their quirks; Strict means what the rules mean and pays the reward.
const (
	Official Profile = "official" // TravelPlanner's own evaluator
	Star     Profile = "star"     // Agent-STAR's variant
	Strict   Profile = "strict"
)

// Profiles lists all profiles.
func Profiles() []Profile { return []Profile{Official, Star, Strict} }

// ParseProfile reads a profile's name.
func ParseProfile(s string) (Profile, error) {
	for _, p := range Profiles() {
		if string(p) == s {
			return p, nil
		}
	}
	return "", fmt.Errorf("profile is %q, must be official, star or strict", clip(s))
}

// Outcomes of a verdict.
const (
	OutcomePass   = "pass"
	OutcomeFail   = "fail"
	OutcomeNA     = "n/a"    // the query has no such wish
	OutcomeClosed = "closed" // the gate is shut: not evaluated, counts as failed
	OutcomeRaises = "raises" // the public program stops with an exception here
)

// Check numbers the constraints in the order of the verdicts.
type Check int

// The 8 commonsense and 5 hard constraints.
const (
	CheckRoute Check = iota
	CheckRestaurants
	CheckAttractions
	CheckNights
	CheckTransportation
	CheckCity
	CheckSandbox
	CheckComplete
	CheckBudget
	CheckRoomRule
	CheckRoomType
	CheckCuisine
	CheckMode
	nChecks
	nCommonsense = int(CheckBudget)
)

var checkTable = [nChecks]struct{ key, name, family string }{
	{"is_reasonable_visiting_city", "Reasonable City Route", "commonsense"},
	{"is_valid_restaurants", "Diverse Restaurants", "commonsense"},
	{"is_valid_attractions", "Diverse Attractions", "commonsense"},
	{"is_valid_accommodation", "Minimum Nights Stay", "commonsense"},
	{"is_valid_transportation", "Non-conf. Transportation", "commonsense"},
	{"is_valid_information_in_current_city", "Within Current City", "commonsense"},
	{"is_valid_information_in_sandbox", "Within Sandbox", "commonsense"},
	{"is_not_absent", "Complete Information", "commonsense"},
	{"valid_cost", "Budget", "hard"},
	{"valid_room_rule", "Room Rule", "hard"},
	{"valid_room_type", "Room Type", "hard"},
	{"valid_cuisine", "Cuisine", "hard"},
	{"valid_transportation", "Transportation", "hard"},
}

// Key is the evaluator's key of the check, "is_valid_restaurants".
func (c Check) Key() string { return checkTable[c].key }

// String is the name of the check in the benchmark's paper.
func (c Check) String() string { return checkTable[c].name }

// Judgement is what one profile says about one plan.
type Judgement struct {
	Profile   Profile
	Delivered bool
	Schema    bool                 // every day is an object with its seven texts
	Verdicts  []trainer.Verdict    // 13, by Check; all of them always
	Cost      *float64             // of the whole plan in $, whatever the gate; nil when it cannot be told
	DayCosts  []map[string]float64 // $ by plan field, a day each
	CSMicro   float64              // commonsense checks passed / 8
	CSMacro   float64              // 1: all of them
	HardMicro float64              // applicable hard checks passed / applicable; 0 behind a shut gate
	HardMacro float64              // 1: gate open and no applicable hard check failed
	Success   bool                 // both macros are 1
	GateOpen  bool                 // complete and within the sandbox: the hard checks count

	Raised     string // exception that stops the public program on this plan; "" = none
	RaisedAt   string // key of the check in which it does, in the program's own order
	CostRaised string // exception of the cost function, called on its own

	Draw uint64 // seeded number of the episode, for the RANDOM reward only
}

// Judge applies a profile to a plan. It never fails: whatever is wrong with
// the plan is in the verdicts.
func Judge(w *World, q Query, p Plan, pr Profile) Judgement {
	j := Judgement{Profile: pr, Delivered: p.Delivered(), Schema: p.sound(), Verdicts: make([]trainer.Verdict, nChecks)}
	for i := range j.Verdicts {
		v, c := &j.Verdicts[i], &checkTable[i]
		v.Check, v.Name, v.Family, v.Outcome = c.key, c.name, c.family, OutcomePass
	}
	if !j.Delivered {
		j.undelivered()
		return j
	}
	switch pr {
	case Official:
		judgeFaithful(w, &q, &p, &officialProgram, &j)
	case Star:
		judgeFaithful(w, &q, &p, &starProgram, &j)
	default:
		judgeStrict(w, &q, &p, &j)
	}
	j.sum()
	return j
}

func (j *Judgement) undelivered() {
	for i := range j.Verdicts {
		j.Verdicts[i].Outcome = OutcomeFail
		j.Verdicts[i].Reason = "No plan was delivered."
		if i >= nCommonsense {
			j.Verdicts[i].Outcome = OutcomeClosed
		}
	}
}

// closeGate marks the hard checks as not evaluated.
func (j *Judgement) closeGate() {
	why := "Not evaluated, because the plan failed "
	switch complete, within := j.passed(CheckComplete), j.passed(CheckSandbox); {
	case !complete && !within:
		why += "both Complete Information and Within Sandbox."
	case !complete:
		why += "Complete Information."
	default:
		why += "Within Sandbox."
	}
	if j.Raised != "" {
		why = "Not evaluated, because the public program stops with " + j.Raised + " in " + j.RaisedAt + "."
	}
	for i := nCommonsense; i < int(nChecks); i++ {
		v := &j.Verdicts[i]
		*v = trainer.Verdict{Check: v.Check, Name: v.Name, Family: v.Family, Outcome: OutcomeClosed, Reason: why}
	}
}

func (j *Judgement) passed(c Check) bool { return j.Verdicts[c].Outcome == OutcomePass }

// sum computes the five scores from the verdicts.
func (j *Judgement) sum() {
	passed := 0
	for i := 0; i < nCommonsense; i++ {
		if j.passed(Check(i)) {
			passed++
		}
	}
	j.CSMicro = float64(passed) / float64(nCommonsense)
	if passed == nCommonsense {
		j.CSMacro = 1
	}
	if !j.GateOpen {
		return
	}
	passed, asked := 0, 0
	for i := nCommonsense; i < int(nChecks); i++ {
		switch j.Verdicts[i].Outcome {
		case OutcomePass:
			passed, asked = passed+1, asked+1
		case OutcomeFail, OutcomeRaises:
			asked++
		}
	}
	j.HardMicro = float64(passed) / float64(asked)
	if passed == asked {
		j.HardMacro = 1
	}
	if j.Raised != "" {
		j.HardMicro, j.HardMacro = 0, 0
	}
	j.Success = j.CSMacro == 1 && j.HardMacro == 1
}

// Failed lists the keys of the checks that did not pass.
func (j *Judgement) Failed() []string {
	var keys []string
	for i := range j.Verdicts {
		if o := j.Verdicts[i].Outcome; o == OutcomeFail || o == OutcomeRaises || o == OutcomeClosed {
			keys = append(keys, j.Verdicts[i].Check)
		}
	}
	return keys
}

// Explain lists the reasons of the checks that failed, a line each.
func (j *Judgement) Explain() string {
	var b strings.Builder
	for i := range j.Verdicts {
		v := &j.Verdicts[i]
		if v.Outcome != OutcomePass && v.Outcome != OutcomeNA {
			fmt.Fprintf(&b, "%s: %s: %s\n", v.Name, v.Outcome, v.Reason)
		}
	}
	return b.String()
}

// finding is the result of one check before it is written into a verdict.
type finding struct {
	outcome string // "" = pass
	day     int    // 1-based, 0 = the whole plan
	field   Field
	value   string
	reason  string
}

var pass = finding{field: noField}

var notAsked = finding{outcome: OutcomeNA, field: noField}

// fail makes a finding about a field of a day, or with noField about the day.
func fail(day int, f Field, value, format string, args ...any) finding {
	return finding{outcome: OutcomeFail, day: day, field: f, value: value, reason: fmt.Sprintf(format, args...)}
}

// failPlan makes a finding about the whole plan.
func failPlan(format string, args ...any) finding {
	return finding{outcome: OutcomeFail, field: noField, reason: fmt.Sprintf(format, args...)}
}

func (f *finding) write(v *trainer.Verdict) {
	if f.outcome == "" {
		return
	}
	v.Outcome, v.Day, v.Field, v.Value, v.Reason = f.outcome, f.day, f.field.String(), f.value, f.reason
}

// outcome is "ok", "not_delivered" or "raises", as the golden files have it.
func (j *Judgement) outcome() string {
	switch {
	case !j.Delivered:
		return "not_delivered"
	case j.Raised != "":
		return "raises"
	}
	return "ok"
}
