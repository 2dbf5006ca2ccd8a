package rllm

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"alidade/ablation"
	"alidade/sandbox/travel"
	"alidade/trainer"
	"alidade/trainer/endpoint"
	"alidade/trainer/native"
)

// Bounds of what a client may do to this process.
const (
	maxBody     = 128 << 20 // a batch of episodes; the client posts them one by one when it is refused
	maxSmall    = 8 << 20   // everything else
	maxSessions = 64
	maxReady    = 512 << 20 // bytes of bodies whose readings were not polled yet
)

// Config says whose calls are answered and what they are read with.
type Config struct {
	Key       string // the run's secret; every call must carry it
	Recipe    ablation.Recipe
	Steps     int64  // of RL, for rewards that change with progress; 0 = none
	Done      int64  // steps that were trained before: the checkpoint's
	Estimator string // rLLM's, for the advantages of a group
	ByStd     bool   // they are divided by its standard deviation
	Eval      []Row  // tasks of evaluation, in the order of the trainer's rows
	Overlong  Overlong

	// Open begins an episode for a rollout; nil = episodes are not played here.
	Open func(split, task string, seed uint64, rollout int) (*travel.Episode, error)
	// Record takes each episode that was played here; nil = nobody.
	Record func(trainer.Trajectory)

	Logger *slog.Logger     // nil = silent
	Now    func() time.Time // nil = time.Now
	Silent time.Duration    // without a heartbeat, before an alert; 0 = 3 min
}

// A Row is a task as the driver has written it for the trainer.
type Row struct {
	TaskID string `json:"task_id"`
	Split  string `json:"split"`
	Hash   string `json:"query_hash"`
	Level  string `json:"level"`
}

// A Server answers the calls of rLLM's "ui" logger and plays episodes for its
// gateway. It is an http.Handler and a [native.Source], safe for concurrent
// use, and never waits for anything but its own memory and the model.
type Server struct {
	cfg    Config
	mux    *http.ServeMux
	player *endpoint.Player
	eval   map[string]Row // by split and task

	refused atomic.Int64 // calls answered with an error

	mu       sync.Mutex
	sessions map[string]*session
	ready    []native.Reading
	bytes    int64                        // of bodies behind ready
	bad      int                          // values that were not understood, since the last Poll
	told     map[int64]map[string]float64 // metrics by step, as they were last told
	batches  map[int64]*batch             // episodes that wait for their groups
	done     map[int64]map[string]bool    // episodes that are told, by step
	rollouts rollouts
	last     int64     // newest step that was told
	heard    time.Time // of any call with the right key
	silent   bool      // an alert about silence stands
	judged   map[int64]bool
}

// session is one life of the client's logger.
type session struct {
	id, kind string
	body     string // that it was opened with
	ended    string // "", completed, failed
}

// New returns a server for one run.
func New(cfg Config) *Server {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Silent <= 0 {
		cfg.Silent = 3 * time.Minute
	}
	s := &Server{
		cfg: cfg, sessions: map[string]*session{}, told: map[int64]map[string]float64{}, batches: map[int64]*batch{},
		done: map[int64]map[string]bool{}, judged: map[int64]bool{}, eval: map[string]Row{},
		player: endpoint.NewPlayer(cfg.Recipe, ablation.Endpoint{Temperature: -1, Retries: 3, TimeoutS: 1800}),
	}
	s.rollouts.init()
	s.last, s.rollouts.now = cfg.Done, cfg.Done
	for _, row := range cfg.Eval {
		s.eval[row.Split+"\x00"+row.TaskID] = row
	}
	s.mux = http.NewServeMux()
	for pattern, call := range map[string]func(r *http.Request, body []byte) (any, error){
		"POST /api/sessions":                s.openSession,
		"POST /api/sessions/{id}/heartbeat": s.heartbeat,
		"POST /api/sessions/{id}/complete":  s.complete,
		"POST /api/metrics":                 s.metrics,
		"POST /api/episodes":                s.oneEpisode,
		"POST /api/episodes/batch":          s.manyEpisodes,
		"POST /api/trajectory-groups":       s.oneGroup,
		"POST /api/trajectory-groups/batch": s.manyGroups,
		"POST /api/logs/batch":              s.logs,
		"POST /api/eval-results":            s.evalResult,
		"POST " + PlayPath:                  s.play,
	} {
		limit := int64(maxSmall)
		if strings.HasSuffix(pattern, "episodes/batch") {
			limit = maxBody
		}
		s.mux.Handle(pattern, s.guard(limit, call))
	}
	s.mux.Handle("/", s.guard(maxSmall, func(r *http.Request, _ []byte) (any, error) {
		return nil, &problem{status: http.StatusNotFound, text: "there is no call " + r.Method + " " + r.URL.Path + "; allowed: POST to /api/sessions, /api/metrics, /api/episodes, /api/trajectory-groups, /api/logs/batch, /api/eval-results and " + PlayPath}
	}))
	return s
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Close lets go of connections to models.
func (s *Server) Close() { s.player.Close() }

// guard checks the key, bounds the body and writes the answer.
func (s *Server) guard(limit int64, call func(*http.Request, []byte) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.allowed(r); err != nil {
			s.fail(w, r, err)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
		if err != nil {
			s.fail(w, r, cutOff(err))
			return
		}
		res, err := call(r, body)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		answer(w, http.StatusOK, res)
	})
}

