package travel

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"alidade/ablation"
	"alidade/sandbox"
	"alidade/trainer"
)

// The published rewards, one that a recipe weights itself, and a control.
const (
	RewardSum        = "SUM"        // cs_micro + cs_macro + hard_micro + hard_macro + success, 0..5
	RewardMacro      = "MACRO"      // cs_macro + hard_macro + success, 0, 1 or 3
	RewardSuccess    = "SUCCESS"    // success, 0 or 1
	RewardCurriculum = "CURRICULUM" // SUM, then MACRO, then SUCCESS
	RewardPlannerR1  = "PLANNER_R1" // CURRICULUM with Planner-R1's weights: its first two stages pay the plan's schema too
	RewardWeighted   = "WEIGHTED"   // the recipe's own weights
	RewardRandom     = "RANDOM"     // control: a seeded coin, whatever the plan
)

// RewardKinds lists the rewards.
func RewardKinds() []string {
	return []string{RewardSum, RewardMacro, RewardSuccess, RewardCurriculum, RewardPlannerR1, RewardWeighted, RewardRandom}
}

// The scores that a reward can weight, beside the checks by their keys.
const (
	ScoreCSMicro   = "cs_micro"
	ScoreCSMacro   = "cs_macro"
	ScoreHardMicro = "hard_micro"
	ScoreHardMacro = "hard_macro"
	ScoreSuccess   = "success"
	ScoreDelivery  = "delivery" // a plan was delivered
	ScoreSchema    = "schema"   // its days are objects with all seven texts
)

// Weight is one term of a reward.
type Weight struct {
	Score  string // one of the Score constants, or the key of a check
	Weight float64
}

func ones(scores ...string) []Weight {
	list := make([]Weight, len(scores))
	for i, s := range scores {
		list[i] = Weight{s, 1}
	}
	return list
}

// WeightNames lists what kind WEIGHTED can weight.
func WeightNames() []string {
	names := []string{ScoreCSMicro, ScoreCSMacro, ScoreHardMicro, ScoreHardMacro, ScoreSuccess, ScoreDelivery, ScoreSchema}
	for c := range nChecks {
		names = append(names, c.Key())
	}
	return names
}

// Reward says how a trajectory is paid.
type Reward struct {
	Kind    string             // one of RewardKinds
	Stages  []float64          // staged kinds: shares of the steps in each stage; none = 0.4, 0.4, 0.2
	Weights map[string]float64 // kind WEIGHTED: by WeightNames
}

// RewardOf reads a recipe. Stages given in steps or epochs become shares of
// the recipe's steps.
func RewardOf(r ablation.Recipe) Reward {
	weights, _ := ablation.Numbers(r.Reward.Weights) // validated with the recipe
	return Reward{Kind: r.Reward.Kind, Stages: StageShares(r), Weights: weights}
}

// StageShares are the recipe's curriculum stages as shares of its steps. An
// epoch is as many steps as it takes to use every prompt once.
func StageShares(r ablation.Recipe) []float64 {
	if len(r.Reward.Stages) == 0 || r.Reward.StageBy == "" || r.Reward.StageBy == "share" || r.Budget.Steps < 1 {
		return r.Reward.Stages
	}
	per := 1.0
	if r.Reward.StageBy == "epoch" {
		per = math.Ceil(float64(r.Data.Prompts) / math.Max(1, float64(r.Algorithm.PromptsPerStep)))
	}
	shares := make([]float64, len(r.Reward.Stages))
	left := 1.0
	for i, n := range r.Reward.Stages {
		shares[i] = math.Min(n*per/float64(r.Budget.Steps), left)
		left -= shares[i]
	}
	return shares
}

// MilestonesOf reads the recipe's sub-goals, nil for none.
func MilestonesOf(r ablation.Recipe) map[string]float64 {
	pay, _ := ablation.Numbers(r.Reward.Milestones) // validated with the recipe
	return pay
}

// CheckReward refuses an unknown kind or stages that are no shares.
func CheckReward(kind string, stages []float64) error {
	return Reward{Kind: kind, Stages: stages, Weights: map[string]float64{ScoreSuccess: 1}}.Check()
}

// Check refuses an unknown kind, stages that are no shares, and weights that
// name no score.
func (s Reward) Check() error {
	if !slices.Contains(RewardKinds(), s.Kind) {
		return fmt.Errorf("reward kind is %q, must be one of %v", clip(s.Kind), RewardKinds())
	}
	sum := 0.0
	for _, share := range s.Stages {
		if !(share >= 0 && share <= 1) {
			return fmt.Errorf("reward stage is %v, must be a share from 0 to 1", share)
		}
		sum += share
	}
	if len(s.Stages) > 3 || sum > 1+1e-9 {
		return fmt.Errorf("reward stages are %v, must be at most three shares of the steps that sum to 1", s.Stages)
	}
	if s.Kind != RewardWeighted {
		return nil
	}
	if len(s.Weights) == 0 {
		return fmt.Errorf("reward weights are missing, must be at least one of %s", strings.Join(WeightNames(), ", "))
	}
	for name, w := range s.Weights {
		if !slices.Contains(WeightNames(), name) {
			return fmt.Errorf("reward weight %q, must be one of %s", clip(name), strings.Join(WeightNames(), ", "))
		}
		if math.IsNaN(w) || math.IsInf(w, 0) {
			return fmt.Errorf("reward weight of %s is %v, must be a number", name, w)
		}
	}
	return nil
}

