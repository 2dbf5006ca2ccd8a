package travel

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"alidade/trainer"
)

func constantPolicy(text string) Policy {
	return func(context.Context, []Message) (string, error) { return text, nil }
}

// scriptedPolicy says one text after the other.
func scriptedPolicy(texts ...string) Policy {
	return func(context.Context, []Message) (string, error) {
		if len(texts) == 0 {
			return "", errors.New("the script is over")
		}
		text := texts[0]
		texts = texts[1:]
		return text, nil
	}
}

func callText(tool string, args map[string]string) string {
	src, _ := json.Marshal(map[string]any{"name": tool, "arguments": args})
	return "<think>let me look</think>\n<tool_call>" + string(src) + "</tool_call>"
}

var smallScript = []string{
	callText(ToolFlight, map[string]string{"departure": "Alder", "destination": "Birch", "date": "2022-03-01"}),
	callText(ToolFlight, map[string]string{"departure": "Birch", "destination": "Alder", "date": "2022-03-03"}),
	callText(ToolRestaurant, map[string]string{"city": "Birch"}),
	callText(ToolAttraction, map[string]string{"city": "Birch"}),
	callText(ToolAccommodation, map[string]string{"city": "Birch"}),
}

func answerText(plan string) string {
	return "<think>done</think>\n<answer>\n" + plan + "\n</answer>\n"
}

func playScript(t *testing.T, c EpisodeConfig, rc ReactConfig, script ...string) trainer.Trajectory {
	t.Helper()
	e := NewEpisode(smallWorld(), smallQuery(), c)
	if err := React(t.Context(), e, scriptedPolicy(script...), rc); err != nil {
		t.Fatal(err)
	}
	e.Reward(RewardSum, nil, 0)
	return e.Trajectory()
}

func TestReact(t *testing.T) {
	tr := playScript(t, EpisodeConfig{}, ReactConfig{}, append(slices.Clone(smallScript), answerText(JSONPlan(smallPlan())))...)
	if !tr.Success || tr.FormatError != "" || tr.End != EndAnswer || tr.Reward != 5 || tr.ToolCalls != 5 || len(tr.Turns) != 6 || *tr.Cost != 520 {
		t.Fatalf("trajectory = %+v", tr)
	}
	if !reflect.DeepEqual(tr.Passes, map[string]bool{"official": true, "star": true, "strict": true}) {
		t.Errorf("passes = %v", tr.Passes)
	}
	if tr.Turns[0].Think != "let me look" || tr.Turns[0].Call.Tool != ToolFlight || tr.Turns[0].Observe.Rows[0][0] != "F0000001" || tr.Tokens <= tr.Generated {
		t.Errorf("turn 1 = %+v", tr.Turns[0])
	}
	wants := []map[string]int{
		{"transportation": 1, "dinner": 3, "attraction": 4, "accommodation": 5},
		{"breakfast": 3, "lunch": 3, "dinner": 3, "attraction": 4, "accommodation": 5},
		{"transportation": 2, "breakfast": 3},
	}
	for i, want := range wants {
		if !maps.Equal(tr.Plan[i].Found, want) {
			t.Errorf("day %d found %v, want %v", i+1, tr.Plan[i].Found, want)
		}
	}
	if d := tr.Plan[0]; d.Cost != 240 || d.Costs["accommodation"] != 120 || d.Costs["transportation"] != 100 || d.Costs["dinner"] != 20 {
		t.Errorf("day 1 costs %v %v", d.Cost, d.Costs)
	}
}

