package web

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/gorilla/websocket"
)

const testToken = "0123456789abcdef0123456789abcdef"

// newGuardedSite is a site that asks for a token.
func newGuardedSite(t *testing.T) (*httptest.Server, *fakeRuns, *site) {
	t.Helper()
	s := openStore(t)
	launchStudy(t, s, rewardsStudy())
	runs := &fakeRuns{store: s}
	hub := NewHub(HubConfig{})
	var logged bytes.Buffer
	c := Config{Store: s, Runs: runs, Hub: hub, Token: testToken, Hosts: []string{"bench.example"}, Logger: slog.New(slog.NewTextHandler(&logged, nil))}
	st, err := newSite(c)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(st.handler())
	t.Cleanup(func() {
		srv.Close()
		if strings.Contains(logged.String(), testToken) {
			t.Error("the token is in the log")
		}
	})
	return srv, runs, st
}

type route struct{ method, pattern string }

// allRoutes lists the routes as the router has them.
func allRoutes(t *testing.T, s *site) []route {
	t.Helper()
	var routes []route
	err := chi.Walk(s.routes(), func(method, pattern string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		routes = append(routes, route{method, pattern})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(routes) < 30 {
		t.Fatalf("%d routes, want more: the walk is broken", len(routes))
	}
	return routes
}

var param = regexp.MustCompile(`\{(\w+)(?::([^}]*))?\}`)

// example fills a route's parameters with values that fit.
func example(pattern string) string {
	return param.ReplaceAllStringFunc(pattern, func(p string) string {
		m := param.FindStringSubmatch(p)
		if first, _, ok := strings.Cut(m[2], "|"); ok {
			return strings.Trim(first, "()")
		}
		return "1"
	})
}

func do(t *testing.T, method, address string, change func(*http.Request)) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(method, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(req)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, address, err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp, string(body)
}

func bearer(r *http.Request) { r.Header.Set("Authorization", "Bearer "+testToken) }

func TestEveryRouteNeedsTheToken(t *testing.T) {
	srv, runs, s := newGuardedSite(t)
	open := map[string]bool{"/static/{name}": true, "/login": true, "/healthz": true}
	for _, rt := range allRoutes(t, s) {
		if open[rt.pattern] {
			continue
		}
		for name, change := range map[string]func(*http.Request){
			"no token":     nil,
			"wrong token":  func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+testToken[:31]+"0") },
			"token as is":  func(r *http.Request) { r.AddCookie(&http.Cookie{Name: cookieName, Value: testToken}) },
			"empty bearer": func(r *http.Request) { r.Header.Set("Authorization", "Bearer ") },
		} {
			resp, _ := do(t, rt.method, srv.URL+example(rt.pattern), change)
			if resp.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s %s with %s = %d, want 401", rt.method, rt.pattern, name, resp.StatusCode)
			}
		}
		resp, _ := do(t, rt.method, srv.URL+example(rt.pattern), bearer)
		if resp.StatusCode == http.StatusUnauthorized {
			t.Errorf("%s %s with the token = 401", rt.method, rt.pattern)
		}
	}
	for _, asked := range runs.asked {
		if !strings.Contains(asked, " 1") {
			t.Errorf("unexpected request to the runner: %s", asked)
		}
	}
}

func TestTokenInAddressTurnsIntoCookie(t *testing.T) {
	srv, _, _ := newGuardedSite(t)
	resp, _ := do(t, "GET", srv.URL+"/studies?show=all&token="+testToken, nil)
	if resp.StatusCode != http.StatusSeeOther || resp.Header.Get("Location") != "/studies?show=all" {
		t.Fatalf("got %d to %q, want 303 to /studies?show=all", resp.StatusCode, resp.Header.Get("Location"))
	}
	if p := resp.Header.Get("Referrer-Policy"); p != "no-referrer" {
		t.Errorf("Referrer-Policy %q, want no-referrer", p)
	}
	cookies := resp.Cookies()
	if len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteStrictMode || cookies[0].Value == testToken {
		t.Fatalf("cookies = %v, want one, HttpOnly, SameSite=Strict, not the token itself", cookies)
	}
	resp, _ = do(t, "GET", srv.URL+"/studies?show=all", func(r *http.Request) { r.AddCookie(cookies[0]) })
	if resp.StatusCode != http.StatusOK {
		t.Errorf("with the cookie: %d, want 200", resp.StatusCode)
	}
	resp, body := do(t, "GET", srv.URL+"/?token=wrong", nil)
	if resp.StatusCode != http.StatusUnauthorized || !strings.Contains(body, "not the one of this server") {
		t.Errorf("with a wrong token: %d, want 401 with a reason", resp.StatusCode)
	}
	resp, _ = do(t, "GET", srv.URL+"//evil.test/?token="+testToken, nil)
	if to := resp.Header.Get("Location"); strings.HasPrefix(to, "//") || strings.Contains(to, "evil.test:") {
		t.Errorf("redirected to %q, which leaves the site", to)
	}
}

