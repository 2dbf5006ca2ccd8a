package verl

// The values of enums that changed over time, as registered in each release.

func lossModes(l Line) []string {
	switch {
	case l <= LineARPO:
		return []string{"vanilla"}
	case l == Line05:
		return []string{"vanilla", "gpg", "clip_cov", "kl_cov"}
	case l <= Line06:
		return []string{"vanilla", "gspo", "gpg", "clip_cov", "kl_cov", "geo_mean"}
	case l <= Line08:
		return []string{"vanilla", "gspo", "gpg", "clip_cov", "kl_cov", "geo_mean", "sapo", "cispo", "dppo_tv", "dppo_kl", "bypass_mode"}
	}
	return []string{"vanilla", "gspo", "gpg", "clip_cov", "kl_cov", "geo_mean", "sapo", "cispo", "dppo_tv", "dppo_kl", "dro", "bypass_mode"}
}

func toolFormats(l Line) []string {
	switch {
	case l <= LineOAR:
		return []string{"hermes"}
	case l == Line06:
		return []string{"hermes", "gpt-oss"}
	case l == Line07:
		return []string{"hermes", "gpt-oss", "qwen3_coder"}
	case l == Line08:
		return []string{"hermes", "gpt-oss", "qwen3_coder", "gemma4"}
	}
	return []string{"hermes", "gpt-oss", "qwen3_coder", "glm", "seed", "minimax", "kimi", "deepseek_v4", "gemma4"}
}

func algorithmKeys() []Key {
	return []Key{
		enum("algorithm.adv_estimator", []string{"gae", "grpo", "grpo_vectorized", "grpo_passk", "reinforce_plus_plus", "reinforce_plus_plus_baseline", "remax", "rloo", "rloo_vectorized", "opo", "gpg", "optimal_token_baseline", "tir_optimal_token_baseline", "gdpo"},
			always("gae"), "gae trains a critic beside the policy; GRPO and its kin have to be named"),
		boolean("algorithm.norm_adv_by_std_in_grpo", always("True"), ""),
		boolean("algorithm.use_kl_in_reward", always("False"), "not together with the KL loss"),
		enum("algorithm.kl_penalty", []string{"kl", "abs", "mse", "low_var_kl", "full"}, always("kl"), ""),
		enum("algorithm.kl_ctrl.type", []string{"fixed", "adaptive"}, always("fixed"), ""),
		number("algorithm.kl_ctrl.kl_coef", 0, inf, always("0.001"), ""),
		number("algorithm.gamma", 0, 1, always("1.0"), ""),
		number("algorithm.lam", 0, 1, always("1.0"), ""),
		boolean("algorithm.filter_groups.enable", from(Line09, "False"), "dynamic sampling in the trainer itself").since(Line09),
		text("algorithm.filter_groups.metric", from(Line09, "null"), "score, acc, or a value that the reward function returns").since(Line09).null(),
		whole("algorithm.filter_groups.max_num_gen_batches", 0, inf, from(Line09, "0"), "the V1 trainer ignores it").since(Line09),
		whole("algorithm.filter_groups.max_inflight_gen_batches", 1, inf, from(Line09, "1"), "").since(Line09),
		enum("algorithm.rollout_correction.rollout_is", []string{"token", "sequence"}, from(Line06, "null"), "needs the engine's log-probabilities").since(Line06).null(),
		number("algorithm.rollout_correction.rollout_is_threshold", 0, inf, from(Line06, "2.0"), "").since(Line06).above(),
		boolean("algorithm.rollout_correction.bypass_mode", from(Line06, "False"), "skips the pass that gives actor/entropy").since(Line06),
	}
}

