package endpoint

import (
	"encoding/json"
	"strings"

	"alidade/ablation"
	"alidade/sandbox/travel"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
)

// request builds what is sent for a conversation: the messages as the episode
// has them, but the assistant's own as the server wrote them. own are the
// replies so far, in order; tools are empty in the react form.
func request(e ablation.Endpoint, model string, messages []travel.ChatMessage, own []reply, tools []json.RawMessage) openai.ChatCompletionNewParams {
	p := openai.ChatCompletionNewParams{Model: model}
	if e.Temperature >= 0 {
		p.Temperature = openai.Float(e.Temperature)
	}
	if e.TopP > 0 {
		p.TopP = openai.Float(e.TopP)
	}
	for _, t := range tools {
		tool := param.Override[openai.ChatCompletionFunctionToolParam](t)
		p.Tools = append(p.Tools, openai.ChatCompletionToolUnionParam{OfFunction: &tool})
	}
	for _, m := range messages {
		switch m.Role {
		case "system":
			p.Messages = append(p.Messages, openai.SystemMessage(m.Content))
		case "tool":
			p.Messages = append(p.Messages, openai.ToolMessage(m.Content, m.ToolCallID))
		case "assistant":
			r := reply{Content: m.Content, Calls: m.ToolCalls}
			if len(own) > 0 {
				r, own = own[0], own[1:]
			}
			p.Messages = append(p.Messages, assistant(r, e.Reasoning == "keep"))
		default:
			p.Messages = append(p.Messages, openai.UserMessage(m.Content))
		}
	}
	if len(e.Extra) > 0 {
		extra := map[string]any{}
		for k, v := range e.Extra {
			extra[k] = v
			if json.Valid([]byte(v)) {
				extra[k] = json.RawMessage(v)
			}
		}
		p.SetExtraFields(extra)
	}
	return p
}

// assistant is an earlier turn of the model. Content that was null stays out,
// and so does reasoning unless it is kept. Arguments that are no JSON object
// are sent as an empty one: servers parse them to fill their template and
// would refuse the conversation; the tool's answer tells the model.
func assistant(r reply, keepReasoning bool) openai.ChatCompletionMessageParamUnion {
	m := openai.ChatCompletionAssistantMessageParam{}
	if r.Content != "" || len(r.Calls) == 0 {
		m.Content.OfString = openai.String(r.Content)
	}
	for _, c := range r.Calls {
		args := c.Function.Arguments
		if !isObject(args) {
			args = "{}"
		}
		m.ToolCalls = append(m.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
			ID:       c.ID,
			Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: c.Function.Name, Arguments: args},
		}})
	}
	if keepReasoning && r.Reasoning != "" {
		m.SetExtraFields(map[string]any{r.ReasoningKey: r.Reasoning})
	}
	return openai.ChatCompletionMessageParamUnion{OfAssistant: &m}
}

func isObject(s string) bool {
	var m map[string]any
	return json.Unmarshal([]byte(s), &m) == nil && m != nil
}

// spoken is a reply as the text of a turn: what a server's parsers took out
// of it is put back where the model wrote it.
func (r *reply) spoken(react bool) string {
	text := r.Content
	switch {
	case r.Reasoning != "" && !strings.HasPrefix(strings.TrimSpace(text), "<think>"):
		text = "<think>\n" + strings.TrimSpace(r.Reasoning) + "\n</think>\n" + text
	case strings.Contains(text, "</think>") && !strings.Contains(text, "<think>"): // the template opens it in the prompt
		text = "<think>" + text
	}
	if react && len(r.Calls) > 0 && !strings.Contains(text, "<tool_call>") {
		f := r.Calls[0].Function
		name, _ := json.Marshal(f.Name) // texts cannot fail
		text = strings.TrimRight(text, "\n") + "\n<tool_call>{\"name\": " + string(name) + ", \"arguments\": " + f.Arguments + "}</tool_call>"
	}
	if text == "" {
		text = r.Refusal
	}
	return text
}

// textCallMarks begin tool calls that no parser took out of the content.
var textCallMarks = []string{"<tool_call>", "<|tool_call", "<function=", "[TOOL_CALLS]", "<|python_tag|>", "<tool_calls>"}

// unparsed tells whether a reply holds a tool call as text.
func (r *reply) unparsed() bool {
	if len(r.Calls) > 0 {
		return false
	}
	for _, mark := range textCallMarks {
		if strings.Contains(r.Content, mark) {
			return true
		}
	}
	return false
}
