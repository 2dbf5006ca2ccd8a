package endpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// maxBody bounds what is read of one answer, bytes.
const maxBody = 32 << 20

var errBody = fmt.Errorf("the answer is longer than %d MiB", maxBody>>20)

// exchange is what a server answered, whatever a client makes of it.
type exchange struct {
	status int // 0 = no answer
	header http.Header
	body   []byte // without the key
}

type exchangeKey struct{}

// transport keeps each answer whole for the exchange in the request's
// context. Servers differ in answers, above all in errors, more than the
// client's types allow.
type transport struct {
	base http.RoundTripper
	key  string
}

func newHTTP(key string, concurrency int) *http.Client {
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.MaxIdleConnsPerHost, base.MaxIdleConns = concurrency, concurrency
	base.ResponseHeaderTimeout = 0 // a generation may take minutes; the call's own limit holds
	return &http.Client{
		Transport: &transport{base: base, key: key},
		// A redirect would carry the key elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := t.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxBody+1))
	if closeErr := res.Body.Close(); err == nil {
		err = closeErr
	}
	if err == nil && len(body) > maxBody {
		err = errBody
	}
	if err != nil {
		return nil, err
	}
	body = hide(body, t.key)
	if x, ok := r.Context().Value(exchangeKey{}).(*exchange); ok {
		x.status, x.header, x.body = res.StatusCode, res.Header, body
	}
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return res, nil
}

// CloseIdleConnections is what http.Client's method of that name calls.
func (t *transport) CloseIdleConnections() {
	if base, ok := t.base.(*http.Transport); ok {
		base.CloseIdleConnections()
	}
}

// sleep waits, or returns why it should not.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// overtime tells whether a call, not the run, ran out of time.
func overtime(ctx, call context.Context) bool {
	return ctx.Err() == nil && errors.Is(call.Err(), context.DeadlineExceeded)
}
