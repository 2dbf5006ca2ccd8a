package serve

import (
	"encoding/json"
	"strings"
	"testing"
)

// The native prompt has the sandbox's rules of a plan and none of its tags.
func TestNativePrompt(t *testing.T) {
	t.Parallel()
	p := nativePrompt()
	for _, want := range []string{"current_city", "accommodation", "Call one tool a turn", "No restaurant and no attraction twice"} {
		if !strings.Contains(p, want) {
			t.Errorf("the prompt lacks %q", want)
		}
	}
	for _, not := range []string{"<tool", "<think", "<answer", "Example of a turn"} {
		if strings.Contains(p, not) {
			t.Errorf("the prompt has %q", not)
		}
	}
}

func TestToolsAreFunctionSchemas(t *testing.T) {
	t.Parallel()
	for _, src := range functionSchemas() {
		var tool struct {
			Type     string
			Function struct {
				Name, Description string
				Parameters        struct {
					Type       string
					Properties map[string]struct{ Type string }
					Required   []string
				}
			}
		}
		if err := json.Unmarshal(src, &tool); err != nil {
			t.Fatal(err)
		}
		f := tool.Function
		if tool.Type != "function" || f.Name == "" || f.Description == "" || f.Parameters.Type != "object" || len(f.Parameters.Required) == 0 {
			t.Errorf("tool = %+v", tool)
		}
		for _, name := range f.Parameters.Required {
			if f.Parameters.Properties[name].Type != "string" {
				t.Errorf("%s requires %s, which it does not describe", f.Name, name)
			}
		}
	}
}
