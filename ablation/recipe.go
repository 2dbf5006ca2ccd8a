package ablation

// A Recipe is all that a trainer is told, apart from the seed. Its keys are
// the dotted JSON paths ("algorithm.group_size"); [Fields] describes each one
// with type, unit, range, default and help, and is what the study file, the
// New study page and the API validate against.
type Recipe struct {
	Preset      string      `json:"preset,omitempty"` // name of the preset this recipe started from; informative
	Trainer     Trainer     `json:"trainer"`
	Model       Model       `json:"model"`
	Data        Data        `json:"data"`
	SFT         SFT         `json:"sft"`
	Reward      Reward      `json:"reward"`
	Algorithm   Algorithm   `json:"algorithm"`
	Environment Environment `json:"environment"`
	Budget      Budget      `json:"budget"`
	Evaluation  Evaluation  `json:"evaluation"`
	Endpoint    Endpoint    `json:"endpoint,omitzero"` // kind endpoint only
	Native      Native      `json:"native,omitzero"`   // kinds that train language models: NativeKinds
}

// Trainer says which program trains and what it needs of the machine.
type Trainer struct {
	Kind      string            `json:"kind"`                 // cpu, trl, verl, rllm, llamafactory, command, solver, endpoint
	Command   []string          `json:"command,omitempty"`    // argv for kind command; {spec} and {dir} are replaced
	Env       map[string]string `json:"env,omitempty"`        // extra environment for kind command; never secrets
	Devices   int               `json:"devices"`              // devices a run needs at once, on one node
	Device    string            `json:"device,omitempty"`     // auto (also when empty), gpu, cpu: what the devices are
	MemoryGiB float64           `json:"memory_gib,omitempty"` // least memory of each device, GiB; 0 = any
	Kernel    string            `json:"kernel,omitempty"`     // embedded trainer: auto, avx512, avx2, generic
}

// Model names the policy.
type Model struct {
	Size string `json:"size"` // embedded proxies: nano, small, medium, large, xl; other trainers: a Hugging Face name or folder
	Base string `json:"base"` // embedded: shipped (the pretrained look-up skill) or scratch
}

// Data says which queries train and evaluate the policy.
type Data struct {
	Prompts     int    `json:"prompts"`                // distinct RL prompts
	Mix         string `json:"mix"`                    // easy:medium:hard, e.g. "4:3:3"
	Seed        uint64 `json:"seed"`                   // data seed, shared by all arms and seeds: same held-out panel everywhere
	QueriesFile string `json:"queries_file,omitempty"` // JSONL of queries to use instead of synthesis (kind solver)
	Plans       string `json:"plans,omitempty"`        // kind solver: solver or annotated
	Sampler     string `json:"sampler,omitempty"`      // kind solver: star (also when empty) or travelplanner

	OODTraces       int     `json:"ood_traces,omitempty"`        // question-answering traces mixed into SFT
	OODRenamed      float64 `json:"ood_renamed,omitempty"`       // share of those traces whose prompt calls its tool by another word
	PassRateSamples int     `json:"pass_rate_samples,omitempty"` // rollouts a prompt by the SFT policy; prompts it always or never solves are dropped; 0 = keep all
}

// SFT describes supervised fine-tuning on expert traces.
type SFT struct {
	Traces        int     `json:"traces"` // expert traces drawn before filtering
	Epochs        float64 `json:"epochs"`
	LR            float64 `json:"lr"`
	Batch         int     `json:"batch"`                 // traces a step
	Noise         float64 `json:"noise"`                 // probability that the expert replaces a pick by a random one
	FilterSuccess bool    `json:"filter_success"`        // keep only traces whose plan succeeds
	FilterFormat  bool    `json:"filter_format"`         // keep only traces in correct format
	TracesKind    string  `json:"traces_kind,omitempty"` // real (also when empty): each by one expert from end to end; stitched: each step by another one
	TopShare      float64 `json:"top_share,omitempty"`   // of the kept traces, the best by success and cost; 0 = all
	Control       bool    `json:"control"`               // also run the control: SFT continued for the RL phase's compute
}

// Reward is how a trajectory is scored; see the sandbox for the formulas.
type Reward struct {
	Kind        string            `json:"kind"`                 // SUM, MACRO, SUCCESS, CURRICULUM, PLANNER_R1, WEIGHTED, RANDOM (control)
	Stages      []float64         `json:"stages,omitempty"`     // CURRICULUM, PLANNER_R1: share of the steps in each of the three stages
	StageBy     string            `json:"stage_by,omitempty"`   // what the stages count: share (also when empty), step, epoch
	Weights     map[string]string `json:"weights,omitempty"`    // WEIGHTED: score or check key → number
	Milestones  map[string]string `json:"milestones,omitempty"` // sub-goal → pay when first reached; outside the published design
	Profile     string            `json:"profile"`              // strict, star, official
	FormatError string            `json:"format_error"`         // zero: a format error anywhere makes the reward 0
}

