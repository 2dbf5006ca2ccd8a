package verl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"alidade/ablation"
	"alidade/sandbox/travel/dataset"
	"alidade/trainer/native"
)

// pathsIn names a stage's own places below dir.
func pathsIn(dir string) Paths {
	h := fnv.New32a()
	_, _ = h.Write([]byte(dir))
	in := func(name string) string { return filepath.Join(dir, name) }
	return Paths{
		Train: in("train.parquet"), Val: in("val.parquet"), Tools: in("tools.yaml"), Reward: in("alidade_reward.py"), Loops: in("loops.yaml"),
		Rollouts: in("rollouts"), Validation: in("validation"), Checkpoints: in("checkpoints"),
		JSONL: in("metrics.jsonl"), Events: in("tensorboard"), Output: in("hydra"),
		// Ray puts sockets below it, whose paths have to be short.
		RayTemp: filepath.Join(os.TempDir(), fmt.Sprintf("ray-%08x", h.Sum32())),
	}
}

// Plan implements native.Adapter. verl has the stages compose, smoke and rl;
// it evaluates while it trains.
func (a Adapter) Plan(j native.Job) (native.Plan, error) {
	if j.Stage != native.StageCompose && j.Stage != native.StageSmoke && j.Stage != native.StageRL {
		return native.Plan{}, nil
	}
	r := j.Spec.Recipe
	if r.Budget.Steps == 0 {
		return native.Plan{}, nil
	}
	p, bad := profileFor(r.Native.Version, j.Versions)
	if levelOf(bad) == native.Refuse {
		return native.Plan{}, errors.New(bad[0].Text)
	}
	if j.Stage == native.StageSmoke {
		r = smokeRecipe(r)
	}
	shim := ShimSpec{Profile: p, Recipe: r, Env: j.Env, Progress: filepath.Join(j.Dir, "progress"), Task: "0"}
	paths := pathsIn(j.Dir)
	if !shim.masks() {
		paths.Loops = ""
	}
	setup := Setup{Profile: p, Model: j.Model, Seed: j.Spec.Seed, Steps: max(1, j.Steps), Rows: j.Data.TrainN, Resume: j.Resume, Paths: paths,
		Run: fmt.Sprintf("run-%d-%d", j.Spec.Run, j.Spec.Attempt), Smoke: j.Stage == native.StageSmoke}
	settings := Settings(r, setup)
	o := resolve(&r)
	module := p.module(o.Filter)
	if err := resumable(p, module, settings, j.Resume); err != nil {
		return native.Plan{}, err
	}
	plan := native.Plan{Resolved: settings, Unset: []string{"RAY_ADDRESS"}, Env: environment(&paths, j.Env.URL, j.Dir)}
	if !strings.Contains(r.Native.Overrides["trainer.logger"], "wandb") {
		plan.Unset = append(plan.Unset, "WANDB_API_KEY") // nobody asked for it to be sent there
	}
	plan.Argv = append(entry(j.Python, module, j.Versions, p), p.Overrides(settings, module)...)
	if j.Stage == native.StageCompose {
		plan.Argv = append(plan.Argv, "--cfg", "job")
		plan.Finished = composed(filepath.Join(j.Dir, "stdout.log"), settings)
		return plan, nil
	}
	files, err := Shims(shim)
	if err != nil {
		return native.Plan{}, err
	}
	files["progress"] = fmt.Appendf(nil, "%d %d\n", startOf(&setup), setup.Steps)
	if err := addData(files, j.Data, loopName(shim.masks())); err != nil {
		return native.Plan{}, err
	}
	if err := makeFolders(&paths); err != nil {
		return native.Plan{}, err
	}
	plan.Files = files
	if r.Native.RayAddress != "" {
		if err := submit(&plan, j, r.Native.RayAddress); err != nil {
			return native.Plan{}, err
		}
	}
	watch(&plan, p, &paths, j, setup.Steps)
	return plan, nil
}

// startOf is the step that is done at the start; −1 while the first evaluation
// is still to come.
func startOf(s *Setup) int64 {
	if s.Resume == "" && !s.Smoke {
		return -1
	}
	return stepOf(s.Resume)
}

// entry is the command before the overrides.
func entry(python, module string, v native.Versions, p Profile) []string {
	argv := []string{python, "-u", "-m", module}
	if p.Line == LineARPO {
		argv = append(argv, "--config-path="+v["arpo.config"], "--config-name=ppo_trainer.yaml")
	}
	return argv
}

// environment holds the variables of the native process beside the driver's.
func environment(paths *Paths, url, dir string) []string {
	pythonPath := dir
	if p := os.Getenv("PYTHONPATH"); p != "" {
		pythonPath += string(os.PathListSeparator) + p
	}
	return []string{
		"PYTHONUNBUFFERED=1", "HYDRA_FULL_ERROR=1", "RAY_DEDUP_LOGS=0", "VERL_LOGGING_LEVEL=INFO",
		"PYTHONPATH=" + pythonPath, "ALIDADE_ENV_URL=" + url,
		"VERL_FILE_LOGGER_PATH=" + paths.JSONL, "TENSORBOARD_DIR=" + paths.Events,
		"MLFLOW_TRACKING_URI=" + "file://" + filepath.Join(dir, "mlflow"),
	}
}

