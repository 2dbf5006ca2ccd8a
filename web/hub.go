package web

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"alidade/ablation"
	"alidade/store"
)

// Hub carries what the runner commits to the browsers that watch. Publish
// never waits for anyone. Commits are batched (at most 20 frames a second) and
// encoded once for all clients with the same subscription. A client that does
// not keep up loses its queue and is told to read a fresh snapshot; a client
// that comes back with its last sequence number gets what it missed, as long
// as that is remembered.
type Hub struct {
	log   *slog.Logger
	every time.Duration
	limit int // points remembered, and points waiting for a flush

	wake chan struct{} // something is pending

	mu       sync.Mutex
	epoch    string // changes with every hub: sequence numbers of another one mean nothing
	seq      int64  // of the last published commit
	pending  []entry
	waiting  int  // points in pending
	overflow bool // pending was cut: every client needs a snapshot
	ring     []entry
	kept     int // points in ring
	groups   map[string]*group
	closed   bool
	writers  sync.WaitGroup
}

// HubConfig tunes a hub; the zero value is right for a server.
type HubConfig struct {
	Logger *slog.Logger
	Every  time.Duration // least time between frames; 0 = 50 ms
	Points int           // points remembered for clients that come back; 0 = 100,000
}

const (
	maxRing  = 20_000 // commits remembered
	tickTime = 5 * time.Second
)

// NewHub returns a hub; nothing reaches a client before Run.
func NewHub(c HubConfig) *Hub {
	h := &Hub{log: c.Logger, every: c.Every, limit: c.Points, wake: make(chan struct{}, 1), epoch: newEpoch(), groups: map[string]*group{}}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	if h.every <= 0 {
		h.every = 50 * time.Millisecond
	}
	if h.limit <= 0 {
		h.limit = 100_000
	}
	return h
}

func newEpoch() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// entry is one commit, cut down to what a page shows.
type entry struct {
	seq          int64
	study        ablation.StudyID
	run          liveRun
	attempt      int
	points       []store.MetricPoint
	alerts       []ablation.Alert
	trajectories int
	evaluations  []liveEval
}

// liveRun is where a run stands.
type liveRun struct {
	ID      ablation.RunID   `json:"id"`
	Study   ablation.StudyID `json:"study"`
	Arm     int              `json:"arm"`
	State   ablation.State   `json:"state"`
	Cause   string           `json:"cause,omitempty"`
	Phase   string           `json:"phase,omitempty"`
	Step    int64            `json:"step"`
	Total   int64            `json:"total"`
	Attempt int              `json:"attempt"`
	Device  string           `json:"device,omitempty"`
	Started int64            `json:"started,omitempty"` // unix ms
	Ended   int64            `json:"ended,omitempty"`
}

// liveEval tells that an evaluation is there; its queries are fetched.
type liveEval struct {
	Run    ablation.RunID `json:"run"`
	Step   int64          `json:"step"`
	Policy string         `json:"policy"`
	Mode   string         `json:"mode"`
}

func liveRunOf(r ablation.Run) liveRun {
	return liveRun{
		ID: r.ID, Study: r.Study, Arm: r.Arm.Index, State: r.State, Cause: r.Cause, Phase: r.Phase,
		Step: r.Step, Total: r.TotalSteps, Attempt: r.Attempt, Device: r.Device,
		Started: unixMilli(r.StartedAt), Ended: unixMilli(r.EndedAt),
	}
}

func unixMilli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// Publish takes what a commit changed. It never blocks on a client and may be
// called from any goroutine.
func (h *Hub) Publish(c store.Commit) {
	e := entry{study: c.Run.Study, run: liveRunOf(c.Run), attempt: c.Run.Attempt, points: c.Points, alerts: c.Alerts, trajectories: len(c.Trajectories)}
	for _, v := range c.Evaluations {
		e.evaluations = append(e.evaluations, liveEval{Run: v.Run, Step: v.Step, Policy: v.Policy, Mode: v.Mode})
	}
	h.mu.Lock()
	h.seq++
	e.seq = h.seq
	h.remember(e)
	if len(h.groups) > 0 {
		h.pending = append(h.pending, e)
		h.waiting += len(e.points)
		if h.waiting > h.limit || len(h.pending) > maxRing {
			h.pending, h.waiting, h.overflow = nil, 0, true
		}
	}
	h.mu.Unlock()
	select {
	case h.wake <- struct{}{}:
	default: // a flush is due already
	}
}

// remember keeps e for clients that come back, and forgets the oldest.
func (h *Hub) remember(e entry) {
	h.ring = append(h.ring, e)
	h.kept += len(e.points)
	cut := 0
	for cut < len(h.ring)-1 && (h.kept > h.limit || len(h.ring)-cut > maxRing) {
		h.kept -= len(h.ring[cut].points)
		h.ring[cut] = entry{}
		cut++
	}
	h.ring = h.ring[cut:]
}

// since returns the remembered entries after seq; ok is false when some that
// came after it are forgotten.
func (h *Hub) since(seq int64) (entries []entry, ok bool) {
	if seq > h.seq {
		return nil, false
	}
	if len(h.ring) == 0 {
		return nil, seq == h.seq
	}
	first := h.ring[0].seq
	if seq < first-1 {
		return nil, false
	}
	return slices.Clone(h.ring[seq-first+1:]), true
}