func modelKeys() []Key {
	return []Key{
		boolean(arr+"hybrid_engine", always("True"), ""),
		whole(arr+"nccl_timeout", 0, inf, from(Line06, "600"), "seconds; a deadlock outlasts any value").since(Line06).above(),
		text(arr+"model.path", always("~/models/deepseek-llm-7b-chat"), "a placeholder until it is set"),
		boolean(arr+"model.use_remove_padding", from(LineARPO, "False", Line07, "True"), "memory and speed differ between versions by it"),
		boolean(arr+"model.enable_gradient_checkpointing", always("True"), ""),
		whole(arr+"model.lora_rank", 0, 1024, always("0"), "vLLM takes at most 512"),
		number(arr+"model.lora_alpha", 0, inf, always("16"), "").above(),
		text(arr+"model.target_modules", always("all-linear"), ""),
		boolean(arr+"model.trust_remote_code", always("False"), ""),
	}
}

func actorKeys() []Key {
	micro := "sequences a device and pass; needed without dynamic batches"
	return []Key{
		enum(actor+"strategy", []string{"fsdp", "fsdp2", "megatron", "veomni", "torchtitan", "automodel", "mindspeed"}, always("fsdp"), ""),
		whole(actor+"ppo_mini_batch_size", 0, inf, always("256"), "in prompts, at most data.train_batch_size").above(),
		whole(actor+"ppo_micro_batch_size", 0, inf, always("null"), "old name, over all devices").above().null(),
		whole(actor+"ppo_micro_batch_size_per_gpu", 0, inf, always("null"), micro).above().null(),
		boolean(actor+"use_dynamic_bsz", always("False"), ""),
		whole(actor+"ppo_max_token_len_per_gpu", 0, inf, always("16384"), "times the sequence parallel size at least prompt and response").above(),
		number(actor+"clip_ratio", 0, 1, always("0.2"), "without effect: low and high are read").above(),
		number(actor+"clip_ratio_low", 0, 1, always("0.2"), "").above(),
		number(actor+"clip_ratio_high", 0, inf, always("0.2"), "").above(),
		number(actor+"clip_ratio_c", 1, inf, always("3.0"), "dual clip").above(),
		enum(actor+"loss_agg_mode", []string{"token-mean", "seq-mean-token-sum", "seq-mean-token-mean", "seq-mean-token-sum-norm", "token-sum"}, always("token-mean"), "gspo takes seq-mean-token-mean whatever stands here"),
		whole(actor+"loss_scale_factor", 0, inf, from(Line07, "null"), "divisor of seq-mean-token-sum-norm").since(Line07).above().null(),
		number(actor+"entropy_coeff", 0, inf, always("0"), ""),
		boolean(actor+"calculate_entropy", from(Line07, "False"), "").since(Line07),
		boolean(actor+"use_kl_loss", always("False"), "keeps a reference model"),
		number(actor+"kl_loss_coef", 0, inf, always("0.001"), ""),
		enum(actor+"kl_loss_type", []string{"kl", "k1", "abs", "mse", "k2", "low_var_kl", "k3", "full", "kl+", "k1+", "abs+", "mse+", "k2+", "low_var_kl+", "k3+", "full+"}, always("low_var_kl"), ""),
		enum(actor+"policy_loss.loss_mode", nil, always("vanilla"), "").since(Line05),
		whole(actor+"ppo_epochs", 1, inf, always("1"), ""),
		boolean(actor+"shuffle", always("False"), ""),
		number(actor+"grad_clip", 0, inf, always("1.0"), "").above(),
		number(actor+"optim.lr", 0, 1, always("1e-06"), "").above(),
		whole(actor+"optim.lr_warmup_steps", 0, inf, always("-1"), "-1 takes the ratio").orMinusOne(),
		number(actor+"optim.lr_warmup_steps_ratio", 0, 1, always("0.0"), ""),
		number(actor+"optim.weight_decay", 0, inf, always("0.01"), ""),
		enum(actor+"optim.warmup_style", []string{"constant", "cosine"}, from(LineARPO, "constant", Line06, "null"), "the name until 0.5").null(),
		enum(actor+"optim.lr_scheduler_type", []string{"constant", "cosine"}, from(Line06, "constant"), "the name from 0.6 on").since(Line06),
		whole(actor+"ulysses_sequence_parallel_size", 1, inf, always("1"), "divides the devices"),
		boolean(actor+"fsdp_config.param_offload", always("False"), ""),
		boolean(actor+"fsdp_config.optimizer_offload", always("False"), ""),
		whole(actor+"fsdp_config.fsdp_size", 1, inf, always("-1"), "-1 = all devices").orMinusOne(),
		{Name: actor + "checkpoint.save_contents", Type: List, Defaults: always("[model,optimizer,extra]"), Since: Line05, Note: "model, optimizer, extra, hf_model"},
		boolean(actor+"checkpoint.async_save", from(Line06, "False"), "leaves no file that names the last checkpoint").since(Line06),
		whole(actor+"data_loader_seed", 0, inf, from(Line07, "42"), "").since(Line07),
		whole(refKey+"log_prob_micro_batch_size_per_gpu", 0, inf, always("null"), micro).above().null(),
		boolean(refKey+"fsdp_config.param_offload", always("False"), ""),
	}
}

