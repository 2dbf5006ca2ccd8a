package emulator

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// verlRun is a run of verl's trainer.
type verlRun struct {
	p       *process
	set     map[string]string
	dapo    bool
	v1      bool // 0.9: uid in dumps, numpy 2
	arpo    bool
	buffers bool // the file logger buffers, and has no null
	smoke   bool

	env        *environment
	train, val []task
	jsonl      *metricsFile
	events     *eventFile
	steps      int64
}

func (v *verlRun) get(key string) string { return v.set[key] }

func (v *verlRun) n(key string, standard int) int {
	n, err := strconv.Atoi(v.set[key])
	if err != nil {
		return standard
	}
	return n
}

// verl emulates verl.trainer.main_ppo and recipe.dapo.main_dapo.
func (p *process) verl(module string, args []string) int {
	version := p.cfg.Versions["verl"]
	v := &verlRun{
		p: p, set: settings(args), dapo: module == "recipe.dapo.main_dapo",
		v1:      strings.HasPrefix(version, "0.9") || strings.HasPrefix(version, "0.10"),
		arpo:    p.cfg.Versions["verl.fork"] == "arpo",
		buffers: strings.HasPrefix(version, "0.6") || version == "0.7.0",
	}
	if slices.Contains(args, "--cfg") {
		return v.compose()
	}
	v.steps = int64(v.n("trainer.total_training_steps", 1))
	v.smoke = v.steps == 1 && v.get("trainer.val_before_train") != "True"
	if code, now := p.fails(0, v.smoke); now {
		return code
	}
	if err := v.all(); err != nil {
		var end *ended
		if errors.As(err, &end) {
			return end.code
		}
		fmt.Fprintln(p.err, "Traceback (most recent call last):")
		fmt.Fprintf(p.err, "EmulatorError: %v\n", err)
		return 1
	}
	return 0
}

// ended is the end of a run by a failure.
type ended struct{ code int }

func (e *ended) Error() string { return "ended" }

// compose prints the configuration that Hydra would: what was asked for, as
// YAML, and what has no default.
func (v *verlRun) compose() int {
	if v.p.cfg.Fail == "config" {
		code, _ := v.p.fails(0, false)
		return code
	}
	if v.get("actor_rollout_ref.rollout.name") == "" {
		v.set["actor_rollout_ref.rollout.name"] = "???"
	}
	tree := map[string]any{}
	for key, value := range v.set {
		if strings.HasPrefix(key, "hydra.") {
			continue
		}
		at := tree
		parts := strings.Split(key, ".")
		for _, part := range parts[:len(parts)-1] {
			inner, ok := at[part].(map[string]any)
			if !ok {
				inner = map[string]any{}
				at[part] = inner
			}
			at = inner
		}
		at[parts[len(parts)-1]] = value
	}
	v.p.yaml(tree, "")
	return 0
}

// yaml prints a tree as OmegaConf does.
func (p *process) yaml(tree map[string]any, indent string) {
	keys := make([]string, 0, len(tree))
	for k := range tree {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		switch x := tree[k].(type) {
		case map[string]any:
			p.printf("%s%s:\n", indent, k)
			p.yaml(x, indent+"  ")
		case string:
			if list, ok := strings.CutPrefix(x, "["); ok {
				p.printf("%s%s:\n", indent, k)
				for item := range strings.SplitSeq(strings.TrimSuffix(list, "]"), ",") {
					p.printf("%s- %s\n", indent, strings.Trim(strings.TrimSpace(item), `'"`))
				}
				continue
			}
			if x == "True" || x == "False" {
				x = strings.ToLower(x)
			}
			if x == "" {
				x = "''"
			}
			p.printf("%s%s: %s\n", indent, k, x)
		}
	}
}

// say prints a line as Ray shows it of its task runner.
func (v *verlRun) say(format string, args ...any) {
	v.p.printf("\x1b[36m(TaskRunner pid=41277)\x1b[0m "+format+"\n", args...)
}

