// Package trl trains language models with Hugging Face TRL: supervised
// fine-tuning by its SFTTrainer, RL by its GRPOTrainer, in the environment
// server of the run. The Python that drives it is embedded here and written
// into each run, so that a run's folder holds the code that made it.
package trl

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path"
	"strings"
	"time"

	"alidade/trainer/native"
)

// Kind is the recipe's trainer.kind.
const Kind = "trl"

//go:embed python/*.py python/requirements.txt
var project embed.FS

// Requirements is the text of the locked requirements.
func Requirements() []byte {
	text, err := project.ReadFile("python/requirements.txt")
	if err != nil {
		return nil // it is embedded
	}
	return text
}

// scripts are the Python files by their name in a stage's folder.
func scripts() (map[string][]byte, error) {
	files := map[string][]byte{}
	err := fs.WalkDir(project, "python", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".py" {
			return err
		}
		files["py/"+path.Base(name)], err = project.ReadFile(name)
		return err
	})
	return files, err
}

// Adapter implements [native.Adapter].
type Adapter struct{}

// Kind implements [native.Adapter].
func (Adapter) Kind() string { return Kind }

// packages are those whose versions a run records.
var packages = []string{"trl", "transformers", "torch", "accelerate", "peft", "datasets", "vllm"}

// probe prints versions from the packages' metadata: nothing is imported, so
// it takes no time and no GPU.
const probe = `import importlib.metadata as m, json, platform, sys
found = {"python": platform.python_version()}
for name in sys.argv[1:]:
    try: found[name] = m.version(name)
    except m.PackageNotFoundError: pass
print(json.dumps(found))`

// Probe implements [native.Adapter].
func (Adapter) Probe(ctx context.Context, python string) (native.Versions, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, python, append([]string{"-c", probe}, packages...)...)
	cmd.Stderr = &stderr
	missing := &native.Missing{Kind: Kind, Python: python, How: "run `alidade trainers install trl`"}
	text, err := cmd.Output()
	if err != nil {
		missing.Err = fmt.Errorf("%w: %s", err, strings.TrimSpace(stderr.String()))
		return nil, missing
	}
	v := native.Versions{}
	if err := json.Unmarshal(text, &v); err != nil {
		missing.Err = err
		return nil, missing
	}
	for _, name := range []string{"trl", "transformers", "torch"} {
		if v[name] == "" {
			missing.Err = errors.New("package " + name + " is not there")
			return nil, missing
		}
	}
	return v, nil
}
