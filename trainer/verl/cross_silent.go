package verl

import (
	"fmt"
	"slices"
	"strings"

	"alidade/trainer/native"
)

func bothKL(l *lookup) (native.Verdict, bool) {
	if l.on("algorithm.use_kl_in_reward") && l.on(actor+"use_kl_loss") {
		return refuse("both-kl", "algorithm.use_kl_in_reward", "True", "the KL is both in the reward and in the loss; verl prints a notice and goes on", "one of algorithm.use_kl_loss and algorithm.use_kl_in_reward")
	}
	return fine()
}

func idleKL(l *lookup) (native.Verdict, bool) {
	if c, ok := l.number(actor + "kl_loss_coef"); ok && c == 0 && l.on(actor+"use_kl_loss") {
		return warn("idle-kl", actor+"kl_loss_coef", "0", "the KL loss has no weight, and still costs a pass of the reference model", "algorithm.use_kl_loss: false")
	}
	return fine()
}

// Rule 12.
func toolsOff(l *lookup) (native.Verdict, bool) {
	if !l.Tools || l.Profile.Line == LineARPO {
		return fine()
	}
	if key := rollout + "multi_turn.enable"; !l.on(key) {
		return refuse("tools-off", key, l.text(key), "the recipe needs tools, and the rollout takes one turn only", key+"=True")
	}
	if key := rollout + "multi_turn.tool_config_path"; l.text(key) == "" || l.text(key) == "null" {
		return refuse("tools-off", key, l.text(key), "no tools are named", "the generated tool file")
	}
	if key := rollout + "mode"; l.text(key) != "async" {
		return refuse("tools-off", key, l.text(key), "agents need the async rollout", key+"=async")
	}
	key := rollout + "agent.default_agent_loop"
	if loop := l.text(key); l.Profile.AgentLoops && loop != "tool_agent" && loop != loopName(true) {
		return refuse("tools-off", key, loop, "the rollout would be an agent of one turn: num_turns/max stays at 2", key+"=tool_agent")
	}
	return fine()
}

// Rule 13. Below leastToolText characters most of this sandbox's tables lose
// their middle.
const leastToolText = 2000

func toolResponseShort(l *lookup) (native.Verdict, bool) {
	key := rollout + "multi_turn.max_tool_response_length"
	if n := l.whole(key); l.Tools && l.Profile.Line >= Line05 && n < leastToolText {
		return warn("tool-response", key, l.text(key), fmt.Sprintf("tool results are cut to %d characters, in the middle", n), fmt.Sprintf("at least %d", leastToolText))
	}
	return fine()
}

// Rule 14.
func overlongManager(l *lookup) (native.Verdict, bool) {
	key := ""
	for _, prefix := range []string{"reward.reward_kwargs.overlong_buffer_cfg.", "reward_model.reward_kwargs.overlong_buffer_cfg.", "reward_model.overlong_buffer."} {
		if l.on(prefix + "enable") {
			key = prefix + "enable"
		}
	}
	if key == "" {
		return fine()
	}
	for _, name := range []string{"reward.reward_manager.name", "reward_model.reward_manager"} {
		if v := l.text(name); v == "dapo" || v == managerClass {
			return fine()
		}
	}
	manager := "reward.reward_manager.name"
	if !l.Profile.Reward {
		manager = "reward_model.reward_manager"
	}
	return refuse("overlong-manager", key, "True", "only the reward manager dapo pays the over-long penalty, and the manager is "+l.text(manager), manager+"=dapo")
}

