package travel

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func TestParsePlanForms(t *testing.T) {
	days := smallPlan()
	days[1].Lunch = "\"Quoted\" \\ name\nin two lines, Birch"
	days[2].Dinner = "  blanks  , Birch "
	days[0].Breakfast = ""
	for name, text := range map[string]string{
		"json":             JSONPlan(days),
		"fenced":           "Here is the plan.\n```json\n" + JSONPlan(days) + "\n```\nEnjoy!",
		"fence never shut": "```\n" + JSONPlan(days),
		"prose around":     "The plan: " + JSONPlan(days) + " Bon voyage.",
		"days":             FormatPlan(days),
		"days with prose":  "My plan is as follows.\n\n" + FormatPlan(days) + "\nTotal: $520\n",
	} {
		p, err := ParsePlan(text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := p.Strict(); !reflect.DeepEqual(got, days) {
			t.Errorf("%s: %+v, want %+v", name, got, days)
		}
	}
	marked := "### **Day 1: arrival**\n- **Current City**: from A to B\n* Transport: Taxi, from A to B\n- Dinner: X, B\n\nday 2\ncurrent_city: B\n"
	p, err := ParsePlan(marked)
	if err != nil || len(p.Days) != 2 || p.Strict()[0].Transportation != "Taxi, from A to B" || p.Strict()[0].City != "from A to B" || p.Strict()[1].City != "B" {
		t.Errorf("marked up: %+v, %v", p.Strict(), err)
	}
	for _, text := range []string{"", "answer not found", "I cannot plan this.", "[1, 2", "```\n```", "Daylight: saving"} {
		if p, err := ParsePlan(text); err == nil {
			t.Errorf("ParsePlan(%q) = %+v, want an error", text, p)
		}
	}
	if _, err := ParsePlanStrict("The plan: " + JSONPlan(days)); err == nil {
		t.Error("strict parsing took text around the list")
	}
}

func TestPlanKeepsKinds(t *testing.T) {
	p, err := ParsePlan(`[{"days": 1, "lunch": null, "dinner": 5, "breakfast": ["x"], "extra": {"a": true}}, null, "x", {}]`)
	if err != nil {
		t.Fatal(err)
	}
	d := p.Days[0]
	if d.Fields[FieldDay].Num != 1 || d.Fields[FieldLunch].Kind != Null || d.Fields[FieldDinner].Kind != Number ||
		d.Fields[FieldBreakfast].Kind != List || d.Fields[FieldAttraction].Kind != Absent || len(d.Extra) != 1 {
		t.Errorf("day 1 = %+v", d)
	}
	if p.Days[1].Kind != Null || p.Days[2].Kind != String || !p.Days[3].empty() {
		t.Errorf("days = %+v", p.Days[1:])
	}
}

// TestExampleSubmission reads a submission of an early language model.
func TestExampleSubmission(t *testing.T) {
	type line struct {
		Idx  int
		Plan Value
	}
	w := smallWorld()
	none := 0
	for _, l := range readJSONL[line](t, shared(t, "example_evaluation.jsonl")) {
		p := PlanOf(l.Plan)
		if !p.Delivered() {
			none++
		}
		for _, pr := range Profiles() {
			Judge(w, smallQuery(), p, pr)
		}
		if again, err := ParsePlan(FormatPlan(p.Strict())); p.Delivered() && (err != nil || !reflect.DeepEqual(again.Strict(), p.Strict())) {
			t.Errorf("%d: text form does not come back: %v", l.Idx, err)
		}
	}
	if none != 19 {
		t.Errorf("%d undelivered, want 19", none)
	}
}

func FuzzPlan(f *testing.F) {
	f.Add(JSONPlan(smallPlan()))
	f.Add(FormatPlan(longPlan()))
	for _, s := range []string{`null`, `{}`, `[{}]`, `[[{}]]`, `{"a":1}`, `"text"`, `[null,1,"a",[],{"current_city":["from"]}]`, `[{"current_city":"from","transportation":null}]`,
		`[{"current_city":"from A to B","transportation":"Flight Number: ","accommodation":[]},{"accommodation":{}},{"attraction":5}]`, "Day 1:\nLunch: \"\\u0000\"", strings.Repeat("[", 5000)} {
		f.Add(s)
	}
	w := smallWorld()
	queries := []Query{smallQuery(), longQuery()}
	queries[0].Wish = Constraints{"pets", []string{"Tea", "Tea"}, "private room", "no flight"}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParsePlan(s)
		if err != nil {
			v, err := ParseValue([]byte(s))
			if err != nil {
				return
			}
			p = PlanOf(v)
		}
		for _, q := range queries {
			for _, pr := range Profiles() {
				j := Judge(w, q, p, pr)
				checkJudgement(t, &j)
			}
		}
		days := p.Strict()
		if p.Root.Kind != List || len(days) == 0 {
			return
		}
		again, err := ParsePlan(FormatPlan(days))
		if err != nil || len(again.Days) != len(days) {
			t.Errorf("text form does not come back: %v", err)
		}
	})
}

