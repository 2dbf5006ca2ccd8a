package web

import (
	"context"
	"fmt"
	"math"
	"strings"

	"alidade/ablation"
	"alidade/store"
	"alidade/templates"
)

// ratioBands are the metrics of the fan: pairs of quantiles, the wider first,
// with the share of tokens between them.
var ratioBands = [2]struct {
	low, high string
	share     string
}{{"policy/ratio_p01", "policy/ratio_p99", "98"}, {"policy/ratio_p10", "policy/ratio_p90", "80"}}

const (
	ratioMedian = "policy/ratio_p50"
	ratioTop    = 8.0
	ratioBase   = 116.0
	ratioHeight = 136.0
	ratioPoints = 400
)

// ratios draws how far the policy has moved from the one that sampled: the
// quantiles of the probability ratio over the steps. It returns nil for a run
// that reports none.
func (s *site) ratios(ctx context.Context, r ablation.Run) (*templates.RatioView, error) {
	names := []string{ratioMedian}
	for _, b := range ratioBands {
		names = append(names, b.low, b.high)
	}
	series, err := s.Store.Series(ctx, store.SeriesQuery{Runs: []ablation.RunID{r.ID}, Metrics: names, MaxPoints: ratioPoints})
	if err != nil {
		return nil, fmt.Errorf("read ratios: %w", err)
	}
	by := map[string][]ablation.Point{}
	for _, sr := range series {
		by[sr.Metric] = finite(sr.Points)
	}
	for _, name := range names {
		if len(by[name]) < 2 {
			return nil, nil
		}
	}
	return ratioView(by, r.Arm.Recipe.Algorithm), nil
}

// finite leaves out what has no place on a logarithmic axis.
func finite(points []ablation.Point) []ablation.Point {
	var out []ablation.Point
	for _, p := range points {
		if p.Value > 0 && !math.IsInf(p.Value, 0) {
			out = append(out, p)
		}
	}
	return out
}

func ratioView(by map[string][]ablation.Point, a ablation.Algorithm) *templates.RatioView {
	low, high := by[ratioBands[0].low], by[ratioBands[0].high]
	last := low[len(low)-1]
	v := &templates.RatioView{
		Title: fmt.Sprintf("At step %s %s%s%% of the tokens have a ratio from %s to %s", digits(last.Step), ratioBands[0].share, thin, fixed(last.Value, 3), fixed(high[len(high)-1].Value, 3)),
		Note:  "probability of a sampled token now over when it was sampled, all updates of a step; line = median, bands = 80 and 98" + thin + "% of the tokens; logarithmic",
	}
	f := fan{low: math.Inf(1), high: math.Inf(-1)}
	f.firstStep, f.lastStep = by[ratioMedian][0].Step, by[ratioMedian][0].Step
	for _, points := range by {
		for _, p := range points {
			f.low, f.high = min(f.low, p.Value), max(f.high, p.Value)
			f.firstStep, f.lastStep = min(f.firstStep, p.Step), max(f.lastStep, p.Step)
		}
	}
	if a.Kind != "gspo" && a.Kind != "grpo_scr" { // theirs is of whole sequences
		f.clips = []float64{1 - a.ClipLow, 1 + a.ClipHigh}
		v.Note += fmt.Sprintf("; dashed = clipped beyond, %s and %s", fixed(f.clips[0], 2), fixed(f.clips[1], 2))
		f.low, f.high = min(f.low, f.clips[0]), max(f.high, f.clips[1])
	}
	if !(f.low > 0) {
		f.low = 1e-3
	}
	f.low, f.high = f.low/1.03, f.high*1.03
	v.Wide, v.Narrow = f.draw(by, 1376), f.draw(by, 358)
	return v
}

// fan is the frame of the drawing: ratios on a logarithmic axis over steps.
type fan struct {
	low, high           float64
	firstStep, lastStep int64
	clips               []float64
	width               float64
}

func (f fan) x(step int64) float64 {
	return float64(step-f.firstStep) / float64(max(f.lastStep-f.firstStep, 1)) * (f.width - 40)
}

func (f fan) y(ratio float64) float64 {
	share := math.Log(ratio/f.low) / math.Log(f.high/f.low)
	return ratioBase - share*(ratioBase-ratioTop)
}

func (f fan) draw(by map[string][]ablation.Point, width float64) templates.RatioDrawing {
	f.width = width
	d := templates.RatioDrawing{
		ViewBox: fmt.Sprintf("0 0 %s %s", unit(width), unit(ratioHeight)), Width: unit(width - 40), LabelX: unit(width - 34),
		One: unit(f.y(1)), First: digits(f.firstStep), Last: "step " + digits(f.lastStep), Base: unit(ratioBase),
		Median: f.line(by[ratioMedian]),
	}
	for _, b := range ratioBands {
		d.Bands = append(d.Bands, f.area(by[b.low], by[b.high]))
	}
	for _, c := range f.clips {
		if c > 0 {
			d.Clips = append(d.Clips, templates.RatioMark{Y: unit(f.y(c)), Text: fixed(c, 2)})
		}
	}
	return d
}

func (f fan) line(points []ablation.Point) string {
	var b strings.Builder
	for i, p := range points {
		verb := "L"
		if i == 0 {
			verb = "M"
		}
		fmt.Fprintf(&b, "%s%s %s", verb, unit(f.x(p.Step)), unit(f.y(p.Value)))
	}
	return b.String()
}

// area is the band between two lines.
func (f fan) area(low, high []ablation.Point) string {
	var b strings.Builder
	b.WriteString(f.line(low))
	for i := len(high) - 1; i >= 0; i-- {
		fmt.Fprintf(&b, "L%s %s", unit(f.x(high[i].Step)), unit(f.y(high[i].Value)))
	}
	return b.String() + "Z"
}
