package travel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Message is one message of a conversation with a language model.
type Message struct {
	Role    string `json:"role"` // system, user, assistant
	Content string `json:"content"`
}

// Policy is a language model: it gets the conversation and returns its next turn.
type Policy func(ctx context.Context, messages []Message) (string, error)

// ReactConfig sets the budgets of a conversation.
type ReactConfig struct {
	MaxContext int              // tokens over all messages; 0 = 32,768
	Count      func(string) int // tokens of a text; nil = a quarter of its bytes
	StrictPlan bool             // the answer must be exactly the JSON list, nothing around it
	StopAtForm bool             // end the episode at the first turn out of form
	System     string           // system prompt; "" = SystemPrompt()
}

// maxReactTurns holds when neither the episode nor the caller sets a budget.
const maxReactTurns = 60

// React lets a policy play an episode in the text form: a turn is
// <think>…</think> and then either <tool_call>{"name": …, "arguments": {…}}</tool_call>
// or <answer>plan</answer>; tool results come back in the user role between
// <tool_response> tags. Like the published loop it is lenient: a tool call is
// looked for before an answer, an unclosed answer counts, a turn without
// either costs a turn. The strict check of the form runs beside it and its
// first complaint becomes the episode's format error. The error is the
// policy's own; the episode is then unfinished.
func React(ctx context.Context, e *Episode, policy Policy, c ReactConfig) error {
	r := newReact(e, c)
	for range r.turns() {
		text, err := policy(ctx, r.messages)
		if err != nil {
			return fmt.Errorf("policy: %w", err)
		}
		done := r.turn(text)
		if done {
			return nil
		}
		if r.tokens() > r.c.MaxContext {
			return r.summarise(ctx, policy)
		}
	}
	r.spent()
	return nil
}

// talk is what conversations of either form share.
type talk struct {
	e       *Episode
	c       ReactConfig
	problem string // the first thing out of form
	used    int    // tokens of the messages counted so far
	counted int
}

// react is a conversation under way.
type react struct {
	talk
	messages []Message
}

func newTalk(e *Episode, c ReactConfig) talk {
	if c.MaxContext <= 0 {
		c.MaxContext = 32_768
	}
	if c.Count == nil {
		c.Count = func(s string) int { return (len(s) + 3) / 4 }
	}
	return talk{e: e, c: c}
}

func newReact(e *Episode, c ReactConfig) *react {
	if c.System == "" {
		c.System = SystemPrompt()
	}
	return &react{talk: newTalk(e, c), messages: []Message{{"system", c.System}, {"user", e.q.Text}}}
}

// tokens counts the texts of all messages, without a template around them.
func (r *react) tokens() int {
	for ; r.counted < len(r.messages); r.counted++ {
		r.used += r.c.Count(r.messages[r.counted].Content)
	}
	return r.used
}

// turns is the turn budget.
func (r *talk) turns() int {
	if r.e.c.MaxTurns > 0 {
		return r.e.c.MaxTurns
	}
	return maxReactTurns
}

// spent ends an episode whose turn budget is used up.
func (r *talk) spent() {
	r.complain("the turn budget was spent without an answer")
	r.e.Finish(Plan{}, EndTurns, r.problem)
}

func (r *talk) complain(problem string) {
	if r.problem == "" && problem != "" {
		r.problem = problem
	}
}

// turn acts on what the policy wrote and tells whether the episode is over.
func (r *react) turn(text string) (done bool) {
	r.messages = append(r.messages, Message{"assistant", text})
	form, problem := CheckForm(text)
	if problem != "" {
		r.complain(fmt.Sprintf("turn %d: %s", r.e.Turns()+1, problem))
	}
	if problem != "" && r.c.StopAtForm {
		r.e.Say(text, "")
		r.note(form.Think, text)
		r.e.Finish(Plan{}, EndFormat, r.problem)
		return true
	}
	body, called := between(text, "<tool_call>", "</tool_call>")
	switch answer, answered := looseAnswer(text); {
	case called:
		r.call(body, text, form.Think)
	case answered:
		r.e.Say("", "")
		r.note(form.Think, text)
		r.answer(answer, EndAnswer)
		return true
	default:
		r.e.Say(text, "")
		r.note("", text)
	}
	return false
}

// call runs the text of a tool call and appends what comes back.
func (r *react) call(body, text, think string) {
	call, err := ParseCall(body)
	var response string
	switch {
	case err != nil:
		response = "Error calling tool: " + err.Error()
		r.e.Say(text, response)
	default:
		response = r.e.Call(call.Name, call.Arguments).Text
	}
	r.note(think, text)
	response = "<tool_response>\n" + response + "</tool_response>"
	r.messages = append(r.messages, Message{"user", response})
	r.e.Last().Observe.Tokens = r.c.Count(response)
}

func (r *talk) note(think, text string) {
	t := r.e.Last()
	t.Think, t.Tokens = think, r.c.Count(text)
}

