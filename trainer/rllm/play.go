package rllm

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"alidade/sandbox/travel"
	"alidade/trainer"
	"alidade/trainer/endpoint"
)

// PlayPath is the call that plays an episode.
const PlayPath = "/play"

// PlayRequest asks for an episode against a model. The task is one of our
// rows, alone or within a larger object.
type PlayRequest struct {
	Task       json.RawMessage `json:"task"`
	BaseURL    string          `json:"base_url"` // with or without /v1 at its end
	Model      string          `json:"model"`
	SessionUID string          `json:"session_uid"`               // "<prompt>:<rollout>" where the trainer has such ids
	RewardURL  string          `json:"reward_info_url,omitempty"` // gets the reward too
	Sample     *int            `json:"sample_index,omitempty"`    // the prompt's number, where the session does not say it
	Validate   *bool           `json:"validate,omitempty"`
}

// PlayResult is what an episode was worth.
type PlayResult struct {
	Reward      float64            `json:"reward"`
	Correct     bool               `json:"is_correct"`
	Termination string             `json:"termination_reason"`
	Metrics     map[string]float64 `json:"metrics"`
	Episode     string             `json:"episode_id"`
}

// rollouts remember who is playing what.
type rollouts struct {
	playing atomic.Int64

	mu     sync.Mutex
	plays  map[string]int      // how often a session was played
	ids    map[string]string   // the record of a session's latest play
	groups map[string][]string // groups in which a task was played, by task
	now    int64               // step of the latest training rollout
}

func (r *rollouts) init() {
	r.plays, r.ids, r.groups = map[string]int{}, map[string]string{}, map[string][]string{}
}

// latest is the id of a session's record; "" when it was not played here.
func (r *rollouts) latest(session string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ids[session]
}

// place is where an episode belongs.
type place struct {
	row      Row
	eval     bool
	step     int64
	id       string
	group    string
	rollout  int
	occasion uint64 // how often the task came before: failures differ from one to the next
}

// play plays an episode to its end. An error that is not the request's fault
// is 503: the trainer must leave the rollout out or try again, for it is no
// reward of 0.
func (s *Server) play(r *http.Request, body []byte) (any, error) {
	var q PlayRequest
	if err := decode(body, &q); err != nil {
		return nil, err
	}
	base, err := baseURL(q.BaseURL)
	if err != nil {
		return nil, err
	}
	if q.SessionUID == "" || len(q.SessionUID) > 150 {
		return nil, refuse("session_uid", q.SessionUID, "missing or too long", "1 to 150 bytes")
	}
	if q.RewardURL != "" {
		if _, err := baseURL(q.RewardURL); err != nil {
			return nil, refuse("reward_info_url", q.RewardURL, "not an address", "http:// or https:// and a host")
		}
	}
	p, err := s.place(&q)
	if err != nil {
		return nil, err
	}
	if s.cfg.Open == nil {
		return nil, &problem{status: http.StatusNotImplemented, text: "this server opens no episodes"}
	}
	e, err := s.cfg.Open(p.row.Split, p.row.TaskID, p.occasion, p.rollout)
	if err != nil {
		return nil, refuse("task.task_id", p.row.TaskID, err.Error(), "a task of the run's data")
	}
	s.rollouts.playing.Add(1)
	defer s.rollouts.playing.Add(-1)
	t, err := s.player.Play(r.Context(), base, q.Model, e)
	switch {
	case err != nil && r.Context().Err() != nil:
		return nil, &problem{status: 499, text: "the trainer hung up"}
	case errors.Is(err, endpoint.ErrAway):
		return nil, &problem{status: http.StatusServiceUnavailable, text: err.Error(), retry: time.Second}
	case err != nil:
		return nil, &problem{status: http.StatusBadGateway, text: "the model's server refuses the conversation: " + err.Error()}
	}
	res := s.pay(p, e, &t)
	if s.cfg.Record != nil {
		s.cfg.Record(t)
	}
	if q.RewardURL != "" {
		if err := s.report(r.Context(), q.RewardURL, res); err != nil {
			return nil, &problem{status: http.StatusBadGateway, text: "reward_info_url: " + err.Error()}
		}
	}
	return res, nil
}

// pay gives a finished episode its reward and its place.
func (s *Server) pay(p place, e *travel.Episode, t *trainer.Trajectory) PlayResult {
	progress := 0.0
	if s.cfg.Steps > 0 {
		progress = min(1, max(0, float64(p.step-1)/float64(s.cfg.Steps)))
	}
	reward := e.Pay(travel.RewardOf(s.cfg.Recipe), progress)
	paid := e.Trajectory()
	t.Reward, t.RewardKind, t.Components = reward, paid.RewardKind, paid.Components
	if less := s.cfg.Overlong.penalty(t); less != 0 {
		t.Reward += less
		t.Components = append(t.Components, trainer.Component{Name: "overlong", Value: less})
	}
	t.ID, t.Group, t.Rollout, t.Step = p.id, p.group, p.rollout, p.step
	t.Phase, t.Policy, t.Mode = "rl", "policy", "sampled"
	if p.eval {
		t.Phase = "eval"
	}
	if t.Labels == nil {
		t.Labels = map[string]string{}
	}
	t.Labels["task_id"], t.Labels["split"] = p.row.TaskID, p.row.Split
	m := map[string]float64{
		"success": share(t.Success), "tool_calls": float64(t.ToolCalls), "tool_errors": float64(t.ToolErrors),
		"injected": float64(t.Injected), "turns": float64(len(t.Turns)), "tokens": float64(t.Tokens),
		"generated": float64(t.Generated), "format_error": share(t.FormatError != ""), "overlong": share(t.Overlong),
	}
	for name, v := range t.Scores {
		m[name] = v
	}
	return PlayResult{Reward: t.Reward, Correct: t.Success, Termination: reasonOf(t.End), Metrics: m, Episode: t.ID}
}

