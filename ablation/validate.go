package ablation

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Validate checks every key of the recipe against its field and the rules
// that tie keys together. It returns *Invalid.
func (r Recipe) Validate() error {
	var bad []FieldError
	for _, f := range fields {
		v, err := Get(&r, f.Key)
		if err == nil {
			_, err = f.coerceStored(v)
		}
		bad = appendFieldError(bad, err)
	}
	bad = append(bad, r.crossRules()...)
	if len(bad) > 0 {
		return &Invalid{Fields: bad}
	}
	return nil
}

// coerceStored is Coerce, but an empty optional enum or list passes: presets
// of one trainer kind leave the other kinds' keys empty.
func (f Field) coerceStored(v any) (any, error) {
	if s, ok := v.(string); ok && s == "" && f.Kind == KindEnum {
		return v, nil
	}
	return f.Coerce(v)
}

func appendFieldError(bad []FieldError, err error) []FieldError {
	var fe FieldError
	var inv *Invalid
	switch {
	case err == nil:
	case errors.As(err, &fe):
		bad = append(bad, fe)
	case errors.As(err, &inv):
		bad = append(bad, inv.Fields...)
	default:
		bad = append(bad, FieldError{Problem: err.Error()})
	}
	return bad
}

// crossRules are the rules that tie several keys together.
func (r Recipe) crossRules() []FieldError {
	var bad []FieldError
	add := func(key string, value any, problem, allowed string) {
		bad = append(bad, FieldError{Field: key, Value: fmt.Sprint(value), Problem: problem, Allowed: allowed})
	}
	if _, err := ParseMix(r.Data.Mix); err != nil {
		add("data.mix", r.Data.Mix, "not a mix", `three whole numbers, easy:medium:hard, such as "4:3:3"`)
	}
	if r.Algorithm.ClipHigh < r.Algorithm.ClipLow {
		add("algorithm.clip_high", r.Algorithm.ClipHigh, "below clip low", fmt.Sprintf("at least algorithm.clip_low, %v", r.Algorithm.ClipLow))
	}
	bad = append(bad, r.algorithmRules()...)
	bad = append(bad, r.rewardRules()...)
	bad = append(bad, r.failureRules()...)
	bad = append(bad, r.endpointRules()...)
	bad = append(bad, r.nativeRules()...)
	if r.Data.OODRenamed > 0 && r.Data.OODTraces == 0 {
		add("data.ood_renamed", r.Data.OODRenamed, "without effect", "0, unless data.ood_traces is above 0")
	}
	if r.Evaluation.OODKnown && r.Evaluation.OOD == 0 {
		add("evaluation.ood_known", r.Evaluation.OODKnown, "without effect", "false, unless evaluation.ood is above 0")
	}
	if r.Trainer.Kind == "cpu" && r.SFT.TracesKind == "stitched" && r.Environment.Days != 3 {
		add("sft.traces_kind", r.SFT.TracesKind, "not for longer trips", "real: experts of longer trips take different routes, whose steps do not fit together")
	}
	if d := r.Trainer.Device; (d == "gpu" || d == "cpu") && r.Trainer.Kind != "command" && !r.IsNative() {
		add("trainer.device", d, "trainer "+r.Trainer.Kind+" works on CPU slots", "auto, or a trainer that takes GPUs: command, "+strings.Join(NativeKinds(), ", "))
	}
	if r.Trainer.Kind == "command" && len(r.Trainer.Command) == 0 {
		add("trainer.command", "", "missing", "the argv of your trainer, such as [python3, train.py, --spec, \"{spec}\"]")
	}
	if d := r.Environment.Days; d != 0 && d != 3 && d != 5 && d != 7 {
		add("environment.days", d, "wrong value", "3, 5, 7, or 0 for a mix")
	}
	if r.Trainer.Kind == "cpu" && r.Environment.World != "nano" {
		add("environment.world", r.Environment.World, "not for trainer cpu", "nano: the embedded policies speak the compact token form of small worlds")
	}
	bad = append(bad, r.tripRules()...)
	if w := r.Environment.World; (w == "real" || w == "reference") && r.Environment.Tables == "" {
		add("environment.tables", "", "missing", "the folder that holds TravelPlanner's tables")
	}
	if r.Data.Plans == "annotated" && r.Data.QueriesFile == "" {
		add("data.queries_file", "", "missing", "the JSONL file that holds the annotated plans")
	}
	if rollouts := r.Algorithm.GroupSize * r.Algorithm.PromptsPerStep; r.Algorithm.Minibatches > rollouts {
		add("algorithm.minibatches", r.Algorithm.Minibatches, "more than the rollouts of a step", fmt.Sprintf("at most %d", rollouts))
	}
	return bad
}

