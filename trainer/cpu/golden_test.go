package cpu

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

var rewrite = flag.Bool("update", false, "write the golden files anew")

// TestNumbersBelongToTheCodeVersion pins the numbers of a tiny run under the
// portable kernel. When it fails the code computes something else than the
// artifacts of this codeVersion hold: raise codeVersion, then run with -update.
func TestNumbersBelongToTheCodeVersion(t *testing.T) {
	if raceOn {
		t.Skip("one thread of arithmetic: tested without the race detector")
	}
	if runtime.GOARCH != "amd64" {
		t.Skip("the golden numbers are of amd64: other compilers fuse multiplications and additions differently")
	}
	rec := tinyRecipe(t)
	rec.Trainer.Kernel = "generic"
	o := runTiny(t, t.Context(), t.TempDir(), "a", 1, rec, nil, Config{})
	if o.err != nil {
		t.Fatal(o.err)
	}
	numbers := strings.Join(o.numbers(0), "\n")
	sum := sha256.Sum256([]byte(numbers))
	got := "code " + codeVersion + " sha256 " + hex.EncodeToString(sum[:]) + "\n"
	path := filepath.Join("testdata", "numbers.golden")
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("numbers changed: got %swant %sraise codeVersion in run.go, then run go test -update", got, want)
	}
}
