package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"alidade/ablation"
	"alidade/runner/shim"
)

const (
	defaultTail = 64 << 10
	mostTail    = 4 << 20
)

// Log returns the last tail bytes of an attempt's stdout or stderr, or of the
// newest dump of what its processes do (see [Runner.Dump]), from the
// start of a line where it can. attempt 0 is the latest, tail 0 is 64 KiB; at
// most 4 MiB come. What was not written yet is empty. Carriage returns are
// left as they are.
func (r *Runner) Log(ctx context.Context, id ablation.RunID, attempt int, stream string, tail int64) ([]byte, error) {
	path, err := r.logPath(ctx, id, attempt, stream)
	if err != nil || path == "" {
		return nil, err
	}
	if tail < 0 {
		return nil, &ablation.Invalid{Fields: []ablation.FieldError{{Field: "tail", Value: fmt.Sprint(tail), Allowed: "bytes, 0 or more"}}}
	}
	if tail == 0 {
		tail = defaultTail
	}
	return tailOf(path, min(tail, mostTail)), nil
}

// LogRange returns up to n bytes (at most 4 MiB) of an attempt's log from an
// offset, and the log's size now. An offset behind the end gives nothing.
func (r *Runner) LogRange(ctx context.Context, id ablation.RunID, attempt int, stream string, from, n int64) (text []byte, size int64, err error) {
	path, err := r.logPath(ctx, id, attempt, stream)
	if err != nil || path == "" {
		return nil, 0, err
	}
	if from < 0 || n < 0 {
		return nil, 0, &ablation.Invalid{Fields: []ablation.FieldError{{Field: "from", Value: fmt.Sprintf("%d, %d bytes", from, n), Allowed: "0 or more"}}}
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("open run log: %w", err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, 0, fmt.Errorf("open run log: %w", err)
	}
	text, err = io.ReadAll(io.NewSectionReader(f, from, min(n, mostTail)))
	if err != nil {
		return nil, 0, fmt.Errorf("read run log: %w", err)
	}
	return text, info.Size(), nil
}

// logPath names the file; "" when the run has no attempt yet.
func (r *Runner) logPath(ctx context.Context, id ablation.RunID, attempt int, stream string) (string, error) {
	name, ok := map[string]string{"stdout": shim.StdoutFile, "stderr": shim.StderrFile, "dump": ""}[stream]
	if !ok {
		return "", &ablation.Invalid{Fields: []ablation.FieldError{{Field: "stream", Value: stream, Allowed: "stdout, stderr, dump"}}}
	}
	run, err := r.store.Run(ctx, id)
	if err != nil {
		return "", fmt.Errorf("log of run %d: %w", id, err)
	}
	if attempt < 0 || attempt > run.Attempt {
		return "", fmt.Errorf("log of run %d: attempt %d of %d: %w", id, attempt, run.Attempt, ablation.ErrNotFound)
	}
	if attempt == 0 {
		attempt = run.Attempt
	}
	if attempt == 0 {
		return "", nil
	}
	if stream == "dump" {
		return lastDump(r.attemptDir(id, attempt)), nil
	}
	return filepath.Join(r.attemptDir(id, attempt), name), nil
}

// tailOf returns the last n bytes of a file, cut at a line where it can be;
// nothing when it cannot be read.
func tailOf(path string, n int64) []byte {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	from := max(0, info.Size()-n)
	text, err := io.ReadAll(io.NewSectionReader(f, from, n))
	if err != nil {
		return nil
	}
	if from == 0 {
		return text
	}
	for i, b := range text {
		if b == '\n' {
			return text[i+1:]
		}
	}
	return text
}
