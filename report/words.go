package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"alidade/ablation"
)

type (
	factor      = ablation.Factor
	queryResult = ablation.QueryResult
)

// touchesSFT says whether a recipe key changes the policy before RL. Tool
// failures are injected in RL only, and the mix is that of the RL prompts.
func touchesSFT(key string) bool {
	if key == "environment.tool_failure_rate" {
		return false
	}
	for _, p := range []string{"model.", "sft.", "environment.", "data.seed"} {
		if strings.HasPrefix(key, p) {
			return true
		}
	}
	return false
}

// sameLevel compares two levels, which may have come through YAML or JSON.
func sameLevel(a, b any) bool {
	x, xok := number(a)
	y, yok := number(b)
	if xok && yok {
		return x == y
	}
	return strings.EqualFold(fmt.Sprint(a), fmt.Sprint(b))
}

// number reads a numeric level.
func number(v any) (float64, bool) {
	switch n := v.(type) {
	case int:
		return float64(n), true
	case int64:
		return float64(n), true
	case uint64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

// levelText shows a level: rates in %, numbers in full.
func levelText(key string, v any) string {
	if n, ok := number(v); ok {
		if strings.HasSuffix(key, "_rate") {
			return trimZero(fmt.Sprintf("%.2f", 100*n)) + "\u2009%"
		}
		return strconv.FormatFloat(n, 'g', -1, 64)
	}
	return fmt.Sprint(v)
}

// factorName is a factor's label.
func factorName(f factor) string {
	if f.Name != "" {
		return f.Name
	}
	if field, ok := ablation.FieldOf(f.Key); ok {
		return field.Label
	}
	return f.Key[strings.LastIndex(f.Key, ".")+1:]
}

// trimZero drops a fraction of zeros: "2.0" → "2".
func trimZero(s string) string {
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// num writes a value with the house minus.
func num(v float64, digits int) string {
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 1):
		return "+Inf"
	case math.IsInf(v, -1):
		return "−Inf"
	}
	s := strconv.FormatFloat(v, 'f', digits, 64)
	if strings.Trim(s, "-0.") == "" {
		s = strings.TrimPrefix(s, "-") // no negative zero
	}
	return strings.Replace(s, "-", "−", 1)
}

// signed is num with a plus.
func signed(v float64, digits int) string {
	s := num(v, digits)
	if v > 0 && isFinite(v) && strings.Trim(s, "0.") != "" {
		return "+" + s
	}
	return s
}

// digits are the decimals in which a metric is shown.
func (m Metric) digits(v float64) int {
	switch {
	case m.Rate:
		return 1
	case math.Abs(v) >= 100:
		return 0
	case math.Abs(v) >= 10:
		return 1
	}
	return 2
}

// number shows a value without its unit.
func (m Metric) number(v float64) string { s := m.shown(v); return num(s, m.digits(s)) }

// diff shows a difference without its unit.
func (m Metric) diff(v float64) string { s := m.shown(v); return signed(s, m.digits(s)) }

// value shows a value with its unit.
func (m Metric) value(v float64) string {
	if m.Unit == "" {
		return m.number(v)
	}
	return m.number(v) + "\u2009" + m.Unit
}

// span shows an interval: "[28.0, 34.0]".
func (m Metric) span(iv *Interval, signs bool) string {
	if iv == nil {
		return ""
	}
	show := m.number
	if signs {
		show = m.diff
	} else if m.Rate { // a t interval may leave the range that a rate has
		iv = &Interval{Low: max(0, iv.Low), High: min(1, iv.High)}
	}
	return "[" + show(iv.Low) + ", " + show(iv.High) + "]"
}

// main is the interval that stands beside an estimate: query noise where it
// is known, else seed noise.
func (e Estimate) main() *Interval {
	if e.Query != nil {
		return e.Query
	}
	return e.Seed
}

// and lists names: "a, b and c".
func and(names []string) string {
	switch len(names) {
	case 0:
		return ""
	case 1:
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

func plural(n int, one, many string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, one)
	}
	return fmt.Sprintf("%d %s", n, many)
}
