package serve

import (
	"context"
	"sync/atomic"
)

// counters count since the start.
type counters struct {
	created, deleted, reaped, abandoned, scored atomic.Int64
	calls, repeated, injected, noHits, wrong    atomic.Int64
	refused, unauthorised, malformed, failed    atomic.Int64
}

func (c *counters) call(r *CallResult) {
	c.calls.Add(1)
	switch {
	case r.Injected:
		c.injected.Add(1)
	case r.ErrorKind == "no_hits":
		c.noHits.Add(1)
	case r.ErrorKind != "":
		c.wrong.Add(1)
	}
}

// Stats tell the health of the environment. Counters are since the start.
type Stats struct {
	Live         int   `json:"live" help:"episodes"`
	Bytes        int64 `json:"bytes" help:"estimate of what they hold"`
	InFlight     int64 `json:"in_flight" help:"requests at work"`
	Sockets      int   `json:"sockets"`
	Created      int64 `json:"created"`
	Scored       int64 `json:"scored"`
	Deleted      int64 `json:"deleted"`
	Reaped       int64 `json:"reaped" help:"dropped because idle"`
	Abandoned    int64 `json:"abandoned" help:"reaped or deleted without a score: rollouts that failed outside the environment"`
	Calls        int64 `json:"calls"`
	Repeated     int64 `json:"repeated" help:"calls answered again"`
	Injected     int64 `json:"injected" help:"injected failures"`
	NoHits       int64 `json:"no_hits"`
	WrongCalls   int64 `json:"wrong_calls" help:"wrong arguments, unknown tools"`
	Refused      int64 `json:"refused" help:"requests answered with 429"`
	Unauthorised int64 `json:"unauthorised"`
	Malformed    int64 `json:"malformed" help:"requests answered with 4xx otherwise"`
	Failed       int64 `json:"failed" help:"requests answered with 5xx"`
}

func (s *Server) stats(context.Context, string, None) (Stats, error) {
	s.mu.Lock()
	live := len(s.live)
	s.mu.Unlock()
	c := &s.count
	return Stats{Live: live, Bytes: s.bytes.Load(), InFlight: s.inFlight.Load(), Sockets: s.sockets.number(),
		Created: c.created.Load(), Scored: c.scored.Load(), Deleted: c.deleted.Load(), Reaped: c.reaped.Load(), Abandoned: c.abandoned.Load(),
		Calls: c.calls.Load(), Repeated: c.repeated.Load(), Injected: c.injected.Load(), NoHits: c.noHits.Load(), WrongCalls: c.wrong.Load(),
		Refused: c.refused.Load(), Unauthorised: c.unauthorised.Load(), Malformed: c.malformed.Load(), Failed: c.failed.Load()}, nil
}
