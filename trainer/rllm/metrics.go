package rllm

import (
	"encoding/json"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"

	"alidade/trainer"
	"alidade/trainer/native"
)

// keptSteps is how many steps back repeated calls are known as repeated.
const keptSteps = 256

// metrics takes the values of a step. The trainer logs a step in several
// calls, and the same call may come again.
func (s *Server) metrics(_ *http.Request, body []byte) (any, error) {
	var q struct {
		Session string                     `json:"session_id"`
		Step    step                       `json:"step"`
		Data    map[string]json.RawMessage `json:"data"`
	}
	if err := decode(body, &q); err != nil {
		return nil, err
	}
	if !q.Step.set {
		return nil, refuse("step", "", "missing", "a whole number, 0 or more")
	}
	if q.Data == nil {
		return nil, refuse("data", "", "missing", "an object of metric names and numbers")
	}
	values, ignored := map[string]float64{}, []string{}
	for name, src := range q.Data {
		v, ok := number(src)
		if !ok || name == "" {
			ignored = append(ignored, name)
			continue
		}
		values[name] = v
	}
	slices.Sort(ignored)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.known(q.Session); err != nil {
		return nil, err
	}
	if err := s.room(len(body)); err != nil {
		return nil, err
	}
	s.bad += len(ignored)
	s.values(q.Step.n, values)
	return map[string]any{"ok": true, "ignored": ignored}, nil
}

// values tells what is new or changed of a step. The caller holds the lock.
func (s *Server) values(n int64, values map[string]float64) {
	known := s.told[n]
	if known == nil {
		known = map[string]float64{}
		s.told[n] = known
		prune(s.told, n)
	}
	fresh := map[string]float64{}
	for name, v := range values {
		if old, ok := known[name]; !ok || old != v && !(math.IsNaN(old) && math.IsNaN(v)) {
			known[name], fresh[name] = v, v
		}
	}
	s.flush(n) // episodes of steps before
	s.last = max(s.last, n)
	if len(fresh) > 0 {
		s.ready = append(s.ready, native.Reading{Step: n, Values: fresh})
	}
}

// prune forgets steps long before n.
func prune[T any](m map[int64]T, n int64) {
	if len(m) <= keptSteps {
		return
	}
	for old := range m {
		if old < n-keptSteps {
			delete(m, old)
		}
	}
}

// evalResult takes the summary of an evaluation.
func (s *Server) evalResult(_ *http.Request, body []byte) (any, error) {
	var q struct {
		Session  string                     `json:"session_id"`
		Dataset  string                     `json:"dataset_name"`
		Model    string                     `json:"model"`
		Agent    string                     `json:"agent"`
		Score    *float64                   `json:"score"`
		Total    int                        `json:"total"`
		Correct  int                        `json:"correct"`
		Errors   int                        `json:"errors"`
		Averages map[string]json.RawMessage `json:"signal_averages"`
		Items    []evalItem                 `json:"items"`
	}
	if err := decode(body, &q); err != nil {
		return nil, err
	}
	switch {
	case q.Dataset == "":
		return nil, refuse("dataset_name", "", "missing", "a name")
	case q.Score == nil:
		return nil, refuse("score", "", "missing", "a number")
	case q.Total < 0 || q.Correct < 0 || q.Correct > q.Total:
		return nil, refuse("correct", itoa(q.Correct), "not a part of total", "0 to total, "+itoa(q.Total))
	case q.Errors < 0 || q.Errors > q.Total:
		return nil, refuse("errors", itoa(q.Errors), "not a part of total", "0 to total, "+itoa(q.Total))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.known(q.Session); err != nil {
		return nil, err
	}
	values := map[string]float64{"val/" + q.Dataset + "/score": *q.Score, "val/" + q.Dataset + "/errors": float64(q.Errors)}
	for name, src := range q.Averages {
		if v, ok := number(src); ok {
			values["val/"+q.Dataset+"/"+name] = v
		}
	}
	s.values(s.last, values)
	if e := s.panel(q.Items); e != nil && !s.judged[s.last] {
		s.judged[s.last] = true
		prune(s.judged, s.last)
		e.Step = s.last
		s.ready = append(s.ready, native.Reading{Step: s.last, Evaluation: e})
	}
	return done{true}, nil
}

// alert tells a person something. The caller holds the lock.
func (s *Server) alert(level, code, text string) {
	s.ready = append(s.ready, native.Reading{Step: s.last, Alert: &trainer.Alert{Level: level, Code: code, Text: text, Step: s.last}})
}

// Name implements [native.Source].
func (s *Server) Name() string { return "ui" }

// Poll implements [native.Source].
func (s *Server) Poll(last bool, emit func(native.Reading)) error {
	s.mu.Lock()
	s.age(last)
	s.liveness()
	ready, bad := s.ready, s.bad
	s.ready, s.bytes, s.bad = nil, 0, 0
	s.mu.Unlock()
	for _, x := range ready {
		emit(x)
	}
	if bad > 0 {
		emit(native.Reading{Bad: bad})
	}
	return nil
}

// liveness makes an alert when an open session is silent for long: the logger
// has a heartbeat of its own thread, so that silence means a dead or stopped
// process. The caller holds the lock.
func (s *Server) liveness() {
	open := false
	for _, x := range s.sessions {
		open = open || x.ended == ""
	}
	switch quiet := s.cfg.Now().Sub(s.heard); {
	case !open:
	case quiet > s.cfg.Silent && !s.silent:
		s.silent = true
		s.alert("warn", "rllm-silent", "no heartbeat of the trainer for "+quiet.Round(1e9).String()+": it hangs, or its machine does")
	case quiet <= s.cfg.Silent && s.silent:
		s.silent = false
		s.alert("info", "rllm-heard", "the trainer's heartbeat is back")
	}
}

func itoa(n int) string { return strconv.Itoa(n) }

// names lists the keys of m in order.
func names[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
