package ablation

// nativePresets are the recipes that train language models. Published values
// stand as they were published; docs/presets.md says of each which are not.
func nativePresets() []Preset {
	return []Preset{
		trlTiny(),
		star("star-1.5b", "STAR 1.5B", "Qwen/Qwen2.5-1.5B-Instruct", "CURRICULUM", "CURRICULUM 34.9 % success on the test set, the best reward at this scale; MACRO with ARPO reached 37.5", nil),
		star("star-3b", "STAR 3B", "Qwen/Qwen2.5-3B-Instruct", "CURRICULUM", "CURRICULUM 49.9 % success on the test set", nil),
		star("star-7b", "STAR 7B", "Qwen/Qwen2.5-7B-Instruct", "SUM", "SUM 62.8 % success on the test set", func(r *Recipe) {
			r.Native.TensorParallel, r.Native.Offload = 2, "optimizer"
		}),
		starSFT("star-sft-1.5b", "STAR SFT 1.5B", "Qwen/Qwen2.5-1.5B-Instruct", 6, "6.9"),
		starSFT("star-sft-3b", "STAR SFT 3B", "Qwen/Qwen2.5-3B-Instruct", 4, "12.2"),
		starSFT("star-sft-7b", "STAR SFT 7B", "Qwen/Qwen2.5-7B-Instruct", 4, "19.7"),
		openAgentRL("open-agentrl-grpo-tcr", "GRPO-TCR", "token-level loss, clip-higher, over-long reward", func(r *Recipe) {
			r.Algorithm.Kind = "grpo_tcr"
		}, "token-mean, clip 0.2 and 0.28, dual clip 10, KL off, over-long buffer 4,096 with factor 1 (script)", "70.93 on AIME24 and 68.13 on AIME25, avg@32, within 450 steps; the best model took an upper clip of 0.315"),
		openAgentRL("open-agentrl-grpo-t", "GRPO-T", "token-level loss alone", func(r *Recipe) {
			r.Algorithm.Kind, r.Algorithm.ClipHigh, r.Algorithm.ClipC, r.Algorithm.Overlong = "grpo", 0.2, 0, "zero"
			r.Algorithm.UseKLLoss, r.Algorithm.KLLossCoef = true, 0.001
			r.Native.MaxResponse, r.Environment.MaxTokens = 16384, 2560+16384
		}, "token-mean, clip 0.2, KL 0.001, response 16,384 (paper)", "54.7 on AIME24 and 40.93 on AIME25, avg@32"),
		openAgentRL("open-agentrl-grpo-scr", "GRPO-SCR", "sequence-level ratio and loss, clip-higher, over-long reward", func(r *Recipe) {
			r.Algorithm.Kind, r.Algorithm.LossAgg = "grpo_scr", "seq-mean-token-mean"
			r.Algorithm.ClipLow, r.Algorithm.ClipHigh = 3e-4, 4e-4
		}, "sequence-level ratio and loss, clip 0.0003 and 0.0004, over-long reward (paper)", "token-level beats it by 3.95 on AIME24 and 3.86 on AIME25 at 4B, about equal at 7B"),
		dapoPreset(), drGRPOPreset(), gspoPreset(), arpoPreset(),
	}
}

// nativeBase is what the recipes of language models have in common.
func nativeBase(name, kind, model, version string) Recipe {
	r := quickRecipe()
	r.Preset = name
	r.Trainer = Trainer{Kind: kind, Devices: 8, MemoryGiB: 70, Kernel: "auto"}
	r.Data = Data{Prompts: 1000, Mix: "4:3:3", Seed: 1, Plans: "solver"}
	r.SFT.Traces, r.SFT.Control, r.SFT.Noise = 0, false, 0
	r.SFT.FilterSuccess, r.SFT.FilterFormat = true, true
	r.Environment = Environment{Kind: "travel", World: "full", Cities: 312, BudgetFactor: 1, MaxTurns: 60, MaxTokens: 30720, Form: "tools"}
	r.Native = Native{Model: model, Version: version, Precision: "auto", Engine: "vllm", Checkpointing: true, MaxPrompt: 4096, EngineMemory: 0.6, KeepCheckpoints: 3}
	r.Evaluation = Evaluation{Every: 31, Queries: 180, Samples: 1, Temperature: 0.6}
	return r
}

