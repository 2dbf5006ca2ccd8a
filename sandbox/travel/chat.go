package travel

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// ChatMessage is a message in the form of OpenAI's chat completions, with the
// tool calls that a model makes through its own template.
type ChatMessage struct {
	Role       string     `json:"role"` // system, user, assistant, tool
	Content    string     `json:"content"`
	ToolCalls  []ChatCall `json:"tool_calls,omitempty"`   // of an assistant
	ToolCallID string     `json:"tool_call_id,omitempty"` // which call a tool message answers
}

// ChatCall is one tool call of an assistant message.
type ChatCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"` // function
	Function ChatFunction `json:"function"`
}

// ChatFunction names the tool; Arguments is the text of a JSON object.
type ChatFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// ChatPolicy is a language model that makes native tool calls: it gets the
// conversation and the tools' schemas and returns its next message.
type ChatPolicy func(ctx context.Context, messages []ChatMessage, tools []json.RawMessage) (ChatMessage, error)

// ToolSchemas are the six tools as function schemas.
func ToolSchemas() []json.RawMessage {
	var list []json.RawMessage
	for _, t := range ToolSpecs() {
		list = append(list, t.Schema())
	}
	return list
}

// Chat lets a policy play an episode in the native tool-call form. A message
// in form makes exactly one call, or none and then it is the answer: what
// stands between <answer> tags, else all of it behind its thoughts. Of several
// calls the first runs; the others are refused, which is a format error, and
// so is a call that is no JSON object or names no tool. Budgets, parsing of
// the answer and the error are as in [React].
func Chat(ctx context.Context, e *Episode, policy ChatPolicy, c ReactConfig) error {
	if c.System == "" {
		c.System = SystemPromptTools()
	}
	r := &chat{talk: newTalk(e, c), messages: []ChatMessage{{Role: "system", Content: c.System}, {Role: "user", Content: e.q.Text}}}
	tools := ToolSchemas()
	for range r.turns() {
		m, err := policy(ctx, r.messages, tools)
		if err != nil {
			return fmt.Errorf("policy: %w", err)
		}
		if r.turn(m) {
			return nil
		}
		if r.tokens() > r.c.MaxContext {
			return r.summarise(ctx, policy)
		}
	}
	r.spent()
	return nil
}

type chat struct {
	talk
	messages []ChatMessage
}

// tokens counts contents and calls of all messages, without a template around them.
func (r *chat) tokens() int {
	for ; r.counted < len(r.messages); r.counted++ {
		r.used += r.size(&r.messages[r.counted])
	}
	return r.used
}

func (r *chat) size(m *ChatMessage) int {
	n := r.c.Count(m.Content)
	for _, c := range m.ToolCalls {
		n += r.c.Count(c.Function.Name) + r.c.Count(c.Function.Arguments)
	}
	return n
}

// CheckMessage applies the strict rule for one assistant message. problem
// says what is wrong, "" for nothing.
func CheckMessage(m ChatMessage) (problem string) {
	switch {
	case len(m.ToolCalls) == 0 && strings.TrimSpace(m.Content) == "":
		return "the message has neither a tool call nor an answer"
	case len(m.ToolCalls) == 0:
		return ""
	case len(m.ToolCalls) > 1:
		return "more than one tool call"
	case strings.Contains(m.Content, "<answer>"):
		return "an answer beside a tool call"
	case !KnownTool(m.ToolCalls[0].Function.Name):
		return "there is no tool " + quote(m.ToolCalls[0].Function.Name)
	}
	_, err := m.ToolCalls[0].arguments()
	if err != nil {
		return err.Error()
	}
	return ""
}

func (c *ChatCall) arguments() (map[string]any, error) {
	var args map[string]any
	if err := json.Unmarshal([]byte(c.Function.Arguments), &args); err != nil || args == nil {
		return nil, fmt.Errorf("the arguments of %s must be the text of a JSON object", quote(c.Function.Name))
	}
	return args, nil
}

// turn acts on a message and tells whether the episode is over.
func (r *chat) turn(m ChatMessage) (done bool) {
	m.Role = "assistant"
	problem := CheckMessage(m)
	if problem != "" {
		r.complain(fmt.Sprintf("turn %d: %s", r.e.Turns()+1, problem))
	}
	think, rest := thoughts(m.Content)
	if problem != "" && r.c.StopAtForm {
		r.e.Say(m.text(), "")
		r.noteSize(think, &m)
		r.e.Finish(Plan{}, EndFormat, r.problem)
		return true
	}
	r.messages = append(r.messages, m)
	switch {
	case len(m.ToolCalls) > 0:
		r.call(&m, think)
		return false
	case strings.TrimSpace(rest) == "":
		r.e.Say(m.text(), "")
		r.noteSize(think, &m)
		return false
	}
	r.e.Say("", "")
	r.noteSize(think, &m)
	answer, ok := looseAnswer(rest)
	if !ok {
		answer = strings.TrimSpace(rest)
	}
	r.answer(answer, EndAnswer)
	return true
}

// call runs the first call; every call gets the message that answers it.
func (r *chat) call(m *ChatMessage, think string) {
	for i := range m.ToolCalls {
		c := &m.ToolCalls[i]
		response := "Only one call a turn: this one was not run."
		if i == 0 {
			if args, err := c.arguments(); err != nil {
				response = "Error calling tool: " + err.Error()
				r.e.Say(m.text(), response)
			} else {
				response = r.e.Call(c.Function.Name, args).Text
			}
			r.noteSize(think, m)
			r.e.Last().Observe.Tokens = r.c.Count(response)
		}
		r.messages = append(r.messages, ChatMessage{Role: "tool", Content: response, ToolCallID: c.ID})
	}
}

func (r *chat) noteSize(think string, m *ChatMessage) {
	t := r.e.Last()
	t.Think, t.Tokens = think, r.size(m)
}

// text is the message as a record keeps it when it was out of form.
func (m *ChatMessage) text() string {
	src, _ := json.Marshal(m) // texts cannot fail
	return string(src)
}

// thoughts splits a <think> element off the start of a content.
func thoughts(content string) (think, rest string) {
	body, rest, ok := element(strings.TrimSpace(content), "think")
	if !ok {
		return "", content
	}
	return strings.TrimSpace(body), rest
}

// summarise asks once more for a plan in place of the last message.
func (r *chat) summarise(ctx context.Context, policy ChatPolicy) error {
	for r.messages[len(r.messages)-1].Role == "tool" { // with the call it answers
		r.messages = r.messages[:len(r.messages)-1]
	}
	r.messages[len(r.messages)-1] = ChatMessage{Role: "user", Content: summariseText}
	m, err := policy(ctx, r.messages, nil)
	if err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	m.Role = "assistant"
	r.messages = append(r.messages, m)
	r.complain(CheckMessage(m))
	think, rest := thoughts(m.Content)
	answer, ok := looseAnswer(rest)
	if !ok {
		answer = rest
	}
	r.e.Say("", "")
	r.noteSize(think, &m)
	r.answer(answer, EndContext)
	return nil
}
