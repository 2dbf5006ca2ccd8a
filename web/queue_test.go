package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"alidade/ablation"
	"alidade/store"
)

// fakeQueue orders the stored queue as the runner would, and starts nothing.
type fakeQueue struct {
	store  *store.Store
	status QueueStatus
	asked  []string
	added  []uint64
}

func (f *fakeQueue) did(format string, a ...any) error {
	f.asked = append(f.asked, fmt.Sprintf(format, a...))
	return nil
}

func (f *fakeQueue) Status() QueueStatus { return f.status }

func (f *fakeQueue) Waiting(ctx context.Context) ([]Waiting, error) {
	queued, err := f.store.Queued(ctx, 0)
	out := make([]Waiting, len(queued))
	for i, q := range queued {
		out[i] = Waiting{Run: q.ID, Study: q.Study, Priority: q.Priority, Place: q.Place, Hold: q.Hold, Reason: "waits for 4 GPUs of 80 GiB: 2 free"}
		if q.Hold != "" {
			out[i].Reason = q.Hold
		} else if i < 500 {
			out[i].Start, out[i].Takes = time.Now().Add(time.Duration(i+1)*time.Minute), 12*time.Minute
		}
	}
	return out, err
}

func (f *fakeQueue) order(ctx context.Context, id ablation.RunID, change func(*ablation.Run)) error {
	_, err := f.store.RunWriter().Order(ctx, id, change)
	return err
}

func (f *fakeQueue) PauseQueue(_ context.Context, reason string) error {
	f.status = QueueStatus{Paused: true, ByPerson: true, Reason: reason}
	return nil
}

func (f *fakeQueue) ResumeQueue(context.Context) error {
	f.status = QueueStatus{}
	return nil
}

func (f *fakeQueue) PauseRun(ctx context.Context, id ablation.RunID) error {
	return f.order(ctx, id, func(r *ablation.Run) { r.Hold = "paused by a person" })
}

func (f *fakeQueue) ResumeRun(ctx context.Context, id ablation.RunID) error {
	return f.order(ctx, id, func(r *ablation.Run) { r.Hold = "" })
}

func (f *fakeQueue) SetPlace(ctx context.Context, id ablation.RunID, p int, place int64) error {
	return f.order(ctx, id, func(r *ablation.Run) { r.Priority, r.Place = p, place })
}

// MoveBy lets the two runs change places, as the runner does.
func (f *fakeQueue) MoveBy(ctx context.Context, id ablation.RunID, by int) error {
	queued, err := f.store.Queued(ctx, 0)
	at := slices.IndexFunc(queued, func(q store.QueuedRun) bool { return q.ID == id })
	if err != nil || at+by < 0 || at+by >= len(queued) {
		return err
	}
	own, other := queued[at], queued[at+by]
	back := own.Rank()
	if own.Priority != other.Priority {
		back = other.Rank() - int64(by)
	}
	return errors.Join(f.order(ctx, own.ID, func(r *ablation.Run) { r.Priority, r.Place = other.Priority, other.Rank() }),
		f.order(ctx, other.ID, func(r *ablation.Run) { r.Place = back }))
}

func (f *fakeQueue) MoveFirst(ctx context.Context, id ablation.RunID) error {
	queued, err := f.store.Queued(ctx, 0)
	return errors.Join(err, f.SetPlace(ctx, id, queued[0].Priority+1, 0))
}

func (f *fakeQueue) MoveLast(ctx context.Context, id ablation.RunID) error {
	queued, err := f.store.Queued(ctx, 0)
	return errors.Join(err, f.SetPlace(ctx, id, queued[len(queued)-1].Priority-1, 0))
}

func (f *fakeQueue) AddSeeds(_ context.Context, id ablation.StudyID, seeds []uint64) ([]ablation.RunID, error) {
	f.added = append(f.added, seeds...)
	return []ablation.RunID{101, 102}, nil
}

func (f *fakeQueue) Complete(_ context.Context, id ablation.StudyID) (Completion, error) {
	return Completion{Again: []ablation.RunID{14}}, f.did("complete study %d", id)
}

func (f *fakeQueue) TakeBack(_ context.Context, id ablation.StudyID, act string) error {
	return f.did("take back %s of study %d", act, id)
}