func (v *verlRun) all() error {
	v.p.printf("2026-11-29 22:00:01,113\tINFO worker.py:1927 -- Started a local Ray instance.\n")
	v.env = v.p.environment(v.p.env("ALIDADE_ENV_URL"), "ALIDADE_ENV_TOKEN")
	var err error
	if v.train, err = v.env.tasks("train"); err != nil {
		return err
	}
	if v.val, err = v.env.tasks("eval"); err != nil {
		v.val = nil // the run has no panel
	}
	if err := v.open(); err != nil {
		return err
	}
	defer func() { _ = errors.Join(v.jsonl.close(), v.events.close()) }()
	batch := v.n("data.train_batch_size", 1024)
	v.say("[validate_config] All configuration checks passed successfully!")
	v.say("Size of train dataloader: %d, Size of val dataloader: 1", max(1, len(v.train)/max(1, batch)))
	v.say("Total training steps: %d", v.steps)
	first, err := v.resume()
	if err != nil {
		return err
	}
	if v.p.cfg.Fail == "empty-resume" && first > 1 {
		return nil
	}
	if truthy(v.get("trainer.val_before_train")) && len(v.val) > 0 {
		values, err := v.validate(first - 1)
		if err != nil {
			return err
		}
		v.say("Initial validation metrics: %v", len(values))
		if err := v.log(first-1, values); err != nil {
			return err
		}
	}
	for step := first; step <= v.steps; step++ {
		if err := v.step(step); err != nil {
			return err
		}
	}
	v.say("Final validation metrics: None")
	return nil
}

// open opens the loggers that were asked for. An unknown name is an assertion.
func (v *verlRun) open() error {
	list := v.get("trainer.logger")
	if v.arpo && strings.Contains(list, "file") {
		fmt.Fprintln(v.p.err, "AssertionError: file is not supported")
		return &ended{1}
	}
	var err error
	if path := v.p.env("VERL_FILE_LOGGER_PATH"); strings.Contains(list, "file") && path != "" {
		if v.jsonl, err = openMetrics(path, v.buffers); err != nil {
			return err
		}
	}
	if dir := v.p.env("TENSORBOARD_DIR"); strings.Contains(list, "tensorboard") && dir != "" {
		if v.events, err = openEvents(dir); err != nil {
			return err
		}
	}
	return nil
}

// resume finds the first step.
func (v *verlRun) resume() (int64, error) {
	dir, from := v.get("trainer.default_local_dir"), ""
	switch v.get("trainer.resume_mode") {
	case "disable":
	case "resume_path":
		from = v.get("trainer.resume_from_path")
		if !strings.Contains(from, "global_step_") {
			return 0, errors.New("AssertionError: resume ckpt must specify the global_steps")
		}
	default:
		if src, err := os.ReadFile(filepath.Join(dir, "latest_checkpointed_iteration.txt")); err == nil {
			from = filepath.Join(dir, "global_step_"+strings.TrimSpace(string(src)))
		}
	}
	if from == "" {
		v.say("Training from scratch")
		return 1, nil
	}
	n, err := strconv.ParseInt(from[strings.LastIndex(from, "global_step_")+len("global_step_"):], 10, 64)
	if err != nil {
		return 0, err
	}
	if _, err := os.Stat(filepath.Join(from, "actor")); err != nil {
		return 0, err
	}
	v.say("Load from checkpoint folder: %s", from)
	v.say("Setting global step to %d", n)
	v.say("Resuming from %s", from)
	return n + 1, nil
}

// rollout is one row of a dump.
type rollout struct {
	task   task
	index  int
	group  string
	policy policy
	played played
}

