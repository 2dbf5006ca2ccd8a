package published

import "fmt"

// largeModels is the comparison with large general models: the numbers stand
// on the bars.
func largeModels() []Value {
	bars := []struct {
		label   string
		success float64
		note    string
	}{
		{"STAR RL, 7B", 62.8, "SUM with GRPO"},
		{"Planner-R1, 32B", 56.9, "taken over from arXiv 2509.25779"},
		{"STAR RL, 3B", 49.9, "CURRICULUM with GRPO"},
		{"STAR RL, 1.5B", 37.5, "MACRO with ARPO"},
		{"GPT-5", 21.2, "taken over from arXiv 2509.25779"},
		{"SFT, 7B", 19.7, ""},
		{"Qwen3.5-397B-A17B", 17.6, ""},
		{"DeepSeek-V3.2-Exp-671B", 17.2, ""},
		{"Gemini3-Pro", 16.7, ""},
		{"Seed-1.8", 12.9, ""},
		{"SFT, 3B", 12.2, ""},
		{"Kimi-K2.5-1T", 11.8, ""},
		{"Qwen3.5-122B-A10B", 9.8, ""},
		{"SFT, 1.5B", 6.9, ""},
	}
	out := make([]Value, 0, len(bars))
	for _, b := range bars {
		out = append(out, Value{
			Set: "star-figure-1", Label: b.label, Levels: map[string]any{}, Metric: "eval/success",
			Value: percent(b.success), Unit: Fraction, Strength: Exact, Note: b.note,
			Protocol: Protocol{Model: b.label, Test: starTest, Queries: 1000, Runs: 1},
			Source:   Source{ArXiv: starPaper, Place: "Figure 1"},
		})
	}
	return out
}

// dataSize is success (bars read off) and out-of-domain accuracy (a table)
// against the number of RL prompts, at an equal number of gradient steps.
func dataSize() []Value {
	points := []struct {
		prompts      int
		success, ood float64
	}{
		{0, 12.2, 30.7}, {100, 37.5, 33.8}, {200, 44.1, 33.4}, {500, 45.4, 33.6}, {1000, 49.9, 35.0}, {2000, 50.8, 32.2},
	}
	var out []Value
	for _, p := range points {
		v := Value{
			Set: "star-figure-5", Label: fmt.Sprintf("%d prompts, 3B", p.prompts), Scale: "3B",
			Levels:   map[string]any{"data.prompts": p.prompts, "reward.kind": "CURRICULUM", "model.size": starModel("3B")},
			Protocol: Protocol{Model: starModel("3B"), Test: starTest, Queries: 1000, Runs: 1, Decode: decode},
			Note:     "about 155 gradient steps at every size",
		}
		if p.prompts == 0 {
			v.Label, v.Note = "SFT, 3B", "the SFT checkpoint, no RL"
		}
		in, ood := v, v
		in.Metric, in.Value, in.Unit, in.Strength = "eval/success", percent(p.success), Fraction, ReadOff
		in.Source = Source{ArXiv: starPaper, Place: "Figure 5"}
		if p.prompts == 0 || p.prompts == 1000 {
			in.Strength = Exact // also printed in Table 1
		}
		ood.Metric, ood.Value, ood.Unit, ood.Strength = "ood/mean", percent(p.ood), Fraction, Exact
		ood.Source = Source{ArXiv: starPaper, Place: "Table 9"}
		ood.Protocol.Test, ood.Protocol.Queries = starOOD, 0
		out = append(out, in, ood)
	}
	return out
}

// failureRate holds the one point of the tool-failure figure for which a
// number is known; the rest of the figure is known in words only, see
// [FailureStatements].
func failureRate() []Value {
	return []Value{{
		Set: "star-figure-6", Label: "no failures, 3B", Scale: "3B",
		Levels: map[string]any{"environment.tool_failure_rate": 0.0, "reward.kind": "MACRO", "model.size": starModel("3B")},
		Metric: "eval/success", Value: percent(48.2), Unit: Fraction, Strength: Derived,
		Protocol: Protocol{Model: starModel("3B"), Test: starTest, Queries: 1000, Runs: 1, Decode: decode},
		Source:   Source{ArXiv: starPaper, Place: "Figure 6"},
		Note:     "the point without failures is the MACRO cell of Table 1; no numbers are printed for 1, 2, 5 and 10 %",
	}}
}

// FailureStatements are what the tool-failure figure is said to show, for the
// rates whose numbers are not printed.
func FailureStatements() []string {
	return []string{
		"trained with up to 5 % failing calls, success in a clean evaluation stays about level",
		"at 10 % learning is slower and less steady, and every test metric falls",
	}
}
