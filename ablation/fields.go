package ablation

import (
	"fmt"
	"slices"
	"strings"
)

// FieldKind is the type of a recipe key.
type FieldKind string

// The kinds of field.
const (
	KindInt    FieldKind = "int"
	KindUint   FieldKind = "uint"
	KindFloat  FieldKind = "float"
	KindBool   FieldKind = "bool"
	KindString FieldKind = "string"
	KindEnum   FieldKind = "enum"   // a string, one of Enum
	KindList   FieldKind = "list"   // of strings
	KindFloats FieldKind = "floats" // list of numbers
	KindMap    FieldKind = "map"    // string to string; with limits, to a number as text
)

// A Field describes one recipe key: what the study file, the forms and the
// API accept for it.
type Field struct {
	Key     string    `json:"key"`   // "algorithm.group_size"
	Group   string    `json:"group"` // section of the form
	Label   string    `json:"label"` // "group size G"
	Kind    FieldKind `json:"kind"`
	Unit    string    `json:"unit,omitempty"`
	Min     float64   `json:"min"` // for numbers; both 0 = no limits
	Max     float64   `json:"max"`
	Enum    []string  `json:"enum,omitempty"`
	Help    string    `json:"help"`
	Ordered bool      `json:"ordered,omitempty"` // levels have an order: a curve can be drawn over them
}

// Allowed says in words which values the field takes.
func (f Field) Allowed() string {
	switch f.Kind {
	case KindEnum:
		return strings.Join(f.Enum, ", ")
	case KindBool:
		return "true or false"
	case KindInt, KindUint:
		return "a whole number" + f.limits()
	case KindFloat:
		return "a number" + f.limits()
	case KindList:
		return "a list of texts"
	case KindFloats:
		return "a list of numbers" + f.limits()
	case KindMap:
		if f.numeric() {
			return "a map from text to a number" + f.limits()
		}
		return "a map from text to text"
	}
	return "a text"
}

// numeric tells whether a map's values are numbers; they are kept as texts.
func (f Field) numeric() bool { return f.Kind == KindMap && (f.Min != 0 || f.Max != 0) }

func (f Field) limits() string {
	if f.Min == 0 && f.Max == 0 {
		return ""
	}
	unit := ""
	if f.Unit != "" {
		unit = " " + f.Unit
	}
	return fmt.Sprintf(" from %v to %v%s", f.Min, f.Max, unit)
}

