package serve

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"alidade/ablation"
)

// Problem is an error with the status and the text that the client gets. Err
// is for the log alone.
type Problem struct {
	Status   int
	Text     string
	Fields   []ablation.FieldError
	Retry    time.Duration // when to come again; 0 = not said
	Expected *int          // the call index that the episode waits for
	Err      error
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

func fieldError(field, value, allowed string) ablation.FieldError {
	const limit = 200
	if len(value) > limit {
		value = value[:limit] + "…"
	}
	return ablation.FieldError{Field: field, Value: value, Allowed: allowed}
}

// refuse is the error for one field.
func refuse(field, value, allowed string) error {
	return &ablation.Invalid{Fields: []ablation.FieldError{fieldError(field, value, allowed)}}
}

// busy says that a bound is reached and that it will pass.
func busy(text string) error {
	return &Problem{Status: http.StatusTooManyRequests, Text: text, Retry: time.Second}
}

// problemOf turns any error into what the client gets.
func problemOf(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if invalid, ok := errors.AsType[*ablation.Invalid](err); ok {
		return &Problem{Status: http.StatusUnprocessableEntity, Text: invalid.Error(), Fields: invalid.Fields}
	}
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &Problem{Status: http.StatusRequestEntityTooLarge, Text: fmt.Sprintf("the request is over %d bytes", large.Limit)}
	}
	return &Problem{Status: http.StatusInternalServerError, Text: "the server could not do this", Err: err}
}

// ErrorResult is the body of every answer that is not a success.
type ErrorResult struct {
	Error ErrorInfo `json:"error"`
}

// ErrorInfo says what is wrong.
type ErrorInfo struct {
	Message  string                `json:"message"`
	Fields   []ablation.FieldError `json:"fields,omitempty"`
	Retry    float64               `json:"retry_after_s,omitempty" help:"come again after this many seconds"`
	Expected *int                  `json:"expected_index,omitempty" help:"the call index that the episode waits for"`
}

func (p *Problem) info() *ErrorInfo {
	return &ErrorInfo{Message: p.Text, Fields: p.Fields, Retry: p.Retry.Seconds(), Expected: p.Expected}
}
