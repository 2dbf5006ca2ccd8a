package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"alidade/sandbox/travel"
)

// chatMessage is a message of a chat completion, as far as it is read here.
type chatMessage struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	ToolCalls []struct {
		Function struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// readMessages reads a conversation; keys that are not known are left alone.
func readMessages(src json.RawMessage) ([]chatMessage, error) {
	src = bytes.TrimSpace(src)
	if len(src) == 0 || string(src) == "null" {
		return nil, nil
	}
	var list []chatMessage
	if err := json.Unmarshal(src, &list); err != nil {
		return nil, refuse("messages", err.Error(), "a list of chat messages with role, content and tool_calls")
	}
	return list, nil
}

// text returns the content, which may be a text or a list of parts with texts.
func (m *chatMessage) text() string {
	var text string
	if json.Unmarshal(m.Content, &text) == nil {
		return text
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(m.Content, &parts) != nil {
		return ""
	}
	for _, p := range parts {
		text += p.Text
	}
	return text
}

// messageProblem applies the rules of form to what the policy said: one tool
// call a turn, and in the text form the tags. It names the first turn that
// breaks them.
func messageProblem(messages []chatMessage, form string) string {
	turn := 0
	for i := range messages {
		m := &messages[i]
		if m.Role != "assistant" {
			continue
		}
		turn++
		problem := ""
		switch {
		case len(m.ToolCalls) > 1:
			problem = "more than one tool call"
		case len(m.ToolCalls) == 1:
			problem = callProblem(m)
		case form == FormReact:
			_, problem = travel.CheckForm(m.text())
		}
		if problem != "" {
			return fmt.Sprintf("turn %d: %s", turn, problem)
		}
	}
	return ""
}

func callProblem(m *chatMessage) string {
	f := &m.ToolCalls[0].Function
	if !travel.KnownTool(f.Name) {
		return fmt.Sprintf("there is no tool %q", f.Name)
	}
	if _, err := parseArguments(f.Arguments); err != nil {
		return err.Error()
	}
	return ""
}

// afterTools cuts everything up to the last tool result: a trainer may hand
// over the whole conversation as one text, and what a tool said is no answer.
func afterTools(text string) string {
	const tag = "</tool_response>"
	if i := strings.LastIndex(text, tag); i >= 0 {
		return text[i+len(tag):]
	}
	return text
}

// isTurn tells whether a text is a whole turn of the text form rather than
// the answer alone.
func isTurn(text string) bool {
	return strings.Contains(text, "<think>") || strings.Contains(text, "<answer>") || strings.Contains(text, "<tool_call>")
}

// finalAnswer finds the answer in what a policy wrote last: between answer
// tags if there are any (to the end if they are not closed), else behind its
// thoughts. A last turn that calls a tool has none.
func finalAnswer(text, form string) string {
	text = afterTools(text)
	if _, body, ok := strings.Cut(text, "<answer>"); ok {
		if i := strings.LastIndex(body, "</answer>"); i >= 0 {
			body = body[:i]
		}
		return strings.TrimSpace(body)
	}
	if strings.Contains(text, "<tool_call>") || form == FormReact && isTurn(text) {
		return ""
	}
	if i := strings.LastIndex(text, "</think>"); i >= 0 {
		text = text[i+len("</think>"):]
	}
	return strings.TrimSpace(text)
}

// thought is what stands between the think tags, or before the closing one:
// chat templates may open it in the prompt.
func thought(text string) string {
	think, _, ok := strings.Cut(text, "</think>")
	if !ok {
		return ""
	}
	if _, rest, ok := strings.Cut(think, "<think>"); ok {
		think = rest
	}
	return strings.TrimSpace(think)
}
