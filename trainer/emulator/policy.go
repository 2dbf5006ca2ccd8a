package emulator

import (
	"encoding/json"
	"fmt"
	"strings"
)

// policy is a fixed one: two look-ups, then an answer, which for every other
// rollout is an empty plan, so that rewards differ within a group. It does not
// learn.
type policy struct {
	react bool // writes tags rather than native calls
	good  bool // hands in a plan
}

// look-ups of the first turns.
var lookups = []call{
	{"SearchCity", map[string]string{"state": "Ohio"}},
	{"SearchAttraction", map[string]string{"city": "Cleveland"}},
}

type call struct {
	Name string            `json:"name"`
	Args map[string]string `json:"arguments"`
}

// turn is the policy's turn number n, from 0.
func (p policy) turn(n int) (text string, c *call) {
	think := fmt.Sprintf("<think>Turn %d of the emulated policy.</think>\n", n+1)
	if n < len(lookups) {
		c = &lookups[n]
		if p.react {
			src, err := json.Marshal(c)
			if err != nil {
				return think, nil
			}
			return think + "<tool_call>" + string(src) + "</tool_call>", c
		}
		return think, c
	}
	if p.react {
		return think + "<answer>" + p.plan() + "</answer>", nil
	}
	return think + p.plan(), nil
}

// plan is a plan of three days at home, or none.
func (p policy) plan() string {
	if !p.good {
		return "[]"
	}
	var days []string
	for i := range 3 {
		days = append(days, fmt.Sprintf(`{"day": %d, "current_city": "Cleveland", "transportation": "-", "breakfast": "-", "lunch": "-", "dinner": "-", "attraction": "-", "accommodation": "-"}`, i+1))
	}
	return "[" + strings.Join(days, ", ") + "]"
}

// words is what a dump would show of an episode's response: the chat without
// its special tokens, roles as bare lines.
func (p policy) words() string {
	var b strings.Builder
	for n := range len(lookups) + 1 {
		text, c := p.turn(n)
		if n > 0 {
			b.WriteString("assistant\n")
		}
		b.WriteString(text)
		if c == nil {
			break
		}
		if !p.react {
			src, err := json.Marshal(c)
			if err != nil {
				break
			}
			b.WriteString("<tool_call>\n" + string(src) + "\n</tool_call>")
		}
		b.WriteString("\nuser\n<tool_response>\nseen\n</tool_response>\n")
	}
	return b.String()
}
