package endpoint

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"alidade/ablation"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// Waits between the tries of a call: doubled each time, with jitter.
const (
	firstWait   = 500 * time.Millisecond
	longestWait = time.Minute
)

var errBudget = errors.New("the cost cap is reached")

// A caller asks one server: with retries, all callers waiting when it asks to
// be left alone, and within the cost cap. It is safe for concurrent use.
type caller struct {
	e       ablation.Endpoint
	chat    openai.ChatCompletionService
	models  openai.ModelService
	timeout time.Duration
	first   time.Duration // wait before the first retry

	mu       sync.Mutex
	until    time.Time // nobody calls before
	spent    float64   // $, of all attempts
	held     float64   // $, the most that calls under way can cost
	inflight int
	changed  chan struct{} // closed when a call has ended
	newName  bool          // the server wants max_completion_tokens
	n        stats
}

// stats count what happened since the start of the attempt.
type stats struct {
	calls, answered, retries, estimated int
	native, cut                         int // replies with native calls; cut off at the turn budget
	in, out, cached                     int // tokens
	seconds                             float64
	faults                              map[string]int // by code
}

func newCaller(e ablation.Endpoint, key string, spent float64) *caller {
	if e.Concurrency == 0 {
		e.Concurrency = 16
	}
	return callerOver(newHTTP(key, e.Concurrency), e, key, spent)
}

// callerOver is newCaller with the connections of others.
func callerOver(client *http.Client, e ablation.Endpoint, key string, spent float64) *caller {
	if e.TimeoutS == 0 {
		e.TimeoutS = 600
	}
	options := []option.RequestOption{ // services, not the client: that would read keys from the environment
		option.WithBaseURL(strings.TrimRight(e.URL, "/") + "/"),
		option.WithHTTPClient(client),
		option.WithMaxRetries(0), // ours are counted, and know the run's state
	}
	if key != "" {
		options = append(options, option.WithAPIKey(key))
	}
	return &caller{
		e: e, chat: openai.NewChatCompletionService(options...), models: openai.NewModelService(options...),
		timeout: time.Duration(e.TimeoutS * float64(time.Second)), first: firstWait,
		spent: spent, changed: make(chan struct{}), n: stats{faults: map[string]int{}},
	}
}

// call asks until there is a reply or a reason to give up: a *fault, the end
// of the context, or errBudget.
func (c *caller) call(ctx context.Context, p openai.ChatCompletionNewParams, promptBytes int) (reply, error) {
	most := c.cost(promptBytes/3, c.turnBudget())
	for try := 0; ; {
		if err := c.admit(ctx, most); err != nil {
			return reply{}, err
		}
		began := time.Now()
		r, f := c.once(ctx, p)
		if f == nil {
			r.Retries, r.Seconds = try, time.Since(began).Seconds()
			if r.Estimated {
				r.In, r.Out = max(r.In, promptBytes/4), max(r.Out, (r.size()+3)/4)
			}
			r.Cost = c.cost(r.In, r.Out)
		}
		c.release(most, &r, f)
		switch {
		case f == nil:
			return r, nil
		case ctx.Err() != nil:
			return reply{}, context.Cause(ctx)
		case f.kind == refused && c.rename(f):
			continue
		case f.kind != transient:
			return reply{}, f
		case try >= c.e.Retries:
			f.text = fmt.Sprintf("%s (%d tries)", f.text, try+1)
			return reply{}, f
		}
		if err := c.pause(ctx, f, try); err != nil {
			return reply{}, err
		}
		try++
	}
}

// turnBudget is what a turn may generate, as far as the cost cap is concerned.
func (c *caller) turnBudget() int {
	if c.e.MaxTokens > 0 {
		return c.e.MaxTokens
	}
	return 4096
}

func (c *caller) cost(in, out int) float64 {
	return (float64(in)*c.e.PriceIn + float64(out)*c.e.PriceOut) / 1e6
}

