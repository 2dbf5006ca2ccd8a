package native

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"alidade/sandbox/travel"
	"alidade/sandbox/travel/synth"
)

// The files of a data set.
const (
	trainFile  = "train.jsonl"
	evalFile   = "eval.jsonl"
	tracesFile = "traces.jsonl"
)

// taskLine is one task: its id is its number in the file, which is also the
// environment server's.
type taskLine struct {
	TaskID    string               `json:"task_id"`
	Split     string               `json:"split"`
	QueryHash string               `json:"query_hash"`
	Level     string               `json:"level"`
	Prompt    []travel.ChatMessage `json:"prompt"`
}

// traceLine is one conversation of the expert.
type traceLine struct {
	TaskID   string               `json:"task_id"`
	Messages []travel.ChatMessage `json:"messages"`
	Success  bool                 `json:"success"`
}

// systemPrompt is what a policy is told, in the form it is to write in.
func systemPrompt(form string) string {
	if form == FormTools {
		return travel.SystemPromptTools()
	}
	return travel.SystemPrompt()
}

// write writes the files of the set into dir.
func (s *taskSet) write(dir, form string) (notes map[string]any, err error) {
	system := travel.ChatMessage{Role: "system", Content: systemPrompt(form)}
	tasks := func(split string, qs []travel.Query) func(*json.Encoder) error {
		return func(enc *json.Encoder) error {
			for i, q := range qs {
				err := enc.Encode(taskLine{TaskID: strconv.Itoa(i), Split: split, QueryHash: q.Hash(), Level: q.Level,
					Prompt: []travel.ChatMessage{system, {Role: "user", Content: q.Text}}})
				if err != nil {
					return err
				}
			}
			return nil
		}
	}
	err = errors.Join(
		writeLines(filepath.Join(dir, trainFile), tasks(splitTrain, s.train)),
		writeLines(filepath.Join(dir, evalFile), tasks(splitEval, s.eval)),
	)
	if len(s.traces) > 0 {
		err = errors.Join(err, writeLines(filepath.Join(dir, tracesFile), func(enc *json.Encoder) error {
			for i := range s.traces {
				t := &s.traces[i]
				if err := enc.Encode(traceLine{TaskID: t.Query.Hash(), Messages: conversation(t, form), Success: t.Trajectory.Success}); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	if err != nil {
		return nil, err
	}
	return map[string]any{"train": len(s.train), "eval": len(s.eval), "traces": len(s.traces), "panel": s.panel, "form": form}, nil
}

func writeLines(path string, write func(*json.Encoder) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if err := errors.Join(write(enc), w.Flush(), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	return nil
}

// conversation is a trace in the form that the policy is to write in. Experts
// write the text form; in the other one its tags become native tool calls.
func conversation(t *synth.Trace, form string) []travel.ChatMessage {
	list := make([]travel.ChatMessage, len(t.Messages))
	for i, m := range t.Messages {
		list[i] = travel.ChatMessage{Role: m.Role, Content: m.Content}
	}
	if form != FormTools {
		return list
	}
	calls := 0
	for i := range list {
		m := &list[i]
		switch {
		case i == 0 && m.Role == "system":
			m.Content = systemPrompt(form)
		case m.Role == "assistant":
			f, problem := travel.CheckForm(m.Content)
			if problem != "" {
				continue // a slip of the expert's pen stays one
			}
			m.Content = "<think>" + f.Think + "</think>"
			if f.Call == nil {
				m.Content += "\n" + f.Answer
				continue
			}
			m.ToolCalls = []travel.ChatCall{{ID: "call_" + strconv.Itoa(calls), Type: "function", Function: travel.ChatFunction{
				Name: f.Call.Name, Arguments: rawArguments(t.Messages[i].Content)}}}
		case m.Role == "user" && strings.HasPrefix(m.Content, "<tool_response>"):
			body := strings.TrimPrefix(m.Content, "<tool_response>\n")
			m.Role, m.Content = "tool", strings.TrimSuffix(body, "</tool_response>")
			m.ToolCallID = "call_" + strconv.Itoa(calls)
			calls++
		}
	}
	return list
}

// rawArguments are a call's arguments as the expert wrote them, keys in its
// order.
func rawArguments(text string) string {
	_, body, _ := strings.Cut(text, "<tool_call>")
	body, _, _ = strings.Cut(body, "</tool_call>")
	var call struct {
		Arguments json.RawMessage `json:"arguments"`
	}
	if json.Unmarshal([]byte(strings.TrimSpace(body)), &call) != nil || len(call.Arguments) == 0 {
		return "{}"
	}
	return string(call.Arguments)
}
