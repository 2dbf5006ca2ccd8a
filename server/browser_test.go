package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"alidade/ablation"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"
)

// page drives one browser tab; each step says what it waited for.
type page struct {
	t   *testing.T
	ctx context.Context
}

// js evaluates an expression in the page.
func js[T any](p page, expr string) T {
	p.t.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expr))
	if err != nil {
		p.t.Fatalf("%s: %v", expr, err)
	}
	return v
}

// until waits for an expression to become true.
func (p page) until(what, expr string) {
	p.t.Helper()
	waitFor(p.t, time.Minute, what, func() bool {
		v, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool]("!!("+expr+")"))
		return err == nil && v
	})
}

func (p page) open(url string) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, chromedp.Navigate(url), chromedp.WaitReady(chromedp.CSS("body[data-ready]"))); err != nil {
		p.t.Fatalf("open %s: %v", url, err)
	}
}

func (p page) click(selector string) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, chromedp.ScrollIntoView(chromedp.CSS(selector)), chromedp.Click(chromedp.CSS(selector))); err != nil {
		p.t.Fatalf("click %s: %v", selector, err)
	}
}

// fill sets a field as typing would.
func (p page) fill(name, value string) {
	p.t.Helper()
	ok := js[bool](p, fmt.Sprintf(`(() => {
		const all = [...document.getElementsByName(%q)];
		const el = all.find((e) => e.type === "radio" ? e.value === %q : true);
		if (!el) return false;
		if (el.type === "radio") el.checked = true; else el.value = %q;
		el.dispatchEvent(new Event("input", { bubbles: true }));
		el.dispatchEvent(new Event("change", { bubbles: true }));
		return true;
	})()`, name, value, value))
	if !ok {
		p.t.Fatalf("no field %s that can be %q", name, value)
	}
}

func (p page) text(selector string) string {
	p.t.Helper()
	return js[string](p, fmt.Sprintf(`[...document.querySelectorAll(%q)].map((e) => e.innerText).join("\n")`, selector))
}

// TestStoryInTheBrowser is a newcomer's first hour: a template, a changed
// factor, a launch, a chart that grows by itself, a trajectory with the reason
// of a failed check, and the report.
func TestStoryInTheBrowser(t *testing.T) {
	data := t.TempDir()
	srv := serve(t, data)
	p := page{t, browser(t)}
	problems := watchConsole(t, p.ctx)

	p.open(srv.here.URL + "/?token=" + srv.token)
	if at := js[string](p, "location.href"); strings.Contains(at, srv.token) {
		t.Errorf("the token stays in the address: %s", at)
	}

	// A template, made small.
	p.open(srv.here.URL + "/studies/new")
	p.click(`a.card[href*="star-table-1-quick"]`)
	p.until("the template's factor", `document.body.innerText.includes("CURRICULUM")`)
	for _, f := range [][2]string{
		{"base.sft.traces", "60"}, {"base.sft.epochs", "2"}, {"base.sft.control", "false"}, {"base.algorithm.group_size", "4"}, {"base.algorithm.prompts_per_step", "4"},
		{"base.budget.steps", "150"}, {"base.evaluation.every", "50"}, {"base.evaluation.queries", "16"}, {"base.evaluation.samples", "1"}, {"seeds", "1"},
	} {
		p.fill(f[0], f[1])
	}
	// A changed factor: two levels go.
	for _, level := range []string{"CURRICULUM", "SUCCESS"} {
		p.click(fmt.Sprintf(`button[aria-label="Remove level %s"]`, level))
		p.until("level "+level+" to go", fmt.Sprintf(`!document.querySelector('button[aria-label="Remove level %s"]')`, level))
	}
	p.until("two runs", `document.querySelector("[data-launch]").innerText.includes("Launch 2 runs")`)
	p.click("[data-launch]")
	p.until("the study's page", `/^\/studies\/\d+$/.test(location.pathname)`)

	// A chart grows without a reload.
	js[bool](p, `(window.__same = true)`)
	points := `Math.max(0, ...[...document.querySelectorAll("main")].flatMap((m) => [...m.innerText.matchAll(/([\d,  ]+) points/g)].map((x) => +x[1].replace(/\D/g, ""))))`
	p.until("first points", points+" > 0")
	first := js[float64](p, points)
	p.until("more points", fmt.Sprintf("%s > %v", points, first))
	if !js[bool](p, "window.__same === true") {
		t.Error("the page was loaded again while the chart grew")
	}
	runs := srv.wait(t, 1, 4*time.Minute)
	for _, r := range runs {
		if r.State != ablation.Succeeded {
			t.Fatalf("run %d %s: %s", r.ID, r.State, r.Cause)
		}
	}

	// A trajectory and the reason of a failed check.
	p.open(srv.here.URL + "/trajectories?study=1&success=no&phase=rl")
	p.click(`main a[href*="/trajectories/"]`)
	p.until("the trajectory", `/\/trajectories\/.+/.test(location.pathname)`)
	body := p.text("main")
	for _, want := range []string{"Turns", "Plan", "All checks"} {
		if !strings.Contains(body, want) {
			t.Errorf("the trajectory's page lacks %q", want)
		}
	}
	reason := p.text(".bad, [class*=reason], [class*=verdict]")
	if !strings.Contains(reason, "Day ") && !strings.Contains(reason, "day") && !strings.Contains(body, "plan") {
		t.Errorf("no reason of a failed check on the page:\n%s", body)
	}

	// The report, on its page and as files.
	p.open(srv.here.URL + "/studies/1/report")
	if !strings.Contains(p.text("main"), "Question and design") {
		t.Errorf("the report's page says:\n%.400s", p.text("main"))
	}
	for file, want := range map[string]string{"report.html": "<!doctype html>", "report.md": "# ", "report.csv": "arm,", "report.json": "{"} {
		body := srv.download(t, "/studies/1/"+file)
		if !strings.HasPrefix(strings.ToLower(body), want) && !strings.Contains(body, want) {
			t.Errorf("%s begins with %.60q, want %q", file, body, want)
		}
	}
	for _, m := range problems() {
		t.Errorf("browser console: %s", m)
	}
}

