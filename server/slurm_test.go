package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"alidade/ablation"
	"alidade/runner/launchertest"
	"alidade/runner/shim"
	"alidade/store"
)

// patience bounds each wait for a condition.
const patience = time.Minute

// slurm runs one of Slurm's programs.
func slurm(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v: %s", program, args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// A slurmStudy is a study of embedded runs on a test cluster of one node with
// three CPUs.
type slurmStudy struct {
	t       *testing.T
	cluster string
	data    string
	p       *process
	id      ablation.StudyID
	runs    []ablation.RunID
}

func newSlurmStudy(t *testing.T, settings string, steps, runs int) *slurmStudy {
	s := &slurmStudy{t: t, cluster: launchertest.Cluster(t, "--cpus", "3", "--gpus", "0"), data: t.TempDir()}
	if err := os.WriteFile(filepath.Join(s.data, "settings.json"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	s.serve()
	seeds := make([]string, runs)
	for i := range seeds {
		seeds[i] = fmt.Sprint(i + 1)
	}
	s.id = s.p.launch(t, tiny("on a cluster", steps, "", "["+strings.Join(seeds, ", ")+"]"))
	for _, run := range s.p.runs(t, s.id) {
		s.runs = append(s.runs, run.ID)
	}
	if len(s.runs) != runs {
		t.Fatalf("%d runs, want %d", len(s.runs), runs)
	}
	return s
}

// tell shows what stands where when the test fails.
func (s *slurmStudy) tell() {
	out, _ := exec.Command("squeue", "--array").CombinedOutput()
	var queue json.RawMessage
	s.p.call(s.t, http.MethodGet, "/api/v1/queue", "", &queue)
	s.t.Logf("squeue:\n%s\nqueue: %s\nserver:\n%s", out, queue, s.p.out)
}

func (s *slurmStudy) serve() { s.p = serve(s.t, s.data, "--launcher", "slurm") }

func (s *slurmStudy) state() map[ablation.RunID]ablation.Run {
	byID := make(map[ablation.RunID]ablation.Run)
	for _, run := range s.p.runs(s.t, s.id) {
		byID[run.ID] = run
	}
	return byID
}

func (s *slurmStudy) until(what string, ok func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.tell()
			s.t.Fatalf("waited %v for %s", patience, what)
		}
	}
}

// handed is what the runs in the cluster's queue wait for, as a person sees it.
func (s *slurmStudy) handed() map[ablation.RunID]string {
	var out struct{ Handed map[ablation.RunID]string }
	s.p.call(s.t, http.MethodGet, "/api/v1/queue", "", &out)
	return out.Handed
}

func (s *slurmStudy) stop(id ablation.RunID) {
	s.t.Helper()
	if code := s.p.call(s.t, http.MethodPost, fmt.Sprintf("/api/v1/runs/%d/stop", id), "", nil); code >= 300 {
		s.t.Errorf("stop run %d answered %d", id, code)
	}
}

func (s *slurmStudy) attempt(id ablation.RunID, n int) string {
	return filepath.Join(s.data, "runs", fmt.Sprint(id), fmt.Sprint(n))
}

func (s *slurmStudy) shim(id ablation.RunID, n int) shim.Handle {
	s.t.Helper()
	h, err := shim.ReadHandle(s.attempt(id, n))
	if err != nil {
		s.t.Fatal(err)
	}
	return h
}

// slow holds a run's trainer until it is asked to end because of its job's time
// limit, as a slow machine would: the limit then meets it in its middle,
// however fast this machine is.
func (s *slurmStudy) slow(id ablation.RunID) (warned <-chan error) {
	s.t.Helper()
	pid := s.shim(id, 1).TrainerPID
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		s.t.Fatal(err)
	}
	done := make(chan error, 1)
	path := filepath.Join(s.attempt(id, 1), shim.SignalsFile)
	go func() {
		for until := time.Now().Add(70 * time.Second); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
			if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), syscall.SIGTERM.String()) {
				done <- syscall.Kill(pid, syscall.SIGCONT)
				return
			}
			_ = syscall.Kill(pid, syscall.SIGSTOP) // with its warning Slurm also sends SIGCONT
		}
		_ = syscall.Kill(pid, syscall.SIGCONT)
		done <- fmt.Errorf("no warning of run %d's time limit", id)
	}()
	return done
}

