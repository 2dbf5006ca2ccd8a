package published

const (
	agentPaper = "2510.11701"
	dapoPaper  = "2503.14476"
)

func agentValue(set, place, label, model, metric string, value float64, strength Strength, levels map[string]any, note string) Value {
	return Value{
		Set: set, Label: label, Levels: levels, Metric: metric, Value: percent(value), Unit: Fraction, Strength: strength, Note: note,
		Protocol: Protocol{Model: model, Test: "competition mathematics and code with a Python tool", Runs: 1, Decode: "temperature 1.0, top-p 0.6, 32 samples"},
		Source:   Source{ArXiv: agentPaper, Place: place},
	}
}

// agentSFTData compares SFT on stitched synthetic with real end-to-end traces.
func agentSFTData() []Value {
	rows := []struct {
		model, set string
		cells      [6]float64 // avg@32, pass@32, maj@32: stitched, real
	}{
		{"Qwen2.5-7B", "aime24", [6]float64{6.77, 17.91, 42.11, 57.57, 10.50, 27.13}},
		{"Qwen2.5-7B", "aime25", [6]float64{5.21, 18.24, 25.56, 48.42, 12.08, 29.18}},
		{"Qwen3-4B", "aime24", [6]float64{4.38, 33.23, 35.15, 75.66, 0.01, 51.64}},
		{"Qwen3-4B", "aime25", [6]float64{3.65, 29.79, 22.22, 72.88, 0.10, 45.82}},
	}
	names := []string{"avg@32", "pass@32", "maj@32"}
	var out []Value
	for _, r := range rows {
		for i, cell := range r.cells {
			traces := "stitched traces"
			if i%2 == 1 {
				traces = "real traces"
			}
			note := ""
			if r.model == "Qwen3-4B" && r.set == "aime25" && i%2 == 1 && i != 3 {
				note = "the running text prints a slightly different number"
			}
			out = append(out, agentValue("agentrl-table-1", "Table 1", traces+", "+r.model, r.model, r.set+"/"+names[i/2], cell, Exact, map[string]any{"model.size": r.model}, note))
		}
	}
	return out
}

// agentRecipe is the ablation of GRPO towards token loss, wider upper clip and
// over-long shaping.
func agentRecipe() []Value {
	const model, place = "Qwen3-4B", "section 4.1"
	tcr := map[string]any{"algorithm.loss_agg_mode": "token-mean", "algorithm.clip_high": 0.28}
	plain := map[string]any{"algorithm.loss_agg_mode": "token-mean", "algorithm.clip_high": 0.2}
	return []Value{
		agentValue("agentrl-recipe", place, "GRPO-TCR", model, "aime24/avg@32", 70.93, Exact, tcr, "best within 450 steps"),
		agentValue("agentrl-recipe", place, "GRPO-TCR", model, "aime25/avg@32", 68.13, Exact, tcr, "best within 450 steps"),
		agentValue("agentrl-recipe", place, "GRPO-T", model, "aime24/avg@32", 54.7, Exact, plain, "best; with a KL term"),
		agentValue("agentrl-recipe", place, "GRPO-T", model, "aime25/avg@32", 40.93, Exact, plain, "best; with a KL term"),
	}
}

// agentModels are the final models of the study and its peers.
func agentModels() []Value {
	rows := []struct {
		label string
		cells [4]float64 // AIME24, AIME25, GPQA-D, LiveCodeBench v6; −1 = not given
	}{
		{"Qwen2.5-7B-Instruct", [4]float64{16.7, 10.0, 31.3, 15.2}},
		{"Qwen3-4B-Instruct-2507", [4]float64{63.3, 47.4, 52.0, 35.1}},
		{"Qwen2.5-72B-Instruct", [4]float64{18.9, 15.0, 49.0, -1}},
		{"DeepSeek-V3", [4]float64{39.2, 28.8, 59.1, 16.1}},
		{"R1-Distill-32B", [4]float64{70.0, 46.7, 59.6, -1}},
		{"R1-Zero (671B)", [4]float64{71.0, 53.5, 59.6, -1}},
		{"Qwen2.5-7B, with tools", [4]float64{4.8, 5.6, 25.5, 12.2}},
		{"Qwen3-4B, with tools", [4]float64{17.9, 16.3, 44.3, 23.0}},
		{"ToRL-7B", [4]float64{43.3, 30.0, -1, -1}},
		{"ReTool-32B", [4]float64{72.5, 54.3, -1, -1}},
		{"Tool-Star-3B", [4]float64{20.0, 16.7, -1, -1}},
		{"ARPO-7B", [4]float64{30.0, 30.0, 53.0, 18.3}},
		{"rStar2-Agent-14B", [4]float64{80.6, 69.8, 60.9, -1}},
		{"DemyAgent-4B", [4]float64{72.6, 70.0, 58.5, 26.8}},
	}
	metrics := []string{"aime24/avg@32", "aime25/avg@32", "gpqa_diamond/accuracy", "livecodebench_v6/accuracy"}
	var out []Value
	for _, r := range rows {
		for i, cell := range r.cells {
			if cell >= 0 {
				out = append(out, agentValue("agentrl-table-2", "Table 2", r.label, r.label, metrics[i], cell, Exact, map[string]any{}, ""))
			}
		}
	}
	return out
}

// dapoSteps is DAPO's own ablation, each row adding one change.
func dapoSteps() []Value {
	rows := []struct {
		label string
		score float64
	}{
		{"GRPO", 30}, {"+ over-long filtering", 36}, {"+ wider upper clip", 38}, {"+ soft over-long penalty", 41}, {"+ token-level loss", 42}, {"+ dynamic sampling (DAPO)", 50},
	}
	var out []Value
	for _, r := range rows {
		out = append(out, Value{
			Set: "dapo-table-1", Label: r.label, Levels: map[string]any{}, Metric: "aime24/avg@32", Value: percent(r.score), Unit: Fraction, Strength: Exact,
			Protocol: Protocol{Model: "Qwen2.5-32B", Test: "AIME 2024", Queries: 30, Runs: 1, Decode: "32 samples"},
			Source:   Source{ArXiv: dapoPaper, Place: "Table 1"},
		})
	}
	return out
}