// shortestTrip is what a careful episode of the nano world takes, by days:
// tool calls, and tokens.
var shortestTrip = map[int][2]int{5: {10, 211}, 7: {14, 298}}

// tripRules are the rules of how long trips and episodes are.
func (r Recipe) tripRules() []FieldError {
	var bad []FieldError
	add := func(key string, value int, problem, allowed string) {
		bad = append(bad, FieldError{Field: "environment." + key, Value: fmt.Sprint(value), Problem: problem, Allowed: allowed})
	}
	e := &r.Environment
	if e.MaxTokens != 0 && e.MaxTokens < 32 {
		add("max_tokens", e.MaxTokens, "too few", "at least 32")
	}
	if r.Trainer.Kind != "cpu" {
		if e.MaxTurns == 0 {
			add("max_turns", 0, "not set", "at least 1; only the embedded trainer goes by the days of the trip")
		}
		if e.MaxTokens == 0 {
			add("max_tokens", 0, "not set", "at least 32; only the embedded trainer goes by the days of the trip")
		}
		return bad
	}
	if e.World == "nano" && e.Days == 0 {
		add("days", e.Days, "not for trainer cpu", "3, 5 or 7: a policy speaks the language of one length")
	}
	need := shortestTrip[e.Days]
	if e.MaxTurns > 0 && e.MaxTurns < need[0] {
		add("max_turns", e.MaxTurns, fmt.Sprintf("too few for trips of %d days", e.Days), fmt.Sprintf("at least %d, or 0 for the usual number", need[0]))
	}
	if e.MaxTokens > 0 && e.MaxTokens < need[1] {
		add("max_tokens", e.MaxTokens, fmt.Sprintf("too few for trips of %d days", e.Days), fmt.Sprintf("at least %d, or 0 for the usual number", need[1]))
	}
	return bad
}

// algorithmRules are the rules of the policy-gradient settings.
func (r Recipe) algorithmRules() []FieldError {
	var bad []FieldError
	a := &r.Algorithm
	add := func(key string, value any, allowed string) {
		bad = append(bad, FieldError{Field: "algorithm." + key, Value: fmt.Sprint(value), Problem: "does not fit the other settings", Allowed: allowed})
	}
	if a.ClipC != 0 && a.ClipC <= 1 {
		add("clip_ratio_c", a.ClipC, "above 1, or 0 for no dual clip")
	}
	if a.UseKLLoss && a.KLLossCoef == 0 {
		add("kl_loss_coef", a.KLLossCoef, "above 0 with use_kl_loss, such as 0.001")
	}
	if a.UseKLInReward && a.KLCoef == 0 {
		add("kl_coef", a.KLCoef, "above 0 with use_kl_in_reward, such as 0.001")
	}
	if a.EntropyDelta > 0 && a.EntropyTarget == 0 {
		add("entropy_target_delta", a.EntropyDelta, "0, unless algorithm.entropy_target is above 0")
	}
	if a.InitialRollouts > a.GroupSize {
		add("initial_rollouts", a.InitialRollouts, fmt.Sprintf("at most algorithm.group_size, %d", a.GroupSize))
	}
	if limit := r.Environment.MaxTokens; limit > 0 && a.OverlongBuffer >= limit {
		add("overlong_buffer_len", a.OverlongBuffer, fmt.Sprintf("below environment.max_tokens, %d", limit))
	}
	return bad
}

// rewardScores are the names that reward.weights may weight, beside the keys
// of the 13 checks.
var rewardScores = []string{"cs_micro", "cs_macro", "hard_micro", "hard_macro", "success", "delivery", "schema",
	"is_reasonable_visiting_city", "is_valid_restaurants", "is_valid_attractions", "is_valid_accommodation", "is_valid_transportation",
	"is_valid_information_in_current_city", "is_valid_information_in_sandbox", "is_not_absent",
	"valid_cost", "valid_room_rule", "valid_room_type", "valid_cuisine", "valid_transportation"}

var milestones = []string{"way_out", "way_home", "cities", "hotels", "restaurants", "attractions", "plan"}

var toolNames = []string{"SearchFlight", "GoogleDistanceMatrix", "SearchAccommodation", "SearchRestaurant", "SearchAttraction", "SearchCity"}

