package trainer

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// events reads all of a file, which must be without faults.
func events(t *testing.T, path string) []Event {
	t.Helper()
	f := Follow(path, FollowOptions{})
	defer f.Close()
	var out []Event
	for {
		l := read(t, f)
		if l.Malformed > 0 {
			t.Errorf("faults: %v", l.Faults)
		}
		if l.Empty() {
			return out
		}
		out = append(out, l.Events...)
	}
}

func TestWriterWritesEveryKind(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.jsonl")
	w, err := NewWriter(path, WriterOptions{Now: func() time.Time { return time.UnixMilli(123) }})
	if err != nil {
		t.Fatal(err)
	}
	e := examples()
	err = errors.Join(
		w.Hello(*e[KindHello].Hello), w.Phase(*e[KindPhase].Phase), w.Points(3, map[string]float64{"x": 1}),
		w.Trajectory(*e[KindTrajectory].Trajectory), w.Evaluation(*e[KindEvaluation].Evaluation), w.Checkpoint(*e[KindCheckpoint].Checkpoint),
		w.Artifact(*e[KindArtifact].Artifact), w.Alert(*e[KindAlert].Alert), w.Done(*e[KindDone].Done), w.Close())
	if err != nil {
		t.Fatal(err)
	}
	got := events(t, path)
	want := []Kind{KindHello, KindPhase, KindPoints, KindTrajectory, KindEvaluation, KindCheckpoint, KindArtifact, KindAlert, KindDone}
	if len(got) != len(want) {
		t.Fatalf("%d events, want %d", len(got), len(want))
	}
	for i, e := range got {
		if e.Kind != want[i] || e.T != 123 || e.V != Version {
			t.Errorf("event %d: kind %s, t %d, v %d; want %s, 123, %d", i, e.Kind, e.T, e.V, want[i], Version)
		}
	}
}

func TestWriterIsSafeForConcurrentUse(t *testing.T) {
	for name, o := range map[string]WriterOptions{
		"each at once": {}, "together": {Every: time.Millisecond}, "together, little room": {Every: time.Millisecond, MaxPending: 500},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "events.jsonl")
			w, err := NewWriter(path, o)
			if err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			const writers, each = 8, 200
			for range writers {
				wg.Go(func() {
					for step := range each {
						if err := w.Points(int64(step), map[string]float64{"x": 1, "y": 2}); err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			if err := errors.Join(w.Close(), w.Close()); err != nil && !errors.Is(err, os.ErrClosed) {
				t.Error(err)
			}
			if n := len(events(t, path)); n != writers*each {
				t.Errorf("%d events, want %d", n, writers*each)
			}
		})
	}
}

func TestWriterAppendsAfterATornLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.jsonl")
	appendTo(t, path, line(1)+line(2)[:20])
	w, err := NewWriter(path, WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Points(3, map[string]float64{"x": 1}), w.Close()); err != nil {
		t.Fatal(err)
	}
	f := Follow(path, FollowOptions{})
	defer f.Close()
	if l := read(t, f); stepsOf(l) != "1 3" || l.Malformed != 1 || l.Faults[0].Cause != CauseCut {
		t.Errorf("read %q, faults %v", stepsOf(l), l.Faults)
	}
}

// TestWriterOnAFullDisk limits the size of files, as a full disk would cut a
// line in its middle, and then gives space again.
func TestWriterOnAFullDisk(t *testing.T) {
	if os.Getenv("TRAINER_TEST_FULL") == "" { // in a process of its own: the limit is the process's
		rerun(t, "TestWriterOnAFullDisk", "TRAINER_TEST_FULL=1")
		return
	}
	path := filepath.Join(t.TempDir(), "events.jsonl")
	var heard []error
	w, err := NewWriter(path, WriterOptions{OnError: func(err error) { heard = append(heard, err) }})
	if err != nil {
		t.Fatal(err)
	}
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 1000, Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	written, failed := 0, 0
	for step := range 30 {
		if err := w.Points(int64(step), map[string]float64{"x": 1}); err != nil {
			failed++
		} else {
			written++
		}
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Points(99, map[string]float64{"x": 1}), w.Close()); err != nil {
		t.Fatalf("once there is space: %v", err)
	}
	f := Follow(path, FollowOptions{})
	defer f.Close()
	l := read(t, f)
	if failed == 0 || len(l.Events) != written+1 || l.Events[written].Points.Step != 99 || l.Malformed > 1 {
		t.Errorf("%d written, %d failed, %d read, %d malformed", written, failed, len(l.Events), l.Malformed)
	}
}

func TestWriterReportsFaultsOfTheBackground(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("no /dev/full")
	}
	heard := make(chan error, 100)
	w, err := NewWriter("/dev/full", WriterOptions{Every: time.Millisecond, OnError: func(err error) {
		select {
		case heard <- err:
		default:
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Points(1, map[string]float64{"x": 1}); err != nil {
		t.Fatal(err)
	}
	if err := <-heard; !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("OnError(%v), want no space", err)
	}
	if err := w.Points(2, map[string]float64{"x": 1}); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("the next line: %v, want the fault of the earlier one", err)
	}
	_ = w.Close()
}

func TestNewWriterNamesTheFolderThatIsMissing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none", "events.jsonl")
	if _, err := NewWriter(path, WriterOptions{}); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("NewWriter = %v", err)
	}
}

// BenchmarkPoints is one call of a trainer that logs 50 metrics.
func BenchmarkPoints(b *testing.B) {
	values := map[string]float64{}
	for i := range 50 {
		values["group/metric "+strings.Repeat("x", i)] = 1 / float64(i+3)
	}
	for name, o := range map[string]WriterOptions{"at once": {}, "together": {Every: 50 * time.Millisecond}} {
		b.Run(name, func(b *testing.B) {
			w, err := NewWriter(filepath.Join(b.TempDir(), "events.jsonl"), o)
			if err != nil {
				b.Fatal(err)
			}
			defer w.Close()
			for b.Loop() {
				if err := w.Points(1, values); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkReader reads lines of 10 points and of one trajectory.
func BenchmarkReader(b *testing.B) {
	values := map[string]Float{}
	for i := range 10 {
		values["group/metric "+strings.Repeat("x", i)] = 1 / Float(i+3)
	}
	for name, e := range map[string]Event{
		"points":     {Kind: KindPoints, T: 1, Points: &Points{Step: 1, Values: values}},
		"trajectory": examples()[KindTrajectory],
	} {
		b.Run(name, func(b *testing.B) {
			line, err := Encode(e)
			if err != nil {
				b.Fatal(err)
			}
			file := bytes.Repeat(line, 1000)
			b.SetBytes(int64(len(file)))
			lines := 0
			for b.Loop() {
				r := NewReader(bytes.NewReader(file), ReaderOptions{})
				for r.Next() {
					lines++
				}
			}
			b.ReportMetric(float64(lines)/b.Elapsed().Seconds(), "lines/s")
		})
	}
}
