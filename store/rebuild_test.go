package store

import (
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"alidade/ablation"
	"alidade/trainer"
)

// dumps are what a database holds, apart from the numbers it gives and from
// whether points are at rest yet.
var dumps = map[string]string{
	"studies":     `SELECT * FROM studies ORDER BY id`,
	"arms":        `SELECT * FROM arms ORDER BY study, idx`,
	"runs":        `SELECT * FROM runs ORDER BY id`,
	"attempts":    `SELECT * FROM attempts ORDER BY run, number`,
	"phases":      `SELECT run, attempt, name, step, total, main, at FROM phases ORDER BY run, id`,
	"series":      `SELECT s.run, n.text, s.attempt, s.segment, s.n, s.first, s.last, s.last_wall, s.last_value, s.ordered FROM series s JOIN names n ON n.id = s.name ORDER BY 1, 2, 3, 4`,
	"evaluations": `SELECT * FROM evaluations ORDER BY run, panel, policy, mode, step`,
	"checkpoints": `SELECT * FROM checkpoints ORDER BY run, attempt, step`,
	"artifacts":   `SELECT * FROM artifacts ORDER BY run, kind, hash`,
	"alerts":      `SELECT run, attempt, level, code, text, step, since, late, at FROM alerts ORDER BY run, at, id`,
	"faults":      `SELECT run, attempt, line, offset, cause, text FROM faults ORDER BY run, rowid`,
}

// dump writes all that a store holds as text.
func dump(t testing.TB, s *Store) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for name, query := range dumps {
		rows, err := s.read.Query(query)
		if err != nil {
			t.Fatalf("dump %s: %v", name, err)
		}
		columns, _ := rows.Columns()
		err = each(rows, nil, func() error {
			values := make([]any, len(columns))
			into := make([]any, len(columns))
			for i := range values {
				into[i] = &values[i]
			}
			err := rows.Scan(into...)
			out[name] = append(out[name], fmt.Sprint(values...))
			return err
		})
		if err != nil {
			t.Fatalf("dump %s: %v", name, err)
		}
	}
	dumpPoints(t, s, out)
	dumpTrajectories(t, s, out)
	return out
}