func (f *fakeQueue) Dump(_ context.Context, id ablation.RunID) (string, error) {
	return "process 7: waits in futex", f.did("dump run %d", id)
}

func (f *fakeQueue) Quarantine(_ context.Context, device, why string) error {
	return f.did("quarantine %s: %s", device, why)
}

func (f *fakeQueue) Unquarantine(_ context.Context, device string) error {
	return f.did("use %s again", device)
}

// queuedSite serves the filled store with a queue that can be changed.
func queuedSite(t testing.TB) (url string, q *fakeQueue, runs *fakeRuns) {
	t.Helper()
	s := openStore(t)
	fillStudies(t, s, time.Now())
	q = &fakeQueue{store: s}
	srv, runs := newTestSite(t, s, func(c *Config) { c.Queue = q })
	return srv.URL, q, runs
}

// act sends a form's post as the pages' script does and returns the answer.
func act(t testing.TB, url, body string) (int, string) {
	t.Helper()
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatalf("post %s: %v", url, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("read %s: %v", url, err)
	}
	return resp.StatusCode, string(text)
}

func wantOrder(t *testing.T, q *fakeQueue, want ...ablation.RunID) {
	t.Helper()
	list, err := q.Waiting(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var got []ablation.RunID
	for _, w := range list {
		got = append(got, w.Run)
	}
	if !slices.Equal(got, want) {
		t.Errorf("queue = %v, want %v", got, want)
	}
}

func TestRunsPage(t *testing.T) {
	url, q, runs := queuedSite(t)
	status, body, _ := get(t, url+"/runs")
	if status != 200 {
		t.Fatalf("GET /runs = %d", status)
	}
	for _, want := range []string{"2 runs going, 3 waiting", "waits for 4 GPUs of 80 GiB: 2 free", "takes 12 min", "Move run 32 up one place", "Cancel", "out of memory", "Retry run 14", "Pause the queue"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q on the runs page", want)
		}
	}
	wantOrder(t, q, 30, 31, 32)
	for _, step := range []struct {
		path string
		want []ablation.RunID
	}{
		{"/api/v1/runs/32/priority/1", []ablation.RunID{32, 30, 31}},
		{"/api/v1/runs/32/priority/0", []ablation.RunID{30, 31, 32}},
		{"/api/v1/runs/31/first", []ablation.RunID{31, 30, 32}},
		{"/api/v1/runs/31/last", []ablation.RunID{30, 32, 31}},
		{"/api/v1/runs/31/priority/-2", []ablation.RunID{30, 32, 31}},
		{"/api/v1/runs/32/up", []ablation.RunID{32, 30, 31}},
		{"/api/v1/runs/32/up", []ablation.RunID{32, 30, 31}},
		{"/api/v1/runs/32/down", []ablation.RunID{30, 32, 31}},
		{"/api/v1/runs/32/down", []ablation.RunID{30, 31, 32}},
		{"/api/v1/runs/32/priority/0/5", []ablation.RunID{32, 30, 31}},
		{"/api/v1/runs/32/priority/0", []ablation.RunID{30, 32, 31}},
		{"/api/v1/runs/30/pause", []ablation.RunID{30, 32, 31}},
	} {
		if status, text := act(t, url+step.path, ""); status != 200 {
			t.Errorf("POST %s = %d: %s", step.path, status, text)
		}
		wantOrder(t, q, step.want...)
	}
	_, body, _ = get(t, url+"/runs")
	for _, want := range []string{"paused by a person", "Let it start", "−2"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q after pausing and ordering", want)
		}
	}
	act(t, url+"/api/v1/runs/30/stop", "")
	if want := []string{"stop run 30"}; !slices.Equal(runs.asked, want) {
		t.Errorf("asked %v, want %v", runs.asked, want)
	}
	if status, _ := act(t, url+"/api/v1/runs/30/priority/x", ""); status != 404 {
		t.Errorf("priority x = %d, want 404", status)
	}
	if status, _, _ := get(t, url+"/runs?page=0"); status != 422 {
		t.Errorf("page 0 = %d, want 422", status)
	}
}

