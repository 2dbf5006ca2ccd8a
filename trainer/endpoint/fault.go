package endpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A kind says what may be done about a call that failed.
type kind int

const (
	transient kind = iota // the server's or the network's: try again
	overflow              // the conversation does not fit the model's context: an outcome of the episode
	refused               // the server does not take this request: the same would happen again
	fatal                 // it would take none: key, model, address, money
)

// A fault is why a call gave no reply.
type fault struct {
	kind kind
	code string        // stable key: "http-503", "timeout", "connection" …
	text string        // in words, without the key
	wait time.Duration // that the server asks for

	oldName bool // it wants the newer name of the turn budget
}

func (f *fault) Error() string { return f.text }

// The marks of messages that mean more than their status.
var (
	overflowMarks = []string{"context length", "context_length", "context window", "context size", "exceed_context", "maximum context", "too many tokens", "prompt is too long", "input is too long"}
	quotaMarks    = []string{"insufficient_quota", "billing_hard_limit", "exceeded your current quota", "insufficient balance", "insufficient credits"}
	toolMarks     = []string{"enable-auto-tool-choice", "tool-call-parser", "--jinja"}
)

// newNameMark is in the message of servers that refuse max_tokens.
const newNameMark = "max_completion_tokens"

// classify reads an error answer.
func classify(status int, header http.Header, body []byte) *fault {
	message := errorText(body)
	f := &fault{code: fmt.Sprintf("http-%d", status), text: fmt.Sprintf("HTTP %d: %s", status, message)}
	low := strings.ToLower(message + " " + string(body[:min(len(body), 4096)]))
	has := func(marks []string) bool {
		for _, m := range marks {
			if strings.Contains(low, m) {
				return true
			}
		}
		return false
	}
	switch {
	case status == http.StatusPaymentRequired || has(quotaMarks):
		f.kind, f.code = fatal, "quota"
		f.text += "; the account has no money left"
	case has(toolMarks) && status < 500:
		f.kind, f.code = fatal, "no-tool-parser"
		f.text += "; start the server with a tool-call parser (vLLM: --enable-auto-tool-choice --tool-call-parser, SGLang: --tool-call-parser, llama.cpp: --jinja), or use environment.form react"
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		f.kind = fatal
		f.text += "; look at endpoint.key_file or endpoint.key_env"
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed:
		f.kind = fatal
		f.text += "; look at endpoint.url and endpoint.model"
	case (status == http.StatusBadRequest || status == http.StatusRequestEntityTooLarge || status == http.StatusUnprocessableEntity) && has(overflowMarks):
		f.kind, f.code = overflow, "context"
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooEarly, status == http.StatusTooManyRequests, status >= 500:
		f.kind, f.wait = transient, retryAfter(header, time.Now())
	case status >= 300 && status < 400:
		f.kind, f.text = fatal, fmt.Sprintf("HTTP %d: the server redirects to %s; put the final address into endpoint.url", status, header.Get("Location"))
	default:
		f.kind = refused
	}
	return f
}

// broken is the fault of a call without an answer.
func broken(err error) *fault {
	f := &fault{kind: transient, code: "connection", text: "no answer: " + err.Error()}
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		f.code = "dns"
	case errors.Is(err, errBody):
		f.kind, f.code = refused, "too-long"
	}
	return f
}

// errorText finds the message in the error bodies that servers send:
// {"error": {"message"}}, {"error": text}, {"message"}, {"detail": text or
// list}, or plain text.
func errorText(body []byte) string {
	var e struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	}
	if json.Unmarshal(body, &e) != nil {
		return excerpt(body)
	}
	for _, src := range []json.RawMessage{e.Error, e.Detail} {
		if text := messageIn(src); text != "" {
			return excerpt([]byte(text))
		}
	}
	if e.Message != "" {
		return excerpt([]byte(e.Message))
	}
	return excerpt(body)
}

func messageIn(src json.RawMessage) string {
	var text string
	if len(src) == 0 || bytes.Equal(src, []byte("null")) || json.Unmarshal(src, &text) == nil {
		return text
	}
	var object struct {
		Message string `json:"message"`
		Msg     string `json:"msg"`
	}
	if json.Unmarshal(src, &object) == nil {
		return object.Message + object.Msg
	}
	var list []json.RawMessage
	if json.Unmarshal(src, &list) != nil {
		return ""
	}
	var parts []string
	for _, x := range list[:min(len(list), 3)] {
		parts = append(parts, messageIn(x))
	}
	return strings.Join(parts, "; ")
}

// errorCode is the status that an error object in an answer with status 200
// names; 502 if it names none.
func errorCode(src json.RawMessage) int {
	var e struct {
		Code json.RawMessage `json:"code"`
	}
	if json.Unmarshal(src, &e) == nil {
		if n, err := strconv.Atoi(strings.Trim(string(e.Code), `"`)); err == nil && n >= 400 && n < 600 {
			return n
		}
	}
	return http.StatusBadGateway
}

// longestRest bounds what a server may ask to be left alone for.
const longestRest = 5 * time.Minute

// retryAfter is how long a server asks to wait: milliseconds, seconds, or a
// date. 0 when it does not say.
func retryAfter(h http.Header, now time.Time) time.Duration {
	wait := func(d time.Duration) time.Duration { return min(max(d, 0), longestRest) }
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms < 1e9 {
		return wait(time.Duration(ms * float64(time.Millisecond)))
	}
	v := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil && s < 1e6 {
		return wait(time.Duration(s * float64(time.Second)))
	}
	if t, err := http.ParseTime(v); err == nil {
		return wait(t.Sub(now))
	}
	return 0
}