// Run sends until ctx is done, then closes every connection and returns when
// their writers have ended.
func (h *Hub) Run(ctx context.Context) error {
	defer h.Close()
	tick := time.NewTicker(tickTime)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			h.tick()
			continue
		case <-h.wake:
		}
		h.flush()
		select { // gather what comes within the next frame time
		case <-ctx.Done():
			return nil
		case <-time.After(h.every):
		}
	}
}

// Close ends all connections and refuses new ones. It may be called twice.
func (h *Hub) Close() {
	h.mu.Lock()
	h.closed = true
	for _, g := range h.groups {
		for c := range g.clients {
			c.end()
		}
	}
	h.mu.Unlock()
	h.writers.Wait()
}

// group is all clients with the same subscription.
type group struct {
	sub     subscription
	clients map[*client]struct{}
}

// flush encodes what is pending once a group and hands it to the clients.
func (h *Hub) flush() {
	h.mu.Lock()
	batch, overflow, seq := h.pending, h.overflow, h.seq
	h.pending, h.waiting, h.overflow = nil, 0, false
	type target struct {
		sub     subscription
		clients []*client
	}
	targets := make([]target, 0, len(h.groups))
	for _, g := range h.groups {
		t := target{sub: g.sub, clients: make([]*client, 0, len(g.clients))}
		for c := range g.clients {
			t.clients = append(t.clients, c)
		}
		targets = append(targets, t)
	}
	h.mu.Unlock()

	if len(batch) == 0 && !overflow {
		return
	}
	for _, t := range targets {
		if overflow {
			for _, c := range t.clients {
				c.restart(h.control("reset", seq, "the server fell behind"))
			}
			continue
		}
		frame, ok := encodeFrame(t.sub, batch, seq)
		if !ok {
			continue
		}
		m, err := websocket.NewPreparedMessage(websocket.BinaryMessage, frame)
		if err != nil {
			h.log.Error("prepare frame", "err", err)
			continue
		}
		for _, c := range t.clients {
			c.offer(m, func() *websocket.PreparedMessage { return h.control("reset", seq, "this page fell behind") })
		}
	}
}

// tick tells every client that the line is alive and where the hub stands.
func (h *Hub) tick() {
	h.mu.Lock()
	seq := h.seq
	var clients []*client
	for _, g := range h.groups {
		for c := range g.clients {
			clients = append(clients, c)
		}
	}
	h.mu.Unlock()
	if len(clients) == 0 {
		return
	}
	m := h.control("tick", seq, "")
	for _, c := range clients {
		c.offer(m, func() *websocket.PreparedMessage { return h.control("reset", seq, "this page fell behind") })
	}
}

// controlMessage is what the hub says in JSON.
type controlMessage struct {
	Type    string `json:"type"` // subscribed, reset, tick, error
	Epoch   string `json:"epoch"`
	Seq     int64  `json:"seq"`
	Resumed bool   `json:"resumed,omitempty"`
	Text    string `json:"text,omitempty"`
}

func (h *Hub) control(kind string, seq int64, text string) *websocket.PreparedMessage {
	return h.prepareJSON(controlMessage{Type: kind, Epoch: h.epoch, Seq: seq, Text: text})
}

func (h *Hub) prepareJSON(m controlMessage) *websocket.PreparedMessage {
	body, err := json.Marshal(m)
	if err != nil { // strings and numbers only: cannot fail
		body = []byte(`{"type":"error"}`)
	}
	p, err := websocket.NewPreparedMessage(websocket.TextMessage, body)
	if err != nil {
		h.log.Error("prepare message", "err", err)
	}
	return p
}

// join subscribes a client, leaving its former subscription. It returns what
// to send first: the answer, and what was missed since the client's last
// sequence number.
func (h *Hub) join(c *client, sub subscription, epoch string, since int64) (first []*websocket.PreparedMessage, ok bool) {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil, false
	}
	h.drop(c)
	g := h.groups[sub.key]
	if g == nil {
		g = &group{sub: sub, clients: map[*client]struct{}{}}
		h.groups[sub.key] = g
	}
	g.clients[c] = struct{}{}
	c.key = sub.key
	seq := h.seq
	var missed []entry
	resumed := false
	if epoch == h.epoch {
		missed, resumed = h.since(since)
	}
	h.mu.Unlock()

	first = append(first, h.prepareJSON(controlMessage{Type: "subscribed", Epoch: h.epoch, Seq: seq, Resumed: resumed}))
	if frame, any := encodeFrame(sub, missed, seq); any {
		if m, err := websocket.NewPreparedMessage(websocket.BinaryMessage, frame); err == nil {
			first = append(first, m)
		}
	}
	return first, true
}

// leave ends a client's subscription.
func (h *Hub) leave(c *client) {
	h.mu.Lock()
	h.drop(c)
	h.mu.Unlock()
}

func (h *Hub) drop(c *client) {
	g := h.groups[c.key]
	if g == nil {
		return
	}
	delete(g.clients, c)
	if len(g.clients) == 0 {
		delete(h.groups, c.key)
	}
	c.key = ""
}

// Clients returns how many connections are subscribed.
func (h *Hub) Clients() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, g := range h.groups {
		n += len(g.clients)
	}
	return n
}