// cutOff is a body that ended before it was whole.
func cutOff(err error) error {
	if _, ok := err.(*http.MaxBytesError); ok { //nolint:errorlint // returned as it is by MaxBytesReader
		return err
	}
	return refuse("body", err.Error(), "cut off", "a whole body")
}

// allowed checks the run's secret, in the logger's header or as a bearer.
func (s *Server) allowed(r *http.Request) error {
	key := r.Header.Get("X-API-Key")
	if key == "" {
		key = strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	}
	if s.cfg.Key == "" || subtle.ConstantTimeCompare([]byte(key), []byte(s.cfg.Key)) != 1 {
		return &problem{status: http.StatusUnauthorized, text: "X-API-Key is missing or not this run's; the variable RLLM_API_KEY holds it"}
	}
	s.mu.Lock()
	s.heard = s.cfg.Now()
	s.mu.Unlock()
	return nil
}

// room refuses a body when too much waits to be read.
func (s *Server) room(n int) error {
	if s.bytes > maxReady {
		return &problem{status: http.StatusServiceUnavailable, text: "too much waits to be written to the disk", retry: 2 * time.Second}
	}
	s.bytes += int64(n)
	return nil
}

// SessionResult tells a client who it is. Clients read either name.
type SessionResult struct {
	ID        string `json:"id"`
	SessionID string `json:"session_id"`
}

// openSession begins a session. The same opening again is the same session:
// the client may have lost the answer.
func (s *Server) openSession(_ *http.Request, body []byte) (any, error) {
	var q struct {
		Project    string          `json:"project"`
		Experiment string          `json:"experiment"`
		Config     json.RawMessage `json:"config"`
		Source     json.RawMessage `json:"source_metadata"`
		Kind       string          `json:"session_type"`
	}
	if err := decode(body, &q); err != nil {
		return nil, err
	}
	if q.Kind == "" {
		q.Kind = "training"
	}
	if q.Kind != "training" && q.Kind != "eval" {
		return nil, refuse("session_type", q.Kind, "not a kind of session", "training, eval")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, old := range s.sessions {
		if old.ended == "" && old.body == string(body) {
			return SessionResult{old.id, old.id}, nil
		}
	}
	if len(s.sessions) >= maxSessions {
		return nil, &problem{status: http.StatusTooManyRequests, text: "64 sessions are open; a run needs one"}
	}
	x := &session{id: newID(), kind: q.Kind, body: string(body)}
	s.sessions[x.id] = x
	return SessionResult{x.id, x.id}, nil
}

// known finds a session. The caller holds the lock.
func (s *Server) known(id string) (*session, error) {
	if id == "" {
		return nil, refuse("session_id", "", "missing", "the id that POST /api/sessions answered")
	}
	x := s.sessions[id]
	if x == nil {
		return nil, &problem{status: http.StatusNotFound, text: "session_id " + quote(id) + " is not a session; allowed: an id that POST /api/sessions answered"}
	}
	return x, nil
}

type done struct {
	OK bool `json:"ok"`
}

func (s *Server) heartbeat(r *http.Request, _ []byte) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.known(r.PathValue("id"))
	return done{err == nil}, err
}

// complete ends a session.
func (s *Server) complete(r *http.Request, body []byte) (any, error) {
	var q struct {
		Status string `json:"status"`
		Exit   *int   `json:"exit_code"`
	}
	if err := decode(body, &q); err != nil {
		return nil, err
	}
	if q.Status != "completed" && q.Status != "failed" {
		return nil, refuse("status", q.Status, "not an end", "completed, failed")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	x, err := s.known(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	if x.ended == "" {
		x.ended = q.Status
		s.flush(1 << 62)
		if q.Status == "failed" {
			code := "unknown"
			if q.Exit != nil {
				code = itoa(*q.Exit)
			}
			s.alert("bad", "rllm-failed", "rLLM says that it failed, with exit code "+code)
		}
	}
	return done{true}, nil
}

// logs takes the tee of the trainer's streams. They are in stdout.log and
// stderr.log already, so only their form is checked.
func (s *Server) logs(_ *http.Request, body []byte) (any, error) {
	var q struct {
		Session string `json:"session_id"`
		Logs    []struct {
			Timestamp json.RawMessage `json:"timestamp"`
			Stream    string          `json:"stream"`
			Message   string          `json:"message"`
		} `json:"logs"`
	}
	if err := decode(body, &q); err != nil {
		return nil, err
	}
	for i, l := range q.Logs {
		if l.Stream != "stdout" && l.Stream != "stderr" {
			return nil, refuse("logs["+itoa(i)+"].stream", l.Stream, "not a stream", "stdout, stderr")
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.known(q.Session)
	return map[string]int{"lines": len(q.Logs)}, err
}

// Failed tells whether the trainer itself said that it failed.
func (s *Server) Failed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.sessions {
		if x.ended == "failed" {
			return true
		}
	}
	return false
}

// Heard is when the trainer last called; zero = never.
func (s *Server) Heard() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heard
}

// Shutdown waits for episodes under way to end, or for ctx.
func (s *Server) Shutdown(ctx context.Context) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for s.rollouts.playing.Load() > 0 {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
