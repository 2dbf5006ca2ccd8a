package launchertest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Cluster starts a real Slurm cluster on loopback for this test and sets the
// environment to it; it returns the cluster's folder. Where none can be had the
// test is skipped, and fails where CI is set. Options are those of the shared
// program slurm-test-cluster, as "--nodes", "2".
func Cluster(t *testing.T, options ...string) string {
	t.Helper()
	tool, err := clusterTool()
	if err != nil {
		missing(t, "no test cluster: "+err.Error())
	}
	if _, err := exec.LookPath("sbatch"); err != nil {
		missing(t, "no Slurm: apt-get install -y --no-install-recommends slurm-wlm munge")
	}
	dir, err := os.MkdirTemp("", "alidade-slurm") // short: sockets are in it
	if err != nil {
		t.Fatal(err)
	}
	var complaints bytes.Buffer
	start := exec.Command(tool, append([]string{"start", dir, "--timeout", "60", "--conf", "KillWait=2"}, options...)...)
	start.Stderr = &complaints
	out, err := start.Output()
	t.Cleanup(func() {
		if out, err := exec.Command(tool, "stop", dir).CombinedOutput(); err != nil {
			t.Errorf("stop the cluster: %v: %s", err, out)
		}
		_ = os.RemoveAll(dir)
	})
	if err != nil {
		t.Fatalf("start the cluster: %v: %s", err, complaints.String())
	}
	for line := range strings.Lines(string(out)) {
		if pair, ok := strings.CutPrefix(strings.TrimSpace(line), "export "); ok {
			name, value, _ := strings.Cut(pair, "=")
			t.Setenv(name, value)
		}
	}
	return dir
}

func missing(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// clusterTool finds the program in the shared folder: that of ALIDADE_SHARED,
// or the one beside the module's root.
func clusterTool() (string, error) {
	shared := os.Getenv("ALIDADE_SHARED")
	if shared == "" {
		dir, err := os.Getwd()
		if err != nil {
			return "", err
		}
		for dir != filepath.Dir(dir) {
			if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
				break
			}
			dir = filepath.Dir(dir)
		}
		shared = filepath.Join(dir, "..", "shared")
	}
	tool := filepath.Join(shared, "tools", "slurm-test-cluster")
	_, err := os.Stat(tool)
	return tool, err
}