func TestQueueBanners(t *testing.T) {
	url, q, _ := queuedSite(t)
	if _, body, _ := get(t, url+"/"); strings.Contains(body, "The queue is paused") {
		t.Error("a banner while nothing is paused")
	}
	if status, _ := act(t, url+"/api/v1/queue/pause", ""); status != 200 {
		t.Fatalf("pause the queue = %d", status)
	}
	for _, path := range []string{"/", "/studies/2", "/runs"} {
		_, body, _ := get(t, url+path)
		for _, want := range []string{"The queue is paused: 3 runs wait", "Paused by hand", "Resume the queue"} {
			if !strings.Contains(body, want) {
				t.Errorf("GET %s: no %q", path, want)
			}
		}
	}
	if _, body, _ := get(t, url+"/studies/1"); strings.Contains(body, "The queue is paused") {
		t.Error("a banner on a study that waits for nothing")
	}
	q.status = QueueStatus{Paused: true, Reason: "data has 12 MiB free, less than the floor of 1024 MiB: free some space, the queue then goes on by itself"}
	_, body, _ := get(t, url+"/")
	if !strings.Contains(body, "less than the floor of 1024 MiB") || strings.Contains(body, "Resume the queue") {
		t.Error("the disk floor is not told, or offers a button that cannot help")
	}
	act(t, url+"/api/v1/queue/resume", "")
	status, text := act(t, url+"/api/v1/studies/2/pause", "")
	if status != 200 {
		t.Fatalf("pause study = %d: %s", status, text)
	}
}

// A study that someone else has paused, from another tab or a program, stands
// on the page of runs with the way to let it go on; the queue's pause too,
// whatever reason was given.
func TestPausedElsewhere(t *testing.T) {
	s := openStore(t)
	fillStudies(t, s, time.Now())
	q := &fakeQueue{store: s}
	srv, _ := newTestSite(t, s, func(c *Config) { c.Queue = q })
	if err := s.SetStudyPaused(t.Context(), 2, true); err != nil {
		t.Fatal(err)
	}
	q.status = QueueStatus{Paused: true, ByPerson: true, Reason: "the cluster is being moved"}
	_, body, _ := get(t, srv.URL+"/runs")
	for _, want := range []string{"Study S-2 is paused: 3 runs wait", `action="/studies/2/resume"`, "The cluster is being moved", `action="/queue/resume"`} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q on the page of runs", want)
		}
	}
}

func TestQueueReadOnly(t *testing.T) {
	s := openStore(t)
	fillStudies(t, s, time.Now())
	srv, _ := newTestSite(t, s, nil)
	status, body, _ := get(t, srv.URL+"/runs")
	if status != 200 || strings.Contains(body, "Pause the queue") || strings.Contains(body, "up one place") {
		t.Errorf("GET /runs without a queue = %d, or it offers what cannot be done", status)
	}
	for _, path := range []string{"/api/v1/queue/pause", "/api/v1/runs/30/priority/1", "/api/v1/runs/30/first"} {
		if status, _ := act(t, srv.URL+path, ""); status != 409 {
			t.Errorf("POST %s = %d, want 409", path, status)
		}
	}
}

// TestRunsPageSize holds the promise for 10,000 queued runs: under 200 ms.
func TestRunsPageSize(t *testing.T) {
	if testing.Short() {
		t.Skip("stores 10,000 runs")
	}
	s := openStore(t)
	st := rewardsStudy()
	st.Seeds = nil
	for seed := range uint64(2500) {
		st.Seeds = append(st.Seeds, seed+1)
	}
	launchStudy(t, s, st)
	srv, _ := newTestSite(t, s, func(c *Config) { c.Queue = &fakeQueue{store: s} })
	best := time.Hour
	for range 5 {
		began := time.Now()
		status, body, _ := get(t, srv.URL+"/runs?page=100")
		best = min(best, time.Since(began))
		if status != 200 || !strings.Contains(body, "4,951–5,000 of 10,000") {
			t.Fatalf("GET /runs?page=100 = %d", status)
		}
	}
	t.Logf("the page in %s", best)
	if best > 200*time.Millisecond {
		t.Errorf("the runs page of 10,000 runs takes %s, at most 200 ms are promised", best)
	}
}

