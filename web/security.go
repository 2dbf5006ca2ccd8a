package web

import (
	"net"
	"net/http"
	"runtime/debug"
	"strings"
)

// maxBody bounds a request's body: a study file with thousands of arms fits.
const maxBody = 4 << 20

// policy allows our own files and nothing else: no inline script or style, no
// outside request, no framing.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// secureHeaders sets what every answer carries.
func secureHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=()")
		next.ServeHTTP(w, r)
	})
}

// limitBody bounds every request's body.
func limitBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limit := int64(maxBody)
		if p := r.URL.Path; p == "/datasets/import" || p == "/api/v1/datasets" {
			limit = maxImport
		}
		r.Body = http.MaxBytesReader(w, r.Body, limit)
		next.ServeHTTP(w, r)
	})
}

// requireHost refuses names that are neither loopback nor configured, so that
// a name which an attacker's DNS points here cannot read anything.
func (s *site) requireHost(next http.Handler) http.Handler {
	allowed := map[string]bool{}
	for _, h := range s.Hosts {
		allowed[hostName(h)] = true
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := hostName(r.Host)
		if !isLoopbackName(name) && !allowed[name] {
			s.fail(w, r, &Problem{Status: http.StatusForbidden, Text: "This server does not answer to the name " + printable(name)})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// hostName is the host of "name:port" or "[v6]:port", in lower case, without
// brackets, port and trailing dot.
func hostName(hostport string) string {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// isLoopbackName holds for localhost and literal loopback addresses; names
// are never looked up.
func isLoopbackName(name string) bool {
	if name == "localhost" {
		return true
	}
	ip := net.ParseIP(name)
	return ip != nil && ip.IsLoopback()
}

// printable keeps a foreign text short and free of control characters.
func printable(s string) string {
	var b strings.Builder
	for _, c := range s {
		if b.Len() > 80 {
			return b.String() + "…"
		}
		if c < ' ' || c == 0x7f {
			c = '·'
		}
		b.WriteRune(c)
	}
	return b.String()
}

// crossOrigin refuses writes that another site's page makes.
func (s *site) crossOrigin(next http.Handler) http.Handler {
	cop := http.NewCrossOriginProtection()
	cop.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, r, &Problem{Status: http.StatusForbidden, Text: "A page of another site may not change anything here"})
	}))
	return cop.Handler(next)
}

// recoverPanics answers 500 where a handler panics; the server goes on.
func (s *site) recoverPanics(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if v == http.ErrAbortHandler {
				panic(v)
			}
			s.log.Error("handler panicked", "path", r.URL.Path, "panic", v, "stack", string(debug.Stack()))
			s.fail(w, r, &Problem{Status: http.StatusInternalServerError, Text: "The server could not do this"})
		}()
		next.ServeHTTP(w, r)
	})
}
