package web

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"alidade/ablation"
	"alidade/store"
	"alidade/trainer"
)

// livePoint is a point as a browser reads it from a frame.
type livePoint struct {
	run, step uint32
	metric    string
	attempt   uint16
	wall      float64
	value     float64
}

// decodeFrame reads what encodeFrame wrote.
func decodeFrame(b []byte) (frameHeader, []livePoint, error) {
	le := binary.LittleEndian
	if len(b) < 8 || le.Uint32(b) != frameVersion {
		return frameHeader{}, nil, fmt.Errorf("not a frame: % x", b[:min(8, len(b))])
	}
	base := 8 + int(le.Uint32(b[4:]))
	var h frameHeader
	if err := json.Unmarshal(b[8:base], &h); err != nil {
		return h, nil, err
	}
	if base%8 != 0 || len(b) != base+28*h.N {
		return h, nil, fmt.Errorf("frame of %d bytes with header %d and %d points", len(b), base, h.N)
	}
	points := make([]livePoint, h.N)
	for i := range points {
		points[i] = livePoint{
			value: math.Float64frombits(le.Uint64(b[base+8*i:])), wall: math.Float64frombits(le.Uint64(b[base+8*h.N+8*i:])),
			step: le.Uint32(b[base+16*h.N+4*i:]), run: le.Uint32(b[base+20*h.N+4*i:]),
			metric: h.Metrics[le.Uint16(b[base+24*h.N+2*i:])], attempt: le.Uint16(b[base+26*h.N+2*i:]),
		}
	}
	return h, points, nil
}

// watcher is a browser of the tests.
type watcher struct {
	t    testing.TB
	conn *websocket.Conn
}

func startHub(t testing.TB, c HubConfig) (*Hub, *httptest.Server) {
	t.Helper()
	h := NewHub(c)
	srv, _ := newTestSite(t, openStore(t), func(c *Config) { c.Hub = h })
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = h.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return h, srv
}

func watch(t testing.TB, srv *httptest.Server) *watcher {
	t.Helper()
	conn, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(srv.URL, "http")+"/ws", nil)
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	t.Cleanup(func() { conn.Close() })
	return &watcher{t, conn}
}

func (w *watcher) subscribe(r request) controlMessage {
	w.t.Helper()
	r.Type = "subscribe"
	if err := w.conn.WriteJSON(r); err != nil {
		w.t.Fatalf("subscribe: %v", err)
	}
	for {
		kind, body := w.read()
		if kind != websocket.TextMessage {
			continue
		}
		var m controlMessage
		if err := json.Unmarshal(body, &m); err != nil {
			w.t.Fatalf("%s: %v", body, err)
		}
		if m.Type != "tick" {
			return m
		}
	}
}

func (w *watcher) read() (int, []byte) {
	w.t.Helper()
	_ = w.conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	kind, body, err := w.conn.ReadMessage()
	if err != nil {
		w.t.Fatalf("read: %v", err)
	}
	return kind, body
}

// frames reads points until n have come.
func (w *watcher) points(n int) (got []livePoint, last frameHeader) {
	w.t.Helper()
	for len(got) < n {
		kind, body := w.read()
		if kind != websocket.BinaryMessage {
			continue
		}
		h, points, err := decodeFrame(body)
		if err != nil {
			w.t.Fatal(err)
		}
		got, last = append(got, points...), h
	}
	return got, last
}

func commitOf(run ablation.RunID, study ablation.StudyID, step int64, metrics ...string) store.Commit {
	c := store.Commit{Run: ablation.Run{ID: run, Study: study, State: ablation.Running, Attempt: 1, Step: step, TotalSteps: 100}}
	for i, m := range metrics {
		c.Points = append(c.Points, store.MetricPoint{Metric: m, Point: ablation.Point{Step: step, Wall: time.UnixMilli(1000 * step), Value: float64(step) + float64(i)/10}})
	}
	return c
}

