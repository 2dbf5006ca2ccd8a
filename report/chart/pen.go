package chart

import (
	"image/color"
	"math"
	"strings"
	"sync"

	stdfont "golang.org/x/image/font"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/font/liberation"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// fonts holds the compiled-in Liberation faces.
var fonts = sync.OnceValue(func() *font.Cache { return font.NewCache(liberation.Collection()) })

// A pen draws on a canvas in points, the origin at the bottom left.
type pen struct {
	c     draw.Canvas
	plain text.Plain
}

func newPen(c draw.Canvas) pen { return pen{c: c, plain: text.Plain{Fonts: fonts()}} }

// A face is one of the house's type styles.
type face struct {
	size float64
	bold bool
	mono bool
	col  color.NRGBA
}

var (
	faceTitle    = face{size: 9.5, bold: true, col: ink}
	faceSubtitle = face{size: 8.2, col: ink2}
	faceSource   = face{size: 7, col: ink3}
	faceTick     = face{size: 7.5, mono: true, col: ink3}
	faceAxis     = face{size: 7.5, col: ink3}
	faceLabel    = face{size: 8, col: ink}
	faceStrong   = face{size: 8, bold: true, col: ink}
	faceQuiet    = face{size: 7.5, col: ink2}
	faceNumber   = face{size: 7.5, mono: true, col: ink2}
)

func (f face) font() font.Font {
	ft := font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Length(f.size)}
	if f.mono {
		ft.Variant = "Mono"
	}
	if f.bold {
		ft.Weight = stdfont.WeightBold
	}
	return ft
}

func (f face) in(c color.NRGBA) face { f.col = c; return f }

// drawable replaces the characters that the compiled-in fonts lack.
var drawable = strings.NewReplacer("\u2009", " ", "\u202f", " ", "\u00a0", " ", "≥", "at least ", "\n", " ", "\t", " ")

// width is the width of s in points.
func (p pen) width(f face, s string) float64 {
	w, _, _ := p.plain.Box(drawable.Replace(s), f.font())
	return float64(w)
}

// Alignments of text to its point.
const (
	left   = 0.0
	middle = 0.5
	right  = 1.0
)

// text writes s with its baseline at y.
func (p pen) text(f face, x, y, align float64, s string) {
	if s == "" {
		return
	}
	s = drawable.Replace(s)
	sty := draw.TextStyle{Color: f.col, Font: f.font(), Handler: p.plain}
	x -= align * p.width(f, s)
	p.c.SetColor(f.col)
	p.c.FillString(p.plain.Fonts.Lookup(sty.Font, sty.Font.Size), vg.Point{X: vg.Length(x), Y: vg.Length(y)}, s)
}

// fit shortens s to a width, ending it with an ellipsis.
func (p pen) fit(f face, s string, width float64) string {
	if p.width(f, s) <= width {
		return s
	}
	r := []rune(s)
	for len(r) > 1 && p.width(f, string(r)+"…") > width {
		r = r[:len(r)-1]
	}
	return strings.TrimRight(string(r), " ,;×") + "…"
}

// wrapText breaks s into lines of at most width.
func (p pen) wrapText(f face, s string, width float64) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		switch {
		case line == "":
			line = word
		case p.width(f, line+" "+word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

func pt(x, y float64) vg.Point { return vg.Point{X: vg.Length(x), Y: vg.Length(y)} }

// line strokes a polyline.
func (p pen) line(c color.NRGBA, width float64, dash []float64, pts ...vg.Point) {
	if len(pts) < 2 {
		return
	}
	sty := draw.LineStyle{Color: c, Width: vg.Length(width)}
	for _, d := range dash {
		sty.Dashes = append(sty.Dashes, vg.Length(d))
	}
	p.c.SetLineStyle(sty)
	var path vg.Path
	path.Move(pts[0])
	for _, q := range pts[1:] {
		path.Line(q)
	}
	p.c.Stroke(path)
}

// fill fills a polygon.
func (p pen) fill(c color.NRGBA, pts ...vg.Point) {
	if len(pts) < 3 {
		return
	}
	p.c.SetColor(c)
	p.c.Fill(polygon(pts))
}

func polygon(pts []vg.Point) vg.Path {
	var path vg.Path
	path.Move(pts[0])
	for _, q := range pts[1:] {
		path.Line(q)
	}
	path.Close()
	return path
}

// marker draws the k-th marker at a point: filled, or hollow with its colour
// as the edge.
func (p pen) marker(k int, c color.NRGBA, x, y, r float64, hollow bool) {
	path := markerPath(wrap(k, 8), x, y, r)
	if !hollow {
		p.c.SetColor(c)
		p.c.Fill(path)
		return
	}
	p.c.SetColor(paper)
	p.c.Fill(path)
	p.c.SetLineStyle(draw.LineStyle{Color: c, Width: 1})
	p.c.Stroke(path)
}

// markerPath outlines a marker of about equal area for every k.
func markerPath(k int, x, y, r float64) vg.Path {
	switch k {
	case 0:
		var path vg.Path
		path.Move(pt(x+r, y))
		path.Arc(pt(x, y), vg.Length(r), 0, 2*math.Pi)
		path.Close()
		return path
	case 1:
		s := r * 0.9
		return polygon([]vg.Point{pt(x-s, y-s), pt(x+s, y-s), pt(x+s, y+s), pt(x-s, y+s)})
	case 2:
		return regular(x, y, r*1.3, 3, math.Pi/2)
	case 3:
		return regular(x, y, r*1.3, 4, math.Pi/2)
	case 4:
		return regular(x, y, r*1.3, 3, -math.Pi/2)
	case 5:
		return regular(x, y, r*1.15, 5, math.Pi/2)
	case 6:
		return cross(x, y, r*1.15, r*0.4)
	default:
		return star(x, y, r*1.4)
	}
}

func regular(x, y, r float64, n int, from float64) vg.Path {
	pts := make([]vg.Point, n)
	for i := range pts {
		a := from + 2*math.Pi*float64(i)/float64(n)
		pts[i] = pt(x+r*math.Cos(a), y+r*math.Sin(a))
	}
	return polygon(pts)
}

func cross(x, y, r, w float64) vg.Path {
	return polygon([]vg.Point{
		pt(x-w, y-r), pt(x+w, y-r), pt(x+w, y-w), pt(x+r, y-w), pt(x+r, y+w), pt(x+w, y+w),
		pt(x+w, y+r), pt(x-w, y+r), pt(x-w, y+w), pt(x-r, y+w), pt(x-r, y-w), pt(x-w, y-w),
	})
}

func star(x, y, r float64) vg.Path {
	pts := make([]vg.Point, 10)
	for i := range pts {
		a := math.Pi/2 + math.Pi*float64(i)/5
		d := r
		if i%2 == 1 {
			d = r * 0.45
		}
		pts[i] = pt(x+d*math.Cos(a), y+d*math.Sin(a))
	}
	return polygon(pts)
}

// emptyHeight is the height of a figure that has nothing to draw yet.
const emptyHeight = 40.0

func (p pen) empty(width, height float64) {
	p.line(rule, 0.5, nil, pt(0, 1), pt(width, 1))
	p.text(faceQuiet, 0, height/2, left, "Nothing to draw yet")
}
