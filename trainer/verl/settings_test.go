package verl

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"alidade/ablation"
	"alidade/trainer/native"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write golden files")

// presets are the recipes that verl runs, by name.
func presets(t *testing.T) []ablation.Preset {
	t.Helper()
	var list []ablation.Preset
	for _, p := range ablation.Presets() {
		if p.Recipe.Trainer.Kind == "verl" {
			list = append(list, p)
		}
	}
	if len(list) < 8 {
		t.Fatalf("%d presets for verl", len(list))
	}
	return list
}

// setupFor is a run on fixed paths, so that goldens hold on every machine.
func setupFor(r *ablation.Recipe, p Profile) Setup {
	s := placeholderSetup(r, p)
	s.Seed, s.Run = 7, "run-12-1"
	s.Paths.RayTemp = "/tmp/ray-0a1b2c3d"
	return s
}

func overridesOf(r ablation.Recipe, p Profile) []string {
	o := resolve(&r)
	module := p.module(o.Filter)
	argv := append(entry("python3", module, native.Versions{"arpo.config": "/arpo/scripts/config"}, p), p.Overrides(Settings(r, setupFor(&r, p)), module)...)
	return argv
}

// adapted changes a preset's recipe where another version of verl cannot do
// it as it stands, so that every preset has a vector in every version.
func adapted(r ablation.Recipe, p Profile) ablation.Recipe {
	r.Native.Version = p.Name
	if p.Line == LineARPO {
		r.Environment.Form = "react"
	}
	return r
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got):\n%s", path, d)
	}
}

// TestPresetOverrides pins what each preset becomes in each version, with what
// is said against it there.
func TestPresetOverrides(t *testing.T) {
	for _, preset := range presets(t) {
		for _, p := range Profiles() {
			t.Run(preset.Name+"/"+p.Name, func(t *testing.T) {
				r := adapted(preset.Recipe, p)
				var b strings.Builder
				for _, a := range overridesOf(r, p) {
					fmt.Fprintln(&b, a)
				}
				fmt.Fprintln(&b, "\n# verdicts")
				for _, v := range (Adapter{}).Check(r, installed(p), eight) {
					fmt.Fprintf(&b, "# %s %s %s: %s\n", v.Level, v.Code, v.Key, v.Text)
				}
				golden(t, filepath.Join("overrides", preset.Name+"_"+p.Name+".txt"), b.String())
			})
		}
	}
}

// eight is a machine with eight devices of 80 GB.
var eight = native.Machine{DeviceGiB: []float64{79, 79, 79, 79, 79, 79, 79, 79}, HostGiB: 1000, DiskGiB: 4000}

// installed is what a probe would find where everything that a version needs
// is there.
func installed(p Profile) native.Versions {
	v := native.Versions{"verl": p.Version, "vllm": "0.11.0", "recipe.dapo": "/recipe/dapo"}
	if p.Fork {
		v["verl.fork"] = p.Name
	}
	if p.Line == LineARPO {
		v["arpo.config"] = "/arpo/scripts/config"
	}
	return v
}

// TestPresetsFitTheirOwnVersion: a preset as it ships is refused nowhere.
func TestPresetsFitTheirOwnVersion(t *testing.T) {
	for _, preset := range presets(t) {
		p, _, err := ProfileOf(preset.Recipe.Native.Version)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range (Adapter{}).Check(preset.Recipe, installed(p), eight) {
			if v.Level == native.Refuse {
				t.Errorf("%s: %s", preset.Name, v)
			}
		}
	}
}

func TestSettingsNameTheRecipesKey(t *testing.T) {
	known := map[string]bool{"seed": true, "native.overrides": true}
	for _, f := range ablation.Fields() {
		known[f.Key] = true
	}
	for _, preset := range presets(t) {
		for _, p := range Profiles() {
			r := adapted(preset.Recipe, p)
			seen := map[string]bool{}
			for _, s := range Settings(r, setupFor(&r, p)) {
				if s.From != "" && !known[s.From] {
					t.Errorf("%s: %s comes from %s, which is no key of a recipe", p.Name, s.Key, s.From)
				}
				if seen[s.Key] {
					t.Errorf("%s %s: %s is set twice", preset.Name, p.Name, s.Key)
				}
				seen[s.Key] = true
			}
		}
	}
}

func TestQuote(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"vllm", "vllm"},
		{"/a/b.parquet", "/a/b.parquet"},
		{"Qwen/Qwen2.5-1.5B", "Qwen/Qwen2.5-1.5B"},
		{"a b", "'a b'"},
		{"", "''"},
		{"it's", `'it\'s'`},
		{"{x}", "'{x}'"},
		{"a,b", "'a,b'"},
		{`c:\d`, `'c:\\d'`},
	} {
		if got := quote(tc.in); got != tc.want {
			t.Errorf("quote(%q) = %s, want %s", tc.in, got, tc.want)
		}
		if back := unquoteOverride(quote(tc.in)); back != tc.in {
			t.Errorf("%q read back as %q", tc.in, back)
		}
	}
}

func TestProfileOf(t *testing.T) {
	for _, tc := range []struct {
		version, name string
		exact, bad    bool
	}{
		{version: "0.7.1", name: "0.7.1", exact: true},
		{version: "0.8.0", name: "0.8", exact: true},
		{version: "0.8", name: "0.8", exact: true},
		{version: "v0.6.1", name: "0.6.1", exact: true},
		{version: "0.6.0", name: "0.6.1"},
		{version: "0.7.0", name: "0.7.1"},
		{version: "0.10.0.dev0", name: "0.9"},
		{version: "0.5.0.dev", name: "open-agentrl", exact: true},
		{version: "arpo", name: "arpo", exact: true},
		{version: "0.4.1", bad: true},
		{version: "1.0.0", bad: true},
		{version: "next", bad: true},
		{version: "", bad: true},
	} {
		p, exact, err := ProfileOf(tc.version)
		if (err != nil) != tc.bad || p.Name != tc.name || exact != tc.exact {
			t.Errorf("ProfileOf(%q) = %s, %v, %v", tc.version, p.Name, exact, err)
		}
	}
}