func TestLogin(t *testing.T) {
	srv, _, _ := newGuardedSite(t)
	post := func(token, next string) (*http.Response, string) {
		form := url.Values{"token": {token}, "next": {next}}
		resp, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).PostForm(srv.URL+"/login", form)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return resp, string(body)
	}
	if resp, _ := post(testToken, "/studies"); resp.StatusCode != http.StatusSeeOther || resp.Header.Get("Location") != "/studies" {
		t.Errorf("right token: %d to %q, want 303 to /studies", resp.StatusCode, resp.Header.Get("Location"))
	}
	if resp, _ := post(testToken, "https://evil.test/"); resp.Header.Get("Location") != "/" {
		t.Errorf("foreign next: to %q, want /", resp.Header.Get("Location"))
	}
	resp, body := post("guess", "/")
	if resp.StatusCode != http.StatusUnauthorized || !strings.Contains(body, "not the token") || len(resp.Cookies()) > 0 {
		t.Errorf("wrong token: %d, cookies %v; want 401 with a reason and no cookie", resp.StatusCode, resp.Cookies())
	}
}

func TestHosts(t *testing.T) {
	srv, _, _ := newGuardedSite(t)
	tests := []struct {
		host string
		ok   bool
	}{
		{"localhost", true}, {"localhost:8080", true}, {"LOCALHOST:8080", true}, {"localhost.", true}, {"localhost.:99", true},
		{"127.0.0.1", true}, {"127.0.0.1:8080", true}, {"127.9.9.9:1", true}, {"[::1]", true}, {"[::1]:8080", true},
		{"bench.example", true}, {"Bench.Example:443", true}, {"bench.example.", true},
		{"evil.test", false}, {"evil.test:8080", false}, {"localhost.evil.test", false}, {"127.0.0.1.evil.test", false},
		{"10.0.0.7", false}, {"[2001:db8::1]:80", false}, {"0.0.0.0", false}, {"xbench.example", false},
	}
	for _, tt := range tests {
		for _, path := range []string{"/", "/static/app.css", "/ws", "/api/v1/studies", "/healthz"} {
			resp, _ := do(t, "GET", srv.URL+path, func(r *http.Request) { r.Host = tt.host; bearer(r) })
			if refused := resp.StatusCode == http.StatusForbidden; refused == tt.ok {
				t.Errorf("GET %s with Host %q = %d, want refused: %v", path, tt.host, resp.StatusCode, !tt.ok)
			}
		}
	}
}

// TestCrossSiteWrites posts to every route that changes something as another
// site's page would.
func TestCrossSiteWrites(t *testing.T) {
	srv, runs, s := newGuardedSite(t)
	attacks := map[string]func(*http.Request){
		"cross-site fetch": func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"same-site fetch":  func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") },
		"foreign origin":   func(r *http.Request) { r.Header.Set("Origin", "http://evil.test") },
		"null origin":      func(r *http.Request) { r.Header.Set("Origin", "null") },
		"other port":       func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:1") },
		"foreign form post": func(r *http.Request) {
			r.Header.Set("Origin", "http://evil.test")
			r.Header.Set("Content-Type", "text/plain")
		},
	}
	for _, rt := range allRoutes(t, s) {
		if rt.method == "GET" || rt.method == "HEAD" {
			continue
		}
		for name, attack := range attacks {
			resp, _ := do(t, rt.method, srv.URL+example(rt.pattern), func(r *http.Request) { bearer(r); attack(r) })
			if resp.StatusCode != http.StatusForbidden {
				t.Errorf("%s %s as %s = %d, want 403", rt.method, rt.pattern, name, resp.StatusCode)
			}
		}
	}
	for _, rt := range allRoutes(t, s) { // and no route changes anything by GET
		if rt.method == "GET" {
			do(t, "GET", srv.URL+example(rt.pattern), bearer)
		}
	}
	if len(runs.asked) > 0 {
		t.Errorf("the runner was asked: %v", runs.asked)
	}
	recs, err := s.Store.Studies(t.Context())
	if err != nil || len(recs) != 1 || recs[0].Archived || recs[0].Paused {
		t.Errorf("studies = %+v, %v; want the one, untouched", recs, err)
	}
}

