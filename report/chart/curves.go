package chart

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Curves draws metrics against steps or a numeric factor: one panel, or small
// multiples that share their axes.
type Curves struct {
	Title, Subtitle, Source string
	X, Y                    Axis
	Panels                  []Panel
	Columns                 int     // panels side by side; 0 = chosen
	PanelHeight             float64 // of the plot area, points; 0 = chosen
}

// A Panel is one plot area.
type Panel struct {
	Title  string
	Series []Series
	Lines  []Level
	X, Y   *Axis // own axis instead of the shared one
}

// A Level is a horizontal reference line, such as a baseline.
type Level struct {
	Label   string
	At      float64
	Outside bool // far from the data: the axis is not stretched for it, only its label stands at the edge
}

func (l Level) label() string {
	if l.Outside {
		return "↑ " + l.Label
	}
	return l.Label
}

// A Series is one line. X, Y and, where given, Low and High have equal length;
// NaNs in Y are gaps, marked on the axis.
type Series struct {
	Label     string // at the line's end; "" = none
	Style     Style
	X, Y      []float64
	Low, High []float64 // interval; nil = none
	Band      bool      // draw the interval as a band, otherwise as bars
	Markers   bool      // at every point, otherwise at the end only
	Raw       []XY      // single values, drawn as small dots
	Threads   [][]XY    // single runs, drawn as thin lines
	Published bool      // hollow marker, dotted hairline
	Ghost     bool      // context: thin and grey, no label
}

// XY is a point.
type XY struct{ X, Y float64 }

// Heading implements [Chart].
func (c Curves) Heading() (title, subtitle, source string) { return c.Title, c.Subtitle, c.Source }

// Alt implements [Chart]: every labelled line with its first and last value.
func (c Curves) Alt() string {
	var parts []string
	for _, p := range c.Panels {
		for _, s := range p.Series {
			first, last, ok := ends(s)
			if s.Ghost || !ok {
				continue
			}
			name := s.Label
			if name == "" {
				name = p.Title
			}
			parts = append(parts, fmt.Sprintf("%s from %.4g to %.4g", name, first.Y, last.Y))
		}
	}
	return c.Subtitle + ". " + strings.Join(parts, "; ") + "."
}

