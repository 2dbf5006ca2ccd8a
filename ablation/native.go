package ablation

import (
	"reflect"
	"slices"
	"strings"
)

// NativeKinds are the trainer kinds that drive a framework outside this
// program: a language model is trained by other people's code.
func NativeKinds() []string { return []string{"trl", "verl", "rllm", "llamafactory"} }

// IsNative tells whether the recipe's trainer is one of [NativeKinds].
func (r Recipe) IsNative() bool { return slices.Contains(NativeKinds(), r.Trainer.Kind) }

// Native holds what only trainers of language models need. The meaning of a
// key is the same for every framework; its adapter says what it becomes there.
type Native struct {
	Model   string `json:"model,omitempty"`   // Hugging Face name or folder; tiny = made on the spot from a seed
	Version string `json:"version,omitempty"` // of the framework; "" = the one that is found
	Python  string `json:"python,omitempty"`  // interpreter; "" = the environment that `alidade trainers install` made
	Smoke   string `json:"smoke,omitempty"`   // one-step run before the launch: require (also when empty), skip

	Precision     string  `json:"precision,omitempty"` // auto (also when empty), bf16, fp32
	LoraRank      int     `json:"lora_rank,omitempty"` // 0 = all parameters
	MaxPrompt     int     `json:"max_prompt_tokens,omitempty"`
	MaxResponse   int     `json:"max_response_tokens,omitempty"` // the whole dialogue after the prompt, tool results included
	MicroBatch    int     `json:"micro_batch,omitempty"`         // sequences a device and pass; 0 = dynamic or 1
	Checkpointing bool    `json:"gradient_checkpointing,omitempty"`
	Offload       string  `json:"offload,omitempty"` // to the host: none (also when empty), optimizer, all
	WeightDecay   float64 `json:"weight_decay,omitempty"`
	WarmupSteps   int     `json:"warmup_steps,omitempty"`

	Engine           string  `json:"engine,omitempty"`        // generates rollouts: auto (also when empty), hf, vllm, sglang
	EngineMemory     float64 `json:"engine_memory,omitempty"` // its share of a device's memory; 0 = the framework's default
	TensorParallel   int     `json:"tensor_parallel,omitempty"`
	SequenceParallel int     `json:"sequence_parallel,omitempty"`
	Nodes            int     `json:"nodes,omitempty"`            // 0 = 1; more through a Ray cluster of the user's
	RayAddress       string  `json:"ray_address,omitempty"`      // of that cluster's job server
	KeepCheckpoints  int     `json:"keep_checkpoints,omitempty"` // 0 = all

	Overrides map[string]string `json:"overrides,omitempty"` // the framework's own keys, applied last
}

// IsZero tells whether nothing is set; such a section is left out of JSON.
func (n Native) IsZero() bool {
	if len(n.Overrides) == 0 {
		n.Overrides = nil
	}
	return reflect.ValueOf(n).IsZero()
}

