package trl

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"alidade/ablation"
	"alidade/trainer/native"
)

// tested are the versions of TRL whose inner methods the scripts know.
var tested = []string{"1.16"}

// checker collects verdicts.
type checker struct {
	r    ablation.Recipe
	v    native.Versions
	m    native.Machine
	list []native.Verdict
}

func (c *checker) refuse(code, key string, value any, text, fix string) {
	c.list = append(c.list, native.Verdict{Level: native.Refuse, Code: code, Key: key, Value: fmt.Sprint(value), Text: text, Fix: fix})
}

// Check implements [native.Adapter].
func (Adapter) Check(r ablation.Recipe, v native.Versions, m native.Machine) []native.Verdict {
	c := &checker{r: r, v: v, m: m}
	c.versions()
	c.algorithm()
	c.sizes()
	c.unsupported()
	c.engine()
	c.overrides()
	c.list = append(c.list, native.Verdict{Level: native.Note, Code: "objective", Text: resolve(r).String()})
	return c.list
}

func (c *checker) versions() {
	if want := c.r.Native.Version; want != "" && want != c.v["trl"] {
		c.refuse("version", "native.version", want, "the environment has trl "+c.v["trl"], "install that version, or leave the key empty")
	}
	if !slices.ContainsFunc(tested, func(t string) bool { return strings.HasPrefix(c.v["trl"]+".", t+".") }) {
		c.refuse("version", "trl", c.v["trl"], "the scripts use inner methods of TRL and are tested with "+strings.Join(tested, ", "), "run `alidade trainers install trl`")
	}
	if major(c.v["transformers"]) < 5 {
		c.refuse("version", "transformers", c.v["transformers"], "environments need transformers 5.2 or newer", "run `alidade trainers install trl`")
	}
	if c.r.Native.LoraRank > 0 && c.v["peft"] == "" {
		c.refuse("missing-package", "native.lora_rank", c.r.Native.LoraRank, "peft is not installed", "run `alidade trainers install trl`")
	}
}

func major(version string) int {
	n, _, _ := strings.Cut(version, ".")
	i, _ := strconv.Atoi(n)
	return i
}

// algorithm refuses what TRL does not do under the name that the recipe uses.
func (c *checker) algorithm() {
	a := c.r.Algorithm
	switch a.Kind {
	case "grpo", "dr_grpo", "gspo", "grpo_tcr", "grpo_scr":
	case "dapo":
		c.refuse("algorithm", "algorithm.kind", a.Kind, "TRL has no dynamic sampling, without which this is not DAPO", "grpo_tcr, which is the rest of DAPO, or trainer verl 0.9")
	case "arpo":
		c.refuse("algorithm", "algorithm.kind", a.Kind, "TRL has no branching rollouts", "grpo, dr_grpo, gspo, grpo_tcr or grpo_scr")
	default:
		c.refuse("algorithm", "algorithm.kind", a.Kind, "its GRPOTrainer has no such baseline", "grpo, dr_grpo, gspo, grpo_tcr or grpo_scr")
	}
	o := resolve(c.r)
	if o.Loss == "" {
		c.refuse("loss-aggregation", "algorithm.loss_agg_mode", a.LossAgg, "TRL has no such aggregation for this loss", "token-mean, seq-mean-token-mean or seq-mean-token-sum-norm")
	}
	if a.Kind == "gspo" && a.LossAgg != "seq-mean-token-mean" {
		c.list = append(c.list, native.Verdict{Level: native.Note, Code: "loss-aggregation", Key: "algorithm.loss_agg_mode", Value: a.LossAgg, Text: "gspo always averages over a sequence's tokens first, as published"})
	}
	if o.Loss == "dr_grpo" && a.LossScale != 0 && int(a.LossScale) != o.MaxTokens {
		c.refuse("loss-scale", "algorithm.loss_scale_factor", a.LossScale, fmt.Sprintf("TRL divides by the longest completion, %d tokens", o.MaxTokens), "0, or that number")
	}
	if o.Delta > 0 && o.Delta < 1+o.ClipHigh {
		c.refuse("dual-clip", "algorithm.clip_ratio_c", o.Delta, "TRL's delta bounds the ratio for good rollouts too", fmt.Sprintf("at least %g, 1 + clip_high, or 0", 1+o.ClipHigh))
	}
	if a.UseKLLoss && a.KLLossType != "" && a.KLLossType != "low_var_kl" {
		c.refuse("kl", "algorithm.kl_loss_type", a.KLLossType, "TRL estimates the KL by k3 alone", "low_var_kl")
	}
	if a.UseKLInReward {
		c.refuse("kl", "algorithm.use_kl_in_reward", true, "TRL takes no KL off the reward", "use_kl_loss")
	}
	if a.FilterGroups {
		c.refuse("dead-key", "algorithm.filter_groups", true, "TRL has no dynamic sampling", "false, or trainer verl 0.9")
	}
	if o.Buffer >= o.MaxTokens && o.Overlong == "shape" {
		c.refuse("overlong", "algorithm.overlong_buffer_len", o.Buffer, "the penalty would begin before the first token", fmt.Sprintf("below %d, the longest completion", o.MaxTokens))
	}
}

