package verl

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"alidade/ablation"
	"alidade/sandbox/travel"
	"alidade/trainer"
	"alidade/trainer/native"
)

// jobFor is a job of the preset with its data on disk.
func jobFor(t *testing.T, preset, stage string, v native.Versions) native.Job {
	t.Helper()
	r, ok := ablation.PresetNamed(preset)
	if !ok {
		t.Fatalf("no preset %s", preset)
	}
	dir := t.TempDir()
	tasks := ""
	for i := range 40 {
		tasks += fmt.Sprintf(`{"task_id":"%d","split":"train","query_hash":"h%d","level":"easy","prompt":[{"role":"system","content":"Plan."},{"role":"user","content":"Trip %d"}]}`+"\n", i, i, i)
	}
	train, eval := filepath.Join(dir, "train.jsonl"), filepath.Join(dir, "eval.jsonl")
	for path, text := range map[string]string{train: tasks, eval: strings.ReplaceAll(tasks, `"train"`, `"eval"`)} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tools, err := json.Marshal(travel.ToolSchemas())
	if err != nil {
		t.Fatal(err)
	}
	work := filepath.Join(dir, "native", stage)
	if err := os.MkdirAll(work, 0o755); err != nil {
		t.Fatal(err)
	}
	return native.Job{Spec: trainer.Spec{Run: 12, Attempt: 2, Seed: 7, Recipe: r}, Stage: stage, Versions: v, Machine: eight, Python: "/usr/bin/python3", Dir: work,
		Model: r.Native.Model, Data: native.Data{Train: train, Eval: eval, TrainN: 40, EvalN: 40}, Env: native.EnvServer{URL: "http://127.0.0.1:1", TokenEnv: "ALIDADE_ENV_TOKEN", Tools: tools}, Steps: 155}
}

func argOf(argv []string, key string) string {
	for _, a := range argv {
		if v, ok := strings.CutPrefix(strings.TrimLeft(a, "+"), key+"="); ok {
			return v
		}
	}
	return ""
}

func TestPlanRL(t *testing.T) {
	t.Setenv("PYTHONPATH", "")
	j := jobFor(t, "star-3b", native.StageRL, installed(profiles[Line08]))
	plan, err := (Adapter{}).Plan(j)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(plan.Argv[:4], []string{"/usr/bin/python3", "-u", "-m", modulePPO}) {
		t.Errorf("argv begins %v", plan.Argv[:4])
	}
	for _, key := range []string{"trainer.default_local_dir", "trainer.rollout_data_dir", "data.train_files", "reward.custom_reward_function.path", rollout + "multi_turn.tool_config_path"} {
		if v := argOf(plan.Argv, key); !strings.HasPrefix(v, j.Dir+"/") {
			t.Errorf("%s is %q, not in the attempt's folder", key, v)
		}
	}
	for _, name := range []string{"train.parquet", "val.parquet", "tools.yaml", "loops.yaml", "alidade_tool.py", "alidade_reward.py", "alidade_loop.py", "alidade_client.py", "progress"} {
		if len(plan.Files[name]) == 0 {
			t.Errorf("file %s is not written", name)
		}
	}
	if string(plan.Files["progress"]) != "-1 155\n" {
		t.Errorf("progress %q", plan.Files["progress"])
	}
	if !slices.Contains(plan.Unset, "RAY_ADDRESS") || !slices.Contains(plan.Env, "RAY_DEDUP_LOGS=0") || !slices.Contains(plan.Env, "VERL_FILE_LOGGER_PATH="+filepath.Join(j.Dir, "metrics.jsonl")) {
		t.Errorf("environment %v without %v", plan.Env, plan.Unset)
	}
	for _, dir := range []string{"rollouts", "validation", "checkpoints", "tensorboard"} {
		if info, err := os.Stat(filepath.Join(j.Dir, dir)); err != nil || !info.IsDir() {
			t.Errorf("folder %s: %v", dir, err)
		}
	}
	if len(argOf(plan.Argv, "ray_kwargs.ray_init._temp_dir")) > 40 {
		t.Error("Ray's folder is too long for its sockets")
	}
	if argOf(plan.Argv, "trainer.resume_mode") != "disable" {
		t.Error("a first attempt may find another's checkpoints")
	}
	var names []string
	for _, s := range plan.Sources {
		names = append(names, s.Name())
	}
	if !slices.Equal(names, []string{"file logger", "console", "dumps of rl"}) {
		t.Errorf("sources %v", names)
	}
}

