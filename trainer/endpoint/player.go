package endpoint

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"alidade/ablation"
	"alidade/sandbox/travel"
	"alidade/trainer"
)

// A Player plays episodes against OpenAI-compatible servers that appear and
// go while it runs, such as the gateway of a trainer, which opens an address
// for each rollout. Its connections are shared. It is safe for concurrent use.
type Player struct {
	e     ablation.Endpoint
	react bool
	chat  travel.ReactConfig
	http  *http.Client
}

// NewPlayer returns a player for a recipe's form and budgets. How a server is
// asked (retries, time-out, temperature, …) is e; its address, model and price
// are left out. No key is sent.
func NewPlayer(r ablation.Recipe, e ablation.Endpoint) *Player {
	if e.Concurrency == 0 {
		e.Concurrency = 256
	}
	e.URL, e.Model, e.PriceIn, e.PriceOut, e.Budget = "", "", 0, 0, 0
	return &Player{e: e, react: r.Environment.Form != "tools", chat: travel.ReactOf(r), http: newHTTP("", e.Concurrency)}
}

// Play lets the model at url (ending in /v1) play e to its end. The record
// has turns, tokens and the checks' verdicts; who sampled it, why, and the
// reward are left to the caller. An error means that the episode is
// unfinished and has no outcome; [ErrAway] is in it when the server was not
// there, not when it refused what it was asked.
func (p *Player) Play(ctx context.Context, url, model string, e *travel.Episode) (trainer.Trajectory, error) {
	cfg := p.e
	cfg.URL, cfg.Model = url, model
	play := &episode{ask: callerOver(p.http, cfg, "", 0), e: cfg, model: model, react: p.react, chat: p.chat}
	full, err := play.play(ctx, e)
	var f *fault
	switch {
	case errors.As(err, &f) && f.kind == transient:
		return trainer.Trajectory{}, errors.Join(ErrAway, err)
	case err != nil:
		return trainer.Trajectory{}, err
	}
	t := play.record(e)
	if full != "" {
		t.Labels["context"] = full
	}
	if len(play.own) > 0 {
		t.Labels[LabelTask] = strconv.Itoa(play.own[0].In)
	}
	return t, nil
}

// LabelTask is the label of a played trajectory that holds the tokens of its
// prompt: all that is not response.
const LabelTask = "task tokens"

// ErrAway says that a server did not answer, after all retries.
var ErrAway = errors.New("the model's server is away")

// Close closes idle connections.
func (p *Player) Close() { p.http.CloseIdleConnections() }