func TestHubSendsWhatIsAskedFor(t *testing.T) {
	h, srv := startHub(t, HubConfig{Every: time.Millisecond})
	w := watch(t, srv)
	if m := w.subscribe(request{Study: 7, Metrics: []string{"a", "b"}}); m.Type != "subscribed" || m.Resumed {
		t.Fatalf("answer %+v, want subscribed, not resumed", m)
	}
	h.Publish(commitOf(1, 7, 3, "a", "b", "c"))
	h.Publish(commitOf(9, 8, 3, "a")) // another study
	nan := commitOf(2, 7, 4)
	nan.Run.Attempt = 2
	nan.Points = []store.MetricPoint{{Metric: "a", Point: ablation.Point{Step: 4, Value: math.NaN()}}, {Metric: "b", Point: ablation.Point{Step: 4, Value: math.Inf(-1)}}}
	nan.Trajectories = make([]store.TrajectoryHead, 3)
	h.Publish(nan)

	got, last := w.points(4)
	if len(got) != 4 || got[0] != (livePoint{run: 1, step: 3, metric: "a", attempt: 1, wall: 3000, value: 3}) || got[1].metric != "b" {
		t.Errorf("points %+v", got)
	}
	if !math.IsNaN(got[2].value) || !math.IsInf(got[3].value, -1) || got[2].attempt != 2 {
		t.Errorf("points %+v, want NaN and −Inf of attempt 2", got[2:])
	}
	if last.Seq != 3 || last.Trajectories[2] != 3 || last.Runs[len(last.Runs)-1].State != ablation.Running {
		t.Errorf("header %+v", last)
	}
}

func TestHubResumes(t *testing.T) {
	h, srv := startHub(t, HubConfig{Every: time.Millisecond})
	w := watch(t, srv)
	first := w.subscribe(request{Study: 1, Metrics: []string{"a"}})
	h.Publish(commitOf(1, 1, 1, "a"))
	_, head := w.points(1)
	w.conn.Close()
	for step := int64(2); step <= 5; step++ {
		h.Publish(commitOf(1, 1, step, "a"))
	}
	w = watch(t, srv)
	if m := w.subscribe(request{Study: 1, Metrics: []string{"a"}, Epoch: first.Epoch, Since: head.Seq}); !m.Resumed {
		t.Fatalf("answer %+v, want resumed", m)
	}
	got, _ := w.points(4)
	for i, p := range got {
		if p.step != uint32(i+2) {
			t.Errorf("point %d is of step %d, want %d: %+v", i, p.step, i+2, got)
		}
	}
}

func TestHubAsksForASnapshotWhenItForgot(t *testing.T) {
	h, srv := startHub(t, HubConfig{Every: time.Millisecond, Points: 10})
	for step := int64(1); step <= 50; step++ {
		h.Publish(commitOf(1, 1, step, "a"))
	}
	w := watch(t, srv)
	for _, r := range []request{
		{Study: 1, Metrics: []string{"a"}, Epoch: h.epoch, Since: 3},         // forgotten
		{Study: 1, Metrics: []string{"a"}, Epoch: "another", Since: 50},      // of another server
		{Study: 1, Metrics: []string{"a"}, Epoch: h.epoch, Since: 1_000_000}, // never said
		{Study: 1, Metrics: []string{"a", "b"}, Epoch: "", Since: 0},         // new
	} {
		if m := w.subscribe(r); m.Type != "subscribed" || m.Resumed || m.Seq != 50 {
			t.Errorf("since %d of epoch %q: %+v, want subscribed at 50, not resumed", r.Since, r.Epoch, m)
		}
	}
	if m := w.subscribe(request{Study: 1, Metrics: []string{"a"}, Epoch: h.epoch, Since: 45}); !m.Resumed {
		t.Errorf("since 45: %+v, want resumed", m)
	}
}

