package verl

import (
	"slices"
	"strings"
	"testing"

	"alidade/ablation"
	"alidade/trainer/native"
)

// sound is a configuration that nothing speaks against, in the given version.
func sound(t *testing.T, version string) *Subject {
	t.Helper()
	p, _, err := ProfileOf(version)
	if err != nil {
		t.Fatal(err)
	}
	r, ok := ablation.PresetNamed("star-3b")
	if !ok {
		t.Fatal("no preset star-3b")
	}
	if !p.AgentLoops {
		r.Algorithm.Overlong = "zero"
	}
	r.Native.Version = version
	return &Subject{Profile: p, Module: p.module(false), Settings: Settings(r, setupFor(&r, p)), Tools: true, Rows: 1000}
}

func (s *Subject) with(pairs ...string) *Subject {
	for i := 0; i+1 < len(pairs); i += 2 {
		s.Settings = slices.DeleteFunc(s.Settings, func(x native.Setting) bool { return x.Key == pairs[i] })
		if pairs[i+1] != "-" {
			s.Settings = append(s.Settings, native.Setting{Key: pairs[i], Value: pairs[i+1], From: "native.overrides"})
		}
	}
	return s
}

func TestSoundConfigurations(t *testing.T) {
	for _, version := range []string{"0.5", "open-agentrl", "0.6.1", "0.7.1", "0.8", "0.9"} {
		for _, v := range CheckSettings(sound(t, version)) {
			if v.Level != native.Note {
				t.Errorf("%s: %s", version, v)
			}
		}
	}
}

