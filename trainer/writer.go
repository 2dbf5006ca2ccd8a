package trainer

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"alidade/ablation"
)

// WriterOptions tunes a writer.
type WriterOptions struct {
	// Every collects lines and writes them together this often, from a
	// goroutine of the writer's own, so that a slow disk does not hold up
	// training. 0 writes each line at once.
	Every time.Duration
	// MaxPending is how many collected bytes make a caller wait for the disk;
	// 0 = 64 MiB.
	MaxPending int
	// OnError hears of a write that failed in the background, once for each
	// failure; nil ignores it. Write and Flush return the error too.
	OnError func(error)
	// Now is the clock that stamps events; nil = time.Now.
	Now func() time.Time
}

// A Writer appends events to a file: whole lines, one write call for each
// line, or for each batch of lines. It is safe for concurrent use. An error of
// the file does not spoil later lines: a line cut by a full disk is closed
// before the next one.
type Writer struct {
	o    WriterOptions
	file *os.File
	stop chan struct{}
	done sync.WaitGroup

	mu      sync.Mutex // guards pending and failed
	pending []byte
	failed  error // of the background, not yet returned
	room    *sync.Cond

	writing sync.Mutex // held while the file is written
	spare   []byte
	torn    bool // the file ends inside a line
}

// NewWriter opens the events file at path, made if need be, for appending.
// Close the writer.
func NewWriter(path string, o WriterOptions) (*Writer, error) {
	if o.MaxPending <= 0 {
		o.MaxPending = 64 << 20
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open events: %w", err)
	}
	w := &Writer{o: o, file: file, stop: make(chan struct{})}
	w.room = sync.NewCond(&w.mu)
	if info, err := file.Stat(); err == nil {
		whole, err := beginsLine(file, info.Size())
		w.torn = err == nil && !whole
	}
	if o.Every > 0 {
		w.done.Go(w.background)
	}
	return w, nil
}

// Write appends e, stamped with the version and, when T is 0, the time. When
// lines are collected it returns the error of an earlier write, if there was
// one.
func (w *Writer) Write(e Event) error {
	if e.T == 0 {
		e.T = w.o.Now().UnixMilli()
	}
	line, err := Encode(e)
	if err != nil {
		return err
	}
	if w.o.Every <= 0 {
		w.writing.Lock()
		defer w.writing.Unlock()
		return w.put(line)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.pending) > w.o.MaxPending && w.failed == nil {
		w.room.Wait()
	}
	w.pending = append(w.pending, line...)
	err, w.failed = w.failed, nil
	return err
}

// Hello writes the first event of an attempt.
func (w *Writer) Hello(h Hello) error { return w.Write(Event{Kind: KindHello, Hello: &h}) }

// Phase opens a phase.
func (w *Writer) Phase(p Phase) error { return w.Write(Event{Kind: KindPhase, Phase: &p}) }

// Points writes metric values of one step; NaN and ±Inf are data.
func (w *Writer) Points(step int64, values map[string]float64) error {
	p := &Points{Step: step, Values: make(map[string]Float, len(values))}
	for name, v := range values {
		p.Values[name] = Float(v)
	}
	return w.Write(Event{Kind: KindPoints, Points: p})
}

// Trajectory writes the record of one episode.
func (w *Writer) Trajectory(t Trajectory) error {
	return w.Write(Event{Kind: KindTrajectory, Trajectory: &t})
}

// Evaluation writes the outcome of a panel.
func (w *Writer) Evaluation(r ablation.EvalResult) error {
	return w.Write(Event{Kind: KindEvaluation, Evaluation: &r})
}

// Checkpoint says that a checkpoint is complete on disk.
func (w *Writer) Checkpoint(c Checkpoint) error {
	return w.Write(Event{Kind: KindCheckpoint, Checkpoint: &c})
}

// Artifact says that a shared product is complete on disk.
func (w *Writer) Artifact(a ablation.Artifact) error {
	return w.Write(Event{Kind: KindArtifact, Artifact: &a})
}

// Alert writes something that a person should look at.
func (w *Writer) Alert(a Alert) error { return w.Write(Event{Kind: KindAlert, Alert: &a}) }

// Done writes the last event, and waits until everything is on the disk.
func (w *Writer) Done(d Done) error {
	return errors.Join(w.Write(Event{Kind: KindDone, Done: &d}), w.Sync())
}

// Flush writes what is collected.
func (w *Writer) Flush() error {
	w.writing.Lock()
	defer w.writing.Unlock()
	w.mu.Lock()
	lines := w.pending
	w.pending = w.spare[:0]
	err := w.failed
	w.failed = nil
	w.room.Broadcast()
	w.mu.Unlock()
	if len(lines) > 0 {
		err = errors.Join(err, w.put(lines))
	}
	if w.spare = lines[:0]; cap(lines) > 1<<20 {
		w.spare = nil
	}
	return err
}

// Sync flushes, and waits until the lines are on the disk.
func (w *Writer) Sync() error {
	if err := w.Flush(); err != nil {
		return err
	}
	if err := w.file.Sync(); err != nil {
		return fmt.Errorf("sync events: %w", err)
	}
	return nil
}

// Close flushes and closes the file.
func (w *Writer) Close() error {
	if w.o.Every > 0 {
		select {
		case <-w.stop:
			return nil
		default:
			close(w.stop)
		}
		w.done.Wait()
	}
	return errors.Join(w.Flush(), w.file.Close())
}

// background writes what is collected, until Close.
func (w *Writer) background() {
	tick := time.NewTicker(w.o.Every)
	defer tick.Stop()
	for {
		select {
		case <-w.stop:
			return
		case <-tick.C:
		}
		err := w.Flush()
		if err == nil {
			continue
		}
		w.mu.Lock()
		w.failed = err
		w.room.Broadcast()
		w.mu.Unlock()
		if w.o.OnError != nil {
			w.o.OnError(err)
		}
	}
}

// put writes whole lines with one call. The caller holds w.writing.
func (w *Writer) put(lines []byte) error {
	if w.torn {
		lines = append([]byte{'\n'}, lines...)
	}
	n, err := w.file.Write(lines)
	if n > 0 {
		w.torn = lines[n-1] != '\n'
	}
	if err == nil && n < len(lines) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return fmt.Errorf("write events: %w", err)
	}
	return nil
}
