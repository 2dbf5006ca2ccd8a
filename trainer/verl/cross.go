package verl

import (
	"fmt"
	"slices"
	"strings"

	"alidade/trainer/native"
)

// A crossRule ties several keys together.
type crossRule func(*lookup) (native.Verdict, bool)

func refuse(code, key, value, text, fix string) (native.Verdict, bool) {
	return native.Verdict{Level: native.Refuse, Code: code, Key: key, Value: value, Text: text, Fix: fix}, true
}

func warn(code, key, value, text, fix string) (native.Verdict, bool) {
	return native.Verdict{Level: native.Warn, Code: code, Key: key, Value: value, Text: text, Fix: fix}, true
}

func fine() (native.Verdict, bool) { return native.Verdict{}, false }

// crossRules in the order in which they are reported: first those by which
// the trainer would fail, then those by which it would train something else.
func crossRules() []crossRule {
	return []crossRule{
		modelSet, batchByDevices, miniBatch, miniByDevices, microDivides, microMissing, microTwice, tokenCap, modelLength,
		sampledValidation, filterMetric, syncStep, groupSize, tensorParallel, sequenceParallel, loraLimit, rowsEnough, agentWorkers,
		estimator, bothKL, idleKL, toolsOff, toolResponseShort, overlongManager, overlongLength, sequenceClip, sequenceLoss,
		pointlessSamples, biasedSampling, highRate, neverSaved, resumeDevices, responseBudget, secondRollout, resumePath, knownLoggers,
	}
}

func modelSet(l *lookup) (native.Verdict, bool) {
	key := arr + "model.path"
	if v := l.text(key); v == "" || v == "~/models/deepseek-llm-7b-chat" {
		return refuse("model", key, v, "the model is not set", "native.model: a Hugging Face name or a folder")
	}
	return fine()
}

// Rule 1: without dynamic batches the step's rollouts divide by the devices.
func batchByDevices(l *lookup) (native.Verdict, bool) {
	rollouts, n := l.whole("data.train_batch_size")*l.whole(rollout+"n"), l.devices()
	if l.on(actor+"use_dynamic_bsz") || rollouts%n == 0 {
		return fine()
	}
	return refuse("batch-devices", "data.train_batch_size", l.text("data.train_batch_size"),
		fmt.Sprintf("%d prompts × %d rollouts do not divide by %d devices", l.whole("data.train_batch_size"), l.whole(rollout+"n"), n),
		"algorithm.prompts_per_step × algorithm.group_size a multiple of the devices, or native.micro_batch: 0")
}

// Rule 2, first part.
func miniBatch(l *lookup) (native.Verdict, bool) {
	batch, mini := l.whole("data.train_batch_size"), l.whole(actor+"ppo_mini_batch_size")
	if mini > batch {
		return refuse("mini-batch", actor+"ppo_mini_batch_size", fmt.Sprint(mini), fmt.Sprintf("the mini-batch has more prompts than the step's %d", batch), "at least one update a step: algorithm.minibatches from 1 to algorithm.prompts_per_step")
	}
	if mini > 0 && batch%mini != 0 {
		return refuse("mini-batch", actor+"ppo_mini_batch_size", fmt.Sprint(mini), fmt.Sprintf("%d prompts a step do not divide into mini-batches of %d", batch, mini), "algorithm.minibatches a divisor of algorithm.prompts_per_step")
	}
	return fine()
}

// dataParallel is the number of model copies in training.
func (l *lookup) dataParallel() int {
	return max(1, l.devices()/max(1, l.whole(actor+"ulysses_sequence_parallel_size")))
}

// Rule 2, second part.
func miniByDevices(l *lookup) (native.Verdict, bool) {
	rollouts, dp := l.whole(actor+"ppo_mini_batch_size")*l.whole(rollout+"n"), l.dataParallel()
	if rollouts%dp == 0 {
		return fine()
	}
	return refuse("mini-batch-devices", actor+"ppo_mini_batch_size", l.text(actor+"ppo_mini_batch_size"),
		fmt.Sprintf("a mini-batch of %d rollouts does not divide by %d model copies", rollouts, dp), "fewer algorithm.minibatches, or another group size or number of devices")
}