// TestCrossRules fires every rule across keys, and says which and how hard.
func TestCrossRules(t *testing.T) {
	static := []string{actor + "use_dynamic_bsz", "False", actor + "ppo_micro_batch_size_per_gpu", "2", rollout + "log_prob_micro_batch_size_per_gpu", "2"}
	for _, tc := range []struct {
		rule    string // number in the list of rules, or a name
		version string
		set     []string
		change  func(*Subject)
		level   string
		code    string
	}{
		{rule: "1 rollouts by devices", set: append(static, "data.train_batch_size", "31", rollout+"n", "3", actor+"ppo_mini_batch_size", "31"), level: native.Refuse, code: "batch-devices"},
		{rule: "2 mini-batch above batch", set: []string{actor + "ppo_mini_batch_size", "64"}, level: native.Refuse, code: "mini-batch"},
		{rule: "2 mini-batch divides batch", set: []string{actor + "ppo_mini_batch_size", "24"}, level: native.Refuse, code: "mini-batch"},
		{rule: "2 mini-batch by copies", set: []string{"data.train_batch_size", "3", actor + "ppo_mini_batch_size", "3", rollout + "n", "5"}, level: native.Refuse, code: "mini-batch-devices"},
		{rule: "2 micro-batch divides", set: append(slices.Clone(static), actor+"ppo_micro_batch_size_per_gpu", "3"), level: native.Refuse, code: "micro-batch"},
		{rule: "3 micro-batch missing", set: []string{actor + "use_dynamic_bsz", "False"}, level: native.Refuse, code: "micro-batch-missing"},
		{rule: "3 reference's micro-batch missing", set: append(slices.Clone(static), actor+"use_kl_loss", "True"), level: native.Refuse, code: "micro-batch-missing"},
		{rule: "3 micro-batch twice", set: append(slices.Clone(static), actor+"ppo_micro_batch_size", "16"), level: native.Refuse, code: "micro-batch-twice"},
		{rule: "3 token cap", set: []string{actor + "ppo_max_token_len_per_gpu", "16384"}, level: native.Refuse, code: "token-cap"},
		{rule: "4 dual clip", set: []string{actor + "clip_ratio_c", "1"}, level: native.Refuse, code: "wrong-value"},
		{rule: "4 aggregation", set: []string{actor + "loss_agg_mode", "token-sum"}, level: native.Refuse, code: "wrong-value"},
		{rule: "4 scheduler", set: []string{actor + "optim.lr_scheduler_type", "linear"}, level: native.Refuse, code: "wrong-value"},
		{rule: "4 loss mode with a hyphen", set: []string{actor + "policy_loss.loss_mode", "clip-cov"}, level: native.Refuse, code: "wrong-value"},
		{rule: "4 sampled validation", set: []string{rollout + "val_kwargs.temperature", "0"}, level: native.Refuse, code: "val-temperature"},
		{rule: "5 sync step", version: "0.9", set: []string{"trainer.v1.trainer_mode", "separate_async", "trainer.v1.separate_async.parameter_sync_step", "5"}, level: native.Refuse, code: "sync-step"},
		{rule: "5 filter metric", version: "0.9", set: []string{"algorithm.filter_groups.enable", "True"}, level: native.Refuse, code: "filter-metric"},
		{rule: "6 group of one", set: []string{rollout + "n", "1"}, level: native.Refuse, code: "group-size"},
		{rule: "6 tensor parallel", set: []string{rollout + "tensor_model_parallel_size", "3"}, level: native.Refuse, code: "tensor-parallel"},
		{rule: "6 tensor parallel by default", set: []string{"trainer.n_gpus_per_node", "1", rollout + "tensor_model_parallel_size", "-"}, level: native.Refuse, code: "tensor-parallel"},
		{rule: "sequence parallel", set: []string{actor + "ulysses_sequence_parallel_size", "3"}, level: native.Refuse, code: "sequence-parallel"},
		{rule: "model length", set: []string{rollout + "max_model_len", "4096"}, level: native.Refuse, code: "model-length"},
		{rule: "model", set: []string{arr + "model.path", "-"}, level: native.Refuse, code: "model"},
		{rule: "lora rank", set: []string{arr + "model.lora_rank", "1024"}, level: native.Refuse, code: "lora-rank"},
		{rule: "rows", change: func(s *Subject) { s.Rows = 16 }, level: native.Refuse, code: "rows"},
		{rule: "agent workers", set: []string{rollout + "agent.num_workers", "300"}, level: native.Refuse, code: "agent-workers"},
		{rule: "7 old reward keys on 0.9", version: "0.9", set: []string{"custom_reward_function.path", "/r.py"}, level: native.Refuse, code: "dead-key"},
		{rule: "8 clip_ratio alone", set: []string{actor + "clip_ratio", "0.1"}, level: native.Refuse, code: "dead-key"},
		{rule: "9 estimator", set: []string{"algorithm.adv_estimator", "-"}, level: native.Refuse, code: "estimator"},
		{rule: "10 filter in main_ppo", set: []string{"algorithm.filter_groups.enable", "True"}, level: native.Refuse, code: "dead-key"},
		{rule: "11 gspo's aggregation", set: []string{actor + "policy_loss.loss_mode", "gspo", actor + "clip_ratio_low", "0.0003", actor + "clip_ratio_high", "0.0004"}, level: native.Note, code: "dead-key"},
		{rule: "11 gspo's clip", set: []string{actor + "policy_loss.loss_mode", "gspo"}, level: native.Warn, code: "gspo-clip"},
		{rule: "gspo before 0.6", version: "0.5", set: []string{actor + "policy_loss.loss_mode", "gspo"}, level: native.Refuse, code: "gspo-version"},
		{rule: "12 multi-turn off", set: []string{rollout + "multi_turn.enable", "False"}, level: native.Refuse, code: "tools-off"},
		{rule: "12 agent of one turn", set: []string{rollout + "agent.default_agent_loop", "-"}, level: native.Refuse, code: "tools-off"},
		{rule: "12 no tools", set: []string{rollout + "multi_turn.tool_config_path", "null"}, level: native.Refuse, code: "tools-off"},
		{rule: "12 sync rollout", version: "0.6.1", set: []string{rollout + "mode", "sync"}, level: native.Refuse, code: "tools-off"},
		{rule: "13 tool response", set: []string{rollout + "multi_turn.max_tool_response_length", "-"}, level: native.Warn, code: "tool-response"},
		{rule: "14 overlong without dapo", set: []string{"reward.reward_kwargs.overlong_buffer_cfg.enable", "True", "reward.reward_kwargs.overlong_buffer_cfg.len", "4096", "reward.reward_kwargs.max_resp_len", "26624"}, level: native.Refuse, code: "overlong-manager"},
		{rule: "14 overlong without dapo, old", version: "0.6.1", set: []string{"reward_model.reward_kwargs.overlong_buffer_cfg.enable", "True", "reward_model.reward_kwargs.overlong_buffer_cfg.len", "4096", "reward_model.reward_kwargs.max_resp_len", "26624"}, level: native.Refuse, code: "overlong-manager"},
		{rule: "14 overlong length", set: []string{"reward.reward_manager.name", "dapo", "reward.reward_kwargs.overlong_buffer_cfg.enable", "True"}, level: native.Refuse, code: "overlong-length"},
		{rule: "14 another length", set: []string{"reward.reward_manager.name", "dapo", "reward.reward_kwargs.overlong_buffer_cfg.enable", "True", "reward.reward_kwargs.overlong_buffer_cfg.len", "512", "reward.reward_kwargs.max_resp_len", "1024"}, level: native.Warn, code: "overlong-length"},
		{rule: "16 async mode", version: "0.9", set: []string{"trainer.v1.trainer_mode", "colocate_async"}, level: native.Warn, code: "async-mode"},
		{rule: "17 resume on other devices", change: func(s *Subject) { s.WorldSize = 4 }, level: native.Refuse, code: "resume-devices"},
		{rule: "17 resume path", set: []string{"trainer.resume_mode", "resume_path", "trainer.resume_from_path", "/c/latest"}, level: native.Refuse, code: "resume-path"},
		{rule: "18 response budget", set: []string{"data.max_response_length", "4096"}, level: native.Warn, code: "response-budget"},
		{rule: "both KL", set: []string{actor + "use_kl_loss", "True", "algorithm.use_kl_in_reward", "True"}, level: native.Refuse, code: "both-kl"},
		{rule: "KL of weight 0", set: []string{actor + "use_kl_loss", "True", actor + "kl_loss_coef", "0"}, level: native.Warn, code: "idle-kl"},
		{rule: "greedy samples", set: []string{rollout + "val_kwargs.n", "8", rollout + "val_kwargs.temperature", "0", rollout + "val_kwargs.do_sample", "False"}, level: native.Refuse, code: "val-samples"},
		{rule: "top-p", set: []string{rollout + "top_p", "0.9"}, level: native.Warn, code: "biased-sampling"},
		{rule: "top-k", set: []string{rollout + "top_k", "50"}, level: native.Warn, code: "biased-sampling"},
		{rule: "learning rate", set: []string{actor + "optim.lr", "1e-4"}, level: native.Warn, code: "learning-rate"},
		{rule: "never saved", set: []string{"trainer.save_freq", "-1"}, change: func(s *Subject) { s.Hours = 8 }, level: native.Refuse, code: "never-saved"},
		{rule: "unknown key", set: []string{actor + "clip_ratio_hi", "0.3"}, level: native.Refuse, code: "unknown-key"},
		{rule: "key of another version", version: "0.7.1", set: []string{rollout + "seed", "1"}, level: native.Refuse, code: "unknown-key"},
		{rule: "type of a key with a default alone", set: []string{rollout + "skip_tokenizer_init", "maybe"}, level: native.Refuse, code: "wrong-value"},
		{rule: "unknown logger", set: []string{"trainer.logger", "[console,filé]"}, level: native.Refuse, code: "logger"},
		{rule: "logger before its time", version: "0.5", set: []string{"trainer.logger", "[console,file]"}, level: native.Refuse, code: "logger"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			version := tc.version
			if version == "" {
				version = "0.8"
			}
			s := sound(t, version).with(tc.set...)
			if tc.change != nil {
				tc.change(s)
			}
			got := CheckSettings(s)
			i := slices.IndexFunc(got, func(v native.Verdict) bool { return v.Code == tc.code && v.Level == tc.level })
			if i < 0 {
				t.Fatalf("no %s %s among %v", tc.level, tc.code, got)
			}
			if v := got[i]; v.Key == "" || v.Text == "" || v.Fix == "" {
				t.Errorf("verdict without key, text or fix: %+v", v)
			}
		})
	}
}

