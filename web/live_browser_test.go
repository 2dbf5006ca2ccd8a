package web

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"alidade/ablation"
	"alidade/store"
	"alidade/trainer"
)

// text returns what an element shows, once it is there.
func poll(expression string) chromedp.Action[chromedp.Void] {
	return chromedp.Poll[chromedp.Void](expression)
}

// TestLiveInBrowser opens a study, lets a run write, and looks at the page:
// charts, rows and rules move without a reload, and nothing is asked of
// another machine.
func TestLiveInBrowser(t *testing.T) {
	ctx := browser(t)
	s := openStore(t)
	hub := NewHub(HubConfig{})
	go hub.Run(t.Context())
	going, _ := fillStudies(t, s, time.Now())
	srv, runs := newTestSite(t, s, func(c *Config) { c.Hub = hub })

	var mu sync.Mutex
	var errors []string
	console := chromedp.Console(ctx)
	go func() {
		for m := range console {
			if text := fmt.Sprint(m); strings.Contains(text, "error") {
				mu.Lock()
				errors = append(errors, text)
				mu.Unlock()
			}
		}
	}()

	waiting, err := s.Runs(t.Context(), store.RunFilter{Study: going.ID, States: []ablation.State{ablation.Queued}})
	if err != nil || len(waiting) == 0 {
		t.Fatalf("waiting runs: %v, %v", waiting, err)
	}
	r := waiting[0]
	row := fmt.Sprintf(`document.querySelector('tr[data-run="%d"]')`, r.ID)
	if err := chromedp.Do(ctx,
		chromedp.EmulateViewport(1440, 1800),
		chromedp.Navigate(fmt.Sprintf("%s/studies/%d", srv.URL, going.ID)),
		chromedp.WaitVisible(chromedp.CSS("body[data-ready]")),
		poll(`document.querySelectorAll('figure.chart canvas').length >= 4`),
		poll(`document.getElementById('link-state').dataset.state === 'live'`),
		poll(row+`.textContent.includes('queued')`),
		chromedp.Evaluate[chromedp.Void](`window.marker = 'same page'`),
	); err != nil {
		t.Fatalf("open the study: %v", err)
	}
	points := `document.querySelector('figure.chart .source').textContent`
	before, err := chromedp.Run(ctx, chromedp.Evaluate[string](points))
	if err != nil {
		t.Fatal(err)
	}
	drive(t, s, r, curve{steps: 60, started: time.Now().Add(-2 * time.Minute), device: "cpu1", publish: hub.Publish})
	if err := chromedp.Do(ctx,
		poll(row+`.textContent.includes('running')`),
		poll(row+`.textContent.includes('60 / ')`),
		poll(fmt.Sprintf("%s !== %q", points, before)),
		poll(`window.marker === 'same page'`),
	); err != nil {
		t.Fatalf("the page does not follow: %v", err)
	}

	// C35: a line written now is on the page soon
	if err := chromedp.Do(ctx, chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`
		window.seen = new Promise(done => { const look = () => %s?.textContent.includes('61 / ') ? done(Date.now()) : setTimeout(look, 4); look(); })`, row))); err != nil {
		t.Fatal(err)
	}
	wrote := time.Now()
	c, err := s.RunWriter().Append(t.Context(), store.Batch{Run: r.ID, Attempt: 1, Offset: 1e6, Events: []trainer.Event{pointsEvent(61)}})
	if err != nil {
		t.Fatal(err)
	}
	hub.Publish(c)
	seen, err := chromedp.Run(ctx, chromedp.Evaluate[float64](`window.seen`, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("written → on the page: %.0f ms", seen-float64(wrote.UnixMilli()))

	// keyboard, search, theme, and an action with its undo
	steps := []struct {
		name string
		do   chromedp.Action[chromedp.Void]
	}{
		{"press /", chromedp.KeyEvent("/")},
		{"the finder opens", chromedp.WaitVisible(chromedp.CSS("dialog.finder-panel input"))},
		{"empty it of the / that the driver also types", chromedp.Evaluate[chromedp.Void](`document.querySelector('dialog input').value = ''`)},
		{"type", chromedp.KeyEvent("size of a group")},
		{"the study is found", poll(`document.querySelector('.finder-list [aria-selected="true"]')?.textContent.includes('Does the best reward')`)},
		{"press esc", chromedp.KeyEvent("\x1b")},
		{"the finder closes", poll(`!document.querySelector('dialog')`)},
		{"press t", chromedp.KeyEvent("t")},
		{"the theme changes", poll(`document.documentElement.dataset.theme === 'light'`)},
		{"pause", chromedp.Click(chromedp.CSS(`form[action$="/pause"] button`))},
		{"a toast says so", poll(`[...document.querySelectorAll('.toast')].some(t => t.textContent.includes('Paused'))`)},
		{"undo", chromedp.Evaluate[chromedp.Void](`[...document.querySelectorAll('.toast .button')].at(-1).click()`)},
		{"it is undone", poll(`[...document.querySelectorAll('.toast')].some(t => t.textContent.includes('Undone'))`)},
	}
	for _, step := range steps {
		if err := chromedp.Do(ctx, step.do); err != nil {
			page, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`document.activeElement.outerHTML.slice(0, 300) + ' | ' + (document.querySelector('dialog')?.textContent ?? 'no dialog')`))
			t.Fatalf("%s: %v; the page has %s", step.name, err, page)
		}
	}
	if got := strings.Join(runs.asked, "; "); got != fmt.Sprintf("pause study %d; resume study %[1]d", going.ID) {
		t.Errorf("the runner was asked: %s", got)
	}

	// clicking a curve opens the rollouts of its step
	if err := chromedp.Do(ctx,
		chromedp.Evaluate[chromedp.Void](`(() => { const o = document.querySelector('figure.chart .u-over'); const b = o.getBoundingClientRect();
			const at = {bubbles: true, clientX: b.left + b.width / 2, clientY: b.top + b.height / 2};
			o.dispatchEvent(new MouseEvent('mouseenter', at)); o.dispatchEvent(new MouseEvent('mousemove', at)); 
			setTimeout(() => { o.dispatchEvent(new MouseEvent('mousedown', at)); o.dispatchEvent(new MouseEvent('mouseup', at)); o.dispatchEvent(new MouseEvent('click', at)); }, 60); })()`),
	); err != nil {
		t.Errorf("click a curve: %v", err)
	}
	at := ""
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline) && !strings.Contains(at, "/trajectories?"); time.Sleep(50 * time.Millisecond) {
		at, _ = chromedp.Run(ctx, chromedp.Location()) // fails while the page changes
	}
	if half := r.Arm.Recipe.Budget.Steps / 2; !strings.Contains(at, "phase=eval") || !strings.Contains(at, fmt.Sprintf("from=%d&", half)) {
		t.Errorf("clicking a curve at step %d leads to %q", half, at)
	}
	if err := chromedp.Do(ctx, chromedp.WaitVisible(chromedp.CSS("body[data-ready]"))); err != nil {
		t.Error(err)
	}
	outside, err := chromedp.Run(ctx, chromedp.Evaluate[int](`performance.getEntriesByType('resource').filter(e => new URL(e.name).host !== location.host).length`))
	if err != nil || outside != 0 {
		t.Errorf("%d requests to other hosts, %v", outside, err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(errors) > 0 {
		t.Errorf("console: %v", errors)
	}
}

func pointsEvent(step int64) trainer.Event {
	return points(time.Now().UnixMilli(), step, map[string]float64{"train/success": .3, "reward/mean": 1.2})
}
