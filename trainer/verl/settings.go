package verl

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"alidade/ablation"
	"alidade/trainer/native"
)

// Setup is what a run's settings depend on beside its recipe.
type Setup struct {
	Profile Profile
	Model   string // folder or name
	Seed    uint64
	Steps   int64  // last step
	Rows    int    // training prompts in the file
	Resume  string // checkpoint folder global_step_N, "" = none
	Run     string // safe name of the run and attempt
	Paths   Paths
	Smoke   bool // one step, no evaluation
}

// Paths are a run's own, absolute.
type Paths struct {
	Train, Val            string // Parquet
	Tools, Reward, Loops  string // generated files; Loops "" = none
	Rollouts, Validation  string // dumps
	Checkpoints           string
	JSONL, Events, Output string // file logger, TensorBoard, Hydra's own
	RayTemp               string
}

// builder collects settings in order.
type builder struct {
	p    Profile
	list []native.Setting
}

func (b *builder) set(key string, value any, from string) {
	b.list = append(b.list, native.Setting{Key: key, Value: literal(value), From: from})
}

// since sets a key that the version has, and leaves it out otherwise.
func (b *builder) since(key string, value any, from string) {
	if ok, _ := b.p.has(key); ok {
		b.set(key, value, from)
	}
}

// literal writes a value as Hydra's override grammar reads it.
func literal(v any) string {
	switch x := v.(type) {
	case bool:
		if x {
			return "True"
		}
		return "False"
	case float64:
		return strconv.FormatFloat(x, 'g', -1, 64)
	case []string:
		quoted := make([]string, len(x))
		for i, s := range x {
			quoted[i] = quote(s)
		}
		return "[" + strings.Join(quoted, ",") + "]"
	case string:
		return quote(x)
	}
	return fmt.Sprint(v)
}

// quote puts a text in single quotes unless Hydra reads it as it stands.
func quote(s string) string {
	plain := s != "" && !strings.HasSuffix(s, ":") && strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:@", r))
	}) < 0
	if plain {
		return s
	}
	s = strings.ReplaceAll(s, `\`, `\\`)
	return "'" + strings.ReplaceAll(s, "'", `\'`) + "'"
}

// Settings says what a recipe becomes in one version of verl, in order, each
// with the recipe's key that it comes from; a setting without one is a default
// that is written down because versions differ in it. The recipe's
// native.overrides come last.
func Settings(r ablation.Recipe, s Setup) []native.Setting {
	b := &builder{p: s.Profile}
	o := resolve(&r)
	b.algorithm(&r, &o)
	b.data(&r, &s)
	b.model(&r, &s)
	b.actor(&r, &o)
	b.rollout(&r, &o, &s)
	b.reward(&o, &r, &s)
	b.trainer(&r, &s)
	return withOverrides(b.list, r.Native.Overrides)
}

// withOverrides puts the user's own settings last; a default of ours gives
// way, and what the recipe sets elsewhere stays ([CheckSettings] refuses it).
func withOverrides(list []native.Setting, own map[string]string) []native.Setting {
	keys := make([]string, 0, len(own))
	for k := range own {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		key := strings.TrimLeft(k, "+~")
		if i := slices.IndexFunc(list, func(s native.Setting) bool { return s.Key == key }); i >= 0 {
			if list[i].From != "" {
				continue
			}
			list = slices.Delete(list, i, i+1)
		}
		list = append(list, native.Setting{Key: key, Value: own[k], From: "native.overrides"})
	}
	return list
}

func (b *builder) algorithm(r *ablation.Recipe, o *objective) {
	b.set("algorithm.adv_estimator", o.Estimator, "algorithm.kind")
	b.set("algorithm.norm_adv_by_std_in_grpo", o.Std, "algorithm.norm_adv_by_std")
	b.set("algorithm.use_kl_in_reward", o.KLReward > 0, "algorithm.use_kl_in_reward")
	if o.KLReward > 0 {
		b.set("algorithm.kl_ctrl.kl_coef", o.KLReward, "algorithm.kl_coef")
	}
	if o.Filter {
		b.set("algorithm.filter_groups.enable", true, "algorithm.filter_groups")
		b.set("algorithm.filter_groups.metric", o.Metric, "algorithm.filter_groups_metric")
		if !b.p.V1 {
			b.set("algorithm.filter_groups.max_num_gen_batches", o.Rounds, "algorithm.max_num_gen_batches")
			b.set("data.gen_batch_size", r.Algorithm.PromptsPerStep, "algorithm.prompts_per_step")
		}
	}
}