// The sources of published values.
const (
	starPaper = "Agent-STAR, arXiv 2603.21972, Tables 1 and 4 and its public configurations"
	oarPaper  = "Open-AgentRL, arXiv 2510.11701, and its script grpo_tcr_qwen3_4b.sh"
	dapoPaper = "DAPO, arXiv 2503.14476, and verl's DAPO recipe"
	arpoPaper = "ARPO's repository and its scripts"
)

// sandboxNotes hold for every recipe that was published for another task or
// another copy of this one.
func sandboxNotes(more ...string) []string {
	return append([]string{
		"world full is generated: TravelPlanner's own tables are not part of the product; with them, environment.world: real and environment.tables",
	}, more...)
}

func star(name, title, model, reward, result string, change func(*Recipe)) Preset {
	r := nativeBase(name, "verl", model, "0.8")
	r.Reward.Kind = reward
	r.Algorithm = Algorithm{
		Kind: "grpo", GroupSize: 8, PromptsPerStep: 32, LR: 2e-6, ClipLow: 0.2, ClipHigh: 0.28, Minibatches: 1,
		StdNorm: true, LossAgg: "token-mean", Temperature: 1, GradClip: 1, Overlong: "mask",
	}
	r.Budget = Budget{Steps: 155, CheckpointEvery: 31}
	if change != nil {
		change(&r)
	}
	return Preset{
		Name: name, Title: title, Help: "the STAR recipe at this scale, on verl: name the folder of an SFT model in native.model; not a reproduction, its RL code is unpublished", Recipe: r,
		Published: []string{starPaper, "GRPO without KL, higher upper clip; 1,000 prompts at 4:3:3, 5 epochs, group of 8, learning rate 2e-6, temperature 1",
			"context 30K in training, tool budget 60; over-long rollouts out of the loss and in the statistics; a format error pays 0",
			"reward " + reward + "; CURRICULUM is SUM in epochs 1 and 2, MACRO in 3 and 4, SUCCESS in 5", result,
			"8 A100 of 80 GB for 1.5B and 3B, 16 for 7B; the model of the best validation is kept"},
		Inferred: sandboxNotes("32 prompts a step: from GPU-hours, minutes a step and epochs; hence 155 steps, one update each, with which no ratio leaves 1 and the clip never acts: algorithm.minibatches for more",
			"upper clip 0.28, DAPO's, as the published value is unknown", "token-mean, verl's default at the time",
			"tools in the model's own format instead of ReAct tags; rLLM, which it was trained with, masks over-long rollouts itself, here an agent loop of ours does"),
		Unknown: []string{"both clip values, loss aggregation, dual clip, mini-batch", "seeds and spread: one run a cell", "weight decay, warm-up, parallelism"},
	}
}

func starSFT(name, title, model string, epochs float64, success string) Preset {
	r := nativeBase(name, "llamafactory", model, "")
	r.Native.Engine, r.Native.EngineMemory = "", 0
	r.Native.MaxPrompt, r.Native.MaxResponse = 4096, 20480-4096
	r.SFT = SFT{Traces: 1198, Epochs: epochs, LR: 5e-6, Batch: 32, FilterSuccess: true, FilterFormat: true}
	r.Environment.Form = "react"
	r.Environment.MaxTokens = 20480
	r.Budget = Budget{CheckpointEvery: 100}
	return Preset{
		Name: name, Title: title, Help: "supervised fine-tuning by LLaMA-Factory on traces of our expert, as STAR starts from", Recipe: r,
		Published: []string{starPaper, "learning rate 5e-6, batch 32, warm-up 0.1, cosine, cut-off 20,480 tokens, full fine-tuning",
			"1,198 successful trajectories of 5,000 queries by DeepSeek-V3.2-Exp-Thinking, 9.2 calls and 10.3K tokens on average", success + " % success on the test set after SFT"},
		Inferred: sandboxNotes("the traces are our exact solver's, played with tools: always successful, with short thoughts; a teacher's are longer", "bf16, gradient checkpointing"),
		Unknown:  []string{"the traces themselves as they were filtered", "seeds", "deepspeed stage"},
	}
}