func overlongLength(l *lookup) (native.Verdict, bool) {
	for _, prefix := range []string{"reward.reward_kwargs.", "reward_model.reward_kwargs."} {
		key := prefix + "max_resp_len"
		if !l.on(prefix + "overlong_buffer_cfg.enable") {
			continue
		}
		n, buffer := l.whole(key), l.whole(prefix+"overlong_buffer_cfg.len")
		switch {
		case n == 0:
			return refuse("overlong-length", key, l.text(key), "the manager needs the longest response", fmt.Sprintf("%s=%d", key, l.whole("data.max_response_length")))
		case buffer <= 0 || buffer > n:
			return refuse("overlong-length", prefix+"overlong_buffer_cfg.len", fmt.Sprint(buffer), fmt.Sprintf("the buffer is not within the %d tokens of a response", n), "algorithm.overlong_buffer_len below native.max_response_tokens")
		case n != l.whole("data.max_response_length"):
			return warn("overlong-length", key, fmt.Sprint(n), fmt.Sprintf("responses end at %d tokens: the penalty is measured by another limit", l.whole("data.max_response_length")), "the same number")
		}
	}
	return fine()
}

// Rule 11 has its text in deadRules; this one looks at the range.
func sequenceClip(l *lookup) (native.Verdict, bool) {
	high, _ := l.number(actor + "clip_ratio_high")
	if l.text(actor+"policy_loss.loss_mode") == "gspo" && high > 0.01 {
		return warn("gspo-clip", actor+"clip_ratio_high", l.text(actor+"clip_ratio_high"), "a range for tokens never clips the ratio of a sequence; published: 3e-4 and 4e-4", "algorithm.clip_low: 0.0003, algorithm.clip_high: 0.0004")
	}
	return fine()
}

func sequenceLoss(l *lookup) (native.Verdict, bool) {
	key := actor + "policy_loss.loss_mode"
	if v := l.text(key); v == "gspo" && (l.Profile.Line == Line05 || l.Profile.Line == LineARPO) {
		return refuse("gspo-version", key, v, "verl "+l.Profile.Name+" has no sequence-level loss", "verl 0.6 or later, or the Open-AgentRL fork")
	}
	return fine()
}

func pointlessSamples(l *lookup) (native.Verdict, bool) {
	key := rollout + "val_kwargs.n"
	t, _ := l.number(rollout + "val_kwargs.temperature")
	if l.whole(key) > 1 && t == 0 {
		return refuse("val-samples", key, l.text(key), "greedy validation gives the same answer each time", "evaluation.temperature above 0, or evaluation.samples: 1")
	}
	return fine()
}

func biasedSampling(l *lookup) (native.Verdict, bool) {
	if p, ok := l.number(rollout + "top_p"); ok && p < 1 {
		return warn("biased-sampling", rollout+"top_p", l.text(rollout+"top_p"), "the probabilities of cut tokens are not those of the policy: ratios are biased", "algorithm.top_p: 1")
	}
	if k := l.whole(rollout + "top_k"); k > 0 {
		return warn("biased-sampling", rollout+"top_k", fmt.Sprint(k), "the probabilities of cut tokens are not those of the policy: ratios are biased", "top_k=-1")
	}
	return fine()
}

func highRate(l *lookup) (native.Verdict, bool) {
	key := actor + "optim.lr"
	if lr, _ := l.number(key); lr > 1e-5 && l.whole(arr+"model.lora_rank") == 0 {
		return warn("learning-rate", key, l.text(key), "above 1e-5 with all parameters; published recipes take 1e-6 to 2e-6", "a lower algorithm.lr, or native.lora_rank")
	}
	return fine()
}

func neverSaved(l *lookup) (native.Verdict, bool) {
	for _, key := range []string{"trainer.save_freq", "trainer.test_freq"} {
		if l.whole(key) <= 0 && l.Hours > 1 {
			return refuse("never-saved", key, l.text(key), "a run of more than an hour is neither saved nor evaluated on its way", "budget.checkpoint_every and evaluation.every above 0")
		}
	}
	return fine()
}

// Rule 17: a shard belongs to its rank.
func resumeDevices(l *lookup) (native.Verdict, bool) {
	if l.WorldSize > 0 && l.WorldSize != l.devices() {
		return refuse("resume-devices", "trainer.n_gpus_per_node", l.text("trainer.n_gpus_per_node"),
			fmt.Sprintf("the checkpoint is in %d shards, and there are %d devices", l.WorldSize, l.devices()), fmt.Sprintf("resume on %d devices, or merge the checkpoint first", l.WorldSize))
	}
	return fine()
}

