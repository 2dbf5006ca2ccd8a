package travel

import (
	"context"
	"encoding/json"
	"testing"

	"alidade/trainer"
)

// FuzzTurn writes any text as turns, in both forms: the episode ends, with a
// plan or without, and its parts sum to its reward.
func FuzzTurn(f *testing.F) {
	for _, s := range append(append([]string(nil), smallScript...), answerText(JSONPlan(smallPlan())), "<answer>", "<tool_call>{}</tool_call>", "<think></think><tool_call>[</tool_call>") {
		f.Add(s, `{"city": "Birch"}`)
	}
	f.Add("", "null")
	w := smallWorld()
	f.Fuzz(func(t *testing.T, text, args string) {
		c := EpisodeConfig{MaxTurns: 3, Failures: Failures{Rate: 0.5, Kind: "mixed"}, Milestones: map[string]float64{"hotels": 1}}
		for _, strict := range []bool{false, true} {
			rc := ReactConfig{StrictPlan: strict, StopAtForm: strict, MaxContext: 5000}
			e := NewEpisode(w, smallQuery(), c)
			if err := React(t.Context(), e, constantPolicy(text), rc); err != nil {
				t.Fatal(err)
			}
			sumsUp(t, e)
			e = NewEpisode(w, smallQuery(), c)
			m := ChatMessage{Content: text, ToolCalls: []ChatCall{{ID: "x", Function: ChatFunction{ToolRestaurant, args}}}}
			if len(args) == 0 {
				m.ToolCalls = nil
			}
			if err := Chat(t.Context(), e, func(context.Context, []ChatMessage, []json.RawMessage) (ChatMessage, error) { return m, nil }, rc); err != nil {
				t.Fatal(err)
			}
			sumsUp(t, e)
		}
	})
}

func sumsUp(t *testing.T, e *Episode) {
	t.Helper()
	if e.Trajectory().End == "" {
		t.Fatal("the episode has no end")
	}
	reward := e.Pay(Reward{Kind: RewardSum}, 0)
	sum := 0.0
	for _, p := range e.Trajectory().Components {
		sum += p.Value
	}
	if d := sum - reward; d > 1e-9 || d < -1e-9 {
		t.Fatalf("parts sum to %v, the reward is %v", sum, reward)
	}
	if _, err := json.Marshal(e.Trajectory()); err != nil {
		t.Fatal(err)
	}
	var tr trainer.Trajectory
	src, _ := json.Marshal(e.Trajectory())
	if err := json.Unmarshal(src, &tr); err != nil {
		t.Fatal(err)
	}
}

// FuzzQuery reads any bytes as a line of a query file; what can be read can
// be written and read again.
func FuzzQuery(f *testing.F) {
	src, err := json.Marshal(QueryLine{ID: "a", Query: smallQuery(), Plan: NewPlan(smallPlan())})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(src)
	f.Add([]byte(`{"org": "a", "dest": "b", "days": 3, "date": "['2022-03-01']", "people_number": 1, "budget": 1e3, "local_constraint": "{'cuisine': None}"}`))
	f.Fuzz(func(t *testing.T, src []byte) {
		var l, again QueryLine
		if json.Unmarshal(src, &l) != nil {
			return
		}
		out, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(out, &again); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		if again.Query.Hash() != l.Query.Hash() {
			t.Fatalf("%+v became %+v", l.Query, again.Query)
		}
	})
}
