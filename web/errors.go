package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"alidade/ablation"
	"alidade/store"
	"alidade/templates"
)

// Problem is an error with the status and the text that a person gets. Err is
// for the log alone.
type Problem struct {
	Status int
	Text   string
	Fields []ablation.FieldError
	Err    error
}

// Error implements error.
func (p *Problem) Error() string {
	if p.Err != nil {
		return fmt.Sprintf("%s: %v", p.Text, p.Err)
	}
	return p.Text
}

// Unwrap returns the cause.
func (p *Problem) Unwrap() error { return p.Err }

// invalidParam is the answer to a query or form value that is not allowed.
func invalidParam(field, value, allowed string) error {
	return &ablation.Invalid{Fields: []ablation.FieldError{{Field: field, Value: value, Problem: "not allowed", Allowed: allowed}}}
}

// classes maps the classes of error to what the client gets.
var classes = []struct {
	is     error
	status int
	text   string
}{
	{ablation.ErrNotFound, http.StatusNotFound, "Not found"},
	{ablation.ErrConflict, http.StatusConflict, "Not possible now"},
	{ablation.ErrInvalid, http.StatusUnprocessableEntity, "Not valid"},
	{store.ErrReadOnly, http.StatusConflict, "The data folder is read-only"},
	{store.ErrDiskFull, http.StatusInsufficientStorage, "The disk is full"},
	{context.DeadlineExceeded, http.StatusServiceUnavailable, "This took too long"},
}

// problemOf turns any error into what the client gets.
func problemOf(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &Problem{Status: http.StatusRequestEntityTooLarge, Text: fmt.Sprintf("The request is over %d bytes", tooLarge.Limit), Err: err}
	}
	if invalid, ok := errors.AsType[*ablation.Invalid](err); ok {
		return &Problem{Status: http.StatusUnprocessableEntity, Text: "Not valid", Fields: invalid.Fields, Err: err}
	}
	for _, c := range classes {
		if errors.Is(err, c.is) {
			return &Problem{Status: c.status, Text: c.text, Err: err}
		}
	}
	return &Problem{Status: http.StatusInternalServerError, Text: "The server could not do this", Err: err}
}

// detail is what may be told of the cause: our own sentences, not the inside
// of a failure.
func (p *Problem) detail() string {
	if p.Err == nil || p.Status == http.StatusInternalServerError || len(p.Fields) > 0 {
		return ""
	}
	return p.Err.Error()
}

// apiError is the one shape of an error in the JSON API.
type apiError struct {
	Error apiErrorBody `json:"error"`
}

type apiErrorBody struct {
	Message string                `json:"message"`
	Detail  string                `json:"detail,omitempty"`
	Fields  []ablation.FieldError `json:"fields,omitempty"`
}

// fail answers a failed request: JSON under /api, a page otherwise.
func (s *site) fail(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		return // the client has left
	}
	p := problemOf(err)
	if p.Status >= http.StatusInternalServerError {
		s.log.Error("request failed", "method", r.Method, "path", r.URL.Path, "status", p.Status, "err", err)
	} else {
		s.log.Debug("request refused", "method", r.Method, "path", r.URL.Path, "status", p.Status, "err", err)
	}
	if wantsJSON(r) {
		_ = writeJSON(w, p.Status, apiError{apiErrorBody{Message: p.Text, Detail: p.detail(), Fields: p.Fields}})
		return
	}
	v := templates.ErrorView{Title: p.Text, Text: p.detail(), Back: templates.Link{Label: "Home", Href: "/"}}
	for _, f := range p.Fields {
		v.Fields = append(v.Fields, f.Error())
	}
	switch p.Status {
	case http.StatusInternalServerError:
		v.Text = "What was stored before is safe. The server's log has the cause."
		fallthrough
	case http.StatusServiceUnavailable, http.StatusInsufficientStorage:
		if r.Method == http.MethodGet {
			v.Retry = r.URL.RequestURI()
		}
	}
	if renderErr := s.render(w, r, p.Status, templates.ErrorPage(s.view(r, "", "", p.Text), v)); renderErr != nil {
		s.log.Error("render error page", "err", renderErr)
		http.Error(w, p.Text, p.Status)
	}
}

// wantsJSON tells whether an error should be JSON.
func wantsJSON(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, "/api/") || r.URL.Path == "/ws" || r.Header.Get("Accept") == "application/json"
}

func (s *site) notFound(w http.ResponseWriter, r *http.Request) error {
	return &Problem{Status: http.StatusNotFound, Text: "There is no page here"}
}

func (s *site) methodNotAllowed(w http.ResponseWriter, r *http.Request) error {
	return &Problem{Status: http.StatusMethodNotAllowed, Text: r.Method + " is not possible here"}
}
