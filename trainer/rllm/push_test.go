package rllm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"alidade/trainer"
	"alidade/trainer/native"
)

const secret = "run-secret-0123456789"

// client makes the calls of rLLM's logger.
type client struct {
	t   *testing.T
	url string
	key string
}

// post returns the status and the answer.
func (c *client) post(path, body string) (int, map[string]any) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.url+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if c.key != "" {
		req.Header.Set("X-API-Key", c.key)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	src, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(src, &out); err != nil {
		c.t.Fatalf("%s answered %d: %s", path, res.StatusCode, src)
	}
	return res.StatusCode, out
}

func (c *client) ok(path, body string) map[string]any {
	c.t.Helper()
	code, out := c.post(path, body)
	if code != http.StatusOK {
		c.t.Fatalf("%s answered %d: %v", path, code, out)
	}
	return out
}

func newClient(t *testing.T, cfg Config) (*Server, *client) {
	t.Helper()
	cfg.Key = secret
	s := New(cfg)
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	return s, &client{t, srv.URL, secret}
}

// readings polls once.
func readings(t *testing.T, s *Server, last bool) []native.Reading {
	t.Helper()
	var list []native.Reading
	if err := s.Poll(last, func(r native.Reading) { list = append(list, r) }); err != nil {
		t.Fatal(err)
	}
	return list
}

func openSession(c *client) string {
	c.t.Helper()
	out := c.ok("/api/sessions", `{"project":"p","experiment":"e","config":{"a":1},"source_metadata":{},"session_type":"training"}`)
	return out["id"].(string)
}

// episode is an episode as the logger writes it: steps in the base schema,
// what training adds to them under metadata.
func episode(session string, step int, id string, reward float64, task string) string {
	return fmt.Sprintf(`{"session_id":%q,"session_type":"training","step":%d,"episode_id":%q,"task":{"task_id":%q,"split":"train","query_hash":"h%s","level":"easy"},
"termination_reason":"env_done","is_correct":%v,"metrics":{"success":%g},"metadata":{},"artifacts":{},
"trajectories":[{"uid":"u-%s","name":"travel","task":null,"input":null,"output":null,"signals":{},"reward":%g,"steps":[
 {"id":"1","input":null,"output":null,"action":null,"reward":0.0,"done":false,"metadata":{"observation":"Plan a trip","thought":"look","model_response":"<think>look</think><tool_call>{\"name\": \"SearchCity\", \"arguments\": {\"state\": \"Ohio\"}}</tool_call>"}},
 {"id":"2","input":null,"output":null,"action":null,"reward":%g,"done":true,"metadata":{"observation":"Cleveland","model_response":"[{\"days\": 1}]"}}]}]}`,
		session, step, id, task, task, reward > 0, reward, id, reward, reward)
}

