package travel

import (
	"fmt"

	"alidade/sandbox"
	"alidade/trainer"
)

// The published rewards, and a control.
const (
	RewardSum        = "SUM"        // cs_micro + cs_macro + hard_micro + hard_macro + success, 0..5
	RewardMacro      = "MACRO"      // cs_macro + hard_macro + success, 0, 1 or 3
	RewardSuccess    = "SUCCESS"    // success, 0 or 1
	RewardCurriculum = "CURRICULUM" // SUM, then MACRO, then SUCCESS
	RewardRandom     = "RANDOM"     // control: a seeded coin, whatever the plan
)

// RewardKinds lists the rewards.
func RewardKinds() []string {
	return []string{RewardSum, RewardMacro, RewardSuccess, RewardCurriculum, RewardRandom}
}

// CheckReward refuses an unknown kind or stages that are no shares.
func CheckReward(kind string, stages []float64) error {
	for _, k := range RewardKinds() {
		if k != kind {
			continue
		}
		sum := 0.0
		for _, s := range stages {
			if !(s >= 0 && s <= 1) {
				return fmt.Errorf("reward stage is %v, must be a share from 0 to 1", s)
			}
			sum += s
		}
		if len(stages) > 3 || sum > 1+1e-9 {
			return fmt.Errorf("reward stages are %v, must be at most three shares of the steps that sum to 1", stages)
		}
		return nil
	}
	return fmt.Errorf("reward kind is %q, must be one of %v", clip(kind), RewardKinds())
}

// StageOf returns the reward that CURRICULUM pays after a share of the
// training steps, 0..1. stages are the shares of the steps under SUM, MACRO
// and SUCCESS; none means the published two, two and one epochs of five.
func StageOf(stages []float64, progress float64) string {
	if len(stages) == 0 {
		stages = []float64{0.4, 0.4, 0.2}
	}
	const slack = 1e-9 // 62 of 155 steps are 0.4
	end := 0.0
	for i, kind := range [...]string{RewardSum, RewardMacro} {
		if i < len(stages) {
			end += stages[i]
		}
		if progress < end-slack {
			return kind
		}
	}
	return RewardSuccess
}

// Score pays a judgement. progress is the share of RL steps done before this
// one, (step − 1) / steps. The parts sum to the reward. A format error makes
// the reward 0: it is a part of its own, minus what the plan would have
// scored. All weights are 1; there is no step or length bonus. RANDOM tosses
// the judgement's Draw, which the episode sets.
func Score(kind string, stages []float64, progress float64, j Judgement, formatError bool) (reward float64, parts []trainer.Component) {
	if kind == RewardCurriculum {
		kind = StageOf(stages, progress)
	}
	success := 0.0
	if j.Success {
		success = 1
	}
	parts = make([]trainer.Component, 0, 6)
	put := func(name string, value float64) {
		reward += value
		parts = append(parts, trainer.Component{Name: name, Value: value})
	}
	switch kind {
	case RewardRandom:
		put("random", float64(sandbox.Mix(j.Draw, 0x7261_6e64)>>63))
	case RewardSuccess:
		put("success", success)
	case RewardMacro:
		put("cs_macro", j.CSMacro)
		put("hard_macro", j.HardMacro)
		put("success", success)
	default:
		put("cs_micro", j.CSMicro)
		put("cs_macro", j.CSMacro)
		put("hard_micro", j.HardMicro)
		put("hard_macro", j.HardMacro)
		put("success", success)
	}
	if formatError {
		parts = append(parts, trainer.Component{Name: "format_error", Value: -reward})
		reward = 0
	}
	return reward, parts
}
