package web

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"alidade/static"
	"alidade/store"
	"alidade/trainer"
)

// eval answers a JavaScript expression in the page.
func eval[T any](t *testing.T, ctx context.Context, js string) T {
	t.Helper()
	out, err := chromedp.Run(ctx, chromedp.Evaluate[T](js))
	if err != nil {
		t.Fatalf("%s: %v", js, err)
	}
	return out
}

// until waits for a JavaScript expression to hold.
func until(t *testing.T, ctx context.Context, js string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		// A page that is being left has no answer: ask again.
		if ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+js+")")); err == nil && ok {
			return
		}
	}
	t.Fatalf("never: %s\n%s", js, eval[string](t, ctx, "document.querySelector('main').innerText.slice(0, 1500)"))
}

func visit(t *testing.T, ctx context.Context, url string) {
	t.Helper()
	if err := chromedp.Do(ctx, chromedp.Navigate(url), chromedp.WaitReady(chromedp.CSS("body[data-ready]"))); err != nil {
		t.Fatalf("%s: %v", url, err)
	}
}

func keys(t *testing.T, ctx context.Context, text string) {
	t.Helper()
	if err := chromedp.Do(ctx, chromedp.KeyEvent(text)); err != nil {
		t.Fatal(err)
	}
}

// The form follows what is typed: factors by key and picker, problems under
// the field, the file in step, the draft kept, and the launch.
func TestNewStudyInBrowser(t *testing.T) {
	ctx := browser(t)
	s := openStore(t)
	srv, _ := newTestSite(t, s, nil)
	if _, built := testAssets(t)["app.js"]; !built {
		t.Skip("the browser bundle is not built")
	}
	visit(t, ctx, srv.URL+"/studies/new?template=star-table-1-quick")
	until(t, ctx, `document.querySelector('[data-launch]').textContent.includes('Launch 8 runs')`)

	// a problem shows under its field while typing, and leads there
	eval[bool](t, ctx, `(() => { const i = document.getElementById('base.algorithm.clip_high'); i.focus(); i.value = '0.1'; i.dispatchEvent(new Event('input', {bubbles: true})); return true })()`)
	until(t, ctx, `document.getElementById('p-algorithm.clip_high').textContent.includes('Below clip low')`)
	until(t, ctx, `document.querySelector('[data-launch]').getAttribute('aria-disabled') === 'true'`)
	if !eval[bool](t, ctx, `document.activeElement.id === 'base.algorithm.clip_high' && document.activeElement.value === '0.1'`) {
		t.Error("checking took the focus or the text away")
	}
	eval[bool](t, ctx, `(document.querySelector('[data-field="algorithm.clip_high"] [data-reset]').click(), true)`)
	until(t, ctx, `document.getElementById('base.algorithm.clip_high').value === '0.28'`)

	// f makes the focused field a factor
	eval[bool](t, ctx, `(document.getElementById('base.algorithm.group_size').focus(), true)`)
	keys(t, ctx, "f")
	until(t, ctx, `document.querySelectorAll('.factor').length === 2`)
	until(t, ctx, `document.querySelector('[data-launch]').textContent.includes('Launch 16 runs')`)

	// the picker finds a key by its words
	eval[bool](t, ctx, `(document.querySelector('#d-picker > summary').click(), true)`)
	until(t, ctx, `document.activeElement.hasAttribute('data-picker-find')`)
	keys(t, ctx, "failure rate")
	until(t, ctx, `document.querySelector('[data-picker] button[data-at]')?.value === 'factor-add:environment.tool_failure_rate'`)
	keys(t, ctx, "\r")
	until(t, ctx, `document.querySelectorAll('.factor').length === 3`)
	keys(t, ctx, "0.2\r")
	until(t, ctx, `[...document.querySelectorAll('.factor')].pop().querySelectorAll('.level').length === 3`)
	until(t, ctx, `document.querySelector('[data-yaml]').value.includes('environment.tool_failure_rate')`)

	// the file fills the form
	eval[bool](t, ctx, `(() => { const y = document.querySelector('[data-yaml]'); y.value = y.value.replace(/^seeds:.*$/m, 'seeds: [7]'); y.dispatchEvent(new Event('input', {bubbles: true})); return true })()`)
	until(t, ctx, `document.getElementById('f-seeds').value === '7'`)

	// the draft comes back
	until(t, ctx, `document.querySelector('[data-draft-note]').textContent.includes('Draft kept')`)
	visit(t, ctx, srv.URL+"/studies/new")
	until(t, ctx, `document.querySelectorAll('.factor').length === 3 && document.getElementById('f-seeds').value === '7'`)

	// one at a time, then launch by keyboard
	eval[bool](t, ctx, `(document.querySelector('input[name=design][value=one-factor]').click(), true)`)
	until(t, ctx, `document.querySelector('[data-launch]').textContent.includes('Launch 7 runs')`)
	eval[bool](t, ctx, `(document.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', ctrlKey: true, bubbles: true, cancelable: true})), true)`)
	until(t, ctx, `location.pathname === '/studies/1'`)
	rec, err := s.Study(t.Context(), 1)
	if err != nil || len(rec.Study.Factors) != 3 || rec.Study.Seeds[0] != 7 {
		t.Errorf("launched %+v, %v", rec.Study, err)
	}
}