// TestClientCalls replays the calls of a training run in the logger's order,
// with repeats, and reads what comes out.
func TestClientCalls(t *testing.T) {
	s, c := newClient(t, Config{Estimator: "grpo", ByStd: true})
	id := openSession(c)
	if again := openSession(c); again != id {
		t.Errorf("the same opening gave sessions %s and %s", id, again)
	}
	c.ok("/api/sessions/"+id+"/heartbeat", "")
	c.ok("/api/logs/batch", fmt.Sprintf(`{"session_id":%q,"logs":[{"session_id":%q,"timestamp":"2026-11-29T10:00:00+00:00","stream":"stdout","message":"\u001b[1mhello\u001b[0m"}]}`, id, id))
	metrics := fmt.Sprintf(`{"session_id":%q,"step":1,"data":{"reward/travel/mean":0.5,"actor/entropy":NaN,"actor/grad_norm":-Infinity,"x":"not a number","training/global_step":1}}`, id)
	if out := c.ok("/api/metrics", metrics); len(out["ignored"].([]any)) != 1 {
		t.Errorf("ignored %v, want x", out["ignored"])
	}
	c.ok("/api/metrics", metrics)
	var list []string
	for i, reward := range []float64{1, 0, 0, 1} {
		list = append(list, episode(id, 1, fmt.Sprintf("g%d:%d", i/2, i%2), reward, "7"))
	}
	episodes := fmt.Sprintf(`{"session_id":%q,"episodes":[%s]}`, id, strings.Join(list, ","))
	c.ok("/api/episodes/batch", episodes)
	// The client's time-out passed: it posts them one by one.
	for _, one := range list {
		if out := c.ok("/api/episodes", one); out["repeated"] != 1.0 {
			t.Errorf("an episode posted again: %v", out)
		}
	}
	groups := fmt.Sprintf(`{"session_id":%q,"groups":[{"session_id":%q,"step":1,"group_id":"g0:travel","num_trajectories":2,"avg_reward":0.5,"metadata":[{"episode_id":"g0:0"},{"episode_id":"g0:1"}]}]}`, id, id)
	c.ok("/api/trajectory-groups/batch", groups)
	c.ok("/api/trajectory-groups/batch", groups)
	c.ok("/api/episodes/batch", episodes) // after they were told
	c.ok("/api/metrics", fmt.Sprintf(`{"session_id":%q,"step":1,"data":{"val/travel/pass@1":0.25}}`, id))
	c.ok("/api/eval-results", fmt.Sprintf(`{"session_id":%q,"dataset_name":"travel","model":"m","agent":"a","score":0.25,"total":4,"correct":1,"errors":0,"signal_averages":{"success":0.25},"items":[]}`, id))
	c.ok("/api/sessions/"+id+"/complete", `{"status":"completed","exit_code":0}`)

	values, paths := map[string]float64{}, map[string]*trainer.Trajectory{}
	var bad int
	for _, r := range readings(t, s, true) {
		for name, v := range r.Values {
			if _, twice := values[name]; twice {
				t.Errorf("%s told twice", name)
			}
			values[name] = v
		}
		if r.Trajectory != nil {
			if paths[r.Trajectory.ID] != nil {
				t.Errorf("episode %s told twice", r.Trajectory.ID)
			}
			paths[r.Trajectory.ID] = r.Trajectory
		}
		bad += r.Bad
	}
	if values["reward/travel/mean"] != 0.5 || !math.IsNaN(values["actor/entropy"]) || !math.IsInf(values["actor/grad_norm"], -1) || values["val/travel/score"] != 0.25 || values["val/travel/pass@1"] != 0.25 || bad == 0 {
		t.Errorf("values %v, %d not understood", values, bad)
	}
	if len(paths) != 4 {
		t.Fatalf("%d trajectories, want 4: %v", len(paths), names(paths))
	}
	a, b := paths["rl-1-g0:0"], paths["rl-1-g1:0"]
	if a.Group != "rl-1-g0:travel" || a.Advantage == nil || math.Abs(a.Advantage.Value-1) > 1e-5 || a.Advantage.Norm != "group-std" || a.Rollout != 0 || !a.Success {
		t.Errorf("g0:0 came out as group %q rollout %d advantage %+v", a.Group, a.Rollout, a.Advantage)
	}
	if b.Advantage != nil {
		t.Errorf("g1:0 was in no group of the trainer and has the advantage %+v", b.Advantage)
	}
	if len(a.Turns) != 2 || a.Turns[0].Call == nil || a.Turns[0].Call.Tool != "SearchCity" || a.Turns[0].Observe.Text != "Cleveland" || a.Turns[0].Think != "look" || a.Query.Hash != "h7" || a.Query.Text != "Plan a trip" {
		t.Errorf("turns %+v of query %+v", a.Turns, a.Query)
	}
	for _, p := range paths {
		if _, err := trainer.Encode(trainer.Event{Kind: trainer.KindTrajectory, T: 1, Trajectory: p}); err != nil {
			t.Error(err)
		}
	}
	if s.Failed() {
		t.Error("the run is said to have failed")
	}
}

