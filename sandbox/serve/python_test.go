package serve

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The client in examples plays an episode, over TCP and over a Unix socket.
func TestPythonClient(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3 here")
	}
	dir := t.TempDir()
	plan := filepath.Join(dir, "plan.json")
	if err := os.WriteFile(plan, []byte(theFixture(t).plans[2]), 0o600); err != nil {
		t.Fatal(err)
	}
	tcp := start(t, nil)
	socket := filepath.Join(dir, "s")
	unix, _ := startUnix(t, socket, nil)
	for _, x := range []struct {
		name, url string
		args      []string
		score     float64
		c         *client
	}{
		{"plan over TCP", tcp.base, []string{"--task", "2", "--split", "train", "--plan", plan}, 5, tcp},
		{"nothing over a Unix socket", "unix:" + socket, nil, 0, unix},
	} {
		t.Run(x.name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), python, append([]string{"../../examples/env_client.py", "--url", x.url, "--token", testToken}, x.args...)...)
			cmd.Stderr = t.Output()
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("client: %v", err)
			}
			var r ScoreResult
			if err := json.Unmarshal(out, &r); err != nil {
				t.Fatalf("%v in %s", err, out)
			}
			if r.Score != x.score || r.Metrics["tool_calls"] != 6 {
				t.Errorf("client got %s, want score %v and 6 calls", out, x.score)
			}
			var st Stats
			x.c.want(200, "GET", "/env/stats", nil, &st)
			if st.Live != 0 || st.Scored != 1 {
				t.Errorf("stats = %+v, want the episode scored and deleted", st)
			}
		})
	}
}