func (r *talk) answer(text, end string) {
	r.e.SetAnswer(text)
	p, err := r.parse(text)
	if err != nil {
		r.complain("the answer is out of form: " + err.Error())
	}
	r.e.Finish(p, end, r.problem)
}

func (r *talk) parse(text string) (Plan, error) {
	if r.c.StrictPlan {
		return ParsePlanStrict(text)
	}
	return ParsePlan(text)
}

const summariseText = "The conversation has reached its limit of tokens. Write the travel plan now, from what you know, between <answer> tags."

// summarise asks once more for a plan in place of the last message: the
// context is full, and the episode ends with whatever comes.
func (r *react) summarise(ctx context.Context, policy Policy) error {
	r.messages[len(r.messages)-1].Content = summariseText
	text, err := policy(ctx, r.messages)
	if err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	r.messages = append(r.messages, Message{"assistant", text})
	form, problem := CheckForm(text)
	r.complain(problem)
	answer, ok := looseAnswer(text)
	if !ok {
		answer = text
	}
	r.e.Say("", "")
	r.note(form.Think, text)
	r.answer(answer, EndContext)
	return nil
}

// between returns what stands between the first pair of tags.
func between(s, open, shut string) (string, bool) {
	_, rest, ok := strings.Cut(s, open)
	if !ok || !strings.Contains(s, shut) {
		return "", false
	}
	body, _, _ := strings.Cut(rest, shut)
	return strings.TrimSpace(body), true
}

// looseAnswer takes the text from the first opening to the last closing tag,
// or to the end if it is never closed.
func looseAnswer(s string) (string, bool) {
	i := strings.Index(s, "<answer>")
	if i < 0 {
		return "", false
	}
	s = s[i+len("<answer>"):]
	if j := strings.LastIndex(s, "</answer>"); j >= 0 {
		s = s[:j]
	}
	return strings.TrimSpace(s), true
}

// ToolCall is a call as a policy writes it.
type ToolCall struct {
	Name      string
	Arguments map[string]any
}

var errCallForm = errors.New(`a call must be {"name": tool, "arguments": {…}}`)

// ParseCall reads the JSON of a tool call. The tool need not exist.
func ParseCall(body string) (ToolCall, error) {
	var raw struct {
		Name      *string         `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if err := json.Unmarshal([]byte(body), &raw); err != nil {
		return ToolCall{}, fmt.Errorf("the call is not sound JSON: %w", err)
	}
	if raw.Name == nil || raw.Arguments == nil {
		return ToolCall{}, errCallForm
	}
	c := ToolCall{Name: *raw.Name}
	if err := json.Unmarshal(raw.Arguments, &c.Arguments); err != nil || c.Arguments == nil {
		return ToolCall{}, errCallForm
	}
	return c, nil
}

// Form is a turn in form, taken apart.
type Form struct {
	Think  string
	Call   *ToolCall // nil on an answer
	Answer string
}

// CheckForm applies the strict rule for one turn: exactly one closed think,
// then exactly one closed tool_call or answer, nothing else but white space;
// a call is sound JSON with a known tool and an object of arguments. problem
// says what is wrong, "" for nothing. What could be read is in the form.
func CheckForm(text string) (f Form, problem string) {
	for _, tag := range [...]string{"think", "tool_call", "answer"} {
		open, shut := strings.Count(text, "<"+tag+">"), strings.Count(text, "</"+tag+">")
		if open != shut {
			return f, "a <" + tag + "> tag is not closed"
		}
		if open > 1 {
			return f, "more than one <" + tag + ">"
		}
	}
	rest := strings.TrimSpace(text)
	think, rest, ok := element(rest, "think")
	if !ok {
		return f, "the turn does not begin with <think>…</think>"
	}
	f.Think = strings.TrimSpace(think)
	rest = strings.TrimSpace(rest)
	if body, tail, ok := element(rest, "tool_call"); ok {
		call, err := ParseCall(strings.TrimSpace(body))
		switch {
		case err != nil:
			return f, err.Error()
		case !KnownTool(call.Name):
			return f, "there is no tool " + quote(call.Name)
		case strings.TrimSpace(tail) != "":
			return f, "there is text behind </tool_call>"
		}
		f.Call = &call
		return f, ""
	}
	body, tail, ok := element(rest, "answer")
	if !ok {
		return f, "neither <tool_call> nor <answer> follows </think>"
	}
	f.Answer = strings.TrimSpace(body)
	if strings.TrimSpace(tail) != "" {
		return f, "there is text behind </answer>"
	}
	return f, ""
}

// element cuts an element that stands at the start of a text.
func element(s, tag string) (body, rest string, ok bool) {
	if s, ok = strings.CutPrefix(s, "<"+tag+">"); !ok {
		return "", "", false
	}
	body, rest, ok = strings.Cut(s, "</"+tag+">")
	return body, rest, ok
}
