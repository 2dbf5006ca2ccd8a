package cpu

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"alidade/ablation"
)

// hashOf returns 16 hex digits that name v's JSON form.
func hashOf(v any) (string, error) {
	src, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("hash: %w", err)
	}
	sum := sha256.Sum256(src)
	return hex.EncodeToString(sum[:8]), nil
}

// provenanceFile is written last, so a folder that holds it is complete.
const provenanceFile = "provenance.json"

// provenance says where an artifact comes from.
type provenance struct {
	Kind    string         `json:"kind"`
	Hash    string         `json:"hash"`
	Of      any            `json:"of"` // everything it depends on: what was hashed
	Run     ablation.RunID `json:"run"`
	Made    time.Time      `json:"made"`
	Seconds float64        `json:"cpu_s"`
	Notes   map[string]any `json:"notes,omitempty"`
}

// artifact returns the folder of the artifact that depends on key, and makes
// it if no run has made it yet: under a lock, in a temporary folder that is
// renamed when complete. Runs that need the same artifact wait for each other.
// Either way the run's events name it.
func (r *run) artifact(ctx context.Context, kind string, key any, build func(dir string) (notes map[string]any, err error)) (string, error) {
	hash, err := hashOf(key)
	if err != nil {
		return "", err
	}
	parent := filepath.Join(r.spec.Artifacts, kind)
	dir := filepath.Join(parent, hash)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", fmt.Errorf("artifact folder: %w", err)
	}
	if !exists(filepath.Join(dir, provenanceFile)) {
		unlock, err := lock(ctx, dir+".lock")
		if err != nil {
			return "", err
		}
		defer unlock()
		if !exists(filepath.Join(dir, provenanceFile)) {
			if err := r.build(kind, hash, dir, key, build); err != nil {
				return "", fmt.Errorf("make %s %s: %w", kind, hash, err)
			}
		}
	}
	return dir, r.announce(kind, hash, dir)
}

func (r *run) build(kind, hash, dir string, key any, build func(string) (map[string]any, error)) error {
	tmp, err := os.MkdirTemp(filepath.Dir(dir), "."+hash+"-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	before := cpuSeconds()
	notes, err := build(tmp)
	if err != nil {
		return err
	}
	err = writeJSON(filepath.Join(tmp, provenanceFile), provenance{
		Kind: kind, Hash: hash, Of: key, Run: r.spec.Run, Made: time.Now().UTC(), Seconds: cpuSeconds() - before, Notes: notes})
	if err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil { // of a make that was cut short
		return err
	}
	if err := os.Chmod(tmp, 0o755); err != nil {
		return err
	}
	return os.Rename(tmp, dir)
}

// announce writes the artifact event.
func (r *run) announce(kind, hash, dir string) error {
	var p provenance
	if err := readJSON(filepath.Join(dir, provenanceFile), &p); err != nil {
		return err
	}
	path := dir
	if rel, err := filepath.Rel(filepath.Dir(r.spec.Artifacts), dir); err == nil {
		path = rel
	}
	notes := map[string]any{"of": p.Of, "cpu_s": p.Seconds}
	for k, v := range p.Notes {
		notes[k] = v
	}
	return r.out.Artifact(ablation.Artifact{Kind: kind, Hash: hash, Path: path, Bytes: size(dir), Run: p.Run,
		Step: r.step, Provenance: notes, CreatedAt: p.Made})
}

// lock takes an exclusive lock on the file at path, waiting for it until ctx
// is done. The kernel lets go of it when a holder dies.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func size(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if info, err := d.Info(); err == nil {
				n += info.Size()
			}
		}
		return nil
	})
	return n
}

func writeJSON(path string, v any) error {
	src, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	return os.WriteFile(path, append(src, '\n'), 0o644)
}

func readJSON(path string, v any) error {
	src, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(src, v); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// cpuSeconds is the CPU time of this process so far.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	s := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return s(u.Utime) + s(u.Stime)
}
