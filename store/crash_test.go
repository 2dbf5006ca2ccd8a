package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"alidade/ablation"
	"alidade/trainer"
)

// ingestForever is the child of TestKilledServerLosesNothing: a server that
// follows run 1's events until it is killed.
func ingestForever(dir string) error {
	s, err := Open(dir, Options{CommitEvery: 3 * time.Millisecond})
	if err != nil {
		return err
	}
	fmt.Println("open")
	ctx := context.Background()
	attempts, err := s.Attempts(ctx, 1)
	if err != nil {
		return err
	}
	f := trainer.Follow(filepath.Join(s.AttemptDir(1, 1), "events.jsonl"), trainer.FollowOptions{Offset: attempts[0].Offset})
	for {
		lines, err := f.Read(50)
		if err != nil {
			return err
		}
		if lines.Empty() {
			time.Sleep(time.Millisecond)
			continue
		}
		b := Batch{Run: 1, Attempt: 1, Offset: lines.Offset, Events: lines.Events, Malformed: lines.Malformed, Unknown: lines.Unknown, Segment: lines.Segment}
		if _, err := s.RunWriter().Append(ctx, b); err != nil {
			return err
		}
		if rand.IntN(20) == 0 {
			s.settleTail(1) // so that some kills fall into a move to rest
		}
	}
}

