package travel

import (
	"maps"
	"slices"
	"time"

	"alidade/sandbox"
	"alidade/trainer"
)

// Failures injects tool failures, see [sandbox.Failures].
type Failures = sandbox.Failures

// Ends of an episode.
const (
	EndAnswer  = "answer"
	EndTurns   = "turns"   // turn budget spent, nothing delivered
	EndContext = "context" // context budget reached
	EndFormat  = "format"  // stopped at a turn out of form
)

// EpisodeConfig says under which rules an episode runs.
type EpisodeConfig struct {
	Failures Failures
	ID       uint64  // the episode's number, for failures and the RANDOM reward
	MaxTurns int     // turn budget; 0 = none
	Profile  Profile // pays the reward; "" = strict

	// Sleep waits out injected latency; nil only records it.
	Sleep func(time.Duration)
	// Milestones are sub-goals that pay when first reached, name → pay; see
	// [MilestoneNames]. They are no part of the published rewards.
	Milestones map[string]float64
}

// Episode is one interaction of a policy with the sandbox. Whatever form a
// policy writes in drives this: call tools, then finish. It records a
// trajectory. Not safe for concurrent use.
type Episode struct {
	w *World
	q Query
	c EpisodeConfig

	turns    []trainer.Turn
	calls    int
	errors   int
	injected int
	tools    map[string]int
	account  []ToolAccount // in the order of first use
	reached  []milestone   // in the order in which they were reached

	finished    bool
	answer      string
	plan        Plan
	end         string
	formatError string
	overlong    bool
	judgement   Judgement

	reward     float64
	rewardKind string
	components []trainer.Component
}

// NewEpisode begins an episode.
func NewEpisode(w *World, q Query, c EpisodeConfig) *Episode {
	if c.Profile == "" {
		c.Profile = Strict
	}
	return &Episode{w: w, q: q, c: c}
}

// Query returns what is asked for.
func (e *Episode) Query() Query { return e.q }

// World returns the world of the episode.
func (e *Episode) World() *World { return e.w }

// Turns returns the number of turns so far.
func (e *Episode) Turns() int { return len(e.turns) }

// Spent tells whether the turn budget is used up.
func (e *Episode) Spent() bool { return e.c.MaxTurns > 0 && len(e.turns) >= e.c.MaxTurns }

// Last returns the latest turn, to note its thoughts, tokens and entropies;
// nil before the first.
func (e *Episode) Last() *trainer.Turn {
	if len(e.turns) == 0 {
		return nil
	}
	return &e.turns[len(e.turns)-1]
}

// Call runs a tool as one turn and records both sides.
func (e *Episode) Call(tool string, args map[string]any) trainer.Observed {
	call := &trainer.Call{Tool: tool, Args: orderArgs(tool, args)}
	return e.record(call, func() Result { return e.w.Call(tool, args) })
}

// Search is Call for a program that has the arguments in the tool's order.
func (e *Episode) Search(tool, a, b, c string) trainer.Observed {
	params := toolParams(tool)
	call := &trainer.Call{Tool: tool, Args: make([]trainer.Arg, len(params))}
	values := [...]string{a, b, c}
	for i := range params {
		call.Args[i] = trainer.Arg{Name: params[i], Value: values[i]}
	}
	return e.record(call, func() Result { return e.w.Search(tool, a, b, c) })
}

func (e *Episode) record(call *trainer.Call, run func() Result) trainer.Observed {
	obs := trainer.Observed{}
	began := time.Now()
	if e.c.Failures.Active() && KnownTool(call.Tool) {
		e.inject(call, &obs, run)
	} else {
		r := run()
		obs.Text, obs.Columns, obs.Rows, obs.Error = r.Text, r.Columns, r.Rows, r.Err
	}
	e.book(call.Tool, &obs, time.Since(began))
	if obs.LatencyMS > 0 && e.c.Sleep != nil {
		e.c.Sleep(time.Duration(obs.LatencyMS * float64(time.Millisecond)))
	}
	if e.tools == nil {
		e.tools = make(map[string]int, 6)
	}
	e.tools[call.Tool]++
	e.turns = append(e.turns, trainer.Turn{Call: call, Observe: &obs})
	if len(e.c.Milestones) > 0 {
		e.reach(call, &obs)
	}
	return obs
}

// Say records a turn that called no tool: an answer, or words out of form.
// A response, if there is one, is what the policy gets back.
func (e *Episode) Say(raw, response string) {
	t := trainer.Turn{Raw: raw}
	if response != "" {
		t.Observe = &trainer.Observed{Text: response, Error: ErrCall}
	}
	e.turns = append(e.turns, t)
}