// rewardRules are the rules of stages, weights and milestones.
func (r Recipe) rewardRules() []FieldError {
	var bad []FieldError
	add := func(key string, value any, problem, allowed string) {
		bad = append(bad, FieldError{Field: key, Value: fmt.Sprint(value), Problem: problem, Allowed: allowed})
	}
	staged := r.Reward.Kind == "CURRICULUM" || r.Reward.Kind == "PLANNER_R1"
	sum := 0.0
	for _, s := range r.Reward.Stages {
		sum += s
	}
	shares := r.Reward.StageBy == "" || r.Reward.StageBy == "share"
	switch n := len(r.Reward.Stages); {
	case n == 0 && staged:
		add("reward.stages", "", "missing", "three numbers that sum to 1, for SUM, MACRO and SUCCESS")
	case n > 0 && shares && (n != 3 || math.Abs(sum-1) > 1e-6):
		add("reward.stages", r.Reward.Stages, "not three shares of the steps", "three numbers that sum to 1, for SUM, MACRO and SUCCESS")
	case n > 0 && !shares && n != 2 && n != 3:
		add("reward.stages", r.Reward.Stages, "not two or three stages", "the "+r.Reward.StageBy+"s under SUM and MACRO; SUCCESS pays for the rest")
	}
	if r.Reward.Kind == "WEIGHTED" && len(r.Reward.Weights) == 0 {
		add("reward.weights", "", "missing", "a number for at least one of "+strings.Join(rewardScores[:7], ", ")+" or the key of a check")
	}
	bad = append(bad, numberMap("reward.weights", r.Reward.Weights, rewardScores)...)
	bad = append(bad, numberMap("reward.milestones", r.Reward.Milestones, milestones)...)
	if pay, asked := r.Reward.Milestones["cities"]; asked && r.Trainer.Kind == "cpu" && r.Environment.Days == 3 {
		add("reward.milestones.cities", pay, "out of reach", strings.Join(slices.DeleteFunc(slices.Clone(milestones), func(m string) bool { return m == "cities" }), ", ")+
			": in the nano world's trips of three days no tool lists cities")
	}
	return bad
}

// failureRules are the rules of injected failures.
func (r Recipe) failureRules() []FieldError {
	e := r.Environment
	bad := numberMap("environment.failure_rates", e.FailureRates, toolNames)
	if e.ThinkBudget > 0 && e.Reasoning != "deliberative" {
		bad = append(bad, FieldError{Field: "environment.think_budget", Value: fmt.Sprint(e.ThinkBudget), Problem: "without effect", Allowed: "0, unless environment.reasoning is deliberative"})
	}
	return bad
}

// numberMap checks a map from known names to numbers within its field's limits.
func numberMap(key string, m map[string]string, names []string) []FieldError {
	var bad []FieldError
	f, _ := FieldOf(key)
	for _, k := range sortedKeys(m) {
		if !slices.Contains(names, k) {
			bad = append(bad, FieldError{Field: key + "." + k, Value: m[k], Problem: "unknown key", Allowed: strings.Join(names, ", "), Suggestion: Nearest(k, names)})
			continue
		}
		if n, err := strconv.ParseFloat(m[k], 64); err != nil || math.IsNaN(n) || !f.inRange(n) {
			bad = append(bad, FieldError{Field: key + "." + k, Value: m[k], Problem: "wrong value", Allowed: "a number" + f.limits()})
		}
	}
	return bad
}

// Numbers reads a map whose values are numbers as texts; nil for an empty one.
func Numbers(m map[string]string) (map[string]float64, error) {
	if len(m) == 0 {
		return nil, nil
	}
	out := make(map[string]float64, len(m))
	for k, s := range m {
		n, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return nil, fmt.Errorf("%s is %q, must be a number: %w", k, s, ErrInvalid)
		}
		out[k] = n
	}
	return out, nil
}

// ParseMix reads "easy:medium:hard".
func ParseMix(s string) ([3]int, error) {
	var m [3]int
	parts := strings.Split(s, ":")
	if len(parts) != 3 {
		return m, fmt.Errorf("mix %q: want easy:medium:hard: %w", s, ErrInvalid)
	}
	total := 0
	for i, p := range parts {
		n, err := strconv.Atoi(strings.TrimSpace(p))
		if err != nil || n < 0 || n > 1000 {
			return m, fmt.Errorf("mix %q: part %q is not a whole number from 0 to 1000: %w", s, p, ErrInvalid)
		}
		m[i], total = n, total+n
	}
	if total == 0 {
		return m, fmt.Errorf("mix %q: all parts are zero: %w", s, ErrInvalid)
	}
	return m, nil
}

