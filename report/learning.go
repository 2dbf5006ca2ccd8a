package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"alidade/ablation"
	"alidade/report/chart"
	"alidade/stats"
)

const (
	mostTogether = 4  // lines with bands in one panel
	mostPanels   = 24 // small multiples in one figure
	smoothFrom   = 60 // points from which a line is smoothed
	smoothShare  = 40 // one window is about 1/20 of the points
)

// learning draws one metric by step, a line an arm: with a t band from three
// seeds on, with single seeds as thin lines below that.
func (b *builder) learning(key string) (Figure, bool) {
	m := metric(key)
	var series []chart.Series
	seeds := map[int]bool{}
	thinned := false
	most := 0.0
	for i := range b.arms {
		a := &b.arms[i]
		s, n, ok := b.line(a, m)
		if !ok {
			continue
		}
		seeds[n] = true
		series = append(series, s)
		for _, v := range s.Y {
			if isFinite(v) {
				most = max(most, v)
			}
		}
		for _, r := range a.runs {
			thinned = thinned || r.Thinned
		}
	}
	if len(series) == 0 || longest(series) < 2 {
		return Figure{}, false
	}
	c := chart.Curves{X: chart.Axis{Title: "RL step"}, Y: chart.Axis{Unit: m.Unit, FromZero: true}}
	if m.Rate {
		c.Y.Limit = 100
	}
	var lines []chart.Level
	if key == "eval/success" {
		lines = b.lines(most)
	}
	c.Panels = panels(series, lines)
	c.Title = b.learningTitle(m)
	c.Subtitle = b.learningSubtitle(m, seeds)
	notes := thinning(thinned)
	if n := longest(series); n >= smoothFrom {
		c.Subtitle += "; " + smoothNote(n)
	}
	if len(series) > mostPanels {
		notes = append(notes, fmt.Sprintf("%d of %d arms, in design order", mostPanels, len(series)))
	}
	c.Source = b.evidence(notes...)
	name := "learning-" + strings.NewReplacer("/", "-", "_", "-").Replace(key)
	return Figure{Name: name, Section: sectionLearning, Chart: c}, true
}

func longest(series []chart.Series) int {
	n := 0
	for _, s := range series {
		n = max(n, len(s.X))
	}
	return n
}

// panels puts up to four lines together; more become small multiples in which
// the other arms are context.
func panels(series []chart.Series, lines []chart.Level) []chart.Panel {
	if len(series) <= mostTogether {
		return []chart.Panel{{Series: series, Lines: lines}}
	}
	var out []chart.Panel
	for i := range min(len(series), mostPanels) {
		p := chart.Panel{Title: series[i].Label}
		for j, s := range series {
			if j != i {
				s.Ghost, s.Label, s.Threads, s.Low, s.High = true, "", nil, nil, nil
				p.Series = append(p.Series, s)
			}
		}
		own := series[i]
		own.Label = ""
		p.Series = append(p.Series, own)
		for _, l := range lines {
			if !l.Outside {
				l.Label = ""
				p.Lines = append(p.Lines, l)
			}
		}
		out = append(out, p)
	}
	return out
}

func thinning(thinned bool) []string {
	if thinned {
		return []string{"thinned, extremes kept"}
	}
	return []string{"not thinned"}
}

// half is half the window of a smoothed line; 0 = not smoothed.
func half(points int) int {
	if points < smoothFrom {
		return 0
	}
	return max(1, points/smoothShare)
}

func smoothNote(points int) string {
	return fmt.Sprintf("moving mean over %d points, raw behind it", 2*half(points)+1)
}

// diagnostics puts the other curves into one figure, a panel each.
func (b *builder) diagnostics(keys []string) (Figure, bool) {
	c := chart.Curves{X: chart.Axis{Title: "RL step"}, Columns: 2, PanelHeight: 105, Title: "How training went"}
	thinned := false
	points := 0
	seeds := map[int]bool{}
	for _, key := range keys {
		m := metric(key)
		panel := chart.Panel{Title: capital(m.Name), Y: &chart.Axis{Unit: m.Unit, FromZero: true}}
		if m.Rate {
			panel.Y.Limit = 100
		}
		if key == "reward/mean" && slices.ContainsFunc(b.varied(), func(k string) bool { return strings.HasPrefix(k, "reward.") }) {
			panel.Title += ", each arm's own"
		}
		for i := range b.arms {
			s, n, ok := b.line(&b.arms[i], m)
			if !ok || len(s.X) < 2 {
				continue
			}
			seeds[n] = true
			points = max(points, len(s.X))
			panel.Series = append(panel.Series, s)
			for _, r := range b.arms[i].runs {
				thinned = thinned || r.Thinned
			}
		}
		if len(panel.Series) > 0 {
			c.Panels = append(c.Panels, panel)
		}
	}
	if len(c.Panels) == 0 {
		return Figure{}, false
	}
	c.Subtitle = "by RL step; " + b.seedBands(seeds)
	if points >= smoothFrom {
		c.Subtitle += "; " + smoothNote(points) + ", where there are as many"
	}
	c.Source = b.evidence(thinning(thinned)...)
	return Figure{Name: "training", Section: sectionLearning, Chart: c}, true
}