// download fetches a page or file with the token.
func (p *process) download(t *testing.T, path string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.here.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+p.token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s answered %d (%v): %.200s", path, res.StatusCode, err, b)
	}
	return string(b)
}

// watchConsole collects errors that pages report.
func watchConsole(t *testing.T, ctx context.Context) func() []string {
	t.Helper()
	var found []string
	done := make(chan struct{})
	console := chromedp.Console(ctx)
	go func() {
		defer close(done)
		for m := range console {
			if s := fmt.Sprint(m); strings.Contains(strings.ToLower(s), "error") || strings.Contains(s, "Content Security Policy") {
				found = append(found, s)
			}
		}
	}()
	return func() []string {
		if err := chromedp.Do(ctx, chromedp.Stop()); err != nil {
			t.Logf("stop: %v", err)
		}
		return found
	}
}

// TestSameStudyThroughThePage: each example, put into the New study page and
// launched there, gives the runs that the API gives for the file.
func TestSameStudyThroughThePage(t *testing.T) {
	srv := serve(t, t.TempDir())
	p := page{t, browser(t)}
	p.open(srv.here.URL + "/?token=" + srv.token)
	next := ablation.StudyID(1)
	for _, name := range []string{"rewards", "algorithm", "data-size", "difficulty", "scale", "failures"} {
		source, err := os.ReadFile("../examples/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		p.open(srv.here.URL + "/studies/new")
		js[bool](p, fmt.Sprintf(`(() => { const y = document.querySelector("[data-yaml]"); y.value = %s; y.dispatchEvent(new Event("input", { bubbles: true })); return true })()`, quoted(source)))
		js[bool](p, `(() => { document.querySelector('button[name=do][value=yaml]').click(); return true })()`)
		p.until("the form of "+name, fmt.Sprintf(`document.querySelector("[name=name]")?.value === %q && /Launch \d+ runs/.test(document.querySelector("[data-launch]")?.innerText ?? "")`, name))
		js[bool](p, `(() => { document.querySelector("[data-launch]").click(); return true })()`)
		p.until("the study's page", fmt.Sprintf("location.pathname === '/studies/%d'", next))
		file := srv.launch(t, string(source))
		if diff := cmp.Diff(plans(srv.runs(t, file)), plans(srv.runs(t, next))); diff != "" {
			t.Errorf("%s: the page's runs differ from the file's (-file +page):\n%s", name, diff)
		}
		for _, id := range []ablation.StudyID{next, file} {
			srv.call(t, http.MethodPost, fmt.Sprintf("/api/v1/studies/%d/stop", id), "", nil)
		}
		next = file + 1
	}
}

// quoted writes a text as a JavaScript literal.
func quoted(b []byte) string {
	out, _ := json.Marshal(string(b)) // a string always encodes
	return string(out)
}