// admit waits until the server may be asked and the cost cap has room for the
// most that the call can cost. It gives up when nothing under way can make
// room any more.
func (c *caller) admit(ctx context.Context, most float64) error {
	for {
		c.mu.Lock()
		wait := time.Until(c.until)
		fits := c.e.Budget <= 0 || c.spent+c.held+most <= c.e.Budget
		if wait <= 0 && fits {
			c.held += most
			c.inflight++
			c.n.calls++
			c.mu.Unlock()
			return context.Cause(ctx)
		}
		idle, changed := c.inflight == 0, c.changed
		c.mu.Unlock()
		switch {
		case !fits && idle:
			return errBudget
		case !fits:
			select {
			case <-changed:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		default:
			if err := sleep(ctx, wait); err != nil {
				return err
			}
		}
	}
}

// release ends a call that admit let in.
func (c *caller) release(most float64, r *reply, f *fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held -= most
	c.inflight--
	close(c.changed)
	c.changed = make(chan struct{})
	n := &c.n
	if f != nil {
		n.faults[f.code]++
		return
	}
	c.spent += r.Cost
	n.answered++
	n.retries += r.Retries
	n.in, n.out, n.cached = n.in+r.In, n.out+r.Out, n.cached+r.Cached
	n.seconds += r.Seconds
	if r.Estimated {
		n.estimated++
	}
	if len(r.Calls) > 0 {
		n.native++
	}
	if r.Finish == "length" {
		n.cut++
	}
}

// once makes one call.
func (c *caller) once(ctx context.Context, p openai.ChatCompletionNewParams) (reply, *fault) {
	c.mu.Lock()
	newName := c.newName
	c.mu.Unlock()
	switch {
	case c.e.MaxTokens == 0:
	case newName:
		p.MaxCompletionTokens = openai.Int(int64(c.e.MaxTokens))
	default:
		p.MaxTokens = openai.Int(int64(c.e.MaxTokens))
	}
	x := &exchange{}
	call, cancel := context.WithTimeout(context.WithValue(ctx, exchangeKey{}, x), c.timeout)
	defer cancel()
	_, err := c.chat.New(call, p) // the exchange says more than its result
	switch {
	case x.status == 0 && overtime(ctx, call):
		return reply{}, &fault{kind: transient, code: "timeout", text: fmt.Sprintf("no answer within %v", c.timeout)}
	case x.status == 0 && err != nil:
		return reply{}, broken(err)
	case x.status >= 300:
		f := classify(x.status, x.header, x.body)
		f.oldName = c.e.MaxTokens > 0 && !newName && strings.Contains(f.text, newNameMark)
		return reply{}, f
	}
	return readReply(x.body)
}

// rename switches to the newer name of the turn budget when the server said
// that it does not know the older one.
func (c *caller) rename(f *fault) bool {
	if f.oldName {
		c.mu.Lock()
		c.newName = true
		c.mu.Unlock()
	}
	return f.oldName
}

// pause waits before the next try. When the server says for how long, or that
// it is too busy, all calls wait.
func (c *caller) pause(ctx context.Context, f *fault, try int) error {
	wait := min(c.first<<min(try, 16), longestWait)
	wait = wait/2 + rand.N(wait/2+1) // so that many do not come back at once
	if f.wait > 0 {
		c.mu.Lock()
		if until := time.Now().Add(f.wait); until.After(c.until) {
			c.until = until
		}
		c.mu.Unlock()
		wait = f.wait + rand.N(wait/2+1)
	}
	return sleep(ctx, wait)
}

// snapshot returns the counts and the money spent.
func (c *caller) snapshot() (stats, float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.n
	n.faults = make(map[string]int, len(c.n.faults))
	for k, v := range c.n.faults {
		n.faults[k] = v
	}
	return n, c.spent
}

// modelName is the recipe's, or the only one that the server offers.
func (c *caller) modelName(ctx context.Context) (string, error) {
	if c.e.Model != "" {
		return c.e.Model, nil
	}
	x := &exchange{}
	call, cancel := context.WithTimeout(context.WithValue(ctx, exchangeKey{}, x), min(c.timeout, time.Minute))
	defer cancel()
	page, err := c.models.List(call)
	switch {
	case x.status >= 300:
		return "", fmt.Errorf("recipe.endpoint.model is empty and the server does not list its models: %w", classify(x.status, x.header, x.body))
	case err != nil:
		return "", fmt.Errorf("recipe.endpoint.model is empty and the server does not list its models: %w", err)
	case len(page.Data) == 1:
		return page.Data[0].ID, nil
	}
	var names []string
	for _, m := range page.Data[:min(len(page.Data), 20)] {
		names = append(names, m.ID)
	}
	return "", fmt.Errorf("recipe.endpoint.model is empty and the server offers %d: %s", len(page.Data), strings.Join(names, ", "))
}

// native tells whether any reply has had native tool calls.
func (c *caller) native() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n.native > 0
}
