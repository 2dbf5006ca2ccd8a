package web

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"alidade/ablation"
	"alidade/templates"
)

// bigStudySite serves the page of one study made in memory, with as many runs
// and metrics as asked, and makes up the series that the page reads.
func bigStudySite(t *testing.T, runs, metrics int) *httptest.Server {
	t.Helper()
	st, err := newSite(Config{Store: openStore(t), NoAuth: true, Hub: NewHub(HubConfig{})})
	if err != nil {
		t.Fatal(err)
	}
	study := rewardsStudy()
	arms, err := ablation.Arms(study)
	if err != nil {
		t.Fatal(err)
	}
	d := studyData{rec: ablation.StudyRecord{ID: 1, Study: study}, last: map[ablation.RunID]map[string]ablation.Point{}}
	for i := range runs {
		r := ablation.Run{ID: ablation.RunID(i + 1), Study: 1, Arm: arms[i%4], Seed: uint64(i / 4), State: ablation.Succeeded, Attempt: 1, Step: 200, TotalSteps: 200, StartedAt: time.Unix(1e9, 0), EndedAt: time.Unix(1e9+100, 0)}
		d.runs = append(d.runs, r)
		d.last[r.ID] = map[string]ablation.Point{"eval/success": {Value: math.Mod(float64(i)*.37, 1)}, "reward/mean": {Value: float64(i)}, "train/success": {Value: math.NaN()}}
	}
	d.metrics = []string{"eval/success", "reward/mean", "train/success"}
	for i := range metrics {
		d.metrics = append(d.metrics, fmt.Sprintf("group%d/metric %d", i/100, i))
	}
	series := func(w http.ResponseWriter, r *http.Request) {
		var out []ablation.Series
		for _, m := range r.URL.Query()["metric"] {
			for run := range min(runs, 8) {
				s := ablation.Series{Run: ablation.RunID(run + 1), Metric: m, Total: 200}
				for step := range int64(200) {
					s.Points = append(s.Points, ablation.Point{Step: step, Wall: time.UnixMilli(step), Value: math.Sin(float64(step)/20 + float64(run))})
				}
				out = append(out, s)
			}
		}
		_, _ = w.Write(appendSeries(nil, out))
	}
	inner := st.handler()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/series"):
			series(w, r)
		case r.URL.Path == "/studies/1":
			if err := st.render(w, r, 200, templates.Study(st.view(r, "studies", "study", "Big"), studyView(d, time.Now()))); err != nil {
				t.Error(err)
			}
		default:
			inner.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(srv.Close)
	return srv
}

// TestTenThousandRuns is C1: the table of 10,000 runs shows its rows soon and
// never holds more than 200 of them; sorting and filtering stay quick, and
// what is not a number comes last both ways (C22).
func TestTenThousandRuns(t *testing.T) {
	srv := bigStudySite(t, 10_000, 0)
	ctx := browser(t)
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1440, 900), chromedp.Navigate(srv.URL+"/studies/1"), chromedp.WaitVisible(chromedp.CSS("body[data-ready]"))); err != nil {
		t.Fatal(err)
	}
	measured, err := chromedp.Run(ctx, chromedp.Evaluate[string](`(async () => {
		const box = document.getElementById('run-window');
		const rows = () => box.querySelectorAll('tbody tr[data-run]').length;
		const first = () => box.querySelector('tbody tr[data-run]')?.dataset.run;
		const click = (key) => { const at = performance.now(); box.querySelector('th[data-key-column="' + key + '"] button').click(); return performance.now() - at; };
		let most = rows(), slowest = 0;
		for (let y = 0; y < box.scrollHeight; y += 20000) {
			const at = performance.now();
			box.scrollTop = y;
			await new Promise(r => setTimeout(r, 30));
			most = Math.max(most, rows());
		}
		const sorts = [click('eval/success'), click('eval/success')];
		const nanFirst = (click('train/success'), box.querySelector('tbody tr[data-run]').children[7].textContent);
		const input = document.getElementById('run-filter');
		input.value = 'arm:sum success>50 seed:7';
		input.dispatchEvent(new Event('input', {bubbles: true}));
		await new Promise(r => setTimeout(r, 200));
		const nav = performance.getEntriesByType('navigation')[0];
		return JSON.stringify({most, sort: Math.round(Math.max(...sorts)), ready: Math.round(nav.domComplete - nav.responseEnd), left: rows(), count: document.getElementById('run-count').textContent, kb: Math.round(nav.encodedBodySize / 1000)});
	})()`, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatal(err)
	}
	t.Log(measured)
	var most, sort, ready, left int
	if _, err := fmt.Sscanf(measured, `{"most":%d,"sort":%d,"ready":%d,"left":%d`, &most, &sort, &ready, &left); err != nil {
		t.Fatalf("%s: %v", measured, err)
	}
	if most > 200 || most < 20 {
		t.Errorf("the table holds %d rows at most, want 20 to 200", most)
	}
	if left > 1 {
		t.Errorf("%d rows fit a filter that one run at most can fit", left)
	}
	if sort > 1000 {
		t.Errorf("a sort takes %d ms", sort)
	}
}

// TestTwoThousandMetrics is C2: with 2,000 metrics only charts in view are
// drawn, and scrolling does not block the page.
func TestTwoThousandMetrics(t *testing.T) {
	srv := bigStudySite(t, 8, 2000)
	ctx := browser(t)
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1440, 900), chromedp.Navigate(srv.URL+"/studies/1?open=all"), chromedp.WaitVisible(chromedp.CSS("body[data-ready]")), chromedp.Sleep(time.Second)); err != nil {
		t.Fatal(err)
	}
	measured, err := chromedp.Run(ctx, chromedp.Evaluate[string](`(async () => {
		const long = [];
		new PerformanceObserver(l => long.push(...l.getEntries().map(e => Math.round(e.duration)))).observe({entryTypes: ['longtask']});
		const before = document.querySelectorAll('canvas').length;
		for (let y = 0; y < 12000; y += 300) { scrollTo(0, y); await new Promise(r => setTimeout(r, 60)); }
		await new Promise(r => setTimeout(r, 500));
		long.sort((a, b) => b - a);
		return JSON.stringify({figures: document.querySelectorAll('figure.chart').length, before, drawn: document.querySelectorAll('canvas').length, longest: long[0] ?? 0, over50: long.length});
	})()`, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatal(err)
	}
	t.Log(measured)
	var figures, before, drawn int
	if _, err := fmt.Sscanf(measured, `{"figures":%d,"before":%d,"drawn":%d`, &figures, &before, &drawn); err != nil {
		t.Fatalf("%s: %v", measured, err)
	}
	if figures < 2000 || before > 20 || drawn > 600 {
		t.Errorf("%d figures, %d drawn at first, %d after scrolling; want 2,000, at most 20, only those passed", figures, before, drawn)
	}
}