func openAgentRL(name, title, what string, change func(*Recipe), settings, result string) Preset {
	r := nativeBase(name, "verl", "Gen-Verse/Qwen3-4B-RA-SFT", "open-agentrl")
	r.Data.Prompts = 9600
	r.Native.MaxPrompt, r.Native.MaxResponse = 2560, 20480
	r.Native.EngineMemory, r.Native.TensorParallel, r.Native.SequenceParallel, r.Native.Offload = 0.75, 4, 4, "all"
	r.Native.Overrides = map[string]string{"actor_rollout_ref.rollout.val_kwargs.top_p": "0.6"}
	r.Environment.MaxTurns, r.Environment.MaxTokens = 16, 2560+20480
	r.Reward.Kind = "SUCCESS"
	r.Algorithm = Algorithm{
		Kind: "grpo_tcr", GroupSize: 16, PromptsPerStep: 64, LR: 1e-6, ClipLow: 0.2, ClipHigh: 0.28, ClipC: 10, Minibatches: 4, StdNorm: true,
		LossAgg: "token-mean", Temperature: 1, GradClip: 1, Overlong: "shape", OverlongBuffer: 4096, OverlongPenalty: 1,
	}
	r.Budget = Budget{Steps: 450, CheckpointEvery: 30}
	r.Evaluation = Evaluation{Every: 10, Queries: 64, Samples: 32, Temperature: 1}
	change(&r)
	return Preset{
		Name: name, Title: "Open-AgentRL " + title, Help: what + "; on the fork that published it", Recipe: r,
		Published: []string{oarPaper, settings, "64 prompts of 16 rollouts, mini-batch 16, learning rate 1e-6, gradient clip 1, prompt 2,560, 16 turns, 3 epochs",
			"validation of 32 samples at temperature 1 and top-p 0.6; saved every 30 steps, tested every 10; 8 A100 of 80 GB, TP 4, SP 4, engine memory 0.75", result},
		Inferred: sandboxNotes("the travel sandbox instead of mathematics with a code interpreter; reward SUCCESS instead of ±1 with a turn term, which is dead in the script's combination",
			"9,600 prompts and 450 steps are 3 epochs; published are 28.5K prompts", "tool results up to 30,000 characters; the script leaves 256", "dumps are written; the script makes the folders and does not name them"),
		Unknown: []string{"wall-clock time", "group size, temperature and KL of GRPO-TCR in the paper: they come from the script", "seeds, error bars"},
	}
}

