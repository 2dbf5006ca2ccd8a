package chart

import (
	"math"
	"strconv"
	"strings"
)

// A Tick is a labelled place on an axis.
type Tick struct {
	At    float64
	Label string
	Sub   string // second line
}

// An Axis says how values become places. The zero value chooses everything
// from the data.
type Axis struct {
	Title    string
	Unit     string  // stands after the last tick, e.g. "%"
	Ticks    []Tick  // fixed ticks; nil = chosen, in 1-2-5 steps
	Log      bool    // logarithmic; all values must be above 0
	FromZero bool    // start at 0 when all data are ≥ 0
	Limit    float64 // upper end that data may not push the axis past, e.g. 100; 0 = none
}

// A scale maps data to points on the page.
type scale struct {
	low, high float64 // data
	from, to  float64 // page
	log       bool
}

func (s scale) at(v float64) float64 {
	low, high := s.low, s.high
	if s.log {
		v, low, high = math.Log(v), math.Log(low), math.Log(high)
	}
	if high == low {
		return (s.from + s.to) / 2
	}
	return s.from + (v-low)/(high-low)*(s.to-s.from)
}

// clamp is at, kept inside the plot.
func (s scale) clamp(v float64) float64 {
	return min(max(s.at(v), min(s.from, s.to)), max(s.from, s.to))
}

// extent gathers the range of finite data.
type extent struct{ low, high float64 }

func newExtent() extent { return extent{math.Inf(1), math.Inf(-1)} }

func (e *extent) add(values ...float64) {
	for _, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			e.low, e.high = min(e.low, v), max(e.high, v)
		}
	}
}

func (e extent) empty() bool { return e.low > e.high }

// span turns data into the axis' range and its ticks, about count of them.
func (a Axis) span(e extent, count int) (low, high float64, ticks []Tick) {
	if e.empty() {
		e = extent{0, 1}
	}
	if a.Ticks != nil {
		for _, t := range a.Ticks {
			e.add(t.At)
		}
		return e.low, e.high, a.Ticks
	}
	if a.FromZero && e.low >= 0 {
		e.low = 0
	}
	if e.low == e.high {
		d := max(math.Abs(e.low)*0.1, 1e-9)
		if a.FromZero && e.low == 0 {
			e.high = 1
		} else {
			e.low, e.high = e.low-d, e.high+d
		}
	}
	step := niceStep((e.high - e.low) / float64(max(count, 2)))
	low = math.Floor(e.low/step+1e-9) * step
	high = math.Ceil(e.high/step-1e-9) * step
	if a.Limit > 0 && high > a.Limit && e.high <= a.Limit {
		high = a.Limit
	}
	for v := low; v <= high+step*1e-6; v += step {
		ticks = append(ticks, Tick{At: v, Label: formatTick(v, step)})
	}
	if a.Unit != "" && len(ticks) > 0 {
		ticks[len(ticks)-1].Label += " " + a.Unit
	}
	return low, high, ticks
}

// tight is span without rounding the range outwards, for an axis of steps.
func (a Axis) tight(e extent, count int) (low, high float64, ticks []Tick) {
	if a.Ticks != nil || e.empty() || e.low == e.high {
		return a.span(e, count)
	}
	if a.FromZero && e.low >= 0 {
		e.low = 0
	}
	step := niceStep((e.high - e.low) / float64(max(count, 2)))
	for v := math.Ceil(e.low/step-1e-9) * step; v <= e.high+step*1e-6; v += step {
		ticks = append(ticks, Tick{At: v, Label: formatTick(v, step)})
	}
	return e.low, e.high, ticks
}

// niceStep is the next 1, 2 or 5 times a power of ten.
func niceStep(raw float64) float64 {
	if raw <= 0 || math.IsInf(raw, 0) || math.IsNaN(raw) {
		return 1
	}
	p := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range [...]float64{1, 2, 5, 10} {
		if raw <= m*p*(1+1e-9) {
			return m * p
		}
	}
	return 10 * p
}

// formatTick writes a tick with the digits that its step needs.
func formatTick(v, step float64) string {
	if math.Abs(v) < step*1e-6 {
		v = 0
	}
	suffix := ""
	if math.Abs(step) >= 1000 && math.Abs(v) >= 1000 {
		v, step, suffix = v/1000, step/1000, "k"
	}
	digits := 0
	for s := step; digits < 8 && math.Abs(s-math.Round(s)) > 1e-6*s; s *= 10 {
		digits++
	}
	return strings.Replace(strconv.FormatFloat(v, 'f', digits, 64), "-", "−", 1) + suffix
}
