package serve

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"

	"alidade/ablation"
	"alidade/trainer"
)

// None is the request of a route that takes nothing.
type None struct{}

// route is one line of the table that both the server and its description
// are made from.
type route struct {
	method  string
	path    string
	op      string // its name in batches and WebSocket messages; "" = not there
	summary string
	status  int // of success
	open    bool
	body    bool // takes a JSON body
	req     reflect.Type
	res     reflect.Type // nil when the answer is not JSON of one type
	run     func(ctx context.Context, id string, body []byte) (any, error)
	query   func(ctx context.Context, id string, values url.Values) (any, error)
	raw     func(w http.ResponseWriter, r *http.Request)
}

// routes is the whole surface of the server.
func (s *Server) routes() []route {
	return []route{
		post("/env/episodes", "create", "Begin an episode", http.StatusCreated, s.create),
		post("/env/episodes/{id}/call", "call", "Call a tool", http.StatusOK, s.call),
		post("/env/episodes/{id}/score", "score", "End an episode and score its plan", http.StatusOK, s.score),
		get("/env/episodes/{id}/trajectory", "trajectory", "Get the record of an episode", s.trajectory).answers(typeOf[trainer.Trajectory]()),
		drop("/env/episodes/{id}", "delete", "Forget an episode", s.remove),
		post("/env/batch", "", "Run many operations: those of one episode in order, others in parallel", http.StatusOK, s.batch),
		get("/env/tasks", "tasks", "List the tasks", s.tasks),
		get("/env/tools", "tools", "List the tools as function schemas", s.listTools),
		get("/env/stats", "stats", "Count what the environment did", s.stats),
		{method: "GET", path: "/env/ws", summary: "Open a WebSocket for operations; see Operation and Reply", status: http.StatusSwitchingProtocols, req: typeOf[None](), raw: s.socket},
		{method: "GET", path: "/env/openapi.json", summary: "Get this description", status: http.StatusOK, req: typeOf[None](), raw: s.serveDocument},
		{method: "GET", path: "/healthz", summary: "Tell that the server is up", status: http.StatusOK, open: true, req: typeOf[None](), res: typeOf[Health](), raw: s.health},
	}
}

type handler[Q, R any] func(ctx context.Context, id string, q Q) (R, error)

func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

func newRoute[Q, R any](method, path, op, summary string, status int, fn handler[Q, R]) route {
	return route{method: method, path: path, op: op, summary: summary, status: status, req: typeOf[Q](), res: typeOf[R](),
		run: func(ctx context.Context, id string, body []byte) (any, error) {
			var q Q
			if err := decode(body, &q); err != nil {
				return nil, err
			}
			return fn(ctx, id, q)
		},
		query: func(ctx context.Context, id string, values url.Values) (any, error) {
			var q Q
			if err := decodeQuery(values, &q); err != nil {
				return nil, err
			}
			return fn(ctx, id, q)
		}}
}

func post[Q, R any](path, op, summary string, status int, fn handler[Q, R]) route {
	r := newRoute("POST", path, op, summary, status, fn)
	r.body = true
	return r
}

func get[Q, R any](path, op, summary string, fn handler[Q, R]) route {
	return newRoute("GET", path, op, summary, http.StatusOK, fn)
}

func drop[Q, R any](path, op, summary string, fn handler[Q, R]) route {
	return newRoute("DELETE", path, op, summary, http.StatusOK, fn)
}

// answers names the type of an answer that comes encoded.
func (r route) answers(t reflect.Type) route {
	r.res = t
	return r
}

// ToolsResult lists the tools.
type ToolsResult struct {
	Tools []json.RawMessage `json:"tools"`
}

func (s *Server) listTools(context.Context, string, None) (ToolsResult, error) {
	return ToolsResult{s.tools}, nil
}

// Health is the answer of a server that is up.
type Health struct {
	OK bool `json:"ok"`
}

// decodeQuery fills a request from the values of a URL.
func decodeQuery(values url.Values, q any) error {
	v := reflect.ValueOf(q).Elem()
	var bad []ablation.FieldError
	known := map[string]bool{}
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		known[name] = true
		if !values.Has(name) {
			continue
		}
		text := values.Get(name)
		switch f := v.Field(i); f.Kind() {
		case reflect.String:
			f.SetString(text)
		case reflect.Int:
			n, err := strconv.Atoi(text)
			if err != nil {
				bad = append(bad, fieldError(name, text, "a whole number"))
			}
			f.SetInt(int64(n))
		}
	}
	for name := range values {
		if !known[name] {
			bad = append(bad, fieldError(name, values.Get(name), firstOf(strings.Join(fieldNames(v.Type()), ", "), "no values at all")))
		}
	}
	if len(bad) > 0 {
		return &ablation.Invalid{Fields: bad}
	}
	return nil
}
