package web

import (
	"bytes"
	"encoding/json"

	"alidade/trainer"
)

// A message is one turn of a chat in the form language-model tools exchange.
type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// messagesOf writes an episode as chat messages in the tags of the protocol:
// the query, then the policy's turns and the tools' answers in turn.
func messagesOf(t *trainer.Trajectory) []message {
	out := []message{{"user", t.Query.Text}}
	for i, turn := range t.Turns {
		said := turn.Raw
		if said == "" {
			if turn.Think != "" {
				said = "<think>" + turn.Think + "</think>"
			}
			switch {
			case turn.Call != nil:
				said += "<tool_call>" + callJSON(turn.Call) + "</tool_call>"
			case i == len(t.Turns)-1:
				said += "<answer>" + t.Answer + "</answer>"
			}
		}
		out = append(out, message{"assistant", said})
		if turn.Observe != nil {
			out = append(out, message{"user", "<tool_response>\n" + turn.Observe.Text + "\n</tool_response>"})
		}
	}
	return out
}

// callJSON writes a call with its arguments in the tool's order.
func callJSON(c *trainer.Call) string {
	var b bytes.Buffer
	text := func(s string) {
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(s) // a string always encodes
		b.Truncate(b.Len() - 1)
	}
	b.WriteString(`{"name": `)
	text(c.Tool)
	b.WriteString(`, "arguments": {`)
	for i, a := range c.Args {
		if i > 0 {
			b.WriteString(", ")
		}
		text(a.Name)
		b.WriteString(": ")
		text(a.Value)
	}
	b.WriteString("}}")
	return b.String()
}

// indentJSON lays JSON out for reading; what is not JSON comes back as it is.
func indentJSON(raw []byte) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}
