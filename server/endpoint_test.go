package server_test

import (
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"alidade/ablation"
	"alidade/runner/shim"
	"alidade/trainer/endpoint"
	"alidade/trainer/endpoint/endpointtest"
)

const canary = "sk-canary-71d0a94be5"

// TestEndpointStudy evaluates a served model in both forms, kills the trainers
// half-way, resumes them, and looks for the server's key in all that was kept
// and shown.
func TestEndpointStudy(t *testing.T) {
	const queries = 40
	t.Setenv("ALIDADE_KEY_CANARY", canary)
	r, _ := ablation.PresetNamed("endpoint")
	r.Environment.Cities, r.Environment.Days, r.Evaluation.Queries = 20, 3, queries
	world, list, err := endpoint.Queries(t.Context(), r, "")
	if err != nil {
		t.Fatal(err)
	}
	arms := map[string]*endpointtest.Server{}
	for _, form := range []string{"react", "tools"} {
		f := endpointtest.New(t, world, list, "vllm", form == "react")
		f.Key, f.Delay, f.Trouble = canary, 20*time.Millisecond, f.EveryTwentieth
		arms[form] = f
	}
	data := t.TempDir()
	p := serve(t, data, "--cpu-slots", "2")
	id := p.launch(t, fmt.Sprintf(`
name: served
base:
  preset: endpoint
  environment: {cities: 20, days: 3}
  evaluation: {queries: %d}
  endpoint: {key_env: ALIDADE_KEY_CANARY, model: m, price_in: 1, price_out: 4, concurrency: 8}
design: list
arms:
  - {environment.form: react, endpoint.url: "%s/v1"}
  - {environment.form: tools, endpoint.url: "%s/v1"}
seeds: [1]
metric: eval/success
`, queries, arms["react"].URL, arms["tools"].URL))
	killTrainers(t, p, data, id, 10)
	for _, run := range p.runs(t, id) {
		if code := p.call(t, http.MethodPost, fmt.Sprintf("/api/v1/runs/%d/resume", run.ID), "", nil); code >= 300 {
			t.Fatalf("resume run %d answered %d", run.ID, code)
		}
	}
	for _, run := range p.wait(t, id, 2*time.Minute) {
		if run.State != ablation.Succeeded || run.Attempt != 2 {
			t.Errorf("run %d %s after %d attempts: %s", run.ID, run.State, run.Attempt, run.Cause)
		}
	}
	pages := []string{"/", fmt.Sprintf("/studies/%d", id), "/runs/1", "/trajectories", "/api/v1/runs/1", "/api/v1/runs/1/log?stream=stderr", "/api/v1/studies"}
	for _, page := range pages {
		if body := p.page(t, page); strings.Contains(body, canary) {
			t.Errorf("%s shows the key", page)
		}
	}
	p.stop(t)
	if strings.Contains(p.out.String(), canary) {
		t.Error("the server's log holds the key")
	}
	keyNowhere(t, data)

	s := openStore(t, data)
	defer func() { _ = s.Close() }()
	evals, err := s.Evaluations(t.Context(), []ablation.RunID{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	judged := map[ablation.RunID]int{}
	for _, e := range evals {
		for _, q := range e.Queries {
			judged[e.Run]++
			judged[-e.Run] += q.Passed
		}
	}
	for run := ablation.RunID(1); run <= 2; run++ {
		counts, err := s.Counts(t.Context(), run)
		if err != nil || counts.Trajectories != queries || judged[run] != queries || judged[-run] != endpointtest.Solved(queries) {
			t.Errorf("run %d: %d trajectories, %d of %d queries passed, want %d of %d: %v", run, counts.Trajectories, judged[-run], judged[run], endpointtest.Solved(queries), queries, err)
		}
	}
}

// killTrainers kills each run's trainer once it has written n trajectories,
// and waits until the runner has seen it.
func killTrainers(t *testing.T, p *process, data string, id ablation.StudyID, n int) {
	t.Helper()
	killed := map[ablation.RunID]bool{}
	waitFor(t, time.Minute, "the trainers to be killed half-way", func() bool {
		for _, run := range p.runs(t, id) {
			dir := filepath.Join(data, "runs", strconv.FormatInt(int64(run.ID), 10), "1")
			events, _ := os.ReadFile(filepath.Join(dir, "events.jsonl"))
			if killed[run.ID] || strings.Count(string(events), `"kind":"trajectory"`) < n {
				continue
			}
			h, err := shim.ReadHandle(dir)
			if err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(h.TrainerPID, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			killed[run.ID] = true
		}
		return len(killed) == 2
	})
	waitFor(t, time.Minute, "the runner to see it", func() bool {
		for _, run := range p.runs(t, id) {
			if !run.State.Terminal() {
				return false
			}
		}
		return true
	})
}

// page is the text of a page.
func (p *process) page(t *testing.T, path string) string {
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
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("%s answered %d: %v", path, res.StatusCode, err)
	}
	return string(body)
}

// keyNowhere looks for the key in every file of the data folder.
func keyNowhere(t *testing.T, data string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		src, err := os.ReadFile(path)
		if strings.Contains(string(src), canary) {
			t.Errorf("the key stands in %s", path)
		}
		return err
	})
	if err != nil || files < 10 {
		t.Errorf("looked into %d files: %v", files, err)
	}
}
