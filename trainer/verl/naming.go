package verl

import (
	"regexp"
	"strings"
)

// A Metric is the product's name of a verl metric, with what a reader of the
// curve should know: its unit, and what does not compare.
type Metric struct {
	Native, Name string
	Unit, Note   string
}

// Metrics lists what verl, and the forks, are known to log.
func Metrics() []Metric {
	return []Metric{
		{"critic/score/mean", "reward/mean", "", "the task's reward, before any KL in the reward"},
		{"critic/score/max", "reward/max", "", ""},
		{"critic/score/min", "reward/min", "", ""},
		{"critic/rewards/mean", "reward/after_kl", "", "after the KL in the reward"},
		{"critic/advantages/mean", "advantage/mean", "", "over tokens"},
		{"critic/advantages/max", "advantage/max", "", ""},
		{"critic/advantages/min", "advantage/min", "", ""},
		{"actor/entropy", "policy/entropy", "nats", "of the old policy, aggregated as the loss is: runs with another loss_agg_mode do not compare"},
		{"actor/pg_loss", "policy/loss", "", "token-mean is over a micro-batch until 0.6.1 and over the whole batch from 0.7 on: losses do not compare across that line"},
		{"actor/loss", "policy/loss_total", "", ""},
		{"actor/pg_clipfrac", "policy/clip_high", "share", "of tokens clipped above or below"},
		{"actor/pg_clipfrac_lower", "policy/clip_dual", "share", "of tokens under the dual clip"},
		{"actor/ppo_kl", "policy/kl", "nats", "new policy against the old one, approximate"},
		{"actor/kl_loss", "policy/kl_loss", "nats", "against the reference"},
		{"actor/reward_kl_penalty", "policy/kl_reward", "nats", ""},
		{"actor/grad_norm", "policy/grad_norm", "", "before clipping; not finite: the update was left out"},
		{"actor/lr", "policy/lr", "", ""},
		{"response_length/mean", "rollout/generated", "tokens", "of a whole response, tool results included"},
		{"response_length/max", "rollout/generated_max", "tokens", ""},
		{"response_length/min", "rollout/generated_min", "tokens", ""},
		{"response_length/clip_ratio", "rollout/length_clipped", "share", "of responses that hit the limit"},
		{"response/aborted_ratio", "rollout/empty", "share", "of responses without a token"},
		{"prompt_length/mean", "rollout/prompt_tokens", "tokens", ""},
		{"num_turns/mean", "rollout/messages", "", "messages of a dialogue, tool results included; not tool calls"},
		{"num_turns/max", "rollout/messages_max", "", "2 in every step means that no tool was ever called"},
		{"tool_call_counts/mean", "rollout/tool_calls_reported", "", ""},
		{"timing_s/step", "time/step_s", "s", ""},
		{"timing_s/gen", "time/rollout_s", "s", ""},
		{"timing_s/update_actor", "time/update_s", "s", ""},
		{"timing_s/old_log_prob", "time/old_log_prob_s", "s", ""},
		{"timing_s/ref", "time/reference_s", "s", ""},
		{"timing_s/reward", "time/reward_s", "s", ""},
		{"timing_s/testing", "time/eval_s", "s", ""},
		{"timing_s/save_checkpoint", "time/checkpoint_s", "s", ""},
		{"timing_s/agent_loop/tool_calls/mean", "time/tool_calls_s", "s", "of one trajectory"},
		{"perf/throughput", "speed/tokens_per_s_gpu", "tokens/s", "for each device"},
		{"perf/total_num_tokens", "speed/tokens", "tokens", "of a step"},
		{"perf/time_per_step", "time/step_wall_s", "s", ""},
		{"perf/mfu/actor", "speed/mfu", "share", ""},
		{"perf/max_memory_allocated_gb", "memory/allocated_gb", "GB", ""},
		{"perf/max_memory_reserved_gb", "memory/reserved_gb", "GB", ""},
		{"perf/cpu_memory_used_gb", "memory/host_gb", "GB", ""},
		{"actor/perf/max_memory_allocated_gb", "memory/allocated_gb", "GB", ""},
		{"actor/perf/max_memory_reserved_gb", "memory/reserved_gb", "GB", ""},
		{"actor/perf/cpu_memory_used_gb", "memory/host_gb", "GB", ""},
		{"training/epoch", "data/epoch", "", ""},
		{"training/rollout_probs_diff_mean", "mismatch/probs_mean", "", "inference engine against trainer"},
		{"training/rollout_probs_diff_max", "mismatch/probs_max", "", ""},
		{"training/rollout_actor_probs_pearson_corr", "mismatch/pearson", "", "below 0.98 the engine samples another policy than the one that is trained"},
		{"train/num_gen_batches", "rollout/sampling_rounds", "", "of dynamic sampling: compare arms by tokens, not by steps"},
		{"tools/total_calls", "tools/calls", "", "ARPO's fork: of a step"},
		{"tools/failed_calls", "tools/failed", "", "ARPO's fork: of a step"},
		{"tools/avg_execution_time", "tools/time_s", "s", "ARPO's fork"},
		{"tools/call_limit_reached_count", "tools/call_limit", "", "ARPO's fork"},
		{decodeErrorsName, "tools/decode_errors", "", "lines of the console since the last step"},
		{toolErrorsName, "tools/errors", "", "lines of the console since the last step"},
		{badGradientName, "policy/updates_skipped", "", "updates left out because the gradient was not finite"},
		{uniformName, "group/zero_variance", "share", "of groups whose rollouts all scored alike, from the dump"},
		{groupSizeName, "group/size", "", "rollouts of a group, from the dump"},
	}
}

var (
	valName    = regexp.MustCompile(`^val-(core|aux)/(.+)/([^/]+)/((?:mean|std|best|worst|maj)@\d+(?:/(?:mean|std))?)$`)
	toolByName = regexp.MustCompile(`^tools/([^/]+)/(calls|avg_time|success_rate)$`)
)

// Name implements native.Naming.
func (Adapter) Name(name string) (string, bool) {
	for _, m := range Metrics() {
		if m.Native == name {
			return m.Name, true
		}
	}
	if m := valName.FindStringSubmatch(name); m != nil {
		return "eval/" + m[1] + "/" + shortSource(m[2]) + "/" + m[3] + "/" + m[4], true
	}
	if m := toolByName.FindStringSubmatch(name); m != nil {
		return "tools/" + m[1] + "/" + m[2], true
	}
	return "", false
}

// shortSource is the data source without our own prefix.
func shortSource(s string) string { return strings.TrimPrefix(s, "alidade/") }
