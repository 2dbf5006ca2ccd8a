package ablation

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Endpoint names a server that speaks OpenAI's chat completions and says how
// it is asked. Form, budgets and queries are the sections environment, data
// and evaluation. A key is only ever named here, never written.
type Endpoint struct {
	URL         string            `json:"url,omitempty"`         // base, normally ends in /v1
	Model       string            `json:"model,omitempty"`       // "" = the only one that the server offers
	KeyFile     string            `json:"key_file,omitempty"`    // file in the data folder that holds the key, "keys/NAME", mode 0600
	KeyEnv      string            `json:"key_env,omitempty"`     // or the variable of the environment that does, ALIDADE_KEY_NAME
	Temperature float64           `json:"temperature,omitempty"` // 0 = greedy; -1 = left to the server
	TopP        float64           `json:"top_p,omitempty"`       // 0 = left to the server
	MaxTokens   int               `json:"max_tokens,omitempty"`  // of one turn
	Reasoning   string            `json:"reasoning,omitempty"`   // of earlier turns: drop (also when empty), keep
	Extra       map[string]string `json:"extra,omitempty"`       // further fields of the request; values are JSON, else text
	Concurrency int               `json:"concurrency,omitempty"` // episodes at once; 0 = 16
	Retries     int               `json:"retries,omitempty"`     // of one call
	TimeoutS    float64           `json:"timeout_s,omitempty"`   // of one call, s; 0 = 600
	MaxInvalid  float64           `json:"max_invalid,omitempty"` // share of episodes that may stay unfinished
	PriceIn     float64           `json:"price_in,omitempty"`    // $ a million prompt tokens
	PriceOut    float64           `json:"price_out,omitempty"`   // $ a million generated tokens
	Budget      float64           `json:"budget,omitempty"`      // $ a run; 0 = no cap
}

// IsZero tells whether nothing is set; such a section is left out of JSON.
func (e Endpoint) IsZero() bool {
	return len(e.Extra) == 0 && e.URL == "" && e.Model == "" && e.KeyFile == "" && e.KeyEnv == "" && e.Reasoning == "" &&
		e.Temperature == 0 && e.TopP == 0 && e.MaxTokens == 0 && e.Concurrency == 0 && e.Retries == 0 && e.TimeoutS == 0 &&
		e.MaxInvalid == 0 && e.PriceIn == 0 && e.PriceOut == 0 && e.Budget == 0
}

// endpointFields is the form of the section.
var endpointFields = []Field{
	{Key: "endpoint.url", Group: "Endpoint", Label: "server", Kind: KindString, Help: "base address of an OpenAI-compatible server, such as http://127.0.0.1:8000/v1; no key in it"},
	{Key: "endpoint.model", Group: "Endpoint", Label: "model", Kind: KindString, Help: "model as the server names it; empty takes the only one that it offers"},
	{Key: "endpoint.key_file", Group: "Endpoint", Label: "key file", Kind: KindString, Help: "file in the data folder that holds the server's key, such as keys/openai, readable by its owner alone; the key itself is never stored or shown"},
	{Key: "endpoint.key_env", Group: "Endpoint", Label: "key variable", Kind: KindString, Help: "or the environment variable that holds it, such as ALIDADE_KEY_OPENAI, set where the server was started; for runs on this machine"},
	{Key: "endpoint.temperature", Group: "Endpoint", Label: "temperature", Kind: KindFloat, Ordered: true, Min: -1, Max: 2, Help: "0 takes the likeliest token; -1 leaves it to the server"},
	{Key: "endpoint.top_p", Group: "Endpoint", Label: "top-p", Kind: KindFloat, Ordered: true, Min: 0, Max: 1, Help: "0 leaves it to the server"},
	{Key: "endpoint.max_tokens", Group: "Endpoint", Label: "turn budget", Kind: KindInt, Ordered: true, Unit: "tokens", Min: 0, Max: 1000000, Help: "tokens that one turn may take, reasoning included; 0 leaves it to the server"},
	{Key: "endpoint.reasoning", Group: "Endpoint", Label: "earlier reasoning", Kind: KindEnum, Enum: []string{"drop", "keep"}, Help: "whether the server gets the reasoning of earlier turns back"},
	{Key: "endpoint.extra", Group: "Endpoint", Label: "further fields", Kind: KindMap, Help: "further fields of each request, as JSON, such as top_k=20 or chat_template_kwargs={\"enable_thinking\": false}; not for secrets"},
	{Key: "endpoint.concurrency", Group: "Endpoint", Label: "episodes at once", Kind: KindInt, Min: 0, Max: 1024, Help: "0 = 16"},
	{Key: "endpoint.retries", Group: "Endpoint", Label: "retries", Kind: KindInt, Min: 0, Max: 100, Help: "of a call that met a busy server, a time-out or a broken connection; an episode that still cannot be finished is invalid, never a failure of the model"},
	{Key: "endpoint.timeout_s", Group: "Endpoint", Label: "call time-out", Kind: KindFloat, Unit: "s", Min: 0, Max: 86400, Help: "of one call; 0 = 600"},
	{Key: "endpoint.max_invalid", Group: "Endpoint", Label: "invalid share", Kind: KindFloat, Min: 0, Max: 1, Help: "share of episodes that may stay invalid in a run that counts as finished; with more it ends as failed, and resuming asks those again"},
	{Key: "endpoint.price_in", Group: "Endpoint", Label: "prompt price", Kind: KindFloat, Unit: "$ per million tokens", Min: 0, Max: 100000, Help: "for the cost of episodes and the cap"},
	{Key: "endpoint.price_out", Group: "Endpoint", Label: "output price", Kind: KindFloat, Unit: "$ per million tokens", Min: 0, Max: 100000, Help: "for the cost of episodes and the cap"},
	{Key: "endpoint.budget", Group: "Endpoint", Label: "cost cap", Kind: KindFloat, Unit: "$", Min: 0, Max: 1000000, Help: "of a run with all its attempts; no call is made that could go beyond it; 0 = no cap"},
}

