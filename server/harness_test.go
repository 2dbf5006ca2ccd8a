package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"alidade/ablation"
	"alidade/server"
)

// These tests run the real program: the binary that make built, or one built
// here.
var buildOnce = sync.OnceValues(func() (string, error) {
	if bin := os.Getenv("ALIDADE_BIN"); bin != "" {
		return bin, nil
	}
	dir, err := os.MkdirTemp("", "alidade-bin")
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "alidade")
	out, err := exec.Command("go", "build", "-o", bin, "alidade").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return bin, nil
})

func binary(t *testing.T) string {
	t.Helper()
	bin, err := buildOnce()
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// process is a running `alidade serve`.
type process struct {
	cmd   *exec.Cmd
	here  server.Here
	token string
	out   *bytes.Buffer
}

// serve starts a server on data and waits until it answers.
func serve(t *testing.T, data string, args ...string) *process {
	t.Helper()
	out := &bytes.Buffer{}
	cmd := exec.Command(binary(t), append([]string{"serve", "--data", data, "--addr", "127.0.0.1:0"}, args...)...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: cmd, out: out}
	t.Cleanup(func() { p.kill() })
	waitFor(t, 20*time.Second, "the server to answer", func() bool {
		here, token, ok := server.Find(data)
		if ok && here.PID == cmd.Process.Pid {
			p.here, p.token = here, token
			return true
		}
		return false
	})
	return p
}

// kill is what a power cut does to the process.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	_ = p.cmd.Wait()
}

// stop asks the server to end and waits.
func (p *process) stop(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("server ended with %v:\n%s", err, p.out)
	}
}

// call asks the API and decodes the answer into out.
func (p *process) call(t *testing.T, method, path, body string, out any) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, p.here.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+p.token)
	if body != "" {
		req.Header.Set("Content-Type", "application/yaml")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", method, path, err, p.out)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if out != nil {
		if err := json.Unmarshal(raw, out); err != nil {
			t.Fatalf("%s %s answered %d: %s", method, path, res.StatusCode, raw)
		}
	}
	return res.StatusCode
}

// launch queues a study and returns its id.
func (p *process) launch(t *testing.T, study string) ablation.StudyID {
	t.Helper()
	var out struct {
		Study ablation.StudyRecord
		Error any
	}
	if code := p.call(t, http.MethodPost, "/api/v1/studies", study, &out); code != http.StatusCreated {
		t.Fatalf("launch answered %d: %v", code, out.Error)
	}
	return out.Study.ID
}

// runs reads the study's runs.
func (p *process) runs(t *testing.T, id ablation.StudyID) []ablation.Run {
	t.Helper()
	var out struct{ Runs []ablation.Run }
	p.call(t, http.MethodGet, fmt.Sprintf("/api/v1/studies/%d/runs", id), "", &out)
	return out.Runs
}

// wait waits until all runs of a study have ended.
func (p *process) wait(t *testing.T, id ablation.StudyID, limit time.Duration) []ablation.Run {
	t.Helper()
	var runs []ablation.Run
	waitFor(t, limit, "the runs to end", func() bool {
		runs = p.runs(t, id)
		for _, r := range runs {
			if !r.State.Terminal() {
				return false
			}
		}
		return len(runs) > 0
	})
	return runs
}

// waitFor polls a condition; it fails the test when the limit passes.
func waitFor(t *testing.T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v for %s", limit, what)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// tiny is a study that trains for real but for seconds only.
func tiny(name string, steps int, factors string, seeds string) string {
	return fmt.Sprintf(`name: %s
base:
  preset: quick
  sft: {traces: 40, epochs: 1, control: false}
  algorithm: {group_size: 4, prompts_per_step: 4}
  budget: {steps: %d, checkpoint_every: 5}
  evaluation: {every: %d, queries: 16, samples: 1}
%sseeds: %s
`, name, steps, max(steps/2, 1), factors, seeds)
}

const rewardFactor = `factors:
  - key: reward.kind
    levels: [SUM, MACRO]
`
