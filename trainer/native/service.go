package native

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// service serves what the native process of a plan calls back, on a free port
// of loopback, and adds its address to the plan's environment. end stops it:
// calls under way have lingers to end. A plan without a service has nothing
// to end.
func (r *run) service(ctx context.Context, plan *Plan) (end func(), err error) {
	if plan.Serve == nil {
		return func() {}, nil
	}
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("service of the trainer's plan: %w", err)
	}
	for _, name := range plan.Serve.URLEnv {
		plan.Env = append(plan.Env, name+"=http://"+l.Addr().String())
	}
	// No limit on an answer: a call may last as long as an episode.
	s := &http.Server{Handler: plan.Serve.Handler, ReadHeaderTimeout: 30 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			r.log.Error("service of the trainer's plan ended", "err", err)
		}
	}()
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lingers)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			_ = s.Close() // the callers are gone
		}
		<-done
	}, nil
}
