package server_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"alidade/ablation"
	"alidade/store"
	"alidade/trainer"

	"github.com/google/go-cmp/cmp"
)

// TestServerKilledFiveTimes kills the server at random moments while four
// runs train, and holds the store against the files.
func TestServerKilledFiveTimes(t *testing.T) {
	data := t.TempDir()
	p := serve(t, data, "--cpu-slots", "4")
	id := p.launch(t, tiny("killed", 400, rewardFactor, "[1, 2]"))
	waitFor(t, time.Minute, "four runs to train", func() bool {
		n := 0
		for _, r := range p.runs(t, id) {
			if r.State == ablation.Running && r.Phase == "rl" {
				n++
			}
		}
		return n == 4
	})
	r := rand.New(rand.NewPCG(1, 2))
	for range 5 {
		time.Sleep(time.Duration(r.IntN(700)) * time.Millisecond) // the random moment
		p.kill()
		p = serve(t, data, "--cpu-slots", "4")
	}
	if ended := slices.DeleteFunc(p.runs(t, id), func(r ablation.Run) bool { return !r.State.Terminal() }); len(ended) > 0 {
		t.Errorf("%d runs ended before the last kill: the drill needs longer ones", len(ended))
	}
	for _, run := range p.wait(t, id, 5*time.Minute) {
		if run.State != ablation.Succeeded {
			t.Errorf("run %d %s: %s", run.ID, run.State, run.Cause)
		}
	}
	p.stop(t)

	s := openStore(t, data)
	compareWithFiles(t, s, id)
	before := contents(t, s, id)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	// The database again, from the folders alone.
	for _, f := range []string{"alidade.db", "alidade.db-wal", "alidade.db-shm"} {
		if err := os.Remove(filepath.Join(data, f)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command(binary(t), "rebuild", "--data", data).CombinedOutput(); err != nil {
		t.Fatalf("rebuild: %v\n%s", err, out)
	}
	s = openStore(t, data)
	defer s.Close()
	if diff := cmp.Diff(before, contents(t, s, id)); diff != "" {
		t.Errorf("the rebuilt database differs (-before +after):\n%s", diff)
	}
}

func openStore(t *testing.T, data string) *store.Store {
	t.Helper()
	s, err := store.Open(data, store.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// compareWithFiles counts the complete lines of events.jsonl and what they
// carry, and expects exactly that in the store.
func compareWithFiles(t *testing.T, s *store.Store, id ablation.StudyID) {
	t.Helper()
	runs, err := s.Runs(t.Context(), store.RunFilter{Study: id})
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range runs {
		attempts, err := s.Attempts(t.Context(), run.ID)
		if err != nil {
			t.Fatal(err)
		}
		var want store.Counts
		for _, a := range attempts {
			countFile(t, filepath.Join(a.Dir, "events.jsonl"), &want)
			if a.ExitCode == nil || *a.ExitCode != 0 {
				t.Errorf("run %d attempt %d: exit code %v, want 0", run.ID, a.Number, a.ExitCode)
			}
		}
		got, err := s.Counts(t.Context(), run.ID)
		if err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("run %d: stored %+v, the files hold %+v", run.ID, got, want)
		}
		if want.Points == 0 || want.Trajectories == 0 {
			t.Errorf("run %d wrote nothing to compare: %+v", run.ID, want)
		}
		if len(attempts) != 1 {
			t.Errorf("run %d has %d attempts: a restart of the server must not start it again", run.ID, len(attempts))
		}
	}
}

func countFile(t *testing.T, path string, c *store.Counts) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return // what follows the last newline is not a complete line
		}
		e, _, err := trainer.Decode(line)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		switch e.Kind {
		case trainer.KindPoints:
			c.Points += int64(len(e.Points.Values))
		case trainer.KindTrajectory:
			c.Trajectories++
		case trainer.KindEvaluation:
			c.Evaluations++
		}
	}
}