func microDivides(l *lookup) (native.Verdict, bool) {
	micro := l.whole(actor + "ppo_micro_batch_size_per_gpu")
	share := l.whole(actor+"ppo_mini_batch_size") * l.whole(rollout+"n") / l.dataParallel()
	if l.on(actor+"use_dynamic_bsz") || micro <= 0 || share%micro == 0 {
		return fine()
	}
	return refuse("micro-batch", actor+"ppo_micro_batch_size_per_gpu", fmt.Sprint(micro),
		fmt.Sprintf("a device's share of a mini-batch, %d rollouts, does not divide into micro-batches of %d", share, micro), "native.micro_batch a divisor of it, or 0")
}

// Rule 3, first part.
func microMissing(l *lookup) (native.Verdict, bool) {
	if l.on(actor + "use_dynamic_bsz") {
		return fine()
	}
	keys := []string{actor + "ppo_micro_batch_size_per_gpu", rollout + "log_prob_micro_batch_size_per_gpu"}
	if l.on(actor+"use_kl_loss") || l.on("algorithm.use_kl_in_reward") {
		keys = append(keys, refKey+"log_prob_micro_batch_size_per_gpu")
	}
	for _, k := range keys {
		if l.whole(k) <= 0 && l.whole(strings.TrimSuffix(k, "_per_gpu")) <= 0 {
			return refuse("micro-batch-missing", k, l.text(k), k+" is not set, and batches are not dynamic", "native.micro_batch, or 0 for dynamic batches")
		}
	}
	return fine()
}

func microTwice(l *lookup) (native.Verdict, bool) {
	old, now := actor+"ppo_micro_batch_size", actor+"ppo_micro_batch_size_per_gpu"
	if l.whole(old) > 0 && l.whole(now) > 0 {
		return refuse("micro-batch-twice", old, l.text(old), "both the old and the new name of the micro-batch are set", "leave out "+old)
	}
	return fine()
}

// Rule 3, second part.
func tokenCap(l *lookup) (native.Verdict, bool) {
	if !l.on(actor + "use_dynamic_bsz") {
		return fine()
	}
	key, sp := actor+"ppo_max_token_len_per_gpu", max(1, l.whole(actor+"ulysses_sequence_parallel_size"))
	if have := l.whole(key) * sp; have < l.sequence() {
		return refuse("token-cap", key, l.text(key), fmt.Sprintf("a device takes %d tokens at once, a full sequence has %d", have, l.sequence()),
			fmt.Sprintf("at least %d", (l.sequence()+sp-1)/sp))
	}
	return fine()
}

func modelLength(l *lookup) (native.Verdict, bool) {
	key := rollout + "max_model_len"
	if n := l.whole(key); n > 0 && n < l.sequence() {
		return refuse("model-length", key, l.text(key), fmt.Sprintf("prompt and response have up to %d tokens", l.sequence()), fmt.Sprintf("at least %d, or null", l.sequence()))
	}
	return fine()
}

// Rule 4, the part that is no enum or range.
func sampledValidation(l *lookup) (native.Verdict, bool) {
	if t, _ := l.number(rollout + "val_kwargs.temperature"); l.on(rollout+"val_kwargs.do_sample") && t <= 0 {
		return refuse("val-temperature", rollout+"val_kwargs.temperature", l.text(rollout+"val_kwargs.temperature"), "sampled validation needs a temperature above 0", "evaluation.temperature above 0")
	}
	return fine()
}

// Rule 5.
func filterMetric(l *lookup) (native.Verdict, bool) {
	key := "algorithm.filter_groups.metric"
	if m := l.text(key); l.on("algorithm.filter_groups.enable") && (m == "" || m == "null") {
		return refuse("filter-metric", key, m, "dynamic sampling needs a metric", "algorithm.filter_groups_metric: score or acc")
	}
	return fine()
}

func syncStep(l *lookup) (native.Verdict, bool) {
	if l.text("trainer.v1.trainer_mode") != "separate_async" {
		return fine()
	}
	key := "trainer.v1.separate_async.parameter_sync_step"
	if n := max(1, l.whole(key)); l.whole("data.train_batch_size")%n != 0 {
		return refuse("sync-step", key, l.text(key), fmt.Sprintf("%d prompts a step do not divide by it", l.whole("data.train_batch_size")), "a divisor of algorithm.prompts_per_step")
	}
	return fine()
}

