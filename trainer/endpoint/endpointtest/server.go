// Package endpointtest is an OpenAI-compatible server for tests, with a small
// agent behind it that can really plan trips.
package endpointtest

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
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

// A Server has an agent that knows each query's plan from the exact solver,
// looks up what the plan needs, call by call, and answers. Every fifth query
// it answers with an empty plan. It is stateless, like the servers it stands
// for: the conversation tells it where it is.
type Server struct {
	*httptest.Server
	Dialect string        // how it writes answers and errors: openai, vllm, sglang, llamacpp, proxy
	React   bool          // the agent writes tags, not native calls
	Key     string        // wanted; "" = none
	Delay   time.Duration // of each answer
	// Trouble sees each request with its number, the query's text and the
	// turn; true says that it has answered it.
	Trouble func(n int, r *http.Request, w http.ResponseWriter, query string, turn int) bool

	scripts map[string]script // by the query's text

	mu     sync.Mutex
	now    int
	tally  Tally
	bodies []string // of the last requests
}

// A Tally is what a server has counted.
type Tally struct {
	Calls, Peak int            // requests, and the most at once
	In, Out     int            // tokens of its answers
	Asked       map[string]int // "query text/turn" → answers given
}

type script struct {
	turns []trainer.Turn
	plan  string
}

// New starts a server for queries of a world, and closes it with the test.
func New(t *testing.T, w *synth.World, queries []travel.Query, dialect string, react bool) *Server {
	t.Helper()
	f := &Server{Dialect: dialect, React: react, scripts: map[string]script{}, tally: Tally{Asked: map[string]int{}}}
	for i, q := range queries {
		sol := w.Solve(q)
		if !sol.Proven {
			t.Fatalf("query %d is not solvable: %s", i, sol.Reason)
		}
		e := w.Expert(t.Context(), q, sol, travel.EpisodeConfig{}, synth.Deliberative, uint64(i))
		s := script{plan: travel.JSONPlan(sol.Days)}
		for _, turn := range e.Turns {
			if turn.Call != nil {
				s.turns = append(s.turns, turn)
			}
		}
		if i%5 == 0 {
			s.plan = "[]"
		}
		f.scripts[q.Text] = s
	}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	return f
}

// Solved is how many of n queries the agent solves.
func Solved(n int) int { return n - (n+4)/5 }

// Tally returns what the server has counted.
func (f *Server) Tally() Tally {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.tally
	t.Asked = maps.Clone(f.tally.Asked)
	return t
}

// LastRequest is the body of the last request.
func (f *Server) LastRequest() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bodies[len(f.bodies)-1]
}

// Asked is a request, as far as the agent reads it.
type Asked struct {
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

func (f *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if f.Key != "" && r.Header.Get("Authorization") != "Bearer "+f.Key {
		f.Refuse(w, 401, "Incorrect API key provided: "+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		return
	}
	if strings.HasSuffix(r.URL.Path, "/models") {
		Say(w, map[string]any{"object": "list", "data": []any{map[string]any{"id": "only-one", "object": "model"}}})
		return
	}
	var q Asked
	if err := json.Unmarshal(body, &q); err != nil || !strings.HasSuffix(r.URL.Path, "/v1/chat/completions") {
		f.Refuse(w, 404, fmt.Sprintf("nothing at %s: %v", r.URL.Path, err))
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
					f.Refuse(w, 400, "arguments are not JSON: "+c.Function.Arguments)
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
	f.tally.Calls++
	n := f.tally.Calls
	f.now++
	f.tally.Peak = max(f.tally.Peak, f.now)
	f.bodies = append(f.bodies[max(0, len(f.bodies)-50):], string(body))
	f.mu.Unlock()
	defer func() { f.mu.Lock(); f.now--; f.mu.Unlock() }()
	time.Sleep(f.Delay)
	if f.Trouble != nil && f.Trouble(n, r, w, text, turn) {
		return
	}
	s, known := f.scripts[text]
	switch {
	case !known:
		f.Refuse(w, 400, "unknown query "+text)
	case f.Dialect == "openai" && q.MaxTokens != nil:
		f.Refuse(w, 400, "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.")
	default:
		f.answer(w, s, text, turn, len(body))
	}
}

// answer writes the agent's next turn.
func (f *Server) answer(w http.ResponseWriter, s script, text string, turn, size int) {
	in, out := size/4, 40+turn
	f.mu.Lock()
	f.tally.Asked[fmt.Sprintf("%s/%d", text, turn)]++
	f.tally.In, f.tally.Out = f.tally.In+in, f.tally.Out+out
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
		if f.React {
			content = fmt.Sprintf("<tool_call>\n{\"name\": %q, \"arguments\": %s}\n</tool_call>", s.turns[turn].Call.Tool, src)
		} else {
			finish = "tool_calls"
			call := map[string]any{"id": fmt.Sprintf("c%d", turn), "type": "function", "function": map[string]any{"name": s.turns[turn].Call.Tool, "arguments": string(src)}}
			if f.Dialect == "llamacpp" {
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
	switch f.Dialect {
	case "openai", "proxy": // thoughts are part of the text
		message["content"] = "<think>" + think + "</think>\n" + content
		usage["completion_tokens_details"] = map[string]any{"reasoning_tokens": 7}
	case "vllm":
		message["reasoning"] = think
	default:
		message["reasoning_content"] = think
	}
	if content == "" && f.Dialect != "openai" && f.Dialect != "proxy" {
		message["content"] = nil
	}
	if f.Dialect == "proxy" { // sloppy
		message["content"] = []any{map[string]any{"type": "text", "text": message["content"]}}
		delete(completion, "usage")
	}
	completion["choices"] = []any{map[string]any{"index": 0, "message": message, "finish_reason": finish, "stop_reason": nil}}
	Say(w, completion)
}

// Say writes a JSON answer.
func Say(w http.ResponseWriter, x any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(x)
}

// Refuse writes an error as the dialect does.
func (f *Server) Refuse(w http.ResponseWriter, status int, message string) {
	var body any
	switch f.Dialect {
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

// EveryTwentieth is Trouble that fails 5 % of the calls, each time in another way.
func (f *Server) EveryTwentieth(n int, _ *http.Request, w http.ResponseWriter, _ string, _ int) bool {
	if n%20 != 3 {
		return false
	}
	switch n / 20 % 6 {
	case 0:
		w.Header().Set("Retry-After-Ms", "30")
		f.Refuse(w, 429, "slow down")
	case 1:
		f.Refuse(w, 500, "internal error")
	case 2:
		c, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = c.Close()
		}
	case 3:
		f.Refuse(w, 503, "Loading model")
	case 4:
		Say(w, map[string]any{"error": map[string]any{"message": "upstream", "code": 502}})
	default:
		fmt.Fprint(w, "<html>bad gateway")
	}
	return true
}

func isObject(s string) bool {
	var m map[string]any
	return json.Unmarshal([]byte(s), &m) == nil && m != nil
}
