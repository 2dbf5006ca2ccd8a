package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"alidade/sandbox/travel/dataset"
)

// queryLines are n queries in the benchmark's form, each level in turn.
func queryLines(n int) string {
	var b strings.Builder
	for i := range n {
		level := []string{"easy", "medium", "hard"}[i%3]
		wish := []string{"null", `["Indian", "French"]`, `["Mexican"]`}[i%3]
		fmt.Fprintf(&b, `{"org": "Boise", "dest": "Reno", "days": 3, "visiting_city_number": 1, "date": ["2022-03-%02d", "2022-03-%02d", "2022-03-%02d"], "people_number": %d, "local_constraint": {"house rule": null, "cuisine": %s, "room type": null, "transportation": null}, "budget": %d, "query": "A trip, number %d.", "level": "%s"}`+"\n",
			1+i%20, 2+i%20, 3+i%20, 1+i%4, wish, 900+40*i, i, level)
	}
	return b.String()
}

func datasetSite(t testing.TB) (string, string) {
	t.Helper()
	s := openStore(t)
	fillStudies(t, s, time.Now())
	hub := NewHub(HubConfig{})
	go hub.Run(t.Context())
	srv, _ := newTestSite(t, s, func(c *Config) { c.Queue, c.Hub = &fakeQueue{store: s}, hub })
	return srv.URL, s.Dir()
}

