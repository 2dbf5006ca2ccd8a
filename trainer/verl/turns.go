package verl

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"alidade/trainer"
)

// Trainers decode rollouts without special tokens: roles are bare lines,
// while the tags of calls, results and thoughts are text and survive.
const (
	callOpen   = "<tool_call>"
	callClose  = "</tool_call>"
	reply      = "<tool_response>"
	replyClose = "</tool_response>"
	thinkOpen  = "<think>"
	thinkClose = "</think>"
)

var (
	roleLine = regexp.MustCompile(`(?m)^(system|user|assistant|tool)[ \t]*$`)
	leading  = regexp.MustCompile(`^\s*(?:assistant|user|tool)?[ \t]*\n`)
	trailing = regexp.MustCompile(`\n(?:user|assistant|tool)[ \t]*\n?\s*$`)
)

// SplitTurns cuts the decoded text of a rollout into turns at the tags of its
// tool calls and their results. answer is what stands after the last one.
func SplitTurns(output string) (turns []trainer.Turn, answer string) {
	rest := output
	for {
		before, after, ok := strings.Cut(rest, callOpen)
		if !ok {
			break
		}
		said, next, closed := strings.Cut(after, callClose)
		if !closed {
			break
		}
		t := trainer.Turn{Think: thought(before)}
		if call, ok := parseCall(said); ok {
			t.Call = call
		} else {
			t.Raw = strings.TrimSpace(said)
		}
		// The result belongs to this call if it comes before the next one.
		head, tail, found := strings.Cut(next, reply)
		if found && !strings.Contains(head, callOpen) {
			result, further, _ := strings.Cut(tail, replyClose)
			t.Observe = &trainer.Observed{Text: strings.TrimSpace(result)}
			next = leading.ReplaceAllString(further, "")
		}
		turns = append(turns, t)
		rest = next
	}
	if text := strings.TrimSpace(rest); text != "" {
		think, said := splitThought(text)
		turns = append(turns, trainer.Turn{Think: think})
		answer = said
	}
	return turns, answer
}

// thought is what a policy wrote before a call, without tags and role lines.
func thought(s string) string {
	s = strings.NewReplacer(thinkOpen, "", thinkClose, "").Replace(s)
	s = leading.ReplaceAllString(s, "")
	return strings.TrimSpace(trailing.ReplaceAllString(s, ""))
}

func splitThought(s string) (think, rest string) {
	s = leading.ReplaceAllString(s, "")
	before, after, ok := strings.Cut(s, thinkClose)
	if !ok {
		return "", strings.TrimSpace(s)
	}
	return strings.TrimSpace(strings.Replace(before, thinkOpen, "", 1)), strings.TrimSpace(after)
}

// parseCall reads the JSON of a call, as Hermes writes it.
func parseCall(s string) (*trainer.Call, bool) {
	var c struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if json.Unmarshal([]byte(strings.TrimSpace(s)), &c) != nil || c.Name == "" {
		return nil, false
	}
	call := &trainer.Call{Tool: c.Name, Args: []trainer.Arg{}}
	raw := c.Arguments
	var quoted string
	if json.Unmarshal(raw, &quoted) == nil {
		raw = []byte(quoted)
	}
	var args map[string]any
	if len(raw) > 0 && json.Unmarshal(raw, &args) != nil {
		return nil, false
	}
	for _, name := range keysOf(args) {
		value := fmt.Sprint(args[name])
		if text, ok := args[name].(string); ok {
			value = text
		} else if b, err := json.Marshal(args[name]); err == nil {
			value = string(b)
		}
		call.Args = append(call.Args, trainer.Arg{Name: name, Value: value})
	}
	return call, true
}

func keysOf[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for k := range m {
		names = append(names, k)
	}
	slices.Sort(names)
	return names
}

// LastUser is what the last user message of a decoded prompt says.
func LastUser(input string) string {
	at := roleLine.FindAllStringSubmatchIndex(input, -1)
	for i := len(at) - 1; i >= 0; i-- {
		if input[at[i][2]:at[i][3]] != "user" {
			continue
		}
		end := len(input)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		return strings.TrimSpace(input[at[i][1]:end])
	}
	return strings.TrimSpace(input)
}
