package web

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"alidade/ablation"
)

func post(t *testing.T, url, contentType, body string) (int, string) {
	t.Helper()
	resp, err := http.Post(url, contentType, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(answer)
}

func exampleStudy(t *testing.T) string {
	t.Helper()
	src, err := os.ReadFile(filepath.Join("..", "examples", "rewards.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(src)
}

// TestLaunchAndExport sends a study file, reads it back, and sends what came
// back: the same arms each time, as YAML and as JSON.
func TestLaunchAndExport(t *testing.T) {
	srv, _ := newTestSite(t, openStore(t), nil)
	src := exampleStudy(t)
	status, body := post(t, srv.URL+"/api/v1/studies", "application/yaml", src)
	var first launched
	if err := json.Unmarshal([]byte(body), &first); err != nil || status != 201 {
		t.Fatalf("launch: %d %s %v", status, body, err)
	}
	if len(first.Runs) != 8 || first.Study.ID != 1 {
		t.Fatalf("got study %d with %d runs, want 1 with 8", first.Study.ID, len(first.Runs))
	}
	if status, got, _ := get(t, srv.URL+"/api/v1/studies/1/study.yaml"); status != 200 || got != src {
		t.Errorf("the study file came back changed (%d):\n%s", status, got)
	}
	_, canonical, _ := get(t, srv.URL+"/api/v1/studies/1/study.yaml?canonical=1")
	asJSON, err := json.Marshal(first.Study.Study)
	if err != nil {
		t.Fatal(err)
	}
	for name, in := range map[string][2]string{"canonical YAML": {"application/yaml", canonical}, "JSON": {"application/json", string(asJSON)}} {
		status, body := post(t, srv.URL+"/api/v1/studies/check", in[0], in[1])
		var c checked
		if err := json.Unmarshal([]byte(body), &c); err != nil || status != 200 {
			t.Errorf("%s: %d %s", name, status, body)
			continue
		}
		if c.Runs != 8 || len(c.Arms) != 4 || c.Arms[0].Hash != first.Runs[0].Arm.Hash {
			t.Errorf("%s: %d runs of %d arms, first %s; want 8 of 4, %s", name, c.Runs, len(c.Arms), c.Arms[0].Hash, first.Runs[0].Arm.Hash)
		}
	}
}

func TestBadStudies(t *testing.T) {
	srv, _ := newTestSite(t, openStore(t), nil)
	src := exampleStudy(t)
	tests := []struct {
		name, contentType, body string
		status                  int
		wants                   []string
	}{
		{"misspelt key", "application/yaml", strings.Replace(src, "factors:", "factor:", 1), 422, []string{`"field"`, "factor", "factors", `"line"`}},
		{"level out of range", "application/yaml", strings.Replace(src, "MACRO", "MACROS", 1), 422, []string{"MACROS", "MACRO", "allowed"}},
		{"not YAML", "application/yaml", "a: [", 422, []string{"error", "message"}},
		{"empty", "application/yaml", "", 422, []string{"fields"}},
		{"other type", "image/png", "x", 415, []string{"image/png", "application/yaml"}},
	}
	for _, tt := range tests {
		for _, path := range []string{"/api/v1/studies", "/api/v1/studies/check"} {
			status, body := post(t, srv.URL+path, tt.contentType, tt.body)
			if status != tt.status {
				t.Errorf("%s at %s: %d %s, want %d", tt.name, path, status, body, tt.status)
			}
			for _, want := range tt.wants {
				if !strings.Contains(body, want) {
					t.Errorf("%s at %s: no %q in %s", tt.name, path, want, body)
				}
			}
		}
	}
	if _, body, _ := get(t, srv.URL+"/api/v1/studies"); !strings.Contains(body, `"studies":[]`) {
		t.Errorf("after refused launches: %s", body)
	}
}

// TestSeriesKeepsNaN is C22 for the API: NaN and ±Inf come back as they are.
func TestSeriesKeepsNaN(t *testing.T) {
	s := openStore(t)
	_, runs := launchStudy(t, s, rewardsStudy())
	drive(t, s, runs[0], curve{steps: 30, started: time.Now().Add(-5 * time.Minute), nanAt: 7})
	srv, _ := newTestSite(t, s, nil)
	_, body, _ := get(t, srv.URL+"/api/v1/runs/1/series?metric=policy/entropy&metric=reward/mean&points=0")
	var got struct {
		Series []struct {
			Run    int
			Metric string
			Total  int
			Steps  []int64
			Walls  []int64
			Values []any
		}
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	if len(got.Series) != 2 {
		t.Fatalf("%d series, want 2: %s", len(got.Series), body)
	}
	for _, sr := range got.Series {
		want := map[string]any{"policy/entropy": "NaN", "reward/mean": "+Inf"}[sr.Metric]
		if len(sr.Steps) != 30 || sr.Total != 30 || len(sr.Walls) != 30 || sr.Values[6] != want {
			t.Errorf("%s: %d of %d points, step 7 is %v, want 30 and %v", sr.Metric, len(sr.Steps), sr.Total, sr.Values[6], want)
		}
	}
	if status, body, _ := get(t, srv.URL+"/api/v1/runs/1/series"); status != 422 || !strings.Contains(body, "metric") {
		t.Errorf("without a metric: %d %s", status, body)
	}
	if status, body, _ := get(t, srv.URL+"/api/v1/runs/1/series?metric=a&points=many"); status != 422 || !strings.Contains(body, "a whole number") {
		t.Errorf("points=many: %d %s", status, body)
	}
}

func TestAPIAnswers(t *testing.T) {
	s := openStore(t)
	going, _ := fillStudies(t, s, time.Now())
	srv, runs := newTestSite(t, s, nil)
	tests := []struct {
		path   string
		status int
		want   string
	}{
		{"/api/v1/studies", 200, `"finished":3`},
		{fmt.Sprintf("/api/v1/studies/%d", going.ID), 200, `"by_state":{"queued":3`},
		{fmt.Sprintf("/api/v1/studies/%d/runs", going.ID), 200, `"total_steps"`},
		{fmt.Sprintf("/api/v1/studies/%d/metrics?info=1", going.ID), 200, `"eval/success":{"label":"Success","percent":true`},
		{fmt.Sprintf("/api/v1/studies/%d/series?metric=train/success&points=50", going.ID), 200, `"thinned":true`},
		{"/api/v1/runs/25", 200, `"attempts":[{`},
		{"/api/v1/runs/25/log?tail=100", 200, "saved checkpoint"},
		{"/api/v1/runs/25/log?stream=secret", 422, "stdout, stderr"},
		{"/api/v1/devices", 200, `"cpu0"`},
		{"/api/v1/runs/999", 404, `{"error":{"message":"Not found"`},
		{"/api/v1/nothing", 404, `{"error":{"message":"There is no page here"`},
		{"/healthz", 200, `"ok"`},
	}
	for _, tt := range tests {
		status, body, _ := get(t, srv.URL+tt.path)
		if status != tt.status || !strings.Contains(body, tt.want) {
			t.Errorf("GET %s = %d %.300s, want %d with %s", tt.path, status, body, tt.status, tt.want)
		}
	}
	for _, path := range []string{"/api/v1/runs/28/stop", "/api/v1/runs/14/resume", "/api/v1/studies/2/stop", "/api/v1/studies/2/archive"} {
		if status, body := post(t, srv.URL+path, "", ""); status != 200 {
			t.Errorf("POST %s = %d %s", path, status, body)
		}
	}
	if got, want := strings.Join(runs.asked, "; "), "stop run 28; resume run 14; stop study 2"; got != want {
		t.Errorf("the runner was asked %q, want %q", got, want)
	}
	if rec, err := s.Study(t.Context(), going.ID); err != nil || !rec.Archived {
		t.Errorf("study archived: %v, %v", rec.Archived, err)
	}
	if status, body := post(t, srv.URL+"/api/v1/runs/28/explode", "", ""); status != 404 {
		t.Errorf("unknown action = %d %s, want 404", status, body)
	}
}

func TestAppendJSON(t *testing.T) {
	for _, s := range []string{"plain", `quote " and \`, "tab\tnewline\n\x01", "<script>&\u2028", "é 数 \U0001F600", "bad \xff"} {
		var back string
		if err := json.Unmarshal(appendJSONString(nil, s), &back); err != nil || back != strings.ToValidUTF8(s, "\uFFFD") {
			t.Errorf("%q comes back as %q, %v", s, back, err)
		}
	}
	for _, v := range []float64{0, -1.5, 1e-300, math.Pi, math.MaxFloat64} {
		var back float64
		if err := json.Unmarshal(appendFloat(nil, v), &back); err != nil || back != v {
			t.Errorf("%v comes back as %v, %v", v, back, err)
		}
	}
}

func TestProgress(t *testing.T) {
	now := time.Unix(10_000, 0)
	at := func(ago time.Duration) time.Time { return now.Add(-ago) }
	arm := ablation.Arm{Recipe: ablation.Recipe{Budget: ablation.Budget{Steps: 100}, Trainer: ablation.Trainer{Devices: 1}}}
	run := func(state ablation.State, step int64, started, ended time.Time) ablation.Run {
		return ablation.Run{State: state, Step: step, TotalSteps: 100, Arm: arm, StartedAt: started, EndedAt: ended}
	}
	tests := []struct {
		name string
		runs []ablation.Run
		left float64
	}{
		{"nothing", nil, 0},
		{"all ended", []ablation.Run{run(ablation.Succeeded, 100, at(time.Hour), at(time.Minute))}, 0},
		{"only queued", []ablation.Run{run(ablation.Queued, 0, time.Time{}, time.Time{})}, -1},
		{"half way", []ablation.Run{run(ablation.Running, 50, at(100*time.Second), time.Time{})}, 100},
		{"half way and one waits", []ablation.Run{run(ablation.Running, 50, at(100*time.Second), time.Time{}), run(ablation.Queued, 0, time.Time{}, time.Time{})}, 300},
	}
	for _, tt := range tests {
		if got := progressOf(tt.runs, now).LeftS; math.Abs(got-tt.left) > 1e-9 {
			t.Errorf("%s: %v s left, want %v", tt.name, got, tt.left)
		}
	}
}

// BenchmarkStudyPage renders the page of a study of 500 runs.
func BenchmarkStudyPage(b *testing.B) {
	s := openStore(b)
	st := crossedStudy()
	st.Seeds = nil
	for seed := range uint64(62) {
		st.Seeds = append(st.Seeds, seed+1)
	}
	rec, runs := launchStudy(b, s, st)
	for _, r := range runs {
		drive(b, s, r, curve{steps: 100, started: time.Now().Add(-time.Hour), end: ablation.EvStopped})
	}
	srv, _ := newTestSite(b, s, nil)
	for name, path := range map[string]string{
		"page":   fmt.Sprintf("/studies/%d", rec.ID),
		"series": fmt.Sprintf("/api/v1/studies/%d/series?metric=reward/mean&points=100", rec.ID),
		"home":   "/",
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				status, body, _ := get(b, srv.URL+path)
				if status != 200 {
					b.Fatalf("%d %.200s", status, body)
				}
				b.ReportMetric(float64(len(body))/1000, "KB")
			}
		})
	}
}
