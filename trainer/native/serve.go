package native

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"sync"

	"alidade/sandbox/serve"
	"alidade/sandbox/travel"
)

// TokenEnv is the variable that holds the environment server's token in
// native processes.
const TokenEnv = "ALIDADE_ENV_TOKEN"

// serve starts the environment server of this run on a free port of loopback.
// stop ends it and waits.
func (r *run) serve(ctx context.Context) (stop func(), err error) {
	c, err := serve.ConfigOf(r.recipe, r.spec.Seed)
	if err != nil {
		return nil, fmt.Errorf("environment server: %w", err)
	}
	form := formOf(r.recipe)
	c.World = r.set.world.World
	c.Tasks = serve.Tasks{splitTrain: serve.TasksOf(r.set.train)}
	if len(r.set.eval) > 0 {
		c.Tasks[splitEval] = serve.TasksOf(r.set.eval)
	}
	c.Form, c.System = serve.FormReact, systemPrompt(form)
	if form == FormTools {
		c.Form = serve.FormNative
	}
	r.token = rand.Text()
	c.Token, c.Record, c.Logger = r.token, r.book.scored, r.log
	s, err := serve.New(c)
	if err != nil {
		return nil, fmt.Errorf("environment server: %w", err)
	}
	l, err := serve.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("environment server: %w", err)
	}
	tools, err := json.Marshal(travel.ToolSchemas())
	if err != nil {
		return nil, err
	}
	r.env = EnvServer{URL: "http://" + l.Addr().String(), TokenEnv: TokenEnv, Tools: tools, Open: s.Open, Record: r.book.scored}
	// It outlives a request to stop: the native process may be finishing a step.
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.Serve(serving, l); err != nil {
			r.log.Error("environment server ended", "err", err)
		}
	})
	return func() { cancel(); wg.Wait() }, nil
}