// TestAttemptsShareNothing: two plans of one recipe pass the check for arms.
func TestAttemptsShareNothing(t *testing.T) {
	var arms []ArmPlan
	for _, name := range []string{"a", "b"} {
		plan, err := (Adapter{}).Plan(jobFor(t, "star-3b", native.StageRL, installed(profiles[Line08])))
		if err != nil {
			t.Fatal(err)
		}
		arms = append(arms, ArmPlan{Name: name, Profile: profiles[Line08], Settings: plan.Resolved, Env: plan.Env})
	}
	if got := CheckArms(arms); len(got) > 0 {
		t.Error(got)
	}
}

func TestPlanResume(t *testing.T) {
	j := jobFor(t, "star-3b", native.StageRL, installed(profiles[Line08]))
	j.Resume = checkpointOf(t, t.TempDir(), 60, 8)
	plan, err := (Adapter{}).Plan(j)
	if err != nil {
		t.Fatal(err)
	}
	if argOf(plan.Argv, "trainer.resume_mode") != "resume_path" || argOf(plan.Argv, "trainer.resume_from_path") != j.Resume || argOf(plan.Argv, "trainer.val_before_train") != "False" {
		t.Errorf("argv %v", plan.Argv)
	}
	if string(plan.Files["progress"]) != "60 155\n" {
		t.Errorf("progress %q", plan.Files["progress"])
	}
	j.Resume = checkpointOf(t, t.TempDir(), 60, 4)
	if _, err := (Adapter{}).Plan(j); err == nil || !strings.Contains(err.Error(), "4 shards") {
		t.Errorf("a checkpoint of other devices: %v", err)
	}
}

func TestPlanOtherStages(t *testing.T) {
	for _, stage := range []string{native.StageSFT, native.StageEval} {
		plan, err := (Adapter{}).Plan(jobFor(t, "star-3b", stage, installed(profiles[Line08])))
		if err != nil || len(plan.Argv) > 0 {
			t.Errorf("%s: %v, %v", stage, plan.Argv, err)
		}
	}
	smoke, err := (Adapter{}).Plan(func() native.Job {
		j := jobFor(t, "star-3b", native.StageSmoke, installed(profiles[Line08]))
		j.Steps = 1
		return j
	}())
	if err != nil {
		t.Fatal(err)
	}
	if argOf(smoke.Argv, "data.train_batch_size") != "2" || argOf(smoke.Argv, "trainer.total_training_steps") != "1" || argOf(smoke.Argv, "trainer.val_before_train") != "False" || argOf(smoke.Argv, "trainer.save_freq") != "-1" {
		t.Errorf("smoke run: %v", smoke.Argv)
	}
	compose, err := (Adapter{}).Plan(jobFor(t, "star-3b", native.StageCompose, installed(profiles[Line08])))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(compose.Argv); compose.Argv[n-2] != "--cfg" || compose.Argv[n-1] != "job" || compose.Finished == nil {
		t.Errorf("compose: %v", compose.Argv[len(compose.Argv)-2:])
	}
}

// TestSmokeRecipesPass: the small step of every preset is still sound.
func TestSmokeRecipesPass(t *testing.T) {
	for _, preset := range presets(t) {
		p, _, _ := ProfileOf(preset.Recipe.Native.Version)
		r := smokeRecipe(preset.Recipe)
		s := setupFor(&r, p)
		s.Steps, s.Smoke = 1, true
		o := resolve(&r)
		for _, v := range CheckSettings(&Subject{Profile: p, Module: p.module(o.Filter), Settings: Settings(r, s), Tools: true, Rows: r.Data.Prompts}) {
			if v.Level == native.Refuse {
				t.Errorf("%s: %s", preset.Name, v)
			}
		}
	}
}