// TestStudyOnSlurm is a study of twelve real runs on a cluster: half of it is
// cancelled (while it trains, while it waits in Slurm, while it waits here),
// one run meets its time limit, the node is drained under the others, and the
// server is killed in between.
func TestStudyOnSlurm(t *testing.T) {
	s := newSlurmStudy(t, `{"slurm": {"time_limit": "10", "warn_seconds": 15, "most_jobs": 8, "poll_seconds": 0.5, "gpus": "none"}}`, 100, 12)
	runs := s.runs
	s.until("three runs that train", func() bool {
		now := s.state()
		for _, id := range runs[:3] {
			if now[id].State == ablation.Succeeded {
				t.Fatalf("run %d has ended already: the drill needs longer ones", id)
			}
			if now[id].State != ablation.Running || now[id].Step < 1 {
				return false
			}
		}
		return true
	})
	limited, finishes := runs[0], runs[1]
	warned := s.slow(limited)
	slurm(t, "scontrol", "update", "jobid="+s.shim(limited, 1).Job, "TimeLimit=1")
	slurm(t, "scontrol", "update", "nodename=gpu0", "state=drain", "reason=test")
	stopped := []ablation.RunID{runs[2], runs[4], runs[6], runs[7], runs[9], runs[11]}
	for _, id := range stopped {
		s.stop(id)
	}
	s.p.kill()
	s.serve()
	s.until("end of the job on the draining node, and the reason of those that wait", func() bool {
		now, handed := s.state(), s.handed()
		for _, id := range runs[2:] {
			if now[id].Step > 0 && id != runs[2] {
				t.Fatalf("run %d was started on a node that drains", id)
			}
		}
		told := false
		for _, id := range []ablation.RunID{runs[3], runs[5]} {
			if !strings.Contains(handed[id], " waits in Slurm: ") {
				return false
			}
			told = told || drained.MatchString(handed[id])
		}
		return now[finishes].State == ablation.Succeeded && told
	})
	if state := slurm(t, "sinfo", "--noheader", "--Node", "--format=%T"); !strings.HasPrefix(state, "drain") {
		t.Errorf("the node is %s, want it drained or draining", state)
	}
	slurm(t, "scontrol", "update", "nodename=gpu0", "state=resume")
	if err := <-warned; err != nil {
		t.Fatal(err)
	}
	want := make(map[ablation.RunID]ablation.State)
	for _, id := range runs {
		want[id] = ablation.Succeeded
	}
	for _, id := range stopped {
		want[id] = ablation.Stopped
	}
	s.settled(want, limited)
}

// TestTimeLimitWithoutServer: a job meets its time limit while no server runs.
// It saves and ends by itself, and the next server hands the run over again at
// once.
func TestTimeLimitWithoutServer(t *testing.T) {
	s := newSlurmStudy(t, `{"slurm": {"time_limit": "10", "warn_seconds": 15, "poll_seconds": 0.5, "gpus": "none", "array": 4}}`, 100, 1)
	id := s.runs[0]
	s.until("a run that trains", func() bool { return s.state()[id].Step >= 1 })
	warned := s.slow(id)
	slurm(t, "scontrol", "update", "jobid="+s.shim(id, 1).Job, "TimeLimit=1")
	s.p.kill()
	if err := <-warned; err != nil {
		t.Fatal(err)
	}
	s.until("the end of the job", func() bool { return !s.shim(id, 1).Left.IsZero() })
	if exit, err := shim.ReadExit(s.attempt(id, 1)); err != nil || exit.Because != shim.BecauseTimeLimit {
		t.Errorf("exit = %+v, %v; want it ended before its time limit", exit, err)
	}
	s.serve()
	began := time.Now()
	s.until("a second job", func() bool { _, err := os.Stat(filepath.Join(s.attempt(id, 2), "slurm.json")); return err == nil })
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the run was handed over again %s after the start of the server, want at once", took)
	}
	s.settled(map[ablation.RunID]ablation.State{id: ablation.Succeeded}, id)
}