func TestRunsPageInBrowser(t *testing.T) {
	ctx := browser(t)
	url, q, runs := queuedSite(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(chromedp.Do(ctx, chromedp.EmulateViewport(1440, 900), chromedp.Navigate(url+"/"), chromedp.WaitVisible(chromedp.CSS("body[data-ready]")),
		chromedp.KeyEvent("g"), chromedp.KeyEvent("q"), chromedp.WaitVisible(chromedp.CSS(".queue-rows")),
		chromedp.Click(chromedp.CSS(`[aria-label="Move run 32 up one place"]`)),
		chromedp.WaitVisible(chromedp.CSS(`.queue-rows tbody tr:nth-child(2)[data-run="32"]`))))
	wantOrder(t, q, 30, 32, 31)
	focus, err := chromedp.Run(ctx, chromedp.Evaluate[string](`document.activeElement.getAttribute("aria-label") || ""`))
	must(err)
	if focus != "Move run 32 up one place" {
		t.Errorf("focus is on %q after the rows moved, want it on the pressed button", focus)
	}
	must(chromedp.Do(ctx, chromedp.Click(chromedp.CSS(".toast button")), chromedp.WaitVisible(chromedp.CSS(`.queue-rows tbody tr:nth-child(2)[data-run="31"]`))))
	wantOrder(t, q, 30, 31, 32)
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[any](`document.activeElement.blur()`)); err != nil {
		t.Fatal(err)
	}
	// The keyboard alone: to the third row of the queue and up twice; it stays the current row.
	must(chromedp.Do(ctx, chromedp.KeyEvent("j"), chromedp.KeyEvent("j"), chromedp.KeyEvent("j"), chromedp.KeyEvent("j"), chromedp.KeyEvent("j")))
	for place := 2; place >= 1; place-- {
		must(chromedp.Do(ctx, chromedp.KeyEvent("K"), chromedp.WaitVisible(chromedp.CSS(fmt.Sprintf(`.queue-rows tbody tr.current:nth-child(%d)[data-run="32"]`, place)))))
	}
	wantOrder(t, q, 32, 30, 31)
	for place := 2; place <= 3; place++ {
		must(chromedp.Do(ctx, chromedp.KeyEvent("J"), chromedp.WaitVisible(chromedp.CSS(fmt.Sprintf(`.queue-rows tbody tr.current:nth-child(%d)[data-run="32"]`, place)))))
	}
	wantOrder(t, q, 30, 31, 32)
	must(chromedp.Do(ctx, chromedp.Click(chromedp.CSS(`summary[aria-label="More for run 31"]`)),
		chromedp.Click(chromedp.CSS(`form[action="/runs/31/stop"] button`))))
	asked := func(n int) {
		for range 100 {
			if len(runs.said()) >= n {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	asked(1)
	must(chromedp.Do(ctx, chromedp.Sleep(700*time.Millisecond), chromedp.Click(chromedp.CSS(".toast:last-child button"))))
	asked(2)
	if want := []string{"stop run 31", "resume run 31"}; !slices.Equal(runs.said(), want) {
		t.Errorf("asked %v, want %v", runs.said(), want)
	}
}

// A run that was handed to a cluster and waits there says for what, until it
// has started.
func TestHandedRunsSayWhy(t *testing.T) {
	url, q, _ := queuedSite(t)
	if _, err := q.store.RunWriter().Move(t.Context(), 30, ablation.EvLaunch, func(r *ablation.Run) { r.Attempt++ }); err != nil {
		t.Fatal(err)
	}
	runs, err := q.store.Runs(t.Context(), store.RunFilter{States: []ablation.State{ablation.Starting, ablation.Running}})
	if err != nil || len(runs) < 2 {
		t.Fatalf("%d live runs, %v; want one that starts and some that run", len(runs), err)
	}
	const why = "job 12 waits in Slurm: other jobs come first (Priority)"
	q.status.Handed = make(map[ablation.RunID]string)
	want := 0
	for _, run := range runs {
		q.status.Handed[run.ID] = why
		if run.State == ablation.Starting {
			want++
			if _, body, _ := get(t, url+fmt.Sprintf("/runs/%d", run.ID)); !strings.Contains(body, "Job 12 waits in Slurm") {
				t.Errorf("the page of run %d does not say why it waits", run.ID)
			}
		}
	}
	if _, body, _ := get(t, url+"/runs"); strings.Count(body, why) != want || want == 0 {
		t.Errorf("the reason is there %d times for %d runs that have not started", strings.Count(body, why), want)
	}
}
