package verl

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"alidade/ablation"
	"alidade/sandbox/serve"
	"alidade/trainer/native"

	"github.com/goccy/go-yaml"
)

// packages is the folder that scripts/verl-compose.sh fills: <version>/verl,
// venv/bin/python.
func packages(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("ALIDADE_VERL_PACKAGES")
	if dir == "" {
		t.Skip("needs verl's packages: run scripts/verl-compose.sh")
	}
	return dir
}

// generated is the flat configuration that a release generates from its own
// parts, with references as they are.
func generated(t *testing.T, dir string, p Profile) map[string]any {
	t.Helper()
	src, err := os.ReadFile(filepath.Join(dir, p.Version, "verl", "trainer", "config", "_generated_ppo_trainer.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var tree map[string]any
	if err := yaml.Unmarshal(src, &tree); err != nil {
		t.Fatal(err)
	}
	flat := map[string]any{}
	flatten("", tree, flat)
	return flat
}

// releases are the profiles that a package exists for.
func releases() []Profile {
	return slices.DeleteFunc(Profiles(), func(p Profile) bool { return p.Fork })
}

// TestRealKeys compares names and defaults with those of the packages.
func TestRealKeys(t *testing.T) {
	dir := packages(t)
	for _, p := range releases() {
		real := generated(t, dir, p)
		for key := range real {
			if ok, listed := p.has(key); listed && !ok {
				t.Errorf("%s has the key %s, and tree.txt does not say so", p.Name, key)
			}
		}
		for _, key := range p.keys() {
			if _, ok := real[key]; !ok {
				t.Errorf("tree.txt gives %s the key %s, which it does not have", p.Name, key)
			}
		}
		for _, k := range curated() {
			got, ok := real[k.Name]
			if ok != k.in(p.Line) {
				t.Errorf("%s: the key %s is there: %v, and said to be: %v", p.Name, k.Name, ok, k.in(p.Line))
				continue
			}
			if ok && !sameDefault(k.Default(p.Line), got) {
				t.Errorf("%s: default of %s is %v, and said to be %s", p.Name, k.Name, got, k.Default(p.Line))
			}
		}
	}
}

func sameDefault(want string, got any) bool {
	if list, ok := got.([]any); ok {
		return sameList(want, list)
	}
	if got == nil {
		return want == "null"
	}
	text := fmt.Sprint(got)
	if strings.EqualFold(text, want) {
		return true
	}
	x, err1 := strconv.ParseFloat(text, 64)
	y, err2 := strconv.ParseFloat(want, 64)
	return err1 == nil && err2 == nil && math.Abs(x-y) < 1e-12
}

// hydraMain is verl's entry without verl: the same configuration, read by the
// same library.
const hydraMain = `
import sys, hydra
@hydra.main(config_path=sys.argv.pop(1), config_name="ppo_trainer", version_base=None)
def main(config):
    pass
main()
`

// TestRealCompose composes the overrides of each preset in each release, as
// the stage compose of a run does, and compares the result with the intent.
func TestRealCompose(t *testing.T) {
	dir := packages(t)
	python := filepath.Join(dir, "venv", "bin", "python")
	for _, preset := range presets(t) {
		for _, p := range releases() {
			t.Run(preset.Name+"/"+p.Name, func(t *testing.T) {
				r := adapted(preset.Recipe, p)
				o := resolve(&r)
				if o.Filter && p.DAPORecipe || o.Tree {
					t.Skip("the entry is not part of the package")
				}
				if o.LossMode == "gspo" && p.Line == Line05 {
					t.Skip("refused before")
				}
				s := setupFor(&r, p)
				s.Paths.Output = filepath.Join(t.TempDir(), "hydra")
				settings := Settings(r, s)
				config := composeReal(t, python, filepath.Join(dir, p.Version, "verl", "trainer", "config"), p.Overrides(settings, modulePPO))
				if keys := missing(config); len(keys) > 0 {
					t.Errorf("left open: %v", keys)
				}
				for _, d := range Compare(config, settings) {
					t.Errorf("%s is %q, want %q", d.Key, d.Got, d.Want)
				}
			})
		}
	}
}

func composeReal(t *testing.T, python, config string, overrides []string) map[string]any {
	t.Helper()
	argv := append([]string{"-c", hydraMain, config}, append(overrides, "--cfg", "job")...)
	cmd := exec.CommandContext(t.Context(), python, argv...)
	cmd.Dir = t.TempDir()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("compose: %v\n%s", err, stderr.String())
	}
	flat, err := ParseComposed(out)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return flat
}

// TestRealComposeRefuses shows that a key which the checks here would refuse
// is refused by Hydra too.
func TestRealComposeRefuses(t *testing.T) {
	dir := packages(t)
	p, _, _ := ProfileOf("0.8")
	s := sound(t, "0.8").with(actor+"clip_ratio_hi", "0.3")
	args := p.Overrides(s.Settings, modulePPO)
	for i, a := range args {
		args[i] = strings.Replace(a, "++"+actor+"clip", actor+"clip", 1)
	}
	argv := append([]string{"-c", hydraMain, filepath.Join(dir, p.Version, "verl", "trainer", "config")}, append(args, "--cfg", "job")...)
	out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "venv", "bin", "python"), argv...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "clip_ratio_hi") {
		t.Errorf("Hydra composes a key that is not there: %v\n%s", err, out)
	}
	if levelOf(CheckSettings(s)) != native.Refuse {
		t.Error("and the checks here pass it")
	}
}

