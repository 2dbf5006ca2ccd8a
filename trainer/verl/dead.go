package verl

import (
	"strings"

	"alidade/trainer/native"
)

// A deadRule names keys that a version takes without a word and then ignores:
// the run trains something else than its configuration says.
type deadRule struct {
	keys  []string // names; a name that ends in a dot stands for all below it
	since Line
	until Line
	when  func(*lookup) bool // nil = always
	level string
	text  string
	fix   func(key string, p Profile) string
}

func say(s string) func(string, Profile) string { return func(string, Profile) string { return s } }

// DeadKeys lists, for one version, the keys that it may ignore, for the
// documentation and for tests; a name that ends in a dot stands for all below.
func DeadKeys(p Profile) []string {
	var keys []string
	for _, r := range deadRules() {
		if p.Line >= r.since && p.Line <= r.until {
			keys = append(keys, r.keys...)
		}
	}
	return keys
}

// deadRules are read from the sources of each release.
func deadRules() []deadRule {
	return []deadRule{
		{keys: []string{"reward_model.", "custom_reward_function.", "sandbox_fusion."}, since: Line09, until: Line09, level: native.Refuse,
			text: "is accepted and ignored from 0.9 on: the reward would not be yours", fix: rewardName},
		{keys: []string{"reward_model.reward_manager", "reward_model.reward_kwargs.", "custom_reward_function."}, since: Line07, until: Line08, level: native.Warn,
			text: "is an old name that still works in this version, and no more in 0.9", fix: rewardName},
		{keys: []string{actor + "clip_ratio"}, since: LineARPO, until: Line09, level: native.Refuse,
			when: func(l *lookup) bool {
				return !l.given(actor+"clip_ratio_low") || !l.given(actor+"clip_ratio_high") || l.at[actor+"clip_ratio"].From == "native.overrides"
			},
			text: "has no effect: the loss reads clip_ratio_low and clip_ratio_high", fix: say("set algorithm.clip_low and algorithm.clip_high")},
		{keys: []string{"algorithm.filter_groups."}, since: LineARPO, until: Line08, level: native.Refuse,
			when: func(l *lookup) bool { return l.Module != moduleDAPO },
			text: "is ignored by " + modulePPO + " until 0.8", fix: say("algorithm.filter_groups with the DAPO recipe (recipe.dapo), or verl 0.9")},
		{keys: []string{"algorithm.filter_groups."}, since: Line09, until: Line09, level: native.Refuse,
			when: func(l *lookup) bool { return !l.on("trainer.use_v1") },
			text: "is ignored by the old trainer (trainer.use_v1=False)", fix: say("leave trainer.use_v1 at True")},
		{keys: []string{"algorithm.filter_groups.max_num_gen_batches"}, since: Line09, until: Line09, level: native.Warn,
			when: func(l *lookup) bool { return l.on("trainer.use_v1") },
			text: "is ignored by the V1 trainer", fix: say("algorithm.filter_groups.max_inflight_gen_batches bounds what is sampled at once")},
		{keys: []string{actor + "loss_agg_mode"}, since: LineARPO, until: Line09, level: native.Note,
			when: func(l *lookup) bool {
				return l.text(actor+"policy_loss.loss_mode") == "gspo" && l.text(actor+"loss_agg_mode") != "seq-mean-token-mean"
			},
			text: "is ignored: gspo always takes seq-mean-token-mean", fix: say("write seq-mean-token-mean")},
		{keys: []string{"data.val_batch_size"}, since: Line05, until: Line09, level: native.Warn,
			text: "is deprecated and ignored: the engine schedules validation by itself", fix: say("leave it out")},
		{keys: []string{actor + "kl_loss_coef", actor + "kl_loss_type"}, since: LineARPO, until: Line09, level: native.Warn,
			when: func(l *lookup) bool { return !l.on(actor + "use_kl_loss") },
			text: "has no effect while use_kl_loss is off", fix: say("algorithm.use_kl_loss: true")},
		{keys: []string{"algorithm.kl_ctrl.", "algorithm.kl_penalty"}, since: LineARPO, until: Line09, level: native.Warn,
			when: func(l *lookup) bool { return !l.on("algorithm.use_kl_in_reward") },
			text: "has no effect while use_kl_in_reward is off", fix: say("algorithm.use_kl_in_reward: true")},
		{keys: []string{actor + "loss_scale_factor"}, since: Line07, until: Line09, level: native.Warn,
			when: func(l *lookup) bool { return l.text(actor+"loss_agg_mode") != "seq-mean-token-sum-norm" },
			text: "has no effect with this aggregation", fix: say("algorithm.loss_agg_mode: seq-mean-token-sum-norm")},
		{keys: []string{actor + "optim.lr_warmup_steps_ratio"}, since: LineARPO, until: Line09, level: native.Warn,
			when: func(l *lookup) bool { return l.whole(actor+"optim.lr_warmup_steps") >= 0 },
			text: "has no effect: lr_warmup_steps goes before it", fix: say("native.warmup_steps, or lr_warmup_steps=-1")},
		{keys: []string{rollout + "val_kwargs.temperature", rollout + "val_kwargs.top_p", rollout + "val_kwargs.top_k"}, since: LineARPO, until: Line06, level: native.Warn,
			when: func(l *lookup) bool {
				n, _ := l.number(rollout + "val_kwargs.temperature")
				return n > 0 && !l.on(rollout+"val_kwargs.do_sample")
			},
			text: "has no effect in sync mode while do_sample is off: validation would be greedy", fix: say("val_kwargs.do_sample=True")},
		{keys: []string{"data.return_raw_chat"}, since: LineARPO, until: Line06, level: native.Refuse,
			when: func(l *lookup) bool { return l.Tools && !l.on("data.return_raw_chat") && l.Profile.Line != LineARPO },
			text: "has to be True: agents get no messages otherwise", fix: say("data.return_raw_chat=True")},
	}
}

// rewardName offers the spelling of the version.
func rewardName(key string, p Profile) string {
	if other := renamed(key, p); other != "" {
		return "write " + other
	}
	return "write it under reward."
}

func (r deadRule) check(l *lookup) []native.Verdict {
	if l.Profile.Line < r.since || l.Profile.Line > r.until || r.when != nil && !r.when(l) {
		return nil
	}
	var out []native.Verdict
	for _, s := range l.Settings {
		if !r.names(s.Key) {
			continue
		}
		out = append(out, native.Verdict{Level: r.level, Code: "dead-key", Key: s.Key, Value: s.Value, Text: s.Key + " " + r.text, Fix: r.fix(s.Key, l.Profile)})
	}
	return out
}

func (r deadRule) names(key string) bool {
	for _, k := range r.keys {
		if k == key || strings.HasSuffix(k, ".") && strings.HasPrefix(key, k) {
			return true
		}
	}
	return false
}
