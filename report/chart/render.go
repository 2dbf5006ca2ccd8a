package chart

import (
	"bytes"
	"fmt"
	"html"
	"image/color"
	"regexp"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// A Chart is a figure that can be drawn: [Curves] or [Rows].
type Chart interface {
	// Heading is the figure's title, subtitle and source line.
	Heading() (title, subtitle, source string)
	// Alt is the figure in words, for who cannot see it.
	Alt() string

	size(p pen, width float64) (height float64) // of the body, without heading
	body(p pen, width, height float64)
}

// Width is the width of every figure in points: seven inches, a text column.
const Width = 504.0

// SVG draws the figure with its heading, in the light colours, as a file.
func SVG(c Chart) ([]byte, error) {
	canvas, err := drawSVG(c, true)
	if err != nil {
		return nil, err
	}
	return append([]byte("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"), canvas...), nil
}

// InlineSVG draws the figure without heading for use inside a page that
// carries the heading as text. Colours are the page's variables, so the figure
// follows its theme, and no style attribute is used, so a strict content
// security policy lets it pass.
func InlineSVG(c Chart) (string, error) {
	svg, err := drawSVG(c, false)
	if err != nil {
		return "", err
	}
	var pairs []string
	for _, v := range variables {
		pairs = append(pairs, `"`+strings.ToUpper(hex(v.colour))+`"`, `"var(`+v.name+`)"`)
	}
	return strings.NewReplacer(pairs...).Replace(string(svg)), nil
}

// PNG draws the figure with its heading at the given resolution, dots an inch.
func PNG(c Chart, dpi int) (out []byte, err error) {
	defer recoverDraw(&err)
	height := totalHeight(c, true)
	canvas := vgimg.NewWith(vgimg.UseWH(Width, vg.Length(height)), vgimg.UseDPI(dpi), vgimg.UseBackgroundColor(color.White))
	paint(c, draw.New(canvas), height, true)
	var b bytes.Buffer
	if _, err := (vgimg.PngCanvas{Canvas: canvas}).WriteTo(&b); err != nil {
		return nil, fmt.Errorf("encode figure: %w", err)
	}
	return b.Bytes(), nil
}

func drawSVG(c Chart, heading bool) (out []byte, err error) {
	defer recoverDraw(&err)
	height := totalHeight(c, heading)
	canvas := vgsvg.NewWith(vgsvg.UseWH(Width, vg.Length(height)))
	paint(c, draw.New(canvas), height, heading)
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return nil, fmt.Errorf("encode figure: %w", err)
	}
	return tidy(b.String(), c, height), nil
}

// recoverDraw turns a panic of the drawing library, which it uses for paths
// and fonts it cannot draw, into an error: a report is worth more than one of
// its figures.
func recoverDraw(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("draw figure: %v", r)
	}
}

const (
	headingGap = 8.0
	lineStep   = 11.0
	filePad    = 9.0 // around a figure that stands alone
)

// heading is the wrapped heading of a figure.
type heading struct{ title, subtitle, source []string }

func headingOf(p pen, c Chart) heading {
	t, s, src := c.Heading()
	const w = Width - 2*filePad
	return heading{p.wrapText(faceTitle, t, w), p.wrapText(faceSubtitle, s, w), p.wrapText(faceSource, src, w)}
}

func totalHeight(c Chart, withHeading bool) float64 {
	scratch := newPen(draw.New(vgsvg.New(Width, 100)))
	if !withHeading {
		return c.size(scratch, Width)
	}
	h := c.size(scratch, Width-2*filePad) + 2*filePad
	hd := headingOf(scratch, c)
	h += 12*float64(len(hd.title)) + lineStep*float64(len(hd.subtitle)) + headingGap
	if len(hd.source) > 0 {
		h += 4 + 9*float64(len(hd.source))
	}
	return h
}

func paint(c Chart, canvas draw.Canvas, height float64, withHeading bool) {
	p := newPen(canvas)
	if !withHeading {
		c.body(p, Width, height)
		return
	}
	hd := headingOf(p, c)
	y := height - filePad
	for _, line := range hd.title {
		y -= 12
		p.text(faceTitle, filePad, y+2.5, left, line)
	}
	for _, line := range hd.subtitle {
		y -= lineStep
		p.text(faceSubtitle, filePad, y+2.5, left, line)
	}
	y -= headingGap
	foot := filePad
	for i := len(hd.source) - 1; i >= 0; i-- {
		p.text(faceSource, filePad, foot+2, left, hd.source[i])
		foot += 9
	}
	if foot > filePad {
		foot += 4
	}
	inner := draw.Canvas{Canvas: canvas.Canvas, Rectangle: canvas.Rectangle}
	inner.Push()
	inner.Translate(pt(filePad, foot))
	c.body(newPen(inner), Width-2*filePad, y-foot)
	inner.Pop()
}

var (
	svgOpen  = regexp.MustCompile(`(?s)^.*?<svg[^>]*>`)
	styleAtt = regexp.MustCompile(`style="([^"]*)"`)
)

// tidy rewrites the library's SVG: styles become presentation attributes, the
// font gets fallbacks of the same widths, and the picture gets a title that a
// screen reader reads.
func tidy(svg string, c Chart, height float64) []byte {
	title, _, _ := c.Heading()
	svg = styleAtt.ReplaceAllStringFunc(svg, func(m string) string {
		var b strings.Builder
		for _, d := range strings.Split(html.UnescapeString(m[len(`style="`):len(m)-1]), ";") {
			name, value, ok := strings.Cut(d, ":")
			if name = strings.TrimSpace(name); !ok || name == "font-variant" || (name == "font-style" && value == "normal") || (name == "font-weight" && value == "normal") {
				continue
			}
			if name == "font-family" {
				value = strings.Trim(value, `'"`)
				if strings.Contains(value, "Mono") {
					value += ", Cousine, monospace"
				} else {
					value += ", Arimo, Arial, Helvetica, sans-serif"
				}
			}
			fmt.Fprintf(&b, ` %s="%s"`, name, html.EscapeString(exactColour(value)))
		}
		return strings.TrimSpace(b.String())
	})
	open := fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%.4gpt" height="%.4gpt" viewBox="0 0 %.4g %.4g" role="img"><title>%s</title><desc>%s</desc>`,
		Width, height, Width, height, html.EscapeString(title), html.EscapeString(c.Alt()))
	return []byte(svgOpen.ReplaceAllLiteralString(svg, open))
}

// exactColour undoes the rounding of the library's way through premultiplied
// colours, so that a translucent band has the very colour of its line.
func exactColour(value string) string {
	var c color.NRGBA
	if n, err := fmt.Sscanf(value, "#%02X%02X%02X", &c.R, &c.G, &c.B); n != 3 || err != nil {
		return value
	}
	for _, v := range variables {
		if near(c.R, v.colour.R) && near(c.G, v.colour.G) && near(c.B, v.colour.B) {
			return strings.ToUpper(hex(v.colour))
		}
	}
	return value
}

func near(a, b uint8) bool { return max(a, b)-min(a, b) <= 4 }