// nativeFields is the form of the section.
var nativeFields = []Field{
	{Key: "native.model", Group: "Language model", Label: "model", Kind: KindString, Ordered: true, Help: "Hugging Face name or folder of a causal language model; tiny is a small one with the shape of Qwen2, made from the data seed without a download, for trying things out"},
	{Key: "native.version", Group: "Language model", Label: "framework version", Kind: KindString, Help: "the version that the recipe was written for, such as 0.7.1; empty takes the one that is installed. Another version than the installed one is refused"},
	{Key: "native.python", Group: "Language model", Label: "Python", Kind: KindString, Help: "interpreter of the environment that has the framework; empty takes the one that `alidade trainers install` made"},
	{Key: "native.smoke", Group: "Language model", Label: "smoke run", Kind: KindEnum, Enum: []string{"require", "skip"}, Help: "one step before the launch, which must give a metric line, a dump and rewards that differ; skip launches without it"},
	{Key: "native.precision", Group: "Language model", Label: "precision", Kind: KindEnum, Enum: []string{"auto", "bf16", "fp32"}, Help: "of parameters in training; auto is bf16 on a GPU and fp32 without"},
	{Key: "native.lora_rank", Group: "Language model", Label: "LoRA rank", Kind: KindInt, Ordered: true, Min: 0, Max: 1024, Help: "train low-rank adapters of this rank; 0 trains all parameters"},
	{Key: "native.max_prompt_tokens", Group: "Language model", Label: "prompt limit", Kind: KindInt, Unit: "tokens", Min: 0, Max: 1000000, Help: "longest prompt; 0 = 2048"},
	{Key: "native.max_response_tokens", Group: "Language model", Label: "response limit", Kind: KindInt, Ordered: true, Unit: "tokens", Min: 0, Max: 1000000, Help: "longest dialogue after the prompt, tool results included; 0 = environment.max_tokens less the prompt limit"},
	{Key: "native.micro_batch", Group: "Language model", Label: "micro-batch", Kind: KindInt, Unit: "sequences", Min: 0, Max: 4096, Help: "sequences a device and pass; does not change the result, only memory and speed; 0 = dynamic where the framework can, else 1"},
	{Key: "native.gradient_checkpointing", Group: "Language model", Label: "gradient checkpointing", Kind: KindBool, Help: "compute activations again in the backward pass: less memory, slower"},
	{Key: "native.offload", Group: "Language model", Label: "offload", Kind: KindEnum, Enum: []string{"none", "optimizer", "all"}, Help: "what is kept in the host's memory between uses"},
	{Key: "native.weight_decay", Group: "Language model", Label: "weight decay", Kind: KindFloat, Ordered: true, Min: 0, Max: 10, Help: "of RL"},
	{Key: "native.warmup_steps", Group: "Language model", Label: "warm-up", Kind: KindInt, Unit: "steps", Min: 0, Max: 100000, Help: "RL steps until the learning rate is reached"},
	{Key: "native.engine", Group: "Language model", Label: "rollout engine", Kind: KindEnum, Enum: []string{"auto", "hf", "vllm", "sglang"}, Help: "what generates the rollouts; auto takes vLLM where it is installed and a GPU is there"},
	{Key: "native.engine_memory", Group: "Language model", Label: "engine's memory", Kind: KindFloat, Min: 0, Max: 1, Help: "share of a device's memory for the rollout engine; 0 = the framework's default"},
	{Key: "native.tensor_parallel", Group: "Language model", Label: "tensor parallel", Kind: KindInt, Unit: "devices", Min: 0, Max: 64, Help: "devices that one copy of the rollout model is spread over; 0 = 1"},
	{Key: "native.sequence_parallel", Group: "Language model", Label: "sequence parallel", Kind: KindInt, Unit: "devices", Min: 0, Max: 64, Help: "devices that share a long sequence in training; 0 = 1"},
	{Key: "native.nodes", Group: "Language model", Label: "nodes", Kind: KindInt, Min: 0, Max: 1024, Help: "machines; more than 1 through a Ray cluster of yours; 0 = 1"},
	{Key: "native.ray_address", Group: "Language model", Label: "Ray cluster", Kind: KindString, Help: "address of your Ray cluster's job server, such as http://head:8265; empty gives each run a Ray of its own"},
	{Key: "native.keep_checkpoints", Group: "Language model", Label: "checkpoints kept", Kind: KindInt, Min: 0, Max: 100000, Help: "the newest so many; 0 keeps all"},
	{Key: "native.overrides", Group: "Language model", Label: "further settings", Kind: KindMap, Help: "the framework's own keys and values, applied last and checked against its version; a key that the recipe sets elsewhere is refused"},
}

// nativeRules are the rules of the kinds that train language models.
func (r Recipe) nativeRules() []FieldError {
	if !r.IsNative() {
		return nil
	}
	var bad []FieldError
	add := func(key, value, problem, allowed string) {
		bad = append(bad, FieldError{Field: key, Value: value, Problem: problem, Allowed: allowed})
	}
	if r.Native.Model == "" {
		add("native.model", "", "missing", "a Hugging Face name such as Qwen/Qwen2.5-1.5B-Instruct, a folder, or tiny")
	}
	if r.Environment.World == "nano" {
		add("environment.world", "nano", "not for trainer "+r.Trainer.Kind, "small, full, real or reference: language models play the text form")
	}
	if r.Native.Nodes > 1 && r.Native.RayAddress == "" {
		add("native.ray_address", "", "missing", "with native.nodes above 1, your Ray cluster's job server, such as http://head:8265")
	}
	for _, k := range sortedKeys(r.Native.Overrides) {
		if strings.TrimSpace(k) != k || k == "" || strings.ContainsAny(k, " \t\n=") {
			add("native.overrides", k, "not a key", "the framework's own key, without a value, such as actor_rollout_ref.rollout.max_num_seqs")
		}
	}
	return bad
}
