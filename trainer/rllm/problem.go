package rllm

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"alidade/ablation"
)

// problem is an error with the status that the client gets.
type problem struct {
	status int
	text   string
	retry  time.Duration
}

func (p *problem) Error() string { return p.text }

// refuse is the error for one field of a body.
func refuse(field, value, problem, allowed string) error {
	const most = 200
	if len(value) > most {
		value = strings.ToValidUTF8(value[:most], "") + "…"
	}
	return &ablation.Invalid{Fields: []ablation.FieldError{{Field: field, Value: value, Problem: problem, Allowed: allowed}}}
}

// fail writes an error: 422 for fields, what a problem says, else 500.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	status, text := http.StatusInternalServerError, err.Error()
	var fields []ablation.FieldError
	var p *problem
	var large *http.MaxBytesError
	invalid := &ablation.Invalid{}
	switch {
	case errors.As(err, &p):
		status = p.status
		if p.retry > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(max(1, int(p.retry.Seconds()))))
		}
	case errors.As(err, &invalid):
		status, fields = http.StatusUnprocessableEntity, invalid.Fields
	case errors.As(err, &large):
		status, text = http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is over %d bytes; post the episodes one by one", large.Limit)
	}
	s.refused.Add(1)
	s.cfg.Logger.Warn("refused", "call", r.Method+" "+r.URL.Path, "status", status, "why", text)
	answer(w, status, map[string]any{"error": map[string]any{"message": text, "fields": fields}})
}

func answer(w http.ResponseWriter, status int, body any) {
	src, err := json.Marshal(body)
	if err != nil { // what is answered are plain values
		status, src = http.StatusInternalServerError, []byte(`{"error":{"message":"the answer could not be written"}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(src, '\n')) // the client has gone
}
