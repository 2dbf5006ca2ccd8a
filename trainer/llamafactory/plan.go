package llamafactory

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"alidade/ablation"
	"alidade/trainer/native"
)

const (
	datasetName = "alidade"
	configFile  = "sft.yaml"
)

// Plan implements native.Adapter. Fine-tuning is the only stage.
func (Adapter) Plan(j native.Job) (native.Plan, error) {
	if j.Stage != native.StageSFT {
		return native.Plan{}, nil
	}
	r := j.Spec.Recipe
	files, n, err := datasetFiles(j.Data.Traces, j.Env.Tools, r.Environment.Form == "tools")
	if err != nil {
		return native.Plan{}, err
	}
	if n == 0 {
		return native.Plan{}, errors.New("no trace is left to learn from: see sft.filter_success and sft.filter_format")
	}
	out := j.Out
	if out == "" {
		out = filepath.Join(j.Dir, "model")
	}
	settings := Settings(r, j, out)
	files[configFile] = writeConfig(settings)
	if usesDeepSpeed(r) {
		files["deepspeed.json"] = deepSpeed(r)
	}
	env := []string{"PYTHONUNBUFFERED=1", "WANDB_DISABLED=true", "TOKENIZERS_PARALLELISM=false"}
	if r.Trainer.Devices > 1 {
		env = append(env, "FORCE_TORCHRUN=1", "NPROC_PER_NODE="+strconv.Itoa(r.Trainer.Devices))
	}
	return native.Plan{
		Files: files, Env: env, Resolved: settings,
		Argv:     []string{filepath.Join(filepath.Dir(j.Python), "llamafactory-cli"), "train", filepath.Join(j.Dir, configFile)},
		Sources:  []native.Source{LogSource(filepath.Join(out, "trainer_log.jsonl"))},
		Finished: finished(out),
	}, nil
}

// Settings says what a recipe becomes in LLaMA-Factory's configuration, in
// order. The recipe's native.overrides come last.
func Settings(r ablation.Recipe, j native.Job, out string) []native.Setting {
	var list []native.Setting
	set := func(key string, value any, from string) {
		list = append(list, native.Setting{Key: key, Value: fmt.Sprint(value), From: from})
	}
	chat, _ := template(r)
	devices, micro := max(1, r.Trainer.Devices), max(1, r.Native.MicroBatch)
	set("model_name_or_path", j.Model, "native.model")
	set("stage", "sft", "")
	set("do_train", true, "")
	if r.Native.LoraRank > 0 {
		set("finetuning_type", "lora", "native.lora_rank")
		set("lora_rank", r.Native.LoraRank, "native.lora_rank")
	} else {
		set("finetuning_type", "full", "native.lora_rank")
	}
	set("dataset_dir", j.Dir, "sft.traces")
	set("dataset", datasetName, "sft.traces")
	set("template", chat, "native.model")
	set("cutoff_len", cutoff(r), "native.max_response_tokens")
	set("overwrite_cache", true, "")
	set("preprocessing_num_workers", max(1, min(16, j.Spec.Threads)), "")
	set("output_dir", out, "")
	set("logging_steps", 1, "")
	set("save_strategy", "no", "")
	set("report_to", "none", "")
	set("per_device_train_batch_size", micro, "native.micro_batch")
	set("gradient_accumulation_steps", max(1, r.SFT.Batch/(devices*micro)), "sft.batch")
	set("learning_rate", r.SFT.LR, "sft.lr")
	set("num_train_epochs", r.SFT.Epochs, "sft.epochs")
	set("lr_scheduler_type", "cosine", "")
	if major(j.Versions["transformers"]) >= 5 { // a share is written as warm-up steps below 1
		set("warmup_steps", 0.1, "")
	} else {
		set("warmup_ratio", 0.1, "")
	}
	set("bf16", r.Native.Precision != "fp32" && len(j.Machine.DeviceGiB) > 0, "native.precision")
	set("disable_gradient_checkpointing", !r.Native.Checkpointing, "native.gradient_checkpointing")
	set("ddp_timeout", 180000000, "")
	set("seed", j.Spec.Seed%(1<<31), "seed")
	set("data_seed", j.Spec.Seed%(1<<31), "seed")
	if usesDeepSpeed(r) {
		set("deepspeed", filepath.Join(j.Dir, "deepspeed.json"), "native.offload")
	}
	return withOverrides(list, r.Native.Overrides)
}

