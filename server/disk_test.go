package server_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"alidade/ablation"
	"alidade/server"
)

// smallDisk mounts a file system of its own; tests that need one skip where
// they may not mount.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("no small file system to test on: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// fill writes until the disk is full.
func fill(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "ballast")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block := make([]byte, 64<<10)
	for {
		if _, err := f.Write(block); err != nil {
			return path
		}
	}
}

func TestFullDiskAtStart(t *testing.T) {
	dir := smallDisk(t, "2m")
	fill(t, dir)
	s, err := server.Open(t.Context(), server.Config{Data: filepath.Join(dir, "data"), Addr: "127.0.0.1:0", Exe: binary(t)})
	if err == nil {
		_ = s.Close(t.Context()) // the test has failed already
		t.Fatal("a server opened on a full disk")
	}
	if !strings.Contains(err.Error(), "no space") && !strings.Contains(err.Error(), "full") {
		t.Errorf("Open on a full disk = %v; want it named", err)
	}
}

func TestReadOnlyDisk(t *testing.T) {
	dir := smallDisk(t, "16m")
	data := filepath.Join(dir, "data")
	serve(t, data).stop(t)
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Skipf("remount: %v", err)
	}
	s, err := server.Open(t.Context(), server.Config{Data: data, Addr: "127.0.0.1:0", Exe: binary(t)})
	if err == nil {
		_ = s.Close(t.Context()) // the test has failed already
		t.Fatal("a server opened on a read-only disk")
	}
	if !strings.Contains(err.Error(), "read-only") {
		t.Errorf("Open on a read-only disk = %v; want it named", err)
	}
}

// TestLowDisk: below the floor nothing is started and nothing fails; what is
// stored stays readable while the disk is full.
func TestLowDisk(t *testing.T) {
	dir := smallDisk(t, "48m")
	p := serve(t, filepath.Join(dir, "data"))
	id := p.launch(t, tiny("low-disk", 10, "", "[1, 2]"))
	ballast := fill(t, dir)
	time.Sleep(2 * time.Second) // the scheduler has passes enough to start what it would
	for _, r := range p.runs(t, id) {
		if r.State != ablation.Queued {
			t.Errorf("run %d is %s on a disk below the floor", r.ID, r.State)
		}
	}
	if code := p.call(t, http.MethodPost, "/api/v1/studies", tiny("no-room", 10, "", "[1]"), nil); code < 400 {
		t.Errorf("a launch on a full disk answered %d", code)
	}
	for _, path := range []string{"/", "/studies/1", "/healthz"} {
		if body := p.download(t, path); body == "" {
			t.Errorf("%s is empty", path)
		}
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	waitFor(t, 10*time.Second, "the server to take studies again", func() bool {
		return p.call(t, http.MethodPost, "/api/v1/studies", tiny("room", 10, "", "[1]"), nil) == http.StatusCreated
	})
}