// fields is the schema of a recipe, in the order of the form.
var fields = slices.Concat([]Field{
	{Key: "trainer.kind", Group: "Trainer", Label: "trainer", Kind: KindEnum, Enum: []string{"cpu", "trl", "verl", "rllm", "llamafactory", "command", "solver", "endpoint"}, Help: "cpu trains a small policy in this program; trl, verl and rllm train a language model with those frameworks, llamafactory fine-tunes one on expert traces; command runs a script of yours that speaks the trainer protocol; solver lets the exact solver answer the queries, with no policy; endpoint lets a language model behind an OpenAI-compatible server answer them"},
	{Key: "trainer.command", Group: "Trainer", Label: "command", Kind: KindList, Help: "argv for kind command; {spec} and {dir} are replaced; never passed to a shell"},
	{Key: "trainer.env", Group: "Trainer", Label: "environment", Kind: KindMap, Help: "extra environment variables for kind command; not for secrets"},
	{Key: "trainer.devices", Group: "Trainer", Label: "devices a run", Kind: KindInt, Min: 1, Max: 64, Help: "devices a run needs at the same time, on one node"},
	{Key: "trainer.device", Group: "Trainer", Label: "kind of device", Kind: KindEnum, Enum: []string{"auto", "gpu", "cpu"}, Help: "auto takes GPUs where the machine has any, else CPU slots; gpu waits for GPUs; cpu takes CPU slots and leaves the GPUs to others"},
	{Key: "trainer.memory_gib", Group: "Trainer", Label: "device memory", Kind: KindFloat, Unit: "GiB", Min: 0, Max: 1024, Help: "least memory of each device; 0 takes any"},
	{Key: "trainer.kernel", Group: "Trainer", Label: "kernel", Kind: KindEnum, Enum: []string{"auto", "avx512", "avx2", "generic"}, Help: "arithmetic kernel of the embedded trainer; numbers repeat bit for bit only within one kernel"},

	{Key: "model.size", Group: "Model", Label: "policy", Kind: KindEnum, Ordered: true, Enum: []string{"nano", "small", "medium", "large", "xl"}, Help: "size of the embedded proxy policy: nano 0.03 M, small 0.15 M, medium 0.4 M, large 0.7 M, xl 1.9 M parameters"},
	{Key: "model.base", Group: "Model", Label: "start from", Kind: KindEnum, Enum: []string{"shipped", "scratch"}, Help: "shipped: the base checkpoint that already has the look-up skill; scratch: pre-train it in the run"},
}, nativeFields, []Field{
	{Key: "data.prompts", Group: "Data", Label: "RL prompts", Kind: KindInt, Ordered: true, Min: 1, Max: 100000, Help: "distinct synthetic queries for RL; they repeat once used up"},
	{Key: "data.mix", Group: "Data", Label: "easy : medium : hard", Kind: KindString, Help: "difficulty mix of the RL prompts, three whole numbers"},
	{Key: "data.seed", Group: "Data", Label: "data seed", Kind: KindUint, Help: "seed of the world and the queries; shared by all arms and seeds, so that all meet the same held-out panel"},
	{Key: "data.queries_file", Group: "Data", Label: "queries file", Kind: KindString, Help: "JSONL file of queries for kinds solver and endpoint, instead of synthesis"},
	{Key: "data.plans", Group: "Data", Label: "plans", Kind: KindEnum, Enum: []string{"solver", "annotated"}, Help: "kind solver: whose plans are judged, the solver's or those in the queries file"},
	{Key: "data.sampler", Group: "Data", Label: "sampler", Kind: KindEnum, Enum: []string{"star", "travelplanner"}, Help: "kind solver: how queries are drawn, star is Agent-STAR's, travelplanner TravelPlanner's own"},
	{Key: "data.ood_traces", Group: "Data", Label: "out-of-domain traces", Kind: KindInt, Ordered: true, Min: 0, Max: 100000, Help: "question-answering traces mixed into SFT; RL never sees such questions"},
	{Key: "data.ood_renamed", Group: "Data", Label: "tools called otherwise", Kind: KindFloat, Ordered: true, Min: 0, Max: 1, Help: "share of the question-answering traces whose prompt calls the tool by another word, a new one at each use: what teaches a policy to call a tool that only the prompt names"},
	{Key: "data.pass_rate_samples", Group: "Data", Label: "pass-rate samples", Kind: KindInt, Min: 0, Max: 64, Help: "difficulty-aware sampling: rollouts of the SFT policy a prompt; those it always or never solves are dropped; 0 keeps all"},

	{Key: "sft.traces", Group: "SFT", Label: "expert traces", Kind: KindInt, Ordered: true, Min: 0, Max: 100000, Help: "traces drawn from the expert before filtering; few, since RL pays only where traces are scarce"},
	{Key: "sft.epochs", Group: "SFT", Label: "epochs", Kind: KindFloat, Min: 0, Max: 1000, Help: "passes over the kept traces"},
	{Key: "sft.lr", Group: "SFT", Label: "learning rate", Kind: KindFloat, Min: 1e-8, Max: 1, Help: "peak rate; cosine schedule with warm-up"},
	{Key: "sft.batch", Group: "SFT", Label: "batch", Kind: KindInt, Unit: "traces", Min: 1, Max: 4096, Help: "traces an optimizer step"},
	{Key: "sft.noise", Group: "SFT", Label: "expert noise", Kind: KindFloat, Min: 0, Max: 1, Help: "probability that the expert replaces a pick by a random one of its kind"},
	{Key: "sft.filter_success", Group: "SFT", Label: "successful traces only", Kind: KindBool, Help: "keep only traces whose plan passes every check"},
	{Key: "sft.filter_format", Group: "SFT", Label: "well-formed traces only", Kind: KindBool, Help: "keep only traces without a format error"},
	{Key: "sft.traces_kind", Group: "SFT", Label: "kind of traces", Kind: KindEnum, Enum: []string{"real", "stitched"}, Help: "embedded trainer: real traces are each by one expert from end to end; stitched ones are put together from steps of as many experts, each step as good as in a real trace, the whole by nobody"},
	{Key: "sft.top_share", Group: "SFT", Label: "top share", Kind: KindFloat, Ordered: true, Min: 0, Max: 1, Help: "rejection sampling: of the kept traces, only this share, successful ones first, then those that spend least of their budget; 0 or 1 = all"},
	{Key: "sft.control", Group: "SFT", Label: "SFT-continued control", Kind: KindBool, Help: "also continue SFT for the RL phase's compute, as the control that RL has to beat"},

	{Key: "reward.kind", Group: "Reward", Label: "reward", Kind: KindEnum, Enum: []string{"SUM", "MACRO", "SUCCESS", "CURRICULUM", "PLANNER_R1", "WEIGHTED", "RANDOM"}, Help: "SUM adds all five scores, MACRO the two macro scores and success, SUCCESS pays success alone, CURRICULUM goes through the three; PLANNER_R1 does too and pays the plan's schema in its first two stages; WEIGHTED takes reward.weights; RANDOM is a control that must not teach anything"},
	{Key: "reward.stages", Group: "Reward", Label: "curriculum stages", Kind: KindFloats, Min: 0, Max: 1000000, Help: "shares of the steps under SUM, MACRO and SUCCESS; they sum to 1"},
	{Key: "reward.stage_by", Group: "Reward", Label: "stages count", Kind: KindEnum, Enum: []string{"share", "step", "epoch"}, Help: "what the curriculum stages count: shares of the steps, steps, or epochs over the prompts"},
	{Key: "reward.weights", Group: "Reward", Label: "weights", Kind: KindMap, Min: -1000, Max: 1000, Help: "for WEIGHTED: a number for each of cs_micro, cs_macro, hard_micro, hard_macro, success, delivery, schema, or the key of a check"},
	{Key: "reward.milestones", Group: "Reward", Label: "milestones", Kind: KindMap, Min: -1000, Max: 1000, Help: "sub-goals paid once each when first reached: way_out, way_home, cities, hotels, restaurants, attractions, plan; outside the published design, whose rewards are terminal"},
	{Key: "reward.profile", Group: "Reward", Label: "checks", Kind: KindEnum, Enum: []string{"strict", "star", "official"}, Help: "which evaluator pays the reward; strict is what the rules mean, the other two keep the public programs' quirks"},
	{Key: "reward.format_error", Group: "Reward", Label: "format error", Kind: KindEnum, Enum: []string{"zero"}, Help: "zero: a format error anywhere makes the trajectory's reward 0"},

	{Key: "algorithm.kind", Group: "Algorithm", Label: "algorithm", Kind: KindEnum, Enum: []string{"grpo", "dr_grpo", "dapo", "gspo", "rloo", "reinforce_plus_plus", "reinforce_plus_plus_baseline", "grpo_tcr", "grpo_scr", "arpo"}, Help: "grpo takes all settings as they stand; the others fix those that define them, and a run's first event lists what came out"},
	{Key: "algorithm.group_size", Group: "Algorithm", Label: "group size G", Kind: KindInt, Ordered: true, Unit: "rollouts a prompt", Min: 2, Max: 256, Help: "rollouts sampled for one prompt"},
	{Key: "algorithm.prompts_per_step", Group: "Algorithm", Label: "prompts a step", Kind: KindInt, Ordered: true, Min: 1, Max: 4096, Help: "prompts sampled at each step"},
	{Key: "algorithm.lr", Group: "Algorithm", Label: "learning rate", Kind: KindFloat, Ordered: true, Min: 1e-8, Max: 1, Help: "constant rate of the policy update"},
	{Key: "algorithm.clip_low", Group: "Algorithm", Label: "clip low", Kind: KindFloat, Ordered: true, Min: 0, Max: 1, Help: "lower clip of the probability ratio, ε low"},
	{Key: "algorithm.clip_high", Group: "Algorithm", Label: "clip high", Kind: KindFloat, Ordered: true, Min: 0, Max: 10, Help: "upper clip of the probability ratio, ε high; at least clip low"},
	{Key: "algorithm.minibatches", Group: "Algorithm", Label: "updates a step", Kind: KindInt, Ordered: true, Min: 1, Max: 64, Help: "minibatches a step's rollouts are cut into, one optimizer update each"},
	{Key: "algorithm.norm_adv_by_std", Group: "Algorithm", Label: "divide by group SD", Kind: KindBool, Help: "divide the advantage by the group's standard deviation"},
	{Key: "algorithm.loss_agg_mode", Group: "Algorithm", Label: "loss aggregation", Kind: KindEnum, Enum: []string{"token-mean", "seq-mean-token-mean", "seq-mean-token-sum", "seq-mean-token-sum-norm"}, Help: "how token losses become one number"},
	{Key: "algorithm.temperature", Group: "Algorithm", Label: "temperature", Kind: KindFloat, Ordered: true, Min: 0.01, Max: 10, Help: "of training rollouts"},
	{Key: "algorithm.grad_clip", Group: "Algorithm", Label: "gradient clip", Kind: KindFloat, Min: 0, Max: 1000, Help: "largest gradient norm; 0 = no clipping"},
	{Key: "algorithm.overlong", Group: "Algorithm", Label: "over-long rollouts", Kind: KindEnum, Enum: []string{"mask", "zero", "shape"}, Help: "mask: out of the loss, in the group's statistics; zero: reward 0 and in the loss; shape: a penalty that grows towards the limit, in the loss"},
	{Key: "algorithm.ppo_epochs", Group: "Algorithm", Label: "passes a step", Kind: KindInt, Ordered: true, Min: 0, Max: 64, Help: "passes over a step's rollouts, each cut into minibatches anew; 0 = 1"},
	{Key: "algorithm.clip_ratio_c", Group: "Algorithm", Label: "dual clip", Kind: KindFloat, Ordered: true, Min: 0, Max: 1000, Help: "bounds the loss of a bad rollout's token at this many times its advantage; above 1, or 0 for none"},
	{Key: "algorithm.loss_scale_factor", Group: "Algorithm", Label: "loss scale", Kind: KindFloat, Unit: "tokens", Min: 0, Max: 1000000, Help: "divisor of seq-mean-token-sum-norm; 0 = the context budget"},
	{Key: "algorithm.entropy_coeff", Group: "Algorithm", Label: "entropy bonus", Kind: KindFloat, Ordered: true, Min: 0, Max: 10, Help: "weight of the entropy in the loss"},
	{Key: "algorithm.entropy_target", Group: "Algorithm", Label: "entropy target", Kind: KindFloat, Ordered: true, Unit: "nats a token", Min: 0, Max: 10, Help: "the entropy bonus grows while the rollouts' entropy is below this, shrinks above it, and is left out above it; it starts at the entropy bonus; 0 = a constant bonus"},
	{Key: "algorithm.entropy_target_delta", Group: "Algorithm", Label: "entropy target's pace", Kind: KindFloat, Ordered: true, Min: 0, Max: 1, Help: "by how much the bonus of the entropy target grows or shrinks a step; 0 = 0.005"},
	{Key: "algorithm.use_kl_loss", Group: "Algorithm", Label: "KL in the loss", Kind: KindBool, Help: "add the divergence from the SFT checkpoint to the loss"},
	{Key: "algorithm.kl_loss_coef", Group: "Algorithm", Label: "KL loss weight", Kind: KindFloat, Ordered: true, Min: 0, Max: 100, Help: "weight of the KL in the loss"},
	{Key: "algorithm.kl_loss_type", Group: "Algorithm", Label: "KL estimator", Kind: KindEnum, Enum: []string{"low_var_kl", "kl", "mse", "abs"}, Help: "low_var_kl is k3, kl is k1, mse is k2"},
	{Key: "algorithm.use_kl_in_reward", Group: "Algorithm", Label: "KL in the reward", Kind: KindBool, Help: "take the divergence from the SFT checkpoint off the reward"},
	{Key: "algorithm.kl_coef", Group: "Algorithm", Label: "KL reward weight", Kind: KindFloat, Ordered: true, Min: 0, Max: 100, Help: "weight of the KL in the reward"},
	{Key: "algorithm.top_p", Group: "Algorithm", Label: "top-p", Kind: KindFloat, Ordered: true, Min: 0, Max: 1, Help: "training rollouts draw from the likeliest tokens that together reach this; 0 or 1 = all"},
	{Key: "algorithm.filter_groups", Group: "Algorithm", Label: "dynamic sampling", Kind: KindBool, Help: "replace groups whose members all score alike by further prompts"},
	{Key: "algorithm.filter_groups_metric", Group: "Algorithm", Label: "dynamic sampling by", Kind: KindEnum, Enum: []string{"score", "acc"}, Help: "what must differ within a group: the reward or the success"},
	{Key: "algorithm.max_num_gen_batches", Group: "Algorithm", Label: "sampling rounds", Kind: KindInt, Ordered: true, Min: 0, Max: 100, Help: "rounds of dynamic sampling a step at most; 0 = 10"},
	{Key: "algorithm.overlong_buffer_len", Group: "Algorithm", Label: "over-long buffer", Kind: KindInt, Unit: "tokens", Min: 0, Max: 1000000, Help: "tokens before the limit in which the penalty of shape grows; 0 = a fifth of the longest response"},
	{Key: "algorithm.overlong_penalty_factor", Group: "Algorithm", Label: "over-long penalty", Kind: KindFloat, Min: 0, Max: 1000, Help: "penalty of shape at the limit; 0 = 1"},
	{Key: "algorithm.initial_rollouts", Group: "Algorithm", Label: "initial rollouts", Kind: KindInt, Ordered: true, Min: 0, Max: 256, Help: "arpo: rollouts of a group that start from the prompt, the others branch off; 0 = half"},
	{Key: "algorithm.beam_size", Group: "Algorithm", Label: "beam", Kind: KindInt, Min: 0, Max: 16, Help: "arpo: ways out of a branching point; 0 = 2"},
	{Key: "algorithm.branch_probability", Group: "Algorithm", Label: "branch probability", Kind: KindFloat, Ordered: true, Min: 0, Max: 1, Help: "arpo: of branching after a tool result at unchanged entropy; 0 = 0.5"},
	{Key: "algorithm.entropy_weight", Group: "Algorithm", Label: "entropy weight", Kind: KindFloat, Ordered: true, Min: 0, Max: 10, Help: "arpo: how much a change of entropy moves that probability; 0 = 0.2"},

	{Key: "environment.kind", Group: "Environment", Label: "environment", Kind: KindEnum, Enum: []string{"travel"}, Help: "the sandbox the policy acts in"},
	{Key: "environment.world", Group: "Environment", Label: "world", Kind: KindEnum, Enum: []string{"nano", "small", "full", "real", "reference"}, Help: "nano: a few cities, for the embedded trainer; small and full: generated, up to 312 cities; real: TravelPlanner's own tables, with generated flights where they are missing; reference: the part of them that its train file's reference information gives, enough to judge plans on those routes"},
	{Key: "environment.tables", Group: "Environment", Label: "tables folder", Kind: KindString, Help: "folder of TravelPlanner's CSV tables, for world real; for world reference the folder with train_ref_info.jsonl and city_states.tsv"},
	{Key: "environment.cities", Group: "Environment", Label: "cities", Kind: KindInt, Ordered: true, Min: 4, Max: 312, Help: "size of a generated world"},
	{Key: "environment.days", Group: "Environment", Label: "days of a trip", Kind: KindInt, Min: 0, Max: 7, Help: "3, 5 or 7: one city, or two or three cities of a state; 0 mixes them (not for trainer cpu)"},
	{Key: "environment.budget_factor", Group: "Environment", Label: "budget factor", Kind: KindFloat, Ordered: true, Min: 0.1, Max: 10, Help: "multiplies the budget that the benchmark's rule gives; below 1 the choice of items matters more"},
	{Key: "environment.tool_failure_rate", Group: "Environment", Label: "tool failure rate", Kind: KindFloat, Ordered: true, Min: 0, Max: 1, Help: "probability that a tool call in training is answered by an injected failure; evaluation is always clean"},
	{Key: "environment.max_turns", Group: "Environment", Label: "tool-call budget", Kind: KindInt, Ordered: true, Min: 0, Max: 1000, Help: "turns an episode may take; 0 = by the days of the trip: 12, 18 or 24 (trainer cpu)"},
	{Key: "environment.max_tokens", Group: "Environment", Label: "context budget", Kind: KindInt, Unit: "tokens", Min: 0, Max: 1000000, Help: "tokens an episode may take, observations included; 0 = by the days of the trip: 180, 320 or 448 (trainer cpu)"},
	{Key: "environment.failure_kind", Group: "Environment", Label: "failure kind", Kind: KindEnum, Enum: []string{"unavailable", "timeout", "truncated", "stale", "corrupted", "latency", "mixed"}, Help: "what an injected failure does: the tool is unavailable (published), times out, returns the first rows only, rows of another day, damaged cells, or the right rows late; mixed draws one of them each time"},
	{Key: "environment.failure_rates", Group: "Environment", Label: "failure rates by tool", Kind: KindMap, Min: 0, Max: 1, Help: "probability of an injected failure for single tools, instead of the tool failure rate"},
	{Key: "environment.failure_latency_ms", Group: "Environment", Label: "added latency", Kind: KindFloat, Unit: "ms", Min: 0, Max: 600000, Help: "mean of the latency that failures of kind latency add; it is recorded, not waited for; 0 = 1000"},
	{Key: "environment.reasoning", Group: "Environment", Label: "reasoning", Kind: KindEnum, Enum: []string{"reactive", "deliberative"}, Help: "embedded trainer: reactive traces go from the tools straight to the plan; deliberative ones write down what they will pick first, and the policy may think"},
	{Key: "environment.think_budget", Group: "Environment", Label: "think budget", Kind: KindInt, Ordered: true, Unit: "tokens", Min: 0, Max: 512, Help: "embedded trainer: tokens of thought an episode may take when reasoning is deliberative; 0 = 16"},
	{Key: "environment.form", Group: "Environment", Label: "form of a turn", Kind: KindEnum, Enum: []string{"react", "tools"}, Help: "how a language model writes: think, tool_call and answer tags in its text, or the chat API's own tool calls"},
	{Key: "environment.answer", Group: "Environment", Label: "answer parsing", Kind: KindEnum, Enum: []string{"lenient", "strict"}, Help: "lenient takes a JSON plan with words around it and the text form too, strict takes the JSON list alone"},

	{Key: "budget.steps", Group: "Budget", Label: "RL steps", Kind: KindInt, Ordered: true, Min: 0, Max: 1000000, Help: "gradient steps of RL; the same in every arm"},
	{Key: "budget.checkpoint_every", Group: "Budget", Label: "checkpoint every", Kind: KindInt, Unit: "steps", Min: 1, Max: 1000000, Help: "steps between checkpoints"},

	{Key: "evaluation.every", Group: "Evaluation", Label: "evaluate every", Kind: KindInt, Unit: "steps", Min: 1, Max: 1000000, Help: "steps between evaluations on the held-out panel"},
	{Key: "evaluation.queries", Group: "Evaluation", Label: "held-out queries", Kind: KindInt, Min: 1, Max: 100000, Help: "size of the panel; its queries never occur in training"},
	{Key: "evaluation.samples", Group: "Evaluation", Label: "samples a query", Kind: KindInt, Min: 1, Max: 64, Help: "sampled rollouts a query at the first and the last evaluation; 1 in between"},
	{Key: "evaluation.temperature", Group: "Evaluation", Label: "temperature", Kind: KindFloat, Min: 0.01, Max: 10, Help: "of sampled evaluation"},
	{Key: "evaluation.validation", Group: "Evaluation", Label: "validation queries", Kind: KindInt, Min: 0, Max: 100000, Help: "size of a second panel that picks the best checkpoint; 0 = none"},
	{Key: "evaluation.ood", Group: "Evaluation", Label: "out-of-domain questions", Kind: KindInt, Min: 0, Max: 100000, Help: "size of the question-answering panel; 0 = none"},
	{Key: "evaluation.ood_known", Group: "Evaluation", Label: "unseen tool by a known word", Kind: KindBool, Help: "in those questions the tool that no trace has shown goes by a word that policies write for other things; otherwise by one that they have never written, which no policy can learn to call"},
}, endpointFields)

