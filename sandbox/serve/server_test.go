package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"alidade/sandbox/travel"
)

func TestNewRefusesBadConfig(t *testing.T) {
	t.Parallel()
	f := theFixture(t)
	for _, x := range []struct {
		want   string
		change func(*Config)
	}{
		{"world is nil", func(c *Config) { c.World = nil }},
		{"no tasks", func(c *Config) { c.Tasks = nil }},
		{`task "0" twice`, func(c *Config) { c.Tasks["train"] = append(c.Tasks["train"], c.Tasks["train"][0]) }},
		{"without an id", func(c *Config) { c.Tasks["train"][0].ID = "" }},
		{`"kind"`, func(c *Config) { c.Reward.Kind = "kind" }},
		{"rate is 2", func(c *Config) { c.Failures.Rate = 2 }},
		{`form is "xml"`, func(c *Config) { c.Form = "xml" }},
		{`milestone is "x"`, func(c *Config) { c.Milestones = map[string]float64{"x": 1} }},
		{"max_turns is -1", func(c *Config) { c.MaxTurns = -1 }},
		{"max_body -5", func(c *Config) { c.MaxBody = -5 }},
		{"token has blanks", func(c *Config) { c.Token = "a b" }},
		{`"lenient"`, func(c *Config) { c.Profile = "lenient" }},
	} {
		if _, err := New(f.config(x.change)); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("New = %v, want %q", err, x.want)
		}
	}
}

func TestEveryErrorNamesFieldValueAndAllowed(t *testing.T) {
	t.Parallel()
	c := start(t, func(c *Config) { c.MaxBody = 2000; c.MaxBatch = 2 })
	id := c.create(CreateRequest{TaskID: "0"}).EpisodeID
	at := "/env/episodes/" + id
	for _, x := range []struct {
		method, path, body string
		status             int
		field, value       string // of the first field
		allowed            string
	}{
		{"POST", "/env/episodes", `{}`, 422, "task_id", "", "a text"},
		{"POST", "/env/episodes", ``, 422, "task_id", "", "a text"},
		{"POST", "/env/episodes", `{"task_id": 3}`, 422, "task_id", "3", "a text"},
		{"POST", "/env/episodes", `{"task_id":"99","split":"train"}`, 422, "task_id", "99", "one of the 4 tasks of split train"},
		{"POST", "/env/episodes", `{"task_id":"99"}`, 422, "task_id", "99", "one of the 6 tasks"},
		{"POST", "/env/episodes", `{"task_id":"0"}`, 422, "split", "", "eval, train"},
		{"POST", "/env/episodes", `{"task_id":"0","split":"dev"}`, 422, "split", "dev", "eval, train"},
		{"POST", "/env/episodes", `{"task_id":"0","split":"train","seed":-1}`, 422, "seed", "-1", "0 to 18446744073709551615"},
		{"POST", "/env/episodes", `{"task_id":"0","split":"train","rollout_index":-1}`, 422, "rollout_index", "-1", "0 or more"},
		{"POST", "/env/episodes", `{"task_id":"0","split":"train","form":"xml"}`, 422, "form", "xml", "native, react"},
		{"POST", "/env/episodes", `{"task_id":"0","rolout_index":1}`, 422, "rolout_index", "1", "rollout_index"},
		{"POST", "/env/episodes", `{"task_id":`, 400, "", "", ""},
		{"POST", "/env/episodes", `{"task_id":"0","split":"train"} {}`, 400, "", "", ""},
		{"POST", "/env/episodes", `{"task_id":"` + strings.Repeat("x", 3000) + `"}`, 413, "", "", ""},
		{"POST", at + "/call", `{"arguments":{}}`, 422, "name", "", "a text"},
		{"POST", at + "/call", `{"name":"SearchCity","index":"0"}`, 422, "index", `"0"`, "a whole number"},
		{"POST", at + "/call", `{"name":"SearchCity","tokens":-4}`, 422, "tokens", "-4", "0 or more"},
		{"POST", at + "/call", `{"name":"SearchCity","index":1}`, 409, "index", "1", "0, the first call"},
		{"POST", at + "/score", `{"end":"bored"}`, 422, "end", "bored", "answer, turns, context"},
		{"POST", at + "/score", `{"progress":2}`, 422, "progress", "2", "0 to 1"},
		{"POST", at + "/score", `{"messages":{}}`, 422, "messages", "", "a list of chat messages"},
		{"POST", "/env/episodes/none/call", `{"name":"SearchCity"}`, 404, "episode_id", "none", "a live one"},
		{"GET", "/env/episodes/none/trajectory", ``, 404, "episode_id", "none", "a live one"},
		{"GET", "/env/tasks?limit=0x", ``, 422, "limit", "0x", "a whole number"},
		{"GET", "/env/tasks?limit=5000", ``, 422, "limit", "5000", "1 to 1000"},
		{"GET", "/env/tasks?split=dev", ``, 422, "split", "dev", "eval, train"},
		{"GET", "/env/tasks?page=2", ``, 422, "page", "2", "split, offset, limit"},
		{"POST", "/env/batch", `{"operations":[{"op":"stats"},{"op":"stats"},{"op":"stats"}]}`, 413, "operations", "3", "at most 2"},
		{"PUT", "/env/episodes", `{}`, 405, "method", "PUT", "POST"},
		{"GET", "/env/episode", ``, 404, "", "", ""},
	} {
		status, body, _ := c.send(x.method, x.path, x.body)
		var e ErrorResult
		if err := json.Unmarshal(body, &e); err != nil {
			t.Errorf("%s %s: %v in %s", x.method, x.path, err, body)
			continue
		}
		if status != x.status || e.Error.Message == "" {
			t.Errorf("%s %s %.80s = %d %s, want %d", x.method, x.path, x.body, status, body, x.status)
		}
		if x.field == "" {
			continue
		}
		if len(e.Error.Fields) == 0 {
			t.Errorf("%s %s %.80s names no field: %s", x.method, x.path, x.body, body)
			continue
		}
		f := e.Error.Fields[0]
		if f.Field != x.field || x.value != "" && f.Value != x.value || !strings.Contains(f.Allowed, x.allowed) {
			t.Errorf("%s %s %.80s: field error %+v, want %s %s %s", x.method, x.path, x.body, f, x.field, x.value, x.allowed)
		}
	}
}