// TestSlowClient fills the queue of a client that takes nothing: publishing
// goes on, others get everything, and the slow one gets one reset and then
// what is new, not the backlog.
func TestSlowClient(t *testing.T) {
	h := NewHub(HubConfig{Every: time.Millisecond})
	slow := &client{send: make(chan *websocket.PreparedMessage, queueFrames), done: make(chan struct{})}
	quick := &client{send: make(chan *websocket.PreparedMessage, queueFrames), done: make(chan struct{})}
	sub, err := newSubscription(0, nil, []string{"a"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []*client{slow, quick} {
		if _, ok := h.join(c, sub, "", 0); !ok {
			t.Fatal("join refused")
		}
	}
	received := 0
	for step := int64(1); step <= 3*queueFrames; step++ {
		h.Publish(commitOf(1, 1, step, "a"))
		h.flush()
		for len(quick.send) > 0 {
			<-quick.send
			received++
		}
	}
	if received != 3*queueFrames {
		t.Errorf("the quick client got %d frames, want %d", received, 3*queueFrames)
	}
	if len(slow.send) != 1 || !slow.lagging {
		t.Fatalf("the slow client has %d messages waiting, want the reset alone", len(slow.send))
	}
	<-slow.send
	h.Publish(commitOf(1, 1, 1000, "a"))
	h.flush()
	if len(slow.send) != 1 || slow.lagging {
		t.Errorf("after the reset: %d messages, lagging %v; want the new frame", len(slow.send), slow.lagging)
	}
}

func TestPublishNeverBlocks(t *testing.T) {
	h := NewHub(HubConfig{Points: 100}) // and nobody runs it
	c := &client{send: make(chan *websocket.PreparedMessage, queueFrames), done: make(chan struct{})}
	sub, _ := newSubscription(0, nil, []string{"*"})
	h.join(c, sub, "", 0)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for step := range int64(20_000) {
			h.Publish(commitOf(1, 1, step, "a", "b"))
		}
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("Publish blocks when nobody flushes")
	}
	if h.waiting > 110 || h.kept > 110 {
		t.Errorf("%d points wait and %d are kept, want at most 100 or so", h.waiting, h.kept)
	}
	h.flush()
	if len(c.send) != 1 || !c.lagging {
		t.Errorf("the client has %d messages, want one reset", len(c.send))
	}
}

func TestHubClose(t *testing.T) {
	h, srv := startHub(t, HubConfig{})
	w := watch(t, srv)
	w.subscribe(request{Study: 1})
	h.Close()
	h.Close()
	_ = w.conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, _, err := w.conn.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseGoingAway) {
		t.Errorf("after Close: %v, want going away", err)
	}
	late := watch(t, srv)
	_ = late.conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, _, err := late.conn.ReadMessage(); err == nil {
		t.Error("a closed hub still serves")
	}
	if n := h.Clients(); n != 0 {
		t.Errorf("%d clients after Close, want 0", n)
	}
}

// TestManyClientsTogether subscribes, publishes and leaves at once, for the
// race detector.
func TestManyClientsTogether(t *testing.T) {
	h, srv := startHub(t, HubConfig{Every: time.Millisecond})
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			w := watch(t, srv)
			w.subscribe(request{Study: ablation.StudyID(1 + i%3), Metrics: []string{"a"}})
			w.points(5)
			w.subscribe(request{Study: 2, Metrics: []string{"a", "b"}})
			w.points(5)
			w.conn.Close()
		})
	}
	stop := make(chan struct{})
	for p := range 4 {
		go func() {
			for step := int64(0); ; step++ {
				select {
				case <-stop:
					return
				default:
					h.Publish(commitOf(ablation.RunID(p+1), ablation.StudyID(1+step%3), step, "a", "b"))
					time.Sleep(200 * time.Microsecond)
				}
			}
		}()
	}
	wg.Wait()
	close(stop)
}

func TestBadRequests(t *testing.T) {
	_, srv := startHub(t, HubConfig{})
	w := watch(t, srv)
	for _, text := range []string{"{", `{"type":"launch"}`, `{"type":"subscribe","metrics":[` + strings.Repeat(`"m",`, maxMetrics) + `"m"]}`} {
		if err := w.conn.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
			t.Fatal(err)
		}
		_, body := w.read()
		if !strings.Contains(string(body), `"error"`) {
			t.Errorf("%.40s is answered by %s, want an error", text, body)
		}
	}
	if m := w.subscribe(request{Study: 1}); m.Type != "subscribed" {
		t.Errorf("after bad requests: %+v, want the line to go on", m)
	}
}

