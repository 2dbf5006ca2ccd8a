package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"alidade/report/chart"
	"alidade/stats"
)

// Sections of the report that figures belong to.
const (
	sectionResults     = "results"
	sectionDifferences = "differences"
	sectionCurves      = "curves"
	sectionLearning    = "learning"
)

// figures draws what there is to draw, in reading order.
func (b *builder) figures() {
	add := func(f Figure, ok bool) {
		if !ok {
			return
		}
		f.Title, f.Subtitle, f.Source = f.Chart.Heading()
		b.report.Figures = append(b.report.Figures, f)
	}
	add(b.armFigure())
	add(b.forest())
	for _, f := range b.in.Study.Study.Factors {
		add(b.xcurve(f))
	}
	add(b.learning(b.primary.Key))
	rest := slices.DeleteFunc(slices.Clone(curveMetrics), func(m string) bool { return m == b.primary.Key })
	if len(b.arms) <= mostTogether {
		add(b.diagnostics(rest))
		return
	}
	for _, m := range rest {
		add(b.learning(m))
	}
}

// evidence is the source line of a figure.
func (b *builder) evidence(more ...string) string {
	parts := []string{plural(b.report.Study.RunsUsed, "run", "runs")}
	if len(b.report.Results) > 0 && b.report.Results[0].Queries > 0 {
		r := b.report.Results[0]
		parts = append(parts, fmt.Sprintf("%d queries × %s", r.Queries, plural(r.Samples, "sample", "samples")))
	}
	parts = append(parts, "data "+shortHash(b.report.Provenance.DataHash))
	return strings.Join(append(parts, more...), ", ")
}

// levelWord is "95 %".
func (b *builder) levelWord() string {
	return trimZero(fmt.Sprintf("%.1f", 100*b.in.Options.Level)) + "\u2009%"
}

// armFigure is the dot plot of the primary metric by arm.
func (b *builder) armFigure() (Figure, bool) {
	m := b.primary
	rows := chart.Rows{Head: "arm", NumberHead: "mean [" + b.levelWord() + "]", X: chart.Axis{Title: m.Name, Unit: m.Unit, FromZero: true}}
	if m.Rate {
		rows.X.Limit = 100
	}
	most := 0.0
	var query, seed *Interval
	var hollow []string
	for i := range b.arms {
		a := &b.arms[i]
		if a.value.Seeds == 0 {
			continue
		}
		style := a.Style
		row := chart.Row{Label: a.Label, Style: &style, Value: m.shown(float64(a.value.Mean)), Low: nan(), High: nan(), Text: m.number(float64(a.value.Mean)) + " " + m.span(a.value.main(), false)}
		if iv := a.value.main(); iv != nil && (a.value.Query != nil || a.value.Seeds >= stats.UsefulSeeds) {
			row.Low, row.High = m.shown(iv.Low), m.shown(iv.High)
		}
		if query == nil {
			query = a.value.Query
		}
		if iv := a.value.Seed; iv != nil && a.value.Seeds >= stats.UsefulSeeds && a.value.Query != nil {
			seed = iv
			row.Outer = [2]float64{m.shown(iv.Low), m.shown(iv.High)}
			if m.Rate {
				row.Outer = [2]float64{max(0, row.Outer[0]), min(100, row.Outer[1])}
			}
		}
		for _, v := range a.value.BySeed {
			row.Dots = append(row.Dots, m.shown(float64(v)))
			most = max(most, m.shown(float64(v)))
		}
		if p, ok := b.beside(a.Index); ok {
			se := float64(p.SE)
			row.Published = append(row.Published, chart.Mark{Value: m.shown(p.Value.Value), Low: m.shown(p.Value.Value - 1.96*se), High: m.shown(p.Value.Value + 1.96*se)})
			most = max(most, m.shown(p.Value.Value))
			hollow = append(hollow, publishedNote(p))
		}
		rows.Rows = append(rows.Rows, row)
	}
	if len(rows.Rows) == 0 {
		return Figure{}, false
	}
	rows.Lines = b.lines(most)
	rows.Title = b.liftTitle()
	rows.Subtitle = b.armSubtitle(query, seed)
	var notes []string
	if len(hollow) > 0 {
		notes = append(notes, "hollow: "+hollow[0])
	}
	notes = append(notes, outsideNotes(rows.Lines)...)
	rows.Source = b.evidence(notes...)
	return Figure{Name: "arms", Section: sectionResults, Chart: rows}, true
}

