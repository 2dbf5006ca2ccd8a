package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"alidade/sandbox/travel"
	"alidade/sandbox/travel/synth"
)

const testToken = "secret-of-the-test"

// fixture is one small generated world with certified queries, made once.
type fixture struct {
	world   *travel.World
	queries []travel.Query
	plans   []string // as JSON, each passes strict
}

var makeFixture = sync.OnceValues(func() (*fixture, error) {
	tables, err := synth.Generate(3, 8)
	if err != nil {
		return nil, err
	}
	w := synth.NewWorld(tables)
	queries, solutions, _, err := w.Queries(context.Background(), synth.Options{N: 6, Mix: [3]int{1, 1, 1}, Days: 3, Seed: 5, Certify: true})
	if err != nil {
		return nil, err
	}
	f := &fixture{world: w.World, queries: queries}
	for _, s := range solutions {
		f.plans = append(f.plans, travel.JSONPlan(s.Days))
	}
	return f, nil
})

func theFixture(t testing.TB) *fixture {
	t.Helper()
	f, err := makeFixture()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// config is a server's for the fixture; change may alter it.
func (f *fixture) config(change func(*Config)) Config {
	c := Config{World: f.world, Tasks: Tasks{"train": TasksOf(f.queries[:4]), "eval": TasksOf(f.queries[4:])}, Token: testToken}
	if change != nil {
		change(&c)
	}
	return c
}

// client speaks to a running server.
type client struct {
	t    testing.TB
	s    *Server
	base string
	http *http.Client
}

func start(t testing.TB, change func(*Config)) *client {
	t.Helper()
	s, err := New(theFixture(t).config(change))
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(s)
	srv.Client().Transport.(*http.Transport).MaxIdleConnsPerHost = 2000
	t.Cleanup(func() { s.Close(); srv.Close() })
	return &client{t: t, s: s, base: srv.URL, http: srv.Client()}
}

// send returns status and body of a request with the token.
func (c *client) send(method, path, body string) (int, []byte, http.Header) {
	c.t.Helper()
	r, err := http.NewRequest(method, c.base+path, bytes.NewReader([]byte(body)))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+testToken)
	res, err := c.http.Do(r)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer res.Body.Close()
	src, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	return res.StatusCode, src, res.Header
}

// want sends and reads the answer, which must have the status.
func (c *client) want(status int, method, path string, body, to any) {
	c.t.Helper()
	src := []byte{}
	switch b := body.(type) {
	case nil:
	case string:
		src = []byte(b)
	default:
		var err error
		if src, err = json.Marshal(b); err != nil {
			c.t.Fatal(err)
		}
	}
	got, answer, _ := c.send(method, path, string(src))
	if got != status {
		c.t.Fatalf("%s %s %.300s = %d %.500s, want %d", method, path, src, got, answer, status)
	}
	if to != nil {
		if err := json.Unmarshal(answer, to); err != nil {
			c.t.Fatalf("%s %s: %v in %s", method, path, err, answer)
		}
	}
}

func (c *client) create(q CreateRequest) CreateResult {
	c.t.Helper()
	var r CreateResult
	if q.Split == "" {
		q.Split = "train"
	}
	c.want(http.StatusCreated, "POST", "/env/episodes", q, &r)
	return r
}

func (c *client) call(id string, index int, name, args string) CallResult {
	c.t.Helper()
	var r CallResult
	c.want(http.StatusOK, "POST", "/env/episodes/"+id+"/call", callBody(index, name, args), &r)
	return r
}

func (c *client) score(id string, q ScoreRequest) ScoreResult {
	c.t.Helper()
	var r ScoreResult
	c.want(http.StatusOK, "POST", "/env/episodes/"+id+"/score", q, &r)
	return r
}

func callBody(index int, name, args string) string {
	return fmt.Sprintf(`{"name":%q,"arguments":%s,"index":%d}`, name, args, index)
}

func cityArgs(city string) string { return fmt.Sprintf(`{"city":%q}`, city) }