func TestImportBrowseExport(t *testing.T) {
	base, dir := datasetSite(t)
	status, text := act(t, base+"/api/v1/datasets?name=sixty", queryLines(60))
	if status != 201 {
		t.Fatalf("import = %d: %s", status, text)
	}
	var made struct{ Hash, Path string }
	if err := json.Unmarshal([]byte(text), &made); err != nil {
		t.Fatal(err)
	}
	again, text := act(t, base+"/api/v1/datasets?name=other", queryLines(60))
	if again != 201 || !strings.Contains(text, made.Hash) {
		t.Errorf("the same content again = %d: %s", again, text)
	}
	for path, wants := range map[string][]string{
		"/datasets": {"sixty", "imported", made.Hash[:12], "20:20:20"},
		"/datasets/" + made.Hash: {"sixty", "1–50 of 60", "What is in it", "Budget", "33.3", "cuisine", "66.7", "A trip, number 0.", "Indian, French", "Parquet for verl",
			"Budget from "},
		"/datasets/" + made.Hash + "?page=2":      {"51–60 of 60"},
		"/datasets/" + made.Hash + "?page=9":      {"nothing on this page"},
		"/datasets/" + made.Hash + "?set=prompts": {"queries"},
	} {
		_, body, _ := get(t, base+path)
		for _, want := range wants {
			if !strings.Contains(body, want) {
				t.Errorf("GET %s: no %q", path, want)
			}
		}
	}
	for _, form := range exportForms {
		status, body, head := get(t, base+exportLink(made.Hash, "queries", form.name))
		if status != 200 || !strings.Contains(head.Get("Content-Disposition"), form.name+"."+form.ext) {
			t.Errorf("export as %s = %d, %s", form.name, status, head.Get("Content-Disposition"))
		}
		file := filepath.Join(t.TempDir(), "set."+form.ext)
		if err := os.WriteFile(file, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
		if lines, err := dataset.Read(file); err != nil || len(lines) != 60 {
			t.Errorf("export as %s reads back as %d queries: %v", form.name, len(lines), err)
		}
	}
	if status, _, _ := get(t, base+"/datasets/"+made.Hash+"/export?form=csv"); status != 422 {
		t.Errorf("export as csv = %d, want 422", status)
	}
	if _, err := os.Stat(filepath.Join(dir, made.Path)); err != nil {
		t.Errorf("the path of the answer: %v", err)
	}
}

func TestImportTellsEachBadLine(t *testing.T) {
	base, dir := datasetSite(t)
	good := strings.TrimSpace(queryLines(1))
	tests := []struct{ name, line, want string }{
		{"days", strings.Replace(good, `"days": 3`, `"days": 4`, 1), `"field":"days","value":"4","problem":"is not allowed","allowed":"3, 5 or 7"`},
		{"people", strings.Replace(good, `"people_number": 1`, `"people_number": "two"`, 1), `"field":"people_number","value":"\"two\"","problem":"is not allowed","allowed":"a whole number from 1 to 1000"`},
		{"org", strings.Replace(good, `"org": "Boise"`, `"org": ""`, 1), `"field":"org"`},
		{"level", strings.Replace(good, `"easy"`, `"very hard"`, 1), `"field":"level","value":"very hard"`},
		{"budget", strings.Replace(good, `"budget": 900`, `"budget": -1`, 1), `"field":"budget","value":"-1"`},
		{"dates", strings.Replace(good, `"2022-03-01", `, ``, 1), `"field":"date"`},
		{"not JSON", `{"org": `, `"field":"line"`},
		{"twice", good, `is the same as in line 1`},
	}
	for _, tt := range tests {
		status, text := act(t, base+"/api/v1/datasets", good+"\n\n"+tt.line+"\n")
		if status != 422 || !strings.Contains(text, tt.want) || !strings.Contains(text, `"line":3`) {
			t.Errorf("%s: %d, no %q at line 3 in %s", tt.name, status, tt.want, text)
		}
	}
	if status, text := act(t, base+"/api/v1/datasets", "\n"); status != 422 || !strings.Contains(text, "is empty") {
		t.Errorf("an empty file = %d: %s", status, text)
	}
	if left, _ := os.ReadDir(filepath.Join(dir, datasetFolder)); len(left) > 0 {
		t.Errorf("a refused import left %d folders", len(left))
	}
}

func TestMakeDatasetForm(t *testing.T) {
	base, _ := datasetSite(t)
	form := url.Values{"name": {"first set"}, "world": {"small"}, "cities": {"3"}, "n": {"ten"}, "mix": {"4:3"}, "days": {"0"}, "seed": {"1"}, "sampler": {"star"}}
	resp, err := http.PostForm(base+"/datasets/new", form)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body := new(strings.Builder)
	if _, err := fmt.Fprint(body, readAll(t, resp)); err != nil || resp.StatusCode != 422 {
		t.Fatalf("a bad form = %d, %v", resp.StatusCode, err)
	}
	for _, want := range []string{"not a name", "ten", `id="p-n"`, `aria-invalid="true"`, `value="first set"`} {
		if !strings.Contains(body.String(), want) {
			t.Errorf("no %q in the answer to a bad form", want)
		}
	}
	for key, value := range map[string]string{"name": "first-set", "cities": "40", "n": "25", "mix": "4:3:3", "sampler": "travelplanner"} {
		form.Set(key, value)
	}
	st, bad := datasetStudy(form)
	if len(bad) > 0 || st.Base.Data.Prompts != 25 || st.Base.Data.Sampler != "travelplanner" || st.Base.Trainer.Kind != "solver" {
		t.Fatalf("study = %+v, %v", st.Base.Data, bad)
	}
	resp, err = http.PostForm(base+"/datasets/new", form)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text := readAll(t, resp); resp.Request.URL.Path != "/datasets" || !strings.Contains(text, "Being made") || !strings.Contains(text, "25 queries, small world, 4:3:3, seed 1") {
		t.Errorf("after the launch: %s without the set that is being made", resp.Request.URL)
	}
}

func readAll(t *testing.T, resp *http.Response) string {
	t.Helper()
	var b strings.Builder
	buf := make([]byte, 32<<10)
	for {
		n, err := resp.Body.Read(buf)
		b.Write(buf[:n])
		if err != nil {
			return b.String()
		}
	}
}

func TestDatasetsInBrowser(t *testing.T) {
	ctx := browser(t)
	base, _ := datasetSite(t)
	bad := strings.Replace(queryLines(2), `"days": 3`, `"days": 4`, 1)
	err := chromedp.Do(ctx, chromedp.EmulateViewport(1440, 900), chromedp.Navigate(base+"/datasets"), chromedp.WaitVisible(chromedp.CSS("body[data-ready]")),
		chromedp.Click(chromedp.CSS(`a[href="/datasets/import"]`)), chromedp.WaitVisible(chromedp.CSS("#f-text")),
		chromedp.SendKeys(chromedp.CSS("#f-name"), "pair"), chromedp.SetValue(chromedp.CSS("#f-text"), bad),
		chromedp.Click(chromedp.CSS(`.form-end button`)), chromedp.WaitVisible(chromedp.CSS(".alert-bad")))
	if err != nil {
		t.Fatal(err)
	}
	text, err := chromedp.Run(ctx, chromedp.Text(chromedp.CSS(".alert-bad")))
	if err != nil || !strings.Contains(text, "line 1, days is not allowed: 4; must be 3, 5 or 7") {
		t.Errorf("alert = %q, %v", text, err)
	}
	err = chromedp.Do(ctx, chromedp.SetValue(chromedp.CSS("#f-text"), queryLines(2)), chromedp.Click(chromedp.CSS(`.form-end button`)),
		chromedp.WaitVisible(chromedp.CSS(".hist svg")), chromedp.Click(chromedp.CSS(`.title summary`)), chromedp.WaitVisible(chromedp.CSS(`a[href*="form=verl"]`)))
	if err != nil {
		t.Fatal(err)
	}
}
