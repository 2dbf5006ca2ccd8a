package trainer

// Trajectory is the record of one episode: who sampled it and why, what was
// said and observed turn by turn, the plan, how each constraint judged it,
// and how the reward and the advantage came about.
type Trajectory struct {
	ID      string `json:"id"`     // unique within the run: "<phase>-<step>-<group>-<rollout>"
	Phase   string `json:"phase"`  // rl, eval, sft, expert, baseline
	Policy  string `json:"policy"` // policy, sft, random-legal, expert, annotated
	Step    int64  `json:"step"`
	Group   string `json:"group"`   // the same for the G rollouts of one prompt at one step
	Rollout int    `json:"rollout"` // 0-based in the group
	Mode    string `json:"mode"`    // sampled, greedy, expert

	Query  Query  `json:"query"`
	Turns  []Turn `json:"turns"`
	Answer string `json:"answer,omitempty"` // the final answer as written
	Plan   []Day  `json:"plan,omitempty"`   // parsed; empty when undelivered

	Verdicts []Verdict          `json:"verdicts,omitempty"` // the profile that pays the reward
	Profile  string             `json:"profile,omitempty"`  // its name: strict, star, official
	Passes   map[string]bool    `json:"passes,omitempty"`   // final pass by profile
	Scores   map[string]float64 `json:"scores,omitempty"`   // cs_micro, cs_macro, hard_micro, hard_macro, success, delivery
	Cost     *float64           `json:"cost,omitempty"`     // of the plan, $
	Budget   float64            `json:"budget,omitempty"`   // $

	Reward     float64     `json:"reward"`
	RewardKind string      `json:"reward_kind"`
	Components []Component `json:"components"` // sum of Value = Reward, the format error being one of them
	Advantage  *Advantage  `json:"advantage,omitempty"`

	Success     bool              `json:"success"`
	FormatError string            `json:"format_error,omitempty"` // why, in words; "" = none
	Overlong    bool              `json:"overlong,omitempty"`     // context budget reached
	End         string            `json:"end"`                    // answer, turns, context, format
	Tokens      int               `json:"tokens"`                 // whole episode
	Generated   int               `json:"generated"`              // by the policy
	ToolCalls   int               `json:"tool_calls"`
	ToolErrors  int               `json:"tool_errors"` // no hits, bad arguments
	Injected    int               `json:"injected"`    // injected failures
	Tools       map[string]int    `json:"tools,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
}

// Query is the prompt in the environment's own fields.
type Query struct {
	Hash        string            `json:"hash"` // identifies the query across arms and seeds
	Text        string            `json:"text"`
	Level       string            `json:"level"` // easy, medium, hard
	Org         string            `json:"org,omitempty"`
	Dest        string            `json:"dest,omitempty"`
	Days        int               `json:"days,omitempty"`
	Dates       []string          `json:"dates,omitempty"`
	People      int               `json:"people,omitempty"`
	Constraints map[string]string `json:"constraints,omitempty"` // in words: "cuisine": "Mexican, Indian"
}

// Turn is one step of the policy and what came back.
type Turn struct {
	Think    string    `json:"think,omitempty"`
	Call     *Call     `json:"call,omitempty"` // nil on the answer turn
	Raw      string    `json:"raw,omitempty"`  // what the policy wrote, when it could not be parsed
	Observe  *Observed `json:"observe,omitempty"`
	Tokens   int       `json:"tokens"`             // generated in this turn
	Entropy  []float32 `json:"entropy,omitempty"`  // nats, per generated token
	LogProbs []float32 `json:"logprobs,omitempty"` // of the sampled tokens
	Words    []string  `json:"words,omitempty"`    // the generated tokens as text, in order
	Branch   bool      `json:"branch,omitempty"`   // a branching point (tree rollouts)

	// Advantages holds the advantage of each generated token where tokens of
	// one episode differ in it. Without it [Advantage.Value] holds for all.
	Advantages []float32 `json:"advantages,omitempty"`
}

// Call is a tool call.
type Call struct {
	Tool string `json:"tool"`
	Args []Arg  `json:"args"`
}

// Arg is one argument, in the tool's order.
type Arg struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Observed is a tool's answer.
type Observed struct {
	Text      string     `json:"text"`
	Columns   []string   `json:"columns,omitempty"`
	Rows      [][]string `json:"rows,omitempty"`
	Tokens    int        `json:"tokens"`
	Injected  string     `json:"injected,omitempty"`   // kind of an injected failure: unavailable …
	LatencyMS float64    `json:"latency_ms,omitempty"` // injected latency, ms, simulated
	Error     string     `json:"error,omitempty"`      // no hits, invalid parameters …
}

// Day is one day of a plan, in the benchmark's fields.
type Day struct {
	Day            int                `json:"day"`
	City           string             `json:"current_city"`
	Transportation string             `json:"transportation"`
	Breakfast      string             `json:"breakfast"`
	Lunch          string             `json:"lunch"`
	Dinner         string             `json:"dinner"`
	Attraction     string             `json:"attraction"`
	Accommodation  string             `json:"accommodation"`
	Cost           float64            `json:"cost,omitempty"`  // of the day, $
	Costs          map[string]float64 `json:"costs,omitempty"` // by field, $
	Found          map[string]int     `json:"found,omitempty"` // field → 1-based turn that showed the item
}

// Verdict is the outcome of one constraint for one plan.
type Verdict struct {
	Check   string `json:"check"`            // evaluator key, e.g. "is_valid_restaurants"
	Name    string `json:"name"`             // "Diverse restaurants"
	Family  string `json:"family"`           // commonsense, hard
	Outcome string `json:"outcome"`          // pass, fail, n/a (not asked), closed (gate shut: not evaluated, counts as fail), raises
	Day     int    `json:"day,omitempty"`    // 1-based, 0 = the whole plan
	Field   string `json:"field,omitempty"`  // plan field: "dinner"
	Value   string `json:"value,omitempty"`  // the offending value
	Reason  string `json:"reason,omitempty"` // a sentence naming day, field, value and rule
}

// Component is one part of a reward.
type Component struct {
	Name  string  `json:"name"` // cs_micro, cs_macro, hard_micro, hard_macro, success, format_error
	Value float64 `json:"value"`
}

// Advantage says how a trajectory's advantage was computed.
type Advantage struct {
	Value  float64 `json:"value"`
	Mean   float64 `json:"mean"` // of the group's rewards
	Std    float64 `json:"std"`
	Norm   string  `json:"norm"`          // group-std, group-mean
	Zero   bool    `json:"zero_variance"` // the group gave no gradient
	InLoss bool    `json:"in_loss"`       // false: masked (overlong) or no variance
}