func TestReactForm(t *testing.T) {
	plan := JSONPlan(smallPlan())
	ok := answerText(plan)
	for _, test := range []struct {
		name   string
		script []string
		c      EpisodeConfig
		rc     ReactConfig
		end    string
		form   string // part of the format error
		passes bool
	}{
		{"no think", []string{"<answer>" + plan + "</answer>"}, EpisodeConfig{}, ReactConfig{}, EndAnswer, "does not begin with <think>", true},
		{"two calls", []string{smallScript[0] + smallScript[1], ok}, EpisodeConfig{}, ReactConfig{}, EndAnswer, "turn 1: more than one <think>", true},
		{"call and answer: the call runs", []string{smallScript[0] + "<answer>x</answer>", ok}, EpisodeConfig{}, ReactConfig{}, EndAnswer, "behind </tool_call>", true},
		{"answer never closed", []string{"<think>a</think><answer>" + plan}, EpisodeConfig{}, ReactConfig{}, EndAnswer, "<answer> tag is not closed", true},
		{"no tags cost a turn", []string{"hello", ok}, EpisodeConfig{}, ReactConfig{}, EndAnswer, "turn 1: the turn does not begin", true},
		{"text behind", []string{ok + "bye"}, EpisodeConfig{}, ReactConfig{}, EndAnswer, "behind </answer>", true},
		{"unknown tool", []string{callText("SearchMoon", nil), ok}, EpisodeConfig{}, ReactConfig{}, EndAnswer, "arguments", true},
		{"broken call", []string{"<think>a</think><tool_call>{</tool_call>", ok}, EpisodeConfig{}, ReactConfig{}, EndAnswer, "not sound JSON", true},
		{"no hits are in form", []string{callText(ToolCity, map[string]string{"state": "Nowhere"}), ok}, EpisodeConfig{}, ReactConfig{}, EndAnswer, "", true},
		{"answer holds no plan", []string{"<think>a</think><answer>I give up.</answer>"}, EpisodeConfig{}, ReactConfig{}, EndAnswer, "holds no plan", false},
		{"strict plan with words", []string{answerText("Here: " + plan)}, EpisodeConfig{}, ReactConfig{StrictPlan: true}, EndAnswer, "out of form", false},
		{"stop at form", []string{"hello"}, EpisodeConfig{}, ReactConfig{StopAtForm: true}, EndFormat, "turn 1", false},
		{"turns spent", smallScript[:2], EpisodeConfig{MaxTurns: 2}, ReactConfig{}, EndTurns, "turn budget", false},
		{"context full", []string{smallScript[2], ok}, EpisodeConfig{}, ReactConfig{MaxContext: 10}, EndContext, "", true},
		{"context full, no tags", []string{smallScript[2], plan}, EpisodeConfig{}, ReactConfig{MaxContext: 10}, EndContext, "begin with <think>", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			tr := playScript(t, test.c, test.rc, test.script...)
			if tr.End != test.end || tr.Success != test.passes || (tr.FormatError == "") != (test.form == "") || !strings.Contains(tr.FormatError, test.form) {
				t.Errorf("end %q, success %v, format error %q; want %q, %v, …%s…", tr.End, tr.Success, tr.FormatError, test.end, test.passes, test.form)
			}
			if want := 5.0; test.passes && test.form == "" && tr.Reward != want || test.form != "" && tr.Reward != 0 {
				t.Errorf("reward %v", tr.Reward)
			}
			sum := 0.0
			for _, c := range tr.Components {
				sum += c.Value
			}
			if sum != tr.Reward {
				t.Errorf("parts %v do not sum to %v", tr.Components, tr.Reward)
			}
			if tr.Overlong != (test.end == EndContext) {
				t.Errorf("overlong = %v", tr.Overlong)
			}
		})
	}
}

func TestReactPolicyError(t *testing.T) {
	e := NewEpisode(smallWorld(), smallQuery(), EpisodeConfig{})
	if err := React(t.Context(), e, scriptedPolicy(), ReactConfig{}); err == nil || err.Error() != "policy: the script is over" {
		t.Errorf("error = %v", err)
	}
}

func TestFailures(t *testing.T) {
	play := func(c EpisodeConfig) []bool {
		e := NewEpisode(smallWorld(), smallQuery(), c)
		var hits []bool
		for range 400 {
			o := e.Call(ToolCity, map[string]any{"state": "South"})
			hits = append(hits, o.Injected != "")
			if o.Injected != "" && o.Text != "Error: Current tool SearchCity is not available." {
				t.Fatalf("text %q", o.Text)
			}
		}
		return hits
	}
	base := EpisodeConfig{ID: 7, Failures: Failures{Rate: 0.1, Seed: 3}}
	a := play(base)
	n := 0
	for _, hit := range a {
		n += int(number(hit))
	}
	if n < 20 || n > 65 {
		t.Errorf("%d of 400 calls failed at a rate of 0.1", n)
	}
	if !slices.Equal(a, play(base)) {
		t.Error("the same seed gave other failures")
	}
	other := base
	other.ID = 8
	if slices.Equal(a, play(other)) {
		t.Error("another episode gave the same failures")
	}
	if slices.Contains(play(EpisodeConfig{ID: 7, Failures: Failures{Seed: 3}}), true) {
		t.Error("failures at a rate of 0")
	}
}

func TestReplay(t *testing.T) {
	c := EpisodeConfig{ID: 5, Failures: Failures{Rate: 0.5, Seed: 1}}
	tr := playScript(t, c, ReactConfig{}, append(slices.Clone(smallScript), "hello", "<tool_call>{</tool_call>", answerText(JSONPlan(smallPlan())))...)
	if tr.Injected == 0 {
		t.Fatal("no injected failure to replay")
	}
	again, err := Replay(smallWorld(), smallQuery(), c, tr)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(again, tr) {
		a, _ := json.MarshalIndent(again, "", " ")
		b, _ := json.MarshalIndent(tr, "", " ")
		t.Errorf("replayed\n%s\nrecorded\n%s", a, b)
	}
	src, err := json.Marshal(tr) // and through a file
	if err != nil {
		t.Fatal(err)
	}
	var stored trainer.Trajectory
	if err := json.Unmarshal(src, &stored); err != nil {
		t.Fatal(err)
	}
	again, err = Replay(smallWorld(), smallQuery(), c, stored)
	out, _ := json.Marshal(again)
	if err != nil || string(out) != string(src) {
		t.Errorf("replay from a file differs: %v\n%s\n%s", err, out, src)
	}
	tables := smallTables()
	tables.Flights[0].Price++
	if _, err := Replay(NewWorld(tables), smallQuery(), EpisodeConfig{}, tr); err == nil || !strings.Contains(err.Error(), "replay: turn 1") {
		t.Errorf("a changed world gave error %v", err)
	}
}