func rolloutKeys() []Key {
	return []Key{
		enum(rollout+"name", []string{"vllm", "sglang", "hf", "trtllm"}, from(LineARPO, "vllm", Line06, "???"), "has to be set"),
		enum(rollout+"mode", []string{"sync", "async"}, from(LineARPO, "sync", Line07, "async"), "tools need async"),
		whole(rollout+"n", 1, inf, always("1"), "at least 2 for groups"),
		number(rollout+"temperature", 0, inf, always("1.0"), ""),
		number(rollout+"top_p", 0, 1, always("1"), "below 1 the ratios are biased").above(),
		whole(rollout+"top_k", 1, inf, always("-1"), "other than -1 the ratios are biased").orMinusOne(),
		whole(rollout+"tensor_model_parallel_size", 1, inf, always("2"), "divides the devices of a node"),
		number(rollout+"gpu_memory_utilization", 0, 1, always("0.5"), "").above(),
		whole(rollout+"max_model_len", 0, inf, always("null"), "at least prompt and response").above().null(),
		whole(rollout+"max_num_batched_tokens", 0, inf, always("8192"), "").above(),
		whole(rollout+"max_num_seqs", 0, inf, from(LineARPO, "1024", Line09, "256"), "throughput differs between versions by it").above(),
		boolean(rollout+"enforce_eager", from(LineARPO, "True", Line06, "False"), ""),
		boolean(rollout+"free_cache_engine", always("True"), ""),
		boolean(rollout+"calculate_log_probs", from(LineARPO, "False", Line09, "True"), "for the metrics of training against the engine").since(Line05),
		whole(rollout+"seed", 0, inf, from(Line09, "42"), "of sampling").since(Line09),
		boolean(rollout+"full_determinism", from(Line09, "False"), "").since(Line09),
		whole(rollout+"log_prob_micro_batch_size_per_gpu", 0, inf, always("null"), "sequences a device and pass; needed without dynamic batches").above().null(),
		whole(rollout+"val_kwargs.n", 1, inf, always("1"), ""),
		number(rollout+"val_kwargs.temperature", 0, inf, always("0"), ""),
		number(rollout+"val_kwargs.top_p", 0, 1, always("1.0"), "").above(),
		whole(rollout+"val_kwargs.top_k", 1, inf, always("-1"), "").orMinusOne(),
		boolean(rollout+"val_kwargs.do_sample", always("False"), ""),
		boolean(rollout+"multi_turn.enable", always("False"), ""),
		whole(rollout+"multi_turn.max_assistant_turns", 1, inf, always("null"), "null: the tokens alone limit").null().since(Line05),
		whole(rollout+"multi_turn.max_user_turns", 1, inf, always("null"), "").null().since(Line05),
		path(rollout+"multi_turn.tool_config_path", always("null"), "has to exist on all nodes"),
		path(rollout+"multi_turn.function_tool_path", from(Line08, "null"), "").since(Line08),
		whole(rollout+"multi_turn.max_parallel_calls", 1, inf, always("1"), "further calls of a turn are dropped").since(Line05),
		whole(rollout+"multi_turn.max_tool_response_length", 0, inf, always("256"), "characters, not tokens").above().since(Line05),
		enum(rollout+"multi_turn.tool_response_truncate_side", []string{"left", "right", "middle"}, always("middle"), "left and right changed their meaning in 0.8").since(Line05),
		enum(rollout+"multi_turn.format", nil, always("hermes"), "has to match the chat template").since(Line05),
		enum(rollout+"multi_turn.tokenization_sanity_check_mode", []string{"strict", "ignore_strippable", "disable"}, always("strict"), "").since(Line05),
		whole(rollout+"agent.num_workers", 1, inf, always("8"), "at most the rows of a step").since(Line05),
		text(rollout+"agent.default_agent_loop", from(Line06, "single_turn_agent"), "tool_agent for tools").since(Line06),
		path(rollout+"agent.agent_loop_config_path", always("null"), "").since(Line05),
		enum(rollout+"trace.backend", []string{"weave", "mlflow", "trackio"}, always("null"), "").null().since(Line05),
		boolean(rollout+"trace.token2text", always("False"), "").since(Line05),
		whole(rollout+"initial_rollouts", 1, inf, always("1"), "ARPO: rollouts of a group that start from the prompt").until(LineARPO),
		whole(rollout+"beam_size", 1, inf, always("1"), "ARPO: ways out of a branching point").until(LineARPO),
		number(rollout+"branch_probability", 0, 1, always("0.5"), "ARPO").until(LineARPO),
		number(rollout+"entropy_weight", 0, inf, always("0.5"), "ARPO").until(LineARPO),
		whole(rollout+"tools.call_limit", 1, inf, always("3"), "ARPO: tool calls of an episode").until(LineARPO),
		whole(rollout+"tools.max_workers", 1, inf, always("64"), "ARPO").until(LineARPO),
		number(rollout+"tools.timeout", 0, inf, always("120"), "ARPO: seconds").above().until(LineARPO),
		whole(rollout+"tools.retry_count", 0, inf, always("3"), "ARPO").until(LineARPO),
		boolean(rollout+"tools.fail_on_error", always("False"), "ARPO").until(LineARPO),
	}
}

