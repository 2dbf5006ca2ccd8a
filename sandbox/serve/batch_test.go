package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"alidade/sandbox/travel"
)

// rawReply is a Reply whose result is not read yet.
type rawReply struct {
	ID     json.RawMessage `json:"id"`
	Status int             `json:"status"`
	Result json.RawMessage `json:"result"`
	Error  *ErrorInfo      `json:"error"`
}

func (r *rawReply) into(t testing.TB, status int, to any) {
	t.Helper()
	if r.Status != status {
		t.Fatalf("reply %s = %d %s %+v, want %d", r.ID, r.Status, r.Result, r.Error, status)
	}
	if err := json.Unmarshal(r.Result, to); err != nil {
		t.Fatalf("reply %s: %v in %s", r.ID, err, r.Result)
	}
}

func operation(id int, op, episode string, body any) Operation {
	src, _ := json.Marshal(body)
	return Operation{ID: json.RawMessage(fmt.Sprint(id)), Op: op, EpisodeID: episode, Body: src}
}

func TestBatch(t *testing.T) {
	t.Parallel()
	c := start(t, nil)
	f := theFixture(t)
	run := func(list ...Operation) []rawReply {
		var r struct{ Results []rawReply }
		c.want(200, "POST", "/env/batch", BatchRequest{list}, &r)
		if len(r.Results) != len(list) {
			t.Fatalf("%d results for %d operations", len(r.Results), len(list))
		}
		for i := range list {
			if string(r.Results[i].ID) != string(list[i].ID) {
				t.Errorf("reply %d has id %s, want %s", i, r.Results[i].ID, list[i].ID)
			}
		}
		return r.Results
	}
	const n = 50
	var creates, calls, scores []Operation
	for i := range n {
		creates = append(creates, operation(i, "create", "", CreateRequest{TaskID: "0", Split: "train", RolloutIndex: i}))
	}
	ids := make([]string, n)
	for i, r := range run(creates...) {
		var e CreateResult
		r.into(t, 201, &e)
		ids[i] = e.EpisodeID
	}
	for k := range 3 { // interleaved: within an episode the order must hold
		for i := range n {
			calls = append(calls, Operation{ID: json.RawMessage(fmt.Sprint(k*n + i)), Op: "call", EpisodeID: ids[i],
				Body: json.RawMessage(callBody(k, travel.ToolRestaurant, cityArgs(f.queries[0].Dest)))})
		}
	}
	for i, r := range run(calls...) {
		var a CallResult
		r.into(t, 200, &a)
		if a.Index != i/n {
			t.Errorf("call %d has index %d", i, a.Index)
		}
	}
	for i := range n {
		scores = append(scores, operation(i, "score", ids[i], ScoreRequest{FinalText: f.plans[0]}), operation(n+i, "delete", ids[i], nil))
	}
	for i, r := range run(scores...) {
		if i%2 == 0 {
			var s ScoreResult
			r.into(t, 200, &s)
			if s.Score != 5 {
				t.Errorf("score %d = %v, want 5", i, s.Score)
			}
		}
	}
	bad := run(operation(1, "dance", "", nil), operation(2, "call", "", nil), operation(3, "call", "none", CallRequest{Name: "x"}),
		operation(4, "batch", "", nil), operation(5, "stats", "", nil))
	for i, want := range []int{422, 422, 404, 422, 200} {
		if bad[i].Status != want {
			t.Errorf("operation %d = %d %+v, want %d", i, bad[i].Status, bad[i].Error, want)
		}
	}
	if f := bad[0].Error.Fields[0]; f.Field != "op" || f.Value != "dance" || !strings.Contains(f.Allowed, "create, call, score") {
		t.Errorf("unknown operation: %+v", f)
	}
	if status, _, _ := c.send("POST", "/env/batch", `{"operations":[]}`); status != http.StatusOK {
		t.Errorf("empty batch = %d", status)
	}
}