func TestPlanThroughRay(t *testing.T) {
	j := jobFor(t, "star-3b", native.StageRL, installed(profiles[Line08]))
	j.Spec.Recipe.Native.RayAddress, j.Spec.Recipe.Native.Nodes = "http://head:8265", 2
	plan, err := (Adapter{}).Plan(j)
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Argv) != 4 || filepath.Base(plan.Argv[2]) != "alidade_job.py" {
		t.Errorf("argv %v", plan.Argv)
	}
	var job struct {
		Address, ID, Entrypoint, Secret string
		Env                             map[string]string
	}
	if err := json.Unmarshal(plan.Files["job.json"], &job); err != nil {
		t.Fatal(err)
	}
	if job.Address != "http://head:8265" || !strings.Contains(job.Entrypoint, "trainer.nnodes=2") || strings.Contains(job.Entrypoint, "_temp_dir") || job.Secret != "ALIDADE_ENV_TOKEN" {
		t.Errorf("job %+v", job)
	}
	if strings.Contains(job.Entrypoint, "=[console") && !strings.Contains(job.Entrypoint, "'trainer.logger=[") {
		t.Error("the job's line holds brackets that a shell would expand")
	}
}

func TestShellQuote(t *testing.T) {
	if got, want := shellQuote([]string{"python3", "a=[b,c]", "it's", "", "x=/a.b"}), `python3 'a=[b,c]' 'it'\''s' '' x=/a.b`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// checkpointOf writes the files that a checkpoint is known by.
func checkpointOf(t *testing.T, dir string, step, world int) string {
	t.Helper()
	path := filepath.Join(dir, fmt.Sprintf("global_step_%d", step))
	if err := os.MkdirAll(filepath.Join(path, "actor"), 0o755); err != nil {
		t.Fatal(err)
	}
	for rank := range world {
		if err := os.WriteFile(filepath.Join(path, "actor", fmt.Sprintf("model_world_size_%d_rank_%d.pt", world, rank)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func TestCheckpoints(t *testing.T) {
	dir := t.TempDir()
	if got, err := Checkpoints(dir); err != nil || len(got) != 0 {
		t.Fatalf("an empty folder: %v, %v", got, err)
	}
	for _, step := range []int{100, 20, 60} {
		checkpointOf(t, dir, step, 2)
	}
	torn := checkpointOf(t, dir, 40, 2)
	if err := os.Remove(filepath.Join(torn, "actor", "model_world_size_2_rank_1.pt")); err != nil {
		t.Fatal(err)
	}
	if got, err := Checkpoints(dir); err != nil || len(got) != 0 {
		t.Errorf("without the file that names the last: %v, %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(dir, latestFile), []byte("60"), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := Checkpoints(dir)
	if err != nil || len(got) != 2 || got[0].Step != 20 || got[1].Step != 60 {
		t.Errorf("checkpoints %v, %v; want 20 and 60: 40 lacks a shard, 100 is not complete", got, err)
	}
	if world, err := WorldSize(got[0].Path); err != nil || world != 2 {
		t.Errorf("world size %d, %v", world, err)
	}
}

func TestFinished(t *testing.T) {
	for _, tc := range []struct {
		name        string
		steps, from int64
		last        int64
		exit        int
		ok          bool
		says        string
	}{
		{"done", 100, 0, 100, 0, true, ""},
		{"ended early with code 0", 100, 0, 3, 0, false, "step 3 of 100"},
		{"empty resume", 100, 60, 60, 0, false, "without a new step"},
		{"resumed and done", 100, 60, 100, 0, true, ""},
		{"last step and a failure", 100, 0, 100, 1, false, "exit code 1"},
		{"stopped", 100, 0, 40, 143, false, "stopped"},
	} {
		ok, reason := finished(tc.steps, tc.from)(tc.last, tc.exit)
		if ok != tc.ok || !strings.Contains(reason, tc.says) {
			t.Errorf("%s: %v, %q", tc.name, ok, reason)
		}
	}
}

func TestProgressFollowsTheSteps(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "stdout.log")
	p := &progress{path: filepath.Join(dir, "progress"), steps: 9, done: -1}
	s := p.follow(ConsoleSource(log))
	for _, tc := range []struct{ line, want string }{
		{"step:0 - val-core/x/acc/mean@1:0.1\n", "0 9\n"},
		{"step:1 - a:1\n", "1 9\n"},
		{"step:1 - a:1\n", "1 9\n"},
		{"step:2 - a:1\n", "2 9\n"},
	} {
		appendFile(t, log, tc.line)
		poll(t, s, false)
		if got, err := os.ReadFile(p.path); err != nil || string(got) != tc.want {
			t.Errorf("after %q: %q, %v", tc.line, got, err)
		}
	}
}

func TestNaming(t *testing.T) {
	a := Adapter{}
	for native, want := range map[string]string{
		"critic/score/mean": "reward/mean", "actor/entropy": "policy/entropy", "timing_s/step": "time/step_s",
		"val-core/alidade/travel/acc/mean@8":          "eval/core/travel/acc/mean@8",
		"val-aux/alidade/travel/wb_cs_macro/mean@8":   "eval/aux/travel/wb_cs_macro/mean@8",
		"val-core/math/x/reward/best@4/mean":          "eval/core/math/x/reward/best@4/mean",
		"tools/python/success_rate":                   "tools/python/success_rate",
		"tools/failed_calls":                          "tools/failed",
		"training/rollout_actor_probs_pearson_corr":   "mismatch/pearson",
		"something/else":                              "",
		"val-core/alidade/travel/acc/something_else@": "",
	} {
		got, ok := a.Name(native)
		if got != want || ok != (want != "") {
			t.Errorf("%s is named %q, %v; want %q", native, got, ok, want)
		}
	}
	seen := map[string]bool{}
	for _, m := range Metrics() {
		if seen[m.Native] {
			t.Errorf("%s is listed twice", m.Native)
		}
		seen[m.Native] = true
	}
}

func TestComposed(t *testing.T) {
	settings := []native.Setting{{Key: "a.b", Value: "1e-06"}, {Key: "a.c", Value: "True"}, {Key: "a.d", Value: "[x,y]"}, {Key: "a.e", Value: "null"}, {Key: "a.f", Value: `'it\'s'`}, {Key: "hydra.run.dir", Value: "/x"}, {Key: "a.g", Value: "{}"}}
	good := "WARNING: something imported\n2026-01-01 00:00:00 INFO: more\na:\n  b: 1.0e-06\n  c: true\n  d:\n  - x\n  - 'y'\n  e: null\n  f: it's\n  g: {}\n"
	for _, tc := range []struct {
		name, stdout string
		exit         int
		ok           bool
		says         string
	}{
		{"as meant", good, 0, true, ""},
		{"a key differs", strings.Replace(good, "1.0e-06", "1.0e-05", 1), 0, false, "a.b"},
		{"a key is gone", strings.Replace(good, "  e: null\n", "", 1), 0, false, "a.e"},
		{"left open", good + "r:\n  name: ???\n", 0, false, "r.name"},
		{"does not compose", "Could not override 'a.z'", 1, false, "exit code 1"},
		{"nothing printed", "", 0, false, "no configuration"},
		{"no YAML", "Traceback\n  File\n", 0, false, "no configuration"},
	} {
		path := filepath.Join(t.TempDir(), "stdout.log")
		if err := os.WriteFile(path, []byte(tc.stdout), 0o644); err != nil {
			t.Fatal(err)
		}
		ok, reason := composed(path, settings)(0, tc.exit)
		if ok != tc.ok || !strings.Contains(reason, tc.says) {
			t.Errorf("%s: %v, %q", tc.name, ok, reason)
		}
	}
}

func FuzzParseComposed(f *testing.F) {
	f.Add([]byte("a:\n  b: 1\n"))
	f.Add([]byte("warn\nx: [1\na:\n  b: {c: 1}\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		if len(src) > 4096 {
			return
		}
		if flat, err := ParseComposed(src); err == nil && len(flat) == 0 {
			t.Error("a configuration without a key")
		}
	})
}

// TestProbe asks a real interpreter, which need not have verl.
func TestProbe(t *testing.T) {
	v, err := (Adapter{}).Probe(t.Context(), "python3")
	var missing *native.Missing
	switch {
	case err == nil:
		if v["python"] == "" || v["verl"] == "" {
			t.Errorf("versions %v", v)
		}
	case !asMissing(err, &missing) || missing.How == "" || missing.Kind != "verl":
		t.Errorf("probe: %v", err)
	}
	if _, err := (Adapter{}).Probe(t.Context(), "/no/such/python"); !asMissing(err, &missing) {
		t.Errorf("no interpreter: %v", err)
	}
}

func asMissing(err error, to **native.Missing) bool {
	m, ok := err.(*native.Missing)
	*to = m
	return ok
}
