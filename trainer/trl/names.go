package trl

// names maps TRL's metrics to the product's.
var names = map[string]string{
	"reward":               "reward/mean",
	"reward_std":           "reward/std",
	"frac_reward_zero_std": "group/zero_variance",
	"loss":                 "policy/loss",
	"policy_loss":          "policy/policy_loss",
	"grad_norm":            "policy/grad_norm",
	"learning_rate":        "policy/lr",
	"entropy":              "policy/entropy",
	"kl":                   "policy/kl",
	"entropy_coef":         "policy/entropy_coef",

	"clip_ratio/low_mean":    "policy/clip_low",
	"clip_ratio/high_mean":   "policy/clip_high",
	"clip_ratio/region_mean": "policy/clip",

	"completions/mean_length":   "rollout/generated",
	"completions/min_length":    "rollout/generated_min",
	"completions/max_length":    "rollout/generated_max",
	"completions/clipped_ratio": "rollout/clipped",
	"environment/overlong":      "rollout/overlong",
	"environment/invalid":       "rollout/invalid",
	"tools/call_frequency":      "rollout/tool_calls",

	"step_time":           "time/update_s",
	"step_time_wall":      "time/step_s",
	"tokens_per_second":   "speed/tokens_per_s",
	"num_tokens":          "speed/tokens",
	"memory_peak_gib":     "memory/peak_gib",
	"memory_reserved_gib": "memory/reserved_gib",

	"mean_token_accuracy": "policy/token_accuracy",
	"epoch":               "policy/epoch",

	"sampling/sampling_logp_difference/mean":  "mismatch/logp_difference",
	"sampling/sampling_logp_difference/max":   "mismatch/logp_difference_max",
	"sampling/importance_sampling_ratio/mean": "mismatch/ratio",
	"sampling/importance_sampling_ratio/min":  "mismatch/ratio_min",
	"sampling/importance_sampling_ratio/max":  "mismatch/ratio_max",
	"rewards/TravelEnvironment/mean":          "reward/environment",
	"rewards/TravelEnvironment/std":           "reward/environment_std",
	"completions/mean_terminated_length":      "rollout/terminated",
	"completions/min_terminated_length":       "rollout/terminated_min",
	"completions/max_terminated_length":       "rollout/terminated_max",
	"tools/failure_frequency":                 "rollout/lost",
	"clip_ratio/low_min":                      "policy/clip_low_min",
	"clip_ratio/high_max":                     "policy/clip_high_max",
}

// Name implements [native.Naming].
func (Adapter) Name(native string) (string, bool) {
	name, ok := names[native]
	return name, ok
}
