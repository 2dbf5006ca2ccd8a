package serve

import (
	"bytes"
	"crypto/subtle"
	"encoding/json"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// mux installs the table and, behind it, the answers for everything else.
func (s *Server) mux() http.Handler {
	m := http.NewServeMux()
	for i := range s.table {
		r := &s.table[i]
		m.HandleFunc(r.method+" "+r.path, s.guard(r, s.handle(r)))
	}
	m.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, s.astray(m, r))
	})
	return m
}

// astray says what is wrong with a request that fits no route.
func (s *Server) astray(m *http.ServeMux, r *http.Request) error {
	var methods []string
	for _, method := range []string{"GET", "POST", "DELETE"} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := m.Handler(other); pattern != "/" {
			methods = append(methods, method)
		}
	}
	if len(methods) == 0 {
		return &Problem{Status: http.StatusNotFound, Text: "there is nothing at " + r.URL.Path + ", see /env/openapi.json"}
	}
	p := problemOf(refuse("method", r.Method, strings.Join(methods, ", ")))
	p.Status = http.StatusMethodNotAllowed
	return p
}

// guard lets in who has the token, up to the bound on requests at work.
func (s *Server) guard(r *route, next http.HandlerFunc) http.HandlerFunc {
	if r.open {
		return next
	}
	return func(w http.ResponseWriter, q *http.Request) {
		if err := s.allowed(q); err != nil {
			s.fail(w, err)
			return
		}
		if r.path == "/env/ws" { // connections have a bound of their own
			next(w, q)
			return
		}
		defer s.inFlight.Add(-1)
		if s.inFlight.Add(1) > int64(s.config.MaxInFlight) {
			s.fail(w, busy("requests at work are at their bound of "+strconv.Itoa(s.config.MaxInFlight)))
			return
		}
		next(w, q)
	}
}

// allowed checks the token. A server that asks for none takes requests for
// loopback names only and none from web pages, which could otherwise reach it
// through the browser of whoever sits at the machine.
func (s *Server) allowed(r *http.Request) error {
	if s.config.Token == "" {
		if s.config.NoAuth && (r.Header.Get("Origin") != "" || !localName(r.Host)) {
			return &Problem{Status: http.StatusForbidden, Text: "a server without a token serves programs on this machine only"}
		}
		return nil
	}
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if ok && subtle.ConstantTimeCompare([]byte(given), []byte(s.config.Token)) == 1 {
		return nil
	}
	return &Problem{Status: http.StatusUnauthorized, Text: "the request needs the server's token: Authorization: Bearer …"}
}

func localName(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if host == "" || host == "localhost" {
		return true
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return ip != nil && ip.IsLoopback()
}

// handle runs a route.
func (s *Server) handle(r *route) http.HandlerFunc {
	if r.raw != nil {
		return r.raw
	}
	return func(w http.ResponseWriter, q *http.Request) {
		var res any
		var err error
		if r.body {
			body := buffers.Get().(*bytes.Buffer)
			defer keep(body)
			if err = s.read(w, q, body); err == nil {
				res, err = r.run(q.Context(), q.PathValue("id"), body.Bytes())
			}
		} else {
			res, err = r.query(q.Context(), q.PathValue("id"), q.URL.Query())
		}
		if err != nil {
			s.fail(w, err)
			return
		}
		s.send(w, r.status, res)
	}
}

// read takes the body in.
func (s *Server) read(w http.ResponseWriter, r *http.Request, to *bytes.Buffer) error {
	_, err := io.Copy(to, http.MaxBytesReader(w, r.Body, s.config.MaxBody))
	if err == nil {
		return nil
	}
	p := problemOf(err)
	if p.Status == http.StatusInternalServerError {
		p = &Problem{Status: http.StatusBadRequest, Text: "the body could not be read to its end", Err: err}
	}
	return p
}

// buffers are lent to requests and answers.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

const keepBytes = 256 << 10 // larger buffers are left to the collector

func keep(b *bytes.Buffer) {
	if b.Cap() <= keepBytes {
		b.Reset()
		buffers.Put(b)
	}
}

func (s *Server) send(w http.ResponseWriter, status int, body any) {
	b := buffers.Get().(*bytes.Buffer)
	defer keep(b)
	if err := encode(b, body); err != nil {
		s.config.Logger.Error("answer not encoded", slog.Any("err", err))
		status = http.StatusInternalServerError
		b.Reset()
		_ = encode(b, ErrorResult{ErrorInfo{Message: "the server could not do this"}})
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(b.Len()))
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // a client that is gone will ask again
}

func encode(b *bytes.Buffer, body any) error {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	return e.Encode(body)
}

// fail answers with an error and counts it.
func (s *Server) fail(w http.ResponseWriter, err error) {
	p := s.note(err)
	h := w.Header()
	if p.Retry > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(p.Retry.Seconds()))))
	}
	switch p.Status {
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", "Bearer")
	case http.StatusMethodNotAllowed:
		h.Set("Allow", p.Fields[0].Allowed)
	}
	s.send(w, p.Status, ErrorResult{*p.info()})
}

// note counts an error and logs those that are the server's own.
func (s *Server) note(err error) *Problem {
	p := problemOf(err)
	switch {
	case p.Status >= 500:
		s.count.failed.Add(1)
		if p.Err != nil {
			s.config.Logger.Error("request failed", slog.Any("err", p.Err))
		}
	case p.Status == http.StatusUnauthorized:
		s.count.unauthorised.Add(1)
	case p.Status == http.StatusTooManyRequests:
		s.count.refused.Add(1)
	default:
		s.count.malformed.Add(1)
	}
	return p
}

func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	if s.closing.Load() {
		s.fail(w, &Problem{Status: http.StatusServiceUnavailable, Text: "the server is shutting down"})
		return
	}
	s.send(w, http.StatusOK, Health{OK: true})
}
