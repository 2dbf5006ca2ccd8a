package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"alidade/ablation"
	"alidade/report/chart"
	"alidade/stats"
)

const keyModelSize = "model.size"

// A level of a factor with its place on an axis.
type place struct {
	value any
	x     float64
	tick  chart.Tick
}

// places orders a factor's levels along an axis; ok is false when they have
// no order.
func (b *builder) places(f factor) (out []place, logAxis, ok bool) {
	if len(f.Levels) < 2 {
		return nil, false, false
	}
	field, _ := ablation.FieldOf(f.Key)
	numeric := !slices.ContainsFunc(f.Levels, func(l any) bool { _, ok := number(l); return !ok })
	switch {
	case numeric:
		low, high := 0.0, 0.0
		for i, l := range f.Levels {
			x, _ := number(l)
			out = append(out, place{value: l, x: x, tick: chart.Tick{At: x, Label: levelText(f.Key, l)}})
			if i == 0 || x < low {
				low = x
			}
			high = max(high, x)
		}
		logAxis = low > 0 && high/low >= 8
	case field.Ordered && len(field.Enum) > 0:
		for _, l := range f.Levels {
			i := slices.Index(field.Enum, fmt.Sprint(l))
			if i < 0 {
				return nil, false, false
			}
			out = append(out, place{value: l, x: float64(i), tick: chart.Tick{Label: fmt.Sprint(l), Sub: b.parametersOf(f.Key, l)}})
		}
	default:
		return nil, false, false
	}
	slices.SortStableFunc(out, func(p, q place) int { return cmp.Compare(p.x, q.x) })
	if !numeric {
		for i := range out {
			out[i].x = float64(i)
			out[i].tick.At = float64(i)
		}
	}
	return out, logAxis, true
}

// parametersOf is the size that trainers reported for a level of model.size.
func (b *builder) parametersOf(key string, level any) string {
	if key != keyModelSize {
		return ""
	}
	for _, a := range b.arms {
		if !sameLevel(a.Levels[key], level) {
			continue
		}
		for _, r := range a.runs {
			if n, ok := parameters(r.Hello.Info["parameters"]); ok {
				return sizeText(n)
			}
		}
	}
	return ""
}

// sizeText writes a number of parameters: "0.15 M", "1.5 B".
func sizeText(n float64) string {
	switch {
	case n >= 1e9:
		return trimZero(fmt.Sprintf("%.1f", n/1e9)) + " B"
	case n >= 1e6:
		return trimZero(fmt.Sprintf("%.1f", n/1e6)) + " M"
	}
	return trimZero(fmt.Sprintf("%.2f", n/1e6)) + " M"
}

// xcurve draws the primary metric against a numeric or ordered factor.
func (b *builder) xcurve(f factor) (Figure, bool) {
	places, logAxis, ok := b.places(f)
	if !ok {
		return Figure{}, false
	}
	m := b.primary
	curve := XCurve{Factor: f.Key, Label: factorName(f)}
	series, curve := b.xseries(f, places, curve)
	if len(series) == 0 || len(curve.Points) < 2 {
		return Figure{}, false
	}
	curve.NoFit = noFit(curve.Label, len(places))
	b.report.Curves = append(b.report.Curves, curve)

	c := chart.Curves{X: chart.Axis{Title: axisTitle(f), Log: logAxis}, Y: chart.Axis{Unit: m.Unit, FromZero: true}, PanelHeight: 165}
	if m.Rate {
		c.Y.Limit = 100
	}
	most := 0.0
	for _, s := range series {
		most = max(most, slices.Max(s.Y))
	}
	own := chart.Panel{Series: series, Lines: b.lines(most)}
	notes := outsideNotes(own.Lines)
	own.Lines = slices.DeleteFunc(own.Lines, func(l chart.Level) bool { return l.Outside })
	ticks := make([]chart.Tick, len(places))
	for i, p := range places {
		ticks[i] = p.tick
	}
	published, other, note := b.xpublished(f, series, logAxis)
	if note != "" {
		notes = append(notes, note)
	}
	switch {
	case other != nil:
		own.Title = "this study, " + b.seedWord()
		own.Lines = unlabelled(own.Lines)
		c.Panels = []chart.Panel{own, *other}
		c.Panels[0].X = &chart.Axis{Title: c.X.Title, Log: logAxis, Ticks: ticks}
	default:
		own.Series = append(own.Series, published...)
		for _, s := range published {
			for _, x := range s.X {
				ticks = withTick(ticks, x, f.Key)
			}
		}
		c.Panels = []chart.Panel{own}
	}
	c.X.Ticks = ticks
	c.Title = b.xtitle(f, places)
	c.Subtitle = b.xsubtitle()
	c.Source = b.evidence(notes...)
	return Figure{Name: "curve-" + strings.NewReplacer(".", "-", "_", "-").Replace(f.Key), Section: sectionCurves, Chart: c}, true
}