// sizes checks that batches divide.
func (c *checker) sizes() {
	a, n := c.r.Algorithm, max(1, c.r.Native.MicroBatch)
	rollouts := a.GroupSize * a.PromptsPerStep
	if part := max(1, a.Minibatches) * n * c.processes(); rollouts%part != 0 {
		c.refuse("batch-sizes", "native.micro_batch", n, fmt.Sprintf("group_size × prompts_per_step is %d, not a multiple of minibatches × micro_batch × devices, %d", rollouts, part), "a divisor")
	}
	if maxCompletion(c.r) < 16 {
		c.refuse("length", "native.max_response_tokens", maxCompletion(c.r), fmt.Sprintf("environment.max_tokens %d less the prompt limit %d leaves no room", c.r.Environment.MaxTokens, maxPrompt(c.r)), "a larger environment.max_tokens, or native.max_response_tokens")
	}
	if c.r.Data.Prompts < a.PromptsPerStep && c.r.Budget.Steps > 0 {
		c.refuse("batch-sizes", "data.prompts", c.r.Data.Prompts, "fewer than a step takes", fmt.Sprintf("at least algorithm.prompts_per_step, %d", a.PromptsPerStep))
	}
}

// processes are the training processes: one for each device.
func (c *checker) processes() int { return max(1, len(c.m.DeviceGiB)) }

// unsupported refuses keys that would be ignored.
func (c *checker) unsupported() {
	r := c.r
	for _, k := range []struct {
		bad   bool
		key   string
		value any
		text  string
		fix   string
	}{
		{r.Data.PassRateSamples > 0, "data.pass_rate_samples", r.Data.PassRateSamples, "prompts are not filtered by pass rate here", "0"},
		{r.Data.OODTraces > 0, "data.ood_traces", r.Data.OODTraces, "question-answering traces belong to the embedded trainer", "0"},
		{r.Evaluation.OOD > 0, "evaluation.ood", r.Evaluation.OOD, "the question-answering panel belongs to the embedded trainer", "0"},
		{r.Evaluation.Validation > 0, "evaluation.validation", r.Evaluation.Validation, "one panel is played", "0"},
		{r.Native.Nodes > 1, "native.nodes", r.Native.Nodes, "this kind trains on one machine", "1, or trainer verl"},
		{r.Native.SequenceParallel > 1, "native.sequence_parallel", r.Native.SequenceParallel, "sequences are not split here", "1, or trainer verl"},
		{r.Native.Offload != "" && r.Native.Offload != "none", "native.offload", r.Native.Offload, "nothing is offloaded here", "none, or trainer verl"},
	} {
		if k.bad {
			c.refuse("dead-key", k.key, k.value, k.text, k.fix)
		}
	}
	if r.SFT.Control {
		c.list = append(c.list, native.Verdict{Level: native.Note, Code: "sft-control", Key: "sft.control", Value: "true", Text: "the SFT-continued control is not run by this trainer"})
	}
}

func (c *checker) engine() {
	e, gpu := c.r.Native.Engine, len(c.m.DeviceGiB) > 0
	switch {
	case e == "sglang":
		c.refuse("engine", "native.engine", e, "TRL generates with transformers or vLLM", "hf, vllm or auto")
	case e == "vllm" && !gpu:
		c.refuse("engine", "native.engine", e, "vLLM needs a GPU here", "hf or auto")
	case e == "vllm" && c.v["vllm"] == "":
		c.refuse("engine", "native.engine", e, "vLLM is not installed in the environment", "install it there with pip, or hf")
	}
	if t := c.r.Native.TensorParallel; t > 1 && !useVLLM(c.r, c.v, c.m) {
		c.refuse("dead-key", "native.tensor_parallel", t, "only vLLM spreads the rollout model", "1, or native.engine vllm")
	}
}

// useVLLM tells what generates the rollouts.
func useVLLM(r ablation.Recipe, v native.Versions, m native.Machine) bool {
	switch r.Native.Engine {
	case "vllm":
		return true
	case "", "auto":
		return v["vllm"] != "" && len(m.DeviceGiB) > 0
	}
	return false
}

// ours are TRL's keys that the recipe sets.
var ours = []string{"output_dir", "per_device_train_batch_size", "gradient_accumulation_steps", "steps_per_generation", "generation_batch_size",
	"num_generations", "num_iterations", "max_steps", "learning_rate", "lr_scheduler_type", "warmup_steps", "epsilon", "epsilon_high", "delta",
	"beta", "loss_type", "importance_sampling_level", "scale_rewards", "mask_truncated_completions", "entropy_coef", "temperature", "top_p", "max_completion_length",
	"max_grad_norm", "weight_decay", "bf16", "fp16", "use_cpu", "gradient_checkpointing", "seed", "logging_steps", "save_strategy", "save_total_limit", "report_to",
	"use_vllm", "vllm_mode", "vllm_gpu_memory_utilization", "vllm_tensor_parallel_size", "vllm_max_model_length", "disable_tqdm", "remove_unused_columns", "model_init_kwargs"}

func (c *checker) overrides() {
	for k, v := range c.r.Native.Overrides {
		if slices.Contains(ours, k) {
			c.refuse("override", "native.overrides."+k, v, "the recipe sets it elsewhere", "the recipe's own key")
		}
	}
}
