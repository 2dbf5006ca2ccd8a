package rllm

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"alidade/ablation"
	"alidade/trainer/native"
	"alidade/trainer/verl"
)

// Kind is the recipe's trainer.kind.
const Kind = "rllm"

// Adapter drives rLLM 0.3 with the verl backend.
type Adapter struct{}

// Kind implements [native.Adapter].
func (Adapter) Kind() string { return Kind }

// probeCode prints the versions of what is installed, as JSON, without
// importing any of it.
const probeCode = `import importlib.metadata as m, json, sys
out = {"python": sys.version.split()[0]}
for name in ("rllm", "verl", "torch", "vllm", "transformers", "ray"):
    try:
        out[name] = m.version(name)
    except m.PackageNotFoundError:
        pass
print(json.dumps(out))
`

// install says how to get rLLM.
const install = "install rLLM 0.3 with its verl extra in an environment of its own and name its interpreter in native.python; rLLM is not in the package index under its own name, so it comes from a checkout"

// Probe implements [native.Adapter].
func (Adapter) Probe(ctx context.Context, python string) (native.Versions, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, python, "-c", probeCode)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	missing := func(err error) error {
		return &native.Missing{Kind: Kind, Python: python, How: install, Err: err}
	}
	if err != nil {
		return nil, missing(fmt.Errorf("%w: %s", err, strings.TrimSpace(stderr.String())))
	}
	v := native.Versions{}
	if err := json.Unmarshal(bytes.TrimSpace(out), &v); err != nil {
		return nil, missing(fmt.Errorf("the probe printed %q: %w", out, err))
	}
	for _, need := range []string{"rllm", "verl"} {
		if v[need] == "" {
			return nil, missing(errors.New("package " + need + " is not there"))
		}
	}
	return v, nil
}

// profile is the verl that an rLLM comes with.
func profile(v native.Versions) (verl.Profile, error) {
	p, _, err := verl.ProfileOf(v["verl"])
	return p, err
}

// Plan implements [native.Adapter].
func (a Adapter) Plan(j native.Job) (native.Plan, error) {
	switch j.Stage {
	case native.StageSmoke, native.StageRL:
		return a.train(j)
	}
	return native.Plan{}, nil
}

// train plans RL.
func (a Adapter) train(j native.Job) (native.Plan, error) {
	r := j.Spec.Recipe
	p, err := profile(j.Versions)
	if err != nil {
		return native.Plan{}, err
	}
	eval, err := rows(j.Data.Eval)
	if err != nil {
		return native.Plan{}, err
	}
	in := func(name string) string { return filepath.Join(j.Dir, name) }
	smoke := j.Stage == native.StageSmoke
	if smoke {
		r.Algorithm.PromptsPerStep = min(r.Algorithm.PromptsPerStep, 4)
		r.Algorithm.Minibatches = 1
	}
	run := fmt.Sprintf("r%da%d-%s", j.Spec.Run, j.Spec.Attempt, j.Stage)
	s := Setup{
		Setup: verl.Setup{
			Profile: p, Model: j.Model, Seed: j.Spec.Seed, Steps: j.Steps, Rows: j.Data.TrainN, Resume: j.Resume, Run: run, Smoke: smoke,
			Paths: verl.Paths{Checkpoints: in("checkpoints"), JSONL: in("metrics.jsonl"), Events: in("tensorboard"), Output: in("hydra"), RayTemp: rayTemp(j.Spec.Run, j.Spec.Attempt, j.Stage)},
		},
		Episodes: in("episodes"), Port: portOf(j.Spec.Run, j.Spec.Attempt),
	}
	settings := Settings(r, s)
	secret := rand.Text()
	server := New(Config{
		Key: secret, Recipe: r, Steps: j.Steps, Done: stepOf(j.Resume), Estimator: valueOf(settings, "rllm.algorithm.adv_estimator"),
		ByStd: valueOf(settings, "rllm.algorithm.norm_adv_by_std_in_grpo") == "True", Eval: eval, Open: j.Env.Open, Record: j.Env.Record,
		Overlong: overlongOf(&r, whole(valueOf(settings, "rllm.data.max_response_length"))),
	})
	plan := native.Plan{
		Files: map[string][]byte{"train.py": trainScript(j.Data.Train, j.Data.Eval)},
		Argv:  append([]string{j.Python, "-u", "train.py"}, overrides(p, settings)...),
		Env: []string{
			KeyEnv + "=" + secret, "VERL_FILE_LOGGER_PATH=" + s.Paths.JSONL, "TENSORBOARD_DIR=" + s.Paths.Events,
			"RAY_DEDUP_LOGS=0", "HYDRA_FULL_ERROR=1", "VERL_LOGGING_LEVEL=INFO", "TOKENIZERS_PARALLELISM=true", "RLLM_HOME=" + in("home"),
			"WANDB_MODE=offline", "NO_PROXY=127.0.0.1,localhost",
		},
		Unset:    []string{"RAY_ADDRESS", URLEnv, KeyEnv, "WANDB_API_KEY"},
		Resolved: settings,
		Sources: []native.Source{
			server, native.MetricsFile("file", s.Paths.JSONL), Episodes("episodes", s.Episodes, server),
		},
		Checkpoints: func() ([]native.Saved, error) { return checkpoints(s.Paths.Checkpoints) },
		Serve:       &native.Service{Handler: server, URLEnv: []string{URLEnv}, Secret: secret},
		Finished:    finished(server, j.Steps),
	}
	return plan, nil
}