func unlabelled(lines []chart.Level) []chart.Level {
	return slices.DeleteFunc(lines, func(l chart.Level) bool {
		return !strings.HasPrefix(l.Label, "SFT") || strings.HasPrefix(l.Label, "SFT c")
	})
}

func axisTitle(f factor) string {
	if field, ok := ablation.FieldOf(f.Key); ok {
		if field.Unit != "" {
			return field.Label + ", " + field.Unit
		}
		return field.Label
	}
	return factorName(f)
}

// xseries groups the arms by the levels of the other factors.
func (b *builder) xseries(f factor, places []place, curve XCurve) ([]chart.Series, XCurve) {
	var series []chart.Series
	index := map[string]int{}
	for _, p := range places {
		for i := range b.arms {
			a := &b.arms[i]
			if a.value.Seeds == 0 || !isFinite(float64(a.value.Mean)) || !sameLevel(b.levelOf(a, f.Key), p.value) || !b.onAxis(a, f) {
				continue
			}
			name := b.others(a, f)
			k, seen := index[name]
			if !seen {
				k = len(series)
				index[name] = k
				series = append(series, chart.Series{Label: name, Style: chart.StyleOf(k), Markers: true})
			}
			s := &series[k]
			s.X, s.Y = append(s.X, p.x), append(s.Y, b.primary.shown(float64(a.value.Mean)))
			low, high := nan(), nan()
			if iv := b.xinterval(a); iv != nil {
				low, high = b.primary.shown(iv.Low), b.primary.shown(iv.High)
			}
			s.Low, s.High = append(s.Low, low), append(s.High, high)
			curve.Points = append(curve.Points, XPoint{Arm: a.Index, Series: name, X: p.x, Label: p.tick.Label})
		}
	}
	return series, curve
}

// xinterval is the interval drawn on a curve: seed noise where it is useful,
// else query noise.
func (b *builder) xinterval(a *armData) *Interval {
	if b.bySeed() {
		return a.value.Seed
	}
	return a.value.Query
}

// bySeed says whether curves show seed noise: every arm has seeds enough.
func (b *builder) bySeed() bool {
	for _, a := range b.arms {
		if a.value.Seeds > 0 && a.value.Seeds < stats.UsefulSeeds {
			return false
		}
	}
	return true
}

// levelOf is an arm's level of a factor, the base's where the design does not
// name it.
func (b *builder) levelOf(a *armData, key string) any {
	if l, ok := a.Levels[key]; ok {
		return l
	}
	if r, ok := b.recipeOf(a.Index); ok {
		if v, err := ablation.Get(&r, key); err == nil {
			return v
		}
	}
	return nil
}

// onAxis keeps, in a one-factor design, the arms that change no other factor.
func (b *builder) onAxis(a *armData, f factor) bool {
	if b.in.Study.Study.Design != ablation.DesignOneFactor {
		return true
	}
	for _, o := range b.in.Study.Study.Factors {
		if o.Key != f.Key && len(o.Levels) > 0 && !sameLevel(b.levelOf(a, o.Key), o.Levels[0]) {
			return false
		}
	}
	return true
}

// others names the levels of the other factors: what tells lines apart.
func (b *builder) others(a *armData, f factor) string {
	if b.in.Study.Study.Design == ablation.DesignOneFactor {
		return "this study"
	}
	var parts []string
	for _, o := range b.in.Study.Study.Factors {
		if o.Key != f.Key {
			parts = append(parts, levelText(o.Key, b.levelOf(a, o.Key)))
		}
	}
	if len(parts) == 0 {
		return "this study"
	}
	return strings.Join(parts, " × ")
}

// noFit says why no curve is drawn through the points.
func noFit(label string, levels int) string {
	if levels <= 3 {
		return fmt.Sprintf("%s has %d levels: a curve of three parameters would leave no degree of freedom for its error, so the points stand alone and no fit is drawn.", capital(label), levels)
	}
	return fmt.Sprintf("%s has %d levels; the points stand alone and no curve is fitted or extrapolated.", capital(label), levels)
}

func (b *builder) xtitle(f factor, places []place) string {
	name := capital(b.primary.Name)
	first, last := b.armAt(f, places[0]), b.armAt(f, places[len(places)-1])
	plain := fmt.Sprintf("%s by %s", name, factorName(f))
	if first == nil || last == nil {
		return plain
	}
	c, ok := b.find(last.Index, first.Index)
	if !ok || c.Verdict != Clear {
		return plain
	}
	word := "rises"
	if c.Mean < 0 {
		word = "falls"
	}
	return fmt.Sprintf("%s %s from %s to %s", name, word, places[0].tick.Label, places[len(places)-1].tick.Label)
}

// armAt is the only arm at a level; nil when other factors cross it.
func (b *builder) armAt(f factor, p place) *armData {
	var found *armData
	for i := range b.arms {
		a := &b.arms[i]
		if a.value.Seeds > 0 && sameLevel(b.levelOf(a, f.Key), p.value) && b.onAxis(a, f) {
			if found != nil {
				return nil
			}
			found = a
		}
	}
	return found
}