// StageOf returns the reward that CURRICULUM pays after a share of the
// training steps, 0..1. stages are the shares of the steps under SUM, MACRO
// and SUCCESS; none means the published two, two and one epochs of five.
func StageOf(stages []float64, progress float64) string {
	return [...]string{RewardSum, RewardMacro, RewardSuccess}[stageOf(stages, progress)]
}

func stageOf(stages []float64, progress float64) int {
	if len(stages) == 0 {
		stages = []float64{0.4, 0.4, 0.2}
	}
	const slack = 1e-9 // 62 of 155 steps are 0.4
	end := 0.0
	for i := range 2 {
		if i < len(stages) {
			end += stages[i]
		}
		if progress < end-slack {
			return i
		}
	}
	return 2
}

// Terms are the weighted scores that the reward adds up after a share of the
// training steps, in a fixed order.
func (s Reward) Terms(progress float64) []Weight {
	switch s.Kind {
	case RewardMacro:
		return ones(ScoreCSMacro, ScoreHardMacro, ScoreSuccess)
	case RewardSuccess:
		return ones(ScoreSuccess)
	case RewardCurriculum:
		return Reward{Kind: StageOf(s.Stages, progress)}.Terms(progress)
	case RewardPlannerR1:
		switch stageOf(s.Stages, progress) {
		case 0:
			return ones(ScoreSchema, ScoreCSMicro, ScoreCSMacro, ScoreHardMicro, ScoreHardMacro, ScoreSuccess)
		case 1:
			return ones(ScoreSchema, ScoreCSMacro, ScoreHardMacro, ScoreSuccess)
		}
		return ones(ScoreSuccess)
	case RewardWeighted:
		var terms []Weight
		for _, name := range WeightNames() {
			if w, ok := s.Weights[name]; ok {
				terms = append(terms, Weight{name, w})
			}
		}
		return terms
	case RewardRandom:
		return nil
	}
	return ones(ScoreCSMicro, ScoreCSMacro, ScoreHardMicro, ScoreHardMacro, ScoreSuccess)
}

// Score pays a judgement with one of the published rewards; see [Reward.Score].
func Score(kind string, stages []float64, progress float64, j Judgement, formatError bool) (reward float64, parts []trainer.Component) {
	return Reward{Kind: kind, Stages: stages}.Score(progress, j, nil, formatError)
}

// Score pays a judgement. progress is the share of RL steps done before this
// one, (step − 1) / steps. extra are parts paid beside the scores, such as
// milestones. The parts sum to the reward. A format error makes the reward 0:
// it is a part of its own, minus everything else. RANDOM tosses the
// judgement's Draw, which the episode sets.
func (s Reward) Score(progress float64, j Judgement, extra []trainer.Component, formatError bool) (reward float64, parts []trainer.Component) {
	terms := s.Terms(progress)
	parts = make([]trainer.Component, 0, len(terms)+len(extra)+1)
	for _, t := range terms {
		parts = append(parts, trainer.Component{Name: t.Score, Value: t.Weight * j.score(t.Score)})
	}
	if s.Kind == RewardRandom {
		parts = append(parts, trainer.Component{Name: "random", Value: float64(sandbox.Mix(j.Draw, 0x7261_6e64) >> 63)})
	}
	parts = append(parts, extra...)
	for i := range parts {
		reward += parts[i].Value
	}
	if formatError {
		parts = append(parts, trainer.Component{Name: "format_error", Value: -reward})
		reward = 0
	}
	return reward, parts
}

// score returns one of the scores, or 1 for a check that passed. A check that
// the query does not ask for counts as passed.
func (j *Judgement) score(name string) float64 {
	switch name {
	case ScoreCSMicro:
		return j.CSMicro
	case ScoreCSMacro:
		return j.CSMacro
	case ScoreHardMicro:
		return j.HardMicro
	case ScoreHardMacro:
		return j.HardMacro
	case ScoreSuccess:
		return number(j.Success)
	case ScoreDelivery:
		return number(j.Delivered)
	case ScoreSchema:
		return number(j.Schema)
	}
	for i := range j.Verdicts {
		if v := &j.Verdicts[i]; v.Check == name {
			return number(v.Outcome == OutcomePass || v.Outcome == OutcomeNA)
		}
	}
	return 0
}

// Scores are the scores every record keeps, whatever pays.
func (j *Judgement) Scores() map[string]float64 {
	scores := make(map[string]float64, 6)
	for _, name := range [...]string{ScoreCSMicro, ScoreCSMacro, ScoreHardMicro, ScoreHardMacro, ScoreSuccess, ScoreDelivery} {
		scores[name] = j.score(name)
	}
	return scores
}

// milestoneLabel names the turns at which sub-goals were reached, for a record.
func milestoneLabel(turns map[string]int) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(turns)) {
		list = append(list, fmt.Sprintf("%s turn %d", name, turns[name]))
	}
	return "outside the published design: " + strings.Join(list, ", ")
}
