package rllm

import "strings"

// product are rLLM's names that the product knows under others. Roles and
// data sets inside a name are left out of it: ours has one of each.
var product = map[string]string{
	"reward/*/max":                              "reward/max",
	"reward/*/min":                              "reward/min",
	"val/*/pass@1":                              "eval/pass@1",
	"reward/*/mean":                             "reward/mean",
	"reward/*/std":                              "reward/std",
	"advantage/*/fraction_zero":                 "group/zero_advantage",
	"batch/*/fractions/effective":               "group/effective",
	"batch/*/fractions/too_easy":                "group/too_easy",
	"batch/*/fractions/too_hard":                "group/too_hard",
	"actor/entropy":                             "policy/entropy",
	"actor/grad_norm":                           "policy/grad_norm",
	"actor/pg_loss":                             "policy/loss",
	"actor/lr":                                  "policy/lr",
	"actor/ppo_kl":                              "policy/kl",
	"actor/kl_loss":                             "policy/kl_loss",
	"actor/pg_clipfrac":                         "policy/clip_high",
	"actor/pg_clipfrac_lower":                   "policy/clip_dual",
	"response_length/mean":                      "rollout/response_tokens",
	"response_length/clip_ratio":                "rollout/length_clipped",
	"time/step":                                 "time/step_s",
	"timing_s/step":                             "time/step_s",
	"perf/throughput":                           "speed/tokens_per_s_gpu",
	"training/rollout_actor_probs_pearson_corr": "policy/engine_pearson",
	"batch/termination_reason/error":            "rollout/invalid",
	"batch/termination_reason/timeout":          "rollout/timeout",
}

// Name implements [native.Naming]. Names with a role or a data set in the
// middle ("reward/travel/mean") are looked up without it.
func (Adapter) Name(name string) (string, bool) {
	if mapped, ok := product[name]; ok {
		return mapped, true
	}
	head, rest, ok := strings.Cut(name, "/")
	if !ok {
		return "", false
	}
	_, tail, ok := strings.Cut(rest, "/")
	if !ok {
		return "", false
	}
	mapped, ok := product[head+"/*/"+tail]
	return mapped, ok
}