// Fields returns the schema of a recipe in the order of the form.
func Fields() []Field { return append([]Field(nil), fields...) }

// FieldOf returns the description of a recipe key.
func FieldOf(key string) (Field, bool) {
	for _, f := range fields {
		if f.Key == key {
			return f, true
		}
	}
	return Field{}, false
}

// shortKeys are the names people use for a factor in a study file.
var shortKeys = map[string]string{
	"reward":       "reward.kind",
	"algorithm":    "algorithm.kind",
	"prompts":      "data.prompts",
	"mix":          "data.mix",
	"scale":        "model.size",
	"failure_rate": "environment.tool_failure_rate",
}

// ResolveKey turns a short factor name ("reward") into its recipe key.
func ResolveKey(key string) string {
	if k, ok := shortKeys[key]; ok {
		return k
	}
	return key
}

// FieldKeys returns all recipe keys.
func FieldKeys() []string {
	keys := make([]string, len(fields))
	for i, f := range fields {
		keys[i] = f.Key
	}
	return keys
}

// ResolveKeyIfLeaf is ResolveKey for a key that may also be the name of a
// section ("reward: {kind: SUM}" against "reward: SUM").
func ResolveKeyIfLeaf(key string, isMap bool) string {
	if isMap {
		return key
	}
	return ResolveKey(key)
}