// drained is what Slurm says of a job whose only node is being drained, as
// code or in words; jobs behind it wait for their priority.
var drained = regexp.MustCompile(`ReqNodeNotAvail|DRAINED|UnavailableNodes`)

// settled waits for the states, then holds the store, the folders and Slurm's
// own list of completed jobs against each other: none lost, none doubled, each
// step once.
func (s *slurmStudy) settled(want map[ablation.RunID]ablation.State, limited ablation.RunID) {
	t := s.t
	t.Helper()
	s.until("the final states", func() bool {
		for id, run := range s.state() {
			if run.State != want[id] {
				if run.State == ablation.Failed || run.State == ablation.Lost {
					t.Fatalf("run %d is %s: %s", id, run.State, run.Cause)
				}
				return false
			}
		}
		return true
	})
	s.until("an empty queue and an idle node", func() bool {
		return slurm(t, "squeue", "--noheader", "--format=%i") == "" && slurm(t, "sinfo", "--noheader", "--Node", "--format=%T") == "idle"
	})
	s.p.stop(t)
	db := openStore(t, s.data)
	defer db.Close()
	attempts := 0
	for _, id := range s.runs {
		all, err := db.Attempts(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		attempts += len(all)
		switch {
		case id == limited:
			if len(all) != 2 || all[0].Code != "time-limit" || all[1].FirstStep < 1 {
				t.Errorf("attempts of the run that met its limit: %+v, want a second one from its checkpoint", all)
			}
		case want[id] == ablation.Succeeded && len(all) != 1, len(all) > 1:
			t.Errorf("run %d has %d attempts, want one", id, len(all))
		}
		if want[id] == ablation.Succeeded {
			eachStepOnce(t, db, id)
		}
	}
	s.oneJobEach(attempts)
}

func eachStepOnce(t *testing.T, db *store.Store, id ablation.RunID) {
	t.Helper()
	run, err := db.Run(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	series, err := db.Series(t.Context(), store.SeriesQuery{Runs: []ablation.RunID{id}, Metrics: []string{"reward/mean"}})
	if err != nil || len(series) != 1 || int64(len(series[0].Points)) != run.TotalSteps {
		t.Errorf("run %d: %d series of reward/mean, %v; want one of %d points", id, len(series), err, run.TotalSteps)
		return
	}
	for i, p := range series[0].Points {
		if p.Step != int64(i+1) {
			t.Errorf("run %d: point %d is at step %d", id, i, p.Step)
		}
	}
}

// oneJobEach counts what Slurm has run: a job for each attempt, none twice.
func (s *slurmStudy) oneJobEach(attempts int) {
	t := s.t
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.cluster, "log", "jobcomp.txt"))
	if err != nil {
		t.Fatal(err)
	}
	jobs := make(map[string]int)
	for _, m := range regexp.MustCompile(`(?m)^JobId=\d+ .*\bName=(alidade-r\d+a\d+)-`).FindAllStringSubmatch(string(text), -1) {
		jobs[m[1]]++
	}
	for name, n := range jobs {
		if n != 1 {
			t.Errorf("Slurm had %d jobs %s", n, name)
		}
	}
	if len(jobs) != attempts {
		t.Errorf("Slurm had %d jobs for %d attempts:\n%s", len(jobs), attempts, text)
	}
}