// sample plays n episodes for each of the tasks.
func (v *verlRun) sample(tasks []task, split string, n int, step int64) ([]rollout, error) {
	phase := "rl"
	if split != "train" {
		phase = "eval"
	}
	progress := math.Max(0, float64(step-1)) / math.Max(1, float64(v.steps))
	var list []rollout
	for i, t := range tasks {
		group := fmt.Sprintf("%s-%d-%s", phase, step, t.ID)
		for k := range n {
			p := policy{react: true, good: (i+k)%2 == 0 && !v.p.is("constant", step, v.smoke)}
			e, err := v.env.play(opening{TaskID: t.ID, Split: split, Seed: uint64(max(0, step)), GroupID: group, Rollout: k, Phase: phase, Step: step}, p, min(1, progress))
			if err != nil {
				return nil, err
			}
			list = append(list, rollout{t, k, group, p, e})
		}
	}
	return list, nil
}

// batch picks the prompts of a step, in the order of the data.
func (v *verlRun) batch(step int64) []task {
	n := min(v.n("data.train_batch_size", 1), len(v.train))
	out := make([]task, n)
	for i := range out {
		out[i] = v.train[(int(step-1)*n+i)%len(v.train)]
	}
	return out
}

// step is one step of training.
func (v *verlRun) step(step int64) error {
	v.p.waits(step)
	v.p.sleep()
	rows, err := v.sample(v.batch(step), "train", max(1, v.n("actor_rollout_ref.rollout.n", 1)), step)
	if err != nil {
		return err
	}
	if (v.p.cfg.Fail == "tools" || v.p.cfg.Fail == "tool-noise") && step >= v.p.cfg.At {
		for range 60 {
			fmt.Fprintln(v.p.err, "(AgentLoopWorker pid=41500) ERROR:2026-11-29 22:10:00,001:Failed to decode tool call: Expecting value: line 1 column 1 (char 0)")
		}
	}
	if code, now := v.p.fails(step, v.smoke); now {
		return &ended{code}
	}
	values := v.values(step, rows)
	if v.p.is("nan-grad", step, v.smoke) {
		fmt.Fprintln(v.p.err, "(WorkerDict pid=41300) WARN: rank 0 grad_norm is not finite: nan")
	}
	if dir := v.get("trainer.rollout_data_dir"); dir != "" && dir != "null" {
		if err := dump(filepath.Join(dir, fmt.Sprintf("%d.jsonl", step)), v.dumped(rows, step, false)); err != nil {
			return err
		}
		v.say("Dumped generations to %s", filepath.Join(dir, fmt.Sprintf("%d.jsonl", step)))
	}
	if every := int64(v.n("trainer.test_freq", -1)); every > 0 && (step%every == 0 || step == v.steps) && len(v.val) > 0 {
		val, err := v.validate(step)
		if err != nil {
			return err
		}
		for name, x := range val {
			values[name] = x
		}
	}
	if every := int64(v.n("trainer.save_freq", -1)); every > 0 && (step%every == 0 || step == v.steps) {
		at, err := checkpoint(v.get("trainer.default_local_dir"), step, max(1, v.n("trainer.n_gpus_per_node", 1)))
		if err != nil {
			return err
		}
		v.say("local_global_step_folder: %s", at)
	}
	return v.log(step, values)
}

// log tells a step to all loggers.
func (v *verlRun) log(step int64, values map[string]float64) error {
	v.say("%s", consoleLine(step, values, v.v1))
	return errors.Join(v.jsonl.step(step, values), v.events.step(step, values))
}

