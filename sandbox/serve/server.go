package serve

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"alidade/ablation"
	"alidade/sandbox/travel"
)

// Server serves episodes. It is an http.Handler and safe for concurrent use.
type Server struct {
	config    Config
	catalogue *catalogue
	prompts   prompts
	tools     []json.RawMessage
	table     []route
	handler   http.Handler

	bytes    atomic.Int64 // held by live episodes
	inFlight atomic.Int64
	closing  atomic.Bool
	count    counters

	mu    sync.Mutex
	live  map[string]*episode
	swept time.Time // last sweep for idle episodes

	sockets sockets
}

// New returns a server of episodes. It starts nothing.
func New(c Config) (*Server, error) {
	if err := c.prepare(); err != nil {
		return nil, err
	}
	tasks, err := newCatalogue(c.Tasks)
	if err != nil {
		return nil, err
	}
	s := &Server{config: c, catalogue: tasks, prompts: newPrompts(&c), tools: functionSchemas(), live: map[string]*episode{}}
	s.sockets.open = map[*socket]struct{}{}
	s.table = s.routes()
	s.handler = s.mux()
	return s, nil
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Run drops idle episodes until ctx is done. Without it they are dropped only
// when the bound on live episodes is reached.
func (s *Server) Run(ctx context.Context) {
	tick := time.NewTicker(min(max(s.config.Idle/10, time.Millisecond), 10*time.Second))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.sweep(0)
		}
	}
}

// Close refuses new episodes and ends the WebSocket connections once the
// messages at work are answered. Requests under way are not touched.
func (s *Server) Close() {
	s.closing.Store(true)
	s.sockets.close()
}

func newID() string { return "ep-" + rand.Text() }

// CreateRequest asks for an episode.
type CreateRequest struct {
	TaskID       string `json:"task_id"`
	Split        string `json:"split,omitempty" help:"may be left out when the id stands in one split only"`
	Seed         uint64 `json:"seed,omitempty" help:"with task and rollout_index it decides which calls fail; use the same in every arm, and another one each time the task comes again"`
	GroupID      string `json:"group_id,omitempty" help:"of the rollouts of one prompt, for the record"`
	RolloutIndex int    `json:"rollout_index,omitempty" help:"in the group, from 0"`
	Clean        bool   `json:"clean,omitempty" help:"inject no failures, as in evaluation"`
	Form         string `json:"form,omitempty" enum:"native,react" help:"how the prompt tells the policy to write"`
	Phase        string `json:"phase,omitempty" help:"rl, eval, …, for the record"`
	Policy       string `json:"policy,omitempty" help:"for the record"`
	Mode         string `json:"mode,omitempty" help:"sampled, greedy, for the record"`
	Step         int64  `json:"step,omitempty" help:"RL step, for the record"`
}

// CreateResult is a new episode.
type CreateResult struct {
	EpisodeID string            `json:"episode_id"`
	Prompt    []travel.Message  `json:"prompt"`
	Tools     []json.RawMessage `json:"tools" help:"function schemas as a chat completion takes them"`
	MaxTurns  int               `json:"max_turns" help:"turns of the episode, the answer being one"`
	MaxTokens int               `json:"max_tokens" help:"context of the episode, estimated tokens"`
	Query     string            `json:"query_hash"`
}

func (s *Server) create(_ context.Context, _ string, c CreateRequest) (CreateResult, error) {
	if s.closing.Load() {
		return CreateResult{}, &Problem{Status: http.StatusServiceUnavailable, Text: "the server is shutting down", Retry: 5 * time.Second}
	}
	t, err := s.catalogue.find(c.Split, c.TaskID)
	if err != nil {
		return CreateResult{}, err
	}
	if c.Form == "" {
		c.Form = s.config.Form
	}
	if _, ok := s.prompts[c.Form]; !ok {
		return CreateResult{}, refuse("form", c.Form, "native, react")
	}
	if c.RolloutIndex < 0 {
		return CreateResult{}, refuse("rollout_index", strconv.Itoa(c.RolloutIndex), "0 or more")
	}
	if c.Step < 0 {
		return CreateResult{}, refuse("step", strconv.FormatInt(c.Step, 10), "0 or more")
	}
	e := s.newEpisode(t, c)
	if err := s.admit(e); err != nil {
		return CreateResult{}, err
	}
	s.count.created.Add(1)
	return CreateResult{EpisodeID: e.id, Tools: s.tools, MaxTurns: s.config.MaxTurns, MaxTokens: s.config.MaxTokens, Query: t.hash,
		Prompt: []travel.Message{{Role: "system", Content: s.prompts[c.Form].text}, {Role: "user", Content: t.Query.Text}}}, nil
}

