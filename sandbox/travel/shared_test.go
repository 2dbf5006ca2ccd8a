package travel

import (
	"os"
	"path/filepath"
	"testing"
)

// shared returns a path in the folder of test data beside the repository,
// found through ALIDADE_SHARED or by walking up. The test is skipped without it.
func shared(t testing.TB, elems ...string) string {
	t.Helper()
	root := os.Getenv("ALIDADE_SHARED")
	if root == "" {
		dir, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		for {
			if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
				break
			}
			parent := filepath.Dir(dir)
			if parent == dir {
				t.Skip("no go.mod above this folder, so no test data")
			}
			dir = parent
		}
		root = filepath.Join(filepath.Dir(dir), "shared")
	}
	path := filepath.Join(append([]string{root, "data", "travelplanner"}, elems...)...)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("test data absent: %v", err)
	}
	return path
}