// TestRealAgentLoop plays a rollout through the agent loop, tool parser, tool
// registry and reward manager of real releases, with a scripted policy in
// place of the inference engine. It needs an interpreter's worth of packages:
// ALIDADE_VERL_PATH is a PYTHONPATH with torch, transformers, ray, tensordict.
func TestRealAgentLoop(t *testing.T) {
	dir, path := packages(t), os.Getenv("ALIDADE_VERL_PATH")
	if path == "" {
		t.Skip("needs ALIDADE_VERL_PATH, a PYTHONPATH with torch, transformers, ray, hydra-core and tensordict")
	}
	script, err := os.ReadFile(filepath.Join("testdata", "real_loop.py"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"star-3b", "dapo"} {
		for _, p := range releases() {
			if p.Line == Line05 || name == "dapo" && !p.AgentData {
				continue
			}
			t.Run(name+"/"+p.Name, func(t *testing.T) {
				r, _ := ablation.PresetNamed(name)
				r = adapted(r, p)
				r.Native.MaxPrompt = 16384 // its tokens are bytes here, and verl cuts longer prompts from the left
				if p.DAPORecipe && name == "dapo" {
					r.Algorithm.Kind, r.Algorithm.FilterGroups = "grpo_tcr", false
				}
				b := startSandbox(t, serve.FormNative)
				shims := shimDir(t, r, p, b.url)
				s := setupFor(&r, p)
				s.Paths = pathsIn(shims)
				if spec := (ShimSpec{Profile: p, Recipe: r}); !spec.masks() {
					s.Paths.Loops = ""
				}
				var overrides []string
				for _, o := range p.Overrides(Settings(r, s), modulePPO) {
					if !strings.HasPrefix(o, "hydra.") {
						overrides = append(overrides, o)
					}
				}
				path := path
				if p.Line == Line06 { // it wants names that transformers 5 has dropped
					if path = os.Getenv("ALIDADE_VERL_PATH_06"); path == "" {
						t.Skip("needs ALIDADE_VERL_PATH_06, the same with transformers 4")
					}
					t.Setenv("V06", "1")
				}
				text := "import sys; sys.argv[1:] = [" + pyText(shims) + ", " + pyText(filepath.Join(dir, p.Version, "verl", "trainer", "config")) + ", " + pyText(mustJSON(t, overrides)) + "]\n" + string(script)
				var got struct {
					Reward, Score, Acc float64
					Episode            string  `json:"wb_episode"`
					Calls              float64 `json:"wb_tool_calls"`
					Turns              int     `json:"num_turns"`
					Mask, Tokens       int
					Schemas            int
				}
				runPython(t, b, shims, filepath.Join(dir, p.Version)+":"+path, text, &got)
				if got.Acc != 1 || got.Reward <= 0 || got.Calls != 2 || got.Episode == "" || got.Mask == 0 || got.Mask >= got.Tokens || got.Schemas != 6 {
					t.Errorf("the trainer would get %+v", got)
				}
				if len(b.records) != 1 || b.records[0].ID != got.Episode || !b.records[0].Success {
					t.Errorf("episodes on record: %d", len(b.records))
				}
			})
		}
	}
}

func pyText(s string) string { return strconv.Quote(s) }
