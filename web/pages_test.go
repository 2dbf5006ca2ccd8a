package web

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"alidade/ablation"
	"alidade/store"
)

// fakeRuns is a runner that only remembers what it was asked.
type fakeRuns struct {
	store *store.Store
	mu    sync.Mutex
	asked []string
	log   string
}

// said is what was asked so far.
func (f *fakeRuns) said() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.asked)
}

func (f *fakeRuns) Launch(ctx context.Context, st ablation.Study, source string) (ablation.StudyRecord, []ablation.Run, error) {
	planned, err := ablation.Expand(st)
	if err != nil {
		return ablation.StudyRecord{}, nil, err
	}
	return f.store.CreateStudy(ctx, st, source, planned)
}

func (f *fakeRuns) did(format string, a ...any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, fmt.Sprintf(format, a...))
	return nil
}

func (f *fakeRuns) Stop(_ context.Context, id ablation.RunID) error { return f.did("stop run %d", id) }
func (f *fakeRuns) Resume(_ context.Context, id ablation.RunID) error {
	return f.did("resume run %d", id)
}
func (f *fakeRuns) PauseStudy(_ context.Context, id ablation.StudyID) error {
	return f.did("pause study %d", id)
}
func (f *fakeRuns) ResumeStudy(_ context.Context, id ablation.StudyID) error {
	return f.did("resume study %d", id)
}
func (f *fakeRuns) StopStudy(_ context.Context, id ablation.StudyID) error {
	return f.did("stop study %d", id)
}
func (f *fakeRuns) Log(_ context.Context, run ablation.RunID, attempt int, stream string, tail int64) ([]byte, error) {
	return []byte(f.log), nil
}

var testDevices = []Device{
	{ID: "cpu0", Kind: "cpu", Name: "Xeon, cores 0", MemoryMiB: 64 << 10, UsedMiB: 3 << 10, Util: .97, Run: 29, Holder: "run 29"},
	{ID: "cpu1", Kind: "cpu", Name: "Xeon, cores 1", MemoryMiB: 64 << 10, UsedMiB: 3 << 10, Util: .94, Run: 28, Holder: "run 28"},
}

// newTestSite serves a store without a token.
func newTestSite(t testing.TB, s *store.Store, change func(*Config)) (*httptest.Server, *fakeRuns) {
	t.Helper()
	runs := &fakeRuns{store: s, log: "step 71\rstep 72\x1b[32m reward 1.31\x1b[0m\nsaved checkpoint\n"}
	c := Config{Store: s, Runs: runs, NoAuth: true, Version: "test", Devices: func() []Device { return testDevices }}
	if change != nil {
		change(&c)
	}
	h, err := New(c)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv, runs
}

func get(t testing.TB, url string) (int, string, http.Header) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatalf("get %s: %v", url, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("read %s: %v", url, err)
	}
	return resp.StatusCode, string(body), resp.Header
}

func TestPages(t *testing.T) {
	s := openStore(t)
	going, crossed := fillStudies(t, s, time.Now())
	srv, _ := newTestSite(t, s, nil)
	run := 25 // the first of the going study
	tests := []struct {
		path   string
		status int
		wants  []string
	}{
		{"/", 200, []string{"2 runs going, 3 waiting", "Needs a look", "out of memory", "cpu0", "S-2", "queued, next"}},
		{"/?runs=queued", 200, []string{"queued, next", "queued, 2nd"}},
		{"/?runs=finished", 200, []string{"failed", "finished"}},
		{"/?runs=all", 422, []string{"active, queued, finished"}},
		{"/studies", 200, []string{"S-1", "S-2", "Does the best reward depend on the size of a group?"}},
		{"/studies?show=archived", 200, []string{"Nothing is archived"}},
		{fmt.Sprintf("/studies/%d", going.ID), 200, []string{"Which reward design lifts success most", "running", "best", "bootstrap over 128 queries", "Provisional", "Pause", "Export study.yaml", `"eval/success"`}},
		{fmt.Sprintf("/studies/%d", crossed.ID), 200, []string{"1 failed", "Resume 1 run", "= best", "reward (4) × group size (2)"}},
		{"/studies/99", 404, []string{"Not found"}},
		{"/studies/abc", 404, []string{"There is no page here"}},
		{fmt.Sprintf("/runs/%d", run), 200, []string{"SUM, seed 1", "saved checkpoint", "step 72 reward 1.31", "differs from the study", "Checkpoints", "SFT"}},
		{fmt.Sprintf("/runs/%d?log=stderr", run), 200, []string{"aria-current"}},
		{fmt.Sprintf("/runs/%d?log=passwd", run), 422, []string{"stdout, stderr"}},
		{"/runs/14", 200, []string{"out of memory", "Resume from the last checkpoint"}},
		{"/runs/12345", 404, []string{"Not found"}},
		{"/nowhere", 404, []string{"There is no page here"}},
	}
	for _, tt := range tests {
		status, body, _ := get(t, srv.URL+tt.path)
		if status != tt.status {
			t.Errorf("GET %s = %d, want %d", tt.path, status, tt.status)
		}
		for _, want := range tt.wants {
			if !strings.Contains(body, want) {
				t.Errorf("GET %s: no %q in the page", tt.path, want)
			}
		}
		if strings.Contains(body, " style=") || strings.Contains(body, "onclick") {
			t.Errorf("GET %s: inline style or script in the page", tt.path)
		}
	}
}

func TestEmptyPages(t *testing.T) {
	srv, _ := newTestSite(t, openStore(t), func(c *Config) { c.Devices = nil })
	for path, want := range map[string]string{
		"/":        "No study yet",
		"/studies": "No study here",
	} {
		status, body, _ := get(t, srv.URL+path)
		if status != 200 || !strings.Contains(body, want) {
			t.Errorf("GET %s = %d, want 200 with %q", path, status, want)
		}
	}
}