// TestEveryDeadKeyIsCaught sets each key that a version ignores, alone.
func TestEveryDeadKeyIsCaught(t *testing.T) {
	// What a key needs beside it to be ignored.
	beside := map[string][]string{
		"algorithm.filter_groups.enable":               {"trainer.use_v1", "False", "algorithm.filter_groups.metric", "acc"},
		actor + "loss_agg_mode":                        {actor + "policy_loss.loss_mode", "gspo", actor + "loss_agg_mode", "token-mean"},
		rollout + "val_kwargs.temperature":             {rollout + "val_kwargs.do_sample", "False"},
		rollout + "val_kwargs.top_p":                   {rollout + "val_kwargs.do_sample", "False"},
		rollout + "val_kwargs.top_k":                   {rollout + "val_kwargs.do_sample", "False"},
		"data.return_raw_chat":                         {"data.return_raw_chat", "False"},
		"algorithm.filter_groups.max_num_gen_batches":  {"algorithm.filter_groups.metric", "acc"},
		"algorithm.filter_groups.max_inflight_batches": nil,
	}
	sample := map[string]string{ // one key below each prefix
		"reward_model.": "reward_model.reward_manager", "custom_reward_function.": "custom_reward_function.path", "sandbox_fusion.": "sandbox_fusion.url",
		"reward_model.reward_kwargs.": "reward_model.reward_kwargs.max_resp_len", "algorithm.filter_groups.": "algorithm.filter_groups.enable", "algorithm.kl_ctrl.": "algorithm.kl_ctrl.kl_coef",
	}
	values := map[string]string{actor + "loss_agg_mode": "token-mean", "data.return_raw_chat": "False", "algorithm.kl_penalty": "kl", actor + "kl_loss_type": "kl",
		"reward_model.reward_manager": "dapo", "algorithm.filter_groups.enable": "True", "custom_reward_function.path": "/r.py", "sandbox_fusion.url": "http://h"}
	n := 0
	for _, p := range Profiles() {
		if p.Line == LineARPO {
			continue // its fork's keys are known by name alone
		}
		for _, key := range DeadKeys(p) {
			if s, ok := sample[key]; ok {
				key = s
			}
			value := values[key]
			if value == "" {
				value = "0.5"
			}
			s := sound(t, p.Name).with(key, value)
			if extra := beside[key]; p.Line == Line09 || !strings.HasPrefix(key, "algorithm.filter") {
				s = s.with(extra...)
			}
			found := slices.ContainsFunc(CheckSettings(s), func(v native.Verdict) bool { return v.Code == "dead-key" && v.Key == key && v.Fix != "" })
			if !found {
				t.Errorf("%s: %s=%s passes as if it did something: %v", p.Name, key, value, CheckSettings(s))
			}
			n++
		}
	}
	if n < 50 {
		t.Errorf("only %d dead keys were tried", n)
	}
}

