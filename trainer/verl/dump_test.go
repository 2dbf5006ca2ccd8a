package verl

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"alidade/trainer"

	"github.com/google/go-cmp/cmp"
)

// dialogue is a rollout as verl decodes it: role markers are gone, tags stay.
const dialogue = `<think>I need a flight.</think>
<tool_call>
{"name": "SearchFlight", "arguments": {"origin": "Reno", "destination": "Boise", "date": "2022-03-03"}}
</tool_call>
user
<tool_response>
F1 09:00 $120
</tool_response>
assistant
Now a hotel.
<tool_call>
{"name": "SearchAccommodation", "arguments": "{\"city\": \"Boise\"}"}
</tool_call>
user
<tool_response>
No hits. Try <tool_call> elsewhere.
</tool_response>
assistant
<tool_call>
{"name": broken}
</tool_call>
user
<tool_response>
Error
</tool_response>
assistant
<think>Enough.</think>
[{"day": 1}]`

func TestSplitTurns(t *testing.T) {
	turns, answer := SplitTurns(dialogue)
	want := []trainer.Turn{
		{Think: "I need a flight.", Call: &trainer.Call{Tool: "SearchFlight", Args: []trainer.Arg{{Name: "date", Value: "2022-03-03"}, {Name: "destination", Value: "Boise"}, {Name: "origin", Value: "Reno"}}}, Observe: &trainer.Observed{Text: "F1 09:00 $120"}},
		{Think: "Now a hotel.", Call: &trainer.Call{Tool: "SearchAccommodation", Args: []trainer.Arg{{Name: "city", Value: "Boise"}}}, Observe: &trainer.Observed{Text: "No hits. Try <tool_call> elsewhere."}},
		{Raw: `{"name": broken}`, Observe: &trainer.Observed{Text: "Error"}},
		{Think: "Enough."},
	}
	if d := cmp.Diff(want, turns); d != "" {
		t.Error(d)
	}
	if answer != `[{"day": 1}]` {
		t.Errorf("answer %q", answer)
	}
}

func TestSplitTurnsCutOff(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		turns      int
		answer     string
	}{
		{"empty", "", 0, ""},
		{"an answer alone", "Paris", 1, "Paris"},
		{"cut in a call", "<tool_call>{\"name\"", 1, "<tool_call>{\"name\""},
		{"cut in a result", "<tool_call>{\"name\":\"a\"}</tool_call>\n<tool_response>half", 1, ""},
		{"two calls in a turn", "<tool_call>{\"name\":\"a\"}</tool_call><tool_call>{\"name\":\"b\"}</tool_call>\n<tool_response>x</tool_response>", 2, ""},
	} {
		turns, answer := SplitTurns(tc.text)
		if len(turns) != tc.turns || answer != tc.answer {
			t.Errorf("%s: %d turns, answer %q: %+v", tc.name, len(turns), answer, turns)
		}
	}
}

func TestLastUser(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"system\nYou plan.\nuser\nTrip to Boise\nassistant\n", "Trip to Boise"},
		{"system\nx\nuser\nfirst\nassistant\nok\nuser\nsecond\nline two\nassistant\n", "second\nline two"},
		{"no roles", "no roles"},
	} {
		if got := LastUser(tc.in); got != tc.want {
			t.Errorf("LastUser(%q) = %q", tc.in, got)
		}
	}
}

func TestParseDumpRow(t *testing.T) {
	r, err := ParseDumpRow([]byte(`{"input":"system\nuser\nq","output":"a NaN \"b\"","gts":"9","score":NaN,"step":12,"acc":true,"pred":"9","overlong_reward":-0.5,"x":Infinity,"wb_group":"rl-12-3","wb_episode":"e1","wb_components":"{\"success\": 1.0}"}`))
	if err != nil {
		t.Fatal(err)
	}
	if !math.IsNaN(r.Score) || r.Step != 12 || r.Success == nil || !*r.Success || r.Episode != "e1" || r.GroupOf() != "rl-12-3" {
		t.Errorf("row %+v", r)
	}
	if r.Output != `a NaN "b"` {
		t.Errorf("NaN inside a text was touched: %q", r.Output)
	}
	if r.Extra["overlong_reward"] != -0.5 || !math.IsInf(r.Extra["x"], 1) || r.Components["success"] != 1 {
		t.Errorf("extras %v, components %v", r.Extra, r.Components)
	}
	for _, bad := range []string{"", "{", `{"input":"x"}`, `[1]`, `{"output":1}`} {
		if _, err := ParseDumpRow([]byte(bad)); err == nil {
			t.Errorf("%q is a row", bad)
		}
	}
}

func TestGroupOf(t *testing.T) {
	for _, tc := range []struct {
		row  DumpRow
		want string
	}{
		{DumpRow{UID: "ab-12_3_0"}, "ab-12"},
		{DumpRow{UID: "a_b_3_0"}, "a_b"},
		{DumpRow{UID: "plain"}, "plain"},
		{DumpRow{UID: "u_1_0", Group: "g"}, "g"},
	} {
		if got := tc.row.GroupOf(); got != tc.want {
			t.Errorf("%+v: %s", tc.row, got)
		}
	}
	a, b, c := DumpRow{Input: "x"}, DumpRow{Input: "x"}, DumpRow{Input: "y"}
	if a.GroupOf() != b.GroupOf() || a.GroupOf() == c.GroupOf() {
		t.Error("prompts do not tell groups apart")
	}
}

// dumpLine is a row with the fields that the test varies.
func dumpLine(prompt string, score float64, extra string) string {
	return fmt.Sprintf(`{"input":"user\n%s","output":"%s","gts":"h%s","score":%g,"step":3%s}`, prompt, "answer", prompt, score, extra) + "\n"
}

