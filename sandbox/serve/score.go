package serve

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"

	"alidade/ablation"
	"alidade/sandbox/travel"
	"alidade/trainer"
)

// ScoreRequest ends an episode.
type ScoreRequest struct {
	FinalText string          `json:"final_text,omitempty" help:"what the policy wrote last: the plan, with or without words and tags around it; empty if there is none"`
	Messages  json.RawMessage `json:"messages,omitempty" help:"the whole conversation as a list of chat messages, to check its form"`
	End       string          `json:"end,omitempty" enum:"answer,turns,context" help:"why the trainer stopped; by the episode's own budgets unless set"`
	Progress  float64         `json:"progress,omitempty" help:"share of the RL steps done before this one, 0 to 1, for CURRICULUM"`
}

// ScoreResult is what a plan is worth.
type ScoreResult struct {
	EpisodeID   string             `json:"episode_id"`
	Score       float64            `json:"score" help:"the reward"`
	Components  map[string]float64 `json:"components" help:"parts of the reward; they sum to it"`
	Metrics     map[string]float64 `json:"metrics" help:"the same keys for every episode"`
	Verdicts    []trainer.Verdict  `json:"verdicts" help:"one a constraint, always all 13"`
	Success     bool               `json:"success"`
	Delivered   bool               `json:"delivered" help:"the answer holds a plan"`
	End         string             `json:"end"`
	FormatError string             `json:"format_error" help:"the first thing out of form; empty for nothing"`
	Cost        *float64           `json:"cost" help:"of the plan, $; null when it cannot be told"`
}

func (q *ScoreRequest) check() error {
	var bad []ablation.FieldError
	switch q.End {
	case "", travel.EndAnswer, travel.EndTurns, travel.EndContext:
	default:
		bad = append(bad, fieldError("end", q.End, "answer, turns, context"))
	}
	if math.IsNaN(q.Progress) || q.Progress < 0 || q.Progress > 1 {
		bad = append(bad, fieldError("progress", strconv.FormatFloat(q.Progress, 'g', -1, 64), "0 to 1"))
	}
	if len(bad) > 0 {
		return &ablation.Invalid{Fields: bad}
	}
	return nil
}

// settle scores an episode. Scored again with the same text it returns the
// same result; with another it refuses. first tells which it was.
func (s *Server) settle(e *episode, q ScoreRequest) (r ScoreResult, first bool, err error) {
	if err := q.check(); err != nil {
		return r, false, err
	}
	messages, err := readMessages(q.Messages)
	if err != nil {
		return r, false, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gone {
		return r, false, s.unknown(e.id)
	}
	e.touch()
	if e.scored != nil {
		if !e.score.same(&q) {
			return r, false, &Problem{Status: http.StatusConflict, Text: "the episode is scored already, with another final_text, messages, end or progress"}
		}
		return *e.scored, false, nil
	}
	e.finish(s, &q, messages)
	r = e.result(s, q.Progress)
	e.scored, e.score = &r, q
	s.hold(e, int64(8192+2*len(q.FinalText)+len(q.Messages)))
	return r, true, nil
}

func (q *ScoreRequest) same(p *ScoreRequest) bool {
	return q.FinalText == p.FinalText && q.End == p.End && q.Progress == p.Progress && sameJSON(q.Messages, p.Messages)
}

// finish gives the sandbox the plan and the reason of the end. A spent turn
// budget leaves no turn for an answer, as in the sandbox's own loop; a spent
// context does.
func (e *episode) finish(s *Server, q *ScoreRequest, messages []chatMessage) {
	text := q.FinalText
	if text == "" && len(messages) > 0 {
		if last := &messages[len(messages)-1]; last.Role == "assistant" {
			text = last.text()
		}
	}
	e.complain(messageProblem(messages, e.form))
	if len(messages) == 0 && e.form == FormReact && isTurn(text) {
		_, problem := travel.CheckForm(afterTools(text))
		e.complain(problem)
	}
	e.noteThoughts(messages)
	end := firstOf(e.ended, q.End)
	answer := finalAnswer(text, e.form)
	switch {
	case end == "" && answer == "":
		end = travel.EndTurns
	case end == "":
		end = travel.EndAnswer
	}
	plan := travel.Plan{}
	if end == travel.EndTurns {
		e.complain("the turn budget was spent without an answer")
	} else {
		e.play.Say("", "")
		turn := e.play.Last()
		turn.Think, turn.Tokens = thought(afterTools(text)), s.config.Count(text)
		e.play.SetAnswer(answer)
		var err error
		if plan, err = s.parsePlan(answer); err != nil {
			e.complain("the answer is out of form: " + err.Error())
		}
	}
	e.play.Finish(plan, end, e.problem)
}

func (s *Server) parsePlan(answer string) (travel.Plan, error) {
	if s.config.StrictPlan {
		return travel.ParsePlanStrict(answer)
	}
	return travel.ParsePlan(answer)
}

func (e *episode) result(s *Server, progress float64) ScoreResult {
	reward := e.play.Pay(s.config.Reward, progress)
	j, t := e.play.Judgement(), e.play.Trajectory()
	r := ScoreResult{EpisodeID: e.id, Score: reward, Components: make(map[string]float64, len(t.Components)), Verdicts: j.Verdicts,
		Success: j.Success, Delivered: j.Delivered, End: t.End, FormatError: t.FormatError, Cost: j.Cost}
	for _, c := range t.Components {
		r.Components[c.Name] += c.Value
	}
	r.Metrics = map[string]float64{
		"reward": reward, "turns": float64(e.play.Turns()), "tokens": float64(t.Tokens), "generated": float64(t.Generated),
		"tool_calls": float64(t.ToolCalls), "tool_errors": float64(t.ToolErrors), "injected": float64(t.Injected),
		"latency_ms": e.play.LatencyMS(), "format_error": share(t.FormatError != ""), "overlong": share(t.Overlong),
	}
	for name, value := range t.Scores {
		r.Metrics[name] = value
	}
	for profile, pass := range t.Passes {
		r.Metrics["pass_"+profile] = share(pass)
	}
	return r
}

func share(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// noteThoughts keeps what the policy wrote before its calls, where the
// conversation has just one assistant message a turn.
func (e *episode) noteThoughts(messages []chatMessage) {
	var said []*chatMessage
	for i := range messages {
		if messages[i].Role == "assistant" {
			said = append(said, &messages[i])
		}
	}
	t := e.play.Trajectory() // its turns are the episode's own
	if len(said) < len(t.Turns) || len(said) > len(t.Turns)+1 {
		return
	}
	for i := range t.Turns {
		if t.Turns[i].Think == "" {
			t.Turns[i].Think = thought(said[i].text())
		}
	}
}
