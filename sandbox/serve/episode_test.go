package serve

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"alidade/sandbox"
	"alidade/sandbox/travel"
	"alidade/trainer"
)

func TestEpisodeFromPromptToScore(t *testing.T) {
	t.Parallel()
	recorded := make(chan trainer.Trajectory, 1)
	c := start(t, func(c *Config) { c.Record = func(t trainer.Trajectory) { recorded <- t } })
	f := theFixture(t)
	e := c.create(CreateRequest{TaskID: "0", Seed: 7, GroupID: "g1", RolloutIndex: 3, Step: 12, Phase: "rl"})
	if len(e.Prompt) != 2 || e.Prompt[0].Role != "system" || e.Prompt[1].Content != f.queries[0].Text {
		t.Errorf("prompt = %+v, want system and the request", e.Prompt)
	}
	if len(e.Tools) != 6 {
		t.Errorf("%d tools, want 6", len(e.Tools))
	}
	city := f.world.Cities()[0].Name
	if r := c.call(e.EpisodeID, 0, travel.ToolAccommodation, cityArgs(city)); r.Done || r.ErrorKind != "" || !strings.Contains(r.Text, city) {
		t.Errorf("call = %+v, want hits in %s", r, city)
	}
	if r := c.call(e.EpisodeID, 1, travel.ToolRestaurant, `"{\"city\": \"Nowhere\"}"`); r.Index != 1 || r.ErrorKind != travel.ErrNoHits {
		t.Errorf("call with arguments as text = %+v, want no hits", r)
	}
	r := c.score(e.EpisodeID, ScoreRequest{FinalText: "Here it is:\n" + f.plans[0]})
	if !r.Success || r.Score != 5 || !r.Delivered || r.End != travel.EndAnswer || len(r.Verdicts) != 13 {
		t.Errorf("score = %+v, want success and 5", r)
	}
	if sum := sumOf(r.Components); sum != r.Score {
		t.Errorf("components sum to %v, want %v", sum, r.Score)
	}
	if r.Metrics["tool_calls"] != 2 || r.Metrics["turns"] != 3 || r.Metrics["pass_strict"] != 1 {
		t.Errorf("metrics = %v", r.Metrics)
	}
	var tr trainer.Trajectory
	c.want(200, "GET", "/env/episodes/"+e.EpisodeID+"/trajectory", nil, &tr)
	if tr.Group != "g1" || tr.Rollout != 3 || tr.Step != 12 || len(tr.Turns) != 3 || tr.Reward != 5 || len(tr.Plan) != 3 || tr.Labels["task_id"] != "0" {
		t.Errorf("trajectory = %+v", tr)
	}
	if got := <-recorded; got.ID != e.EpisodeID || got.Reward != 5 {
		t.Errorf("recorded %+v", got)
	}
	for _, want := range []bool{true, false} {
		var d DeleteResult
		c.want(200, "DELETE", "/env/episodes/"+e.EpisodeID, nil, &d)
		if d.Deleted != want {
			t.Errorf("deleted = %v, want %v", d.Deleted, want)
		}
	}
	c.want(404, "POST", "/env/episodes/"+e.EpisodeID+"/call", callBody(2, travel.ToolCity, `{}`), nil)
	var st Stats
	c.want(200, "GET", "/env/stats", nil, &st)
	if st.Live != 0 || st.Bytes != 0 || st.Created != 1 || st.Calls != 2 || st.NoHits != 1 || st.Scored != 1 || st.Abandoned != 0 {
		t.Errorf("stats = %+v", st)
	}
}

func sumOf(m map[string]float64) (sum float64) {
	for _, v := range m {
		sum += v
	}
	return sum
}

