package web

import (
	"fmt"
	"math"
	"slices"
	"time"

	"alidade/ablation"
	"alidade/templates"
)

// armTable builds the arm × metric table: the primary metric first with its
// interval drawn, the rest as numbers, the best arm first.
func armTable(d studyData, arms []ablation.Arm, marks map[int]templates.MarkView) templates.ArmTable {
	info := infoOf(d.rec.Study.Metric)
	t := templates.ArmTable{}
	if len(d.primary.byArm) == 0 && len(d.others) == 0 {
		t.Note = "one row an arm, with mean and interval"
		t.Empty = &templates.EmptyView{Title: "Nothing to compare yet", Text: info.Label + " is measured at evaluations; none has come yet."}
		return t
	}
	t.Note = armNote(d)
	t.Metrics = append(t.Metrics, templates.ArmColumn{Label: columnHead(info), Title: d.rec.Study.Metric, Main: true})
	for _, o := range d.others {
		t.Metrics = append(t.Metrics, templates.ArmColumn{Label: columnHead(infoOf(o.metric)), Title: o.metric})
	}
	axis := newAxis(d.primary, info)
	t.Scale = axis.labels
	for _, a := range sortedArms(arms, d.primary, info.Lower) {
		m := marks[a.Index]
		m.Href = fmt.Sprintf("/trajectories?study=%d&arm=%d", d.rec.ID, a.Index)
		e := d.primary.byArm[a.Index]
		row := templates.ArmRow{Mark: m, Seeds: "–", Interval: axis.draw(e, m), Lead: e.Best}
		if e.Runs > 0 {
			row.Seeds = fmt.Sprint(e.Runs)
		}
		row.Cells = append(row.Cells, armCell(e, info, true))
		for _, o := range d.others {
			row.Cells = append(row.Cells, armCell(o.stats.byArm[a.Index], infoOf(o.metric), false))
		}
		t.Rows = append(t.Rows, row)
	}
	t.Warning, t.WarningWord = armWarning(d), "Provisional:"
	if progressOf(d.runs, time.Time{}).Finished == len(d.runs) {
		t.WarningWord = "Incomplete:"
	}
	return t
}

func armNote(d studyData) string {
	note := "± is half the 95 % interval"
	if d.primary.method != "" && len(d.primary.byArm) > 0 {
		note += "; " + lowerFirst(infoOf(d.rec.Study.Metric).Label) + ": " + d.primary.method
	}
	for _, e := range d.primary.byArm {
		if e.Equal {
			note += `; "= best": difference on the same queries not separable after Holm`
			break
		}
	}
	if len(d.others) > 0 && len(d.rec.Study.Seeds) > 2 {
		note += "; other columns: t over seeds"
	}
	return note
}

func armWarning(d studyData) string {
	var missing, open, sick int
	for _, r := range d.runs {
		if !r.State.Terminal() {
			open++
		}
		if r.State == ablation.Failed {
			sick++
		}
		if _, ok := d.last[r.ID][d.rec.Study.Metric]; !ok {
			missing++
		}
	}
	var parts []string
	if open > 0 && d.primary.low < d.primary.high {
		parts = append(parts, fmt.Sprintf("the runs stand at steps %d–%d", d.primary.low, d.primary.high))
	}
	if open > 0 {
		parts = append(parts, plural(open, "run has", "runs have")+" not ended")
	}
	if missing > 0 {
		parts = append(parts, plural(missing, "run has", "runs have")+" no value yet")
	}
	if sick > 0 {
		parts = append(parts, plural(sick, "run", "runs")+" failed")
	}
	if n := len(d.rec.Study.Seeds); n < 3 && len(parts) > 0 {
		parts = append(parts, fmt.Sprintf("%s an arm cannot show seed noise", plural(n, "seed", "seeds")))
	}
	return listed(parts)
}

func columnHead(info metricInfo) string {
	if u := info.unitText(); u != "" {
		return lowerFirst(info.Label) + ", " + u
	}
	return lowerFirst(info.Label)
}

// sortedArms puts the best mean first; arms without a value keep their order
// at the end. NaN sorts last.
func sortedArms(arms []ablation.Arm, a armStats, lower bool) []ablation.Arm {
	key := func(x ablation.Arm) float64 {
		e, ok := a.byArm[x.Index]
		if !ok || math.IsNaN(e.Mean) {
			return math.Inf(-1)
		}
		if lower {
			return -e.Mean
		}
		return e.Mean
	}
	out := slices.Clone(arms)
	slices.SortStableFunc(out, func(x, y ablation.Arm) int {
		kx, ky := key(x), key(y)
		switch {
		case kx > ky:
			return -1
		case kx < ky:
			return 1
		}
		return x.Index - y.Index
	})
	return out
}

