package native

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

// provenance says where an artifact comes from. Folders of artifacts have the
// same form whichever trainer made them.
type provenance struct {
	Kind  string         `json:"kind"`
	Hash  string         `json:"hash"`
	Of    any            `json:"of"` // everything it depends on: what was hashed
	Run   ablation.RunID `json:"run"`
	Made  time.Time      `json:"made"`
	Notes map[string]any `json:"notes,omitempty"`
}

// artifact returns the folder of the artifact that depends on key, and makes
// it if no run has made it yet. Runs that need the same one wait for each
// other under a lock that the kernel lets go of when its holder dies. The work
// is done in a folder of its own, which stays when it is cut short, so that
// the next to try can go on from it, and is renamed when it is complete.
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
		unlock, err := Lock(ctx, dir+".lock")
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
	work := filepath.Join(filepath.Dir(dir), "."+hash+"-work")
	if err := os.MkdirAll(work, 0o755); err != nil {
		return err
	}
	notes, err := build(work)
	if err != nil {
		return err
	}
	p := provenance{Kind: kind, Hash: hash, Of: key, Run: r.spec.Run, Made: time.Now().UTC(), Notes: notes}
	if err := writeJSON(filepath.Join(work, provenanceFile), p); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil { // of a make that was cut short
		return err
	}
	return os.Rename(work, dir)
}

// announce writes the artifact event.
func (r *run) announce(kind, hash, dir string) error {
	var p provenance
	src, err := os.ReadFile(filepath.Join(dir, provenanceFile))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(src, &p); err != nil {
		return fmt.Errorf("read %s: %w", provenanceFile, err)
	}
	path := dir
	if rel, err := filepath.Rel(dataFolder(r.spec), dir); err == nil {
		path = rel
	}
	notes := map[string]any{"of": p.Of}
	for k, v := range p.Notes {
		notes[k] = v
	}
	return r.out.Artifact(ablation.Artifact{Kind: kind, Hash: hash, Path: path, Bytes: size(dir), Run: p.Run,
		Step: r.last, Provenance: notes, CreatedAt: p.Made})
}

// Lock takes an exclusive lock on the file at path, waiting for it until ctx
// is done.
func Lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), f.Close())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// size adds up the files below a folder, or is that of a file.
func size(path string) (n int64) {
	_ = filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
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
