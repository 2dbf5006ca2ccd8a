package endpoint

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"alidade/ablation"
	"alidade/trainer"
)

// run is an attempt under way.
type run struct {
	spec   trainer.Spec
	recipe ablation.Recipe
	log    *slog.Logger
	out    *trainer.Writer

	ask     *caller
	journal *journal
	panel   *panel
	model   string
	jobs    []job
	total   int                // episodes
	replies map[string][]reply // of earlier attempts, by episode; read only while episodes are played

	mu      sync.Mutex
	sum     *tally
	done    map[string]bool    // by episode
	invalid map[string]invalid // by episode, of the present pass
	dead    int                // episodes that ended invalid since a call was answered
	heard   int                // calls answered when dead began
	short   bool               // the cost cap is reached: no further episodes
	playing int                // episodes under way
	ended   chan struct{}      // closed when an episode has ended
}

// pilots are the episodes that start under a cost cap before any has shown
// what an episode costs.
const pilots = 4

// invalid is an episode that could not be finished, and why.
type invalid struct{ code, text string }

func (r *run) react() bool { return r.recipe.Environment.Form != "tools" }

// step is how many episodes are settled: finished, or in a run that is
// over with success, given up as invalid too.
func (r *run) step(ok bool) int64 {
	if ok {
		return int64(r.total)
	}
	return int64(r.sum.n)
}

// past are the replies that an episode has from before.
func (r *run) past(id string) []reply { return r.replies[id] }

// remember counts what earlier attempts have finished.
func (r *run) remember() error {
	jobs := make(map[string]job, len(r.jobs))
	for _, j := range r.jobs {
		jobs[j.id] = j
	}
	return finished(r.spec, func(t trainer.Trajectory) {
		j, ok := jobs[t.ID]
		if !ok || r.done[t.ID] || t.Query.Hash != r.panel.queries[j.query].Hash() {
			return
		}
		r.done[t.ID] = true
		r.sum.add(j.query, &t)
	})
}

// passes plays what is left, and what became invalid once more: a server may
// have been away for a while.
func (r *run) passes(ctx context.Context) error {
	for pass := range 2 {
		if pass > 0 {
			if err := r.remind(); err != nil {
				return err
			}
		}
		r.invalid = map[string]invalid{}
		var left []job
		for _, j := range r.jobs {
			if !r.done[j.id] {
				left = append(left, j)
			}
		}
		if err := r.pass(ctx, left); err != nil || len(r.invalid) == 0 {
			return err
		}
	}
	if n := len(r.invalid); float64(n) > r.recipe.Endpoint.MaxInvalid*float64(r.total) {
		return fmt.Errorf("%d of %d episodes could not be finished: %s; they have no score, and resuming the run asks them again", n, r.total, r.causes())
	}
	return nil
}

// remind reads the replies of this attempt's own unfinished episodes.
func (r *run) remind() error {
	if err := r.journal.close(); err != nil {
		return err
	}
	var err error
	r.journal, r.replies, _, err = openJournal(runDir(r.spec))
	return err
}

// pass plays jobs, so many at once.
func (r *run) pass(ctx context.Context, jobs []job) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	queue := make(chan job)
	var workers sync.WaitGroup
	for range min(r.ask.e.Concurrency, len(jobs)) {
		workers.Go(func() {
			for j := range queue {
				if err := r.one(ctx, j); err != nil {
					cancel(err)
				}
			}
		})
	}
feed:
	for _, j := range jobs {
		select {
		case queue <- j:
		case <-ctx.Done():
			break feed
		}
	}
	close(queue)
	workers.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if r.short {
		_, spent := r.ask.snapshot()
		return fmt.Errorf("%w: $%.4f of $%.4f are spent, and %d of %d episodes are finished; a study with a higher endpoint.budget asks the rest", errBudget, spent, r.recipe.Endpoint.Budget, r.sum.n, r.total)
	}
	return nil
}

// one plays a job. An error ends the run.
func (r *run) one(ctx context.Context, j job) error {
	if !r.begin(ctx) {
		return nil
	}
	defer r.end()
	t, err := r.play(ctx, j)
	var f *fault
	switch {
	case err == nil:
		return r.record(j, t)
	case errors.Is(err, errBudget):
		r.mu.Lock()
		r.short = true
		r.mu.Unlock()
		return nil
	case ctx.Err() != nil:
		return nil
	case !errors.As(err, &f):
		return err
	case f.kind == fatal:
		return fmt.Errorf("the server refuses all calls: %w", f)
	}
	return r.giveUp(j, f)
}

