package serve

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"alidade/sandbox"
	"alidade/sandbox/travel"
	"alidade/trainer"
)

// What a policy writes comes to the same record and reward in the sandbox's
// own loop and through this server, failures included.
func TestSameAsTheSandboxsOwnLoop(t *testing.T) {
	t.Parallel()
	f := theFixture(t)
	failures := travel.Failures{Rate: 0.4, Seed: 9}
	c := start(t, func(c *Config) { c.Failures, c.MaxTurns = failures, 6 })
	dest := f.queries[0].Dest
	call := func(tool, args string) string {
		return `<think>what is there?</think><tool_call>{"name": "` + tool + `", "arguments": ` + args + `}</tool_call>`
	}
	for name, script := range map[string][]string{
		"a plan":        {call(travel.ToolRestaurant, cityArgs(dest)), call(travel.ToolAccommodation, cityArgs(dest)), call(travel.ToolCity, `{"state":"X"}`), "<think>enough</think><answer>" + f.plans[0] + "</answer>"},
		"unknown tool":  {call("SearchTrain", `{}`), "<think>a</think><answer>" + f.plans[0] + "</answer>"},
		"not closed":    {call(travel.ToolRestaurant, cityArgs(dest)), "<think>a</think><answer>" + f.plans[0]},
		"no plan in it": {"<think>a</think><answer>stay at home</answer>"},
		"never answers": {call(travel.ToolCity, `{}`), call(travel.ToolCity, `{}`), call(travel.ToolCity, `{}`), call(travel.ToolCity, `{}`), call(travel.ToolCity, `{}`), call(travel.ToolCity, `{}`)},
	} {
		t.Run(name, func(t *testing.T) {
			own := ownLoop(t, f, failures, script)
			made := c.create(CreateRequest{TaskID: "0", Seed: 5, RolloutIndex: 2, Form: FormReact})
			messages := made.Prompt
			for i, text := range script {
				messages = append(messages, travel.Message{Role: "assistant", Content: text})
				tool, err := travel.ParseCall(callIn(text))
				if err != nil {
					break
				}
				args, _ := json.Marshal(tool.Arguments)
				r := c.call(made.EpisodeID, i, tool.Name, string(args))
				messages = append(messages, travel.Message{Role: "user", Content: "<tool_response>\n" + r.Text + "</tool_response>"})
			}
			src, _ := json.Marshal(messages)
			last := ""
			for _, m := range messages {
				if m.Role == "assistant" {
					last = m.Content
				}
			}
			r := c.score(made.EpisodeID, ScoreRequest{FinalText: last, Messages: src})
			var served trainer.Trajectory
			c.want(200, "GET", "/env/episodes/"+made.EpisodeID+"/trajectory", nil, &served)
			if r.Score != own.Reward {
				t.Errorf("score %v, the own loop pays %v", r.Score, own.Reward)
			}
			if diff := cmp.Diff(recordOf(t, own), recordOf(t, served)); diff != "" {
				t.Errorf("records differ (-own +served):\n%s", diff)
			}
		})
	}
}

func ownLoop(t *testing.T, f *fixture, failures travel.Failures, script []string) trainer.Trajectory {
	t.Helper()
	id := sandbox.Mix(5, taskKey("train", "0"), 2)
	e := travel.NewEpisode(f.world, f.queries[0], travel.EpisodeConfig{Failures: failures, ID: id, MaxTurns: 6})
	turn := 0
	err := travel.React(t.Context(), e, func(context.Context, []travel.Message) (string, error) {
		if turn == len(script) {
			return "", errors.New("the script is over")
		}
		turn++
		return script[turn-1], nil
	}, travel.ReactConfig{})
	if err != nil {
		t.Fatal(err)
	}
	e.Pay(travel.Reward{Kind: travel.RewardSum}, 0)
	return e.Trajectory()
}

// callIn cuts out the call as a trainer's parser does.
func callIn(text string) string {
	_, body, _ := strings.Cut(text, "<tool_call>")
	body, _, _ = strings.Cut(body, "</tool_call>")
	return body
}

// recordOf leaves out who sampled it and the estimates of tokens, and takes
// JSON's view, in which nil and empty are the same.
func recordOf(t *testing.T, tr trainer.Trajectory) trainer.Trajectory {
	t.Helper()
	tr.ID, tr.Rollout, tr.Labels, tr.Tokens, tr.Generated = "", 0, nil, 0, 0
	src, err := json.Marshal(tr)
	if err != nil {
		t.Fatal(err)
	}
	var out trainer.Trajectory
	if err := json.Unmarshal(src, &out); err != nil {
		t.Fatal(err)
	}
	for i := range out.Turns {
		out.Turns[i].Tokens = 0
		if out.FormatError != "" {
			out.Turns[i].Think = "" // the server keeps thoughts of turns out of form too
		}
		if out.Turns[i].Observe != nil {
			out.Turns[i].Observe.Tokens = 0
		}
	}
	return out
}