// BenchmarkLineToFrame sends 10,000 points a second to 200 clients of the same
// page and reports how long a point takes from where it starts until the
// browser's end of the socket has the frame that holds it: from Publish, as
// 1,000 commits a second of 10 points, and from the store's writer, as 20 runs
// that append 100 points 5 times a second.
func BenchmarkLineToFrame(b *testing.B) {
	metrics := make([]string, 10)
	for i := range metrics {
		metrics[i] = fmt.Sprintf("m/%d", i)
	}
	b.Run("publish", func(b *testing.B) {
		h, srv := startHub(b, HubConfig{})
		w := manyWatchers(b, srv, 200, metrics)
		for b.Loop() {
			start := time.Now()
			for i := range 3000 {
				if wait := time.Until(start.Add(time.Duration(i) * time.Millisecond)); wait > 0 {
					time.Sleep(wait)
				}
				c := commitOf(ablation.RunID(1+i%20), 1, int64(i), metrics...)
				for k := range c.Points {
					c.Points[k].Value = millisNow()
				}
				h.Publish(c)
			}
		}
		w.report(b, h)
	})
	b.Run("store", func(b *testing.B) {
		h := NewHub(HubConfig{})
		s, err := store.Open(b.TempDir(), store.Options{CommitEvery: 25 * time.Millisecond})
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		srv, _ := newTestSite(b, s, func(c *Config) { c.Hub = h })
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		go h.Run(ctx)
		_, runs := launchStudy(b, s, rewardsStudy(1, 2, 3, 4, 5))
		for _, r := range runs {
			drive(b, s, r, curve{started: time.Now()})
		}
		w := manyWatchers(b, srv, 200, metrics)
		var round int64
		for b.Loop() {
			appendFromAll(b, s, h, runs, metrics, round)
			round++
		}
		w.report(b, h)
	})
}

func millisNow() float64 { return float64(time.Now().UnixMicro()) / 1000 }

// appendFromAll writes 3 s of points from every run at once.
func appendFromAll(b *testing.B, s *store.Store, h *Hub, runs []ablation.Run, metrics []string, round int64) {
	var wg sync.WaitGroup
	for k, r := range runs {
		wg.Go(func() {
			time.Sleep(time.Duration(k) * 10 * time.Millisecond)
			tick := time.NewTicker(200 * time.Millisecond)
			defer tick.Stop()
			for i := range int64(15) {
				<-tick.C
				var events []trainer.Event
				for step := range int64(10) {
					values := map[string]float64{}
					for _, m := range metrics {
						values[m] = millisNow()
					}
					events = append(events, points(time.Now().UnixMilli(), 1000*round+10*i+step+1, values))
				}
				c, err := s.RunWriter().Append(context.Background(), store.Batch{Run: r.ID, Attempt: 1, Offset: 1e6 + 1e5*round + 100*i, Events: events})
				if err != nil {
					b.Error(err)
					return
				}
				h.Publish(c)
			}
		})
	}
	wg.Wait()
}

// watchers are many browsers that note how old each point is when it comes.
type watchers struct {
	mu   sync.Mutex
	lags []float64
	wg   sync.WaitGroup
}

func manyWatchers(b *testing.B, srv *httptest.Server, n int, metrics []string) *watchers {
	ws := &watchers{}
	for range n {
		w := watch(b, srv)
		w.subscribe(request{Study: 1, Metrics: metrics})
		ws.wg.Go(func() { ws.note(w) })
	}
	return ws
}

func (ws *watchers) note(w *watcher) {
	var own []float64
	defer func() { ws.mu.Lock(); ws.lags = append(ws.lags, own...); ws.mu.Unlock() }()
	for {
		_ = w.conn.SetReadDeadline(time.Now().Add(8 * time.Second))
		kind, body, err := w.conn.ReadMessage()
		if err != nil {
			return
		}
		if kind != websocket.BinaryMessage {
			continue
		}
		now, le := millisNow(), binary.LittleEndian
		base := 8 + int(le.Uint32(body[4:]))
		for i := 0; i < (len(body)-base)/28; i += 10 { // a value is when its point was made, ms
			own = append(own, now-math.Float64frombits(le.Uint64(body[base+8*i:])))
		}
	}
}

func (ws *watchers) report(b *testing.B, h *Hub) {
	b.StopTimer()
	time.Sleep(300 * time.Millisecond)
	h.Close()
	ws.wg.Wait()
	slices.Sort(ws.lags)
	n := len(ws.lags)
	if n == 0 {
		b.Fatal("no frame came")
	}
	b.ReportMetric(ws.lags[n/2], "p50-ms")
	b.ReportMetric(ws.lags[n*99/100], "p99-ms")
	b.ReportMetric(ws.lags[n-1], "max-ms")
	b.ReportMetric(float64(n*10)/200, "points/client")
}