func dataKeys() []Key {
	return []Key{
		{Name: "data.train_files", Type: Path, Defaults: always("~/data/rlhf/gsm8k/train.parquet"), Note: "a placeholder until it is set"},
		{Name: "data.val_files", Type: Path, Defaults: always("~/data/rlhf/gsm8k/test.parquet"), Note: "a placeholder until it is set"},
		whole("data.train_max_samples", 1, inf, from(Line06, "-1"), "-1 = all").since(Line06).orMinusOne(),
		whole("data.val_max_samples", 1, inf, from(Line06, "-1"), "-1 = all").since(Line06).orMinusOne(),
		text("data.prompt_key", always("prompt"), ""),
		text("data.reward_fn_key", always("data_source"), ""),
		whole("data.max_prompt_length", 0, inf, always("512"), "tokens").above(),
		whole("data.max_response_length", 0, inf, always("512"), "tokens of the whole dialogue after the first prompt").above(),
		whole("data.train_batch_size", 0, inf, always("1024"), "prompts a step, at most the rows of the file").above(),
		whole("data.gen_batch_size", 0, inf, from(Line09, "null"), "").since(Line09).above().null(),
		whole("data.val_batch_size", 0, inf, always("null"), "deprecated").above().null(),
		boolean("data.return_raw_chat", from(LineARPO, "False", Line07, "True"), "agents need it"),
		boolean("data.shuffle", always("True"), ""),
		whole("data.seed", 0, inf, from(Line06, "null"), "of the data's order").since(Line06).null(),
		boolean("data.filter_overlong_prompts", always("False"), ""),
		enum("data.truncation", []string{"error", "left", "right", "middle"}, always("error"), ""),
		path("data.custom_cls.path", always("null"), ""),
		text("data.custom_cls.name", always("null"), "").null(),
	}
}