// contents is what the store says about a study, as text, run by run.
func contents(t *testing.T, s *store.Store, id ablation.StudyID) []string {
	t.Helper()
	var out []string
	add := func(v any, err error) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%+v", v))
	}
	ctx := t.Context()
	rec, err := s.Study(ctx, id)
	add(rec.Study, err)
	runs, err := s.Runs(ctx, store.RunFilter{Study: id})
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range runs {
		add([]any{run.ID, run.Arm, run.Seed, run.State, run.Attempt, run.Phase, run.Step, run.TotalSteps}, nil)
		metrics, err := s.Metrics(ctx, []ablation.RunID{run.ID})
		add(metrics, err)
		series, err := s.Series(ctx, store.SeriesQuery{Runs: []ablation.RunID{run.ID}, Metrics: metrics})
		for _, x := range series {
			add([]any{x.Metric, x.Points}, err)
		}
		heads, total, err := s.Trajectories(ctx, store.TrajectoryFilter{Runs: []ablation.RunID{run.ID}, Sort: "step", Limit: 100000})
		add(total, err)
		for _, h := range heads {
			_, raw, err := s.Trajectory(ctx, run.ID, h.ID)
			add([]any{h.ID, h.Reward, h.Failed, string(raw)}, err)
		}
		evals, err := s.Evaluations(ctx, []ablation.RunID{run.ID})
		add(evals, err)
		counts, err := s.Counts(ctx, run.ID)
		add(counts, err)
	}
	return out
}

// TestTrainerKilled kills a trainer: its run fails with the cause in words,
// and resuming gives one curve with each step once.
func TestTrainerKilled(t *testing.T) {
	data := t.TempDir()
	p := serve(t, data)
	id := p.launch(t, tiny("trainer-killed", 40, "", "[1]"))
	var run ablation.Run
	waitFor(t, 2*time.Minute, "the run to pass step 12", func() bool {
		run = p.runs(t, id)[0]
		return run.Step >= 12
	})
	pid := trainerPID(t, filepath.Join(data, "runs", fmt.Sprint(run.ID), "1"))
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	run = p.wait(t, id, time.Minute)[0]
	if run.State != ablation.Failed || !strings.Contains(run.Cause, "SIGKILL") {
		t.Fatalf("killed run is %s: %q, want failed by SIGKILL", run.State, run.Cause)
	}
	if code := p.call(t, http.MethodPost, fmt.Sprintf("/api/v1/runs/%d/resume", run.ID), "", nil); code >= 300 {
		t.Fatalf("resume answered %d", code)
	}
	run = p.wait(t, id, 3*time.Minute)[0]
	if run.State != ablation.Succeeded || run.Attempt != 2 {
		t.Fatalf("resumed run is %s in attempt %d: %s", run.State, run.Attempt, run.Cause)
	}
	p.stop(t)
	s := openStore(t, data)
	defer s.Close()
	series, err := s.Series(t.Context(), store.SeriesQuery{Runs: []ablation.RunID{run.ID}, Metrics: []string{"reward/mean"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(series) != 1 || len(series[0].Points) != 40 {
		t.Fatalf("reward/mean has %d series", len(series))
	}
	for i, pt := range series[0].Points {
		if pt.Step != int64(i+1) {
			t.Errorf("point %d is at step %d", i, pt.Step)
		}
	}
	attempts, err := s.Attempts(t.Context(), run.ID)
	if err != nil || len(attempts) != 2 || attempts[1].FirstStep == 0 {
		t.Errorf("attempts %+v (%v), want two, the second from a checkpoint", attempts, err)
	}
}

// trainerPID reads the trainer's process id from the shim's record.
func trainerPID(t *testing.T, dir string) int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "shim.json"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(b), `"trainer_pid":`)
	if !ok {
		t.Fatalf("no trainer_pid in %s", b)
	}
	num := strings.TrimSpace(rest)
	if i := strings.IndexAny(num, ",}\n"); i >= 0 {
		num = strings.TrimSpace(num[:i])
	}
	pid, err := strconv.Atoi(num)
	if err != nil || pid <= 1 {
		t.Fatalf("trainer_pid %q in %s", num, b)
	}
	return pid
}
