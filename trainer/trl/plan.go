package trl

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"alidade/ablation"
	"alidade/trainer/native"
)

// The files of a stage's folder.
const (
	jobFile       = "job.json"
	metricsFile   = "metrics.jsonl"
	episodesStem  = "episodes"
	checkpointDir = "checkpoints"
	markFile      = "complete.json"
)

// jobSpec is what the scripts are told.
type jobSpec struct {
	Dir       string            `json:"dir"`
	Model     string            `json:"model"`
	Data      map[string]string `json:"data"`
	DataSeed  uint64            `json:"data_seed"`
	Env       map[string]string `json:"env"`
	Tools     json.RawMessage   `json:"tools"`
	Form      string            `json:"form"`
	Seed      uint64            `json:"seed"` // of torch: below 2³²
	Precision string            `json:"precision"`
	LoraRank  int               `json:"lora_rank"`
	Recompute bool              `json:"gradient_checkpointing"`
	Micro     int               `json:"micro_batch"`
	Processes int               `json:"processes"`
	Overrides map[string]string `json:"overrides"`
	MaxLength int               `json:"max_length"`
	Metrics   string            `json:"metrics"`

	SFT   map[string]any `json:"sft,omitempty"`
	State string         `json:"state,omitempty"`
	Out   string         `json:"out,omitempty"`

	Config      map[string]any `json:"config,omitempty"` // of GRPOConfig
	Episodes    string         `json:"episodes,omitempty"`
	Updates     int            `json:"updates,omitempty"` // of the optimizer in an RL step
	SaveEvery   int            `json:"save_every"`
	TotalSteps  int64          `json:"total_steps"`
	EvalEvery   int            `json:"eval_every"`
	EvalSamples int            `json:"eval_samples"`
	EvalTemp    float64        `json:"eval_temperature"`
	EvalBatch   int            `json:"eval_batch"`
	Resume      string         `json:"resume"`
	Overlong    string         `json:"overlong"`
	Buffer      int            `json:"overlong_buffer"`
	Penalty     float64        `json:"overlong_penalty"`
	MaxTokens   int            `json:"max_completion_length"`
	Detail      bool           `json:"detail"`
	Objective   string         `json:"objective"`
}

// Plan implements [native.Adapter].
func (Adapter) Plan(j native.Job) (native.Plan, error) {
	switch j.Stage {
	case native.StageSFT:
		return planSFT(j)
	case native.StageSmoke, native.StageRL:
		return planRL(j)
	}
	return native.Plan{}, nil
}

func common(j native.Job) jobSpec {
	r := j.Spec.Recipe
	return jobSpec{
		Dir: j.Dir, Model: j.Model, DataSeed: j.Data.Seed, Data: map[string]string{"train": j.Data.Train, "eval": j.Data.Eval, "traces": j.Data.Traces},
		Env: map[string]string{"url": j.Env.URL, "token_env": j.Env.TokenEnv}, Tools: j.Env.Tools, Form: cmp.Or(r.Environment.Form, native.FormReact),
		Seed: j.Spec.Seed % (1 << 32), Precision: cmp.Or(r.Native.Precision, "auto"), LoraRank: r.Native.LoraRank, Recompute: r.Native.Checkpointing,
		Micro: max(1, r.Native.MicroBatch), Processes: max(1, len(j.Machine.DeviceGiB)), MaxLength: maxPrompt(r) + maxCompletion(r),
		Metrics: filepath.Join(j.Dir, metricsFile),
	}
}

func planSFT(j native.Job) (native.Plan, error) {
	r := j.Spec.Recipe
	s := common(j)
	s.SFT = map[string]any{"epochs": r.SFT.Epochs, "lr": r.SFT.LR, "batch": r.SFT.Batch}
	s.State, s.Out = filepath.Join(filepath.Dir(j.Out), "state"), j.Out
	resolved := []native.Setting{
		{Key: "learning_rate", Value: text(r.SFT.LR), From: "sft.lr"}, {Key: "lr_scheduler_type", Value: "cosine"}, {Key: "num_train_epochs", Value: text(r.SFT.Epochs), From: "sft.epochs"},
		{Key: "batch", Value: text(r.SFT.Batch), From: "sft.batch"}, {Key: "max_length", Value: text(s.MaxLength), From: "native.max_prompt_tokens + native.max_response_tokens"},
		{Key: "loss", Value: "mean over the assistant's tokens"},
	}
	return plan(j, "sft.py", s, resolved, []native.Source{native.MetricsFile("metrics", s.Metrics)})
}