// overlongOf reads what over-long responses cost in a recipe, limit being the
// longest response.
func overlongOf(r *ablation.Recipe, limit int) Overlong {
	a := &r.Algorithm
	o := Overlong{How: a.Overlong, Limit: limit, Buffer: a.OverlongBuffer, Factor: a.OverlongPenalty}
	if a.Kind == "grpo_tcr" || a.Kind == "grpo_scr" { // the penalty is part of them
		o.How = "shape"
	}
	if o.Buffer == 0 {
		o.Buffer = max(1, limit/5)
	}
	if o.Factor == 0 {
		o.Factor = 1
	}
	return o
}

// The variables of rLLM's logger; the flow reads them too.
const (
	URLEnv = "RLLM_UI_URL"
	KeyEnv = "RLLM_API_KEY"
)

// finished judges the end of training: the exit code alone says nothing, since
// a resumed run may end at once without a step.
func finished(s *Server, steps int64) func(last int64, exit int) (bool, string) {
	return func(last int64, exit int) (bool, string) {
		switch {
		case exit != 0:
			return false, fmt.Sprintf("rLLM ended with exit code %d at step %d of %d", exit, last, steps)
		case last < steps:
			return false, fmt.Sprintf("rLLM ended with exit code 0 at step %d of %d", last, steps)
		case s.Failed():
			return false, "rLLM says that it failed, with exit code 0"
		}
		return true, ""
	}
}

// rayTemp is a short folder for Ray's sockets: their paths may have 107 bytes.
func rayTemp(run ablation.RunID, attempt int, stage string) string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("alidade-ray-r%da%d-%s", run, attempt, stage))
}

// rows reads a file of tasks.
func rows(path string) ([]Row, error) {
	if path == "" {
		return nil, nil
	}
	src, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // planned before the data were made
	}
	if err != nil {
		return nil, fmt.Errorf("tasks of evaluation: %w", err)
	}
	var list []Row
	dec := json.NewDecoder(bytes.NewReader(src))
	for dec.More() {
		var row Row
		if err := dec.Decode(&row); err != nil {
			return nil, fmt.Errorf("tasks of evaluation: %s: %w", filepath.Base(path), err)
		}
		list = append(list, row)
	}
	return list, nil
}

// stepOf is the step of a checkpoint folder; 0 for none.
func stepOf(path string) int64 {
	_, digits, _ := strings.Cut(filepath.Base(path), "global_step_")
	return int64(whole(digits))
}

// checkpoints lists the checkpoints of verl's layout that are complete: those
// up to the one that the trainer itself names as its latest.
func checkpoints(dir string) ([]native.Saved, error) {
	src, err := os.ReadFile(filepath.Join(dir, "latest_checkpointed_iteration.txt"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	latest := whole(strings.TrimSpace(string(src)))
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var list []native.Saved
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), "global_step_")
		if n := whole(digits); ok && e.IsDir() && n > 0 && n <= latest {
			list = append(list, native.Saved{Step: int64(n), Path: filepath.Join(dir, e.Name())})
		}
	}
	slices.SortFunc(list, func(a, b native.Saved) int { return int(a.Step - b.Step) })
	return list, nil
}
