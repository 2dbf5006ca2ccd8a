package trainer

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"alidade/ablation"
)

// rerun runs one test of this binary in a process of its own.
func rerun(t *testing.T, name, env string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+name+"$", "-test.v")
	cmd.Env = append(os.Environ(), env)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func exampleSpec(t *testing.T) Spec {
	t.Helper()
	recipe, ok := ablation.PresetNamed("quick")
	if !ok {
		t.Fatal("no preset quick")
	}
	return Spec{
		Version: Version, Run: 7, Study: "rewards", Arm: "MACRO", Attempt: 2, Seed: 3, Recipe: recipe,
		Dir: "/data/runs/7/2", Events: "/data/runs/7/2/events.jsonl", Artifacts: "/data/artifacts",
		ResumeFrom: "/data/runs/7/1/checkpoints/step-000040", ResumeStep: 40, Threads: 2, Devices: []string{"cpu0"},
	}
}

func TestSpecRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spec.json")
	want := exampleSpec(t)
	if err := WriteSpec(path, want); err != nil {
		t.Fatal(err)
	}
	got, err := ReadSpec(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestReadSpecNamesTheField(t *testing.T) {
	src, err := json.Marshal(exampleSpec(t))
	if err != nil {
		t.Fatal(err)
	}
	// change sets or deletes one key, given by its path.
	change := func(value any, path ...string) string {
		var spec map[string]any
		if err := json.Unmarshal(src, &spec); err != nil {
			t.Fatal(err)
		}
		at := spec
		for _, key := range path[:len(path)-1] {
			at = at[key].(map[string]any)
		}
		if last := path[len(path)-1]; value == nil {
			delete(at, last)
		} else {
			at[last] = value
		}
		b, err := json.Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	tests := []struct {
		name, src string
		says      []string
	}{
		{"version", change(2, "version"), []string{"version", `"2"`, "allowed: 1"}},
		{"run", change(0, "run"), []string{"run", `"0"`, "at least 1"}},
		{"no attempt", change(nil, "attempt"), []string{"attempt", "missing"}},
		{"relative folder", change("runs/7", "dir"), []string{"dir", `"runs/7"`, "absolute"}},
		{"threads as text", change("two", "threads"), []string{"threads", "wrong type", "whole number"}},
		{"unknown key", change(1, "recipe", "algorithm", "grup_size"), []string{"recipe.algorithm.grup_size", "unknown key", `did you mean "group_size"`}},
		{"unknown key on top", change(1, "sed"), []string{"sed", "unknown key", `did you mean "seed"`}},
		{"recipe", change(-1.0, "recipe", "algorithm", "lr"), []string{"recipe.algorithm.lr", `"-1"`}},
		{"wrong type in the recipe", change("many", "recipe", "budget", "steps"), []string{"recipe.budget.steps", "wrong type"}},
		{"cut", string(src[:100]), []string{"ends at byte 100"}},
		{"twice", `{"version":1,"version":1}`, []string{"version", "twice"}},
		{"empty", ``, []string{"ends at byte 0"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "spec.json")
			if err := os.WriteFile(path, []byte(tt.src), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := ReadSpec(path)
			if err == nil {
				t.Fatal("no error")
			}
			for _, s := range append(tt.says, path) {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("%q does not say %q", err, s)
				}
			}
		})
	}
	if _, err := ReadSpec("/nowhere/spec.json"); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "/nowhere/spec.json") {
		t.Errorf("ReadSpec of no file = %v", err)
	}
}

func TestWriteSpecRefusesABadSpec(t *testing.T) {
	s := exampleSpec(t)
	s.Threads, s.Events = 0, "events.jsonl"
	err := WriteSpec(filepath.Join(t.TempDir(), "spec.json"), s)
	var bad *ablation.Invalid
	if !errors.As(err, &bad) || len(bad.Fields) != 2 {
		t.Errorf("WriteSpec = %v, want two field errors", err)
	}
}
