package travel

import (
	"encoding/json"
	"strings"
)

// SystemPrompt tells a language model what it is to do, in which form, and
// which tools it has.
func SystemPrompt() string {
	var b strings.Builder
	b.WriteString(promptRole)
	b.WriteString("\n<tools>\n")
	for _, t := range ToolSpecs() {
		b.Write(t.Schema())
		b.WriteByte('\n')
	}
	b.WriteString("</tools>\n")
	b.WriteString(promptRules)
	return b.String()
}

// SystemPromptTools is SystemPrompt for a model that makes native tool calls:
// its chat template shows it the tools.
func SystemPromptTools() string {
	rules, _, _ := strings.Cut(promptRules, "\nExample of a turn:")
	return promptTask + "\nCall one tool a turn. A tool may be unavailable for a moment; call it again. When you know enough, answer with the plan and no call.\n" + rules
}

// Schema is the tool's description as the JSON of a function schema.
func (t ToolSpec) Schema() []byte {
	type property struct {
		Type string   `json:"type"`
		Help string   `json:"description"`
		Enum []string `json:"enum,omitempty"`
	}
	properties := map[string]property{}
	names := []string{}
	for _, p := range t.Params {
		properties[p.Name] = property{"string", p.Help, p.Enum}
		names = append(names, p.Name)
	}
	src, _ := json.Marshal(map[string]any{ // texts and lists of texts cannot fail
		"type": "function",
		"function": map[string]any{
			"name": t.Name, "description": t.Help,
			"parameters": map[string]any{"type": "object", "properties": properties, "required": names},
		},
	})
	return src
}

const promptTask = `You plan trips. Search with the tools until you know enough, then answer with a plan, day by day, that meets every wish of the user and keeps to the budget.
`

const promptRole = promptTask + `
Every turn you write is one of these two, with nothing before, between or behind but white space:

<think>your reasoning</think>
<tool_call>{"name": "tool", "arguments": {"argument": "value"}}</tool_call>

<think>your reasoning</think>
<answer>the plan</answer>

One think and one tool_call a turn. The result comes back between <tool_response> tags. A tool may be unavailable for a moment; call it again.
`

const promptRules = `
The plan is a JSON list with one object a day and these keys; write "-" where there is nothing:
  "day": 1, 2, …
  "current_city": "from A to B" on a day with a move, else "B"
  "transportation": "Flight Number: F1234567, from A to B, Departure Time: 08:00, Arrival Time: 09:30", or "Self-driving, from A to B, duration: …, distance: …, cost: …", or "Taxi, from A to B, …"
  "breakfast", "lunch", "dinner": "Name, City"
  "attraction": "Name, City;Name, City;", each ended by a semicolon
  "accommodation": "Name, City", where the night is spent; "-" on the last day

What counts:
1. Keep to what the user asks for: dates, number of cities, budget, and every preference.
2. Use one call for one piece of information, and only names, cities, flights and prices that a tool has shown you; they are complete and correct.
3. Start and end in the departure city, with transport there and back. Do not combine self-driving with flights or taxis.
4. On full days give three meals and at least one attraction, all in the city of the day. No restaurant and no attraction twice.
5. Stay in a place for at least its minimum nights. A place takes its maximum occupancy; a larger group pays for more units. A car takes five people, a taxi four.

Example of a turn:
<think>I need the flights out on the first day.</think>
<tool_call>{"name": "SearchFlight", "arguments": {"departure": "Tampa", "destination": "Reno", "date": "2022-03-04"}}</tool_call>
`