// values are a step's metrics: those of rewards are real, the rest is made up.
func (v *verlRun) values(step int64, rows []rollout) map[string]float64 {
	lo, hi, sum := math.Inf(1), math.Inf(-1), 0.0
	for i := range rows {
		s := rows[i].played.Score
		lo, hi, sum = min(lo, s), max(hi, s), sum+s
	}
	mean := sum / math.Max(1, float64(len(rows)))
	if v.p.is("nan-score", step, v.smoke) {
		mean = math.NaN()
	}
	m := map[string]float64{
		"critic/score/mean": mean, "critic/score/max": hi, "critic/score/min": lo, "critic/rewards/mean": mean,
		"critic/advantages/mean": 0, "critic/advantages/max": 1, "critic/advantages/min": -1,
		"actor/entropy": 0.5 / math.Sqrt(float64(step)), "actor/grad_norm": 0.2, "actor/pg_loss": -0.01, "actor/pg_clipfrac": 0.001,
		"actor/pg_clipfrac_lower": 0, "actor/ppo_kl": 0.0004, "actor/lr": 1e-6,
		"response_length/mean": 120, "response_length/max": 160, "response_length/min": 80, "response_length/clip_ratio": 0,
		"prompt_length/mean": 900, "num_turns/mean": 6, "num_turns/max": 6, "num_turns/min": 6,
		"timing_s/step": float64(v.p.cfg.StepMS) / 1000, "timing_s/gen": float64(v.p.cfg.StepMS) / 2000, "perf/throughput": 1431.2,
		"global_seqlen/mean": 71824.5, "training/global_step": float64(step), "training/epoch": 0,
	}
	if v.p.is("nan-grad", step, v.smoke) {
		m["actor/grad_norm"] = math.NaN()
	}
	if v.arpo {
		m["tools/total_calls"], m["tools/successful_calls"], m["tools/failed_calls"] = float64(2*len(rows)), float64(2*len(rows)), 0
		m["tools/SearchCity/success_rate"] = 1
	}
	if v.v1 {
		m["training/rollout_actor_probs_pearson_corr"] = 0.999
	}
	if v.dapo {
		m["train/num_gen_batches"] = 1
		v.say("num_prompt_in_batch=%d < prompt_bsz=%d", len(rows)/2, len(rows))
	}
	return m
}

// validate plays the panel.
func (v *verlRun) validate(step int64) (map[string]float64, error) {
	n := max(1, v.n("actor_rollout_ref.rollout.val_kwargs.n", 1))
	rows, err := v.sample(v.val, "eval", n, step)
	if err != nil {
		return nil, err
	}
	v.say("validation generation end")
	if dir := v.get("trainer.validation_data_dir"); dir != "" && dir != "null" {
		if err := dump(filepath.Join(dir, fmt.Sprintf("%d.jsonl", step)), v.dumped(rows, step, true)); err != nil {
			return nil, err
		}
	}
	acc, reward := 0.0, 0.0
	for i := range rows {
		reward += rows[i].played.Score
		if rows[i].played.Success {
			acc++
		}
	}
	k := float64(max(1, len(rows)))
	return map[string]float64{
		fmt.Sprintf("val-core/alidade/travel/acc/mean@%d", n):   acc / k,
		"val-aux/alidade/travel/reward/mean@" + strconv.Itoa(n): reward / k,
		"val-aux/num_turns/mean":                                6,
	}, nil
}

// dumped are the rows of a dump. Until 0.8 what the reward function returned
// stands in them; from 0.9 on they have a uid, and those of training only that.
func (v *verlRun) dumped(rows []rollout, step int64, val bool) []map[string]any {
	list := make([]map[string]any, len(rows))
	for i := range rows {
		r := &rows[i]
		score := r.played.Score
		row := map[string]any{
			"input":  "system\nYou plan trips.\nuser\n" + r.task.Text + "\nassistant\n",
			"output": r.policy.words(), "score": score, "step": step,
		}
		if !v.arpo {
			row["gts"] = r.task.Hash
		}
		if v.v1 {
			row["uid"] = fmt.Sprintf("%s_%d_0", r.group, r.index)
		}
		if !v.arpo && (!v.v1 || val) {
			parts, err := json.Marshal(r.played.Components)
			if err == nil {
				row["wb_components"] = string(parts)
			}
			row["acc"], row["wb_group"], row["wb_episode"] = share(r.played.Success), r.played.Group, r.played.ID
			for _, name := range []string{"cs_micro", "delivery", "tool_calls"} {
				row["wb_"+name] = r.played.Metrics[name]
			}
		}
		list[i] = row
	}
	if v.v1 {
		slices.SortStableFunc(list, func(a, b map[string]any) int {
			return strings.Compare(fmt.Sprint(a["uid"]), fmt.Sprint(b["uid"]))
		})
	}
	return list
}

func share(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
