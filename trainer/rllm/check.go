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

// Check implements [native.Adapter].
func (Adapter) Check(r ablation.Recipe, v native.Versions, m native.Machine) []native.Verdict {
	c := &checks{r: &r, v: v, m: m}
	c.versions()
	p, err := profile(v)
	if err != nil {
		return c.list
	}
	settings := Settings(r, Setup{Setup: verl.Setup{Profile: p, Model: r.Native.Model, Steps: int64(r.Budget.Steps), Rows: r.Data.Prompts, Run: "run"}})
	c.algorithm(settings)
	c.backend(p)
	c.environment()
	c.devices()
	c.overrides(settings)
	c.list = append(c.list, native.Verdict{Level: native.Note, Code: "algorithm", Text: resolved(settings, &r)})
	return c.list
}

type checks struct {
	r    *ablation.Recipe
	v    native.Versions
	m    native.Machine
	list []native.Verdict
}

func (c *checks) add(level, code, key, value, text, fix string) {
	c.list = append(c.list, native.Verdict{Level: level, Code: code, Key: key, Value: value, Text: text, Fix: fix})
}

func (c *checks) versions() {
	found := c.v["rllm"]
	major, rest, _ := strings.Cut(found, ".")
	minor, err := strconv.Atoi(strings.SplitN(rest, ".", 2)[0])
	if major != "0" || err != nil || minor < 3 {
		c.add(native.Refuse, "version", "rllm", found, "this adapter drives rLLM 0.3: earlier versions push nothing and have no gateway", "install rLLM 0.3")
	}
	if want := c.r.Native.Version; want != "" && want != found {
		c.add(native.Refuse, "version", "native.version", want, "the installed rLLM is "+found, "native.version "+found+", or an interpreter with that version in native.python")
	}
	if _, err := profile(c.v); err != nil {
		c.add(native.Refuse, "version", "verl", c.v["verl"], err.Error(), "install the verl that this rLLM asks for")
	}
}

// algorithm refuses what rLLM would ignore or do in another way.
func (c *checks) algorithm(settings []native.Setting) {
	a := &c.r.Algorithm
	if e := valueOf(settings, "rllm.algorithm.adv_estimator"); !slices.Contains(estimators, e) {
		c.add(native.Refuse, "estimator", "algorithm.kind", a.Kind, "rLLM has no advantage estimator "+e, "grpo, dr_grpo, dapo, gspo, grpo_tcr, grpo_scr, rloo or reinforce_plus_plus_baseline")
	}
	if a.Kind == "arpo" {
		c.add(native.Refuse, "estimator", "algorithm.kind", a.Kind, "rLLM samples no trees", "trainer verl with ARPO's fork")
	}
	if a.UseKLInReward {
		c.add(native.Refuse, "dead-key", "algorithm.use_kl_in_reward", "true", "rLLM has no KL in the reward", "algorithm.use_kl_loss, which becomes rllm.algorithm.kl_beta")
	}
	if a.FilterGroups || a.Kind == "dapo" {
		c.add(native.Note, "rejection", "", "", "dynamic sampling is rLLM's rejection sampling: uniform groups are left out, and not replaced by new ones", "")
	}
	if overlongOf(c.r, 0).How == "mask" {
		c.add(native.Note, "overlong", "", "", "over-long episodes are masked by rllm.compact_filtering", "")
	}
	if c.r.SFT.Traces > 0 {
		c.add(native.Warn, "sft", "sft.traces", strconv.Itoa(c.r.SFT.Traces), "trainer rllm has no SFT: RL starts from native.model as it is", "0, or the folder of a model that was fine-tuned by trainer trl, verl or llamafactory in native.model")
	}
}