// checkJudgement holds what is true of every judgement.
func checkJudgement(t *testing.T, j *Judgement) {
	t.Helper()
	if len(j.Verdicts) != int(nChecks) {
		t.Fatalf("%d verdicts", len(j.Verdicts))
	}
	for _, v := range j.Verdicts {
		if (v.Outcome == OutcomeFail || v.Outcome == OutcomeRaises || v.Outcome == OutcomeClosed) != (v.Reason != "") {
			t.Errorf("%s %s: reason %q", v.Check, v.Outcome, v.Reason)
		}
		if v.Outcome == OutcomeRaises && j.Profile == Strict {
			t.Errorf("strict raises in %s", v.Check)
		}
	}
	for _, x := range []float64{j.CSMicro, j.CSMacro, j.HardMicro, j.HardMacro} {
		if !(x >= 0 && x <= 1) {
			t.Errorf("score %v", x)
		}
	}
	for _, kind := range RewardKinds() {
		for _, bad := range []bool{false, true} {
			reward, parts := Score(kind, nil, 0.5, *j, bad)
			sum := 0.0
			for _, p := range parts {
				sum += p.Value
			}
			if sum != reward || bad && reward != 0 || reward < 0 || reward > 5 {
				t.Errorf("%s: reward %v, parts %v", kind, reward, parts)
			}
		}
	}
	if _, err := json.Marshal(j); err != nil {
		t.Error(err)
	}
}

func FuzzAnswer(f *testing.F) {
	for _, s := range []string{"<think>a</think><answer>[]</answer>", "<think>a</think>\n<tool_call>{\"name\":\"SearchCity\",\"arguments\":{\"state\":\"South\"}}</tool_call>",
		"<answer>x", "<tool_call></tool_call>", "<think><think></think></think>", "</answer><answer>"} {
		f.Add(s)
	}
	w := smallWorld()
	f.Fuzz(func(t *testing.T, s string) {
		form, problem := CheckForm(s)
		if problem == "" && (form.Call == nil) == !strings.Contains(s, "<answer>") {
			t.Errorf("form %+v of %q", form, s)
		}
		e := NewEpisode(w, smallQuery(), EpisodeConfig{MaxTurns: 3})
		if err := React(t.Context(), e, constantPolicy(s), ReactConfig{}); err != nil {
			t.Error(err)
		}
		j := e.Judgement()
		checkJudgement(t, &j)
	})
}

func FuzzLiteral(f *testing.F) {
	for _, s := range []string{"{'house rule': None, 'cuisine': ['Tea', \"BBQ\"], 'n': -1.5e3, 'b': True}", "('a', 'b',)", "'\\u00e9\\x41\\n'", "[", "{'a'", strings.Repeat("[", 2000)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := ParseLiteral(s)
		if err == nil && v.Kind == Absent {
			t.Errorf("ParseLiteral(%q) gave nothing", s)
		}
	})
}

func TestParseLiteral(t *testing.T) {
	v, err := ParseLiteral(" {'house rule': None, 'cuisine': ['Tea', \"B'Q\"], 'room type': 'it\\'s', 'n': (1, -2.5), } ")
	if err != nil {
		t.Fatal(err)
	}
	got, _ := json.Marshal(v)
	if want := `{"cuisine":["Tea","B'Q"],"house rule":null,"n":[1,-2.5],"room type":"it's"}`; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