func publishedNote(p Published) string {
	s := "published, " + p.Scale + ", " + p.Source.String()
	if !p.Comparable {
		s += ", not comparable in level"
	}
	return s
}

func (b *builder) armSubtitle(query, seed *Interval) string {
	parts := []string{"final " + b.primary.with(), "mark: mean over " + b.seedWord()}
	if query != nil {
		parts = append(parts, fmt.Sprintf("line: %s %s, given these seeds", b.levelWord(), query.Method))
	}
	if seed != nil {
		parts = append(parts, fmt.Sprintf("pale bar: %s %s", b.levelWord(), seed.Method))
	}
	return strings.Join(append(parts, "dots: single seeds"), "; ")
}

// seedWord is "2 seeds" or "2 to 3 seeds".
func (b *builder) seedWord() string {
	low, high := 0, 0
	for _, a := range b.arms {
		if n := a.value.Seeds; n > 0 {
			if low == 0 || n < low {
				low = n
			}
			high = max(high, n)
		}
	}
	if low == high {
		return plural(high, "seed", "seeds")
	}
	return fmt.Sprintf("%d to %d seeds", low, high)
}

// lines are the baselines as reference lines; one far above the data would
// press the arms together and is named at the edge instead.
func (b *builder) lines(most float64) []chart.Level {
	var out []chart.Level
	for _, l := range b.report.Baselines {
		v := b.primary.shown(float64(l.Mean))
		if isFinite(v) {
			out = append(out, chart.Level{Label: strings.TrimSuffix(strings.TrimSuffix(l.Label, " checkpoint"), " policy") + " " + num(v, 1), At: v, Outside: v > 1.7*most+1})
		}
	}
	return out
}

func outsideNotes(lines []chart.Level) []string {
	var out []string
	for _, l := range lines {
		if l.Outside {
			out = append(out, l.Label+" lies outside")
		}
	}
	return out
}

// liftTitle says which arms lift the metric over their SFT checkpoint.
func (b *builder) liftTitle() string {
	name := b.primary.Name
	var up, open, down, little []string
	least := b.in.Study.Study.MinDifference
	for _, c := range b.report.Comparisons {
		if c.Family != OverSFT {
			continue
		}
		label := c.Label
		switch {
		case c.Verdict == Undecided:
			open = append(open, label)
		case math.Abs(float64(c.Mean)) < least:
			little = append(little, label)
		case c.Mean > 0:
			up = append(up, label)
		default:
			down = append(down, label)
		}
	}
	switch {
	case len(up)+len(open)+len(down)+len(little) == 0:
		return capital(name) + " by arm"
	case len(open)+len(down)+len(little) == 0 && len(up) == 2:
		return fmt.Sprintf("Both arms lift %s over the SFT checkpoint", name)
	case len(open)+len(down)+len(little) == 0 && len(up) > 2:
		return fmt.Sprintf("All %d arms lift %s over the SFT checkpoint", len(up), name)
	case len(up)+len(down)+len(little) == 0:
		return "No arm is clear of its SFT checkpoint"
	case len(b.arms) > mostTogether:
		return fmt.Sprintf("%d of %d arms lift %s over SFT", len(up), len(b.arms), name)
	}
	var parts []string
	if len(up) > 0 {
		parts = append(parts, fmt.Sprintf("%s %s %s over SFT", list(up), verb(len(up), "lifts", "lift"), name))
	}
	if len(down) > 0 {
		parts = append(parts, fmt.Sprintf("%s %s it", list(down), verb(len(down), "lowers", "lower")))
	}
	if len(little) > 0 {
		parts = append(parts, fmt.Sprintf("%s by less than %s", list(little), b.amount(least)))
	}
	if len(open) > 0 {
		parts = append(parts, fmt.Sprintf("%s %s undecided", list(open), verb(len(open), "is", "are")))
	}
	return strings.Join(parts, "; ")
}

func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// mostRows bounds the forest; beyond it, the table has the rest.
const mostRows = 30

