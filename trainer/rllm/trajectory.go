package rllm

import (
	"encoding/json"
	"fmt"
	"strings"

	"alidade/ablation"
	"alidade/sandbox"
	"alidade/sandbox/travel"
	"alidade/trainer"
)

// trajectory is an episode of the logger as a record. Of one that was played
// here, it is only what the trainer adds to our own record; of others it is
// all there is: thoughts, answers and observations as the logger cut them.
// The caller holds the lock.
func (s *Server) trajectory(e *episodeBody, group string, index int) *trainer.Trajectory {
	labels := map[string]string{"trainer reward": short(e.reward())}
	if why := text(e.Termination); why != "" {
		labels["trainer end"] = why
	}
	if group != "" {
		labels["trainer group"] = group
	} else {
		labels["trainer group"] = "none: the trainer left it out"
	}
	if id := s.rollouts.latest(e.ID); id != "" {
		return &trainer.Trajectory{ID: id, Step: e.Step.n, Labels: labels}
	}
	prompt, rollout := parts(e.ID)
	if rollout == 0 && prompt == e.ID {
		rollout = index
	}
	if group == "" {
		group = prompt
	}
	t := &trainer.Trajectory{
		ID: fmt.Sprintf("rl-%d-%s", e.Step.n, e.ID), Phase: "rl", Policy: "policy", Mode: "sampled", Step: e.Step.n,
		Group: fmt.Sprintf("rl-%d-%s", e.Step.n, group), Rollout: rollout, Query: queryOf(e.Task),
		Reward: e.reward(), RewardKind: "trainer", Components: []trainer.Component{{Name: "trainer", Value: e.reward()}},
		Success: e.Correct, End: endOf(text(e.Termination)), Labels: labels, Scores: map[string]float64{"success": share(e.Correct)},
	}
	for name, src := range e.Metrics {
		if v, ok := number(src); ok && name != "" {
			t.Labels["metric "+name] = short(v)
		}
	}
	t.Overlong = t.End == travel.EndContext
	e.turns(t)
	return t
}

// turns writes the steps of an episode as turns. In the logger's step the
// observation comes first, here it follows the call that asked for it.
func (e *episodeBody) turns(t *trainer.Trajectory) {
	for _, path := range e.Trajectories {
		for i := range path.Steps {
			step := &path.Steps[i]
			said := text(step.Metadata.Response)
			if said == "" {
				said = text(step.Output)
			}
			turn := turnOf(said, text(step.Metadata.Thought))
			if i+1 < len(path.Steps) {
				if seen := text(path.Steps[i+1].Metadata.Observation); seen != "" {
					turn.Observe = &trainer.Observed{Text: seen}
				}
			} else if turn.Call == nil {
				t.Answer = said
			}
			if i == 0 && t.Query.Text == "" {
				t.Query.Text = text(step.Metadata.Observation)
			}
			if turn.Call != nil {
				t.ToolCalls++
				if t.Tools == nil {
					t.Tools = map[string]int{}
				}
				t.Tools[turn.Call.Tool]++
			}
			t.Turns = append(t.Turns, turn)
		}
	}
	if t.Query.Text == "" {
		t.Query.Text = "(the trainer's logger did not send the task)"
	}
}

// turnOf reads what a policy wrote in a turn: a thought, and a tool call
// between tags or the words as they are.
func turnOf(said, thought string) trainer.Turn {
	turn := trainer.Turn{Think: thought}
	rest := said
	if _, after, ok := strings.Cut(said, "</think>"); ok {
		before, _, _ := strings.Cut(said, "</think>")
		turn.Think = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(before), "<think>"))
		rest = after
	}
	_, body, tagged := strings.Cut(rest, "<tool_call>")
	body, _, _ = strings.Cut(body, "</tool_call>")
	if call, err := travel.ParseCall(strings.TrimSpace(body)); tagged && err == nil {
		turn.Call = callOf(call.Name, call.Arguments)
		return turn
	}
	turn.Raw = strings.TrimSpace(rest)
	return turn
}

