package endpoint

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"alidade/sandbox/travel"
	"alidade/sandbox/travel/synth"
	"alidade/trainer"
)

// A fake is a server with a small real agent behind it: it knows each query's
// plan from the exact solver, looks up what the plan needs, call by call, and
// answers. Every fifth query it answers with an empty plan. It is stateless,
// like the servers it stands for: the conversation tells it where it is. Its
// dialect is how it writes answers and errors.
type fake struct {
	*httptest.Server
	dialect string
	react   bool
	key     string            // wanted; "" = none
	scripts map[string]script // by the query's text
	delay   time.Duration
	trouble func(n int, r *http.Request, w http.ResponseWriter, query string, turn int) bool // true = it has answered

	mu     sync.Mutex
	n      int
	now    int
	peak   int
	asked  map[string]int // "query text/turn" → answers given
	in     int
	out    int
	bodies []string // of the last requests
}

type script struct {
	turns []trainer.Turn
	plan  string
	fails bool
}

func newFake(t *testing.T, dialect string, react bool, spec trainer.Spec) *fake {
	t.Helper()
	p, err := newPanel(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{dialect: dialect, react: react, scripts: map[string]script{}, asked: map[string]int{}}
	for i, q := range p.queries {
		sol := p.world.Solve(q)
		if !sol.Proven {
			t.Fatalf("query %d is not solvable: %s", i, sol.Reason)
		}
		e := p.world.Expert(t.Context(), q, sol, travel.EpisodeConfig{}, synth.Deliberative, uint64(i))
		s := script{plan: travel.JSONPlan(sol.Days), fails: i%5 == 0}
		for _, turn := range e.Turns {
			if turn.Call != nil {
				s.turns = append(s.turns, turn)
			}
		}
		if s.fails {
			s.plan = "[]"
		}
		f.scripts[q.Text] = s
	}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	return f
}

type asked struct {
	Model     string `json:"model"`
	MaxTokens *int   `json:"max_tokens"`
	NewMax    *int   `json:"max_completion_tokens"`
	Tools     []json.RawMessage
	Messages  []struct {
		Role             string
		Content          *string
		ReasoningContent string `json:"reasoning_content"`
		Reasoning        string
		ToolCallID       string `json:"tool_call_id"`
		ToolCalls        []struct {
			ID       string
			Function struct{ Name, Arguments string }
		} `json:"tool_calls"`
	}
}

func (f *fake) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if f.key != "" && r.Header.Get("Authorization") != "Bearer "+f.key {
		f.refuse(w, 401, "Incorrect API key provided: "+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		return
	}
	if strings.HasSuffix(r.URL.Path, "/models") {
		say(w, map[string]any{"object": "list", "data": []any{map[string]any{"id": "only-one", "object": "model"}}})
		return
	}
	var q asked
	if err := json.Unmarshal(body, &q); err != nil || !strings.HasSuffix(r.URL.Path, "/v1/chat/completions") {
		f.refuse(w, 404, fmt.Sprintf("nothing at %s: %v", r.URL.Path, err))
		return
	}
	turn := 0
	text := ""
	for _, m := range q.Messages {
		switch m.Role {
		case "assistant":
			turn++
			for _, c := range m.ToolCalls {
				if !isObject(c.Function.Arguments) {
					f.refuse(w, 400, "arguments are not JSON: "+c.Function.Arguments)
					return
				}
			}
		case "user":
			if text == "" && m.Content != nil {
				text = *m.Content
			}
		}
	}
	f.mu.Lock()
	f.n++
	n := f.n
	f.now++
	f.peak = max(f.peak, f.now)
	f.bodies = append(f.bodies[max(0, len(f.bodies)-50):], string(body))
	f.mu.Unlock()
	defer func() { f.mu.Lock(); f.now--; f.mu.Unlock() }()
	time.Sleep(f.delay)
	if f.trouble != nil && f.trouble(n, r, w, text, turn) {
		return
	}
	s, known := f.scripts[text]
	switch {
	case !known:
		f.refuse(w, 400, "unknown query "+text)
	case f.dialect == "openai" && q.MaxTokens != nil:
		f.refuse(w, 400, "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.")
	default:
		f.answer(w, s, text, turn, len(body))
	}
}

// answer writes the agent's next turn.
func (f *fake) answer(w http.ResponseWriter, s script, text string, turn, size int) {
	in, out := size/4, 40+turn
	f.mu.Lock()
	f.asked[fmt.Sprintf("%s/%d", text, turn)]++
	f.in, f.out = f.in+in, f.out+out
	f.mu.Unlock()
	think := fmt.Sprintf("Turn %d: look on.", turn+1)
	message := map[string]any{"role": "assistant"}
	content, finish := "", "stop"
	if turn < len(s.turns) {
		args := map[string]string{}
		for _, a := range s.turns[turn].Call.Args {
			args[a.Name] = a.Value
		}
		src, _ := json.Marshal(args)
		if f.react {
			content = fmt.Sprintf("<tool_call>\n{\"name\": %q, \"arguments\": %s}\n</tool_call>", s.turns[turn].Call.Tool, src)
		} else {
			finish = "tool_calls"
			call := map[string]any{"id": fmt.Sprintf("c%d", turn), "type": "function", "function": map[string]any{"name": s.turns[turn].Call.Tool, "arguments": string(src)}}
			if f.dialect == "llamacpp" {
				call["function"].(map[string]any)["arguments"] = args
				delete(call, "id")
			}
			message["tool_calls"] = []any{call}
		}
	} else {
		content = "<answer>" + s.plan + "</answer>"
	}
	usage := map[string]any{"prompt_tokens": in, "completion_tokens": out, "total_tokens": in + out}
	completion := map[string]any{"id": "x", "object": "chat.completion", "created": 1, "model": "m", "usage": usage}
	message["content"] = content
	switch f.dialect {
	case "openai", "proxy": // thoughts are part of the text
		message["content"] = "<think>" + think + "</think>\n" + content
		usage["completion_tokens_details"] = map[string]any{"reasoning_tokens": 7}
	case "vllm":
		message["reasoning"] = think
	default:
		message["reasoning_content"] = think
	}
	if content == "" && f.dialect != "openai" && f.dialect != "proxy" {
		message["content"] = nil
	}
	if f.dialect == "proxy" { // sloppy
		message["content"] = []any{map[string]any{"type": "text", "text": message["content"]}}
		delete(completion, "usage")
	}
	completion["choices"] = []any{map[string]any{"index": 0, "message": message, "finish_reason": finish, "stop_reason": nil}}
	say(w, completion)
}

func say(w http.ResponseWriter, x any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(x)
}

// refuse writes an error as the dialect does.
func (f *fake) refuse(w http.ResponseWriter, status int, message string) {
	var body any
	switch f.dialect {
	case "vllm":
		body = map[string]any{"object": "error", "message": message, "type": "BadRequestError", "code": status}
	case "sglang":
		body = map[string]any{"detail": []any{map[string]any{"loc": []string{"body"}, "msg": message}}}
	case "proxy":
		w.WriteHeader(status)
		fmt.Fprintf(w, "<html>%s</html>", message)
		return
	default:
		body = map[string]any{"error": map[string]any{"message": message, "type": "x", "code": status}}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// everyTwentieth fails 5 % of the calls, each time in another way.
func (f *fake) everyTwentieth(n int, _ *http.Request, w http.ResponseWriter, _ string, _ int) bool {
	if n%20 != 3 {
		return false
	}
	switch n / 20 % 6 {
	case 0:
		w.Header().Set("Retry-After-Ms", "30")
		f.refuse(w, 429, "slow down")
	case 1:
		f.refuse(w, 500, "internal error")
	case 2:
		c, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = c.Close()
		}
	case 3:
		f.refuse(w, 503, "Loading model")
	case 4:
		say(w, map[string]any{"error": map[string]any{"message": "upstream", "code": 502}})
	default:
		fmt.Fprint(w, "<html>bad gateway")
	}
	return true
}
