package report

import (
	"math"
	"strings"

	"alidade/trainer"
)

func nan() float64 { return math.NaN() }

// rates are the metric families whose values are fractions.
var rates = []string{"eval/success", "eval/delivery", "eval/cs_", "eval/hard_", "eval/check/", "check/", "train/success", "group/zero_variance", "rollout/format_error", "rollout/overlong", "rollout/injected_share", "policy/clip_", "baseline/", "ood/"}

// names of metrics in words; others show their key.
var metricNames = map[string]string{
	"eval/success": "sampled success", "eval/success_greedy": "greedy success", "eval/delivery": "delivery",
	"eval/cs_micro": "commonsense, micro", "eval/cs_macro": "commonsense, macro", "eval/hard_micro": "hard constraints, micro", "eval/hard_macro": "hard constraints, macro",
	"eval/success_easy": "success, easy", "eval/success_medium": "success, medium", "eval/success_hard": "success, hard",
	"eval/success_official": "success, official checks", "eval/success_star": "success, STAR checks",
	"eval/tool_calls": "tool calls", "eval/tokens": "tokens", "reward/mean": "mean reward", "train/success": "success in training",
	"policy/entropy": "entropy", "group/zero_variance": "groups without gradient", "rollout/format_error": "format errors", "rollout/tool_calls": "tool calls in training",
}

// metric describes a metric key.
func metric(key string) Metric {
	m := Metric{Key: key, Name: metricNames[key]}
	if check, ok := strings.CutPrefix(key, "eval/check/"); ok {
		m.Name = checkName(check)
	}
	if m.Name == "" {
		m.Name = strings.ReplaceAll(strings.TrimPrefix(key, "ood/"), "_", " ")
	}
	m.Lower = strings.Contains(key, "loss") || strings.Contains(key, "error") || strings.HasPrefix(key, "time/")
	for _, r := range rates {
		if strings.HasPrefix(key, r) {
			m.Rate, m.Unit, m.Points = true, "%", "points"
			return m
		}
	}
	switch {
	case key == "policy/entropy":
		m.Unit = "nats"
	case strings.HasSuffix(key, "tokens"):
		m.Unit = "tokens"
	case strings.HasSuffix(key, "tool_calls"):
		m.Unit = "calls"
	}
	m.Points = m.Unit
	return m
}

// checkName is a check in words; a stranger's key with spaces.
func checkName(key string) string {
	if name := trainer.CheckName(key); name != "" {
		return strings.ToLower(name[:1]) + name[1:]
	}
	return strings.ReplaceAll(key, "_", " ")
}

// shown is a value in the unit that it is shown in.
func (m Metric) shown(v float64) float64 {
	if m.Rate {
		return 100 * v
	}
	return v
}

// beats says whether a is better than b.
func (m Metric) beats(a, b float64) bool {
	if m.Lower {
		return a < b
	}
	return a > b
}

// with is the name followed by the unit: "sampled success, %".
func (m Metric) with() string {
	if m.Unit == "" || strings.HasSuffix(m.Name, m.Unit) {
		return m.Name
	}
	return m.Name + ", " + m.Unit
}

// secondary are the metrics of the second table, in order.
var secondary = []string{
	"eval/success_greedy", "eval/delivery", "eval/cs_micro", "eval/cs_macro", "eval/hard_micro", "eval/hard_macro",
	"eval/success_easy", "eval/success_medium", "eval/success_hard", "eval/success_official", "eval/success_star",
	"eval/tool_calls", "eval/tokens", "reward/mean", "train/success", "policy/entropy", "group/zero_variance", "rollout/format_error",
}

// checkKeys are the checks' keys in the evaluator's order.
func checkKeys() []string {
	var keys []string
	for _, c := range trainer.Checks() {
		keys = append(keys, c.Key)
	}
	return keys
}