func dapoPreset() Preset {
	r := nativeBase("dapo", "verl", "Qwen/Qwen2.5-7B-Instruct", "0.9")
	r.Data.Prompts = 8192
	r.Native.MaxPrompt, r.Native.MaxResponse = 2048, 20480
	r.Native.TensorParallel, r.Native.SequenceParallel, r.Native.Offload = 4, 8, "all"
	r.Native.WarmupSteps, r.Native.WeightDecay = 10, 0.1
	r.Environment.MaxTokens = 2048 + 20480
	r.Reward.Kind = "SUCCESS"
	r.Algorithm = Algorithm{
		Kind: "dapo", GroupSize: 16, PromptsPerStep: 512, LR: 1e-6, ClipLow: 0.2, ClipHigh: 0.28, ClipC: 10, Minibatches: 16, StdNorm: true,
		LossAgg: "token-mean", Temperature: 1, GradClip: 1, Overlong: "shape", OverlongBuffer: 4096, OverlongPenalty: 1,
		FilterGroups: true, FilterMetric: "acc", MaxGenBatches: 10,
	}
	r.Budget = Budget{Steps: 160, CheckpointEvery: 20}
	r.Evaluation = Evaluation{Every: 10, Queries: 180, Samples: 1, Temperature: 1}
	r.Native.Overrides = map[string]string{"actor_rollout_ref.rollout.val_kwargs.top_p": "0.7"}
	return Preset{
		Name: "dapo", Title: "DAPO", Help: "decoupled clip and dynamic sampling, in the trainer itself from verl 0.9 on; compare its arms by tokens, not by steps", Recipe: r,
		Published: []string{dapoPaper, "512 prompts of 16 rollouts, 16 updates a step, clip 0.2 and 0.28, dual clip 10, token-mean, no KL, learning rate 1e-6, weight decay 0.1, warm-up 10 steps (paper: 20)",
			"prompt 2,048, response 20,480 of which 4,096 are the buffer, factor 1; dynamic sampling by acc, at most 10 rounds", "50 on AIME24 avg@32 with Qwen2.5-32B base against 30 of naive GRPO; 52 in verl's reproduction on 128 GPUs"},
		Inferred: sandboxNotes("Qwen2.5-7B-Instruct on 8 devices instead of 32B base on 128", "the travel sandbox instead of mathematics; SUCCESS as the reward", "8,192 prompts, 160 steps are 10 epochs before dynamic sampling",
			"verl 0.9's built-in filter: it has no bound on rounds, and does not sample three times the batch at once as the recipe does"),
		Unknown: []string{"behaviour with tools: published without", "seeds"},
	}
}

func drGRPOPreset() Preset {
	p := star("dr-grpo", "Dr. GRPO", "Qwen/Qwen2.5-3B-Instruct", "CURRICULUM", "", nil)
	r := p.Recipe
	r.Algorithm.Kind, r.Algorithm.StdNorm, r.Algorithm.LossAgg, r.Algorithm.Overlong = "dr_grpo", false, "seq-mean-token-sum-norm", "zero"
	r.Algorithm.ClipHigh = 0.2
	return Preset{
		Name: "dr-grpo", Title: "Dr. GRPO", Help: "no division by the group's SD, a constant divisor instead of the length; the rest is STAR's 3B recipe", Recipe: r,
		Published: []string{"Dr. GRPO, arXiv 2503.20783, as verl documents it", "advantage R minus the group's mean; sum over tokens divided by a constant, the longest response; KL off"},
		Inferred:  sandboxNotes("everything else is the preset star-3b: model, batch, learning rate, prompts, steps", "clip 0.2 on both sides; over-long rollouts stay in the loss"),
		Unknown:   []string{"behaviour with tools and at this length: published for short mathematics"},
	}
}

func gspoPreset() Preset {
	p := star("gspo", "GSPO", "Qwen/Qwen2.5-3B-Instruct", "CURRICULUM", "", nil)
	r := p.Recipe
	a := &r.Algorithm
	a.Kind, a.LossAgg, a.ClipLow, a.ClipHigh, a.ClipC, a.GroupSize, a.Minibatches, a.Overlong = "gspo", "seq-mean-token-mean", 3e-4, 4e-4, 10, 16, 4, "zero"
	return Preset{
		Name: "gspo", Title: "GSPO", Help: "ratio, clip and loss of whole sequences; the rest is STAR's 3B recipe", Recipe: r,
		Published: []string{"GSPO, arXiv 2507.18071, and verl's scripts", "sequence ratio, clip 3e-4 and 4e-4, mean over tokens then over sequences, no KL; dual clip 10 and 16 rollouts in verl's scripts"},
		Inferred:  sandboxNotes("everything else is the preset star-3b", "4 updates a step: with a single one no ratio ever leaves 1", "over-long rollouts stay in the loss"),
		Unknown:   []string{"behaviour with tools at this scale: Uni-Agent reports 22.2 to 36.8 on R2E-Gym with a 30B model"},
	}
}

