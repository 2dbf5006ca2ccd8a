package verl

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// jobServer stands for Ray's client of its job server: a job that writes two
// lines and ends as the environment says, or when it is stopped.
const jobServer = `
import enum, os
class JobStatus(str, enum.Enum):
    PENDING, RUNNING, SUCCEEDED, FAILED, STOPPED = "PENDING", "RUNNING", "SUCCEEDED", "FAILED", "STOPPED"
class JobSubmissionClient:
    def __init__(self, address):
        self.polls, self.stopped, self.address = 0, False, address
    def submit_job(self, entrypoint, submission_id, runtime_env):
        with open(os.environ["SAW"], "w") as f:
            f.write(entrypoint + "|" + submission_id + "|" + runtime_env["env_vars"].get("TOKEN", ""))
        return submission_id
    def get_job_status(self, job):
        self.polls += 1
        if self.stopped:
            return JobStatus.STOPPED
        if self.polls == 2 and os.environ.get("FLAKY"):
            raise RuntimeError("503")
        if os.environ["ENDS"] == "never":
            return JobStatus.RUNNING
        return JobStatus(os.environ["ENDS"])
    def get_job_logs(self, job):
        return "step:1 - a:1\nstep:2 - a:1\n"
    def stop_job(self, job):
        self.stopped = True
`

func startJob(t *testing.T, ends string, extra ...string) (cmd *exec.Cmd, out *strings.Builder, saw string) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3 here")
	}
	dir := t.TempDir()
	saw = filepath.Join(dir, "saw")
	job, err := json.Marshal(map[string]any{"address": "http://head:8265", "id": "alidade-12-1-rl", "entrypoint": "python3 -m x", "env": map[string]string{"A": "b"}, "secret": "TOKEN"})
	if err != nil {
		t.Fatal(err)
	}
	src := strings.ReplaceAll(string((&ShimSpec{}).fill("alidade_job.py")), "time.sleep(5)", "time.sleep(0.05)")
	for name, text := range map[string]string{"alidade_job.py": src, "job.json": string(job), "ray/__init__.py": "", "ray/job_submission.py": jobServer} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd = exec.CommandContext(t.Context(), python, "-u", filepath.Join(dir, "alidade_job.py"), filepath.Join(dir, "job.json"))
	cmd.Env = append(os.Environ(), append([]string{"PYTHONPATH=" + dir, "ENDS=" + ends, "SAW=" + saw, "TOKEN=secret"}, extra...)...)
	out = &strings.Builder{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, out, saw
}

func exitOf(t *testing.T, err error) int {
	t.Helper()
	if err == nil {
		return 0
	}
	var e *exec.ExitError
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	return e.ExitCode()
}

// TestJobIsFollowedToItsEnd: the exit code is the job's and its log comes
// through once, though the job server does not answer now and then.
func TestJobIsFollowedToItsEnd(t *testing.T) {
	for ends, want := range map[string]int{"SUCCEEDED": 0, "FAILED": 1, "STOPPED": 143} {
		cmd, out, saw := startJob(t, ends, "FLAKY=1")
		if got := exitOf(t, cmd.Wait()); got != want {
			t.Errorf("%s: exit code %d, want %d\n%s", ends, got, want, out)
		}
		if strings.Count(out.String(), "step:1 - a:1") != 1 {
			t.Errorf("the log came through as %q", out)
		}
		if text, err := os.ReadFile(saw); err != nil || string(text) != "python3 -m x|alidade-12-1-rl|secret" {
			t.Errorf("submitted %q, %v", text, err)
		}
	}
}

func TestJobIsStoppedWithItsFollower(t *testing.T) {
	cmd, out, saw := startJob(t, "never")
	for range 200 {
		if _, err := os.Stat(saw); err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := exitOf(t, cmd.Wait()); got != 143 {
		t.Errorf("exit code %d\n%s", got, out)
	}
}
