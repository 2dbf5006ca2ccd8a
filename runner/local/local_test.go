package local_test

import (
	"os"
	"testing"
	"time"

	"alidade/runner"
	"alidade/runner/launchertest"
	"alidade/runner/local"
	"alidade/runner/shim"
)

// TestMain makes the test binary its own shim.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "shim" {
		os.Exit(shim.Main(os.Args[2:]))
	}
	os.Exit(m.Run())
}

func TestLauncher(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	launchertest.Run(t, launchertest.Patience(20*time.Second), func(t *testing.T) runner.Launcher {
		l, err := local.New(exe)
		if err != nil {
			t.Fatal(err)
		}
		return l
	})
}
