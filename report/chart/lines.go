package chart

import (
	"image/color"
	"math"

	"gonum.org/v1/plot/vg"
)

func (p pen) interval(s Series, xs, ys scale, dx float64) {
	if s.Low == nil || s.Ghost {
		return
	}
	col := s.Style.color()
	if !s.Band {
		if s.Published {
			col = ink3
		}
		for i := range s.X {
			if finite(s.Low[i]) && finite(s.High[i]) {
				x := xs.at(s.X[i]) + dx
				p.line(col, 1, nil, pt(x, ys.clamp(s.Low[i])), pt(x, ys.clamp(s.High[i])))
			}
		}
		return
	}
	for _, run := range runs(s.X, s.Low, s.High) {
		var edge []vg.Point
		for _, i := range run {
			edge = append(edge, pt(xs.at(s.X[i]), ys.clamp(s.High[i])))
		}
		for k := len(run) - 1; k >= 0; k-- {
			i := run[k]
			edge = append(edge, pt(xs.at(s.X[i]), ys.clamp(s.Low[i])))
		}
		p.fill(alpha(col, 0.13), edge...)
	}
}

// runs groups consecutive indices at which all columns are finite.
func runs(columns ...[]float64) [][]int {
	var out [][]int
	var run []int
	for i := range columns[0] {
		ok := true
		for _, c := range columns {
			ok = ok && finite(c[i])
		}
		if ok {
			run = append(run, i)
			continue
		}
		if run != nil {
			out, run = append(out, run), nil
		}
	}
	if run != nil {
		out = append(out, run)
	}
	return out
}

func (p pen) series(s Series, xs, ys scale, b box, dx float64) {
	col := s.Style.color()
	for _, thread := range s.Threads {
		t := Series{}
		for _, q := range thread {
			t.X, t.Y = append(t.X, q.X), append(t.Y, q.Y)
		}
		p.polyline(t, xs, ys, alpha(col, 0.35), 0.6, nil)
	}
	width, dash := 1.25, s.Style.dash()
	if s.Published {
		col, width, dash = ink, 0.6, []float64{1.6, 1.6}
	}
	if dx != 0 {
		s = s.shifted(xs, dx)
	}
	p.polyline(s, xs, ys, col, width, dash)
	for _, r := range s.Raw {
		if finite(r.Y) {
			p.marker(0, alpha(col, 0.5), xs.at(r.X)+dx, ys.clamp(r.Y), 1.2, false)
		}
	}
	p.gaps(s, xs, b)
	if !s.Markers {
		if _, last, ok := ends(s); ok {
			p.marker(s.Style.Marker, col, xs.at(last.X), ys.clamp(last.Y), 2.3, s.Published)
		}
		return
	}
	for i := range s.X {
		if finite(s.Y[i]) {
			p.marker(s.Style.Marker, col, xs.at(s.X[i]), ys.clamp(s.Y[i]), 2.3, s.Published)
		}
	}
}

// shifted is s moved by dx points on the page.
func (s Series) shifted(xs scale, dx float64) Series {
	moved := make([]float64, len(s.X))
	for i, x := range s.X {
		at := xs.at(x) + dx
		moved[i] = invert(xs, at)
	}
	s.X = moved
	return s
}

func invert(s scale, at float64) float64 {
	share := (at - s.from) / (s.to - s.from)
	if s.log {
		return math.Exp(math.Log(s.low) + share*(math.Log(s.high)-math.Log(s.low)))
	}
	return s.low + share*(s.high-s.low)
}

func (p pen) polyline(s Series, xs, ys scale, col color.NRGBA, width float64, dash []float64) {
	for _, run := range runs(s.X, s.Y) {
		pts := make([]vg.Point, len(run))
		for k, i := range run {
			pts[k] = pt(xs.at(s.X[i]), ys.clamp(s.Y[i]))
		}
		if len(pts) == 1 {
			p.marker(0, col, float64(pts[0].X), float64(pts[0].Y), 1, false)
			continue
		}
		p.line(col, width, dash, pts...)
	}
}

// gaps marks the first of each run of values that are not finite.
func (p pen) gaps(s Series, xs scale, b box) {
	inGap := false
	for i, y := range s.Y {
		if finite(y) {
			inGap = false
			continue
		}
		if inGap {
			continue
		}
		inGap = true
		x := xs.at(s.X[i])
		p.line(warn, 0.7, []float64{2, 2}, pt(x, b.bottom), pt(x, b.top))
		p.fill(warn, pt(x-2.6, b.bottom+4), pt(x+2.6, b.bottom+4), pt(x, b.bottom))
	}
}
