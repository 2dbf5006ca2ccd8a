package travel

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"alidade/trainer"
)

func chatCall(tool string, args map[string]string) ChatMessage {
	src, _ := json.Marshal(args)
	return ChatMessage{Content: "<think>let me look</think>", ToolCalls: []ChatCall{{ID: "call-1", Type: "function", Function: ChatFunction{tool, string(src)}}}}
}

func playChat(t *testing.T, c EpisodeConfig, rc ReactConfig, script ...ChatMessage) (trainer.Trajectory, []ChatMessage) {
	t.Helper()
	var seen []ChatMessage
	e := NewEpisode(smallWorld(), smallQuery(), c)
	err := Chat(t.Context(), e, func(_ context.Context, messages []ChatMessage, _ []json.RawMessage) (ChatMessage, error) {
		seen = slices.Clone(messages)
		if len(script) == 0 {
			return ChatMessage{}, errors.New("the script is over")
		}
		m := script[0]
		script = script[1:]
		return m, nil
	}, rc)
	if err != nil {
		t.Fatal(err)
	}
	e.Reward(RewardSum, nil, 0)
	return e.Trajectory(), seen
}

func TestChat(t *testing.T) {
	look := chatCall(ToolRestaurant, map[string]string{"city": "Birch"})
	answer := ChatMessage{Content: JSONPlan(smallPlan())}
	tr, seen := playChat(t, EpisodeConfig{}, ReactConfig{}, look, answer)
	if !tr.Success || tr.FormatError != "" || tr.Reward != 5 || tr.ToolCalls != 1 || tr.Turns[0].Think != "let me look" {
		t.Fatalf("trajectory %+v", tr)
	}
	last := seen[len(seen)-1]
	if last.Role != "tool" || last.ToolCallID != "call-1" || !strings.HasPrefix(last.Content, "SearchRestaurant in Birch: 6 restaurants found") {
		t.Errorf("the tool's message is %+v", last)
	}
	if tr.Turns[0].Observe.Tokens == 0 || tr.Turns[0].Tokens == 0 {
		t.Errorf("tokens of turn 1: %+v", tr.Turns[0])
	}
}

func TestChatForm(t *testing.T) {
	plan := JSONPlan(smallPlan())
	look := chatCall(ToolRestaurant, map[string]string{"city": "Birch"})
	two, broken, beside := look, look, look
	two.ToolCalls = append(slices.Clone(look.ToolCalls), ChatCall{ID: "call-2", Function: ChatFunction{ToolCity, `{"state": "South"}`}})
	broken.ToolCalls = []ChatCall{{ID: "x", Function: ChatFunction{ToolCity, `["South"]`}}}
	beside.Content = "<answer>" + plan + "</answer>"
	ok := ChatMessage{Content: "<think>done</think>\n<answer>" + plan + "</answer>"}
	for _, c := range []struct {
		name   string
		script []ChatMessage
		ec     EpisodeConfig
		rc     ReactConfig
		end    string
		form   string
		passes bool
		calls  int
	}{
		{"in form", []ChatMessage{look, ok}, EpisodeConfig{}, ReactConfig{}, EndAnswer, "", true, 1},
		{"two calls", []ChatMessage{two, ok}, EpisodeConfig{}, ReactConfig{}, EndAnswer, "turn 1: more than one tool call", true, 1},
		{"arguments no object", []ChatMessage{broken, ok}, EpisodeConfig{}, ReactConfig{}, EndAnswer, "must be the text of a JSON object", true, 0},
		{"unknown tool", []ChatMessage{chatCall("SearchMoon", map[string]string{}), ok}, EpisodeConfig{}, ReactConfig{}, EndAnswer, "there is no tool", true, 1},
		{"answer beside a call: the call runs", []ChatMessage{beside, ok}, EpisodeConfig{}, ReactConfig{}, EndAnswer, "an answer beside", true, 1},
		{"empty message costs a turn", []ChatMessage{{}, ok}, EpisodeConfig{}, ReactConfig{}, EndAnswer, "neither a tool call nor an answer", true, 0},
		{"words around, lenient", []ChatMessage{{Content: "Here you are:\n" + plan}}, EpisodeConfig{}, ReactConfig{}, EndAnswer, "", true, 0},
		{"words around, strict", []ChatMessage{{Content: "Here you are:\n" + plan}}, EpisodeConfig{}, ReactConfig{StrictPlan: true}, EndAnswer, "out of form", false, 0},
		{"stop at form", []ChatMessage{two}, EpisodeConfig{}, ReactConfig{StopAtForm: true}, EndFormat, "more than one", false, 0},
		{"turns spent", []ChatMessage{look, look}, EpisodeConfig{MaxTurns: 2}, ReactConfig{}, EndTurns, "turn budget", false, 2},
		{"context full", []ChatMessage{look, ok}, EpisodeConfig{}, ReactConfig{MaxContext: 10}, EndContext, "", true, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr, seen := playChat(t, c.ec, c.rc, c.script...)
			if tr.End != c.end || tr.Success != c.passes || tr.ToolCalls != c.calls || (tr.FormatError == "") != (c.form == "") || !strings.Contains(tr.FormatError, c.form) {
				t.Errorf("end %q, success %v, %d calls, format error %q; want %q, %v, %d, …%s…", tr.End, tr.Success, tr.ToolCalls, tr.FormatError, c.end, c.passes, c.calls, c.form)
			}
			answered := map[string]bool{}
			for _, m := range seen {
				if m.Role == "tool" {
					answered[m.ToolCallID] = true
				}
			}
			for _, m := range seen {
				for _, call := range m.ToolCalls {
					if !answered[call.ID] {
						t.Errorf("call %s has no tool message", call.ID)
					}
				}
			}
		})
	}
}

func TestSystemPromptTools(t *testing.T) {
	p := SystemPromptTools()
	if strings.Contains(p, "<think>") || strings.Contains(p, "<tools>") || !strings.Contains(p, `"current_city"`) {
		t.Errorf("prompt: %s", p)
	}
}
