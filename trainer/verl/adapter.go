package verl

import (
	"fmt"
	"strings"

	"alidade/ablation"
	"alidade/trainer/native"
)

// Adapter drives verl. It is stateless.
type Adapter struct{}

var (
	_ native.Adapter = Adapter{}
	_ native.Naming  = Adapter{}
)

// Kind implements native.Adapter.
func (Adapter) Kind() string { return "verl" }

// Check implements native.Adapter.
func (Adapter) Check(r ablation.Recipe, v native.Versions, m native.Machine) []native.Verdict {
	p, out := profileFor(r.Native.Version, v)
	o := resolve(&r)
	out = append(out, native.Verdict{Level: native.Note, Code: "objective", Text: o.String()})
	out = append(out, checkRecipe(&r, &o, p, v, m)...)
	subject := &Subject{Profile: p, Module: p.module(o.Filter), Tools: true, Rows: r.Data.Prompts,
		Settings: Settings(r, placeholderSetup(&r, p))}
	out = append(out, checkOverrides(&r, subject.Settings)...)
	return append(out, CheckSettings(subject)...)
}

// placeholderSetup stands for a run that is not there yet.
func placeholderSetup(r *ablation.Recipe, p Profile) Setup {
	s := Setup{Profile: p, Model: r.Native.Model, Steps: int64(max(1, r.Budget.Steps)), Rows: r.Data.Prompts, Run: "run",
		Paths: pathsIn("/attempt/native/rl")}
	spec := ShimSpec{Profile: p, Recipe: *r}
	if !spec.masks() {
		s.Paths.Loops = ""
	}
	return s
}

// checkRecipe says what of the recipe this version of verl cannot do.
func checkRecipe(r *ablation.Recipe, o *objective, p Profile, v native.Versions, m native.Machine) []native.Verdict {
	var out []native.Verdict
	add := func(level, code, key, value, text, fix string) {
		out = append(out, native.Verdict{Level: level, Code: code, Key: key, Value: value, Text: text, Fix: fix})
	}
	if n := len(m.DeviceGiB); v["emulated"] != "" { // the test tool that poses as verl needs none
	} else if n == 0 {
		add(native.Refuse, "devices", "trainer.devices", fmt.Sprint(r.Trainer.Devices), "verl needs a GPU, and none is there", "a machine with a GPU, or trainer trl")
	} else if r.Native.RayAddress == "" && r.Trainer.Devices > n {
		add(native.Refuse, "devices", "trainer.devices", fmt.Sprint(r.Trainer.Devices), fmt.Sprintf("%d devices are there", n), fmt.Sprintf("up to %d", n))
	}
	if r.Native.Nodes > 1 {
		add(native.Warn, "nodes", "native.nodes", fmt.Sprint(r.Native.Nodes), "the environment server listens on loopback of this machine: agents on other nodes do not reach it by themselves", "forward its port to the other nodes, or one node")
	}
	if p.Line == LineARPO && v["verl"] != "" && v["arpo.config"] == "" {
		add(native.Refuse, "arpo-config", "native.version", "arpo", "the fork's folder scripts/config was not found beside its package", "a checkout of the fork, installed with pip install -e")
	}
	if r.Native.Model == "tiny" {
		add(native.Refuse, "model", "native.model", "tiny", "the made-up model is for trainer trl", "a Hugging Face name or a folder")
	}
	switch e := r.Native.Engine; {
	case e == "hf":
		add(native.Refuse, "engine", "native.engine", e, "agents need an inference engine", "vllm or sglang")
	case e == "sglang" && v["verl"] != "" && v["sglang"] == "":
		add(native.Refuse, "engine", "native.engine", e, "the package sglang is not installed", "install it, or vllm")
	case engine(e) == "vllm" && v["verl"] != "" && v["vllm"] == "":
		add(native.Refuse, "engine", "native.engine", e, "the package vllm is not installed", "install it, or native.engine: sglang")
	}
	if r.Native.Precision == "fp32" {
		add(native.Warn, "precision", "native.precision", "fp32", "verl keeps the weights in fp32 and computes in bf16; it has no switch for more", "native.precision: auto")
	}
	if r.Native.Precision == "bf16" && p.Line < Line06 {
		add(native.Refuse, "precision", "native.precision", "bf16", "this version keeps the weights in fp32", "native.precision: auto")
	}
	if o.Filter && p.DAPORecipe && v["verl"] != "" && v["recipe.dapo"] == "" {
		add(native.Refuse, "filter-groups", "algorithm.filter_groups", "true", "dynamic sampling is the separate recipe.dapo in this version, and it is not installed", "a checkout of verl-recipe on PYTHONPATH, or verl 0.9")
	}
	if o.Filter && p.Fork {
		add(native.Refuse, "filter-groups", "algorithm.filter_groups", "true", "the fork has no dynamic sampling", "algorithm.filter_groups: false")
	}
	out = append(out, checkObjective(r, o, p)...)
	return append(out, checkSandbox(r, p)...)
}