func withOverrides(list []native.Setting, own map[string]string) []native.Setting {
	keys := make([]string, 0, len(own))
	for k := range own {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		list = slices.DeleteFunc(list, func(s native.Setting) bool { return s.Key == k })
		list = append(list, native.Setting{Key: k, Value: own[k], From: "native.overrides"})
	}
	return list
}

func major(version string) int {
	text, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}

// writeConfig writes settings as YAML. Numbers with an exponent get a point:
// to YAML 1.1, which Python reads, 5e-06 is a text and 5.0e-06 a number.
func writeConfig(settings []native.Setting) []byte {
	var b bytes.Buffer
	for _, s := range settings {
		fmt.Fprintf(&b, "%s: %s\n", s.Key, scalar(s.Value))
	}
	return b.Bytes()
}

func scalar(s string) string {
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		mantissa, exponent, ok := strings.Cut(s, "e")
		if ok && !strings.Contains(mantissa, ".") {
			return mantissa + ".0e" + exponent
		}
		return s
	}
	if s == "true" || s == "false" {
		return s
	}
	return strconv.Quote(s)
}

// deepSpeed shards optimizer and gradients, and the weights too where the
// recipe asks for all to be kept out of the devices.
func deepSpeed(r ablation.Recipe) []byte {
	stage := 2
	if r.Native.Offload == "all" {
		stage = 3
	}
	zero := map[string]any{"stage": stage, "overlap_comm": true, "contiguous_gradients": true}
	if r.Native.Offload == "optimizer" || r.Native.Offload == "all" {
		zero["offload_optimizer"] = map[string]any{"device": "cpu", "pin_memory": true}
	}
	if stage == 3 {
		zero["offload_param"] = map[string]any{"device": "cpu", "pin_memory": true}
		zero["stage3_gather_16bit_weights_on_model_save"] = true
	}
	src, err := json.MarshalIndent(map[string]any{
		"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "gradient_clipping": "auto",
		"zero_allow_untested_optimizer": true, "bf16": map[string]any{"enabled": "auto"}, "zero_optimization": zero,
	}, "", "  ")
	if err != nil {
		return nil // maps of numbers and texts cannot fail
	}
	return append(src, '\n')
}

// finished wants a model beside the exit code.
func finished(out string) func(int64, int) (bool, string) {
	return func(last int64, exit int) (bool, string) {
		if exit != 0 {
			return false, fmt.Sprintf("it ended with exit code %d after step %d", exit, last)
		}
		for _, name := range []string{"config.json", "adapter_config.json"} {
			if _, err := os.Stat(filepath.Join(out, name)); err == nil {
				return true, ""
			}
		}
		return false, "it ended with exit code 0 and left no model"
	}
}

// datasetFiles writes the traces and their description as LLaMA-Factory reads
// them.
func datasetFiles(path string, tools []byte, nativeTools bool) (map[string][]byte, int, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, 0, fmt.Errorf("read traces: %w", err)
	}
	var rows []shareRow
	for line := range bytes.Lines(src) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		row, err := ShareGPT(line)
		if err != nil {
			return nil, 0, fmt.Errorf("read traces: %s, trace %d: %w", path, len(rows)+1, err)
		}
		if nativeTools {
			row.Tools = string(tools)
		}
		rows = append(rows, row)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for i := range rows {
		if err := enc.Encode(rows[i]); err != nil {
			return nil, 0, err
		}
	}
	info, err := json.MarshalIndent(map[string]any{datasetName: map[string]any{
		"file_name": "traces.jsonl", "formatting": "sharegpt",
		"columns": map[string]string{"messages": "conversations", "system": "system", "tools": "tools"},
	}}, "", "  ")
	if err != nil {
		return nil, 0, err
	}
	return map[string][]byte{"traces.jsonl": b.Bytes(), "dataset_info.json": append(info, '\n')}, len(rows), nil
}