// Overlong says what an over-long response costs. rLLM itself can only mask
// one; the rest is paid with the reward.
type Overlong struct {
	How           string // zero (the reward is taken back), shape (the soft penalty of DAPO); else nothing
	Limit, Buffer int    // longest response, and the part of it in which the penalty grows, tokens
	Factor        float64
}

// penalty is what is taken off a finished episode's reward.
func (o Overlong) penalty(t *trainer.Trajectory) float64 {
	switch {
	case o.How == "zero" && t.Overlong:
		return -t.Reward
	case o.How != "shape" || o.Buffer <= 0:
		return 0
	}
	prompt, err := strconv.Atoi(t.Labels[endpoint.LabelTask])
	if err != nil {
		return 0
	}
	over := float64(t.Tokens - prompt - (o.Limit - o.Buffer))
	return min(0, -over/float64(o.Buffer)*o.Factor)
}

// place finds the task of a request, the group and the step it is for. rLLM
// trains in turns, sampling a step after it has logged the one before; what
// it samples for validation belongs to the step it has trained last.
func (s *Server) place(q *PlayRequest) (place, error) {
	var task struct {
		Row
		Metadata *Row `json:"metadata"`
		Data     *Row `json:"data"`
	}
	if err := decode(q.Task, &task); err != nil {
		return place{}, refuse("task", string(q.Task), "not a task", `an object with "task_id" and "split", as in the run's data`)
	}
	for _, inner := range []*Row{task.Metadata, task.Data} {
		if task.TaskID == "" && inner != nil {
			task.Row = *inner
		}
	}
	if task.TaskID == "" {
		return place{}, refuse("task.task_id", "", "missing", "a task of the run's data")
	}
	s.mu.Lock()
	last := s.last
	s.mu.Unlock()
	p := place{row: task.Row}
	_, p.eval = s.eval[task.Split+"\x00"+task.TaskID]
	if q.Validate != nil {
		p.eval = *q.Validate
	}
	prompt, rollout := parts(q.SessionUID)
	p.rollout = rollout
	if q.Sample != nil { // Uni-Agent: session-sample-<row>-rollout-<i>-<hex>
		prompt = "sample-" + itoa(*q.Sample)
		p.rollout = rolloutIn(q.SessionUID)
	}
	r := &s.rollouts
	r.mu.Lock()
	defer r.mu.Unlock()
	phase := "rl"
	switch p.step = last + 1; {
	case p.eval:
		phase, p.step = "eval", max(last, r.now)
	case s.cfg.Steps > 0:
		p.step = min(p.step, s.cfg.Steps)
		r.now = p.step
	default:
		r.now = p.step
	}
	p.group = fmt.Sprintf("%s-%d-%s", phase, p.step, prompt)
	p.id = q.SessionUID
	r.plays[q.SessionUID]++
	if n := r.plays[q.SessionUID]; n > 1 { // the trainer could not use the one before
		p.id, p.group = p.id+"#"+itoa(n), p.group+"#"+itoa(n)
	}
	r.ids[q.SessionUID] = p.id
	key := task.Split + "\x00" + task.TaskID
	p.occasion = uint64(len(r.groups[key]))
	for i, g := range r.groups[key] {
		if g == prompt {
			p.occasion = uint64(i)
			return p, nil
		}
	}
	r.groups[key] = append(r.groups[key], prompt)
	return p, nil
}

// rolloutIn finds the number behind "rollout-".
func rolloutIn(session string) int {
	_, rest, _ := strings.Cut(session, "rollout-")
	digits, _, _ := strings.Cut(rest, "-")
	n, err := strconv.Atoi(digits)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// baseURL checks an address and ends it in /v1.
func baseURL(s string) (string, error) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return "", refuse("base_url", s, "not an address", "http:// or https:// and a host, such as http://127.0.0.1:9090/sessions/ID/v1")
	}
	s = strings.TrimRight(s, "/")
	if !strings.HasSuffix(s, "/v1") {
		s += "/v1"
	}
	return s, nil
}

// report posts the reward where Uni-Agent's gateway wants it.
func (s *Server) report(ctx context.Context, to string, res PlayResult) error {
	body, err := json.Marshal(map[string]any{"reward_info": map[string]any{
		"reward": res.Reward, "acc": share(res.Correct), "finished": res.Termination == "env_done", "episode_id": res.Episode,
	}})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, strings.NewReader(string(body)))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	got, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = got.Body.Close() }()
	if got.StatusCode >= 300 {
		return fmt.Errorf("answered %s", got.Status)
	}
	return nil
}

func newID() string { return "s-" + rand.Text() }

func quote(s string) string { return strconv.Quote(s) }