// TestKilledServerLosesNothing kills a server that follows a growing file
// again and again, and then compares the store with the file.
func TestKilledServerLosesNothing(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	create(t, s, 1)
	start(t, s, 1, 1, 0)
	path := filepath.Join(s.AttemptDir(1, 1), "events.jsonl")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	out, err := trainer.NewWriter(path, trainer.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	kills, step := 12, int64(0)
	if testing.Short() {
		kills = 3
	}
	for range kills {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), "STORE_TEST_INGEST="+dir)
		child.Stderr = os.Stderr
		said, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(said).ReadString('\n'); err != nil || line != "open\n" {
			t.Fatalf("child said %q, %v", line, err)
		}
		for end := time.Now().Add(time.Duration(20+rand.IntN(80)) * time.Millisecond); time.Now().Before(end); step++ {
			if err := out.Write(points(step, map[string]float64{"x": float64(step)})); err != nil {
				t.Fatal(err)
			}
			if step%7 == 0 {
				if err := out.Write(trajectory(step, 0, nil)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := child.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = child.Wait()
	}
	again := open(t, dir)
	follow(t, again, 1, 1, 1000)
	got := series(t, again, 1, "x")
	if int64(len(got.Points)) != step || int64(got.Total) != step {
		t.Fatalf("%d points, want %d", len(got.Points), step)
	}
	for i, p := range got.Points {
		if p.Step != int64(i) || p.Value != float64(i) {
			t.Fatalf("point %d = %v", i, p)
		}
	}
	c, err := again.Counts(t.Context(), 1)
	if err != nil || c.Points != step || c.Trajectories != (step+6)/7 {
		t.Errorf("Counts = %+v, %v; want %d points, %d trajectories", c, err, step, (step+6)/7)
	}
	var ok string
	if err := again.read.QueryRow("PRAGMA integrity_check").Scan(&ok); err != nil || ok != "ok" {
		t.Errorf("integrity_check = %q, %v", ok, err)
	}
}

func TestCountsAndFaults(t *testing.T) {
	s := open(t, t.TempDir())
	create(t, s, 1)
	start(t, s, 1, 1, 0)
	train(t, s, 1, 1, 0, 20, true)
	got, err := s.Counts(t.Context(), 1)
	if want := (Counts{Points: 42, Trajectories: 3, Evaluations: 3, Malformed: 1, Unknown: 1}); err != nil || got != want {
		t.Errorf("Counts = %+v, %v; want %+v", got, err, want)
	}
	faults, err := s.Faults(t.Context(), 1)
	if err != nil || len(faults) != 1 || faults[0].Cause != trainer.CauseNotFinite || faults[0].Line != 36 {
		t.Errorf("Faults = %+v, %v", faults, err)
	}
	none, err := s.Counts(t.Context(), 99)
	if err != nil || none != (Counts{}) {
		t.Errorf("Counts(99) = %+v, %v", none, err)
	}
}

func TestRecords(t *testing.T) {
	s := open(t, t.TempDir())
	create(t, s, 1)
	start(t, s, 1, 1, 0)
	train(t, s, 1, 1, 0, 20, true)
	ctx := t.Context()
	if h, err := s.Hello(ctx, 1); err != nil || h.Trainer != "test" || h.TotalSteps != 100 {
		t.Errorf("Hello = %+v, %v", h, err)
	}
	if d, err := s.Done(ctx, 1, 1); err != nil || !d.OK || d.Step != 20 {
		t.Errorf("Done = %+v, %v", d, err)
	}
	if p, err := s.Phases(ctx, 1); err != nil || len(p) != 1 || p[0].Name != "rl" || !p[0].Main {
		t.Errorf("Phases = %+v, %v", p, err)
	}
	if c, err := s.Checkpoints(ctx, 1); err != nil || len(c) != 3 || c[2].Path != filepath.Join(s.AttemptDir(1, 1), "checkpoints/step-000020") {
		t.Errorf("Checkpoints = %+v, %v", c, err)
	}
	if a, err := s.Artifacts(ctx, 1); err != nil || len(a) != 1 || a[0].Run != 1 || a[0].Path != "artifacts/dataset/abc" || a[0].Provenance["seed"] != 1.0 {
		t.Errorf("Artifacts = %+v, %v", a, err)
	}
	if a, err := s.Alerts(ctx, 1, 0, 5); err != nil || len(a) != 1 || a[0].Code != "nan" || a[0].Run != 1 {
		t.Errorf("Alerts = %+v, %v", a, err)
	}
	if e, err := s.Evaluations(ctx, []ablation.RunID{1}); err != nil || len(e) != 3 || e[1].Step != 10 || e[1].Queries[0].Passed != 1 {
		t.Errorf("Evaluations = %+v, %v", e, err)
	}
	if m, err := s.Metrics(ctx, []ablation.RunID{1, 2}); err != nil || strings.Join(m, " ") != "policy/entropy reward/mean" {
		t.Errorf("Metrics = %v, %v", m, err)
	}
	if r, err := s.Run(ctx, 1); err != nil || r.Phase != "rl" || r.Step != 20 || r.TotalSteps != 100 || !r.HeardAt.Equal(clock(20)) {
		t.Errorf("Run = %+v, %v", r, err)
	}
}

func TestEvaluationOfALaterAttemptReplacesLaterSteps(t *testing.T) {
	s := open(t, t.TempDir())
	create(t, s, 1)
	start(t, s, 1, 1, 0)
	eval := func(step int64, samples int) trainerEvent {
		return trainerEvent{Kind: trainer.KindEvaluation, T: at(step), Evaluation: &ablation.EvalResult{Panel: "test", Policy: "policy", Mode: "sampled", Step: step, Samples: samples}}
	}
	(&feeder{t: t, w: s.RunWriter(), run: 1, attempt: 1}).append(eval(0, 1), eval(10, 1), eval(20, 1), eval(30, 1))
	if err := s.RunWriter().StartAttempt(t.Context(), ablation.Attempt{Run: 1, Number: 2, FirstStep: 15}); err != nil {
		t.Fatal(err)
	}
	(&feeder{t: t, w: s.RunWriter(), run: 1, attempt: 2}).append(eval(20, 2))
	got, err := s.Evaluations(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var samples []int
	for _, e := range got {
		samples = append(samples, int(e.Step)*10+e.Samples)
	}
	if want := []int{1, 101, 202}; !equal(samples, want) {
		t.Errorf("evaluations (10·step + samples) = %v, want %v", samples, want)
	}
}

func TestAppendRefusesWhatWasAppended(t *testing.T) {
	s := open(t, t.TempDir())
	create(t, s, 1)
	start(t, s, 1, 1, 0)
	w := s.RunWriter()
	b := Batch{Run: 1, Attempt: 1, Offset: 100, Events: []trainerEvent{points(1, map[string]float64{"x": 1})}}
	first, err := w.Append(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string]Batch{
		"the same batch":    b,
		"an earlier offset": {Run: 1, Attempt: 1, Offset: 50},
		"no such attempt":   {Run: 1, Attempt: 2, Offset: 200},
		"no such run":       {Run: 7, Attempt: 1, Offset: 200},
	} {
		if _, err := w.Append(t.Context(), b); err == nil {
			t.Errorf("%s was stored", name)
		}
	}
	second, err := w.Append(t.Context(), Batch{Run: 1, Attempt: 1, Offset: 200, Events: []trainerEvent{points(2, map[string]float64{"x": 1})}})
	if err != nil || second.Seq <= first.Seq {
		t.Errorf("Append = seq %d after %d, %v", second.Seq, first.Seq, err)
	}
	if got := series(t, s, 1, "x"); len(got.Points) != 2 {
		t.Errorf("%d points, want 2", len(got.Points))
	}
}

// TestALoneBatchIsStoredAtOnce: only batches that follow soon are collected.
func TestALoneBatchIsStoredAtOnce(t *testing.T) {
	s, err := Open(t.TempDir(), Options{CommitEvery: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	create(t, s, 1)
	start(t, s, 1, 1, 0)
	(&feeder{t: t, w: s.RunWriter(), run: 1, attempt: 1}).append(points(1, map[string]float64{"x": 1}))
	waits := make(chan error, 1)
	go func() {
		_, err := s.RunWriter().Append(t.Context(), Batch{Run: 1, Attempt: 1, Offset: 500, Events: []trainerEvent{points(2, map[string]float64{"x": 1})}})
		waits <- err
	}()
	time.Sleep(20 * time.Millisecond) // either way it ends the same
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-waits; err != nil && !errors.Is(err, ErrClosed) {
		t.Errorf("a batch that waits while the store closes: %v, want nil or ErrClosed", err)
	}
	if _, err := s.RunWriter().Append(t.Context(), Batch{Run: 1, Attempt: 1, Offset: 900}); !errors.Is(err, ErrClosed) {
		t.Errorf("Append to a closed store = %v, want ErrClosed", err)
	}
}

// TestABadBatchOfAGroupFailsAlone appends to a run and to a run that does not
// exist in one group.
func TestABadBatchOfAGroupFailsAlone(t *testing.T) {
	s, err := Open(t.TempDir(), Options{CommitEvery: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	create(t, s, 1)
	start(t, s, 1, 1, 0)
	w := s.RunWriter()
	event := func(name string) []trainerEvent { return []trainerEvent{points(1, map[string]float64{name: 1})} }
	if _, err := w.Append(t.Context(), Batch{Run: 1, Attempt: 1, Offset: 1, Events: event("x")}); err != nil {
		t.Fatal(err)
	}
	bad := make(chan error, 1)
	go func() {
		_, err := w.Append(t.Context(), Batch{Run: 9, Attempt: 1, Offset: 5, Events: event("new name")})
		bad <- err
	}()
	if _, err := w.Append(t.Context(), Batch{Run: 1, Attempt: 1, Offset: 5, Events: event("y")}); err != nil {
		t.Errorf("the good batch: %v", err)
	}
	if err := <-bad; err == nil {
		t.Error("the bad batch was stored")
	}
	if _, err := w.Append(t.Context(), Batch{Run: 1, Attempt: 1, Offset: 9, Events: event("new name")}); err != nil {
		t.Errorf("a name that the bad batch had: %v", err)
	}
	if got := series(t, s, 1, "new name"); len(got.Points) != 1 {
		t.Errorf("its series = %+v", got)
	}
}