// Open begins an episode that the caller plays itself: the task, the rules
// and the failing calls are those of an episode made over HTTP with the same
// split, id, seed and rollout. The server keeps no track of it.
func (s *Server) Open(split, task string, seed uint64, rollout int) (*travel.Episode, error) {
	t, err := s.catalogue.find(split, task)
	if err != nil {
		return nil, err
	}
	if rollout < 0 {
		return nil, refuse("rollout_index", strconv.Itoa(rollout), "0 or more")
	}
	return s.newEpisode(t, CreateRequest{TaskID: task, Split: t.split, Seed: seed, RolloutIndex: rollout, Form: s.config.Form}).play, nil
}

// softShare of MaxBytes is where new episodes are refused; the rest is for
// the calls of those that live.
const softShare = 0.8

// admit makes an episode live if the bounds allow. Idle ones go first.
func (s *Server) admit(e *episode) error {
	if s.enter(e) {
		return nil
	}
	s.sweep(time.Second)
	if s.enter(e) {
		return nil
	}
	return busy("live episodes are at their bound of " + strconv.Itoa(s.config.MaxEpisodes) + " or hold too much memory; score and delete some")
}

func (s *Server) enter(e *episode) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.live) >= s.config.MaxEpisodes || float64(s.bytes.Load()+e.bytes) > softShare*float64(s.config.MaxBytes) {
		return false
	}
	s.live[e.id] = e
	s.bytes.Add(e.bytes)
	return true
}

// hold counts memory that an episode has taken. The caller has its lock.
func (s *Server) hold(e *episode, n int64) {
	e.bytes += n
	s.bytes.Add(n)
}

// find returns a live episode.
func (s *Server) find(id string) (*episode, error) {
	s.mu.Lock()
	e := s.live[id]
	s.mu.Unlock()
	if e == nil {
		return nil, s.unknown(id)
	}
	return e, nil
}

func (s *Server) unknown(id string) error {
	return &Problem{Status: http.StatusNotFound, Text: "there is no such episode",
		Fields: []ablation.FieldError{fieldError("episode_id", id, "a live one: not deleted, touched within "+s.config.Idle.String()+", made by this process")}}
}

// sweep drops episodes that were idle for too long, unless it did so within
// the last spell. An episode at work is not idle.
func (s *Server) sweep(spell time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.swept) < spell {
		return
	}
	s.swept = time.Now()
	for id, e := range s.live {
		if e.idle() < s.config.Idle || !e.mu.TryLock() {
			continue
		}
		if e.idle() >= s.config.Idle {
			delete(s.live, id)
			s.count.reaped.Add(1)
			s.bury(e)
		}
		e.mu.Unlock()
	}
}

// bury ends an episode that is no longer live. The caller has its lock.
func (s *Server) bury(e *episode) {
	e.gone = true
	s.bytes.Add(-e.bytes)
	if e.scored == nil {
		s.count.abandoned.Add(1)
	}
}

func (s *Server) call(ctx context.Context, id string, c CallRequest) (CallResult, error) {
	e, err := s.find(id)
	if err != nil {
		return CallResult{}, err
	}
	r, fresh, err := s.answer(e, c)
	if fresh && s.config.Wait && r.LatencyMS > 0 {
		wait(ctx, time.Duration(r.LatencyMS*float64(time.Millisecond)))
		e.touch()
	}
	return r, err
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done(): // the client has gone; it may ask for the answer again
	case <-t.C:
	}
}

func (s *Server) score(_ context.Context, id string, q ScoreRequest) (ScoreResult, error) {
	e, err := s.find(id)
	if err != nil {
		return ScoreResult{}, err
	}
	r, first, err := s.settle(e, q)
	if first {
		s.count.scored.Add(1)
		if s.config.Record != nil {
			s.config.Record(e.trajectory())
		}
	}
	return r, err
}

// trajectory returns a trainer.Trajectory as JSON, because an episode may go on while it is encoded.
func (s *Server) trajectory(_ context.Context, id string, _ None) (json.RawMessage, error) {
	e, err := s.find(id)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.touch()
	return json.Marshal(e.trajectory())
}

// DeleteResult tells whether there was something to delete.
type DeleteResult struct {
	Deleted bool `json:"deleted" help:"false when there was no such episode: deleting twice is no error"`
}

func (s *Server) remove(_ context.Context, id string, _ None) (DeleteResult, error) {
	s.mu.Lock()
	e := s.live[id]
	delete(s.live, id)
	s.mu.Unlock()
	if e == nil {
		return DeleteResult{}, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	s.count.deleted.Add(1)
	s.bury(e)
	return DeleteResult{Deleted: true}, nil
}