func armCell(e armEstimate, info metricInfo, main bool) templates.ArmCell {
	c := templates.ArmCell{Mean: "–", Main: main}
	if e.Runs == 0 {
		return c
	}
	if e.N == 0 {
		c.Mean = "NaN"
		c.Spread = fmt.Sprintf("%d of %d", e.NotANum, e.Runs)
		return c
	}
	c.Mean = info.format(e.Mean)
	c.Best = e.Best
	switch {
	case e.Best && main:
		c.Verdict = "best"
	case e.Equal:
		c.Verdict = "= best"
	}
	c.Title = fmt.Sprintf("%s, %s", plural(e.Runs, "seed", "seeds"), e.Interval.Method)
	if e.Interval.Known() && (main || e.Runs > 2) {
		c.Spread = "±" + info.format(e.Interval.Half())
		c.Title += fmt.Sprintf(": [%s, %s]", info.format(e.Interval.Low), info.format(e.Interval.High))
	}
	if e.NotANum > 0 {
		c.Spread += fmt.Sprintf(" NaN %d of %d", e.NotANum, e.Runs)
	}
	if !main {
		c.Best = false
	}
	return c
}

// axis is the common scale of the drawn intervals.
type axis struct {
	low, high float64
	ticks     []float64
	labels    []string
	best      armEstimate
}

const axisWidth = 212.0

func newAxis(a armStats, info metricInfo) axis {
	x := axis{low: math.Inf(1), high: math.Inf(-1)}
	for _, e := range a.byArm {
		if e.Best {
			x.best = e
		}
		for _, v := range []float64{e.Mean, e.Interval.Low, e.Interval.High} {
			if v-v == 0 {
				x.low, x.high = min(x.low, v), max(x.high, v)
			}
		}
	}
	if x.low > x.high {
		return axis{}
	}
	step := niceStep((x.high - x.low) / 2 * info.scale())
	low, high := math.Floor(x.low*info.scale()/step)*step, math.Ceil(x.high*info.scale()/step)*step
	if high-low < step {
		high = low + step
	}
	for t := low; t <= high+step/1000; t += step {
		x.ticks = append(x.ticks, t/info.scale())
		x.labels = append(x.labels, short(t))
	}
	if info.Percent && len(x.labels) > 0 {
		x.labels[0] += thin + "%"
	}
	x.low, x.high = low/info.scale(), high/info.scale()
	return x
}

func short(v float64) string {
	text := fmt.Sprintf("%.10g", v)
	if v < 0 {
		return minus + text[1:]
	}
	return text
}

// niceStep is 1, 2 or 5 times a power of ten, not below v.
func niceStep(v float64) float64 {
	if !(v > 0) {
		return 1
	}
	base := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if m*base >= v*.999 {
			return m * base
		}
	}
	return 10 * base
}

func (x axis) at(v float64) float64 {
	const inset = 6
	return inset + (v-x.low)/(x.high-x.low)*(axisWidth-2*inset)
}

func (x axis) draw(e armEstimate, m templates.MarkView) templates.IntervalView {
	v := templates.IntervalView{Width: axisWidth, Class: fmt.Sprintf("arm-%d", (m.Color-1)%8+1), DashClass: fmt.Sprintf("dash-%d", (m.Dash-1)%8+1), Label: "no value yet"}
	if x.high <= x.low {
		return v
	}
	for _, t := range x.ticks {
		v.Ticks = append(v.Ticks, unit(x.at(t)))
	}
	if b := x.best.Interval; x.best.N > 0 && b.Known() {
		v.WashX, v.WashW = unit(x.at(b.Low)), unit(x.at(b.High)-x.at(b.Low))
	}
	if e.N == 0 || e.Mean-e.Mean != 0 {
		return v
	}
	v.At = unit(x.at(e.Mean))
	v.Marker = templates.MarkerPath(m.Marker, x.at(e.Mean), 10, 3.6)
	v.Label = fmt.Sprintf("mean %.4g", e.Mean)
	if e.Interval.Known() {
		v.Low, v.High = unit(x.at(e.Interval.Low)), unit(x.at(e.Interval.High))
		v.Label += fmt.Sprintf(", 95 %% interval %.4g to %.4g", e.Interval.Low, e.Interval.High)
	}
	return v
}