func TestToken(t *testing.T) {
	t.Parallel()
	c := start(t, nil)
	for _, x := range []struct {
		path, header string
		status       int
	}{
		{"/env/tasks", "", 401}, {"/env/tasks", "Bearer wrong", 401}, {"/env/tasks", testToken, 401},
		{"/env/ws", "", 401}, {"/env/openapi.json", "", 401},
		{"/env/tasks", "Bearer " + testToken, 200}, {"/healthz", "", 200},
	} {
		r, _ := http.NewRequest("GET", c.base+x.path, nil)
		if x.header != "" {
			r.Header.Set("Authorization", x.header)
		}
		res, err := c.http.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != x.status {
			t.Errorf("GET %s with %q = %d, want %d", x.path, x.header, res.StatusCode, x.status)
		}
	}
}

// Without a token only programs on this machine are served: no web page, and
// no name that leads here from elsewhere.
func TestNoAuthServesLoopbackOnly(t *testing.T) {
	t.Parallel()
	c := start(t, func(c *Config) { c.Token, c.NoAuth = "", true })
	c.want(200, "GET", "/env/stats", nil, nil)
	for _, change := range []func(*http.Request){
		func(r *http.Request) { r.Header.Set("Origin", "https://example.com") },
		func(r *http.Request) { r.Host = "example.com" },
	} {
		r, _ := http.NewRequest("GET", c.base+"/env/stats", nil)
		change(r)
		res, err := c.http.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusForbidden {
			t.Errorf("foreign request = %d, want 403", res.StatusCode)
		}
	}
}

