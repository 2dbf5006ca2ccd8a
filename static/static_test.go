package static

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// tools runs one of the repository's Go tools from its root.
func tool(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command("go", append([]string{"tool", "-modfile=tools/go.mod"}, args...)...)
	cmd.Dir = ".."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

func node(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("node")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("node is not on PATH")
		}
		t.Skip("node is not on PATH")
	}
	if _, err := os.Stat("../node_modules/uplot"); err != nil {
		t.Skip("browser libraries are not installed: npm ci --ignore-scripts")
	}
	return path
}

// TestBrowserCode runs the tests of the TypeScript modules.
func TestBrowserCode(t *testing.T) {
	n := node(t)
	out := filepath.Join(t.TempDir(), "tests.mjs")
	tool(t, "esbuild", "static/test/series.test.ts", "--bundle", "--platform=node", "--format=esm", "--log-level=warning", "--outfile="+out)
	if text, err := exec.Command(n, "--test", out).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
}

// TestBrowserTypes checks the types of all TypeScript.
func TestBrowserTypes(t *testing.T) {
	n := node(t)
	cmd := exec.Command(n, "node_modules/typescript/bin/tsc", "-p", "tsconfig.json")
	cmd.Dir = ".."
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
}

func TestFiles(t *testing.T) {
	files, err := Files()
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range files {
		if len(f.Hash) != 12 || f.Type == "" || name == ".gitkeep" {
			t.Errorf("%s: hash %q, type %q", name, f.Hash, f.Type)
		}
	}
}