// makeFolders makes what verl does not make by itself.
func makeFolders(p *Paths) error {
	for _, dir := range []string{p.Rollouts, p.Validation, p.Checkpoints, p.Events} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make a folder for verl: %w", err)
		}
	}
	return nil
}

// smokeRecipe is the recipe cut down to one small step: the fewest prompts
// that still divide as verl wants them.
func smokeRecipe(r ablation.Recipe) ablation.Recipe {
	r.Algorithm.Minibatches = 1
	devices := max(1, r.Trainer.Devices) * max(1, r.Native.Nodes)
	most := r.Algorithm.PromptsPerStep
	for n := min(2, most); n <= most; n++ {
		if n*r.Algorithm.GroupSize%devices == 0 {
			r.Algorithm.PromptsPerStep = n
			break
		}
	}
	r.Budget.CheckpointEvery, r.Evaluation.Every = 0, 0
	return r
}

// addData writes the rows of the run as Parquet.
func addData(files map[string][]byte, d native.Data, agent string) error {
	train, err := readTasks(d.Train, agent)
	if err != nil {
		return err
	}
	if len(train) == 0 {
		return errors.New("there are no training prompts")
	}
	val := train[:1] // the trainer wants a file, also when it never evaluates
	if d.EvalN > 0 {
		if val, err = readTasks(d.Eval, agent); err != nil {
			return err
		}
	}
	for name, tasks := range map[string][]dataset.VerlTask{"train.parquet": train, "val.parquet": val} {
		var b bytes.Buffer
		if err := dataset.WriteVerlTasks(&b, tasks); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		files[name] = b.Bytes()
	}
	return nil
}

// readTasks reads the driver's JSONL of tasks.
func readTasks(path, agent string) ([]dataset.VerlTask, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read tasks: %w", err)
	}
	var tasks []dataset.VerlTask
	for line := range bytes.Lines(src) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var t struct {
			TaskID    string                  `json:"task_id"`
			Split     string                  `json:"split"`
			QueryHash string                  `json:"query_hash"`
			Level     string                  `json:"level"`
			Prompt    []dataset.PromptMessage `json:"prompt"`
		}
		if err := json.Unmarshal(line, &t); err != nil {
			return nil, fmt.Errorf("read tasks: %s, task %d: %w", path, len(tasks)+1, err)
		}
		tasks = append(tasks, dataset.VerlTask{TaskID: t.TaskID, Split: t.Split, Level: t.Level, Hash: t.QueryHash, Agent: agent, Prompt: t.Prompt})
	}
	return tasks, nil
}

// resumable refuses a checkpoint that this configuration cannot read.
func resumable(p Profile, module string, settings []native.Setting, from string) error {
	if from == "" {
		return nil
	}
	world, err := WorldSize(from)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	l := (&Subject{Profile: p, Module: module, Settings: settings, WorldSize: world}).lookup()
	for _, rule := range []crossRule{resumeDevices, resumePath} {
		if v, bad := rule(l); bad {
			return fmt.Errorf("resume from %s: %s; %s", from, v.Text, v.Fix)
		}
	}
	return nil
}

// submit puts the command into a job of the user's Ray cluster, followed by a
// small program until it ends.
func submit(plan *native.Plan, j native.Job, address string) error {
	env := map[string]string{}
	for _, e := range plan.Env {
		name, value, _ := strings.Cut(e, "=")
		env[name] = value
	}
	// The token is read by the follower from its own environment, so that it
	// stands in no file.
	job := map[string]any{"address": address, "id": fmt.Sprintf("alidade-%d-%d-%s", j.Spec.Run, j.Spec.Attempt, j.Stage),
		"entrypoint": shellQuote(plan.Argv), "env": env, "secret": j.Env.TokenEnv}
	src, err := json.MarshalIndent(job, "", "  ")
	if err != nil {
		return err
	}
	follower := (&ShimSpec{}).fill("alidade_job.py")
	maps.Copy(plan.Files, map[string][]byte{"job.json": append(src, '\n'), "alidade_job.py": follower})
	plan.Argv = []string{j.Python, "-u", filepath.Join(j.Dir, "alidade_job.py"), filepath.Join(j.Dir, "job.json")}
	return nil
}

// shellQuote writes an argv as the one line that Ray's job server takes.
func shellQuote(argv []string) string {
	quoted := make([]string, len(argv))
	for i, a := range argv {
		if a != "" && strings.IndexFunc(a, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || slices.Contains([]rune("_-./:@=,+"), r))
		}) < 0 {
			quoted[i] = a
			continue
		}
		quoted[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
	}
	return strings.Join(quoted, " ")
}