// Rule 6, first part.
func groupSize(l *lookup) (native.Verdict, bool) {
	est := l.text("algorithm.adv_estimator")
	if est == "gae" || est == "remax" || est == "reinforce_plus_plus" || l.whole(rollout+"n") >= 2 {
		return fine()
	}
	return refuse("group-size", rollout+"n", l.text(rollout+"n"), est+" compares the rollouts of a group; a group of one trains on the raw score", "algorithm.group_size of at least 2")
}

// Rule 6, second part.
func tensorParallel(l *lookup) (native.Verdict, bool) {
	key := rollout + "tensor_model_parallel_size"
	if tp, n := l.whole(key), max(1, l.whole("trainer.n_gpus_per_node")); tp > 0 && n%tp != 0 {
		return refuse("tensor-parallel", key, l.text(key), fmt.Sprintf("%d devices a node do not divide by it; the default is 2", n), "native.tensor_parallel a divisor of trainer.devices")
	}
	return fine()
}

func sequenceParallel(l *lookup) (native.Verdict, bool) {
	key := actor + "ulysses_sequence_parallel_size"
	if sp := l.whole(key); sp > 0 && l.devices()%sp != 0 {
		return refuse("sequence-parallel", key, l.text(key), fmt.Sprintf("%d devices do not divide by it", l.devices()), "native.sequence_parallel a divisor of the devices")
	}
	return fine()
}

func loraLimit(l *lookup) (native.Verdict, bool) {
	key := arr + "model.lora_rank"
	if l.text(rollout+"name") == "vllm" && l.whole(key) > 512 {
		return refuse("lora-rank", key, l.text(key), "vLLM takes ranks up to 512", "native.lora_rank up to 512")
	}
	return fine()
}

func rowsEnough(l *lookup) (native.Verdict, bool) {
	if batch := l.whole("data.train_batch_size"); l.Rows > 0 && batch > l.Rows {
		return refuse("rows", "data.train_batch_size", fmt.Sprint(batch), fmt.Sprintf("there are only %d prompts: the trainer would find its data empty", l.Rows), "algorithm.prompts_per_step up to data.prompts")
	}
	return fine()
}

func agentWorkers(l *lookup) (native.Verdict, bool) {
	key := rollout + "agent.num_workers"
	if rows := l.whole("data.train_batch_size") * l.whole(rollout+"n"); l.Tools && l.Profile.Line >= Line05 && l.whole(key) > rows {
		return refuse("agent-workers", key, l.text(key), fmt.Sprintf("there are only %d rollouts a step for them", rows), fmt.Sprintf("at most %d", rows))
	}
	return fine()
}

func secondRollout(l *lookup) (native.Verdict, bool) {
	if mode := l.text("trainer.v1.trainer_mode"); mode == "colocate_async" || mode == "separate_async" {
		return warn("async-mode", "trainer.v1.trainer_mode", mode, "rollouts come from older policies: arms of this mode do not compare with others", "sync for an ablation")
	}
	return fine()
}

func resumePath(l *lookup) (native.Verdict, bool) {
	key := "trainer.resume_from_path"
	if v := l.text(key); l.text("trainer.resume_mode") == "resume_path" && !strings.Contains(v, "global_step_") {
		return refuse("resume-path", key, v, "the folder of a checkpoint is named global_step_N", "a folder with global_step_ in its path")
	}
	return fine()
}

// groupEstimators compare rollouts of one prompt.
var groupEstimators = []string{"grpo", "grpo_vectorized", "grpo_passk", "rloo", "rloo_vectorized", "reinforce_plus_plus_baseline", "opo", "gpg", "gdpo", "optimal_token_baseline", "tir_optimal_token_baseline"}

// Rule 9: the default trains a critic.
func estimator(l *lookup) (native.Verdict, bool) {
	key := "algorithm.adv_estimator"
	if v := l.text(key); !slices.Contains(groupEstimators, v) && v != "reinforce_plus_plus" && v != "remax" {
		return refuse("estimator", key, v, "it trains a critic beside the policy, twice the memory and another algorithm than the recipe's", "algorithm.adv_estimator=grpo")
	}
	return fine()
}