// Turns, folds and the matrix by keyboard; hostile text stays text.
func TestInspectInBrowser(t *testing.T) {
	ctx := browser(t)
	if _, built := testAssets(t)["app.js"]; !built {
		t.Skip("the browser bundle is not built")
	}
	s := openStore(t)
	bad := sampleTrajectory(41, 0, 4)
	bad.Query.Text = strings.Join(payloads, " ")
	bad.Turns[0].Think, bad.Answer = bad.Query.Text, bad.Query.Text
	run := fillTrajectories(t, s, 2, bad, trainer.Trajectory{ID: "none", Phase: "eval", Query: bad.Query, End: "turns", RewardKind: "SUM"})
	srv, _ := newTestSite(t, s, nil)
	at := fmt.Sprintf("%s/runs/%d", srv.URL, run)

	visit(t, ctx, at+"/trajectories/rl-40-1-4")
	keys(t, ctx, "jj")
	until(t, ctx, `location.hash === '#t2' && document.querySelector('#t2.current') && document.querySelector('[data-strip-turn="2"].current')`)
	keys(t, ctx, "o")
	until(t, ctx, `[...document.querySelectorAll('details.turn')].every(t => t.open)`)
	if !eval[bool](t, ctx, `(() => { const b = document.querySelector('#t4 [data-unfold-rows]'); b.click(); return !b.parentElement.querySelector('tbody.folded').hidden })()`) {
		t.Error("rows do not unfold")
	}
	keys(t, ctx, "l")
	until(t, ctx, `location.pathname.endsWith('rl-40-1-5')`)

	visit(t, ctx, at+"/groups/rl-40-1")
	until(t, ctx, `document.querySelector('#reason [data-who]').textContent === 'rollout 2'`)
	eval[bool](t, ctx, `(document.querySelector('a.cell.selected').focus(), true)`)
	before := eval[int](t, ctx, `document.getElementById('reason').offsetHeight`)
	keys(t, ctx, kb.ArrowRight)
	until(t, ctx, `document.querySelector('#reason [data-who]').textContent === 'rollout 3'`)
	if after := eval[int](t, ctx, `document.getElementById('reason').offsetHeight`); after != before {
		t.Errorf("the reason line went from %d to %d px", before, after)
	}

	for _, page := range []string{"/trajectories/" + bad.ID, "/trajectories/none", "/trajectories/" + bad.ID + "?view=raw", "/groups/" + bad.Group} {
		visit(t, ctx, at+page)
		if n := eval[int](t, ctx, `document.querySelectorAll('main script, main img, main style, main a[href^="javascript:"], main a[href^="data:"]').length`); n != 0 {
			t.Errorf("%s: %d elements came out of a text", page, n)
		}
		if seen := eval[bool](t, ctx, `performance.getEntriesByType('resource').some(r => !r.name.startsWith(location.origin))`); seen {
			t.Errorf("%s: a request left", page)
		}
	}
}

// testAssets are the bundled files, none before the bundle is built.
func testAssets(t *testing.T) map[string]static.File {
	t.Helper()
	files, err := static.Files()
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// Rollouts that come in are announced and move nothing.
func TestNewRolloutsAreAnnounced(t *testing.T) {
	ctx := browser(t)
	if _, built := testAssets(t)["app.js"]; !built {
		t.Skip("the browser bundle is not built")
	}
	s := openStore(t)
	run := fillTrajectories(t, s, 1)
	hub := NewHub(HubConfig{})
	go hub.Run(t.Context())
	srv, _ := newTestSite(t, s, func(c *Config) { c.Hub = hub })
	visit(t, ctx, srv.URL+"/trajectories")
	until(t, ctx, `document.getElementById('link-state').dataset.state === 'live'`)
	var events []trainer.Event
	for _, tr := range sampleGroup(41, 5) {
		events = append(events, trainer.Event{V: trainer.Version, Kind: trainer.KindTrajectory, T: time.Now().UnixMilli(), Trajectory: &tr})
	}
	commit, err := s.RunWriter().Append(t.Context(), store.Batch{Run: run, Attempt: 1, Offset: 1000, Events: events})
	if err != nil {
		t.Fatal(err)
	}
	hub.Publish(commit)
	until(t, ctx, `!document.querySelector('[data-new]').hidden && document.querySelector('[data-new]').textContent === '8 new'`)
	if n := eval[int](t, ctx, `document.querySelectorAll('.rollouts tbody tr').length`); n != 8 {
		t.Errorf("%d rows before the list is read again, want 8", n)
	}
	eval[bool](t, ctx, `(document.querySelector('[data-new]').click(), true)`)
	until(t, ctx, `document.querySelectorAll('.rollouts tbody tr').length === 16`)
}
