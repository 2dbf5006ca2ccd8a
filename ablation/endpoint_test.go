package ablation_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"alidade/ablation"
)

func TestEndpointRules(t *testing.T) {
	good := func(*ablation.Endpoint) {}
	for _, c := range []struct {
		name   string
		change func(*ablation.Endpoint)
		field  string // that is refused; "" = none
	}{
		{"preset", good, ""},
		{"https", func(e *ablation.Endpoint) { e.URL = "https://api.example.com/v1/" }, ""},
		{"key file", func(e *ablation.Endpoint) { e.KeyFile = "keys/openai" }, ""},
		{"key variable", func(e *ablation.Endpoint) { e.KeyEnv = "ALIDADE_KEY_OPENAI" }, ""},
		{"left to the server", func(e *ablation.Endpoint) { e.Temperature = -1 }, ""},
		{"cap", func(e *ablation.Endpoint) { e.Budget, e.PriceOut = 5, 1 }, ""},
		{"no address", func(e *ablation.Endpoint) { e.URL = "" }, "endpoint.url"},
		{"address without scheme", func(e *ablation.Endpoint) { e.URL = "localhost:8000/v1" }, "endpoint.url"},
		{"address with a query", func(e *ablation.Endpoint) { e.URL = "http://host/v1?x=1" }, "endpoint.url"},
		{"key file elsewhere", func(e *ablation.Endpoint) { e.KeyFile = "/etc/passwd" }, "endpoint.key_file"},
		{"key file above", func(e *ablation.Endpoint) { e.KeyFile = "keys/../token" }, "endpoint.key_file"},
		{"another variable", func(e *ablation.Endpoint) { e.KeyEnv = "AWS_SECRET_ACCESS_KEY" }, "endpoint.key_env"},
		{"two keys", func(e *ablation.Endpoint) { e.KeyEnv, e.KeyFile = "ALIDADE_KEY_A", "keys/a" }, "endpoint.key_env"},
		{"temperature", func(e *ablation.Endpoint) { e.Temperature = -0.5 }, "endpoint.temperature"},
		{"too many at once", func(e *ablation.Endpoint) { e.Concurrency = 5000 }, "endpoint.concurrency"},
		{"cap without prices", func(e *ablation.Endpoint) { e.Budget = 5 }, "endpoint.budget"},
		{"streaming", func(e *ablation.Endpoint) { e.Extra = map[string]string{"stream": "true"} }, "endpoint.extra.stream"},
	} {
		r, ok := ablation.PresetNamed("endpoint")
		if !ok {
			t.Fatal("no preset endpoint")
		}
		c.change(&r.Endpoint)
		err := r.Validate()
		var bad *ablation.Invalid
		switch {
		case c.field == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.field != "" && (!errors.As(err, &bad) || len(bad.Fields) != 1 || bad.Fields[0].Field != c.field || bad.Fields[0].Allowed == ""):
			t.Errorf("%s: %v, want %s refused", c.name, err, c.field)
		}
	}
}

// Other kinds' recipes do not carry the section, so that their hashes stay.
func TestOtherRecipesHaveNoEndpoint(t *testing.T) {
	for _, p := range ablation.Presets() {
		p.Recipe.Endpoint.Extra = map[string]string{}
		src, err := json.Marshal(p.Recipe)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(src), `"endpoint":{`); got != (p.Name == "endpoint") {
			t.Errorf("preset %s: section endpoint in its JSON: %v", p.Name, got)
		}
	}
}
