package endpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"alidade/ablation"
	"alidade/sandbox/travel"
	"alidade/trainer"
)

// episode is one conversation under way.
type episode struct {
	ask   *caller
	e     ablation.Endpoint
	model string
	react bool
	chat  travel.ReactConfig
	id    string
	past  []reply           // answered in earlier attempts, not yet played again
	own   []reply           // so far
	keep  func(reply) error // gets each new reply before it counts; nil = none
}

// play plays a job to its end. The error is the server's, the money's or the
// end of the context: the episode is then unfinished, and its replies are in
// the journal.
func (r *run) play(ctx context.Context, j job) (trainer.Trajectory, error) {
	p := &episode{
		ask: r.ask, e: r.recipe.Endpoint, model: r.model, react: r.react(), chat: travel.ReactOf(r.recipe),
		id: j.id, past: r.past(j.id), keep: r.journal.add,
	}
	c, err := travel.ConfigOf(r.recipe, r.spec.Seed)
	if err != nil {
		return trainer.Trajectory{}, err
	}
	c.ID = uint64(j.query)*uint64(r.recipe.Evaluation.Samples) + uint64(j.sample)
	e := travel.NewEpisode(r.panel.world.World, r.panel.queries[j.query], c)
	full, err := p.play(ctx, e)
	if err != nil {
		return trainer.Trajectory{}, err
	}
	t := p.record(e)
	t.ID, t.Group, t.Rollout = j.id, fmt.Sprintf("eval-endpoint-%d", j.query), j.sample
	t.Phase, t.Policy, t.Mode = phase, "policy", "sampled"
	t.RewardKind, t.Reward = "SUCCESS", share(t.Success)
	t.Components = []trainer.Component{{Name: "success", Value: t.Reward}}
	if full != "" {
		t.Labels["context"] = full
	}
	return t, nil
}

// play lets the model play e to its end. full is what the server said when
// the conversation outgrew the model's context, which is an outcome.
func (p *episode) play(ctx context.Context, e *travel.Episode) (full string, err error) {
	if p.react {
		err = travel.React(ctx, e, p.write, p.chat)
	} else {
		err = travel.Chat(ctx, e, p.call, p.chat)
	}
	var f *fault
	switch over := errors.As(err, &f) && f.kind == overflow; {
	case over && len(p.own) == 0: // the task itself does not fit: that is no outcome
		f.kind = refused
		return "", f
	case over:
		e.Finish(travel.Plan{}, travel.EndContext, "")
		return f.text, nil
	}
	return "", err
}

// write is the model's turn in the text form.
func (p *episode) write(ctx context.Context, messages []travel.Message) (string, error) {
	list := make([]travel.ChatMessage, len(messages))
	for i, m := range messages {
		list[i] = travel.ChatMessage{Role: m.Role, Content: m.Content}
	}
	r, err := p.next(ctx, list, nil)
	if err != nil {
		return "", err
	}
	return r.spoken(true), nil
}

// call is the model's turn in the native form.
func (p *episode) call(ctx context.Context, messages []travel.ChatMessage, tools []json.RawMessage) (travel.ChatMessage, error) {
	r, err := p.next(ctx, messages, tools)
	if err != nil {
		return travel.ChatMessage{}, err
	}
	return travel.ChatMessage{Role: "assistant", Content: r.spoken(false), ToolCalls: r.Calls}, nil
}

// next is the model's next turn: from the journal as long as it has one.
func (p *episode) next(ctx context.Context, messages []travel.ChatMessage, tools []json.RawMessage) (reply, error) {
	turn := len(p.own)
	if turn < len(p.past) {
		p.own = append(p.own, p.past[turn])
		return p.past[turn], nil
	}
	size := 0
	for _, m := range messages {
		size += len(m.Content)
		for _, c := range m.ToolCalls {
			size += len(c.Function.Name) + len(c.Function.Arguments)
		}
	}
	for _, t := range tools {
		size += len(t)
	}
	r, err := p.ask.call(ctx, request(p.e, p.model, messages, p.own, tools), size)
	if err != nil {
		return reply{}, err
	}
	r.Episode, r.Turn = p.id, turn
	for i := range r.Calls {
		if r.Calls[i].ID == "" {
			r.Calls[i].ID = callID(turn, i)
		}
	}
	if len(tools) > 0 && r.unparsed() && !p.ask.native() {
		return reply{}, &fault{kind: refused, code: "no-tool-parser",
			text: "a tool call came as text, and none came as a call: start the server with a tool-call parser (vLLM: --enable-auto-tool-choice --tool-call-parser, SGLang: --tool-call-parser, llama.cpp: --jinja), or use environment.form react"}
	}
	if p.keep != nil {
		if err := p.keep(r); err != nil {
			return reply{}, err
		}
	}
	p.own = append(p.own, r)
	return r, nil
}

// record is the finished episode's trajectory, with the server's own counts
// of tokens where it gave them, and what it cost.
func (p *episode) record(e *travel.Episode) trainer.Trajectory {
	t := e.Trajectory()
	b := bill{}
	t.Generated = 0
	for i, r := range p.own {
		b.add(r)
		if i < len(t.Turns) {
			t.Turns[i].Tokens = r.Out
		}
		t.Generated += r.Out
	}
	if n := len(p.own); n > 0 {
		t.Tokens = p.own[n-1].In + p.own[n-1].Out // of the whole conversation
	}
	labels := b.labels(p.e)
	for k, v := range t.Labels {
		labels[k] = v
	}
	labels["model"] = p.model
	t.Labels = labels
	return t
}

// bill adds up the calls of an episode.
type bill struct {
	in, out, cached, thought int // tokens
	calls, retries, cut      int
	cost, seconds            float64
	estimated, refused       bool
}

func (b *bill) add(r reply) {
	b.calls++
	b.in, b.out, b.cached, b.thought = b.in+r.In, b.out+r.Out, b.cached+r.Cached, b.thought+r.Thought
	b.retries += r.Retries
	b.cost += r.Cost
	b.seconds += r.Seconds
	b.estimated = b.estimated || r.Estimated
	b.refused = b.refused || r.Finish == "content_filter" || r.Refusal != ""
	if r.Finish == "length" {
		b.cut++
	}
}

// The labels of a trajectory that hold its bill.
const (
	labelCost    = "cost $"
	labelIn      = "prompt tokens"
	labelOut     = "generated tokens"
	labelCalls   = "calls"
	labelSeconds = "server seconds"
)

func (b *bill) labels(e ablation.Endpoint) map[string]string {
	m := map[string]string{
		labelIn: strconv.Itoa(b.in), labelOut: strconv.Itoa(b.out), labelCalls: strconv.Itoa(b.calls),
		labelSeconds: strconv.FormatFloat(b.seconds, 'f', 3, 64),
	}
	if e.PriceIn > 0 || e.PriceOut > 0 {
		m[labelCost] = strconv.FormatFloat(b.cost, 'f', 6, 64)
	}
	for name, n := range map[string]int{"cached tokens": b.cached, "reasoning tokens": b.thought, "retries": b.retries, "turns cut off": b.cut} {
		if n > 0 {
			m[name] = strconv.Itoa(n)
		}
	}
	if b.estimated {
		m["tokens"] = "estimated: the server did not count them"
	}
	if b.refused {
		m["refused"] = "the server filtered or refused a turn"
	}
	return m
}

func share(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
