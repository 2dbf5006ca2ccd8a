package verl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"alidade/trainer/native"
)

// probeScript asks for versions without importing a framework: that would
// take half a minute and a GPU.
const probeScript = `
import importlib.metadata as m, importlib.util as u, json, os, platform, subprocess
out = {"python": platform.python_version()}
for name in ("verl", "torch", "ray", "vllm", "sglang", "transformers", "hydra-core", "tensorboard", "uni-agent"):
    try:
        out[name] = m.version(name)
    except m.PackageNotFoundError:
        pass
spec = u.find_spec("verl")
if spec and spec.submodule_search_locations:
    home = list(spec.submodule_search_locations)[0]
    out["verl.path"] = home
    try:
        out["verl"] = open(os.path.join(home, "version", "version")).read().strip()
    except OSError:
        pass
    root = os.path.dirname(home)
    if os.path.isdir(os.path.join(root, "recipe", "demystify")):
        out["verl.fork"] = "open-agentrl"
    if os.path.isdir(os.path.join(home, "workers", "rollout", "tools")):
        out["verl.fork"] = "arpo"
    for config in (os.path.join(root, "scripts", "config"), os.path.join(os.path.dirname(root), "scripts", "config")):
        if out.get("verl.fork") == "arpo" and os.path.isfile(os.path.join(config, "ppo_trainer.yaml")):
            out["arpo.config"] = config
    try:
        git = subprocess.run(["git", "-C", root, "rev-parse", "HEAD"], capture_output=True, text=True, timeout=10)
        if git.returncode == 0 and os.path.exists(os.path.join(root, ".git")):
            out["verl.commit"] = git.stdout.strip()
    except (OSError, subprocess.SubprocessError):
        pass
recipe = u.find_spec("recipe")
for home in (recipe.submodule_search_locations if recipe and recipe.submodule_search_locations else []):
    if os.path.isfile(os.path.join(home, "dapo", "main_dapo.py")):
        out["recipe.dapo"] = os.path.join(home, "dapo")
print(json.dumps(out))
`

// How verl is installed; it is too large, and too dependent on the GPU's
// driver, to be installed unasked.
const howToInstall = "install one of its releases into an environment of yours (pip install verl==0.8.0 vllm) and name its interpreter in native.python"

// Probe asks an interpreter for verl's version and those of what it builds on.
func (Adapter) Probe(ctx context.Context, python string) (native.Versions, error) {
	v, err := probe(ctx, python, probeScript)
	if err == nil && v["verl"] == "" {
		err = errors.New("no package verl")
	}
	if err != nil {
		return nil, &native.Missing{Kind: "verl", Python: python, How: howToInstall, Err: err}
	}
	return v, nil
}

func probe(ctx context.Context, python, script string) (native.Versions, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, python, "-c", script)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("ask %s for its packages: %w: %s", python, err, lastLine(stderr.String()))
	}
	var v native.Versions
	if err := json.Unmarshal([]byte(lastLine(stdout.String())), &v); err != nil {
		return nil, fmt.Errorf("ask %s for its packages: %w", python, err)
	}
	return v, nil
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}

// profileFor finds the profile that a recipe runs under, and says what speaks
// against it.
func profileFor(wanted string, v native.Versions) (Profile, []native.Verdict) {
	found := v["verl"]
	if fork := v["verl.fork"]; fork != "" {
		found = fork
	}
	name := wanted
	if name == "" {
		name = found
	}
	p, exact, err := ProfileOf(name)
	if err != nil {
		return profiles[Line09], []native.Verdict{{Level: native.Refuse, Code: "version", Key: "native.version", Value: name, Text: err.Error(), Fix: strings.Join(ProfileNames(), ", ")}}
	}
	var out []native.Verdict
	if wanted != "" && found != "" && !sameVersion(wanted, found) {
		out = append(out, native.Verdict{Level: native.Refuse, Code: "version", Key: "native.version", Value: wanted,
			Text: "the installed verl is " + found, Fix: "native.version: " + found + ", or an interpreter that has the other one"})
	}
	if !exact && len(out) == 0 {
		out = append(out, native.Verdict{Level: native.Warn, Code: "version", Key: "native.version", Value: name,
			Text: "its keys are taken to be those of verl " + p.Version, Fix: "the composed configuration is compared before the launch"})
	}
	return p, out
}

// sameVersion tells whether an installed version is the wanted one: 0.8 is
// any 0.8.x.
func sameVersion(wanted, found string) bool {
	wanted, found = strings.TrimPrefix(wanted, "v"), strings.TrimPrefix(found, "v")
	return wanted == found || strings.HasPrefix(found, wanted+".") || strings.HasPrefix(found, wanted+"+")
}