// TestRefused posts what no client should: each answer names field, value and
// what is allowed, and the next good call works.
func TestRefused(t *testing.T) {
	s, c := newClient(t, Config{})
	id := openSession(c)
	whole := fmt.Sprintf(`{"session_id":%q,"step":3,"data":{"a":1}}`, id)
	tests := []struct {
		name, path, body string
		status           int
		says             string
	}{
		{"cut body", "/api/metrics", whole[:len(whole)-9], 422, "body"},
		{"empty body", "/api/metrics", "", 422, "empty"},
		{"no object", "/api/metrics", "[1]", 422, "an object"},
		{"no step", "/api/metrics", fmt.Sprintf(`{"session_id":%q,"data":{}}`, id), 422, "step"},
		{"negative step", "/api/metrics", fmt.Sprintf(`{"session_id":%q,"step":-1,"data":{}}`, id), 422, "0 or more"},
		{"half a step", "/api/metrics", fmt.Sprintf(`{"session_id":%q,"step":1.5,"data":{}}`, id), 422, "1.5"},
		{"text for a step", "/api/metrics", fmt.Sprintf(`{"session_id":%q,"step":"x","data":{}}`, id), 422, "step"},
		{"no data", "/api/metrics", fmt.Sprintf(`{"session_id":%q,"step":1}`, id), 422, "data"},
		{"no session", "/api/metrics", `{"step":1,"data":{}}`, 422, "session_id"},
		{"other session", "/api/metrics", `{"session_id":"s-none","step":1,"data":{}}`, 404, "s-none"},
		{"heartbeat of nobody", "/api/sessions/none/heartbeat", "", 404, "none"},
		{"bad end", "/api/sessions/" + id + "/complete", `{"status":"great"}`, 422, "completed, failed"},
		{"bad kind", "/api/sessions", `{"session_type":"party"}`, 422, "training, eval"},
		{"episode without id", "/api/episodes/batch", fmt.Sprintf(`{"session_id":%q,"episodes":[{"step":1}]}`, id), 422, "episodes[0].episode_id"},
		{"episodes no list", "/api/episodes/batch", fmt.Sprintf(`{"session_id":%q,"episodes":{"a":1}}`, id), 422, "a list"},
		{"group without id", "/api/trajectory-groups/batch", fmt.Sprintf(`{"session_id":%q,"groups":[{"step":1}]}`, id), 422, "groups[0].group_id"},
		{"odd stream", "/api/logs/batch", fmt.Sprintf(`{"session_id":%q,"logs":[{"stream":"both","message":"m"}]}`, id), 422, "stdout, stderr"},
		{"more right than asked", "/api/eval-results", fmt.Sprintf(`{"session_id":%q,"dataset_name":"d","score":1,"total":1,"correct":2}`, id), 422, "0 to total"},
		{"unknown call", "/api/other", "{}", 404, "/api/metrics"},
		{"deep", "/api/metrics", strings.Repeat(`{"data":`, 20000), 422, "body"},
		{"no address", PlayPath, `{"task":{"task_id":"1"},"base_url":"ftp://x","session_uid":"a:0"}`, 422, "base_url"},
		{"no task", PlayPath, `{"task":{},"base_url":"http://127.0.0.1:1/v1","session_uid":"a:0"}`, 422, "task.task_id"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := &client{t, c.url, secret}
			code, out := c.post(tt.path, tt.body)
			said, _ := json.Marshal(out)
			if code != tt.status || !strings.Contains(string(said), tt.says) {
				t.Errorf("answered %d %s, want %d with %q", code, said, tt.status, tt.says)
			}
		})
	}
	c.ok("/api/metrics", whole)
	if got := readings(t, s, false); len(got) == 0 || got[0].Values["a"] != 1 {
		t.Errorf("after all that: %+v", got)
	}
}

// TestWrongKey lets nobody in without the run's secret, and tells nobody what it is.
func TestWrongKey(t *testing.T) {
	_, c := newClient(t, Config{})
	for _, key := range []string{"", "wrong", secret + "x", secret[:5]} {
		code, out := (&client{t, c.url, key}).post("/api/sessions", `{}`)
		said, _ := json.Marshal(out)
		if code != http.StatusUnauthorized || bytes.Contains(said, []byte(secret)) {
			t.Errorf("key %q: %d %s", key, code, said)
		}
	}
	s := New(Config{})
	rec := httptest.NewRecorder()
	s.ServeHTTP(rec, httptest.NewRequest(http.MethodPost, "/api/sessions", strings.NewReader("{}")))
	if rec.Code != http.StatusUnauthorized {
		t.Errorf("a server without a secret answered %d", rec.Code)
	}
}

// TestTooLarge refuses a body over the limit, so that the client posts the
// episodes one by one.
func TestTooLarge(t *testing.T) {
	_, c := newClient(t, Config{})
	code, _ := c.post("/api/metrics", `{"session_id":"`+strings.Repeat("x", maxSmall)+`"}`)
	if code != http.StatusRequestEntityTooLarge {
		t.Errorf("answered %d", code)
	}
}