func (b *builder) data(r *ablation.Recipe, s *Setup) {
	b.set("data.train_files", s.Paths.Train, "data.prompts")
	b.set("data.val_files", s.Paths.Val, "evaluation.queries")
	b.set("data.train_batch_size", r.Algorithm.PromptsPerStep, "algorithm.prompts_per_step")
	b.set("data.max_prompt_length", promptLimit(r), "native.max_prompt_tokens")
	b.set("data.max_response_length", responseLimit(r), "native.max_response_tokens")
	b.set("data.return_raw_chat", true, "")
	b.set("data.filter_overlong_prompts", true, "")
	b.set("data.truncation", "error", "")
	b.set("data.shuffle", true, "")
	b.since("data.seed", s.Seed%(1<<31), "seed")
}

func (b *builder) model(r *ablation.Recipe, s *Setup) {
	n := &r.Native
	b.set(arr+"model.path", s.Model, "native.model")
	b.set(arr+"model.use_remove_padding", true, "")
	b.set(arr+"model.enable_gradient_checkpointing", n.Checkpointing, "native.gradient_checkpointing")
	if n.LoraRank > 0 {
		b.set(arr+"model.lora_rank", n.LoraRank, "native.lora_rank")
		b.since(rollout+"load_format", "safetensors", "native.lora_rank")
	}
}

func (b *builder) actor(r *ablation.Recipe, o *objective) {
	a, n := &r.Algorithm, &r.Native
	b.set(actor+"ppo_mini_batch_size", max(1, a.PromptsPerStep/max(1, a.Minibatches)), "algorithm.minibatches")
	b.microBatches(r, o)
	b.set(actor+"clip_ratio_low", o.ClipLow, "algorithm.clip_low")
	b.set(actor+"clip_ratio_high", o.ClipHigh, "algorithm.clip_high")
	b.set(actor+"clip_ratio_c", cmp.Or(o.ClipC, 3.0), "algorithm.clip_ratio_c")
	b.set(actor+"loss_agg_mode", o.Agg, "algorithm.loss_agg_mode")
	if o.LossScale > 0 {
		b.since(actor+"loss_scale_factor", o.LossScale, "algorithm.loss_scale_factor")
	}
	b.since(actor+"policy_loss.loss_mode", o.LossMode, "algorithm.kind")
	b.set(actor+"use_kl_loss", o.KLLoss > 0, "algorithm.use_kl_loss")
	if o.KLLoss > 0 {
		b.set(actor+"kl_loss_coef", o.KLLoss, "algorithm.kl_loss_coef")
		b.set(actor+"kl_loss_type", o.KLType, "algorithm.kl_loss_type")
	}
	b.set(actor+"entropy_coeff", a.EntropyCoeff, "algorithm.entropy_coeff")
	b.set(actor+"ppo_epochs", max(1, a.Epochs), "algorithm.ppo_epochs")
	if a.GradClip > 0 {
		b.set(actor+"grad_clip", a.GradClip, "algorithm.grad_clip")
	}
	b.set(actor+"optim.lr", a.LR, "algorithm.lr")
	b.set(actor+"optim."+b.p.Scheduler, "constant", "algorithm.lr")
	b.set(actor+"optim.lr_warmup_steps", n.WarmupSteps, "native.warmup_steps")
	b.set(actor+"optim.weight_decay", n.WeightDecay, "native.weight_decay")
	b.set(actor+"ulysses_sequence_parallel_size", max(1, n.SequenceParallel), "native.sequence_parallel")
	b.set(actor+"fsdp_config.param_offload", n.Offload == "all", "native.offload")
	b.set(actor+"fsdp_config.optimizer_offload", n.Offload == "all" || n.Offload == "optimizer", "native.offload")
	if o.reference() {
		b.set(refKey+"fsdp_config.param_offload", n.Offload == "all", "native.offload")
	}
	if n.Precision == "bf16" {
		b.since(actor+"fsdp_config.model_dtype", "bf16", "native.precision")
	}
	b.since(actor+"data_loader_seed", 42, "")
}

// microBatches sets how much a device works on at once, which changes memory
// and speed only.
func (b *builder) microBatches(r *ablation.Recipe, o *objective) {
	n := &r.Native
	b.set(actor+"use_dynamic_bsz", n.MicroBatch == 0, "native.micro_batch")
	if n.MicroBatch == 0 {
		sp := max(1, n.SequenceParallel)
		b.set(actor+"ppo_max_token_len_per_gpu", (promptLimit(r)+responseLimit(r)+sp-1)/sp, "")
		return
	}
	b.set(actor+"ppo_micro_batch_size_per_gpu", n.MicroBatch, "native.micro_batch")
	b.set(rollout+"log_prob_micro_batch_size_per_gpu", n.MicroBatch, "native.micro_batch")
	if o.reference() {
		b.set(refKey+"log_prob_micro_batch_size_per_gpu", n.MicroBatch, "native.micro_batch")
	}
}