// line is one arm's mean by step; n is the number of seeds.
func (b *builder) line(a *armData, m Metric) (chart.Series, int, bool) {
	s := chart.Series{Label: a.Label, Style: a.Style}
	var runs [][]ablation.Point
	for _, r := range a.runs {
		if pts := r.Series[m.Key]; len(pts) > 0 {
			runs = append(runs, pts)
		}
	}
	if len(runs) == 0 {
		return s, 0, false
	}
	band := len(runs) >= stats.UsefulSeeds
	for _, step := range commonSteps(runs) {
		values := at(runs, step)
		mean := m.shown(stats.Mean(values))
		s.X, s.Y = append(s.X, float64(step)), append(s.Y, mean)
		if !band {
			continue
		}
		iv := stats.TInterval(values, b.in.Options.Level).Interval
		low, high := m.shown(iv.Low), m.shown(iv.High)
		if m.Rate {
			low, high = max(0, low), min(100, high)
		}
		if !isFinite(mean) {
			low, high = nan(), nan()
		}
		s.Low, s.High = append(s.Low, low), append(s.High, high)
	}
	s.Band = band
	if h := half(len(s.Y)); h > 0 {
		s.Threads = [][]chart.XY{thread(s)}
		s.Y = stats.MovingMean(s.Y, h)
		if band {
			s.Low, s.High = stats.MovingMean(s.Low, h), stats.MovingMean(s.High, h)
		}
	} else if !band && len(runs) > 1 {
		s.Threads = threads(runs, m)
	}
	for _, y := range slices.Backward(s.Y) {
		if isFinite(y) {
			s.Label += " " + num(y, m.digits(y))
			break
		}
	}
	return s, len(runs), true
}

// commonSteps are the steps that all runs have; where thinning left hardly
// any in common, all steps.
func commonSteps(runs [][]ablation.Point) []int64 {
	count := map[int64]int{}
	longest := 0
	for _, pts := range runs {
		longest = max(longest, len(pts))
		for _, p := range pts {
			count[p.Step]++
		}
	}
	var common []int64
	for step, n := range count {
		if n == len(runs) {
			common = append(common, step)
		}
	}
	if len(common) < min(10, longest) {
		common = slices.Collect(maps.Keys(count))
	}
	slices.Sort(common)
	return common
}

func at(runs [][]ablation.Point, step int64) []float64 {
	var out []float64
	for _, pts := range runs {
		i, ok := slices.BinarySearchFunc(pts, step, func(p ablation.Point, s int64) int {
			switch {
			case p.Step < s:
				return -1
			case p.Step > s:
				return 1
			}
			return 0
		})
		if ok {
			out = append(out, pts[i].Value)
		}
	}
	return out
}

// thread is a line as it was before smoothing.
func thread(s chart.Series) []chart.XY {
	out := make([]chart.XY, len(s.X))
	for i := range s.X {
		out[i] = chart.XY{X: s.X[i], Y: s.Y[i]}
	}
	return out
}

func threads(runs [][]ablation.Point, m Metric) [][]chart.XY {
	out := make([][]chart.XY, len(runs))
	for i, pts := range runs {
		for _, p := range pts {
			out[i] = append(out[i], chart.XY{X: float64(p.Step), Y: m.shown(p.Value)})
		}
	}
	return out
}

// learningTitle is a finding for the primary metric, the name otherwise.
func (b *builder) learningTitle(m Metric) string {
	plain := capital(m.Name) + " by step"
	best := b.best()
	if m.Key != b.primary.Key || best == nil {
		return plain
	}
	var clear []string
	for _, a := range b.arms {
		if c, ok := b.find(best.Index, a.Index); ok && a.Index != best.Index && c.Verdict == Clear {
			clear = append(clear, a.Label)
		}
	}
	if len(clear) == 0 {
		return plain
	}
	return fmt.Sprintf("%s ends clear of %s", best.Label, list(clear))
}

func (b *builder) learningSubtitle(m Metric, seeds map[int]bool) string {
	return m.with() + "; " + b.seedBands(seeds)
}

// seedBands says what a line and its band are.
func (b *builder) seedBands(seeds map[int]bool) string {
	ns := slices.Sorted(maps.Keys(seeds))
	words := make([]string, len(ns))
	for i, n := range ns {
		words[i] = fmt.Sprint(n)
	}
	count := strings.Join(words, " or ") + " seeds"
	if len(ns) == 1 {
		count = plural(ns[0], "seed", "seeds")
	}
	switch {
	case ns[0] >= stats.UsefulSeeds:
		return fmt.Sprintf("line: mean, band: %s t interval over %s", b.levelWord(), count)
	case ns[len(ns)-1] == 1:
		return "one seed, no band"
	case ns[len(ns)-1] < stats.UsefulSeeds:
		return fmt.Sprintf("line: mean over %s, thin lines: single seeds, no band below %d", count, stats.UsefulSeeds)
	}
	return fmt.Sprintf("line: mean over %s, band: %s t interval from %d seeds on", count, b.levelWord(), stats.UsefulSeeds)
}