func planRL(j native.Job) (native.Plan, error) {
	r := j.Spec.Recipe
	a, o := r.Algorithm, resolve(r)
	s := common(j)
	s.Overrides = r.Native.Overrides
	s.Updates = max(1, a.Minibatches) * max(1, a.Epochs)
	s.TotalSteps, s.Resume = j.Steps, j.Resume
	s.Overlong, s.Buffer, s.Penalty, s.MaxTokens = o.Overlong, o.Buffer, o.Penalty, o.MaxTokens
	s.Detail, s.Objective, s.Episodes = true, o.String(), filepath.Join(j.Dir, episodesStem)
	prompts := a.PromptsPerStep
	if j.Stage == native.StageSmoke {
		prompts = smokePrompts(a, s)
	} else {
		s.SaveEvery = r.Budget.CheckpointEvery
		if j.Data.EvalN > 0 {
			s.EvalEvery, s.EvalSamples, s.EvalTemp = r.Evaluation.Every, max(1, r.Evaluation.Samples), r.Evaluation.Temperature
			s.EvalBatch = max(1, min(64, prompts*a.GroupSize/s.Processes))
		}
	}
	if j.Data.TrainN < prompts {
		return native.Plan{}, fmt.Errorf("algorithm.prompts_per_step is %d, and there are %d prompts", prompts, j.Data.TrainN)
	}
	var resolved []native.Setting
	s.Config, resolved = config(j, o, s, prompts)
	p, err := plan(j, "grpo.py", s, resolved, []native.Source{native.MetricsFile("metrics", s.Metrics), &episodes{glob: s.Episodes + "-*.jsonl", norm: o.norm()}})
	dir := filepath.Join(j.Dir, checkpointDir)
	p.Checkpoints = func() ([]native.Saved, error) { return saved(dir) }
	p.Save = func() error { return os.WriteFile(filepath.Join(j.Dir, "save"), nil, 0o600) }
	return p, err
}

// smokePrompts are as few prompts as the other sizes allow.
func smokePrompts(a ablation.Algorithm, s jobSpec) int {
	part := max(1, a.Minibatches) * s.Micro * s.Processes
	for n := min(2, a.PromptsPerStep); n < a.PromptsPerStep; n++ {
		if n*a.GroupSize%part == 0 {
			return n
		}
	}
	return a.PromptsPerStep
}