// backend applies verl's rules to what reaches verl: batch sizes, memory, the
// engine. What rLLM does in another way is not judged by them.
func (c *checks) backend(p verl.Profile) {
	r := *c.r
	r.Native.Overrides, r.Algorithm.FilterGroups = nil, false
	in := func(name string) string { return "/attempt/" + name }
	subject := &verl.Subject{Profile: p, Tools: true, Rows: r.Data.Prompts, Settings: verl.Settings(r, verl.Setup{
		Profile: p, Model: r.Native.Model, Steps: int64(max(1, r.Budget.Steps)), Rows: r.Data.Prompts, Run: "run",
		Paths: verl.Paths{Train: in("train"), Val: in("val"), Tools: in("tools"), Reward: in("reward"), Rollouts: in("rollouts"), Validation: in("validation"),
			Checkpoints: in("checkpoints"), JSONL: in("jsonl"), Events: in("events"), Output: in("hydra"), RayTemp: in("ray")},
	})}
	for _, v := range verl.CheckSettings(subject) {
		if isDropped(v.Key) {
			continue
		}
		if name, ok := renamed[v.Key]; ok {
			v.Key = name
		}
		c.list = append(c.list, v)
	}
}

func (c *checks) environment() {
	if c.r.Environment.Form != "tools" && !strings.Contains(strings.ToLower(c.r.Native.Model), "instruct") {
		c.add(native.Note, "form", "", "", "episodes are played in the text form by Alidade's own loop against rLLM's gateway", "")
	}
	if c.r.Native.Nodes > 1 || c.r.Native.RayAddress != "" {
		c.add(native.Refuse, "nodes", "native.nodes", strconv.Itoa(max(1, c.r.Native.Nodes)), "the flow calls Alidade on loopback, so that rLLM runs on one node", "native.nodes 1 without native.ray_address")
	}
}

func (c *checks) devices() {
	if len(c.m.DeviceGiB) == 0 && c.v["emulated"] == "" {
		c.add(native.Refuse, "devices", "trainer.devices", strconv.Itoa(c.r.Trainer.Devices), "rLLM with verl needs a CUDA device, and this run would get none", "a machine with a GPU")
	}
	if tp := c.r.Native.TensorParallel; tp > 1 && c.r.Trainer.Devices%tp != 0 {
		c.add(native.Refuse, "parallel", "native.tensor_parallel", strconv.Itoa(tp), "does not divide the devices", fmt.Sprintf("a divisor of trainer.devices, %d", c.r.Trainer.Devices))
	}
}

// overrides refuses the user's keys that the recipe sets already.
func (c *checks) overrides(settings []native.Setting) {
	for _, k := range names(c.r.Native.Overrides) {
		key := strings.TrimLeft(k, "+~")
		for _, s := range settings {
			if s.Key == key && s.From != "native.overrides" {
				c.add(native.Refuse, "override", "native.overrides", key, "the recipe sets it by "+s.From, "change "+s.From)
			}
		}
		if name, ok := renamed[key]; ok {
			c.add(native.Refuse, "dead-key", "native.overrides", key, "rLLM's own key wins over verl's", name)
		}
	}
}

// resolved says what the algorithm came down to, so that an arm is never just
// "GRPO".
func resolved(settings []native.Setting, r *ablation.Recipe) string {
	get := func(key string) string { return valueOf(settings, key) }
	std := "not divided"
	if get("rllm.algorithm.norm_adv_by_std_in_grpo") == "True" {
		std = "divided by the group's SD (population)"
	}
	s := fmt.Sprintf("advantage %s, %s; ratio clipped to 1-%s…1+%s; aggregation %s", get("rllm.algorithm.adv_estimator"), std,
		get("rllm.algorithm.eps_clip"), get("rllm.algorithm.eps_clip_high"), get("rllm.algorithm.loss_agg_mode"))
	if beta := get("rllm.algorithm.kl_beta"); beta != "" {
		s += "; KL in the loss × " + beta
	} else {
		s += "; no KL"
	}
	if mode := get("rllm.algorithm.loss_fn"); mode != "" {
		s += "; loss " + mode
	}
	return s + "; over-long " + overlongOf(r, 0).How
}
