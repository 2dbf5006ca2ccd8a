package travel

import (
	"fmt"

	"alidade/ablation"
)

// FailuresOf reads how a recipe's tools fail in training. Evaluation is
// always clean: use the zero Failures there.
func FailuresOf(r ablation.Recipe, seed uint64) (Failures, error) {
	e := r.Environment
	rates, err := ablation.Numbers(e.FailureRates)
	if err != nil {
		return Failures{}, fmt.Errorf("environment.failure_rates: %w", err)
	}
	f := Failures{Rate: e.ToolFailureRate, Seed: seed, Kind: e.FailureKind, Tools: rates, LatencyMS: e.FailureLatencyMS}
	if err := f.Check(ToolNames()); err != nil {
		return Failures{}, fmt.Errorf("environment: %w", err)
	}
	return f, nil
}

// ConfigOf reads under which rules a recipe's training episodes run. seed is
// the run's, for failures; the caller sets ID.
func ConfigOf(r ablation.Recipe, seed uint64) (EpisodeConfig, error) {
	f, err := FailuresOf(r, seed)
	if err != nil {
		return EpisodeConfig{}, err
	}
	c := EpisodeConfig{Failures: f, MaxTurns: r.Environment.MaxTurns, Milestones: MilestonesOf(r)}
	if c.Profile, err = ParseProfile(r.Reward.Profile); err != nil {
		return EpisodeConfig{}, fmt.Errorf("reward.%w", err)
	}
	return c, nil
}

// ReactOf reads a recipe's budgets and parsing for a conversation.
func ReactOf(r ablation.Recipe) ReactConfig {
	return ReactConfig{MaxContext: r.Environment.MaxTokens, StrictPlan: r.Environment.Answer == "strict"}
}

// ToolNames lists the six tools.
func ToolNames() []string {
	var names []string
	for _, t := range ToolSpecs() {
		names = append(names, t.Name)
	}
	return names
}
