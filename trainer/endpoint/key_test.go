package endpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"alidade/ablation"
	"alidade/trainer"
	"alidade/trainer/endpoint/endpointtest"
)

const canary = "sk-canary-2f6b81c09d3e"

// withKey writes the key file of a spec's data folder.
func withKey(t *testing.T, spec trainer.Spec, mode os.FileMode) {
	t.Helper()
	path := filepath.Join(filepath.Dir(spec.Artifacts), "keys", "test")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(canary+"\n"), mode); err != nil {
		t.Fatal(err)
	}
}

// traces lists files of the data folder, other than the key file, in which
// the key stands.
func traces(t *testing.T, spec trainer.Spec) (found []string) {
	t.Helper()
	root := filepath.Dir(spec.Artifacts)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Base(filepath.Dir(path)) == "keys" {
			return err
		}
		src, err := os.ReadFile(path)
		if strings.Contains(string(src), canary) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestKeyIsNowhere: a server that sends the key back in answers and errors
// does not get it onto the disk.
func TestKeyIsNowhere(t *testing.T) {
	spec := newSpec(t, 6, func(r *ablation.Recipe) { r.Endpoint.KeyFile = "keys/test" })
	withKey(t, spec, 0o600)
	f := newFake(t, "openai", true, spec)
	f.Key = canary
	into(f, &spec)
	f.Trouble = func(n int, r *http.Request, w http.ResponseWriter, _ string, turn int) bool {
		switch {
		case n%5 == 0:
			f.Refuse(w, 500, "crashed with "+r.Header.Get("Authorization"))
		case turn == 1 && n%3 == 0:
			endpointtest.Say(w, map[string]any{"choices": []any{map[string]any{"message": map[string]any{"content": "I know your key: " + r.Header.Get("Authorization")}}}})
		default:
			return false
		}
		return true
	}
	got, err := play(t, spec)
	if err != nil || len(got.trips) != 6 {
		t.Fatalf("%d trips, %v", len(got.trips), err)
	}
	if found := traces(t, spec); len(found) > 0 {
		t.Errorf("the key stands in %v", found)
	}
}

// TestWrongKey: the run ends at once, and its reason does not hold the key.
func TestWrongKey(t *testing.T) {
	spec := newSpec(t, 6, func(r *ablation.Recipe) { r.Endpoint.KeyFile = "keys/test" })
	withKey(t, spec, 0o600)
	f := newFake(t, "openai", true, spec)
	f.Key = "another-key"
	into(f, &spec)
	got, err := play(t, spec)
	if err == nil || strings.Contains(err.Error(), canary) || !strings.Contains(got.done.Reason, "401") || len(got.trips) != 0 {
		t.Errorf("done %+v, %v", got.done, err)
	}
	if found := traces(t, spec); len(found) > 0 {
		t.Errorf("the key stands in %v", found)
	}
}

func TestReadKey(t *testing.T) {
	spec := newSpec(t, 1, nil)
	data := filepath.Dir(spec.Artifacts)
	file := ablation.Endpoint{KeyFile: "keys/test"}
	if _, err := readKey(file, data); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	withKey(t, spec, 0o600)
	if key, err := readKey(file, data); err != nil || key != canary {
		t.Errorf("file: %v", err)
	}
	if err := os.Chmod(filepath.Join(data, "keys", "test"), 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := readKey(file, data); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("file that others can read: %v", err)
	}
	t.Setenv("ALIDADE_KEY_CANARY", canary)
	if key, err := readKey(ablation.Endpoint{KeyEnv: "ALIDADE_KEY_CANARY"}, data); err != nil || key != canary {
		t.Errorf("variable: %v", err)
	}
	t.Setenv("ALIDADE_KEY_CANARY", "two words")
	if _, err := readKey(ablation.Endpoint{KeyEnv: "ALIDADE_KEY_CANARY"}, data); err == nil || strings.Contains(err.Error(), "two words") {
		t.Errorf("no key: %v", err)
	}
}

// TestNoKeyLeaksFromTheEnvironment: the client's own variables do not count.
func TestNoKeyLeaksFromTheEnvironment(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", canary)
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
	spec := newSpec(t, 1, nil)
	f := newFake(t, "vllm", true, spec)
	into(f, &spec)
	seen := ""
	f.Trouble = func(_ int, r *http.Request, _ http.ResponseWriter, _ string, _ int) bool {
		seen += r.Header.Get("Authorization")
		return false
	}
	if _, err := play(t, spec); err != nil || seen != "" {
		t.Errorf("the server got %q: %v", seen, err)
	}
}

// TestKeysArePastedIntoRecipes: the refusal does not repeat them.
func TestKeysArePastedIntoRecipes(t *testing.T) {
	for _, change := range []func(*ablation.Endpoint){
		func(e *ablation.Endpoint) { e.KeyEnv = canary },
		func(e *ablation.Endpoint) { e.KeyEnv = "AWS_SECRET_ACCESS_KEY" + canary },
		func(e *ablation.Endpoint) { e.KeyFile = canary },
		func(e *ablation.Endpoint) { e.KeyFile = "keys/../../" + canary },
		func(e *ablation.Endpoint) { e.URL = "https://user:" + canary + "@host/v1" },
		func(e *ablation.Endpoint) { e.URL = "https://host/v1?key=" + canary },
	} {
		r, _ := ablation.PresetNamed("endpoint")
		change(&r.Endpoint)
		err := r.Validate()
		var bad *ablation.Invalid
		if !errors.As(err, &bad) || strings.Contains(fmt.Sprintf("%v %+v", err, bad.Fields), canary) {
			t.Errorf("%+v: %v", r.Endpoint, err)
		}
	}
}