func TestDumpSourceMakesTrajectories(t *testing.T) {
	dir := t.TempDir()
	s := DumpSource(DumpOptions{Dir: dir, Phase: "rl", Groups: true, Std: true})
	if got := poll(t, s, false); len(got) != 0 {
		t.Fatalf("an empty folder gave %v", got)
	}
	text := dumpLine("a", 1, "") + dumpLine("b", 0.5, "") + dumpLine("a", 0, "") + dumpLine("b", 0.5, "")
	path := filepath.Join(dir, "3.jsonl")
	if err := os.WriteFile(path, []byte(text[:len(text)-20]), 0o644); err != nil {
		t.Fatal(err)
	}
	got := poll(t, s, false)
	if len(got) != 3 {
		t.Fatalf("%d readings of three whole rows", len(got))
	}
	if a, b := got[0].Trajectory, got[2].Trajectory; a.Group != b.Group || a.Rollout != 0 || b.Rollout != 1 || a.ID == b.ID || a.Query.Text != "a" || a.Answer != "answer" {
		t.Errorf("rows of one prompt: %+v and %+v", a, b)
	}
	appendFile(t, path, text[len(text)-20:])
	if err := os.WriteFile(filepath.Join(dir, "4.jsonl"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	got = poll(t, s, false)
	last := got[len(got)-1]
	if last.Values[uniformName] != 0.5 || last.Values[groupSizeName] != 2 {
		t.Errorf("groups of the step: %+v", last.Values)
	}
	if got := poll(t, s, true); len(got) != 0 {
		t.Errorf("the step is told twice: %+v", got)
	}
}

func TestDumpSourceAddsToKnownEpisodes(t *testing.T) {
	dir := t.TempDir()
	row := func(episode string, score float64) string {
		return dumpLine("a", score, fmt.Sprintf(`,"wb_group":"g","wb_episode":%q`, episode))
	}
	if err := os.WriteFile(filepath.Join(dir, "3.jsonl"), []byte(row("e1", 1)+row("e2", 0)+"not JSON\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	advantages := map[string]float64{}
	bad := 0
	for _, r := range poll(t, DumpSource(DumpOptions{Dir: dir, Phase: "rl", Known: true, Groups: true, Std: true}), true) {
		bad += r.Bad
		if r.Trajectory != nil {
			if r.Trajectory.Query.Text != "" {
				t.Error("a row of a known episode claims to be the whole record")
			}
			advantages[r.Trajectory.ID] = r.Trajectory.Advantage.Value
		}
	}
	// (1 − 0.5)/(0.7071 + 1e-6), with n − 1 in the deviation.
	if math.Abs(advantages["e1"]-0.70710578) > 1e-6 || math.Abs(advantages["e2"]+0.70710578) > 1e-6 {
		t.Errorf("advantages %v", advantages)
	}
	if bad != 1 {
		t.Errorf("%d bad lines, want 1", bad)
	}
}

func TestDumpSourceEvaluates(t *testing.T) {
	dir := t.TempDir()
	text := dumpLine("a", 1, `,"acc":1.0`) + dumpLine("a", 0, `,"acc":0.0`) + dumpLine("b", 1, `,"acc":1.0`) + dumpLine("b", 1, `,"acc":true`)
	if err := os.WriteFile(filepath.Join(dir, "0.jsonl"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	var found int
	for _, r := range poll(t, DumpSource(DumpOptions{Dir: dir, Phase: "eval", Known: true, Panel: "test"}), true) {
		if e := r.Evaluation; e != nil {
			found++
			if e.Step != 0 || e.Samples != 2 || len(e.Queries) != 2 || e.Queries[0].Passed != 1 || e.Queries[1].Passed != 2 || e.Hash == "" {
				t.Errorf("evaluation %+v", e)
			}
		}
	}
	if found != 1 {
		t.Errorf("%d evaluations", found)
	}
}

func TestDumpSourceTakesItsTime(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "1.jsonl"), []byte(dumpLine("a", 1, "")), 0o644); err != nil {
		t.Fatal(err)
	}
	s := DumpSource(DumpOptions{Dir: dir, Phase: "rl", Groups: true})
	polls := 0
	for ; polls < 100; polls++ {
		done := false
		for _, r := range poll(t, s, false) {
			done = done || r.Values != nil
		}
		if done {
			break
		}
	}
	if polls < idlePolls || polls >= 100 {
		t.Errorf("the newest dump was closed after %d polls", polls)
	}
}

func FuzzParseDumpRow(f *testing.F) {
	f.Add([]byte(strings.TrimSpace(dumpLine("a", 1, `,"wb_components":"{}"`))))
	f.Add([]byte(`{"output":"x","score":-Infinity,"uid":"a_1_0","gts":[1,2]}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := ParseDumpRow(line)
		if err != nil {
			return
		}
		if r.GroupOf() == "" {
			t.Error("no group")
		}
		tr := r.Trajectory("rl", 0)
		if math.IsNaN(tr.Reward) || math.IsInf(tr.Reward, 0) {
			t.Errorf("reward %v", tr.Reward)
		}
	})
}

func FuzzSplitTurns(f *testing.F) {
	f.Add(dialogue)
	f.Add("<tool_call></tool_call><tool_response></tool_response>")
	f.Add("<think></think><think>")
	f.Fuzz(func(t *testing.T, text string) {
		turns, answer := SplitTurns(text)
		if len(turns) > strings.Count(text, callOpen)+1 {
			t.Errorf("%d turns of %d calls", len(turns), strings.Count(text, callOpen))
		}
		if len(answer) > len(text) {
			t.Error("the answer is longer than the text")
		}
		LastUser(text)
	})
}
