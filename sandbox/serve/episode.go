package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"alidade/ablation"
	"alidade/sandbox"
	"alidade/sandbox/travel"
	"alidade/trainer"
)

// Kinds of error that calls have beside those of the tools.
const (
	kindOver = "over" // the episode takes no more calls
	kindForm = travel.ErrCall
)

// episode is one live episode. Calls of one episode wait for each other.
type episode struct {
	id      string
	task    *task
	form    string
	created CreateRequest
	touched atomic.Int64 // when it was last asked for anything, Unix ns

	mu       sync.Mutex
	play     *travel.Episode
	answered []answered // by call index
	used     int        // tokens of the conversation, as far as it is known here
	problem  string     // the first thing out of form
	ended    string     // "", or the budget that is spent: turns or context
	scored   *ScoreResult
	score    ScoreRequest // that it was scored with
	bytes    int64        // estimate of the memory it holds
	gone     bool
}

// answered is a call with its answer, kept for repetition.
type answered struct {
	name      string
	arguments json.RawMessage
	result    CallResult
}

func (s *Server) newEpisode(t *task, c CreateRequest) *episode {
	id := sandbox.Mix(c.Seed, t.key, uint64(c.RolloutIndex))
	failures := s.config.Failures
	if c.Clean || slices.Contains(s.config.Clean, t.split) {
		failures = travel.Failures{Seed: failures.Seed}
	}
	e := &episode{id: newID(), task: t, form: c.Form, created: c, bytes: 2048,
		play: travel.NewEpisode(s.config.World, t.Query, travel.EpisodeConfig{
			Failures: failures, ID: id, MaxTurns: s.config.MaxTurns, Profile: s.config.Profile, Milestones: s.config.Milestones})}
	e.used = s.prompts[c.Form].tokens + s.config.Count(t.Query.Text)
	e.touch()
	return e
}

func (e *episode) touch() { e.touched.Store(time.Now().UnixNano()) }
func (e *episode) idle() time.Duration {
	return time.Duration(time.Now().UnixNano() - e.touched.Load())
}
func (e *episode) complain(text string) { e.problem = firstOf(e.problem, text) }

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// CallRequest calls a tool.
type CallRequest struct {
	Name      string          `json:"name" help:"tool"`
	Arguments json.RawMessage `json:"arguments,omitempty" help:"an object, or the text of one as a chat completion has it"`
	Index     *int            `json:"index,omitempty" help:"number of the call in its episode, from 0; without it the call is the next one and cannot be repeated safely"`
	Think     string          `json:"think,omitempty" help:"what the policy wrote before the call, for the record"`
	Tokens    int             `json:"tokens,omitempty" help:"tokens generated in this turn; estimated unless set"`
}

// CallResult is a tool's answer.
type CallResult struct {
	Index     int     `json:"index"`
	Text      string  `json:"text" help:"for the policy"`
	Done      bool    `json:"done" help:"the episode takes no more calls: score it"`
	Truncated bool    `json:"truncated" help:"because a budget is spent"`
	ErrorKind string  `json:"error_kind" help:"empty for hits; the kind of an injected failure (unavailable, timeout, truncated, stale, corrupted, latency); no_hits, invalid_parameters, error, unknown_tool; over"`
	Injected  bool    `json:"injected" help:"the failure was injected"`
	LatencyMS float64 `json:"latency_ms,omitempty" help:"injected latency"`
}

