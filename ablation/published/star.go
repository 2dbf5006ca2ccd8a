package published

const (
	starPaper = "2603.21972"
	starTest  = "the TravelPlanner test set (official evaluator)"
	starOOD   = "seven question-answering sets, one local Wikipedia search tool"
	decode    = "temperature 0.6, top-p 0.95"
)

// starModel is the policy behind a scale's name.
func starModel(scale string) string { return "Qwen2.5-" + scale + "-Instruct" }

// A row is one line of a published table: an arm and its cells.
type row struct {
	scale string
	arm   string
	cells []float64 // in the table's unit: %, GPU-hours or minutes
}

// constraintMetrics are the columns of the in-domain tables, all in %.
var constraintMetrics = []string{"eval/cs_micro", "eval/cs_macro", "eval/hard_micro", "eval/hard_macro", "eval/success"}

// starValues turns rows into values: columns name the metrics, levels turns a
// row into recipe keys.
func starValues(set, place string, columns []string, rows []row, levels func(row) map[string]any) []Value {
	var out []Value
	for _, r := range rows {
		for i, cell := range r.cells {
			v := Value{
				Set: set, Label: r.arm + ", " + r.scale, Levels: levels(r), Scale: r.scale,
				Metric: columns[i], Value: cell, Unit: unitOf(columns[i]),
				Protocol: Protocol{Model: starModel(r.scale), Test: starTest, Queries: 1000, Runs: 1, Decode: decode},
				Source:   Source{ArXiv: starPaper, Place: place}, Strength: Exact,
			}
			if v.Unit == Fraction {
				v.Value = percent(cell)
			}
			out = append(out, v)
		}
	}
	return out
}

func unitOf(metric string) string {
	switch metric {
	case "cost/gpu_hours":
		return GPUHours
	case "cost/min_per_step":
		return Minutes
	}
	return Fraction
}

// percent turns a printed percentage into the fraction nearest to it.
func percent(p float64) float64 { return p / 100 }

// rewardLevels keeps the reward for the four designs; base and SFT are not
// arms of a reward study, they are its reference lines.
func rewardLevels(r row) map[string]any {
	m := map[string]any{"model.size": starModel(r.scale)}
	switch r.arm {
	case "SUM", "MACRO", "SUCCESS", "CURRICULUM":
		m["reward.kind"] = r.arm
		m["algorithm.kind"] = "grpo"
		m["data.prompts"] = 1000
		m["data.mix"] = "4:3:3"
	}
	return m
}

func rewardScale() []Value {
	return starValues("star-table-1", "Table 1", constraintMetrics, []row{
		{"1.5B", "base", []float64{30.1, 0, 0, 0, 0}},
		{"1.5B", "SFT", []float64{65.9, 15.4, 17.2, 12.1, 6.9}},
		{"1.5B", "SUM", []float64{95.1, 71.6, 51.4, 33.4, 33.1}},
		{"1.5B", "MACRO", []float64{93.4, 68.4, 47.9, 31.6, 30.1}},
		{"1.5B", "SUCCESS", []float64{93.9, 68.2, 51.0, 34.7, 33.8}},
		{"1.5B", "CURRICULUM", []float64{93.9, 70.2, 51.0, 35.4, 34.9}},
		{"3B", "base", []float64{46.5, 0, 0, 0, 0}},
		{"3B", "SFT", []float64{70.4, 24.6, 28.6, 20.0, 12.2}},
		{"3B", "SUM", []float64{97.6, 82.5, 64.8, 47.6, 47.0}},
		{"3B", "MACRO", []float64{95.1, 79.6, 68.8, 52.3, 48.2}},
		{"3B", "SUCCESS", []float64{90.6, 76.1, 62.6, 47.7, 46.6}},
		{"3B", "CURRICULUM", []float64{95.3, 83.0, 67.6, 51.0, 49.9}},
		{"7B", "base", []float64{55.8, 0.1, 0.7, 0.7, 0.1}},
		{"7B", "SFT", []float64{77.1, 33.1, 40.6, 31.3, 19.7}},
		{"7B", "SUM", []float64{96.9, 87.4, 78.7, 66.5, 62.8}},
		{"7B", "MACRO", []float64{97.0, 89.8, 77.3, 60.0, 58.9}},
		{"7B", "SUCCESS", []float64{91.4, 78.3, 73.4, 64.0, 60.9}},
		{"7B", "CURRICULUM", []float64{96.1, 85.1, 76.6, 60.4, 57.0}},
	}, rewardLevels)
}

// oodMetrics are the columns of the out-of-domain tables.
var oodMetrics = []string{"ood/nq", "ood/triviaqa", "ood/popqa", "ood/hotpotqa", "ood/2wiki", "ood/musique", "ood/bamboogle", "ood/mean"}