func TestTasks(t *testing.T) {
	t.Parallel()
	c := start(t, nil)
	var r TasksResult
	c.want(200, "GET", "/env/tasks", nil, &r)
	if r.Total != 6 || len(r.Tasks) != 6 || r.Splits["train"] != 4 || r.Splits["eval"] != 2 || r.Tasks[0].Split != "eval" {
		t.Errorf("tasks = %+v", r)
	}
	c.want(200, "GET", "/env/tasks?offset=1&limit=2", nil, &r)
	if len(r.Tasks) != 2 || r.Tasks[0].TaskID != "1" || r.Tasks[0].Split != "eval" || r.Tasks[1].Split != "train" {
		t.Errorf("second page = %+v", r.Tasks)
	}
	c.want(200, "GET", "/env/tasks?split=train&offset=3", nil, &r)
	if r.Total != 4 || len(r.Tasks) != 1 || r.Tasks[0].Hash != theFixture(t).queries[3].Hash() {
		t.Errorf("last of train = %+v", r)
	}
	c.want(200, "GET", "/env/tasks?offset=99", nil, &r)
	if r.Total != 6 || len(r.Tasks) != 0 {
		t.Errorf("behind the end = %+v", r)
	}
	var tools ToolsResult
	c.want(200, "GET", "/env/tools", nil, &tools)
	if len(tools.Tools) != 6 {
		t.Errorf("%d tools, want 6", len(tools.Tools))
	}
}

func TestEvaluationSplitsAreClean(t *testing.T) {
	t.Parallel()
	c := start(t, func(c *Config) { c.Failures = travel.Failures{Rate: 1} })
	for _, x := range []struct {
		q    CreateRequest
		want bool
	}{
		{CreateRequest{TaskID: "0", Split: "train"}, true},
		{CreateRequest{TaskID: "0", Split: "train", Clean: true}, false},
		{CreateRequest{TaskID: "0", Split: "eval"}, false},
	} {
		if r := c.call(c.create(x.q).EpisodeID, 0, travel.ToolCity, `{"state":"X"}`); r.Injected != x.want {
			t.Errorf("call in %+v: injected %v, want %v", x.q, r.Injected, x.want)
		}
	}
}

func TestIdleEpisodesAreReaped(t *testing.T) {
	t.Parallel()
	c := start(t, func(c *Config) { c.Idle = 5 * time.Second }) // longer than a busy machine holds up one call
	ctx := t.Context()
	go c.s.Run(ctx)
	idle := c.create(CreateRequest{TaskID: "0"}).EpisodeID
	kept := c.create(CreateRequest{TaskID: "0"}).EpisodeID
	deadline := time.Now().Add(20 * time.Second)
	var st Stats
	for i := 0; st.Reaped == 0; i++ {
		if time.Now().After(deadline) {
			t.Fatalf("nothing reaped: %+v", st)
		}
		c.call(kept, i, travel.ToolCity, `{"state":"X"}`)
		c.want(200, "GET", "/env/stats", nil, &st)
		time.Sleep(20 * time.Millisecond)
	}
	if st.Live != 1 || st.Abandoned != 1 {
		t.Errorf("stats = %+v, want one live, one abandoned", st)
	}
	c.want(404, "POST", "/env/episodes/"+idle+"/call", callBody(0, travel.ToolCity, `{}`), nil)
	c.want(200, "GET", "/env/episodes/"+kept+"/trajectory", nil, nil)
}

func TestBackPressure(t *testing.T) {
	t.Parallel()
	c := start(t, func(c *Config) { c.MaxEpisodes = 3; c.Idle = time.Hour })
	var ids []string
	for range 3 {
		ids = append(ids, c.create(CreateRequest{TaskID: "0"}).EpisodeID)
	}
	body := `{"task_id":"0","split":"train"}`
	status, answer, header := c.send("POST", "/env/episodes", body)
	if status != 429 || header.Get("Retry-After") != "1" || !strings.Contains(string(answer), `"retry_after_s":1`) {
		t.Errorf("fourth of three = %d %s, Retry-After %q", status, answer, header.Get("Retry-After"))
	}
	c.want(200, "DELETE", "/env/episodes/"+ids[0], nil, nil)
	c.want(201, "POST", "/env/episodes", body, nil)

	small := start(t, func(c *Config) { c.MaxBytes = 64 << 10 })
	id := small.create(CreateRequest{TaskID: "0"}).EpisodeID
	long := `"` + strings.Repeat("x", 4000) + `"`
	refused := 0
	for i := 0; i < 40 && refused == 0; i++ {
		status, answer, _ = small.send("POST", "/env/episodes/"+id+"/call", callBody(i, travel.ToolCity, `{"state":`+long+`}`))
		switch status {
		case 429:
			refused++
		case 200:
		default:
			t.Fatalf("call = %d %s", status, answer)
		}
	}
	if refused == 0 {
		t.Error("an episode may hold any amount of memory")
	}
	small.want(429, "POST", "/env/episodes", body, nil)
	small.want(200, "POST", "/env/episodes/"+id+"/score", ScoreRequest{FinalText: "[]"}, nil)
	small.want(200, "DELETE", "/env/episodes/"+id, nil, nil)
	small.want(201, "POST", "/env/episodes", body, nil)
	if got := small.s.bytes.Load(); got != 2048 {
		t.Errorf("%d bytes held by one fresh episode, want 2048", got)
	}
}