// Algorithm holds the policy-gradient settings, under verl's names where it has one.
type Algorithm struct {
	Kind           string  `json:"kind"`       // grpo, dr_grpo, dapo, gspo, rloo, reinforce_plus_plus, reinforce_plus_plus_baseline, grpo_tcr, grpo_scr, arpo
	GroupSize      int     `json:"group_size"` // rollouts a prompt, G
	PromptsPerStep int     `json:"prompts_per_step"`
	LR             float64 `json:"lr"`
	ClipLow        float64 `json:"clip_low"`
	ClipHigh       float64 `json:"clip_high"`
	Minibatches    int     `json:"minibatches"`     // optimizer updates a step
	StdNorm        bool    `json:"norm_adv_by_std"` // divide the advantage by the group's standard deviation
	LossAgg        string  `json:"loss_agg_mode"`   // token-mean, seq-mean-token-mean, seq-mean-token-sum, seq-mean-token-sum-norm
	Temperature    float64 `json:"temperature"`     // of training rollouts
	GradClip       float64 `json:"grad_clip"`
	Overlong       string  `json:"overlong"` // mask (out of the loss, in the statistics), zero (reward 0, in the loss), shape (soft penalty, in the loss)

	Epochs          int     `json:"ppo_epochs,omitempty"`              // passes over a step's rollouts; 0 = 1
	ClipC           float64 `json:"clip_ratio_c,omitempty"`            // dual clip: bounds the loss of bad rollouts at c·|A|; 0 = off
	LossScale       float64 `json:"loss_scale_factor,omitempty"`       // divisor of seq-mean-token-sum-norm; 0 = environment.max_tokens
	EntropyCoeff    float64 `json:"entropy_coeff,omitempty"`           // entropy bonus in the loss
	EntropyTarget   float64 `json:"entropy_target,omitempty"`          // nats a token; the bonus adapts to hold it; 0 = a constant bonus
	EntropyDelta    float64 `json:"entropy_target_delta,omitempty"`    // by how much it adapts a step; 0 = 0.005
	UseKLLoss       bool    `json:"use_kl_loss,omitempty"`             // KL to the SFT checkpoint, in the loss
	KLLossCoef      float64 `json:"kl_loss_coef,omitempty"`            // its weight
	KLLossType      string  `json:"kl_loss_type,omitempty"`            // low_var_kl (k3, also when empty), kl (k1), mse (k2), abs
	UseKLInReward   bool    `json:"use_kl_in_reward,omitempty"`        // KL to the SFT checkpoint, taken off the reward
	KLCoef          float64 `json:"kl_coef,omitempty"`                 // its weight
	TopP            float64 `json:"top_p,omitempty"`                   // of training rollouts; 0 or 1 = all tokens
	FilterGroups    bool    `json:"filter_groups,omitempty"`           // dynamic sampling: replace groups whose members all score alike
	FilterMetric    string  `json:"filter_groups_metric,omitempty"`    // score (also when empty), acc
	MaxGenBatches   int     `json:"max_num_gen_batches,omitempty"`     // rounds of sampling a step at most; 0 = 10
	OverlongBuffer  int     `json:"overlong_buffer_len,omitempty"`     // tokens before the limit in which the penalty grows; 0 = a fifth of the response
	OverlongPenalty float64 `json:"overlong_penalty_factor,omitempty"` // penalty at the limit; 0 = 1
	InitialRollouts int     `json:"initial_rollouts,omitempty"`        // arpo: rollouts that start from the prompt; 0 = half the group
	BeamSize        int     `json:"beam_size,omitempty"`               // arpo: ways out of a branching point; 0 = 2
	BranchProb      float64 `json:"branch_probability,omitempty"`      // arpo: of branching at unchanged entropy; 0 = 0.5
	EntropyWeight   float64 `json:"entropy_weight,omitempty"`          // arpo: of the change in entropy; 0 = 0.2
}

// Environment describes the sandbox the policy acts in.
type Environment struct {
	Kind            string  `json:"kind"`              // travel
	World           string  `json:"world"`             // nano, small, full, real, public
	Tables          string  `json:"tables,omitempty"`  // folder of TravelPlanner's CSV tables for worlds real and public
	Cities          int     `json:"cities"`            // size of a generated world, cities
	Days            int     `json:"days"`              // 3, 5, 7; 0 = mixed (language-model worlds only)
	BudgetFactor    float64 `json:"budget_factor"`     // multiplies the budget of rule H
	ToolFailureRate float64 `json:"tool_failure_rate"` // probability of an injected failure per tool call, training only
	MaxTurns        int     `json:"max_turns"`         // tool-call budget
	MaxTokens       int     `json:"max_tokens"`        // context budget of an episode, tokens

	FailureKind      string            `json:"failure_kind,omitempty"`       // unavailable (also when empty), timeout, truncated, stale, corrupted, latency, mixed
	FailureRates     map[string]string `json:"failure_rates,omitempty"`      // tool → probability, instead of tool_failure_rate
	FailureLatencyMS float64           `json:"failure_latency_ms,omitempty"` // mean added latency of kind latency, ms; 0 = 1000
	Reasoning        string            `json:"reasoning,omitempty"`          // embedded trainer: reactive (also when empty), deliberative
	ThinkBudget      int               `json:"think_budget,omitempty"`       // embedded trainer: tokens of thought an episode; 0 = 16 when deliberative
	Form             string            `json:"form,omitempty"`               // how a language model writes: react (also when empty), tools
	Answer           string            `json:"answer,omitempty"`             // how its answer is read: lenient (also when empty), strict
}

// Budget bounds a run.
type Budget struct {
	Steps           int `json:"steps"`            // RL steps
	CheckpointEvery int `json:"checkpoint_every"` // steps
}

// Evaluation describes the fixed held-out panel.
type Evaluation struct {
	Every       int     `json:"every"`       // RL steps between evaluations
	Queries     int     `json:"queries"`     // size of the panel
	Samples     int     `json:"samples"`     // sampled rollouts a query at the first and last evaluation (1 in between)
	Temperature float64 `json:"temperature"` // of sampled evaluation

	Validation int  `json:"validation,omitempty"` // queries of the validation panel, which picks the best checkpoint; 0 = none
	OOD        int  `json:"ood,omitempty"`        // questions of the out-of-domain panel; 0 = none
	OODKnown   bool `json:"ood_known,omitempty"`  // the unseen tool is called by a word that policies write for other things
}