func (b *builder) rollout(r *ablation.Recipe, o *objective, s *Setup) {
	a, n := &r.Algorithm, &r.Native
	b.set(rollout+"name", engine(n.Engine), "native.engine")
	b.set(rollout+"mode", b.p.SyncMode, "")
	b.set(rollout+"n", a.GroupSize, "algorithm.group_size")
	b.set(rollout+"temperature", a.Temperature, "algorithm.temperature")
	b.set(rollout+"top_p", cmp.Or(a.TopP, 1.0), "algorithm.top_p")
	b.set(rollout+"tensor_model_parallel_size", max(1, n.TensorParallel), "native.tensor_parallel")
	if n.EngineMemory > 0 {
		b.set(rollout+"gpu_memory_utilization", n.EngineMemory, "native.engine_memory")
	}
	b.set(rollout+"max_model_len", promptLimit(r)+responseLimit(r), "native.max_response_tokens")
	b.set(rollout+"enforce_eager", false, "")
	b.since(rollout+"calculate_log_probs", true, "")
	b.since(rollout+"seed", s.Seed%(1<<31), "seed")
	samples := r.Evaluation.Samples
	if r.Evaluation.Temperature == 0 {
		samples = 1
	}
	b.set(rollout+"val_kwargs.n", max(1, samples), "evaluation.samples")
	b.set(rollout+"val_kwargs.temperature", r.Evaluation.Temperature, "evaluation.temperature")
	b.set(rollout+"val_kwargs.do_sample", r.Evaluation.Temperature > 0, "evaluation.temperature")
	if b.p.Line == LineARPO {
		b.branches(r)
		return
	}
	b.agent(r, s)
}

// engine names the rollout engine.
func engine(name string) string {
	if name == "" || name == "auto" {
		return "vllm"
	}
	return name
}

func (b *builder) agent(r *ablation.Recipe, s *Setup) {
	turns := r.Environment.MaxTurns
	b.set(rollout+"multi_turn.enable", true, "environment.kind")
	b.set(rollout+"multi_turn.tool_config_path", s.Paths.Tools, "environment.kind")
	b.set(rollout+"multi_turn.max_assistant_turns", turns, "environment.max_turns")
	b.set(rollout+"multi_turn.max_user_turns", turns, "environment.max_turns")
	b.set(rollout+"multi_turn.max_parallel_calls", 1, "")
	b.set(rollout+"multi_turn.max_tool_response_length", toolResponse, "")
	b.set(rollout+"multi_turn.tool_response_truncate_side", "middle", "")
	b.set(rollout+"multi_turn.format", "hermes", "")
	b.set(rollout+"agent.num_workers", min(8, r.Algorithm.PromptsPerStep*r.Algorithm.GroupSize), "")
	if s.Paths.Loops != "" {
		b.set(rollout+"agent.agent_loop_config_path", s.Paths.Loops, "algorithm.overlong")
	}
	b.since(rollout+"agent.default_agent_loop", loopName(s.Paths.Loops != ""), "")
}

// toolResponse is the longest tool result in characters; verl's default of 256
// cuts the middle out of nearly every table.
const toolResponse = 30000

// branches are ARPO's settings of its tree of rollouts.
func (b *builder) branches(r *ablation.Recipe) {
	a := &r.Algorithm
	b.set(rollout+"initial_rollouts", cmp.Or(a.InitialRollouts, max(1, a.GroupSize/2)), "algorithm.initial_rollouts")
	b.set(rollout+"beam_size", cmp.Or(a.BeamSize, 2), "algorithm.beam_size")
	b.set(rollout+"branch_probability", cmp.Or(a.BranchProb, 0.5), "algorithm.branch_probability")
	b.set(rollout+"entropy_weight", cmp.Or(a.EntropyWeight, 0.2), "algorithm.entropy_weight")
	b.set(rollout+"tools.call_limit", r.Environment.MaxTurns, "environment.max_turns")
	b.set(rollout+"tools.tool_instances.travel.class_path", arpoModule+".AlidadeTool", "environment.kind")
	b.list = append(b.list, native.Setting{Key: rollout + "tools.tool_instances.travel.params", Value: "{}", From: "environment.kind"})
}

