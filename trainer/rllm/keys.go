package rllm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"alidade/ablation"
	"alidade/trainer/native"
	"alidade/trainer/verl"
)

const (
	arr     = "actor_rollout_ref."
	rollout = arr + "rollout."
)

// renamed are verl's keys that rLLM has under a name of its own. rLLM keeps
// both in step and lets its own win, so that verl's are not written.
var renamed = map[string]string{
	"algorithm.adv_estimator":             "rllm.algorithm.adv_estimator",
	"algorithm.norm_adv_by_std_in_grpo":   "rllm.algorithm.norm_adv_by_std_in_grpo",
	arr + "actor.clip_ratio_low":          "rllm.algorithm.eps_clip",
	arr + "actor.clip_ratio_high":         "rllm.algorithm.eps_clip_high",
	arr + "actor.loss_agg_mode":           "rllm.algorithm.loss_agg_mode",
	arr + "actor.kl_loss_coef":            "rllm.algorithm.kl_beta",
	arr + "actor.optim.lr_warmup_steps":   "rllm.algorithm.warmup_steps",
	arr + "actor.optim.lr_scheduler_type": "rllm.algorithm.lr_schedule",
	"data.train_batch_size":               "rllm.data.train_batch_size",
	"data.max_prompt_length":              "rllm.data.max_prompt_length",
	"data.max_response_length":            "rllm.data.max_response_length",
	"data.seed":                           "rllm.data.seed",
	rollout + "n":                         "rllm.rollout.n",
	rollout + "temperature":               "rllm.rollout.train.temperature",
	rollout + "top_p":                     "rllm.rollout.train.top_p",
	rollout + "val_kwargs.n":              "rllm.rollout.n_val",
	rollout + "val_kwargs.temperature":    "rllm.rollout.val.temperature",
	"trainer.total_epochs":                "rllm.trainer.total_epochs",
	"trainer.total_training_steps":        "rllm.trainer.total_batches",
	"trainer.project_name":                "rllm.trainer.project_name",
	"trainer.experiment_name":             "rllm.trainer.experiment_name",
	"trainer.logger":                      "rllm.trainer.logger",
	"trainer.save_freq":                   "rllm.trainer.save_freq",
	"trainer.test_freq":                   "rllm.trainer.test_freq",
	"trainer.val_before_train":            "rllm.trainer.val_before_train",
	"algorithm.filter_groups.enable":      "rllm.rejection_sample.enable",
}

// dropped are verl's keys, or the starts of some, that say what rLLM does in
// another way: the flow plays the episode and pays the reward, the data are
// objects, dumps come from the logger and the episode files.
var dropped = []string{
	"data.", "reward.", "reward_model.", "custom_reward_function.", "algorithm.use_kl_in_reward", "algorithm.kl_ctrl.", "algorithm.filter_groups.",
	rollout + "multi_turn.", rollout + "agent.", rollout + "val_kwargs.", "trainer.rollout_data_dir", "trainer.validation_data_dir",
	arr + "actor.use_kl_loss", arr + "actor.kl_loss_type", "trainer.use_v1", "trainer.v1.",
}

// isDropped tells whether one of verl's keys has no meaning in rLLM.
func isDropped(key string) bool {
	if _, ok := renamed[key]; ok {
		return false
	}
	return slices.ContainsFunc(dropped, func(p string) bool { return key == p || strings.HasSuffix(p, ".") && strings.HasPrefix(key, p) })
}

// estimators are rLLM's; the rest of verl's it does not have.
var estimators = []string{"grpo", "reinforce", "reinforce_plus_plus_baseline", "rloo"}

// Setup is what a run's settings depend on beside its recipe.
type Setup struct {
	verl.Setup
	Episodes string // folder of episode files
	Port     int    // of rLLM's gateway: its default is the same for all runs of a machine
}