var (
	keyFilePattern = regexp.MustCompile(`^keys/[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$`)
	keyEnvPattern  = regexp.MustCompile(`^ALIDADE_KEY_[A-Z0-9_]{1,48}$`) // no other variable of the server may get into a request
)

// reservedExtra are the fields of a request that have keys of their own, or
// that would change what an answer is.
var reservedExtra = []string{"model", "messages", "tools", "temperature", "top_p", "max_tokens", "max_completion_tokens", "stream", "stream_options", "n"}

// endpointRules are the rules of kind endpoint.
func (r Recipe) endpointRules() []FieldError {
	var bad []FieldError
	if r.Trainer.Kind != "endpoint" {
		return nil
	}
	e := &r.Endpoint
	add := func(key, value, problem, allowed string) {
		bad = append(bad, FieldError{Field: "endpoint." + key, Value: value, Problem: problem, Allowed: allowed})
	}
	if problem := urlProblem(e.URL); problem != "" {
		value := e.URL
		if strings.ContainsAny(value, "@?#") { // it may hold a secret
			value = ""
		}
		add("url", value, problem, "the base address of the server, such as http://127.0.0.1:8000/v1, without user, query and fragment")
	}
	const hidden = "(not shown)" // people paste keys here
	if e.KeyFile != "" && !keyFilePattern.MatchString(e.KeyFile) {
		add("key_file", hidden, "not a key file", "keys/NAME, a file in the data folder's keys folder; never the key itself")
	}
	if e.KeyEnv != "" && !keyEnvPattern.MatchString(e.KeyEnv) {
		add("key_env", hidden, "not the name of a variable", "ALIDADE_KEY_ and capital letters, digits or underscores, such as ALIDADE_KEY_OPENAI; never the key itself")
	}
	if e.KeyFile != "" && e.KeyEnv != "" {
		add("key_env", hidden, "a second source of the key", "endpoint.key_file or endpoint.key_env, not both")
	}
	for _, k := range sortedKeys(e.Extra) {
		if slices.Contains(reservedExtra, k) {
			add("extra."+k, e.Extra[k], "has a key of its own, or is not supported", "any field but "+strings.Join(reservedExtra, ", "))
		}
	}
	if e.Temperature < 0 && e.Temperature != -1 {
		add("temperature", fmt.Sprint(e.Temperature), "out of range", "0 to 2, or -1 to leave it to the server")
	}
	if e.Budget > 0 && e.PriceIn == 0 && e.PriceOut == 0 {
		add("budget", fmt.Sprint(e.Budget), "without prices", "endpoint.price_in or endpoint.price_out above 0, or 0 for no cap")
	}
	return bad
}

func urlProblem(s string) string {
	if s == "" {
		return "missing"
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return "not the address of a server"
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "more than an address"
	}
	return ""
}

// endpointRecipe starts from the solver's: the same worlds and queries.
func endpointRecipe(solver Recipe) Recipe {
	r := solver
	r.Preset = "endpoint"
	r.Trainer.Kind = "endpoint"
	r.Environment.Form, r.Environment.Answer = "react", "lenient"
	r.Evaluation.Queries, r.Evaluation.Samples = 100, 1
	r.Reward.Kind = "SUCCESS"
	r.Endpoint = Endpoint{
		URL: "http://127.0.0.1:8000/v1", Temperature: 0.7, MaxTokens: 4096, Reasoning: "drop",
		Concurrency: 16, Retries: 5, TimeoutS: 600,
	}
	return r
}
