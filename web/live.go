package web

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/gorilla/websocket"

	"alidade/ablation"
)

const (
	writeWait   = 10 * time.Second // a client that takes nothing for this long is cut off
	pongWait    = 60 * time.Second
	pingEvery   = 25 * time.Second
	maxMessage  = 64 << 10 // bytes a client may send at once
	queueFrames = 32       // frames that wait for one client
)

// client is one websocket. One goroutine writes to the connection and one
// reads from it.
type client struct {
	conn *websocket.Conn
	send chan *websocket.PreparedMessage
	done chan struct{}
	once sync.Once

	key string // of its subscription; the hub's lock guards it

	lagging bool // its queue was dropped and it has not yet taken the reset; only the hub's Run touches it
}

// end tells both goroutines to stop.
func (c *client) end() { c.once.Do(func() { close(c.done) }) }

// offer queues m. When the queue is full it is dropped for the one message
// that makes the page read a snapshot, and nothing more is queued until the
// client has taken that.
func (c *client) offer(m *websocket.PreparedMessage, reset func() *websocket.PreparedMessage) {
	if c.lagging && len(c.send) > 0 {
		return
	}
	c.lagging = false
	select {
	case c.send <- m:
	default:
		c.restart(reset())
	}
}

// restart drops the queue and queues m alone.
func (c *client) restart(m *websocket.PreparedMessage) {
	for {
		select {
		case <-c.send:
			continue
		default:
		}
		break
	}
	select {
	case c.send <- m:
	default: // the reader has queued an answer meanwhile: the next offer tries again
	}
	c.lagging = true
}

func (s *site) routesLive(r chi.Router) {
	r.Get("/ws", s.page(s.live))
}

// live upgrades to a websocket and serves it until it ends. The upgrader
// refuses an Origin that is not this host; the token was checked before.
func (s *site) live(w http.ResponseWriter, r *http.Request) error {
	if s.Hub == nil {
		return &Problem{Status: http.StatusServiceUnavailable, Text: "This server has no live line"}
	}
	up := websocket.Upgrader{
		HandshakeTimeout: writeWait,
		ReadBufferSize:   1024,
		WriteBufferSize:  4096,
		WriteBufferPool:  &writeBuffers,
		Error: func(w http.ResponseWriter, r *http.Request, status int, reason error) {
			s.fail(w, r, &Problem{Status: status, Text: "This is not a websocket request that is allowed here", Err: reason})
		},
	}
	conn, err := up.Upgrade(w, r, nil)
	if err != nil {
		return nil // the upgrader has answered
	}
	s.Hub.serve(conn)
	return nil
}

// writeBuffers are lent to connections while they write.
var writeBuffers sync.Pool

// request is what a client sends.
type request struct {
	Type    string           `json:"type"` // subscribe
	Study   ablation.StudyID `json:"study"`
	Runs    []ablation.RunID `json:"runs"`
	Metrics []string         `json:"metrics"`
	Epoch   string           `json:"epoch"`
	Since   int64            `json:"since"`
}

// serve reads from conn until it ends.
func (h *Hub) serve(conn *websocket.Conn) {
	c := &client{conn: conn, send: make(chan *websocket.PreparedMessage, queueFrames), done: make(chan struct{})}
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		_ = conn.Close()
		return
	}
	h.writers.Go(c.write)
	h.mu.Unlock()
	defer c.end()
	defer h.leave(c)

	conn.SetReadLimit(maxMessage)
	_ = conn.SetReadDeadline(time.Now().Add(pongWait))
	conn.SetPongHandler(func(string) error { return conn.SetReadDeadline(time.Now().Add(pongWait)) })
	for {
		kind, body, err := conn.ReadMessage()
		if err != nil {
			return
		}
		if kind != websocket.TextMessage {
			continue
		}
		for _, m := range h.answer(c, body) {
			select {
			case c.send <- m:
			case <-c.done:
				return
			}
		}
	}
}

// answer handles one message of a client.
func (h *Hub) answer(c *client, body []byte) []*websocket.PreparedMessage {
	var req request
	if err := json.Unmarshal(body, &req); err != nil {
		return []*websocket.PreparedMessage{h.control("error", 0, "not JSON: "+err.Error())}
	}
	if req.Type != "subscribe" {
		return []*websocket.PreparedMessage{h.control("error", 0, "type: "+printable(req.Type)+"; allowed: subscribe")}
	}
	sub, err := newSubscription(req.Study, req.Runs, req.Metrics)
	if err != nil {
		return []*websocket.PreparedMessage{h.control("error", 0, err.Error())}
	}
	first, ok := h.join(c, sub, req.Epoch, req.Since)
	if !ok {
		c.end()
	}
	return first
}

// write sends what is queued until the client ends, then closes the line.
func (c *client) write() {
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	defer c.conn.Close()
	defer c.end()
	for {
		select {
		case m := <-c.send:
			_ = c.conn.SetWriteDeadline(time.Now().Add(writeWait))
			if err := c.conn.WritePreparedMessage(m); err != nil {
				return
			}
		case <-ping.C:
			if err := c.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeWait)); err != nil {
				return
			}
		case <-c.done:
			bye := websocket.FormatCloseMessage(websocket.CloseGoingAway, "")
			_ = c.conn.WriteControl(websocket.CloseMessage, bye, time.Now().Add(time.Second))
			return
		}
	}
}
