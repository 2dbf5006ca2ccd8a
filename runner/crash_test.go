package runner_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"alidade/ablation"
	"alidade/runner/shim"
	"alidade/store"
	"alidade/trainer"
)

// The server is killed five times (fifty in the slow drill) at random moments
// while four (eight) runs write.
// Afterwards the store holds each complete line of each events file, none
// twice, and each exit code, also those of trainers that ended while no server
// was there.
func TestServerIsKilled(t *testing.T) {
	kills, steps := 5, 400
	data := t.TempDir()
	modes := []string{"ok", "11", "ok", "13"} // a number is the exit code at the end
	want := []ablation.State{ablation.Succeeded, ablation.Failed, ablation.Succeeded, ablation.Failed}
	if os.Getenv("ALIDADE_SLOW") != "" {
		kills, steps = 50, 5000
		modes, want = append(modes, modes...), append(want, want...)
	}
	runs := planSteps(t, data, modes, steps, 150)

	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	var starts []time.Duration
	for i := range kills {
		took, kill := startServer(t, data)
		starts = append(starts, took)
		if i == 0 {
			until(t, "all trainers", func() bool { return started(data, runs) == len(runs) })
		}
		time.Sleep(time.Duration(50+rng.IntN(1200)) * time.Millisecond) // the random moment
		kill()
	}
	// Some end while nobody looks.
	until(t, "two exits without a server", func() bool { return exits(data, runs) >= 2 })

	_, kill := startServer(t, data)
	until(t, "all exits", func() bool { return exits(data, runs) == len(runs) })
	until(t, "verdicts", func() bool { return verdicts(t, data, runs) })
	kill()

	compareRuns(t, data, runs, modes, want)
	if err := store.Rebuild(t.Context(), data, nil); err != nil {
		t.Fatalf("Rebuild: %v", err)
	}
	t.Log("the same again, from a database made anew from the folders")
	compareRuns(t, data, runs, modes, want)
	slices.Sort(starts)
	median, slowest := starts[len(starts)/2], starts[len(starts)-1]
	t.Logf("%d starts of a server, to its runner running: %s in the median, %s the slowest", len(starts), median, slowest)
	if slowest > 2*time.Second {
		t.Errorf("a server took %s to start, %s in the median; want under 2 s", slowest, median)
	}
}

// compareRuns compares states, exit codes and points with what must be.
func compareRuns(t *testing.T, data string, runs []ablation.RunID, modes []string, want []ablation.State) {
	t.Helper()
	g, err := openRig(data, rigOptions{slots: 8})
	if err != nil {
		t.Fatal(err)
	}
	g.t = t
	defer func() { _ = g.store.Close() }()
	for i, id := range runs {
		run := g.run(id)
		if run.State != want[i] || run.Attempt != 1 {
			t.Errorf("run %d is %s in attempt %d (%s), want %s in 1", id, run.State, run.Attempt, run.Cause, want[i])
		}
		code, _ := strconv.Atoi(modes[i])
		if a := g.attempt(id, 1); a.ExitCode == nil || *a.ExitCode != code {
			t.Errorf("run %d: attempt = %+v, want exit code %d", id, a, code)
		}
		compareWithFile(t, g, id)
	}
}

// The server is killed again and again while it launches. Every run is started
// exactly once all the same, and succeeds.
func TestServerIsKilledWhileLaunching(t *testing.T) {
	data := t.TempDir()
	modes := make([]string, 10)
	for i := range modes {
		modes[i] = "ok"
	}
	runs := planSteps(t, data, modes, 12, 0)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 10 {
		_, kill := startServer(t, data)
		time.Sleep(time.Duration(rng.IntN(60)) * time.Millisecond) // the random moment
		kill()
	}
	_, kill := startServer(t, data)
	until(t, "verdicts", func() bool { return verdicts(t, data, runs) })
	kill()
	g, err := openRig(data, rigOptions{slots: 4})
	if err != nil {
		t.Fatal(err)
	}
	g.t = t
	defer func() { _ = g.store.Close() }()
	givenUp := 0
	for _, id := range runs {
		run := g.run(id)
		if run.State != ablation.Succeeded {
			t.Errorf("run %d is %s (%s), want succeeded", id, run.State, run.Cause)
		}
		trained := 0
		for n := 1; n <= run.Attempt; n++ {
			if _, err := os.Stat(g.file(id, n, "events.jsonl")); err == nil {
				trained++
			}
		}
		if trained != 1 {
			t.Errorf("run %d was trained %d times in %d attempts, want once", id, trained, run.Attempt)
		}
		givenUp += run.Attempt - 1
		if points := g.series(id, "reward/mean"); len(points) != 12 {
			t.Errorf("run %d has %d points, want 12", id, len(points))
		}
	}
	t.Logf("%d attempts were given up before their trainer started", givenUp)
}

