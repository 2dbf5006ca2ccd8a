package ablation_test

import (
	"os"
	"path/filepath"
	"testing"

	"alidade/ablation"
	"alidade/ablation/studyfile"

	"github.com/google/go-cmp/cmp"
)

// TestTinyPresetIsTheExample: the preset and the example of a study file are
// one recipe.
func TestTinyPresetIsTheExample(t *testing.T) {
	path := filepath.Join("..", "examples", "trl-tiny.yaml")
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := studyfile.Decode(path, src)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := ablation.PresetNamed("trl-tiny")
	got := f.Base
	got.Preset, want.Preset = "", ""
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("preset and example differ (-preset +example):\n%s", d)
	}
}
