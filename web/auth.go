package web

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"

	"alidade/templates"
)

// cookieName holds proof of the token, never the token itself: cookies of
// 127.0.0.1 are sent to every port, so another program there may see it.
const cookieName = "alidade"

// cookieProof is what the cookie holds for a token.
func cookieProof(token string) string {
	m := hmac.New(sha256.New, []byte(token))
	m.Write([]byte("alidade session cookie 1"))
	return hex.EncodeToString(m.Sum(nil))
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// open lists what is served without a token: the files of the login page, the
// page itself and the probe.
func openPath(p string) bool {
	return p == "/login" || p == "/healthz" || strings.HasPrefix(p, "/static/")
}

// requireToken lets requests through that know the token: as a bearer, as the
// cookie, or once in the address, which then turns into a cookie.
func (s *site) requireToken(next http.Handler) http.Handler {
	if s.NoAuth {
		return next
	}
	proof := cookieProof(s.Token)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if q := r.URL.Query(); q.Has("token") && r.URL.Path != "/login" && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
			if !equal(q.Get("token"), s.Token) {
				s.deny(w, r, "The token in this address is not the one of this server")
				return
			}
			s.setCookie(w)
			q.Del("token")
			u := *r.URL
			u.RawQuery = q.Encode()
			w.Header().Set("Referrer-Policy", "no-referrer")
			w.Header().Set("Cache-Control", "no-store")
			http.Redirect(w, r, localAddress(u.RequestURI()), http.StatusSeeOther)
			return
		}
		if openPath(r.URL.Path) || s.authorized(r, proof) {
			next.ServeHTTP(w, r)
			return
		}
		s.deny(w, r, "")
	})
}

func (s *site) authorized(r *http.Request, proof string) bool {
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return equal(token, s.Token)
	}
	c, err := r.Cookie(cookieName)
	return err == nil && equal(c.Value, proof)
}

// setCookie keeps the proof until the browser closes.
func (s *site) setCookie(w http.ResponseWriter) {
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: cookieProof(s.Token), Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
}

// localAddress keeps a redirect on this site: "//host" would leave it.
func localAddress(p string) string {
	if !strings.HasPrefix(p, "/") || strings.HasPrefix(p, "//") || strings.ContainsAny(p, "\\\r\n") {
		return "/"
	}
	return p
}

// deny answers 401: JSON for programs, the login page for people.
func (s *site) deny(w http.ResponseWriter, r *http.Request, why string) {
	w.Header().Set("WWW-Authenticate", `Bearer realm="alidade"`)
	if wantsJSON(r) {
		s.fail(w, r, &Problem{Status: http.StatusUnauthorized, Text: "A token is needed: send it as Authorization: Bearer, or open the address that the server printed at its start"})
		return
	}
	if err := s.renderLogin(w, r, http.StatusUnauthorized, why, localAddress(r.URL.RequestURI())); err != nil {
		s.fail(w, r, err)
	}
}

func (s *site) routesLogin(r chi.Router) {
	r.Get("/login", s.page(s.loginForm))
	r.Post("/login", s.page(s.login))
}

func (s *site) loginForm(w http.ResponseWriter, r *http.Request) error {
	return s.renderLogin(w, r, http.StatusOK, "", "/")
}

func (s *site) login(w http.ResponseWriter, r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return &Problem{Status: http.StatusBadRequest, Text: "The form could not be read", Err: err}
	}
	next := localAddress(r.PostForm.Get("next"))
	if !s.NoAuth && !equal(strings.TrimSpace(r.PostForm.Get("token")), s.Token) {
		return s.renderLogin(w, r, http.StatusUnauthorized, "This is not the token of this server.", next)
	}
	if !s.NoAuth {
		s.setCookie(w)
	}
	http.Redirect(w, r, next, http.StatusSeeOther)
	return nil
}

func (s *site) renderLogin(w http.ResponseWriter, r *http.Request, status int, problem, next string) error {
	p := s.view(r, "", "", "Token needed")
	p.Plain = true
	return s.render(w, r, status, templates.Login(p, templates.LoginView{Problem: problem, Next: next}))
}