func TestCallIsIdempotentByIndex(t *testing.T) {
	t.Parallel()
	c := start(t, nil)
	id := c.create(CreateRequest{TaskID: "0"}).EpisodeID
	city := theFixture(t).world.Cities()[0].Name
	first := c.call(id, 0, travel.ToolAccommodation, cityArgs(city))
	second := c.call(id, 1, travel.ToolRestaurant, cityArgs(city))
	if again := c.call(id, 0, travel.ToolAccommodation, `{ "city" : "`+city+`" }`); again != first {
		t.Errorf("call 0 again = %+v, want %+v", again, first)
	}
	if again := c.call(id, 1, travel.ToolRestaurant, cityArgs(city)); again != second {
		t.Errorf("call 1 again = %+v, want %+v", again, second)
	}
	var e ErrorResult
	c.want(409, "POST", "/env/episodes/"+id+"/call", callBody(5, travel.ToolCity, `{}`), &e)
	if e.Error.Expected == nil || *e.Error.Expected != 2 || !strings.Contains(e.Error.Message, "waits for call 2") {
		t.Errorf("gap = %+v, want expected index 2", e.Error)
	}
	c.want(409, "POST", "/env/episodes/"+id+"/call", callBody(1, travel.ToolCity, `{}`), &e)
	if !strings.Contains(e.Error.Message, "was another one") || e.Error.Fields[0].Field != "index" {
		t.Errorf("another call under index 1 = %+v", e.Error)
	}
	c.want(422, "POST", "/env/episodes/"+id+"/call", callBody(-1, travel.ToolCity, `{}`), nil)
	var r CallResult
	c.want(200, "POST", "/env/episodes/"+id+"/call", `{"name":"SearchCity","arguments":{}}`, &r)
	if r.Index != 2 || r.ErrorKind != travel.ErrParameters {
		t.Errorf("call without index = %+v, want number 2", r)
	}
	var tr trainer.Trajectory
	c.want(200, "GET", "/env/episodes/"+id+"/trajectory", nil, &tr)
	if len(tr.Turns) != 3 {
		t.Errorf("%d turns, want 3: repeated calls are not played again", len(tr.Turns))
	}
}

func TestScoreIsIdempotent(t *testing.T) {
	t.Parallel()
	c := start(t, nil)
	f := theFixture(t)
	id := c.create(CreateRequest{TaskID: "1"}).EpisodeID
	city := f.world.Cities()[0].Name
	call := c.call(id, 0, travel.ToolCity, `{"state":"X"}`)
	a := c.score(id, ScoreRequest{FinalText: f.plans[1]})
	b := c.score(id, ScoreRequest{FinalText: f.plans[1]})
	if a.Score != b.Score || a.Score != 5 {
		t.Errorf("scores %v and %v, want 5", a.Score, b.Score)
	}
	c.want(409, "POST", "/env/episodes/"+id+"/score", ScoreRequest{FinalText: "[]"}, nil)
	c.want(409, "POST", "/env/episodes/"+id+"/call", callBody(1, travel.ToolRestaurant, cityArgs(city)), nil)
	if again := c.call(id, 0, travel.ToolCity, `{"state":"X"}`); again != call {
		t.Errorf("an answered call after the score = %+v, want %+v", again, call)
	}
}

// The failures are drawn from experiment seed, task, rollout and call: equal
// in two servers, and not the same for two rollouts.
func TestInjectedFailuresRepeat(t *testing.T) {
	t.Parallel()
	pattern := func(seed uint64, rollout int) string {
		c := start(t, func(c *Config) { c.Failures = travel.Failures{Rate: 0.5, Seed: 11} })
		id := c.create(CreateRequest{TaskID: "0", Seed: seed, RolloutIndex: rollout}).EpisodeID
		var b strings.Builder
		for i := range 20 {
			r := c.call(id, i, travel.ToolCity, `{"state":"X"}`)
			if r.Injected != (r.ErrorKind == sandbox.Unavailable) || r.Injected != strings.Contains(r.Text, "is not available") {
				t.Errorf("call %d = %+v", i, r)
			}
			fmt.Fprintf(&b, "%v ", r.Injected)
		}
		return b.String()
	}
	a := pattern(1, 0)
	if b := pattern(1, 0); a != b {
		t.Errorf("failures %s, then %s: want the same", a, b)
	}
	if b := pattern(1, 1); a == b {
		t.Errorf("two rollouts meet the same failures: %s", a)
	}
	if b := pattern(2, 0); a == b {
		t.Errorf("two seeds meet the same failures: %s", a)
	}
}

