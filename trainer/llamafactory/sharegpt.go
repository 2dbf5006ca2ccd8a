package llamafactory

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// shareRow is one trace in the ShareGPT form: what the policy reads and what
// it writes take turns.
type shareRow struct {
	Conversations []shareTurn `json:"conversations"`
	System        string      `json:"system"`
	Tools         string      `json:"tools"`
	TaskID        string      `json:"task_id"`
}

type shareTurn struct {
	From  string `json:"from"` // human, gpt
	Value string `json:"value"`
}

// chatMessage is a message of the driver's traces.
type chatMessage struct {
	Role      string `json:"role"`
	Content   string `json:"content"`
	ToolCalls []struct {
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// ShareGPT turns one line of the driver's traces into LLaMA-Factory's form.
// Calls and results of tools are written out as Qwen's chat template writes
// them, since LLaMA-Factory keeps no thought beside a call: the tokens are
// those that the policy meets later.
func ShareGPT(line []byte) (shareRow, error) {
	var trace struct {
		TaskID   string        `json:"task_id"`
		Messages []chatMessage `json:"messages"`
	}
	if err := json.Unmarshal(line, &trace); err != nil {
		return shareRow{}, err
	}
	row := shareRow{TaskID: trace.TaskID}
	for i, m := range trace.Messages {
		switch m.Role {
		case "system":
			if i > 0 {
				return shareRow{}, fmt.Errorf("message %d: a system message after the first", i+1)
			}
			row.System = m.Content
		case "user":
			row.add("human", m.Content)
		case "tool":
			row.add("human", "<tool_response>\n"+strings.TrimSuffix(m.Content, "\n")+"\n</tool_response>")
		case "assistant":
			text, err := m.text()
			if err != nil {
				return shareRow{}, fmt.Errorf("message %d: %w", i+1, err)
			}
			row.add("gpt", text)
		default:
			return shareRow{}, fmt.Errorf("message %d: role %q, must be system, user, assistant or tool", i+1, m.Role)
		}
	}
	if n := len(row.Conversations); n == 0 || n%2 != 0 || row.Conversations[0].From != "human" {
		return shareRow{}, errors.New("a trace must begin with a user and end with the assistant")
	}
	return row, nil
}

// add appends a turn; several of one side in a row become one.
func (r *shareRow) add(from, value string) {
	if n := len(r.Conversations); n > 0 && r.Conversations[n-1].From == from {
		r.Conversations[n-1].Value += "\n" + value
		return
	}
	r.Conversations = append(r.Conversations, shareTurn{from, value})
}

// text is an assistant's message with its calls in tags.
func (m *chatMessage) text() (string, error) {
	parts := []string{}
	if m.Content != "" {
		parts = append(parts, m.Content)
	}
	for _, c := range m.ToolCalls {
		if !json.Valid([]byte(c.Function.Arguments)) {
			return "", fmt.Errorf("the arguments of %s are not JSON", c.Function.Name)
		}
		name, err := json.Marshal(c.Function.Name)
		if err != nil {
			return "", err
		}
		parts = append(parts, fmt.Sprintf("<tool_call>\n{\"name\": %s, \"arguments\": %s}\n</tool_call>", name, c.Function.Arguments))
	}
	return strings.Join(parts, "\n"), nil
}