// begin waits until the cost cap has room for an episode of the usual cost
// beside those under way: otherwise many would run out of money half-way,
// and none be finished. False when there is no room, or the context is done.
func (r *run) begin(ctx context.Context) bool {
	for ctx.Err() == nil {
		_, spent := r.ask.snapshot()
		r.mu.Lock()
		fits := r.playing < pilots
		if n := float64(r.sum.n); n > 0 {
			fits = spent+float64(r.playing+1)*r.sum.cost/n <= r.recipe.Endpoint.Budget
		}
		fits = fits || r.recipe.Endpoint.Budget <= 0
		if !fits && r.playing == 0 {
			r.short = true
		}
		if fits && !r.short {
			r.playing++
		}
		short, ended := r.short, r.ended
		r.mu.Unlock()
		if short || fits {
			return !short
		}
		select {
		case <-ended:
		case <-ctx.Done():
		}
	}
	return false
}

func (r *run) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.playing--
	close(r.ended)
	r.ended = make(chan struct{})
}

// record writes a finished episode and the running figures.
func (r *run) record(j job, t trainer.Trajectory) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sum.add(j.query, &t)
	r.done[j.id] = true
	t.Step = int64(r.sum.n)
	n, spent := r.ask.snapshot()
	values := map[string]float64{
		"endpoint/success": r.sum.mean("eval/success"), "endpoint/spent": spent,
		"endpoint/calls": float64(n.calls), "endpoint/retries": float64(n.retries),
		"endpoint/invalid":  float64(len(r.invalid)) / float64(r.total),
		"rollout/tokens":    float64(t.Tokens),
		"rollout/generated": float64(t.Generated), "rollout/tool_calls": float64(t.ToolCalls),
		"rollout/format_error": share(t.FormatError != ""), "rollout/overlong": share(t.Overlong),
	}
	if n.answered > 0 {
		values["endpoint/latency_s"] = n.seconds / float64(n.answered)
	}
	return errors.Join(r.out.Trajectory(t), r.out.Points(t.Step, values))
}

// giveUp notes an episode that could not be finished. It ends the run when
// that looks like the fate of all.
func (r *run) giveUp(j job, f *fault) error {
	n, _ := r.ask.snapshot()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.invalid[j.id] = invalid{f.code, f.text}
	r.log.Warn("episode not finished", "episode", j.id, "why", f.text)
	if n.answered != r.heard {
		r.dead, r.heard = 0, n.answered
	}
	r.dead++
	switch {
	case f.kind == refused && r.dead >= 3 && (n.answered == 0 || f.code == "no-tool-parser" && n.native == 0):
		return fmt.Errorf("the server refuses all calls: %w", f)
	case f.kind == transient && r.dead >= max(4, r.ask.e.Concurrency):
		return fmt.Errorf("the server is away, %d episodes in a row could not be finished: %w", r.dead, f)
	}
	return nil
}

// causes counts why episodes are invalid, the commonest first.
func (r *run) causes() string {
	counts, text := map[string]int{}, map[string]string{}
	for _, v := range r.invalid {
		counts[v.code]++
		text[v.code] = v.text
	}
	codes := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(a, b)
	})
	var parts []string
	for _, c := range codes[:min(len(codes), 4)] {
		parts = append(parts, fmt.Sprintf("%d × %s", counts[c], text[c]))
	}
	return strings.Join(parts, "; ")
}

// finish writes the figures of what is finished, and what a person should
// know about the rest.
func (r *run) finish(cause error) error {
	var errs []error
	n, spent := r.ask.snapshot()
	step := r.step(cause == nil)
	alert := func(level, code, text string) {
		errs = append(errs, r.out.Alert(trainer.Alert{Level: level, Code: code, Text: text, Step: step}))
	}
	if k := len(r.invalid); k > 0 {
		alert("warn", "endpoint-invalid", fmt.Sprintf("%d of %d episodes could not be finished and have no score: %s", k, r.total, r.causes()))
	}
	if errors.Is(cause, errBudget) {
		alert("warn", "endpoint-budget", cause.Error())
	}
	if n.estimated > 0 {
		alert("info", "endpoint-usage", fmt.Sprintf("the server did not count the tokens of %d of %d calls: they are estimated at four bytes each, and costs with them", n.estimated, n.answered))
	}
	if n.cut > 0 {
		alert("info", "endpoint-cut", fmt.Sprintf("%d of %d turns were cut off at endpoint.max_tokens", n.cut, n.answered))
	}
	if r.sum.n == 0 {
		return errors.Join(errs...)
	}
	values := r.sum.final()
	values["endpoint/spent"], values["endpoint/invalid"] = spent, float64(len(r.invalid))/float64(r.total)
	faults := 0
	for _, k := range n.faults {
		faults += k
	}
	values["endpoint/calls"], values["endpoint/retries"], values["endpoint/faults"] = float64(n.calls), float64(n.retries), float64(faults)
	return errors.Join(append(errs, r.out.Points(step, values), r.out.Evaluation(r.sum.evaluation(r.spec.Run, r.panel, max(1, r.recipe.Evaluation.Samples), step)))...)
}
