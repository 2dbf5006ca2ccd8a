package serve

import (
	"encoding/json"
	"strings"

	"alidade/sandbox/travel"
)

const nativeRole = `You plan trips. Search with the tools until you know enough, then answer with a plan, day by day, that meets every wish of the user and keeps to the budget.

Call one tool a turn. A tool may be unavailable for a moment; call it again. When you know enough, call no tool and write the plan alone.
`

// nativePrompt is the system prompt without tags and tools, for models whose
// chat template carries the tools. The rules of the plan are the sandbox's own.
func nativePrompt() string {
	_, rules, _ := strings.Cut(travel.SystemPrompt(), "</tools>\n")
	rules, _, _ = strings.Cut(rules, "\nExample of a turn:")
	return nativeRole + rules
}

// functionSchemas lists the tools as a chat completion takes them.
func functionSchemas() []json.RawMessage {
	specs := travel.ToolSpecs()
	list := make([]json.RawMessage, len(specs))
	for i, t := range specs {
		list[i] = t.Schema()
	}
	return list
}

// prompts are the system prompts by form.
type prompts map[string]prompt

type prompt struct {
	text   string
	tokens int
}

func newPrompts(c *Config) prompts {
	p := prompts{}
	for form, text := range map[string]string{FormNative: nativePrompt(), FormReact: travel.SystemPrompt()} {
		if c.System != "" {
			text = c.System
		}
		p[form] = prompt{text, c.Count(text)}
	}
	return p
}