func (b *builder) xsubtitle() string {
	s := "final " + b.primary.with() + "; bars: " + b.levelWord()
	if b.bySeed() {
		return s + " t interval over " + b.seedWord()
	}
	if b.report.Results[0].Query == nil {
		return "final " + b.primary.with() + "; " + b.seedWord() + ", no interval"
	}
	return fmt.Sprintf("%s %s, given these seeds", s, b.report.Results[0].Query.Method)
}

// xpublished are the published values against the same factor: in the same
// panel where the levels are numbers, beside it where they are scales.
func (b *builder) xpublished(f factor, own []chart.Series, logAxis bool) (same []chart.Series, other *chart.Panel, note string) {
	byName := map[string][]Published{}
	var names []string
	for _, p := range b.report.Published {
		level, has := p.Levels[f.Key]
		x, isNumber := number(level)
		if !has || f.Key != keyModelSize && !isNumber || logAxis && isNumber && x <= 0 {
			continue
		}
		name := p.otherLevels(f, b.in.Study.Study.Factors)
		if name == "" && len(b.in.Study.Study.Factors) > 1 {
			continue
		}
		if _, seen := byName[name]; !seen {
			names = append(names, name)
		}
		byName[name] = append(byName[name], p)
		note = publishedNote(p)
	}
	if len(names) == 0 {
		return nil, nil, ""
	}
	if f.Key == keyModelSize {
		return nil, publishedPanel(b.primary, names, byName, own), strings.Replace(note, ", "+byName[names[0]][len(byName[names[0]])-1].Scale, "", 1)
	}
	for _, name := range names {
		s := publishedSeries(b.primary, byName[name], func(p Published) float64 { x, _ := number(p.Levels[f.Key]); return x })
		s.Label = strings.TrimSuffix("published, "+byName[name][0].Scale, ", ")
		if name != "" {
			s.Label += ", " + name
		}
		s.Style = chart.StyleOf(len(own) + len(same))
		same = append(same, s)
	}
	return same, nil, note
}

// otherLevels names a published value's levels of the study's other factors;
// "" when there are none or one is missing.
func (p Published) otherLevels(f factor, factors []factor) string {
	var parts []string
	for _, o := range factors {
		if o.Key == f.Key {
			continue
		}
		level, ok := p.Levels[o.Key]
		if !ok {
			return ""
		}
		parts = append(parts, levelText(o.Key, level))
	}
	return strings.Join(parts, " × ")
}

func publishedSeries(m Metric, values []Published, x func(Published) float64) chart.Series {
	s := chart.Series{Published: true, Markers: true}
	slices.SortStableFunc(values, func(p, q Published) int { return cmp.Compare(x(p), x(q)) })
	for _, p := range values {
		se := float64(p.SE)
		s.X, s.Y = append(s.X, x(p)), append(s.Y, m.shown(p.Value.Value))
		s.Low, s.High = append(s.Low, m.shown(p.Value.Value-1.96*se)), append(s.High, m.shown(p.Value.Value+1.96*se))
	}
	return s
}

// publishedPanel draws published values against their own scales.
func publishedPanel(m Metric, names []string, byName map[string][]Published, own []chart.Series) *chart.Panel {
	var scales []string
	for _, name := range names {
		for _, p := range byName[name] {
			if !slices.Contains(scales, p.Scale) {
				scales = append(scales, p.Scale)
			}
		}
	}
	slices.SortFunc(scales, func(a, b string) int { return cmp.Compare(scaleOrder(a), scaleOrder(b)) })
	panel := &chart.Panel{Title: "published, one run each", X: &chart.Axis{Title: "published policy"}}
	for i, s := range scales {
		panel.X.Ticks = append(panel.X.Ticks, chart.Tick{At: float64(i), Label: s})
	}
	for _, name := range names {
		if has(own, names) && !has(own, []string{name}) {
			continue // a level that this study does not have
		}
		s := publishedSeries(m, byName[name], func(p Published) float64 { return float64(slices.Index(scales, p.Scale)) })
		s.Label = name
		if name == "" {
			s.Label = "published"
		}
		s.Style = chart.StyleOf(max(0, slices.IndexFunc(own, func(o chart.Series) bool { return o.Label == name })))
		panel.Series = append(panel.Series, s)
	}
	return panel
}

// has says whether any of the lines bears one of the names.
func has(lines []chart.Series, names []string) bool {
	return slices.ContainsFunc(lines, func(s chart.Series) bool { return slices.Contains(names, s.Label) })
}

func withTick(ticks []chart.Tick, x float64, key string) []chart.Tick {
	if slices.ContainsFunc(ticks, func(t chart.Tick) bool { return t.At == x }) {
		return ticks
	}
	ticks = append(ticks, chart.Tick{At: x, Label: levelText(key, x)})
	slices.SortFunc(ticks, func(a, b chart.Tick) int { return cmp.Compare(a.At, b.At) })
	return ticks
}