func TestDeadKeysOffer(t *testing.T) {
	s := sound(t, "0.9").with("custom_reward_function.path", "/r.py")
	got := CheckSettings(s)
	i := slices.IndexFunc(got, func(v native.Verdict) bool { return v.Code == "dead-key" })
	if i < 0 || !strings.Contains(got[i].Fix, "reward.custom_reward_function.path") {
		t.Errorf("the spelling of 0.9 is not offered: %v", got)
	}
}

func TestCheckArms(t *testing.T) {
	arm := func(name, version string, pairs ...string) ArmPlan {
		s := sound(t, version).with(append([]string{"trainer.default_local_dir", "/" + name, "trainer.rollout_data_dir", "/" + name + "/r", "trainer.validation_data_dir", "/" + name + "/v"}, pairs...)...)
		return ArmPlan{Name: name, Profile: s.Profile, Settings: s.Settings, Env: []string{"VERL_FILE_LOGGER_PATH=/" + name + "/m", "TENSORBOARD_DIR=/" + name + "/t"}}
	}
	for _, tc := range []struct {
		name string
		a, b ArmPlan
		code string
	}{
		{"apart", arm("a", "0.8"), arm("b", "0.8"), ""},
		{"15 checkpoints", arm("a", "0.8"), arm("b", "0.8", "trainer.default_local_dir", "/a"), "shared-path"},
		{"15 dumps", arm("a", "0.8"), arm("b", "0.8", "trainer.rollout_data_dir", "/a/r"), "shared-path"},
		{"15 logger", arm("a", "0.8"), ArmPlan{Name: "b", Profile: profiles[Line08], Env: []string{"VERL_FILE_LOGGER_PATH=/a/m"}}, "shared-path"},
		{"16 versions", arm("a", "0.8"), arm("b", "0.7.1"), "not-comparable"},
		{"16 devices", arm("a", "0.8"), arm("b", "0.8", "trainer.n_gpus_per_node", "4"), "not-comparable"},
		{"16 V1 mode", arm("a", "0.9"), arm("b", "0.9", "trainer.v1.trainer_mode", "colocate_async"), "not-comparable"},
	} {
		got := CheckArms([]ArmPlan{tc.a, tc.b})
		if tc.code == "" && len(got) > 0 || tc.code != "" && !slices.ContainsFunc(got, func(v native.Verdict) bool { return v.Code == tc.code }) {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}

func TestCheckRecipe(t *testing.T) {
	for _, tc := range []struct {
		name   string
		preset string
		change func(*ablation.Recipe)
		found  native.Versions
		m      native.Machine
		level  string
		code   string
	}{
		{name: "no GPU", m: native.Machine{}, level: native.Refuse, code: "devices"},
		{name: "too few GPUs", m: native.Machine{DeviceGiB: []float64{79}}, level: native.Refuse, code: "devices"},
		{name: "another version", found: native.Versions{"verl": "0.7.1", "vllm": "1"}, level: native.Refuse, code: "version"},
		{name: "a neighbour", change: func(r *ablation.Recipe) { r.Native.Version = "" }, found: native.Versions{"verl": "0.10.0.dev", "vllm": "1"}, level: native.Warn, code: "version"},
		{name: "no vllm", found: native.Versions{"verl": "0.8.0"}, level: native.Refuse, code: "engine"},
		{name: "hf engine", change: func(r *ablation.Recipe) { r.Native.Engine = "hf" }, level: native.Refuse, code: "engine"},
		{name: "tiny", change: func(r *ablation.Recipe) { r.Native.Model = "tiny" }, level: native.Refuse, code: "model"},
		{name: "no DAPO recipe", preset: "dapo", change: func(r *ablation.Recipe) { r.Native.Version = "0.8" }, found: native.Versions{"verl": "0.8.0", "vllm": "1"}, level: native.Refuse, code: "filter-groups"},
		{name: "ARPO elsewhere", preset: "arpo", change: func(r *ablation.Recipe) { r.Native.Version = "0.8" }, level: native.Refuse, code: "tree"},
		{name: "conflict", change: func(r *ablation.Recipe) { r.Native.Overrides = map[string]string{"data.train_batch_size": "8"} }, level: native.Refuse, code: "override-conflict"},
		{name: "own place", change: func(r *ablation.Recipe) {
			r.Native.Overrides = map[string]string{"trainer.default_local_dir": "/mine"}
		}, level: native.Refuse, code: "override-path"},
		{name: "unknown override", change: func(r *ablation.Recipe) { r.Native.Overrides = map[string]string{"trainer.nope": "1"} }, level: native.Refuse, code: "unknown-key"},
		{name: "failures without trajectories", change: func(r *ablation.Recipe) { r.Native.Version, r.Environment.ToolFailureRate = "0.6.1", 0.05 }, found: native.Versions{"verl": "0.6.1", "vllm": "1"}, level: native.Warn, code: "failures-stateless"},
		{name: "several nodes", change: func(r *ablation.Recipe) { r.Native.Nodes, r.Native.RayAddress = 2, "http://h:8265" }, level: native.Warn, code: "nodes"},
		{name: "ARPO without its configuration", preset: "arpo", found: native.Versions{"verl": "0.3.1.dev", "verl.fork": "arpo", "vllm": "1"}, level: native.Refuse, code: "arpo-config"},
		{name: "ARPO with native tools", preset: "arpo", change: func(r *ablation.Recipe) { r.Environment.Form = "tools" }, found: native.Versions{"verl": "0.3.1.dev", "verl.fork": "arpo", "arpo.config": "/c", "vllm": "1"}, level: native.Refuse, code: "form"},
		{name: "react elsewhere", change: func(r *ablation.Recipe) { r.Environment.Form = "react" }, level: native.Warn, code: "form"},
		{name: "loss scale", preset: "dr-grpo", change: func(r *ablation.Recipe) { r.Native.Version, r.Algorithm.LossScale = "0.6.1", 1000 }, found: native.Versions{"verl": "0.6.1", "vllm": "1"}, level: native.Refuse, code: "loss-scale"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			preset := tc.preset
			if preset == "" {
				preset = "star-3b"
			}
			r, _ := ablation.PresetNamed(preset)
			if tc.change != nil {
				tc.change(&r)
			}
			found, m := tc.found, tc.m
			if found == nil {
				found = native.Versions{"verl": "0.8.0", "vllm": "1", "recipe.dapo": "/r"}
			}
			if m.DeviceGiB == nil && tc.name != "no GPU" {
				m = eight
			}
			got := (Adapter{}).Check(r, found, m)
			if !slices.ContainsFunc(got, func(v native.Verdict) bool { return v.Level == tc.level && v.Code == tc.code }) {
				t.Errorf("no %s %s among %v", tc.level, tc.code, got)
			}
		})
	}
}