// answer answers a call: a new one by running the tool, an old one from
// memory. fresh tells which it was.
func (s *Server) answer(e *episode, c CallRequest) (r CallResult, fresh bool, err error) {
	if c.Tokens < 0 {
		return r, false, refuse("tokens", strconv.Itoa(c.Tokens), "0 or more")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gone {
		return r, false, s.unknown(e.id)
	}
	e.touch()
	next := len(e.answered)
	index := next
	if c.Index != nil {
		index = *c.Index
	}
	switch {
	case index < 0:
		return r, false, refuse("index", strconv.Itoa(index), indexes(next))
	case index < next:
		s.count.repeated.Add(1)
		r, err = e.repeat(index, &c)
		return r, false, err
	case e.scored != nil:
		return r, false, &Problem{Status: http.StatusConflict, Text: "the episode is scored and takes no more calls"}
	case e.ended != "":
		return CallResult{Index: index, Text: "The episode is over: its budget is spent.", Done: true, Truncated: true, ErrorKind: kindOver}, false, nil
	case index > next:
		return r, false, gap(index, next)
	}
	if s.bytes.Load() >= s.config.MaxBytes {
		return r, false, busy("live episodes hold too much memory; score or delete some")
	}
	r = e.run(s, &c)
	e.answered = append(e.answered, answered{c.Name, c.Arguments, r})
	s.hold(e, int64(512+2*len(r.Text)+2*len(c.Arguments)+len(c.Name)+len(c.Think)))
	s.count.call(&r)
	return r, true, nil
}

func indexes(next int) string {
	if next == 0 {
		return "0, the first call"
	}
	return fmt.Sprintf("%d, the next call, or 0 to %d to get an answer again", next, next-1)
}

func gap(index, next int) error {
	return &Problem{Status: http.StatusConflict, Expected: &next,
		Text:   fmt.Sprintf("index is %d, but the episode waits for call %d", index, next),
		Fields: []ablation.FieldError{fieldError("index", strconv.Itoa(index), indexes(next))}}
}

// repeat returns an answer again. Another call under the same index is a
// mistake of the client: it would take one tool's answer for another's.
func (e *episode) repeat(index int, c *CallRequest) (CallResult, error) {
	old := &e.answered[index]
	if old.name == c.Name && sameJSON(old.arguments, c.Arguments) {
		return old.result, nil
	}
	next := len(e.answered)
	return CallResult{}, &Problem{Status: http.StatusConflict, Expected: &next,
		Text:   fmt.Sprintf("call %d was another one: %s %s", index, old.name, old.arguments),
		Fields: []ablation.FieldError{fieldError("index", strconv.Itoa(index), fmt.Sprintf("%d for a new call, or the same call again", next))}}
}

func sameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// run plays one turn.
func (e *episode) run(s *Server, c *CallRequest) CallResult {
	r := CallResult{Index: len(e.answered)}
	args, err := parseArguments(c.Arguments)
	switch {
	case err != nil:
		r.Text, r.ErrorKind = "Error calling tool: "+err.Error(), kindForm
		e.play.Say(c.Name+" "+string(c.Arguments), r.Text)
		e.complain(fmt.Sprintf("turn %d: %v", e.play.Turns(), err))
	default:
		o := e.play.Call(c.Name, args)
		r.Text, r.ErrorKind = o.Text, firstOf(o.Injected, o.Error)
		r.Injected, r.LatencyMS = o.Injected != "", o.LatencyMS
		if o.Error == travel.ErrUnknownTool {
			e.complain(fmt.Sprintf("turn %d: there is no tool %q", e.play.Turns(), c.Name))
		}
	}
	turn := e.play.Last()
	turn.Think, turn.Tokens = c.Think, c.Tokens
	if turn.Tokens == 0 {
		turn.Tokens = s.config.Count(c.Think) + s.config.Count(c.Name) + s.config.Count(string(c.Arguments))
	}
	turn.Observe.Tokens = s.config.Count(r.Text)
	e.used += turn.Tokens + turn.Observe.Tokens
	switch {
	case e.used > s.config.MaxTokens:
		e.ended = travel.EndContext
	case e.play.Spent():
		e.ended = travel.EndTurns
	}
	r.Done, r.Truncated = e.ended != "", e.ended != ""
	return r
}

// parseArguments reads an object, or a text that holds one. No arguments at
// all are an empty object: the tool says what it needs.
func parseArguments(raw json.RawMessage) (map[string]any, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return map[string]any{}, nil
	}
	if raw[0] == '"' {
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return nil, fmt.Errorf("the arguments are not sound JSON: %w", err)
		}
		raw = bytes.TrimSpace([]byte(text))
		if len(raw) == 0 {
			return map[string]any{}, nil
		}
	}
	var args map[string]any
	if err := json.Unmarshal(raw, &args); err != nil || args == nil {
		return nil, fmt.Errorf("the arguments must be a JSON object")
	}
	return args, nil
}

// trajectory is the record of the episode so far. The caller holds the lock
// while it uses it, unless the episode is scored: then it does not change.
func (e *episode) trajectory() trainer.Trajectory {
	t := e.play.Trajectory()
	c := &e.created
	t.ID, t.Phase, t.Policy, t.Step, t.Group, t.Rollout, t.Mode = e.id, c.Phase, c.Policy, c.Step, c.GroupID, c.RolloutIndex, c.Mode
	labels := map[string]string{"task_id": e.task.ID, "split": e.task.split, "seed": strconv.FormatUint(c.Seed, 10)}
	maps.Copy(labels, t.Labels)
	t.Labels = labels
	if t.Components == nil {
		t.Components = []trainer.Component{}
	}
	if e.scored == nil {
		t.FormatError, t.End = e.problem, e.ended
	}
	return t
}