func (b *builder) reward(o *objective, r *ablation.Recipe, s *Setup) {
	if b.p.Reward {
		b.set("reward.custom_reward_function.path", s.Paths.Reward, "reward.kind")
		b.set("reward.custom_reward_function.name", "compute_score", "reward.kind")
		if o.Overlong != "shape" {
			b.set("reward.reward_manager.name", "naive", "algorithm.overlong")
			return
		}
		b.set("reward.reward_manager.source", "importlib", "algorithm.overlong")
		b.set("reward.reward_manager.name", managerClass, "algorithm.overlong")
		b.set("reward.reward_manager.module.path", s.Paths.Reward, "algorithm.overlong")
		b.overlong("reward.reward_kwargs.", o, r)
		return
	}
	b.set("custom_reward_function.path", s.Paths.Reward, "reward.kind")
	b.set("custom_reward_function.name", "compute_score", "reward.kind")
	if o.Overlong != "shape" {
		b.set("reward_model.reward_manager", "naive", "algorithm.overlong")
		return
	}
	b.set("reward_model.reward_manager", "dapo", "algorithm.overlong")
	if o.Filter && b.p.DAPORecipe {
		for key, value := range map[string]any{"enable": true, "len": o.Buffer, "penalty_factor": o.Penalty, "log": true} {
			b.set("reward_model.overlong_buffer."+key, value, "algorithm.overlong_buffer_len")
		}
		slices.SortStableFunc(b.list[len(b.list)-4:], func(x, y native.Setting) int { return strings.Compare(x.Key, y.Key) })
		return
	}
	b.overlong("reward_model.reward_kwargs.", o, r)
}

func (b *builder) overlong(prefix string, o *objective, r *ablation.Recipe) {
	b.set(prefix+"overlong_buffer_cfg.enable", true, "algorithm.overlong")
	b.set(prefix+"overlong_buffer_cfg.len", o.Buffer, "algorithm.overlong_buffer_len")
	b.set(prefix+"overlong_buffer_cfg.penalty_factor", o.Penalty, "algorithm.overlong_penalty_factor")
	b.set(prefix+"overlong_buffer_cfg.log", true, "")
	b.set(prefix+"max_resp_len", responseLimit(r), "native.max_response_tokens")
}

func (b *builder) trainer(r *ablation.Recipe, s *Setup) {
	b.set("trainer.total_training_steps", s.Steps, "budget.steps")
	b.set("trainer.total_epochs", epochs(s.Steps, s.Rows, r.Algorithm.PromptsPerStep), "budget.steps")
	b.set("trainer.project_name", "alidade", "")
	b.set("trainer.experiment_name", s.Run, "")
	loggers := []string{"console", "tensorboard"}
	if b.p.FileLogger {
		loggers[1] = "file"
	}
	b.set("trainer.logger", loggers, "")
	b.set("trainer.nnodes", max(1, r.Native.Nodes), "native.nodes")
	b.set("trainer.n_gpus_per_node", max(1, r.Trainer.Devices), "trainer.devices")
	b.set("trainer.rollout_data_dir", s.Paths.Rollouts, "")
	b.set("trainer.validation_data_dir", s.Paths.Validation, "")
	b.set("trainer.default_local_dir", s.Paths.Checkpoints, "")
	b.set("trainer.save_freq", orMinusOne(r.Budget.CheckpointEvery, s.Smoke), "budget.checkpoint_every")
	b.set("trainer.test_freq", orMinusOne(r.Evaluation.Every, s.Smoke), "evaluation.every")
	b.set("trainer.val_before_train", !s.Smoke && s.Resume == "", "")
	if r.Native.KeepCheckpoints > 0 {
		b.set("trainer.max_actor_ckpt_to_keep", r.Native.KeepCheckpoints, "native.keep_checkpoints")
	}
	if s.Resume == "" {
		b.set("trainer.resume_mode", "disable", "")
	} else {
		b.set("trainer.resume_mode", "resume_path", "")
		b.set("trainer.resume_from_path", s.Resume, "")
	}
	if b.p.V1 {
		b.set("trainer.use_v1", true, "")
		b.set("trainer.v1.trainer_mode", "sync", "")
	}
	if r.Native.RayAddress == "" {
		b.set(b.p.RayPrefix+"._temp_dir", s.Paths.RayTemp, "")
		b.set(b.p.RayPrefix+".address", "local", "")
	}
	b.set("hydra.run.dir", s.Paths.Output, "")
}

func orMinusOne(n int, off bool) int {
	if n <= 0 || off {
		return -1
	}
	return n
}

// epochs is how many passes the steps may need: one more than they do, since
// some versions end at once when they resume on the border of an epoch.
func epochs(steps int64, rows, batch int) int64 {
	perEpoch := int64(max(1, rows/max(1, batch)))
	return (steps+perEpoch-1)/perEpoch + 1
}