// forest shows all comparisons around zero.
func (b *builder) forest() (Figure, bool) {
	m := b.primary
	rows := chart.Rows{
		Zero: true, TooSmall: m.shown(b.in.Study.Study.MinDifference), Head: "contrast", NumberHead: "difference [" + b.levelWord() + "]",
		X: chart.Axis{Title: strings.TrimSpace(m.Points + " of " + m.Name)},
	}
	titles := map[string]string{OverSFT: "Over the SFT checkpoint", OverControl: "Over SFT continued", Between: "Between arms"}
	family := ""
	clear, total, left := 0, 0, 0
	var query, seed *Interval
	for _, c := range b.report.Comparisons {
		if c.Family == Between {
			total++
			if c.Verdict == Clear {
				clear++
			}
		}
		if len(rows.Rows) >= mostRows {
			left++
			continue
		}
		if c.Family != family {
			family = c.Family
			rows.Rows = append(rows.Rows, chart.Row{Group: true, Label: titles[family]})
		}
		rows.Rows = append(rows.Rows, b.contrast(c))
		if query == nil {
			query = c.Query
		}
		if c.Seeds >= stats.UsefulSeeds && c.Query != nil && c.Seed != nil {
			seed = c.Seed
		}
	}
	if len(rows.Rows) == 0 {
		return Figure{}, false
	}
	rows.Title = forestTitle(clear, total)
	rows.Subtitle = b.forestSubtitle(query, seed)
	var notes []string
	if left > 0 {
		notes = append(notes, fmt.Sprintf("%d more in the table", left))
	}
	rows.Source = b.evidence(notes...)
	return Figure{Name: "differences", Section: sectionDifferences, Chart: rows}, true
}

func (b *builder) contrast(c Comparison) chart.Row {
	m := b.primary
	row := chart.Row{Label: c.Label, Value: m.shown(float64(c.Mean)), Low: nan(), High: nan(), Text: m.diff(float64(c.Mean)) + " " + m.span(c.main(), true), Verdict: c.Verdict, Strong: c.Verdict == Clear}
	if iv := c.main(); iv != nil {
		row.Low, row.High = m.shown(iv.Low), m.shown(iv.High)
	}
	if c.Query != nil && c.Seed != nil && c.Seeds >= stats.UsefulSeeds {
		row.Outer = [2]float64{m.shown(c.Seed.Low), m.shown(c.Seed.High)}
	}
	return row
}

func forestTitle(clear, total int) string {
	switch {
	case total == 0:
		return "Differences from the baselines"
	case clear == 0:
		return "Differences between the arms are inside the noise"
	case clear == total:
		return fmt.Sprintf("All %d differences between arms are clear of zero", total)
	}
	return fmt.Sprintf("%d of %d differences between arms %s clear of zero", clear, total, verb(clear, "is", "are"))
}

func (b *builder) forestSubtitle(query, seed *Interval) string {
	m := b.primary
	parts := []string{fmt.Sprintf("difference of final %s, %s, on the same queries and seeds", m.Name, m.Points)}
	if query != nil {
		parts = append(parts, fmt.Sprintf("line: %s %s, given these seeds", b.levelWord(), query.Method))
	}
	if seed != nil {
		parts = append(parts, fmt.Sprintf("pale bar: %s %s", b.levelWord(), seed.Method))
	}
	parts = append(parts, "verdicts after Holm")
	if d := b.in.Study.Study.MinDifference; d > 0 {
		parts = append(parts, "grey: under ±"+b.amount(d))
	}
	return strings.Join(parts, "; ")
}

// scaleOrder sorts names of scales by the size in them: "1.5B" before "7B".
func scaleOrder(scale string) float64 {
	if n, ok := parameters(scale); ok {
		return n
	}
	return math.Inf(1)
}

// parameters reads a number of parameters: "1.5B", "0.15 M", "150000".
func parameters(s string) (float64, bool) {
	s = strings.TrimSpace(strings.ReplaceAll(s, ",", ""))
	unit := 1.0
	switch {
	case strings.HasSuffix(s, "B"):
		unit = 1e9
	case strings.HasSuffix(s, "M"):
		unit = 1e6
	case strings.HasSuffix(s, "K"), strings.HasSuffix(s, "k"):
		unit = 1e3
	}
	var n float64
	if _, err := fmt.Sscanf(strings.TrimSpace(strings.TrimRight(s, "BMKk")), "%g", &n); err != nil || n <= 0 {
		return 0, false
	}
	return n * unit, true
}