// The turn budget ends an episode as in the sandbox's own loop: the answer is
// a turn too.
func TestTurnBudget(t *testing.T) {
	t.Parallel()
	c := start(t, func(c *Config) { c.MaxTurns = 3 })
	f := theFixture(t)
	id := c.create(CreateRequest{TaskID: "0"}).EpisodeID
	for i := range 3 {
		if r := c.call(id, i, travel.ToolCity, `{"state":"X"}`); r.Done != (i == 2) || r.Truncated != r.Done {
			t.Errorf("call %d = %+v", i, r)
		}
	}
	for i := 3; i < 6; i++ {
		if r := c.call(id, i, travel.ToolCity, `{"state":"X"}`); r.ErrorKind != "over" || !r.Done {
			t.Errorf("call %d of 3 = %+v, want over", i, r)
		}
	}
	if r := c.score(id, ScoreRequest{FinalText: f.plans[0]}); r.Score != 0 || r.Delivered || r.End != travel.EndTurns || r.FormatError == "" {
		t.Errorf("score = %+v, want nothing delivered", r)
	}
	id = c.create(CreateRequest{TaskID: "0"}).EpisodeID
	c.call(id, 0, travel.ToolCity, `{"state":"X"}`)
	c.call(id, 1, travel.ToolCity, `{"state":"X"}`)
	if r := c.score(id, ScoreRequest{FinalText: f.plans[0]}); r.Score != 5 {
		t.Errorf("answer as the third turn of three = %+v, want 5", r)
	}
}

func TestContextBudget(t *testing.T) {
	t.Parallel()
	f := theFixture(t)
	c := start(t, func(c *Config) { c.MaxTokens = 1500; c.System = "Plan." })
	id := c.create(CreateRequest{TaskID: "0"}).EpisodeID
	r := CallResult{}
	for i := 0; !r.Done && i < 50; i++ {
		r = c.call(id, i, travel.ToolAccommodation, cityArgs(f.world.Cities()[i%4].Name))
	}
	if !r.Truncated {
		t.Fatalf("the context was never full")
	}
	got := c.score(id, ScoreRequest{FinalText: f.plans[0]})
	if got.End != travel.EndContext || got.Metrics["overlong"] != 1 || got.Score != 5 {
		t.Errorf("score = %+v, want the plan's and overlong", got)
	}
}

