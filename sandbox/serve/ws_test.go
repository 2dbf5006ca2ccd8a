package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"alidade/sandbox/travel"
)

// line is a WebSocket client: many requests over one connection, matched by id.
type line struct {
	t    testing.TB
	conn *websocket.Conn

	write sync.Mutex
	mu    sync.Mutex
	next  int
	wait  map[string]chan rawReply
}

func (c *client) dial() *line {
	c.t.Helper()
	conn, res, err := websocket.DefaultDialer.Dial(strings.Replace(c.base, "http", "ws", 1)+"/env/ws", http.Header{"Authorization": {"Bearer " + testToken}})
	if err != nil {
		c.t.Fatalf("dial: %v (%v)", err, res)
	}
	l := &line{t: c.t, conn: conn, wait: map[string]chan rawReply{}}
	c.t.Cleanup(func() { conn.Close() })
	go l.read()
	return l
}

func (l *line) read() {
	for {
		var r rawReply
		if err := l.conn.ReadJSON(&r); err != nil {
			l.mu.Lock()
			for _, ch := range l.wait {
				close(ch)
			}
			l.wait = nil
			l.mu.Unlock()
			return
		}
		l.mu.Lock()
		ch := l.wait[string(r.ID)]
		delete(l.wait, string(r.ID))
		l.mu.Unlock()
		if ch != nil {
			ch <- r
		}
	}
}

// ask sends an operation and waits for its reply.
func (l *line) ask(op, episode, body string) (rawReply, error) {
	ch := make(chan rawReply, 1)
	l.mu.Lock()
	l.next++
	id := fmt.Sprint(l.next)
	if l.wait == nil {
		l.mu.Unlock()
		return rawReply{}, fmt.Errorf("the connection is closed")
	}
	l.wait[id] = ch
	l.mu.Unlock()
	message := fmt.Sprintf(`{"id":%s,"op":%q,"episode_id":%q,"body":%s}`, id, op, episode, firstOf(body, "{}"))
	l.write.Lock()
	err := l.conn.WriteMessage(websocket.TextMessage, []byte(message))
	l.write.Unlock()
	if err != nil {
		return rawReply{}, err
	}
	r, ok := <-ch
	if !ok {
		return r, fmt.Errorf("the connection closed before the reply")
	}
	return r, nil
}

func (l *line) want(status int, op, episode, body string, to any) {
	l.t.Helper()
	r, err := l.ask(op, episode, body)
	if err != nil {
		l.t.Errorf("%s: %v", op, err)
		return
	}
	if r.Status != status {
		l.t.Errorf("%s %s = %d %+v, want %d", op, body, r.Status, r.Error, status)
		return
	}
	if to != nil {
		if err := json.Unmarshal(r.Result, to); err != nil {
			l.t.Errorf("%s: %v in %s", op, err, r.Result)
		}
	}
}

func TestManyEpisodesOverOneWebSocket(t *testing.T) {
	t.Parallel()
	c := start(t, nil)
	f := theFixture(t)
	l := c.dial()
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			var e CreateResult
			l.want(201, "create", "", fmt.Sprintf(`{"task_id":"1","split":"train","rollout_index":%d}`, i), &e)
			for k := range 3 {
				var r CallResult
				l.want(200, "call", e.EpisodeID, callBody(k, travel.ToolRestaurant, cityArgs(f.queries[1].Dest)), &r)
				if r.Index != k || r.ErrorKind != "" {
					t.Errorf("call %d = %+v", k, r)
				}
			}
			body, _ := json.Marshal(ScoreRequest{FinalText: f.plans[1]})
			var s ScoreResult
			l.want(200, "score", e.EpisodeID, string(body), &s)
			if s.Score != 5 {
				t.Errorf("score = %v, want 5", s.Score)
			}
			l.want(200, "delete", e.EpisodeID, "", nil)
		})
	}
	wg.Wait()
	l.want(404, "call", "none", `{"name":"x"}`, nil)
	l.want(422, "dance", "", "", nil)
	var b BatchResult
	l.want(200, "batch", "", `{"operations":[{"op":"stats"},{"op":"tasks","body":{"limit":1}}]}`, &b)
	if len(b.Results) != 2 || b.Results[1].Status != 200 {
		t.Errorf("batch = %+v", b)
	}
}

// What is no operation gets a reply too, and the connection goes on.
func TestWebSocketSurvivesNonsense(t *testing.T) {
	t.Parallel()
	c := start(t, func(c *Config) { c.MaxBody = 4096 })
	conn, _, err := websocket.DefaultDialer.Dial(strings.Replace(c.base, "http", "ws", 1)+"/env/ws", http.Header{"Authorization": {"Bearer " + testToken}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for message, status := range map[string]int{`{`: 400, `[]`: 422, `{"id":1}`: 422, `{"op":"stats","extra":1}`: 422, `{"id":7,"op":"stats"}`: 200} {
		if err := conn.WriteMessage(websocket.TextMessage, []byte(message)); err != nil {
			t.Fatal(err)
		}
		var r rawReply
		if err := conn.ReadJSON(&r); err != nil || r.Status != status {
			t.Errorf("%s = %+v %v, want %d", message, r, err, status)
		}
	}
	_ = conn.WriteMessage(websocket.TextMessage, []byte(strings.Repeat("x", 5000)))
	if _, _, err := conn.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseMessageTooBig) {
		t.Errorf("a message over the limit: %v, want close 1009", err)
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	c := start(t, func(c *Config) { c.MaxSockets = 1 })
	c.dial().want(200, "stats", "", "", nil)
	_, res, err := websocket.DefaultDialer.Dial(strings.Replace(c.base, "http", "ws", 1)+"/env/ws", http.Header{"Authorization": {"Bearer " + testToken}})
	if err == nil || res == nil || res.StatusCode != http.StatusTooManyRequests || res.Header.Get("Retry-After") == "" {
		t.Errorf("second connection of one: %v %v, want 429", err, res)
	}
}

// Close answers what is at work, then says goodbye.
func TestCloseEndsConnections(t *testing.T) {
	t.Parallel()
	c := start(t, nil)
	l := c.dial()
	l.want(200, "stats", "", "", nil)
	done := make(chan struct{})
	go func() { c.s.Close(); close(done) }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("Close does not return")
	}
	if _, err := l.ask("stats", "", ""); err == nil {
		t.Error("the connection lives on after Close")
	}
	c.want(503, "POST", "/env/episodes", `{"task_id":"0","split":"train"}`, nil)
	c.want(503, "GET", "/healthz", nil, nil)
}
