// Package llamafactory drives LLaMA-Factory for supervised fine-tuning: the
// first stage of a recipe whose reinforcement learning runs elsewhere.
//
// It writes the expert's traces in the ShareGPT form, a configuration in
// YAML, and follows trainer_log.jsonl. The model that comes out is a folder,
// which a recipe of another kind names in native.model.
package llamafactory

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"alidade/ablation"
	"alidade/trainer/native"
)

// Adapter drives LLaMA-Factory. It is stateless.
type Adapter struct{}

var (
	_ native.Adapter = Adapter{}
	_ native.Naming  = Adapter{}
)

// Kind implements native.Adapter.
func (Adapter) Kind() string { return "llamafactory" }

const howToInstall = "pip install llamafactory in an environment of yours, and name its interpreter in native.python"

const probeScript = `
import importlib.metadata as m, json, platform
out = {"python": platform.python_version()}
for name in ("llamafactory", "torch", "transformers", "deepspeed", "peft", "liger-kernel"):
    try:
        out[name] = m.version(name)
    except m.PackageNotFoundError:
        pass
print(json.dumps(out))
`

// Probe implements native.Adapter.
func (Adapter) Probe(ctx context.Context, python string) (native.Versions, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, python, "-c", probeScript)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	var v native.Versions
	err := cmd.Run()
	if err == nil {
		err = json.Unmarshal(stdout.Bytes(), &v)
	}
	if err == nil && v["llamafactory"] == "" {
		err = errors.New("no package llamafactory")
	}
	if err != nil {
		return nil, &native.Missing{Kind: "llamafactory", Python: python, How: howToInstall, Err: err}
	}
	return v, nil
}

// Check implements native.Adapter.
func (Adapter) Check(r ablation.Recipe, v native.Versions, m native.Machine) []native.Verdict {
	var out []native.Verdict
	add := func(level, code, key, value, text, fix string) {
		out = append(out, native.Verdict{Level: level, Code: code, Key: key, Value: value, Text: text, Fix: fix})
	}
	n := &r.Native
	if r.Budget.Steps > 0 {
		add(native.Refuse, "no-rl", "budget.steps", fmt.Sprint(r.Budget.Steps), "LLaMA-Factory fine-tunes on traces here, and does nothing else", "budget.steps: 0")
	}
	if r.SFT.Traces == 0 {
		add(native.Refuse, "no-traces", "sft.traces", "0", "there is nothing to learn from", "sft.traces of at least 1")
	}
	if n.Model == "tiny" {
		add(native.Refuse, "model", "native.model", "tiny", "the made-up model is for trainer trl", "a Hugging Face name or a folder")
	}
	if _, ok := template(r); !ok {
		add(native.Refuse, "template", "native.model", n.Model, "the chat template that belongs to this model is not known", "template in native.overrides, by LLaMA-Factory's name, such as qwen")
	}
	if n.Version != "" && v["llamafactory"] != "" && n.Version != v["llamafactory"] {
		add(native.Refuse, "version", "native.version", n.Version, "the installed LLaMA-Factory is "+v["llamafactory"], "native.version: "+v["llamafactory"])
	}
	devices, micro := max(1, r.Trainer.Devices), max(1, n.MicroBatch)
	if r.SFT.Batch%(devices*micro) != 0 {
		add(native.Refuse, "batch-sizes", "sft.batch", fmt.Sprint(r.SFT.Batch), fmt.Sprintf("%d traces do not divide by %d devices × %d traces a pass", r.SFT.Batch, devices, micro), fmt.Sprintf("a multiple of %d", devices*micro))
	}
	if k := len(m.DeviceGiB); k > 0 && devices > k {
		add(native.Refuse, "devices", "trainer.devices", fmt.Sprint(devices), fmt.Sprintf("%d devices are there", k), fmt.Sprintf("up to %d", k))
	} else if k == 0 {
		add(native.Warn, "devices", "trainer.devices", fmt.Sprint(devices), "there is no GPU: a model of a billion parameters takes days", "a machine with a GPU")
	}
	if usesDeepSpeed(r) && v["llamafactory"] != "" && v["deepspeed"] == "" {
		add(native.Refuse, "deepspeed", "native.offload", n.Offload, "several devices, or offloading, need the package deepspeed", "install it")
	}
	if n.LoraRank > 0 {
		add(native.Warn, "lora", "native.lora_rank", fmt.Sprint(n.LoraRank), "the result is an adapter: trainers of other kinds want it merged into the model", "llamafactory-cli export, or native.lora_rank: 0")
	}
	if r.SFT.Control {
		add(native.Note, "control", "sft.control", "true", "the control belongs to reinforcement learning and is left out", "")
	}
	for key, value := range n.Overrides {
		if _, ours := ownKeys[key]; ours {
			add(native.Refuse, "override-conflict", key, value, "the recipe sets it by "+ownKeys[key], "change "+ownKeys[key]+" instead")
		}
	}
	add(native.Note, "settings", "", "", fmt.Sprintf("%s of all messages but prompts and results; learning rate %g, cosine with warm-up 0.1; %g epochs; batch %d; cut at %d tokens", tuning(r), r.SFT.LR, r.SFT.Epochs, r.SFT.Batch, cutoff(r)), "")
	return out
}

// ownKeys are what the recipe says elsewhere.
var ownKeys = map[string]string{
	"model_name_or_path": "native.model", "learning_rate": "sft.lr", "num_train_epochs": "sft.epochs", "cutoff_len": "native.max_response_tokens",
	"per_device_train_batch_size": "native.micro_batch", "gradient_accumulation_steps": "sft.batch", "output_dir": "the run's folder", "dataset": "sft.traces",
	"dataset_dir": "sft.traces", "lora_rank": "native.lora_rank", "finetuning_type": "native.lora_rank", "seed": "the run's seed",
}

func tuning(r ablation.Recipe) string {
	if r.Native.LoraRank > 0 {
		return fmt.Sprintf("LoRA of rank %d", r.Native.LoraRank)
	}
	return "full fine-tuning"
}

// cutoff is the longest trace in tokens; LLaMA-Factory cuts the rest.
func cutoff(r ablation.Recipe) int {
	prompt := r.Native.MaxPrompt
	if prompt == 0 {
		prompt = 2048
	}
	if r.Native.MaxResponse > 0 {
		return prompt + r.Native.MaxResponse
	}
	return max(prompt+1, r.Environment.MaxTokens)
}

func usesDeepSpeed(r ablation.Recipe) bool {
	return r.Trainer.Devices > 1 || r.Native.Offload == "all" || r.Native.Offload == "optimizer"
}

// template is LLaMA-Factory's name of the model's chat template.
func template(r ablation.Recipe) (string, bool) {
	if t := r.Native.Overrides["template"]; t != "" {
		return t, true
	}
	name := strings.ToLower(r.Native.Model)
	for _, t := range []struct{ part, name string }{
		{"qwen3", "qwen3"}, {"qwen2", "qwen"}, {"qwen1", "qwen"}, {"llama-3", "llama3"}, {"llama3", "llama3"}, {"mistral", "mistral"}, {"gemma-2", "gemma2"}, {"deepseek", "deepseek3"},
	} {
		if strings.Contains(name, t.part) {
			return t.name, true
		}
	}
	return "", false
}

// Name implements native.Naming: the driver puts sft/ before it.
func (Adapter) Name(name string) (string, bool) {
	switch name {
	case "lr":
		return "sft/lr", true
	case "loss", "eval_loss", "accuracy", "epoch", "throughput", "total_tokens", "vram_allocated", "vram_reserved":
		return "sft/" + name, true
	}
	return "", false
}