func rewardKeys() []Key {
	return []Key{
		enum("reward_model.reward_manager", []string{"naive", "dapo", "prime", "batch"}, from(LineARPO, "naive", Line07, "null"), "dead from 0.9 on").null(),
		path("custom_reward_function.path", always("null"), "dead from 0.9 on"),
		text("custom_reward_function.name", from(LineARPO, "compute_score", Line07, "null"), "dead from 0.9 on").null(),
		text("reward.reward_manager.name", from(Line07, "naive"), "naive, dapo, gdpo, rate_limited, remote, or a class with source importlib").since(Line07),
		enum("reward.reward_manager.source", []string{"register", "importlib"}, from(Line07, "register"), "").since(Line07),
		path("reward.reward_manager.module.path", from(Line07, "null"), "").since(Line07),
		path("reward.custom_reward_function.path", from(Line07, "null"), "").since(Line07),
		text("reward.custom_reward_function.name", from(Line07, "compute_score"), "").since(Line07),
		whole("reward.num_workers", 1, inf, from(Line07, "8"), "").since(Line07),
	}
}

func trainerKeys() []Key {
	return []Key{
		whole("trainer.total_epochs", 1, inf, always("30"), ""),
		whole("trainer.total_training_steps", 1, inf, always("null"), "null: epochs times the batches of the file").null(),
		text("trainer.project_name", always("verl_examples"), ""),
		text("trainer.experiment_name", always("gsm8k"), ""),
		{Name: "trainer.logger", Type: List, Defaults: always("[console,wandb]")},
		whole("trainer.log_val_generations", 0, inf, always("0"), ""),
		path("trainer.rollout_data_dir", always("null"), ""),
		path("trainer.validation_data_dir", always("null"), ""),
		whole("trainer.nnodes", 1, inf, always("1"), ""),
		whole("trainer.n_gpus_per_node", 1, inf, always("8"), ""),
		whole("trainer.save_freq", 1, inf, always("-1"), "-1 = never").orMinusOne(),
		whole("trainer.test_freq", 1, inf, always("-1"), "-1 = never").orMinusOne(),
		boolean("trainer.val_before_train", always("True"), ""),
		boolean("trainer.val_only", always("False"), ""),
		enum("trainer.resume_mode", []string{"auto", "disable", "resume_path"}, always("auto"), ""),
		path("trainer.resume_from_path", always("null"), "contains global_step_"),
		{Name: "trainer.default_local_dir", Type: Path, Defaults: always("checkpoints/${trainer.project_name}/${trainer.experiment_name}")},
		whole("trainer.max_actor_ckpt_to_keep", 1, inf, always("null"), "null = all").null(),
		boolean("trainer.del_local_ckpt_after_load", always("False"), ""),
		whole("trainer.ray_wait_register_center_timeout", 0, inf, always("300"), "seconds").above(),
		boolean("trainer.balance_batch", always("True"), ""),
		enum("trainer.device", []string{"cuda", "npu", "cpu"}, always("cuda"), "").since(Line05),
		boolean("trainer.use_v1", from(Line09, "True"), "").since(Line09),
		enum("trainer.v1.trainer_mode", []string{"sync", "colocate_async", "separate_async"}, from(Line09, "sync"), "the others change the distribution of the data").since(Line09),
		whole("trainer.v1.separate_async.parameter_sync_step", 1, inf, from(Line09, "4"), "").since(Line09),
		whole("ray_kwargs.ray_init.num_cpus", 1, inf, from(Line06, "null"), "set it in containers and under Slurm").since(Line06).null(),
		whole("ray_init.num_cpus", 1, inf, always("null"), "").until(LineOAR).null(),
	}
}