// checkObjective says what of the objective this version changes.
func checkObjective(r *ablation.Recipe, o *objective, p Profile) []native.Verdict {
	var out []native.Verdict
	add := func(level, code, key, value, text, fix string) {
		out = append(out, native.Verdict{Level: level, Code: code, Key: key, Value: value, Text: text, Fix: fix})
	}
	if o.Tree != (p.Line == LineARPO) {
		if o.Tree {
			add(native.Refuse, "tree", "algorithm.kind", "arpo", "branching rollouts are in ARPO's fork alone", "native.version: arpo, or another algorithm")
		} else {
			add(native.Refuse, "tree", "algorithm.kind", r.Algorithm.Kind, "ARPO's fork branches its rollouts whatever the algorithm is called", "algorithm.kind: arpo, or plain verl")
		}
	}
	if o.Overlong == "mask" && !p.AgentLoops {
		add(native.Refuse, "overlong-mask", "algorithm.overlong", "mask", "verl "+p.Name+" cannot leave over-long rollouts out of the loss", "algorithm.overlong: zero or shape, or verl 0.6.1 or later")
	}
	if o.LossScale > 0 && p.Line < Line07 && o.LossScale != responseLimit(r) {
		add(native.Refuse, "loss-scale", "algorithm.loss_scale_factor", fmt.Sprint(o.LossScale), "before 0.7.1 the divisor is the response limit and nothing else", fmt.Sprintf("algorithm.loss_scale_factor: %d, or verl 0.7.1", responseLimit(r)))
	}
	if o.Agg == "token-mean" && p.Line < Line07 {
		add(native.Note, "token-mean", "algorithm.loss_agg_mode", o.Agg, "this version takes the mean over a micro-batch's tokens, later ones over the whole batch's: losses do not compare across that line", "")
	}
	if r.Algorithm.GradClip == 0 {
		add(native.Warn, "grad-clip", "algorithm.grad_clip", "0", "verl always clips; its default of 1 holds", "algorithm.grad_clip: 1")
	}
	if r.Evaluation.Samples > 1 && r.Evaluation.Temperature > 0 {
		add(native.Note, "val-samples", "evaluation.samples", fmt.Sprint(r.Evaluation.Samples), "verl samples as often at every evaluation, not at the first and the last alone", "")
	}
	if p.Line < Line09 {
		add(native.Note, "seed", "seed", "", "the seed orders the data; rollouts have no seed before 0.9", "")
	}
	return out
}

// checkSandbox says what the join to the environment server loses.
func checkSandbox(r *ablation.Recipe, p Profile) []native.Verdict {
	var out []native.Verdict
	failures := r.Environment.ToolFailureRate > 0 || len(r.Environment.FailureRates) > 0
	if failures && !p.AgentData {
		out = append(out, native.Verdict{Level: native.Warn, Code: "failures-stateless", Key: "environment.tool_failure_rate", Value: fmt.Sprint(r.Environment.ToolFailureRate),
			Text: "tools do not know their trajectory in this version: failures come at the given rate, but at other calls each time, and the records do not show them", Fix: "verl 0.7.1 or later"})
	}
	switch tools := r.Environment.Form == "tools"; {
	case tools && p.Line == LineARPO:
		out = append(out, native.Verdict{Level: native.Refuse, Code: "form", Key: "environment.form", Value: "tools",
			Text: "ARPO's fork finds tool calls by their tags in the text", Fix: "environment.form: react"})
	case !tools && p.Line != LineARPO:
		out = append(out, native.Verdict{Level: native.Warn, Code: "form", Key: "environment.form", Value: r.Environment.Form,
			Text: "verl tells the model its tools through the chat template as well, so that they stand in the prompt twice", Fix: "environment.form: tools"})
	}
	if r.SFT.Traces > 0 {
		out = append(out, native.Verdict{Level: native.Note, Code: "sft", Key: "sft.traces", Value: fmt.Sprint(r.SFT.Traces),
			Text: "verl starts from native.model as it is: fine-tune it by a run of trainer llamafactory and name its folder"})
	}
	return out
}

// checkOverrides refuses further settings that the recipe sets elsewhere, and
// secrets.
func checkOverrides(r *ablation.Recipe, settings []native.Setting) []native.Verdict {
	var out []native.Verdict
	for key, value := range r.Native.Overrides {
		name := strings.TrimLeft(key, "+~")
		for _, s := range settings {
			if s.Key == name && s.From != "native.overrides" {
				out = append(out, native.Verdict{Level: native.Refuse, Code: "override-conflict", Key: name, Value: value,
					Text: "the recipe sets it by " + s.From, Fix: "change " + s.From + " instead"})
			}
		}
		if own(name) {
			out = append(out, native.Verdict{Level: native.Refuse, Code: "override-path", Key: name, Value: value,
				Text: "every attempt has a place of its own, which is not to be changed", Fix: "leave it out"})
		}
	}
	return out
}

// own tells whether a key names a place that belongs to an attempt.
func own(key string) bool {
	for _, k := range append([]string{"hydra.run.dir", "trainer.resume_mode", "trainer.resume_from_path"}, ownPaths...) {
		if k == key {
			return true
		}
	}
	return strings.HasSuffix(key, "._temp_dir")
}
