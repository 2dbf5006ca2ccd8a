package chart

import (
	"cmp"
	"fmt"
	"image/color"
	"slices"
	"strings"
)

// Rows draws one estimate a row on a common axis: arms with their reference
// lines, or contrasts around zero (a forest).
type Rows struct {
	Title, Subtitle, Source string
	X                       Axis
	Rows                    []Row
	Lines                   []Level // vertical reference lines
	Zero                    bool    // a contrast: the zero line in ink
	TooSmall                float64 // half width of the grey band of differences too small to matter
	Head                    string  // over the labels
	NumberHead              string  // over the numbers
}

// A Row is one estimate.
type Row struct {
	Label     string
	Group     bool // a heading between rows: only Label is used
	Style     *Style
	Value     float64
	Low, High float64    // main interval; NaN = none
	Outer     [2]float64 // second interval, drawn pale below the first; equal ends = none
	Dots      []float64  // single seeds
	Published []Mark
	Text      string // numbers, at the right
	Verdict   string
	Strong    bool // the interval clears what it is held against
}

// A Mark is a published value on a row, hollow.
type Mark struct{ Value, Low, High float64 }

// Heading implements [Chart].
func (r Rows) Heading() (title, subtitle, source string) { return r.Title, r.Subtitle, r.Source }

// Alt implements [Chart].
func (r Rows) Alt() string {
	var parts []string
	for _, row := range r.Rows {
		if !row.Group {
			parts = append(parts, strings.TrimSpace(fmt.Sprintf("%s: %s %s", row.Label, row.Text, row.Verdict)))
		}
	}
	return r.Subtitle + ". " + strings.Join(parts, "; ") + "."
}

const (
	rowHeight  = 17.0
	dotsHeight = 6.0
	labelMost  = 165.0
	headHeight = 13.0
)

// inside are the reference lines that are drawn; those far from the data are
// only named, see [Level.Outside].
func (r Rows) inside() []Level {
	return slices.DeleteFunc(slices.Clone(r.Lines), func(l Level) bool { return l.Outside })
}

func (r Rows) rowHeight() float64 {
	for _, row := range r.Rows {
		if len(row.Dots) > 0 || row.Outer[0] != row.Outer[1] || len(row.Published) > 0 {
			return rowHeight + dotsHeight
		}
	}
	return rowHeight
}

// tiers places the labels of the reference lines above the plot, lowest
// first, where they do not touch; it returns each label's tier.
func (r Rows) tiers(p pen, xs scale) (of []int, count int) {
	type placed struct{ from, to float64 }
	lines := r.inside()
	order := make([]int, len(lines))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(lines[b].At, lines[a].At) })
	of = make([]int, len(lines))
	var tiers [][]placed
	for _, i := range order {
		x := xs.clamp(lines[i].At)
		span := placed{x - 3, x + p.width(faceQuiet, lines[i].Label) + 6}
		k := 0
		for ; k < len(tiers); k++ {
			if !slices.ContainsFunc(tiers[k], func(o placed) bool { return span.from < o.to && o.from < span.to }) {
				break
			}
		}
		if k == len(tiers) {
			tiers = append(tiers, nil)
		}
		// A label's line passes through the lower tiers: keep those clear.
		for j := range k {
			tiers[j] = append(tiers[j], placed{x - 2, x + 2})
		}
		tiers[k] = append(tiers[k], span)
		of[i] = k
	}
	return of, len(tiers)
}

// columns are the widths of the label, number and verdict columns.
func (r Rows) columns(p pen) (label, number, verdict float64) {
	label, number = p.width(faceQuiet, r.Head), p.width(faceQuiet, r.NumberHead)
	for _, row := range r.Rows {
		if row.Group {
			label = max(label, p.width(faceQuiet, row.Label))
			continue
		}
		extra := 0.0
		if row.Style != nil {
			extra = 11
		}
		label = max(label, p.width(faceStrong, row.Label)+extra)
		number = max(number, p.width(faceNumber, row.Text))
		if row.Verdict != "" {
			verdict = max(verdict, p.width(faceQuiet, row.Verdict)+9)
		}
	}
	return min(label, labelMost), number, verdict
}

func (r Rows) xScale(p pen, width float64) (scale, []Tick) {
	e := newExtent()
	if r.Zero {
		e.add(0, -r.TooSmall, r.TooSmall)
	}
	for _, l := range r.inside() {
		e.add(l.At)
	}
	for _, row := range r.Rows {
		if row.Group {
			continue
		}
		e.add(row.Value, row.Low, row.High)
		e.add(row.Dots...)
		if row.Outer[0] != row.Outer[1] {
			e.add(row.Outer[:]...)
		}
		for _, m := range row.Published {
			e.add(m.Value, m.Low, m.High)
		}
	}
	label, number, verdict := r.columns(p)
	from, to := label+14, width-number-verdict-14
	low, high, ticks := r.X.span(e, max(2, int((to-from)/44)))
	return scale{low: low, high: high, from: from, to: to}, ticks
}

func (r Rows) size(p pen, width float64) float64 {
	if len(r.Rows) == 0 {
		return emptyHeight
	}
	xs, _ := r.xScale(p, width)
	_, tiers := r.tiers(p, xs)
	return r.headHeight(tiers) + r.rowHeight()*float64(len(r.Rows)) + 4 + 27
}