// Settings says what a recipe becomes in rLLM 0.3 with the verl backend, in
// order: verl's settings under rLLM's names where it has one, then rLLM's own.
func Settings(r ablation.Recipe, s Setup) []native.Setting {
	own := r.Native.Overrides
	r.Native.Overrides = nil
	var list []native.Setting
	for _, x := range verl.Settings(r, s.Setup) {
		if name, ok := renamed[x.Key]; ok {
			x.Key = name
		} else if isDropped(x.Key) {
			continue
		}
		switch x.Key {
		case "rllm.trainer.logger":
			x.Value = "['console','ui','file']"
		case arr + "actor.policy_loss.loss_mode":
			if x.Value == "vanilla" {
				continue // rLLM's default too; its own name takes other values
			}
			x.Key = "rllm.algorithm.loss_fn"
		case "rllm.rollout.val.temperature":
			if r.Evaluation.Temperature == 0 {
				x.Value = "0"
			}
		}
		list = append(list, x)
	}
	b := &list
	set := func(key string, value any, from string) {
		*b = append(*b, native.Setting{Key: key, Value: fmt.Sprint(value), From: from})
	}
	if r.Algorithm.FilterGroups || r.Algorithm.Kind == "dapo" {
		set("rllm.rejection_sample.filter_uniform_groups", "True", "algorithm.filter_groups")
	}
	set("rllm.compact_filtering.enable", "True", "algorithm.overlong")
	set("rllm.compact_filtering.mask_max_response_length_exceeded", pyBool(overlongOf(&r, 0).How == "mask"), "algorithm.overlong")
	set("rllm.compact_filtering.mask_max_turns_exceeded", "False", "")
	set("rllm.compact_filtering.mask_timeout", "True", "")
	set("rllm.compact_filtering.mask_error", "True", "") // a broken episode is no reward of 0
	set("rllm.workflow.raise_on_error", "False", "environment.tool_failure_rate")
	set("rllm.workflow.retry_limit", 3, "")
	set("rllm.workflow.n_parallel_tasks", min(512, max(1, r.Algorithm.GroupSize*r.Algorithm.PromptsPerStep)), "")
	set("rllm.gateway.host", "127.0.0.1", "")
	set("rllm.gateway.port", s.Port, "")
	set("rllm.episode_logging.log_episodes", "True", "")
	set("rllm.episode_logging.episode_log_dir", quoteValue(s.Episodes), "")
	set("model.name", quoteValue(s.Model), "native.model")
	if r.Environment.Form == "tools" {
		set(rollout+"engine_kwargs.vllm.enable_auto_tool_choice", "true", "environment.form")
		set(rollout+"engine_kwargs.vllm.tool_call_parser", "hermes", "environment.form")
	}
	return withOverrides(list, own)
}

// withOverrides puts the user's own settings last; a default of ours gives
// way, and what the recipe sets elsewhere stays.
func withOverrides(list []native.Setting, own map[string]string) []native.Setting {
	for _, k := range names(own) {
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

// overrides writes settings for Hydra. rLLM's own configuration has its keys;
// for verl's it depends on the version.
func overrides(p verl.Profile, list []native.Setting) []string {
	args := []string{"rllm/backend=verl"}
	for _, s := range list {
		if strings.HasPrefix(s.Key, "rllm.") {
			args = append(args, s.Key+"="+s.Value)
			continue
		}
		args = append(args, p.Overrides([]native.Setting{s}, "")...)
	}
	return args
}

// valueOf finds a setting.
func valueOf(list []native.Setting, key string) string {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].Key == key {
			return list[i].Value
		}
	}
	return ""
}

// portOf spreads the gateways of a machine's runs over ports below those that
// the kernel hands out.
func portOf(run ablation.RunID, attempt int) int {
	return 21000 + int((uint64(run)*17+uint64(attempt))%10000)
}

func pyBool(b bool) string {
	if b {
		return "True"
	}
	return "False"
}

// quoteValue quotes a path or a name unless Hydra reads it as it stands.
func quoteValue(s string) string {
	plain := strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:@", r))
	}) < 0
	if plain && s != "" {
		return s
	}
	return "'" + strings.ReplaceAll(strings.ReplaceAll(s, `\`, `\\`), "'", `\'`) + "'"
}

func whole(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}