var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$`)

// Limits on a study's size, so that a slip of the pen does not fill the queue.
const (
	MaxFactors = 16
	MaxRuns    = 10000
)

// MaxPriority bounds a run's priority, both ways.
const MaxPriority = 1_000_000

// Validate checks the study and, through Expand, every arm's recipe.
func (s Study) Validate() error {
	_, err := Expand(s)
	return err
}

// check returns what is wrong with the study's own fields.
func (s Study) check() []FieldError {
	var bad []FieldError
	add := func(field, value, problem, allowed string) {
		bad = append(bad, FieldError{Field: field, Value: value, Problem: problem, Allowed: allowed})
	}
	if !namePattern.MatchString(s.Name) {
		add("name", s.Name, "missing or unusable", "1 to 64 letters, digits, spaces, dots, hyphens or underscores, starting with a letter or digit")
	}
	switch s.Design {
	case DesignGrid, DesignOneFactor, DesignList:
	default:
		bad = append(bad, FieldError{Field: "design", Value: string(s.Design), Problem: "unknown value", Allowed: "grid, one-factor, list",
			Suggestion: Nearest(string(s.Design), []string{"grid", "one-factor", "list"})})
	}
	if s.Design == DesignList && len(s.Arms) == 0 {
		add("arms", "", "missing", "with design list, one map of recipe keys to values for each arm")
	}
	if s.Design != DesignList && len(s.Arms) > 0 {
		add("arms", fmt.Sprint(len(s.Arms), " arms"), "only for design list", "design: list, or factors instead of arms")
	}
	if len(s.Seeds) == 0 {
		add("seeds", "", "missing", "at least one whole number, such as [1, 2, 3]")
	}
	seen := map[uint64]bool{}
	for _, x := range s.Seeds {
		if seen[x] {
			add("seeds", fmt.Sprint(x), "given twice", "each seed once")
		}
		seen[x] = true
	}
	if s.Metric == "" || strings.ContainsAny(s.Metric, " \t\n") {
		add("metric", s.Metric, "missing or unusable", "the name of a metric, such as eval/success")
	}
	if s.MinDifference < 0 || math.IsNaN(s.MinDifference) {
		add("min_difference", fmt.Sprint(s.MinDifference), "out of range", "a number of at least 0, in the metric's unit (0.03 = 3 points of success)")
	}
	if s.Concurrency < 0 {
		add("concurrency", fmt.Sprint(s.Concurrency), "out of range", "0 for no limit, or the most runs at once")
	}
	if s.Halving != nil {
		bad = append(bad, s.Halving.check()...)
	}
	if s.Priority < -MaxPriority || s.Priority > MaxPriority {
		add("priority", fmt.Sprint(s.Priority), "out of range", fmt.Sprintf("a whole number from %d to %d; larger runs first", -MaxPriority, MaxPriority))
	}
	return append(bad, s.checkFactors()...)
}

func (s Study) checkFactors() []FieldError {
	var bad []FieldError
	if len(s.Factors) > MaxFactors {
		bad = append(bad, FieldError{Field: "factors", Value: fmt.Sprint(len(s.Factors)), Problem: "too many", Allowed: fmt.Sprintf("at most %d", MaxFactors)})
	}
	seen := map[string]bool{}
	for i, f := range s.Factors {
		at := fmt.Sprintf("factors[%d]", i)
		if seen[f.Key] {
			bad = append(bad, FieldError{Field: at + ".key", Value: f.Key, Problem: "given twice", Allowed: "each recipe key once"})
		}
		seen[f.Key] = true
		field, ok := FieldOf(f.Key)
		if !ok {
			bad = append(bad, FieldError{Field: at + ".key", Value: f.Key, Problem: "unknown key", Allowed: "a recipe key, such as reward.kind or data.prompts", Suggestion: Nearest(f.Key, FieldKeys())})
			continue
		}
		if len(f.Levels) == 0 {
			bad = append(bad, FieldError{Field: at + ".levels", Problem: "missing", Allowed: "at least one value; " + field.Allowed()})
		}
		values := map[string]bool{}
		for j, l := range f.Levels {
			c, err := field.Coerce(l)
			var fe FieldError
			if errors.As(err, &fe) {
				fe.Field = fmt.Sprintf("%s.levels[%d]", at, j)
				bad = append(bad, fe)
				continue
			}
			if k := fmt.Sprint(c); values[k] {
				bad = append(bad, FieldError{Field: fmt.Sprintf("%s.levels[%d]", at, j), Value: k, Problem: "given twice", Allowed: "each level once"})
			} else {
				values[k] = true
			}
		}
	}
	return bad
}
