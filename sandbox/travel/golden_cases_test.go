package travel

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
)

// trainSet is the benchmark's 45 train queries with their human plans, and
// the partial world rebuilt from what the tools returned for these.
type trainSet struct {
	w     *World
	lines []QueryLine
	raw   []Value // the query lines as they are
}

func loadTrain(t testing.TB) trainSet {
	t.Helper()
	tables, err := LoadReference(shared(t, "train_ref_info.jsonl"), shared(t, "city_states.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	lines, err := LoadQueryLines(shared(t, "train_queries.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return trainSet{NewWorld(tables), lines, readJSONL[Value](t, shared(t, "train_queries.jsonl"))}
}

type goldenCase struct {
	ID         int
	Kind, Name string
	Base       int
	PlanBase   int            `json:"plan_base"`
	StripState bool           `json:"strip_state"`
	QueryEdits map[string]any `json:"query_edits"`
	Edits      [][]any        `json:"edits"`
	NoPlan     bool           `json:"no_plan"`
	Official   *goldenCaseVerdict
	Star       *goldenCaseVerdict
}

type goldenCaseVerdict struct {
	Commonsense map[string]any
	Hard        any // an object, null, or "error"
	Cost        any // a number or "error"
	Pass        bool
}

// apply makes the query and plan of a case.
func (s *trainSet) apply(t testing.TB, c goldenCase) (Query, Plan) {
	t.Helper()
	q := s.lines[c.Base-1].Query
	for k, x := range c.QueryEdits {
		editQuery(t, &q, k, x)
	}
	if c.NoPlan {
		return q, Plan{}
	}
	base := c.Base
	if c.PlanBase > 0 {
		base = c.PlanBase
	}
	var days []any
	src, _ := s.raw[base-1].Get("annotated_plan").MarshalJSON()
	if c.StripState {
		src = []byte(s.stripStates(string(src)))
	}
	if err := json.Unmarshal(src, &days); err != nil {
		t.Fatal(err)
	}
	for _, e := range c.Edits {
		days = editDays(t, days, e)
	}
	out, err := json.Marshal(days)
	if err != nil {
		t.Fatal(err)
	}
	v, err := ParseValue(out)
	if err != nil {
		t.Fatal(err)
	}
	return q, PlanOf(v)
}

func (s *trainSet) stripStates(text string) string {
	for _, c := range s.w.Cities() {
		text = strings.ReplaceAll(text, "("+c.State+")", "")
	}
	return text
}

func editQuery(t testing.TB, q *Query, key string, x any) {
	t.Helper()
	switch key {
	case "budget":
		q.Budget = x.(float64)
	case "dest":
		q.Dest = x.(string)
	case "org":
		q.Org = x.(string)
	case "visiting_city_number":
		q.Cities = int(x.(float64))
	case "people_number":
		q.People = int(x.(float64))
	case "days":
		q.Days = int(x.(float64))
	case "local_constraint":
		for k, w := range x.(map[string]any) {
			text, _ := w.(string)
			switch k {
			case "house rule":
				q.Wish.HouseRule = text
			case "room type":
				q.Wish.RoomType = text
			case "transportation":
				q.Wish.Transportation = text
			case "cuisine":
				q.Wish.Cuisine = nil
				list, _ := w.([]any)
				for _, c := range list {
					q.Wish.Cuisine = append(q.Wish.Cuisine, c.(string))
				}
			}
		}
	default:
		t.Fatalf("query edit %q is not known", key)
	}
}

func editDays(t testing.TB, days []any, e []any) []any {
	t.Helper()
	day := func() map[string]any { return days[int(e[1].(float64))].(map[string]any) }
	switch e[0] {
	case "set":
		day()[e[2].(string)] = e[3]
	case "del":
		delete(day(), e[2].(string))
	case "empty_day":
		days[int(e[1].(float64))] = map[string]any{}
	case "truncate":
		return days[:int(e[1].(float64))]
	case "append_copy":
		return append(days, days[int(e[1].(float64))])
	case "clear":
		return []any{}
	default:
		t.Fatalf("edit %v is not known", e)
	}
	return days
}

func TestGoldenCases(t *testing.T) {
	s := loadTrain(t)
	cases := readJSONL[goldenCase](t, shared(t, "golden_cases.jsonl"))
	passed := map[Profile]int{}
	for _, c := range cases {
		q, p := s.apply(t, c)
		for pr, want := range map[Profile]*goldenCaseVerdict{Official: c.Official, Star: c.Star} {
			j := Judge(s.w, q, p, pr)
			if diff := compareCase(j, want); diff != "" {
				t.Errorf("case %d %s (%s): %s", c.ID, c.Name, pr, diff)
			}
			if j.Success {
				passed[pr]++
			}
		}
	}
	t.Logf("%d cases, %d pass official, %d pass star", len(cases), passed[Official], passed[Star])
}

func compareCase(j Judgement, want *goldenCaseVerdict) string {
	var diffs []string
	differ := func(what string, got, want any) {
		diffs = append(diffs, fmt.Sprintf("%s = %v, want %v", what, got, want))
	}
	form := func(outcome string) any {
		if outcome == OutcomeRaises {
			return "error"
		}
		return goldenForm(outcome, "")
	}
	if !j.Delivered {
		if j.Success != want.Pass {
			differ("pass", j.Success, want.Pass)
		}
		return strings.Join(diffs, "; ")
	}
	for c := 0; c < nCommonsense; c++ {
		v := j.Verdicts[c]
		if got := form(v.Outcome); got != want.Commonsense[v.Check] {
			differ(v.Check, got, want.Commonsense[v.Check])
		}
	}
	switch hard := want.Hard.(type) {
	case nil:
		// A check that raises shuts the gate here; the golden files shut it
		// only when one of the two gate checks does not pass.
		if j.GateOpen {
			differ("gate", "open", "shut")
		}
	case string:
		if !j.GateOpen || j.Raised == "" {
			differ("hard", "no error", hard)
		}
	case map[string]any:
		for c := nCommonsense; c < int(nChecks) && j.Raised == ""; c++ {
			v := j.Verdicts[c]
			if got := form(v.Outcome); got != hard[v.Check] {
				differ(v.Check, got, hard[v.Check])
			}
		}
	}
	cost, ok := want.Cost.(float64)
	if ok != (j.Cost != nil) || ok && math.Abs(*j.Cost-cost) > 1e-9 {
		differ("cost", fmtCost(j.Cost), want.Cost)
	}
	if j.Success != want.Pass {
		differ("pass", j.Success, want.Pass)
	}
	return strings.Join(diffs, "; ")
}

func TestGoldenMetrics(t *testing.T) {
	s := loadTrain(t)
	src, err := os.ReadFile(shared(t, "golden_metrics.json"))
	if err != nil {
		t.Fatal(err)
	}
	var want struct {
		Submission []goldenCase
		Scores     map[string]float64
		Detail     map[string]map[string]map[string]map[string]Tally
	}
	if err := json.Unmarshal(src, &want); err != nil {
		t.Fatal(err)
	}
	var m Metrics
	for i, c := range want.Submission {
		q, p := s.apply(t, c)
		if c.Base != i+1 {
			t.Fatalf("entry %d has base %d", i, c.Base)
		}
		m.Add(&q, Judge(s.w, q, p, Official))
	}
	for name, rate := range map[string]Rate{
		"Delivery Rate":                          m.Delivery,
		"Commonsense Constraint Micro Pass Rate": m.CSMicro,
		"Commonsense Constraint Macro Pass Rate": m.CSMacro,
		"Hard Constraint Micro Pass Rate":        m.HardMicro,
		"Hard Constraint Macro Pass Rate":        m.HardMacro,
		"Final Pass Rate":                        m.Final,
	} {
		if got := rate.Value(); math.Abs(got-want.Scores[name]) > 1e-12 {
			t.Errorf("%s = %v, want %v", name, got, want.Scores[name])
		}
	}
	if m.HardMicro.Total != 105 || m.CSMicro.Total != 360 {
		t.Errorf("denominators %d and %d, want 105 and 360", m.HardMicro.Total, m.CSMicro.Total)
	}
	compareRecord(t, m.Record(), want.Detail)
}

func compareRecord(t *testing.T, got, want map[string]map[string]map[string]map[string]Tally) {
	t.Helper()
	for family, levels := range want {
		for level, days := range levels {
			for day, checks := range days {
				for name, tally := range checks {
					if g := got[family][level][day][name]; !g.equal(tally) {
						t.Errorf("%s %s %s days %s = %v, want %v", family, level, day, name, g, tally)
					}
				}
			}
		}
	}
}
