package server_test

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"alidade/ablation"
	"alidade/web"
)

// html reads a page of the running program.
func (p *process) html(t *testing.T, path string) string {
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
		t.Fatalf("GET %s = %d, %v", path, res.StatusCode, err)
	}
	return string(b)
}

func solverStudy(name string, prompts int, seeds string) string {
	return fmt.Sprintf("name: %s\nbase:\n  preset: solver\n  data: {prompts: %d}\ndesign: grid\nseeds: [%s]\nmetric: eval/success\n", name, prompts, seeds)
}

// TestDatasetFromTheSolver draws a set with the real program and opens it:
// card, queries, and each one's expert trace.
func TestDatasetFromTheSolver(t *testing.T) {
	p := serve(t, t.TempDir())
	id := p.launch(t, solverStudy("drawn", 20, "1"))
	for _, r := range p.wait(t, id, 2*time.Minute) {
		if r.State != ablation.Succeeded {
			t.Fatalf("run %d is %s: %s", r.ID, r.State, r.Cause)
		}
	}
	hash := regexp.MustCompile(`/datasets/([0-9a-f]{16})`).FindStringSubmatch(p.html(t, "/datasets"))
	if hash == nil {
		t.Fatal("the datasets page does not list what the solver drew")
	}
	body := p.html(t, "/datasets/"+hash[1])
	for _, want := range []string{"1–20 of 20", "What is in it", "Cheapest plan over budget", "draws in all", "Every query has a plan"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q on the dataset's page", want)
		}
	}
	traces := regexp.MustCompile(`/runs/\d+/trajectories/[^"]+`).FindAllString(body, -1)
	if len(traces) != 20 {
		t.Fatalf("%d queries have an expert trace, want 20", len(traces))
	}
	if trip := p.html(t, traces[7]); !strings.Contains(trip, "Plan") {
		t.Error("the expert's trace does not open")
	}
	if rows := strings.Count(p.html(t, "/datasets/"+hash[1]+"/export?form=star"), "\n"); rows != 20 {
		t.Errorf("the export has %d lines, want 20", rows)
	}
}

// TestQueueOverHTTP pauses, orders and completes with the real runner.
func TestQueueOverHTTP(t *testing.T) {
	p := serve(t, t.TempDir(), "--cpu-slots", "1")
	post := func(path string) {
		t.Helper()
		if code := p.call(t, http.MethodPost, path, "", nil); code/100 != 2 {
			t.Fatalf("POST %s = %d", path, code)
		}
	}
	post("/api/v1/queue/pause")
	id := p.launch(t, solverStudy("ordered", 5, "1, 2, 3"))
	var q struct {
		Paused  bool
		Reason  string
		Waiting []web.Waiting
	}
	read := func() {
		t.Helper()
		q.Waiting = nil
		p.call(t, http.MethodGet, "/api/v1/queue", "", &q)
	}
	waitFor(t, 5*time.Second, "the queue to be paused", func() bool { read(); return q.Paused && len(q.Waiting) == 3 })
	last := q.Waiting[2].Run
	if body := p.html(t, "/"); !strings.Contains(body, "The queue is paused") || !strings.Contains(body, "Resume the queue") {
		t.Error("home does not say that the queue is paused")
	}
	post(fmt.Sprintf("/api/v1/runs/%d/first", last))
	post(fmt.Sprintf("/api/v1/runs/%d/stop", q.Waiting[1].Run))
	read()
	if len(q.Waiting) != 2 || q.Waiting[0].Run != last {
		t.Errorf("queue = %+v, want run %d first of two", q.Waiting, last)
	}
	post(fmt.Sprintf("/api/v1/studies/%d/complete", id))
	post(fmt.Sprintf("/api/v1/studies/%d/seeds/2", id))
	read()
	if len(q.Waiting) != 5 {
		t.Errorf("%d runs wait after completing and adding 2 seeds, want 5", len(q.Waiting))
	}
	post("/api/v1/queue/resume")
	for _, r := range p.wait(t, id, 2*time.Minute) {
		if r.State != ablation.Succeeded {
			t.Errorf("run %d is %s: %s", r.ID, r.State, r.Cause)
		}
	}
}