// orderArgs lists arguments in the tool's order, unknown ones behind them.
func orderArgs(tool string, args map[string]any) []trainer.Arg {
	list := make([]trainer.Arg, 0, len(args))
	params := toolParams(tool)
	for _, name := range params {
		if x, ok := args[name]; ok {
			list = append(list, trainer.Arg{Name: name, Value: argText(x)})
		}
	}
	if len(list) == len(args) {
		return list
	}
	for _, name := range slices.Sorted(maps.Keys(args)) {
		if !slices.Contains(params, name) {
			list = append(list, trainer.Arg{Name: name, Value: argText(args[name])})
		}
	}
	return list
}

func argText(x any) string {
	if s, ok := x.(string); ok {
		return s
	}
	v := toValue(x)
	if f, ok := x.(float64); ok {
		v = Value{Kind: Number, Num: f}
	}
	return v.show()
}

// Finish ends the episode with a plan (the zero Plan is none) and judges it.
// end is one of the End constants; formatError says in words what was out of
// form, "" for nothing. Later calls are ignored.
func (e *Episode) Finish(p Plan, end string, formatError string) {
	if e.finished {
		return
	}
	e.finished = true
	e.plan, e.end, e.formatError = p, end, formatError
	e.overlong = end == EndContext
	e.judgement = Judge(e.w, e.q, p, e.c.Profile)
	e.judgement.Draw = sandbox.Mix(e.c.Failures.Seed, e.c.ID)
	if _, paid := e.c.Milestones[milestonePlan]; paid && e.judgement.Delivered {
		e.reached = append(e.reached, milestone{milestonePlan, len(e.turns)})
	}
}

// SetAnswer keeps the final answer as it was written.
func (e *Episode) SetAnswer(answer string) { e.answer = answer }

// Judgement returns the verdict of the profile that pays, after Finish.
func (e *Episode) Judgement() Judgement { return e.judgement }

// FormatError says what was out of form, "" for nothing.
func (e *Episode) FormatError() string { return e.formatError }

// Reward pays the finished episode with one of the published rewards and
// notes it for the trajectory.
func (e *Episode) Reward(kind string, stages []float64, progress float64) float64 {
	return e.Pay(Reward{Kind: kind, Stages: stages}, progress)
}

// Pay is Reward with all that a reward can be. Milestones that the episode's
// configuration pays for are added.
func (e *Episode) Pay(r Reward, progress float64) float64 {
	e.reward, e.components = r.Score(progress, e.judgement, e.milestonePay(), e.formatError != "")
	e.rewardKind = r.Kind
	return e.reward
}

// Trajectory returns the record: query, turns, plan with costs and the turn
// that first showed each item, verdicts, passes by profile, scores, reward.
// The caller fills in who sampled it (ID, Phase, Policy, Step, Group, …).
func (e *Episode) Trajectory() trainer.Trajectory {
	j := &e.judgement
	t := trainer.Trajectory{
		Query: e.q.record(), Turns: e.turns, Answer: e.answer,
		Profile: string(e.c.Profile), Verdicts: j.Verdicts, Cost: j.Cost, Budget: e.q.Budget,
		Reward: e.reward, RewardKind: e.rewardKind, Components: e.components,
		Success: j.Success, FormatError: e.formatError, Overlong: e.overlong, End: e.end,
		ToolCalls: e.calls, ToolErrors: e.errors, Injected: e.injected, Tools: e.tools,
	}
	for i := range e.turns {
		t.Generated += e.turns[i].Tokens
		t.Tokens += e.turns[i].Tokens
		if o := e.turns[i].Observe; o != nil {
			t.Tokens += o.Tokens
		}
	}
	if !e.finished {
		return t
	}
	t.Scores = j.Scores()
	if len(e.reached) > 0 {
		t.Labels = map[string]string{"milestones": milestoneLabel(e.Milestones())}
	}
	t.Passes = e.Passes()
	t.Plan = e.planRecord()
	return t
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Passes tells for each profile whether the plan passes everything.
func (e *Episode) Passes() map[string]bool {
	passes := make(map[string]bool, 3)
	for _, pr := range Profiles() {
		if pr == e.c.Profile {
			passes[string(pr)] = e.judgement.Success
			continue
		}
		passes[string(pr)] = Judge(e.w, e.q, e.plan, pr).Success
	}
	return passes
}

func (e *Episode) planRecord() []trainer.Day {
	days := e.plan.Strict()
	list := make([]trainer.Day, len(days))
	for i := range days {
		d := days[i].record()
		if i < len(e.judgement.DayCosts) {
			d.Costs = e.judgement.DayCosts[i]
			for _, f := range infoFields {
				d.Cost += d.Costs[f.String()]
			}
		}
		d.Found = e.found(&days[i])
		list[i] = d
	}
	return list
}

// record is the query in the form that trajectories carry.
func (q *Query) record() trainer.Query {
	return trainer.Query{Hash: q.Hash(), Text: q.Text, Level: q.Level, Org: q.Org, Dest: q.Dest, Days: q.Days,
		Dates: q.Dates, People: q.People, Constraints: q.Wishes()}
}
