package ablation

import (
	"errors"
	"strings"
	"testing"
)

// How long trips and episodes may be follows from each other and from the trainer.
func TestTripRules(t *testing.T) {
	tests := []struct {
		name          string
		days          int
		turns, tokens int
		trainer       string
		wrong         string // part of the message; "" = fine
	}{
		{"three days", 3, 12, 180, "cpu", ""},
		{"three days, usual limits", 3, 0, 0, "cpu", ""},
		{"five days, usual limits", 5, 0, 0, "cpu", ""},
		{"seven days, usual limits", 7, 0, 0, "cpu", ""},
		{"five days in the preset's limits", 5, 12, 180, "cpu", "environment.max_tokens: 180: too few for trips of 5 days"},
		{"seven days in the preset's calls", 7, 12, 448, "cpu", "environment.max_turns: 12: too few for trips of 7 days"},
		{"the least for five days", 5, 10, 211, "cpu", ""},
		{"mixed days", 0, 12, 180, "cpu", "environment.days: 0"},
		{"four days", 4, 0, 0, "cpu", "environment.days: 4"},
		{"less than a prompt", 3, 12, 31, "cpu", "environment.max_tokens: 31"},
		{"no limit for a language model", 3, 0, 30000, "endpoint", "environment.max_turns: 0"},
		{"no context for a language model", 3, 60, 0, "endpoint", "environment.max_tokens: 0"},
	}
	for _, tt := range tests {
		r := quickRecipe()
		r.Trainer.Kind = tt.trainer
		r.Environment.Days, r.Environment.MaxTurns, r.Environment.MaxTokens = tt.days, tt.turns, tt.tokens
		var bad *Invalid
		text := ""
		if err := r.Validate(); errors.As(err, &bad) {
			for _, f := range bad.Fields {
				text += f.Field + ": " + f.Value + ": " + f.Problem + "; "
			}
		}
		ours := strings.Contains(text, "environment.days") || strings.Contains(text, "environment.max_t")
		if tt.wrong == "" && ours || tt.wrong != "" && !strings.Contains(text, tt.wrong) {
			t.Errorf("%s: %q, want %q", tt.name, text, tt.wrong)
		}
	}
}

// Trips of another length are learned from other traces, and longer ones in
// another language.
func TestStagesDependOnTheDays(t *testing.T) {
	key := func(days int) string {
		r := quickRecipe()
		r.Environment.Days, r.Environment.MaxTurns, r.Environment.MaxTokens = days, 0, 0
		return SFTKey(r, 1)
	}
	if key(3) == key(5) || key(5) == key(7) {
		t.Error("trips of different lengths share an SFT checkpoint")
	}
	if ShipsBase("large", false) || ShipsBase("xl", true) {
		t.Error("a base is said to be shipped that is not")
	}
}
