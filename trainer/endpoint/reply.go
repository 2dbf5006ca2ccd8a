package endpoint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"alidade/sandbox/travel"
)

// reply is one answer of the model, as the journal keeps it.
type reply struct {
	Episode string `json:"e"`
	Turn    int    `json:"turn"` // 0-based

	Content      string            `json:"content,omitempty"`
	Reasoning    string            `json:"reasoning,omitempty"`
	ReasoningKey string            `json:"reasoning_key,omitempty"` // under which the server sent it
	Calls        []travel.ChatCall `json:"calls,omitempty"`
	Finish       string            `json:"finish,omitempty"`
	Refusal      string            `json:"refusal,omitempty"`

	In        int     `json:"in"`  // prompt tokens
	Out       int     `json:"out"` // generated tokens
	Cached    int     `json:"cached,omitempty"`
	Thought   int     `json:"thought,omitempty"`   // reasoning tokens, of Out
	Estimated bool    `json:"estimated,omitempty"` // the server did not say; a quarter of the bytes
	Cost      float64 `json:"cost,omitempty"`      // $
	Seconds   float64 `json:"s"`
	Retries   int     `json:"retries,omitempty"`
}

// completion is an answer as servers write it, read leniently.
type completion struct {
	Choices []struct {
		Message struct {
			Content          json.RawMessage `json:"content"` // text, null, or parts
			ReasoningContent *string         `json:"reasoning_content"`
			Reasoning        *string         `json:"reasoning"`
			Refusal          *string         `json:"refusal"`
			ToolCalls        []struct {
				ID       string `json:"id"`
				Function struct {
					Name      string          `json:"name"`
					Arguments json.RawMessage `json:"arguments"` // text of an object, or the object
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"message"`
		FinishReason *string `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		PromptMore *struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
		CompletionMore *struct {
			Reasoning int `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
	} `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// readReply reads the body of an answer with status 200. A body that is no
// completion is the server's fault.
func readReply(body []byte) (reply, *fault) {
	var c completion
	if err := json.Unmarshal(body, &c); err != nil {
		return reply{}, &fault{kind: transient, code: "not-json", text: "the answer is not a completion: " + excerpt(body)}
	}
	if len(c.Choices) == 0 {
		if len(c.Error) > 0 && !bytes.Equal(c.Error, []byte("null")) { // an error that wears the wrong status
			return reply{}, classify(errorCode(c.Error), nil, body)
		}
		return reply{}, &fault{kind: transient, code: "no-choice", text: "the answer has no choice: " + excerpt(body)}
	}
	m := c.Choices[0].Message
	r := reply{Content: contentText(m.Content)}
	if c.Choices[0].FinishReason != nil {
		r.Finish = *c.Choices[0].FinishReason
	}
	if r.Finish == "abort" || r.Finish == "error" {
		return reply{}, &fault{kind: transient, code: "aborted", text: "the server broke the generation off: finish_reason " + r.Finish}
	}
	switch {
	case m.ReasoningContent != nil:
		r.Reasoning, r.ReasoningKey = *m.ReasoningContent, "reasoning_content"
	case m.Reasoning != nil:
		r.Reasoning, r.ReasoningKey = *m.Reasoning, "reasoning"
	}
	if m.Refusal != nil {
		r.Refusal = *m.Refusal
	}
	for _, t := range m.ToolCalls {
		r.Calls = append(r.Calls, travel.ChatCall{ID: t.ID, Type: "function", Function: travel.ChatFunction{Name: t.Function.Name, Arguments: argumentsText(t.Function.Arguments)}})
	}
	if u := c.Usage; u != nil {
		r.In, r.Out = max(0, u.Prompt), max(0, u.Completion)
		if u.PromptMore != nil {
			r.Cached = u.PromptMore.Cached
		}
		if u.CompletionMore != nil {
			r.Thought = u.CompletionMore.Reasoning
		}
	}
	r.Estimated = r.In == 0 || r.Out == 0 && r.size() > 0
	return r, nil
}

// size is the text of the reply, bytes.
func (r *reply) size() int {
	n := len(r.Content) + len(r.Reasoning)
	for _, c := range r.Calls {
		n += len(c.Function.Name) + len(c.Function.Arguments)
	}
	return n
}

// contentText reads a content: a text, null, or a list of parts.
func contentText(src json.RawMessage) string {
	var s string
	if json.Unmarshal(src, &s) == nil {
		return s
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(src, &parts) != nil {
		return ""
	}
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// argumentsText is the text of a call's arguments. Sloppy servers send the
// object itself; a tool without arguments may come with nothing.
func argumentsText(src json.RawMessage) string {
	var s string
	switch {
	case len(src) == 0 || bytes.Equal(src, []byte("null")):
		return "{}"
	case json.Unmarshal(src, &s) != nil:
		return string(src)
	case strings.TrimSpace(s) == "":
		return "{}"
	}
	return s
}

// excerpt is the start of a text on one line.
func excerpt(body []byte) string {
	const most = 300
	s := strings.Join(strings.Fields(strings.ToValidUTF8(string(body[:min(len(body), 2*most)]), "�")), " ")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + " …"
	}
	if s == "" {
		return "(empty)"
	}
	return s
}

// callID names a call that came without an id.
func callID(turn, i int) string { return fmt.Sprintf("call_%d_%d", turn, i) }