func TestHeaders(t *testing.T) {
	srv, _, _ := newGuardedSite(t)
	for _, path := range []string{"/", "/studies/1", "/nowhere", "/login", "/api/v1/studies"} {
		resp, _ := do(t, "GET", srv.URL+path, bearer)
		csp := resp.Header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"} {
			if !strings.Contains(csp, want) {
				t.Errorf("GET %s: policy %q lacks %s", path, csp, want)
			}
		}
		if strings.Contains(csp, "unsafe") {
			t.Errorf("GET %s: unsafe policy %q", path, csp)
		}
		if resp.Header.Get("X-Content-Type-Options") != "nosniff" || resp.Header.Get("Referrer-Policy") == "" {
			t.Errorf("GET %s: headers %v", path, resp.Header)
		}
	}
}

func TestWebsocketOriginAndToken(t *testing.T) {
	srv, _, _ := newGuardedSite(t)
	address := "ws" + strings.TrimPrefix(srv.URL, "http") + "/ws"
	tests := []struct {
		name   string
		header http.Header
		status int
	}{
		{"no token", http.Header{}, 401},
		{"foreign origin", http.Header{"Authorization": {"Bearer " + testToken}, "Origin": {"http://evil.test"}}, 403},
		{"null origin", http.Header{"Authorization": {"Bearer " + testToken}, "Origin": {"null"}}, 403},
		{"own origin", http.Header{"Authorization": {"Bearer " + testToken}, "Origin": {srv.URL}}, 101},
		{"program", http.Header{"Authorization": {"Bearer " + testToken}}, 101},
	}
	for _, tt := range tests {
		conn, resp, err := websocket.DefaultDialer.Dial(address, tt.header)
		if resp == nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if resp.StatusCode != tt.status {
			t.Errorf("%s: %d, want %d", tt.name, resp.StatusCode, tt.status)
		}
		if conn != nil {
			conn.Close()
		}
	}
}

func TestWebsocketRefusesLongMessages(t *testing.T) {
	srv, _, _ := newGuardedSite(t)
	conn, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(srv.URL, "http")+"/ws", http.Header{"Authorization": {"Bearer " + testToken}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.WriteMessage(websocket.TextMessage, bytes.Repeat([]byte("x"), maxMessage+1)); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, _, err := conn.ReadMessage(); err == nil {
		t.Error("the connection is still open after a message over 64 KB")
	}
}

func TestLongBodiesAreRefused(t *testing.T) {
	srv, _, _ := newGuardedSite(t)
	req, _ := http.NewRequest("POST", srv.URL+"/api/v1/studies", strings.NewReader(strings.Repeat("# x\n", maxBody/4+10)))
	bearer(req)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("got %d, want 413", resp.StatusCode)
	}
}

// TestTidyLog shows what a page makes of a terminal's output.
func TestTidyLog(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"plain", "a\nb\n", "a\nb\n"},
		{"progress", "1%\r50%\r100%\ndone", "100%\ndone"},
		{"windows line ends", "a\r\nb\r\n", "a\nb\n"},
		{"colours", "\x1b[1;31mred\x1b[0m \x1b]0;title\x07ok", "red ok"},
		{"link", "\x1b]8;;http://evil.test\x1b\\text\x1b]8;;\x1b\\", "text"},
		{"bidi", "a\u202eb", "a⟨202E⟩b"},
		{"control", "a\x00b\tc", "a⟨0000⟩b\tc"},
		{"not UTF-8", "a\xffb", "a\uFFFDb"},
		{"cut escape", "a\x1b[", "a"},
	}
	for _, tt := range tests {
		if got := tidyLog(tt.in); got != tt.want {
			t.Errorf("%s: tidyLog(%q) = %q, want %q", tt.name, tt.in, got, tt.want)
		}
	}
	if got := tidyLog(strings.Repeat("progress\r", 100_000) + "end"); got != "end" {
		t.Errorf("100,000 carriage returns leave %d bytes, want %q", len(got), "end")
	}
}

var _ Runs = (*fakeRuns)(nil)