// planSteps queues one run for each mode, as a server would, and closes the
// store.
func planSteps(t *testing.T, data string, modes []string, steps, more int) []ablation.RunID {
	t.Helper()
	g, err := openRig(data, rigOptions{slots: 4})
	if err != nil {
		t.Fatal(err)
	}
	g.t = t
	defer func() { _ = g.store.Close() }()
	var ids []ablation.RunID
	for i, mode := range modes {
		st := study(t, "crash"+strconv.Itoa(i), steps+more*i, 1, "fake", mode, "15", "{spec}")
		ids = append(ids, g.launchStudy(st)[0].ID)
	}
	return ids
}

// startServer starts a server process and returns how long it took to come up.
func startServer(t *testing.T, data string) (took time.Duration, kill func()) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	up := filepath.Join(data, "up")
	_ = os.Remove(up)
	log, err := os.OpenFile(filepath.Join(data, "server.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(exe, "server", data)
	cmd.Stdout, cmd.Stderr = log, log
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	killed := false
	kill = func() {
		if !killed {
			killed = true
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}
	t.Cleanup(kill)
	deadline := time.Now().Add(patience)
	for {
		if _, err := os.Stat(up); err == nil {
			return time.Since(began), kill
		}
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(filepath.Join(data, "server.log"))
			t.Fatalf("the server did not come up:\n%s", text)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func attemptDir(data string, id ablation.RunID) string {
	return filepath.Join(data, "runs", strconv.Itoa(int(id)), "1")
}

func started(data string, runs []ablation.RunID) (n int) {
	for _, id := range runs {
		if info, err := os.Stat(filepath.Join(attemptDir(data, id), "events.jsonl")); err == nil && info.Size() > 0 {
			n++
		}
	}
	return n
}

func exits(data string, runs []ablation.RunID) (n int) {
	for _, id := range runs {
		if _, err := shim.ReadExit(attemptDir(data, id)); err == nil {
			n++
		} else if !errors.Is(err, fs.ErrNotExist) {
			return 0
		}
	}
	return n
}

// verdicts reports whether every run has ended, seen through a second reader.
func verdicts(t *testing.T, data string, runs []ablation.RunID) bool {
	t.Helper()
	st, err := store.Open(data, store.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	all, err := st.Runs(context.Background(), store.RunFilter{IDs: runs})
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range all {
		if !run.State.Terminal() {
			return false
		}
	}
	return true
}

// compareWithFile compares every point of the store with the events file.
func compareWithFile(t *testing.T, g *rig, id ablation.RunID) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(attemptDir(g.store.Dir(), id), "events.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	want := make(map[string][]float64)
	total := int64(0)
	r := trainer.NewReader(bytes.NewReader(text), trainer.ReaderOptions{})
	for r.Next() {
		if e := r.Event(); e.Kind == trainer.KindPoints {
			for name, v := range e.Points.Values {
				want[name] = append(want[name], float64(v))
				total++
			}
		}
	}
	counts, err := g.store.Counts(t.Context(), id)
	if err != nil || counts.Points != total || counts.Malformed != 0 {
		t.Errorf("run %d: %+v, %v; want %d points", id, counts, err, total)
	}
	for name, values := range want {
		got := g.series(id, name)
		if len(got) != len(values) {
			t.Errorf("run %d: %d points of %s, want %d", id, len(got), name, len(values))
			continue
		}
		for i, p := range got {
			if p.Step != int64(i+1) || p.Value != values[i] {
				t.Errorf("run %d: point %d of %s is %g at step %d, want %g at step %d", id, i, name, p.Value, p.Step, values[i], i+1)
				break
			}
		}
	}
	if size := g.attempt(id, 1).Offset; size != int64(len(text)) {
		t.Errorf("run %d: offset %d, want the file's %d", id, size, len(text))
	}
}
