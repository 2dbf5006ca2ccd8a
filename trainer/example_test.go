package trainer

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"alidade/ablation"
)

// script prepares a run of a trainer script and returns its spec.
func script(t *testing.T, steps int, change func(*Spec)) (spec Spec, path string) {
	t.Helper()
	recipe, ok := ablation.PresetNamed("command")
	if !ok {
		t.Fatal("no preset command")
	}
	recipe.Trainer.Command = []string{"python3", "train.py", "{spec}"}
	recipe.Budget = ablation.Budget{Steps: steps, CheckpointEvery: 50}
	recipe.Evaluation = ablation.Evaluation{Every: 50, Queries: 400, Samples: 4, Temperature: 1}
	recipe.Algorithm.LR = 0.2
	dir := t.TempDir()
	spec = Spec{Version: Version, Run: 1, Study: "bandit", Arm: "base", Attempt: 1, Seed: 1, Recipe: recipe,
		Dir: dir, Events: filepath.Join(dir, "events.jsonl"), Artifacts: filepath.Join(dir, "artifacts"), Threads: 1, Devices: []string{"cpu0"}}
	if change != nil {
		change(&spec)
	}
	path = filepath.Join(dir, "spec.json")
	if err := WriteSpec(path, spec); err != nil {
		t.Fatal(err)
	}
	return spec, path
}

func python(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	return path
}

func runScript(t *testing.T, argv ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", argv, err, out)
	}
}

// values are one metric of the events, by step.
func values(events []Event, metric string) map[int64]float64 {
	out := map[int64]float64{}
	for _, e := range events {
		if e.Points != nil {
			if v, ok := e.Points.Values[metric]; ok {
				out[e.Points.Step] = float64(v)
			}
		}
	}
	return out
}

const exampleScript = "../examples/trainer.py"

func TestPythonExampleLearns(t *testing.T) {
	py := python(t)
	spec, path := script(t, 200, nil)
	runScript(t, py, exampleScript, "--spec", path)
	got := events(t, spec.Events)
	if got[0].Kind != KindHello || got[len(got)-1].Done == nil || !got[len(got)-1].Done.OK || got[len(got)-1].Done.Step != 200 {
		t.Errorf("first %s, last %+v", got[0].Kind, got[len(got)-1].Done)
	}
	success := values(got, "eval/success")
	expert, random := values(got, "baseline/expert")[0], values(got, "baseline/random_legal")[0]
	if success[200] < random+0.7*(expert-random) {
		t.Errorf("success %.3f at the start, %.3f at the end; random %.3f, expert %.3f: it did not learn", success[0], success[200], random, expert)
	}
	if len(values(got, "reward/mean")) != 200 {
		t.Errorf("%d steps, want 200", len(values(got, "reward/mean")))
	}
	kinds := map[Kind]int{}
	for _, e := range got {
		kinds[e.Kind]++
	}
	if kinds[KindEvaluation] != 5 || kinds[KindCheckpoint] != 4 || kinds[KindTrajectory] != 5 {
		t.Errorf("kinds %v", kinds)
	}
}

func TestPythonExampleResumesExactly(t *testing.T) {
	py := python(t)
	whole, path := script(t, 100, nil)
	runScript(t, py, exampleScript, "--spec", path)
	rest, path := script(t, 100, func(s *Spec) {
		s.Attempt, s.ResumeFrom, s.ResumeStep = 2, filepath.Join(whole.Dir, "checkpoints/step-000050"), 50
	})
	runScript(t, py, exampleScript, "--spec", path)
	want, got := values(events(t, whole.Events), "reward/mean"), values(events(t, rest.Events), "reward/mean")
	if len(got) != 50 {
		t.Fatalf("%d steps after the resume, want 50", len(got))
	}
	for step, v := range got {
		if v != want[step] {
			t.Errorf("step %d: %v after the resume, %v in one go", step, v, want[step])
		}
	}
}

func TestPythonExampleStopsOnRequest(t *testing.T) {
	py := python(t)
	spec, path := script(t, 1_000_000, nil)
	cmd := exec.Command(py, exampleScript, "--spec", path)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	f := Follow(spec.Events, FollowOptions{})
	defer f.Close()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if l := read(t, f); len(values(l.Events, "reward/mean")) > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("it wrote nothing within a minute")
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("exit: %v", err)
	}
	got := events(t, spec.Events)
	last := got[len(got)-1].Done
	if last == nil || last.OK || last.Reason != "stopped" {
		t.Fatalf("last event %+v", last)
	}
	if c := got[len(got)-2].Checkpoint; c == nil || c.Step != last.Step {
		t.Errorf("before it %+v, want a checkpoint of step %d", c, last.Step)
	}
}

// block returns the first fenced block of a language in the protocol's page.
func block(t *testing.T, language string) string {
	t.Helper()
	page, err := os.ReadFile("../docs/trainer-protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindSubmatch(page)
	if found == nil {
		t.Fatalf("no block of %s", language)
	}
	return string(found[1])
}

func TestTheTwentyLinesOfThePage(t *testing.T) {
	py := python(t)
	src := block(t, "python")
	if n := strings.Count(strings.TrimSpace(src), "\n") + 1 - strings.Count(src, "\n\n"); n > 20 {
		t.Errorf("%d lines of code", n)
	}
	file := filepath.Join(t.TempDir(), "train.py")
	if err := os.WriteFile(file, []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	spec, path := script(t, 60, nil)
	runScript(t, py, file, path)
	got := events(t, spec.Events)
	reward := values(got, "reward/mean")
	if len(reward) != 60 || reward[60] < -1 || reward[1] > -5 {
		t.Errorf("%d steps, reward %v to %v", len(reward), reward[1], reward[60])
	}
	if last := got[len(got)-1].Done; last == nil || !last.OK {
		t.Errorf("last event %+v", last)
	}
}

func TestTheShellScriptOfThePage(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("sh is not installed")
	}
	file := filepath.Join(t.TempDir(), "train.sh")
	if err := os.WriteFile(file, []byte(block(t, "sh")), 0o600); err != nil {
		t.Fatal(err)
	}
	spec, path := script(t, 3, nil)
	runScript(t, sh, file, path)
	got := events(t, spec.Events)
	if len(values(got, "reward/mean")) != 3 || got[len(got)-1].Done == nil {
		b, _ := json.Marshal(got)
		t.Errorf("events %s", b)
	}
}