func dumpPoints(t testing.TB, s *Store, out map[string][]string) {
	t.Helper()
	runs, err := s.Runs(t.Context(), RunFilter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range runs {
		metrics, err := s.Metrics(t.Context(), []ablation.RunID{r.ID})
		if err != nil {
			t.Fatal(err)
		}
		for attempt := range r.Attempt + 1 {
			all, err := s.Series(t.Context(), SeriesQuery{Runs: []ablation.RunID{r.ID}, Metrics: metrics, Attempt: attempt})
			if err != nil {
				t.Fatal(err)
			}
			for _, one := range all {
				for _, p := range one.Points {
					out["points"] = append(out["points"], fmt.Sprint(r.ID, attempt, one.Metric, p))
				}
			}
		}
	}
}

func dumpTrajectories(t testing.TB, s *Store, out map[string][]string) {
	t.Helper()
	heads, _, err := s.Trajectories(t.Context(), TrajectoryFilter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range heads {
		_, raw, err := s.Trajectory(t.Context(), h.Run, h.ID)
		if err != nil {
			t.Fatal(err)
		}
		found, _, err := s.Trajectories(t.Context(), TrajectoryFilter{Runs: []ablation.RunID{h.Run}, Text: h.QueryText, Tool: "SearchFlight"})
		if err != nil {
			t.Fatal(err)
		}
		seq := h.Seq
		h.Seq = 0
		b, _ := json.Marshal(h)
		in := slices.ContainsFunc(found, func(f TrajectoryHead) bool { return f.Seq == seq })
		out["trajectories"] = append(out["trajectories"], fmt.Sprintf("%s %x found %v", b, sha256.Sum256(raw), in))
	}
	slices.Sort(out["trajectories"])
}

// live fills a store the way a runner does: trainers write files, which are
// followed. It leaves one run of each fate.
func live(t *testing.T, s *Store) {
	t.Helper()
	st, planned := study(t, "rewards", 3)
	if _, _, err := s.CreateStudy(t.Context(), st, "name: rewards\n", planned[:2]); err != nil {
		t.Fatal(err)
	}
	if err := s.SetStudyPaused(t.Context(), 1, true); err != nil {
		t.Fatal(err)
	}
	if _, err := s.AddRuns(t.Context(), 1, planned[2:]); err != nil {
		t.Fatal(err)
	}
	w := s.RunWriter()
	move := func(run ablation.RunID, ev ablation.Event, change func(*ablation.Run)) {
		t.Helper()
		if _, err := w.Move(t.Context(), run, ev, change); err != nil {
			t.Fatal(err)
		}
	}
	end := func(run ablation.RunID, attempt int, state ablation.State, code int) {
		t.Helper()
		err := w.EndAttempt(t.Context(), ablation.Attempt{Run: run, Number: attempt, Device: "cpu0", PID: 42, State: state, ExitCode: &code, StartedAt: clock(1), EndedAt: clock(99)})
		if err != nil {
			t.Fatal(err)
		}
	}
	// Run 1 succeeds at its second attempt, run 2 fails, run 3 still writes,
	// run 4 was stopped while queued, runs 5 and 6 wait.
	start(t, s, 1, 1, 0)
	train(t, s, 1, 1, 0, 55, false)
	end(1, 1, ablation.Failed, 137)
	move(1, ablation.EvFailed, func(r *ablation.Run) { r.Cause, r.EndedAt = "killed", clock(99) })
	move(1, ablation.EvRequeue, func(r *ablation.Run) { r.Cause, r.EndedAt, r.QueuedAt = "", time.Time{}, clock(120) })
	start(t, s, 1, 2, 40)
	train(t, s, 1, 2, 40, 100, true)
	end(1, 2, ablation.Succeeded, 0)
	move(1, ablation.EvSucceeded, func(r *ablation.Run) { r.EndedAt = clock(300) })
	start(t, s, 2, 1, 0)
	train(t, s, 2, 1, 0, 3, false)
	end(2, 1, ablation.Failed, 3)
	move(2, ablation.EvFailed, func(r *ablation.Run) { r.Cause, r.EndedAt = "exit code 3", clock(9) })
	start(t, s, 3, 1, 0)
	train(t, s, 3, 1, 0, 20, false)
	own := trainer.Event{Kind: trainer.KindAlert, T: at(9999), Alert: &trainer.Alert{Level: "bad", Code: "silent", Text: "nothing received"}}
	attempts, err := s.Attempts(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Append(t.Context(), Batch{Run: 3, Attempt: 1, Offset: attempts[0].Offset, Events: []trainerEvent{own}}); err != nil {
		t.Fatalf("an alert of the runner's own: %v", err)
	}
	line, err := trainer.Encode(own)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.AttemptDir(3, 1), "alerts.jsonl"), line, 0o600); err != nil {
		t.Fatal(err)
	}
	move(4, ablation.EvStop, func(r *ablation.Run) { r.Cause, r.EndedAt = "stopped by a person", clock(5) })
}

// train writes an attempt's events and appends them as a runner would.
func train(t *testing.T, s *Store, run ablation.RunID, attempt int, from, to int64, done bool) {
	t.Helper()
	path := filepath.Join(s.AttemptDir(run, attempt), "events.jsonl")
	out, err := trainer.NewWriter(path, trainer.WriterOptions{Now: func() time.Time { return clock(from) }})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(out.Hello(trainer.Hello{Trainer: "test", Version: "1", PID: 42, TotalSteps: 100, Info: map[string]string{"kernel": "generic"}}))
	must(out.Phase(trainer.Phase{Name: "rl", Total: 100, Main: true}))
	for step := from; step <= to; step++ {
		must(out.Write(points(step, map[string]float64{"reward/mean": float64(step) / 3, "policy/entropy": 1})))
		if step%10 == 0 {
			must(out.Write(trajectory(step, 0, nil)))
			must(out.Evaluation(ablation.EvalResult{Panel: "test", Policy: "policy", Mode: "sampled", Step: step, Samples: 2, Hash: "ff",
				Queries: []ablation.QueryResult{{Query: "q1", Level: "easy", Passed: int(step % 3)}}}))
			must(out.Checkpoint(trainer.Checkpoint{Step: step, Path: fmt.Sprintf("checkpoints/step-%06d", step), Bytes: 10}))
		}
	}
	must(out.Artifact(ablation.Artifact{Kind: "dataset", Hash: "abc", Path: filepath.Join(s.Dir(), "artifacts/dataset/abc"), Bytes: 5, Provenance: map[string]any{"seed": 1.0}}))
	must(out.Alert(trainer.Alert{Level: "warn", Code: "nan", Text: "the loss is NaN", Step: to}))
	if done {
		must(out.Done(trainer.Done{OK: true, Step: to, Reason: "finished"}))
	}
	more, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	must(err)
	_, err = more.WriteString("{\"v\":1,\"kind\":\"points\",\"t\":NaN}\n{\"v\":1,\"kind\":\"mood\",\"t\":5}\n{\"v\":1,\"kind\":\"poi")
	must(err)
	must(more.Close())
	follow(t, s, run, attempt, 17)
}

// follow appends what is new in an attempt's events, from the stored offset.
func follow(t testing.TB, s *Store, run ablation.RunID, attempt, most int) {
	t.Helper()
	attempts, err := s.Attempts(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	a := attempts[attempt-1]
	f := trainer.Follow(filepath.Join(a.Dir, "events.jsonl"), trainer.FollowOptions{Offset: a.Offset})
	defer f.Close()
	for {
		lines, err := f.Read(most)
		if err != nil {
			t.Fatal(err)
		}
		if lines.Empty() {
			return
		}
		_, err = s.RunWriter().Append(t.Context(), Batch{Run: run, Attempt: attempt, Offset: lines.Offset, Events: lines.Events,
			Malformed: lines.Malformed, Unknown: lines.Unknown, Faults: lines.Faults, Segment: lines.Segment})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestRebuildEqualsTheLiveDatabase(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	live(t, s)
	want := dump(t, s)
	for table := range dumps {
		if len(want[table]) == 0 {
			t.Errorf("the live store has no %s: the test shows nothing", table)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Rebuild(t.Context(), dir, nil); err != nil {
		t.Fatal(err)
	}
	again := open(t, dir)
	if diff := cmp.Diff(want, dump(t, again)); diff != "" {
		t.Errorf("rebuilt database (-live +rebuilt):\n%s", diff)
	}
	names, err := filepath.Glob(filepath.Join(dir, databaseName+"*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.Contains(name, ".old") || strings.Contains(name, ".rebuild") {
			t.Errorf("%s was left behind", name)
		}
	}
}

func TestOpenRebuildsAMissingDatabase(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	live(t, s)
	want := dump(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	removeDatabase(filepath.Join(dir, databaseName))
	if diff := cmp.Diff(want, dump(t, open(t, dir))); diff != "" {
		t.Errorf("database after it was lost (-live +rebuilt):\n%s", diff)
	}
}

// TestRebuildWithoutRecordsJudgesByEventsAndExit takes away what the store
// itself wrote beside the runs.
func TestRebuildWithoutRecordsJudgesByEventsAndExit(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	live(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"runs/*/state.json", "runs/*/*/attempt.json"} {
		files, _ := filepath.Glob(filepath.Join(dir, pattern))
		for _, f := range files {
			if err := os.Remove(f); err != nil {
				t.Fatal(err)
			}
		}
	}
	exit := `{"exit_code": 3, "signal": "", "started": "2026-09-21T12:00:00Z", "ended": "2026-09-21T12:00:09Z"}`
	if err := os.WriteFile(filepath.Join(dir, "runs/2/1/exit.json"), []byte(exit), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Rebuild(t.Context(), dir, nil); err != nil {
		t.Fatal(err)
	}
	runs, err := open(t, dir).Runs(t.Context(), RunFilter{})
	if err != nil {
		t.Fatal(err)
	}
	want := []ablation.State{ablation.Succeeded, ablation.Failed, ablation.Lost, ablation.Queued, ablation.Queued, ablation.Queued}
	for i, r := range runs {
		if r.State != want[i] {
			t.Errorf("run %d is %s (%s), want %s", r.ID, r.State, r.Cause, want[i])
		}
	}
	if !strings.Contains(runs[1].Cause, "exit code 3") {
		t.Errorf("cause of run 2 = %q", runs[1].Cause)
	}
}

func TestRebuildOfADamagedDatabase(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	live(t, s)
	want := dump(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, databaseName)
	if err := os.WriteFile(path, []byte(strings.Repeat("not a database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), "alidade rebuild") {
		t.Errorf("Open of a damaged database = %v, want advice to rebuild", err)
	}
	if err := Rebuild(t.Context(), dir, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, dump(t, open(t, dir))); diff != "" {
		t.Errorf("rebuilt database (-live +rebuilt):\n%s", diff)
	}
}

func TestIntegrityAfterRebuild(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	live(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Rebuild(t.Context(), dir, nil); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite3", filepath.Join(dir, databaseName))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var ok string
	if err := db.QueryRow("PRAGMA integrity_check").Scan(&ok); err != nil || ok != "ok" {
		t.Errorf("integrity_check = %q, %v", ok, err)
	}
}