// config are the arguments of GRPOConfig, and the same as settings with the
// recipe's keys that they come from.
func config(j native.Job, o objective, s jobSpec, prompts int) (map[string]any, []native.Setting) {
	r := j.Spec.Recipe
	a, n := r.Algorithm, r.Native
	micro := s.Micro * s.Processes
	accumulate := prompts * a.GroupSize / (max(1, a.Minibatches) * micro)
	vllm := useVLLM(r, j.Versions, j.Machine)
	type entry struct {
		key   string
		value any
		from  string
	}
	list := []entry{
		{"loss_type", o.Loss, "algorithm.loss_agg_mode"}, {"importance_sampling_level", o.Ratio, "algorithm.kind"}, {"scale_rewards", o.Scale, "algorithm.norm_adv_by_std"},
		{"epsilon", o.ClipLow, "algorithm.clip_low"}, {"epsilon_high", o.ClipHigh, "algorithm.clip_high"}, {"beta", o.Beta, "algorithm.kl_loss_coef"},
		{"entropy_coef", o.Entropy, "algorithm.entropy_coeff"}, {"mask_truncated_completions", o.Overlong == "mask", "algorithm.overlong"},
		{"num_generations", a.GroupSize, "algorithm.group_size"}, {"num_iterations", max(1, a.Epochs), "algorithm.ppo_epochs"},
		{"per_device_train_batch_size", s.Micro, "native.micro_batch"}, {"gradient_accumulation_steps", accumulate, "algorithm.minibatches"},
		{"steps_per_generation", accumulate * max(1, a.Minibatches), "algorithm.prompts_per_step"}, {"max_steps", j.Steps * int64(s.Updates), "budget.steps"},
		{"learning_rate", a.LR, "algorithm.lr"}, {"lr_scheduler_type", "constant_with_warmup", ""}, {"warmup_steps", n.WarmupSteps * s.Updates, "native.warmup_steps"},
		{"weight_decay", n.WeightDecay, "native.weight_decay"}, {"max_grad_norm", a.GradClip, "algorithm.grad_clip"}, {"temperature", a.Temperature, "algorithm.temperature"},
		{"top_p", cmp.Or(a.TopP, 1), "algorithm.top_p"}, {"max_completion_length", o.MaxTokens, "native.max_response_tokens"},
		{"use_vllm", vllm, "native.engine"}, {"seed", s.Seed, "seed"},
	}
	if o.Delta > 0 {
		list = append(list, entry{"delta", o.Delta, "algorithm.clip_ratio_c"})
	}
	if n.KeepCheckpoints > 0 {
		list = append(list, entry{"save_total_limit", n.KeepCheckpoints, "native.keep_checkpoints"})
	}
	if vllm {
		list = append(list, entry{"vllm_mode", "colocate", ""}, entry{"vllm_gpu_memory_utilization", cmp.Or(n.EngineMemory, 0.3), "native.engine_memory"},
			entry{"vllm_tensor_parallel_size", max(1, n.TensorParallel), "native.tensor_parallel"}, entry{"vllm_max_model_length", s.MaxLength, "native.max_prompt_tokens + native.max_response_tokens"})
	}
	c := map[string]any{"output_dir": filepath.Join(j.Dir, checkpointDir), "logging_steps": 1, "save_strategy": "no", "report_to": "none", "disable_tqdm": true,
		"remove_unused_columns": false, "dataloader_pin_memory": false}
	var resolved []native.Setting
	for _, e := range list {
		c[e.key] = e.value
		resolved = append(resolved, native.Setting{Key: e.key, Value: text(e.value), From: e.from})
	}
	for _, k := range slices.Sorted(maps.Keys(n.Overrides)) {
		resolved = append(resolved, native.Setting{Key: k, Value: n.Overrides[k], From: "native.overrides"})
	}
	return c, append(resolved, native.Setting{Key: "objective", Value: o.String()})
}

func text(v any) string {
	if f, ok := v.(float64); ok {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return fmt.Sprint(v)
}

// plan is what the stages have in common: the scripts, the job, the command.
func plan(j native.Job, script string, s jobSpec, resolved []native.Setting, sources []native.Source) (native.Plan, error) {
	files, err := scripts()
	if err != nil {
		return native.Plan{}, err
	}
	if files[jobFile], err = json.MarshalIndent(s, "", " "); err != nil {
		return native.Plan{}, err
	}
	argv := []string{j.Python, "-u"}
	if s.Processes > 1 {
		mixed := "bf16"
		if s.Precision == "fp32" {
			mixed = "no"
		}
		argv = append(argv, "-m", "accelerate.commands.launch", "--num_processes", strconv.Itoa(s.Processes), "--num_machines", "1", "--multi_gpu",
			"--main_process_port", "0", "--mixed_precision", mixed, "--dynamo_backend", "no")
	}
	argv = append(argv, filepath.Join(j.Dir, "py", script), filepath.Join(j.Dir, jobFile))
	return native.Plan{
		Files: files, Argv: argv, Resolved: resolved, Sources: sources,
		Env: []string{"TRL_EXPERIMENTAL_SILENCE=1", "TOKENIZERS_PARALLELISM=false", "HF_HUB_DISABLE_TELEMETRY=1", "PYTHONDONTWRITEBYTECODE=1"},
	}, nil
}

// saved lists the checkpoints that are whole, oldest first.
func saved(dir string) ([]native.Saved, error) {
	marks, err := filepath.Glob(filepath.Join(dir, "checkpoint-*", markFile))
	if err != nil {
		return nil, err
	}
	var list []native.Saved
	for _, mark := range marks {
		var m struct {
			Step int64 `json:"step"`
		}
		src, err := os.ReadFile(mark)
		if errors.Is(err, os.ErrNotExist) { // an old one that was just removed
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(src, &m); err != nil {
			return nil, fmt.Errorf("read %s: %w", mark, err)
		}
		list = append(list, native.Saved{Step: m.Step, Path: filepath.Dir(mark)})
	}
	slices.SortFunc(list, func(a, b native.Saved) int { return cmp.Compare(a.Step, b.Step) })
	return list, nil
}