// turnTokens is what a turn of this sandbox takes at least: a call and its
// table, from the published traces (9.2 calls and 10.1 thousand tokens an
// episode) with a margin below.
const turnTokens = 300

// Rule 18.
func responseBudget(l *lookup) (native.Verdict, bool) {
	turns, limit := l.whole(rollout+"multi_turn.max_assistant_turns"), l.whole("data.max_response_length")
	if l.Tools && turns > 0 && limit < turns*turnTokens {
		return warn("response-budget", "data.max_response_length", fmt.Sprint(limit), fmt.Sprintf("%d turns do not fit: the response ends first", turns),
			fmt.Sprintf("at least %d tokens, or fewer turns; look at response_length/clip_ratio in the smoke run", turns*turnTokens))
	}
	return fine()
}

// knownLoggers refuses a name at which verl would stop.
func knownLoggers(l *lookup) (native.Verdict, bool) {
	known := []string{"console", "wandb", "mlflow", "swanlab", "vemlp_wandb", "tensorboard", "clearml"}
	if l.Profile.FileLogger {
		known = append(known, "trackio", "file")
	}
	if l.Profile.V1 {
		known = append(known, "rl_insight")
	}
	key := "trainer.logger"
	for _, name := range strings.Split(strings.Trim(l.text(key), "[]"), ",") {
		if name = unquote(strings.TrimSpace(name)); !slices.Contains(known, name) {
			return refuse("logger", key, l.text(key), fmt.Sprintf("verl %s has no logger %q", l.Profile.Name, name), strings.Join(known, ", "))
		}
	}
	return fine()
}

// ownPaths are the keys and variables that no two runs may share.
var ownPaths = []string{"trainer.default_local_dir", "trainer.rollout_data_dir", "trainer.validation_data_dir", "VERL_FILE_LOGGER_PATH", "TENSORBOARD_DIR"}

// An ArmPlan is one run of an ablation, for [CheckArms].
type ArmPlan struct {
	Name     string
	Profile  Profile
	Settings []native.Setting
	Env      []string // NAME=value
}

func (a *ArmPlan) value(key string) string {
	for _, s := range a.Settings {
		if s.Key == key {
			return unquote(s.Value)
		}
	}
	for _, e := range a.Env {
		if v, ok := strings.CutPrefix(e, key+"="); ok {
			return v
		}
	}
	return ""
}

// CheckArms compares runs of one ablation: rules 15 (two of them share a path,
// so that one continues or overwrites the other) and 16 (they differ in what
// makes their numbers incomparable).
func CheckArms(arms []ArmPlan) []native.Verdict {
	var out []native.Verdict
	for i := range arms {
		for j := range i {
			a, b := &arms[j], &arms[i]
			for _, key := range ownPaths {
				if v := a.value(key); v != "" && v == b.value(key) {
					out = append(out, native.Verdict{Level: native.Refuse, Code: "shared-path", Key: key, Value: v,
						Text: a.Name + " and " + b.Name + " would write to the same place", Fix: "a folder for each run"})
				}
			}
			if d := incomparable(a, b); d != "" {
				out = append(out, native.Verdict{Level: native.Warn, Code: "not-comparable", Key: "native.version", Text: a.Name + " and " + b.Name + " differ in " + d, Fix: "the same for all arms"})
			}
		}
	}
	return out
}

func incomparable(a, b *ArmPlan) string {
	if a.Profile.Name != b.Profile.Name {
		return fmt.Sprintf("the trainer's version, %s and %s", a.Profile.Name, b.Profile.Name)
	}
	for _, key := range []string{"trainer.nnodes", "trainer.n_gpus_per_node", "trainer.v1.trainer_mode", "trainer.use_v1"} {
		if x, y := a.value(key), b.value(key); x != y {
			return fmt.Sprintf("%s, %s and %s", key, x, y)
		}
	}
	return ""
}