func outOfDomain() []Value {
	values := starValues("star-table-2", "Table 2", oodMetrics, []row{
		{"1.5B", "base", []float64{7.1, 22.4, 9.9, 5.9, 4.3, 2.6, 8.0, 8.6}},
		{"1.5B", "SFT", []float64{13.5, 21.4, 13.5, 11.6, 7.0, 1.2, 12.0, 11.5}},
		{"1.5B", "Search-R1", []float64{39.4, 51.0, 39.7, 14.6, 24.4, 2.2, 4.0, 25.0}},
		{"1.5B", "SUM", []float64{32.1, 44.5, 30.9, 26.0, 14.8, 5.3, 16.8, 24.3}},
		{"1.5B", "MACRO", []float64{29.6, 45.1, 28.8, 26.9, 19.4, 6.3, 23.2, 25.6}},
		{"1.5B", "SUCCESS", []float64{24.8, 36.9, 21.3, 24.2, 17.7, 4.6, 23.2, 21.8}},
		{"1.5B", "CURRICULUM", []float64{20.6, 28.5, 20.5, 16.0, 11.7, 3.5, 17.6, 16.9}},
		{"3B", "base", []float64{10.6, 28.8, 10.8, 14.9, 24.4, 2.0, 2.4, 13.4}},
		{"3B", "SFT", []float64{35.1, 52.5, 31.3, 32.0, 24.4, 9.0, 30.4, 30.7}},
		{"3B", "Search-R1", []float64{34.1, 54.5, 37.8, 32.4, 31.9, 10.3, 26.4, 32.5}},
		{"3B", "SUM", []float64{38.2, 54.9, 34.3, 34.2, 23.3, 8.8, 27.2, 31.6}},
		{"3B", "MACRO", []float64{37.0, 54.5, 34.9, 37.9, 29.9, 11.6, 33.6, 34.2}},
		{"3B", "SUCCESS", []float64{37.5, 54.1, 34.0, 33.7, 19.4, 10.3, 32.0, 31.6}},
		{"3B", "CURRICULUM", []float64{41.0, 56.8, 36.2, 39.5, 27.7, 12.4, 32.0, 35.0}},
		{"7B", "base", []float64{13.4, 40.8, 14.0, 18.3, 25.0, 3.1, 12.0, 18.1}},
		{"7B", "SFT", []float64{41.2, 59.7, 37.6, 47.0, 37.8, 16.3, 53.6, 41.9}},
		{"7B", "Search-R1", []float64{39.3, 61.0, 39.7, 37.0, 41.4, 14.6, 36.8, 38.5}},
		{"7B", "SUM", []float64{35.5, 54.5, 34.8, 44.8, 34.6, 15.4, 37.6, 36.7}},
		{"7B", "MACRO", []float64{42.2, 61.2, 39.6, 48.8, 38.3, 17.4, 52.8, 42.9}},
		{"7B", "SUCCESS", []float64{38.7, 55.9, 35.2, 45.8, 38.4, 15.5, 41.6, 38.7}},
		{"7B", "CURRICULUM", []float64{41.1, 58.7, 37.7, 48.4, 38.5, 17.4, 45.6, 41.1}},
	}, rewardLevels)
	for i := range values {
		v := &values[i]
		v.Protocol.Test, v.Protocol.Queries = starOOD, 0
		if v.Metric == "ood/mean" && v.Label == "CURRICULUM, 3B" {
			v.Note = "printed 35.0; its seven cells average 35.1"
		}
	}
	return values
}

// mixes names the paper's difficulty compositions in this program's notation.
var mixes = map[string]string{"easy": "1:0:0", "medium": "0:1:0", "hard": "0:0:1", "mixed": "4:3:3"}

func difficulty() []Value {
	return starValues("star-table-3", "Table 3", constraintMetrics, []row{
		{"3B", "easy", []float64{92.8, 79.7, 62.8, 46.9, 45.3}},
		{"3B", "medium", []float64{94.9, 69.2, 66.2, 49.0, 41.1}},
		{"3B", "hard", []float64{90.0, 48.4, 65.5, 47.2, 25.9}},
		{"3B", "mixed", []float64{95.3, 83.0, 67.6, 51.0, 49.9}},
	}, func(r row) map[string]any {
		return map[string]any{"data.mix": mixes[r.arm], "data.prompts": 1000, "reward.kind": "CURRICULUM", "model.size": starModel(r.scale)}
	})
}

func algorithmScale() []Value {
	columns := append(append([]string{}, constraintMetrics...), "cost/min_per_step", "cost/gpu_hours")
	values := starValues("star-table-4", "Table 4", columns, []row{
		{"1.5B", "GRPO", []float64{93.4, 68.4, 47.9, 31.6, 30.1, 8.0, 164}},
		{"1.5B", "DAPO", []float64{94.4, 77.7, 55.6, 38.2, 36.9, 8.2, 183}},
		{"1.5B", "ARPO", []float64{93.1, 76.4, 58.1, 39.4, 37.5, 9.5, 195}},
		{"3B", "GRPO", []float64{95.1, 79.6, 68.8, 52.3, 48.2, 8.6, 176}},
		{"3B", "DAPO", []float64{93.6, 78.6, 66.1, 48.7, 45.6, 8.9, 184}},
		{"3B", "ARPO", []float64{95.4, 80.3, 67.9, 51.5, 47.5, 13.3, 273}},
		{"7B", "GRPO", []float64{96.9, 87.4, 78.7, 66.5, 62.8, 9.0, 368}},
		{"7B", "DAPO", []float64{95.6, 87.9, 75.4, 60.6, 58.4, 9.5, 390}},
		{"7B", "ARPO", []float64{96.7, 86.8, 76.6, 61.1, 58.3, 13.3, 547}},
	}, func(r row) map[string]any {
		return map[string]any{"algorithm.kind": lower(r.arm), "model.size": starModel(r.scale), "reward.kind": table4Reward(r.scale)}
	})
	for i := range values {
		values[i].Note = "reward " + table4Reward(values[i].Scale) + "; " + gpus(values[i].Scale)
	}
	return values
}

// table4Reward is the reward under which the algorithms were compared.
func table4Reward(scale string) string {
	if scale == "7B" {
		return "SUM"
	}
	return "MACRO"
}

func gpus(scale string) string {
	if scale == "7B" {
		return "16 × A100 80 GB"
	}
	return "8 × A100 80 GB"
}

func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