func TestRequestsAtWorkAreBounded(t *testing.T) {
	t.Parallel()
	c := start(t, func(c *Config) {
		c.MaxInFlight, c.Wait = 2, true
		c.Failures = travel.Failures{Rate: 1, Kind: "latency", LatencyMS: 60_000}
	})
	ctx := t.Context()
	for i := range 2 {
		id := c.create(CreateRequest{TaskID: "0", RolloutIndex: i}).EpisodeID
		go func() {
			r, _ := http.NewRequestWithContext(ctx, "POST", c.base+"/env/episodes/"+id+"/call", strings.NewReader(callBody(0, travel.ToolCity, `{"state":"X"}`)))
			r.Header.Set("Authorization", "Bearer "+testToken)
			if res, err := c.http.Do(r); err == nil {
				res.Body.Close()
			}
		}()
	}
	deadline := time.Now().Add(20 * time.Second)
	for c.s.inFlight.Load() < 2 {
		if time.Now().After(deadline) {
			t.Fatal("the calls never came")
		}
		time.Sleep(time.Millisecond)
	}
	c.want(429, "GET", "/env/stats", nil, nil)
	c.want(200, "GET", "/healthz", nil, nil)
}

// A thousand episodes at once, each with its calls repeated now and then, all
// come to the same score as one alone.
func TestThousandParallelEpisodes(t *testing.T) {
	t.Parallel()
	c := start(t, func(c *Config) { c.Failures = travel.Failures{Rate: 0.1, Seed: 3} })
	f := theFixture(t)
	n := 1000
	if testing.Short() {
		n = 100
	}
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			q := i % 4
			id := c.create(CreateRequest{TaskID: fmt.Sprint(q), Seed: uint64(i / 8), GroupID: fmt.Sprint(i / 8), RolloutIndex: i % 8}).EpisodeID
			city := f.queries[q].Dest
			for k := range 3 {
				r := c.call(id, k, travel.ToolRestaurant, cityArgs(city))
				if (i+k)%5 == 0 {
					if again := c.call(id, k, travel.ToolRestaurant, cityArgs(city)); again != r {
						t.Errorf("call %d of episode %d = %+v, then %+v", k, i, r, again)
					}
				}
			}
			if r := c.score(id, ScoreRequest{FinalText: f.plans[q]}); r.Score != 5 {
				t.Errorf("episode %d scores %v, want 5", i, r.Score)
			}
			c.want(200, "DELETE", "/env/episodes/"+id, nil, nil)
		})
	}
	wg.Wait()
	var st Stats
	c.want(200, "GET", "/env/stats", nil, &st)
	if st.Live != 0 || st.Bytes != 0 || st.Calls != int64(3*n) || st.Scored != int64(n) || st.Failed != 0 || st.Malformed != 0 {
		t.Errorf("stats = %+v", st)
	}
}

// Many clients on one episode: each index is played once.
func TestOneEpisodeFromManySides(t *testing.T) {
	t.Parallel()
	c := start(t, nil)
	id := c.create(CreateRequest{TaskID: "0"}).EpisodeID
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for k := range 10 {
				c.call(id, k, travel.ToolCity, `{"state":"X"}`)
			}
		})
	}
	wg.Wait()
	var st Stats
	c.want(200, "GET", "/env/stats", nil, &st)
	if st.Calls != 10 || st.Repeated != 70 {
		t.Errorf("%d calls played and %d repeated, want 10 and 70", st.Calls, st.Repeated)
	}
}
