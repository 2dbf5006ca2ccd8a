package serve

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

const (
	writeWait  = 30 * time.Second // a client that takes nothing for this long is cut off
	pingEvery  = 25 * time.Second // keeps the way open through proxies
	socketJobs = 256              // messages of one connection at work
)

// socket is one WebSocket. One goroutine reads, one writes, and each message
// is worked on in its own; replies come as they are ready.
type socket struct {
	conn  *websocket.Conn
	out   chan *bytes.Buffer
	dead  chan struct{}   // the writer has given up
	slots chan struct{}   // taken by messages at work
	ctx   context.Context // of its messages; ends with the connection
	end   context.CancelFunc
}

// sockets are the open connections.
type sockets struct {
	mu     sync.Mutex
	open   map[*socket]struct{}
	closed bool
	wg     sync.WaitGroup
}

func (c *sockets) number() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open)
}

func (c *sockets) add(k *socket) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.open[k] = struct{}{}
	c.wg.Add(1)
	return true
}

func (c *sockets) remove(k *socket) {
	c.mu.Lock()
	delete(c.open, k)
	c.mu.Unlock()
	c.wg.Done()
}

// close stops reading from all connections and waits until their messages are
// answered.
func (c *sockets) close() {
	c.mu.Lock()
	c.closed = true
	for k := range c.open {
		_ = k.conn.SetReadDeadline(time.Unix(1, 0))
		k.end()
	}
	c.mu.Unlock()
	c.wg.Wait()
}

// socket upgrades a request and serves the connection until it ends. The
// episodes made through it live on.
func (s *Server) socket(w http.ResponseWriter, r *http.Request) {
	if s.sockets.number() >= s.config.MaxSockets {
		s.fail(w, busy("connections are at their bound of "+strconv.Itoa(s.config.MaxSockets)))
		return
	}
	up := websocket.Upgrader{HandshakeTimeout: writeWait, ReadBufferSize: 8 << 10, WriteBufferSize: 8 << 10, WriteBufferPool: &writeBuffers,
		Error: func(w http.ResponseWriter, _ *http.Request, status int, reason error) {
			s.fail(w, &Problem{Status: status, Text: "this is not a WebSocket request that is allowed here: " + reason.Error()})
		}}
	conn, err := up.Upgrade(w, r, nil)
	if err != nil {
		return // the upgrader has answered
	}
	k := &socket{conn: conn, out: make(chan *bytes.Buffer, socketJobs), dead: make(chan struct{}), slots: make(chan struct{}, socketJobs)}
	k.ctx, k.end = context.WithCancel(r.Context())
	defer k.end()
	if !s.sockets.add(k) {
		_ = conn.Close()
		return
	}
	defer s.sockets.remove(k)
	s.converse(k)
}

// writeBuffers are lent to connections while they write.
var writeBuffers sync.Pool

// converse reads messages until the connection ends, then waits for those at
// work. A client that does not take its replies is not read from either.
func (s *Server) converse(k *socket) {
	var writer, jobs sync.WaitGroup
	writer.Go(k.write)
	k.conn.SetReadLimit(s.config.MaxBody)
	for {
		_, message, err := k.conn.ReadMessage()
		if err != nil {
			break
		}
		k.slots <- struct{}{}
		jobs.Go(func() {
			defer func() { <-k.slots }()
			k.say(s.reply(k.ctx, message))
		})
	}
	k.end() // nobody waits for injected latency any more
	jobs.Wait()
	close(k.out)
	writer.Wait()
	_ = k.conn.Close()
}

// reply answers one message.
func (s *Server) reply(ctx context.Context, message []byte) *bytes.Buffer {
	var o Operation
	var r Reply
	if err := decode(message, &o); err != nil {
		p := s.note(err)
		r = Reply{ID: o.ID, Status: p.Status, Error: p.info()}
	} else if o.Op == "batch" {
		r = s.batchReply(ctx, &o)
	} else {
		r = s.operate(ctx, &o)
	}
	b := buffers.Get().(*bytes.Buffer)
	if err := encode(b, r); err != nil {
		b.Reset()
		p := s.note(err)
		_ = encode(b, Reply{ID: o.ID, Status: p.Status, Error: p.info()})
	}
	return b
}

func (s *Server) batchReply(ctx context.Context, o *Operation) Reply {
	var q BatchRequest
	err := decode(o.Body, &q)
	var res BatchResult
	if err == nil {
		res, err = s.batch(ctx, "", q)
	}
	if err != nil {
		p := s.note(err)
		return Reply{ID: o.ID, Status: p.Status, Error: p.info()}
	}
	return Reply{ID: o.ID, Status: http.StatusOK, Result: res}
}

func (k *socket) say(b *bytes.Buffer) {
	select {
	case k.out <- b:
	case <-k.dead:
		keep(b)
	}
}

// write sends what is said until out is closed or the client stops taking it.
func (k *socket) write() {
	defer close(k.dead)
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	for {
		select {
		case b, ok := <-k.out:
			if !ok {
				bye := websocket.FormatCloseMessage(websocket.CloseGoingAway, "")
				_ = k.conn.WriteControl(websocket.CloseMessage, bye, time.Now().Add(time.Second))
				return
			}
			_ = k.conn.SetWriteDeadline(time.Now().Add(writeWait))
			err := k.conn.WriteMessage(websocket.TextMessage, b.Bytes())
			keep(b)
			if err != nil {
				_ = k.conn.Close() // ends the reader
				return
			}
		case <-ping.C:
			if k.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeWait)) != nil {
				_ = k.conn.Close()
				return
			}
		}
	}
}
