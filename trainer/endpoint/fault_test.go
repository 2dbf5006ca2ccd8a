package endpoint

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestClassify(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		kind   kind
		text   string
	}{
		{400, `{"error":{"message":"This model's maximum context length is 4096 tokens","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, overflow, "4096"},
		{400, `{"object":"error","message":"maximum context length is 4096 tokens","type":"BadRequestError","code":400}`, overflow, "4096"},
		{400, `{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_ctx":4096}}`, overflow, "context size"},
		{400, `{"object":"error","message":"The input (5000 tokens) is longer than the model's context length (4096 tokens)."}`, overflow, "longer"},
		{400, `{"error":{"message":"temperature must be 1"}}`, refused, "temperature must be 1"},
		{422, `{"detail":[{"loc":["body","messages"],"msg":"field required","type":"value_error"}]}`, refused, "field required"},
		{400, `{"object":"error","message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set"}`, fatal, "environment.form"},
		{500, `{"error":{"code":500,"message":"tools param requires --jinja flag"}}`, transient, "jinja"},
		{401, `{"error":{"message":"Incorrect API key provided"}}`, fatal, "endpoint.key_file"},
		{404, `{"object":"error","message":"The model does not exist."}`, fatal, "endpoint.model"},
		{402, `{"error":{"message":"Insufficient Balance"}}`, fatal, "money"},
		{429, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`, fatal, "money"},
		{429, `{"error":{"message":"Rate limit reached"}}`, transient, "Rate limit"},
		{503, `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`, transient, "Loading model"},
		{502, "<html>\n<h1>502 Bad Gateway</h1>", transient, "502 Bad Gateway"},
		{408, "", transient, "(empty)"},
		{500, `{"error":"text alone"}`, transient, "text alone"},
		{307, "", fatal, "redirects"},
	} {
		f := classify(c.status, http.Header{}, []byte(c.body))
		if f.kind != c.kind || !strings.Contains(f.text, c.text) {
			t.Errorf("%d %s: kind %d, %q; want kind %d and %q", c.status, c.body, f.kind, f.text, c.kind, c.text)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		name, value string
		want        time.Duration
	}{
		{"Retry-After", "3", 3 * time.Second},
		{"Retry-After", "0.5", 500 * time.Millisecond},
		{"Retry-After-Ms", "250", 250 * time.Millisecond},
		{"Retry-After", "Fri, 02 Jan 2026 03:04:15 GMT", 10 * time.Second},
		{"Retry-After", "Fri, 02 Jan 2026 03:04:00 GMT", 0},
		{"Retry-After", "86400", longestRest},
		{"Retry-After", "-5", 0},
		{"Retry-After", "NaN", 0},
		{"Retry-After", "soon", 0},
	} {
		if got := retryAfter(http.Header{http.CanonicalHeaderKey(c.name): {c.value}}, now); got != c.want {
			t.Errorf("%s: %s = %v, want %v", c.name, c.value, got, c.want)
		}
	}
}

func TestReadReply(t *testing.T) {
	const call = `{"choices":[{"message":{"content":null,"tool_calls":[{"function":{"name":"f","arguments":%A%}}]},"finish_reason":"tool_calls"}]}`
	for args, want := range map[string]string{`"{\"a\":1}"`: `{"a":1}`, `{"a":1}`: `{"a":1}`, `""`: "{}", `null`: "{}", `"{broken"`: "{broken"} {
		r, f := readReply([]byte(strings.Replace(call, "%A%", args, 1)))
		if f != nil || len(r.Calls) != 1 || r.Calls[0].Function.Arguments != want || !r.Estimated {
			t.Errorf("arguments %s: %+v, %v; want %s", args, r, f, want)
		}
	}
	for body, want := range map[string]kind{
		`{"choices":[]}`: transient, `not json`: transient, ``: transient,
		`{"error":{"message":"x","code":429}}`:                                          transient,
		`{"error":{"message":"maximum context length","code":400}}`:                     overflow,
		`{"error":{"message":"no","code":"401"}}`:                                       fatal,
		`{"choices":[{"message":{"content":"half"},"finish_reason":"abort"}]}`:          transient,
		`{"choices":[{"message":{"content":{"a":1}},"finish_reason":{"type":"stop"}}]}`: transient,
	} {
		if _, f := readReply([]byte(body)); f == nil || f.kind != want {
			t.Errorf("%s: %+v, want kind %d", body, f, want)
		}
	}
	for body, want := range map[string]string{
		`{"choices":[{"message":{"content":"x","reasoning":"why"}}]}`:                                      "<think>\nwhy\n</think>\nx",
		`{"choices":[{"message":{"content":"x","reasoning_content":"why"}}]}`:                              "<think>\nwhy\n</think>\nx",
		`{"choices":[{"message":{"content":"why</think>x"}}]}`:                                             "<think>why</think>x",
		`{"choices":[{"message":{"content":null,"refusal":"no"}}]}`:                                        "no",
		`{"choices":[{"message":{"content":"","tool_calls":[{"function":{"name":"f","arguments":{}}}]}}]}`: "\n<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>",
	} {
		r, f := readReply([]byte(body))
		if f != nil || r.spoken(true) != want {
			t.Errorf("%s: %q, want %q", body, r.spoken(true), want)
		}
	}
}

func FuzzReadReply(f *testing.F) {
	f.Add([]byte(`{"choices":[{"message":{"content":[{"text":"a"}],"tool_calls":[{"id":1}]}}],"usage":{"prompt_tokens":-1}}`))
	f.Add([]byte(`{"error":[{"msg":["x"]}],"detail":{}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, fault := readReply(body)
		if fault == nil && (r.In < 0 || r.Out < 0) {
			t.Errorf("%+v", r)
		}
		r.spoken(true)
		errorText(body)
	})
}