// callOf writes a call's arguments in the tool's order.
func callOf(name string, args map[string]any) *trainer.Call {
	call := &trainer.Call{Tool: name, Args: []trainer.Arg{}}
	left := map[string]any{}
	for k, v := range args {
		left[k] = v
	}
	put := func(k string) {
		v, ok := left[k]
		if !ok {
			return
		}
		delete(left, k)
		value, isText := v.(string)
		if !isText {
			src, _ := json.Marshal(v) // it was read from JSON
			value = string(src)
		}
		call.Args = append(call.Args, trainer.Arg{Name: k, Value: value})
	}
	for _, t := range travel.ToolSpecs() {
		if t.Name == name {
			for _, p := range t.Params {
				put(p.Name)
			}
		}
	}
	for _, k := range names(left) {
		put(k)
	}
	return call
}

// queryOf reads the task that the trainer was given, one of our rows.
func queryOf(src json.RawMessage) trainer.Query {
	var row struct {
		Row
		Metadata *Row `json:"metadata"` // newer versions wrap the row
		Prompt   []travel.ChatMessage
	}
	if json.Unmarshal(src, &row) != nil {
		return trainer.Query{}
	}
	if row.Metadata != nil && row.Hash == "" {
		row.Row = *row.Metadata
	}
	q := trainer.Query{Hash: row.Hash, Level: row.Level}
	for _, m := range row.Prompt {
		if m.Role == "user" {
			q.Text = m.Content
		}
	}
	return q
}

// ends maps rLLM's reasons to the sandbox's; others mean an answer.
var ends = map[string]string{
	"max_turns_exceeded": travel.EndTurns, "max_response_length_exceeded": travel.EndContext,
	"max_prompt_length_exceeded": travel.EndContext, "env_done": travel.EndAnswer,
}

func endOf(reason string) string {
	if end, ok := ends[strings.ToLower(reason[strings.LastIndexByte(reason, '.')+1:])]; ok {
		return end
	}
	if reason == "" {
		return travel.EndAnswer
	}
	return reason
}

// reasonOf is endOf the other way.
func reasonOf(end string) string {
	switch end {
	case travel.EndTurns:
		return "max_turns_exceeded"
	case travel.EndContext:
		return "max_response_length_exceeded"
	}
	return "env_done"
}

// evalItem is one task of an evaluation's summary.
type evalItem struct {
	Index   int      `json:"idx"`
	Reward  *float64 `json:"reward"`
	Correct bool     `json:"is_correct"`
	Error   any      `json:"error"`
}

// panel is an evaluation's summary query by query; nil when it is not of our
// rows, each once or each equally often. The caller holds the lock.
func (s *Server) panel(items []evalItem) *ablation.EvalResult {
	rows := s.cfg.Eval
	if len(rows) == 0 || len(items) == 0 || len(items)%len(rows) != 0 {
		return nil
	}
	samples := len(items) / len(rows)
	done, passed := make([]int, len(rows)), make([]int, len(rows))
	for _, it := range items {
		if it.Index < 0 || it.Index >= len(items) || it.Error != nil {
			return nil
		}
		i := it.Index % len(rows)
		done[i]++
		if it.Correct {
			passed[i]++
		}
	}
	e := &ablation.EvalResult{Panel: "test", Policy: "policy", Mode: "sampled", Samples: samples, Hash: panelHash(rows)}
	for i, row := range rows {
		if done[i] != samples {
			return nil
		}
		e.Queries = append(e.Queries, ablation.QueryResult{Query: row.Hash, Level: row.Level, Passed: passed[i]})
	}
	return e
}

// panelHash names a panel as other trainers name it.
func panelHash(rows []Row) string {
	var h uint64
	for _, row := range rows {
		for _, c := range []byte(row.Hash) {
			h = sandbox.Mix(h, uint64(c))
		}
	}
	return fmt.Sprintf("%016x", h)
}