func TestScore(t *testing.T) {
	w := smallWorld()
	good := Judge(w, smallQuery(), NewPlan(smallPlan()), Strict)
	days := smallPlan()
	days[2].Breakfast = "Salt, Birch"
	repeated := Judge(w, smallQuery(), NewPlan(days), Strict) // 7 of 8, hard passed
	days = smallPlan()
	days[1].Lunch = "-"
	ungated := Judge(w, smallQuery(), NewPlan(days), Strict)
	none := Judge(w, smallQuery(), Plan{}, Strict)
	for _, test := range []struct {
		kind     string
		progress float64
		j        Judgement
		want     float64
	}{
		{RewardSum, 0, good, 5}, {RewardSum, 0, repeated, 7.0/8 + 2}, {RewardSum, 0, ungated, 7.0 / 8}, {RewardSum, 0, none, 0},
		{RewardMacro, 0, good, 3}, {RewardMacro, 0, repeated, 1}, {RewardMacro, 0, ungated, 0}, {RewardMacro, 0, none, 0},
		{RewardSuccess, 0, good, 1}, {RewardSuccess, 0, repeated, 0},
		{RewardCurriculum, 61.0 / 155, good, 5}, {RewardCurriculum, 62.0 / 155, good, 3}, {RewardCurriculum, 123.0 / 155, good, 3}, {RewardCurriculum, 124.0 / 155, good, 1},
		{RewardCurriculum, 0, repeated, 7.0/8 + 2}, {RewardCurriculum, 0.5, repeated, 1}, {RewardCurriculum, 0.9, repeated, 0},
	} {
		if got, _ := Score(test.kind, nil, test.progress, test.j, false); got != test.want {
			t.Errorf("%s at %v = %v, want %v", test.kind, test.progress, got, test.want)
		}
	}
	if got, _ := Score(RewardCurriculum, []float64{0.5, 0.5, 0}, 0.45, good, false); got != 5 {
		t.Errorf("own stages = %v, want 5", got)
	}
	heads := 0
	for i := range 1000 {
		none.Draw = uint64(i)
		r, _ := Score(RewardRandom, nil, 0, none, false)
		heads += int(r)
	}
	if heads < 430 || heads > 570 {
		t.Errorf("RANDOM pays %d of 1000", heads)
	}
	for kind, stages := range map[string][]float64{"BEST": nil, RewardCurriculum: {0.5, 0.6}, RewardSum: {2}} {
		if CheckReward(kind, stages) == nil {
			t.Errorf("CheckReward(%s, %v) took it", kind, stages)
		}
	}
}

// TestPlay follows only what the tools show to a plan that passes strict.
func TestPlay(t *testing.T) {
	script := `flights Alder | Birch | 2022-03-01
flights Birch | Alder | 2022-03-03
hotels Birch
food Birch
sights Birch
road Alder | Birch
road Alder
set 1 city from Alder to Birch
set 1 transport Flight Number: F0000001, from Alder to Birch
set 1 hotel Oak Inn, Birch
set 2 city Birch
set 2 breakfast Salt, Birch
set 2 lunch Fig, Birch
set 2 dinner Plum, Birch
set 2 hotel Oak Inn, Birch
set 3 city from Birch to Alder
set 3 transport Flight Number: F0000002, from Birch to Alder
judge
set 2 attraction Old Mill, Birch
set 9 city X
set 1 mood good
dance
plan
judge
quit
`
	var out strings.Builder
	if err := Play(t.Context(), strings.NewReader(script), &out, smallWorld(), smallQuery()); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for _, want := range []string{"[F0000001] $100", "There is no command \"dance\"", "The day is \"9\"", "The field is \"mood\"", "This needs departure | destination | mode.",
		"strict   fails ", "Day 2 attraction is empty", "strict   passes; it costs $465 of $2,000", "official passes", "Day 3:\nCurrent City: from Birch to Alder"} {
		if !strings.Contains(text, want) {
			t.Errorf("output lacks %q\n%s", want, text)
		}
	}
}

func TestSystemPrompt(t *testing.T) {
	p := SystemPrompt()
	for _, spec := range ToolSpecs() {
		if !json.Valid(spec.Schema()) || !strings.Contains(p, `"name":"`+spec.Name+`"`) {
			t.Errorf("the prompt lacks %s", spec.Name)
		}
	}
}