// TestHeartbeat tells when the trainer falls silent and when it is back.
func TestHeartbeat(t *testing.T) {
	now := time.Now()
	s, c := newClient(t, Config{Now: func() time.Time { return now }})
	id := openSession(c)
	codes := func() (list []string) {
		for _, r := range readings(t, s, false) {
			if r.Alert != nil {
				list = append(list, r.Alert.Code)
			}
		}
		return list
	}
	if got := codes(); len(got) != 0 {
		t.Errorf("at once: %v", got)
	}
	now = now.Add(4 * time.Minute)
	if got := codes(); len(got) != 1 || got[0] != "rllm-silent" {
		t.Errorf("after 4 min: %v", got)
	}
	if got := codes(); len(got) != 0 {
		t.Errorf("told again: %v", got)
	}
	c.ok("/api/sessions/"+id+"/heartbeat", "")
	if got := codes(); len(got) != 1 || got[0] != "rllm-heard" {
		t.Errorf("after a heartbeat: %v", got)
	}
	c.ok("/api/sessions/"+id+"/complete", `{"status":"failed","exit_code":1}`)
	now = now.Add(time.Hour)
	if got := codes(); len(got) != 1 || got[0] != "rllm-failed" || !s.Failed() {
		t.Errorf("after a failure: %v", got)
	}
}

// TestEvalItems makes an evaluation query by query of the summary's items.
func TestEvalItems(t *testing.T) {
	rows := []Row{{"0", "eval", "aa", "easy"}, {"1", "eval", "bb", "hard"}}
	s, c := newClient(t, Config{Eval: rows})
	id := openSession(c)
	c.ok("/api/metrics", fmt.Sprintf(`{"session_id":%q,"step":5,"data":{"a":1}}`, id))
	body := fmt.Sprintf(`{"session_id":%q,"dataset_name":"d","score":0.5,"total":2,"correct":1,"errors":0,"items":[{"idx":0,"reward":1.0,"is_correct":true,"error":null,"signals":{}},{"idx":1,"reward":0,"is_correct":false,"error":null}]}`, id)
	c.ok("/api/eval-results", body)
	c.ok("/api/eval-results", body)
	var got []native.Reading
	for _, r := range readings(t, s, true) {
		if r.Evaluation != nil {
			got = append(got, r)
		}
	}
	if len(got) != 1 || got[0].Evaluation.Step != 5 || len(got[0].Evaluation.Queries) != 2 || got[0].Evaluation.Queries[0].Passed != 1 || got[0].Evaluation.Queries[1].Passed != 0 || got[0].Evaluation.Hash != panelHash(rows) {
		t.Errorf("evaluations: %+v", got)
	}
}

// FuzzBodies: no body may crash a call or be answered with 500.
func FuzzBodies(f *testing.F) {
	paths := []string{"/api/sessions", "/api/metrics", "/api/episodes", "/api/episodes/batch", "/api/trajectory-groups/batch", "/api/logs/batch", "/api/eval-results", PlayPath}
	s := New(Config{Key: secret})
	rec := httptest.NewRecorder()
	ask := func(path, body string) *httptest.ResponseRecorder {
		rec = httptest.NewRecorder()
		req := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
		req.Header.Set("X-API-Key", secret)
		s.ServeHTTP(rec, req)
		return rec
	}
	ask("/api/sessions", `{"project":"p"}`)
	var open SessionResult
	if err := json.Unmarshal(rec.Body.Bytes(), &open); err != nil {
		f.Fatal(err)
	}
	f.Add(1, fmt.Sprintf(`{"session_id":%q,"step":1,"data":{"a":NaN,"b":"\"NaN"}}`, open.ID))
	f.Add(2, episode(open.ID, 1, "a:0", 1, "1"))
	f.Add(4, fmt.Sprintf(`{"session_id":%q,"groups":[{"step":1,"group_id":"g","metadata":[{"episode_id":"a:0"}]}]}`, open.ID))
	f.Add(6, fmt.Sprintf(`{"session_id":%q,"dataset_name":"d","score":1,"items":[{"idx":-1}]}`, open.ID))
	f.Fuzz(func(t *testing.T, i int, body string) {
		if i < 0 || i >= len(paths) {
			return
		}
		if got := ask(paths[i], body); got.Code >= 500 && got.Code != http.StatusNotImplemented {
			t.Errorf("%s answered %d: %s", paths[i], got.Code, got.Body)
		}
		_ = s.Poll(true, func(r native.Reading) {
			if r.Trajectory == nil || r.Trajectory.Components == nil {
				return
			}
			if _, err := trainer.Encode(trainer.Event{Kind: trainer.KindTrajectory, T: 1, Trajectory: r.Trajectory}); err != nil {
				t.Error(err)
			}
		})
	})
}