// ends are the first and the last point that can be seen.
func ends(s Series) (first, last XY, ok bool) {
	for i := range s.Y {
		if finite(s.Y[i]) {
			if !ok {
				first = XY{s.X[i], s.Y[i]}
			}
			last, ok = XY{s.X[i], s.Y[i]}, true
		}
	}
	return first, last, ok
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

const (
	tickGap     = 5.0
	labelGap    = 9.4 // between baselines of direct labels
	leaderWidth = 12.0
	panelGap    = 18.0
	titleHeight = 17.0
)

func (c Curves) columns() int {
	switch n := len(c.Panels); {
	case c.Columns > 0:
		return min(c.Columns, max(n, 1))
	case n <= 2:
		return max(n, 1)
	case n <= 4:
		return 2
	default:
		return 3
	}
}

// areaHeight is the height of a plot area, tall enough for its labels.
func (c Curves) areaHeight() float64 {
	h := c.PanelHeight
	if h == 0 {
		h = 175
		if c.columns() > 1 {
			h = 120
		}
	}
	for _, p := range c.Panels {
		n := len(p.Lines)
		for _, s := range p.Series {
			if s.Label != "" {
				n++
			}
		}
		h = max(h, float64(n)*labelGap)
	}
	return h
}

func (c Curves) axisHeight() float64 {
	h, sub := 14.0, 0.0
	for _, t := range c.ticks() {
		if t.Sub != "" {
			sub = 9
		}
	}
	if c.X.Title != "" {
		h += 11
	}
	return h + sub
}

// ticks are all fixed ticks of the horizontal axes.
func (c Curves) ticks() []Tick {
	all := slices.Clone(c.X.Ticks)
	for _, p := range c.Panels {
		if p.X != nil {
			all = append(all, p.X.Ticks...)
		}
	}
	return all
}

func (c Curves) panelTitleHeight() float64 {
	for _, p := range c.Panels {
		if p.Title != "" {
			return titleHeight
		}
	}
	return 0
}

func (c Curves) size(_ pen, _ float64) float64 {
	if len(c.Panels) == 0 {
		return emptyHeight
	}
	rows := (len(c.Panels) + c.columns() - 1) / c.columns()
	one := c.areaHeight() + c.axisHeight() + c.panelTitleHeight() + 5
	return float64(rows)*one + float64(max(rows-1, 0))*6
}

// shared are the ranges of the axes that panels have in common.
type shared struct {
	x, y extent
}

func (c Curves) body(p pen, width, height float64) {
	if len(c.Panels) == 0 {
		p.empty(width, height)
		return
	}
	cols := c.columns()
	all := newExtents(c.Panels)
	marginLeft, marginRight := c.margins(p, all)
	area := c.areaHeight()
	one := area + c.axisHeight() + c.panelTitleHeight() + 5
	cell := (width - float64(cols-1)*panelGap) / float64(cols)
	for i, panel := range c.Panels {
		x0 := float64(i%cols) * (cell + panelGap)
		top := height - float64(i/cols)*(one+6)
		bottom := top - one + c.axisHeight() + 2
		c.panel(p, panel, all, box{x0 + marginLeft, bottom, x0 + cell - marginRight, bottom + area}, x0)
	}
}

func newExtents(panels []Panel) shared {
	s := shared{x: newExtent(), y: newExtent()}
	for _, p := range panels {
		px, py := p.extents()
		if p.X == nil {
			s.x.add(px.low, px.high)
		}
		if p.Y == nil {
			s.y.add(py.low, py.high)
		}
	}
	return s
}

func (p Panel) extents() (x, y extent) {
	x, y = newExtent(), newExtent()
	for _, l := range p.Lines {
		if !l.Outside {
			y.add(l.At)
		}
	}
	for _, s := range p.Series {
		x.add(s.X...)
		y.add(s.Y...)
		y.add(s.Low...)
		y.add(s.High...)
		for _, r := range s.Raw {
			y.add(r.Y)
		}
		for _, t := range s.Threads {
			for _, r := range t {
				y.add(r.Y)
			}
		}
	}
	return x, y
}

// margins are the widest tick label and the widest direct label.
func (c Curves) margins(p pen, all shared) (leftMargin, rightMargin float64) {
	_, _, ticks := c.Y.span(all.y, c.yCount())
	for _, panel := range c.Panels {
		if panel.Y != nil {
			_, py := panel.extents()
			_, _, own := panel.Y.span(py, c.yCount())
			ticks = append(ticks, own...)
		}
		for _, l := range panel.Lines {
			if l.Label != "" {
				rightMargin = max(rightMargin, p.width(faceQuiet, l.label())+leaderWidth)
			}
		}
		for _, s := range panel.Series {
			if s.Label != "" && !s.Ghost {
				rightMargin = max(rightMargin, p.width(faceLabel, s.Label)+leaderWidth)
			}
		}
	}
	for _, t := range ticks {
		leftMargin = max(leftMargin, p.width(faceTick, t.Label)+tickGap)
	}
	return leftMargin, max(rightMargin, 9)
}

func (c Curves) yCount() int { return max(2, int(c.areaHeight()/26)) }

// box is a rectangle on the page.
type box struct{ left, bottom, right, top float64 }

func (c Curves) panel(p pen, panel Panel, all shared, b box, x0 float64) {
	xAxis, yAxis, ex, ey := c.X, c.Y, all.x, all.y
	px, py := panel.extents()
	if panel.X != nil {
		xAxis, ex = *panel.X, px
	}
	if panel.Y != nil {
		yAxis, ey = *panel.Y, py
	}
	inset := 0.0
	if xAxis.Ticks != nil {
		inset = 12 // levels of a factor stand clear of the ends
	}
	xl, xh, xt := xAxis.tight(ex, max(2, int((b.right-b.left)/36)))
	yl, yh, yt := yAxis.span(ey, c.yCount())
	xs := scale{xl, xh, b.left + inset, b.right - inset, xAxis.Log}
	ys := scale{yl, yh, b.bottom, b.top, yAxis.Log}

	if panel.Title != "" {
		p.text(faceStrong, x0, b.top+8, left, p.fit(faceStrong, panel.Title, b.right-x0+9))
	}
	for _, t := range yt {
		y := ys.at(t.At)
		p.line(rule, 0.5, nil, pt(b.left, y), pt(b.right, y))
		p.text(faceTick, b.left-tickGap, y-2.6, right, t.Label)
	}
	p.axisX(xAxis, xs, xt, b)

	for _, l := range panel.Lines {
		if l.Outside {
			continue
		}
		y := ys.clamp(l.At)
		p.line(ink3, 0.7, []float64{3, 2}, pt(b.left, y), pt(b.right, y))
	}
	for _, s := range panel.Series {
		if s.Ghost {
			p.polyline(s, xs, ys, rule2, 0.6, nil)
		}
	}
	for _, s := range panel.Series {
		p.interval(s, xs, ys, c.offset(panel, s, xAxis))
	}
	for _, s := range panel.Series {
		if !s.Ghost {
			p.series(s, xs, ys, b, c.offset(panel, s, xAxis))
		}
	}
	p.labels(panel, xs, ys, b)
}

// offset moves the points of one series aside, so that bars at the same level
// of a factor do not hide each other.
func (c Curves) offset(panel Panel, s Series, x Axis) float64 {
	if x.Ticks == nil || s.Band || len(panel.Series) < 2 {
		return 0
	}
	i := slices.IndexFunc(panel.Series, func(o Series) bool { return o.Label == s.Label && o.Style == s.Style && o.Published == s.Published })
	return (float64(i) - float64(len(panel.Series)-1)/2) * min(4.5, 20/float64(len(panel.Series)))
}

// axisX draws the one axis, its ticks (leaving out labels that would touch)
// and its title.
func (p pen) axisX(a Axis, s scale, ticks []Tick, b box) {
	p.line(rule2, 0.7, nil, pt(b.left, b.bottom), pt(b.right, b.bottom))
	until, below := math.Inf(-1), 22.0
	f := faceTick
	if a.Ticks != nil {
		f = faceAxis.in(ink2)
	}
	for _, t := range ticks {
		x := s.at(t.At)
		p.line(rule2, 0.7, nil, pt(x, b.bottom), pt(x, b.bottom-3))
		half := max(p.width(f, t.Label), p.width(faceTick, t.Sub)) / 2
		if t.Sub != "" {
			below = 31
		}
		if x-half < until {
			continue
		}
		p.text(f, x, b.bottom-11.5, middle, t.Label)
		p.text(faceTick, x, b.bottom-20.5, middle, t.Sub)
		until = x + half + 5
	}
	if a.Title != "" {
		p.text(faceAxis, b.left, b.bottom-below, left, a.Title)
	}
}