func (r Rows) headHeight(tiers int) float64 {
	h := 0.0
	if r.Head != "" || r.NumberHead != "" || tiers > 0 {
		h = headHeight
	}
	return max(h, float64(tiers)*10+3)
}

func (r Rows) body(p pen, width, height float64) {
	if len(r.Rows) == 0 {
		p.empty(width, height)
		return
	}
	xs, ticks := r.xScale(p, width)
	tier, tiers := r.tiers(p, xs)
	_, number, verdict := r.columns(p)
	top := height - r.headHeight(tiers)
	step := r.rowHeight()
	bottom := top - step*float64(len(r.Rows)) - 4
	b := box{xs.from, bottom, xs.to, top}

	p.text(faceQuiet.in(ink3), 0, top+3, left, r.Head)
	p.text(faceQuiet.in(ink3), width-verdict, top+3, right, r.NumberHead)
	p.line(rule2, 0.5, nil, pt(0, top), pt(width, top))
	if r.TooSmall > 0 {
		lo, hi := xs.clamp(-r.TooSmall), xs.clamp(r.TooSmall)
		p.fill(sunk, pt(lo, bottom), pt(hi, bottom), pt(hi, top), pt(lo, top))
	}
	for _, t := range ticks {
		x := xs.at(t.At)
		p.line(rule, 0.5, nil, pt(x, bottom), pt(x, top))
	}
	p.axisX(r.X, xs, ticks, b)
	if r.Zero {
		p.line(ink, 0.8, nil, pt(xs.clamp(0), bottom), pt(xs.clamp(0), top))
	}
	for i, l := range r.inside() {
		x := xs.clamp(l.At)
		y := top + 3 + 10*float64(tier[i])
		p.line(ink3, 0.7, []float64{3, 2}, pt(x, bottom), pt(x, y+6))
		p.text(faceQuiet, x+3, y, left, l.Label)
	}
	for i, row := range r.Rows {
		p.row(row, xs, rowPlace{y: top - step*(float64(i)+0.5), width: width, number: width - verdict, label: xs.from - 14}, number)
	}
}

// rowPlace is where a row's parts stand.
type rowPlace struct{ y, width, number, label float64 }

func (p pen) row(row Row, xs scale, at rowPlace, _ float64) {
	y := at.y
	if row.Group {
		p.text(faceQuiet.in(ink3), 0, y-5, left, row.Label)
		p.line(rule, 0.5, nil, pt(0, y-rowHeight/2), pt(at.width, y-rowHeight/2))
		return
	}
	col, marker := ink, 0
	f := faceLabel
	if row.Strong {
		f = faceStrong
	}
	x := 0.0
	if row.Style != nil {
		col, marker = row.Style.color(), row.Style.Marker
		p.marker(marker, col, 3.5, y, 2.6, false)
		x = 11
	} else if !row.Strong {
		col = ink3
		f = f.in(ink2)
	}
	p.text(f, x, y-2.8, left, p.fit(f, row.Label, at.label-x))

	p.rowInterval(row, xs, y, col)
	for _, d := range row.Dots {
		if finite(d) {
			p.marker(0, alpha(col, 0.55), xs.clamp(d), y-6.5, 1.3, false)
		}
	}
	for _, m := range row.Published {
		p.published(m, marker, xs, y+6)
	}
	if finite(row.Value) {
		p.marker(marker, col, xs.clamp(row.Value), y, 2.8, false)
	}
	nf := faceNumber
	if row.Strong {
		nf = nf.in(ink)
	}
	p.text(nf, at.number, y-2.6, right, row.Text)
	p.text(faceQuiet.in(f.col), at.width, y-2.7, right, row.Verdict)
}

// rowInterval draws the main interval with ends, and the outer one pale.
func (p pen) rowInterval(row Row, xs scale, y float64, col color.NRGBA) {
	if row.Outer[0] != row.Outer[1] && finite(row.Outer[0]) && finite(row.Outer[1]) {
		lo, hi := xs.clamp(row.Outer[0]), xs.clamp(row.Outer[1])
		p.fill(alpha(col, 0.16), pt(lo, y-2.6), pt(hi, y-2.6), pt(hi, y+2.6), pt(lo, y+2.6))
	}
	if !finite(row.Low) || !finite(row.High) {
		return
	}
	lo, hi := xs.clamp(row.Low), xs.clamp(row.High)
	p.line(col, 1.3, nil, pt(lo, y), pt(hi, y))
	for _, end := range [...]float64{lo, hi} {
		p.line(col, 1.3, nil, pt(end, y-2.5), pt(end, y+2.5))
	}
}

func (p pen) published(m Mark, marker int, xs scale, y float64) {
	if finite(m.Low) && finite(m.High) {
		p.line(ink3, 0.6, []float64{1.6, 1.6}, pt(xs.clamp(m.Low), y), pt(xs.clamp(m.High), y))
	}
	if finite(m.Value) {
		p.marker(marker, ink, xs.clamp(m.Value), y, 2.1, true)
	}
}