func arpoPreset() Preset {
	r := nativeBase("arpo", "verl", "Qwen/Qwen2.5-7B-Instruct", "arpo")
	r.Data.Prompts = 8192
	r.Native.MaxPrompt, r.Native.MaxResponse, r.Native.TensorParallel, r.Native.Offload = 4096, 16384, 2, "all"
	r.Environment.MaxTurns, r.Environment.MaxTokens, r.Environment.Form = 16, 4096+16384, "react"
	r.Reward.Kind = "MACRO"
	r.Algorithm = Algorithm{
		Kind: "arpo", GroupSize: 16, PromptsPerStep: 128, LR: 1e-6, ClipLow: 0.2, ClipHigh: 0.2, Minibatches: 8, StdNorm: true, LossAgg: "token-mean",
		Temperature: 1, GradClip: 1, Overlong: "zero", InitialRollouts: 8, BeamSize: 2, BranchProb: 0.5, EntropyWeight: 0.2,
	}
	r.Budget = Budget{Steps: 128, CheckpointEvery: 5}
	r.Evaluation = Evaluation{Every: 5, Queries: 180, Samples: 1, Temperature: 1}
	return Preset{
		Name: "arpo", Title: "ARPO", Help: "rollouts that branch where the entropy rises after a tool result; on the fork that published it", Recipe: r,
		Published: []string{arpoPaper, "16 rollouts of which 8 start from the prompt, beam 2, branch probability 0.5, entropy weight 0.2; 128 prompts, mini-batch 16, learning rate 1e-6, 2 epochs, 8 GPUs",
			"prompt 1,536 and response 4,096, tool limit 3; saved and tested every 5 steps", "STAR's Table 4: 37.5, 47.5 and 58.3 % at 1.5B, 3B and 7B, at 1.2 to 1.5 times the GPU-hours of GRPO"},
		Inferred: sandboxNotes("prompt 4,096, response 16,384 and 16 turns: a plan takes about nine calls and ten thousand tokens", "the published KL loss has weight 0, which costs a reference pass and changes nothing: left out",
			"one tool with the tag tool_call instead of search and python", "8,192 prompts and 128 steps are 2 epochs"),
		Unknown: []string{"STAR's own ARPO settings", "seeds", "the fork's entropy is wrong with dynamic batches, as in verl until 0.4"},
	}
}

// trlTiny tries the whole path out on a processor: a model made on the spot.
// The settings are those of examples/trl-tiny.yaml.
func trlTiny() Preset {
	r := quickRecipe()
	r.Preset = "trl-tiny"
	r.Trainer = Trainer{Kind: "trl", Devices: 1, Kernel: "auto"}
	r.Native = Native{Model: "tiny", MaxPrompt: 600, MaxResponse: 320, MicroBatch: 8}
	r.Data.Prompts = 24
	r.SFT.Traces, r.SFT.Epochs, r.SFT.LR, r.SFT.Batch, r.SFT.Noise, r.SFT.Control = 24, 8, 0.004, 4, 0, false
	r.Reward.Kind = "SUM"
	a := &r.Algorithm
	a.GroupSize, a.PromptsPerStep, a.LR, a.Minibatches, a.Overlong, a.OverlongBuffer = 4, 4, 0.001, 1, "shape", 300
	r.Environment = Environment{Kind: "travel", World: "small", Cities: 8, Days: 3, BudgetFactor: 1, MaxTurns: 12, MaxTokens: 8192, Form: "tools"}
	r.Budget = Budget{Steps: 20, CheckpointEvery: 5}
	r.Evaluation.Every, r.Evaluation.Queries, r.Evaluation.Samples = 10, 4, 1
	return Preset{
		Name: "trl-tiny", Title: "TRL, tiny model", Help: "a model of 0.4 million parameters, made on the spot, through TRL on a processor in minutes: it tries the path out and learns to call tools, not to plan", Recipe: r,
		Inferred: []string{"all of it: chosen so that a run ends in minutes without a GPU"},
	}
}