func TestFormErrors(t *testing.T) {
	t.Parallel()
	c := start(t, nil)
	plan := theFixture(t).plans[0]
	react := func(last string, messages string) ScoreRequest {
		return ScoreRequest{FinalText: last, Messages: []byte(messages)}
	}
	for _, x := range []struct {
		name, form string
		calls      []string // bodies
		score      ScoreRequest
		problem    string
		delivered  bool
	}{
		{"native plan", FormNative, nil, ScoreRequest{FinalText: plan}, "", true},
		{"native with thoughts", FormNative, nil, ScoreRequest{FinalText: "so… </think>\n" + plan}, "", true},
		{"no plan", FormNative, nil, ScoreRequest{FinalText: "I give up."}, "the answer is out of form", false},
		{"nothing", FormNative, nil, ScoreRequest{}, "without an answer", false},
		{"unknown tool", FormNative, []string{callBody(0, "SearchTrain", `{}`)}, ScoreRequest{FinalText: plan}, `turn 1: there is no tool "SearchTrain"`, true},
		{"arguments are a list", FormNative, []string{callBody(0, "SearchCity", `[1]`)}, ScoreRequest{FinalText: plan}, "turn 1: the arguments must be a JSON object", true},
		{"arguments are no JSON", FormNative, []string{callBody(0, "SearchCity", `"{state"`)}, ScoreRequest{FinalText: plan}, "turn 1: the arguments must be", true},
		{"two calls a turn", FormNative, nil, react(plan, `[{"role":"assistant","content":null,"tool_calls":[{"id":"a","function":{"name":"SearchCity","arguments":"{}"}},{"id":"b","function":{"name":"SearchCity","arguments":"{}"}}]}]`), "turn 1: more than one tool call", true},
		{"tagged answer", FormReact, nil, ScoreRequest{FinalText: "<think>a</think><answer>" + plan + "</answer>"}, "", true},
		{"answer alone", FormReact, nil, ScoreRequest{FinalText: plan}, "", true},
		{"answer not closed", FormReact, nil, ScoreRequest{FinalText: "<think>a</think><answer>" + plan}, "a <answer> tag is not closed", true},
		{"no thoughts in a message", FormReact, nil, react(plan, `[{"role":"assistant","content":"<tool_call>{\"name\":\"SearchCity\",\"arguments\":{}}</tool_call>"}]`), "turn 1: the turn does not begin with <think>", true},
		{"ends with a call", FormReact, nil, ScoreRequest{FinalText: `<think>a</think><tool_call>{"name":"SearchCity","arguments":{}}</tool_call>`}, "without an answer", false},
		{"a tool's words are no answer", FormNative, nil, ScoreRequest{FinalText: "<tool_response>" + plan + "</tool_response>"}, "without an answer", false},
	} {
		t.Run(x.name, func(t *testing.T) {
			id := c.create(CreateRequest{TaskID: "0", Form: x.form}).EpisodeID
			for _, body := range x.calls {
				c.want(http.StatusOK, "POST", "/env/episodes/"+id+"/call", body, nil)
			}
			r := c.score(id, x.score)
			if (x.problem == "") != (r.FormatError == "") || !strings.Contains(r.FormatError, x.problem) {
				t.Errorf("format error = %q, want %q", r.FormatError, x.problem)
			}
			if r.Delivered != x.delivered {
				t.Errorf("delivered = %v, want %v", r.Delivered, x.delivered)
			}
			if want := map[bool]float64{true: 5, false: 0}[x.problem == ""]; r.Score != want {
				t.Errorf("score = %v, want %v", r.Score, want)
			}
		})
	}
}

// Messages fill in the thoughts of the turns they belong to.
func TestThoughtsComeFromMessages(t *testing.T) {
	t.Parallel()
	c := start(t, nil)
	id := c.create(CreateRequest{TaskID: "0", Form: FormReact}).EpisodeID
	c.call(id, 0, travel.ToolCity, `{"state":"X"}`)
	c.score(id, ScoreRequest{Messages: []byte(`[{"role":"system","content":"…"},{"role":"user","content":"…"},
		{"role":"assistant","content":"<think>which cities?</think><tool_call>{\"name\":\"SearchCity\",\"arguments\":{\"state\":\"X\"}}</tool_call>"},
		{"role":"user","content":"<tool_response>none</tool_response>"},
		{"role":"assistant","content":[{"type":"text","text":"<think>done</think><answer>[]</answer>"}]}]`)})
	var tr trainer.Trajectory
	c.want(200, "GET", "/env/episodes/"+id+"/trajectory", nil, &tr)
	if len(tr.Turns) != 2 || tr.Turns[0].Think != "which cities?" || tr.Turns[1].Think != "done" {
		t.Errorf("turns = %+v", tr.Turns)
	}
}

func TestCurriculumPaysByProgress(t *testing.T) {
	t.Parallel()
	c := start(t, func(c *Config) { c.Reward.Kind = travel.RewardCurriculum })
	for progress, want := range map[float64]float64{0: 5, 0.5: 3, 0.9: 1} {
		id := c.create(CreateRequest{TaskID: "0"}).EpisodeID
		if r := c.score(id, ScoreRequest{FinalText: theFixture(t).plans[0], Progress: progress}); r.Score != want {
			t.Errorf("score at %v = %v, want %v", progress, r.Score, want)
		}
	}
}
