package chart

import "image/color"

func rgb(v uint32) color.NRGBA {
	return color.NRGBA{R: uint8(v >> 16), G: uint8(v >> 8), B: uint8(v), A: 255}
}

func alpha(c color.NRGBA, share float64) color.NRGBA {
	c.A = uint8(share*255 + 0.5)
	return c
}

// The light side of the product's colours. The names are those of the
// stylesheet's variables; see [InlineSVG].
var (
	ink    = rgb(0x14181b)
	ink2   = rgb(0x474f55)
	ink3   = rgb(0x62696f)
	rule   = rgb(0xdfe2e2)
	rule2  = rgb(0xb4bbbf)
	accent = rgb(0x0b6176)
	warn   = rgb(0x8a5300)
	paper  = rgb(0xffffff)
	sunk   = rgb(0xf2f3f2)

	arms = [...]color.NRGBA{
		rgb(0x2a3aa6), rgb(0xe06700), rgb(0x00a391), rgb(0x780753), rgb(0x5f5b22), rgb(0xaa79e7), rgb(0x3a1410), rgb(0x1d729b),
	}
)

// variables maps a colour to the stylesheet's variable, for pictures inside a
// page that has a dark side.
var variables = []struct {
	colour color.NRGBA
	name   string
}{
	{ink, "--ink"}, {ink2, "--ink-2"}, {ink3, "--ink-3"}, {rule, "--rule"}, {rule2, "--rule-2"}, {accent, "--accent"}, {warn, "--warn"},
	{paper, "--paper"}, {sunk, "--sunk"},
	{arms[0], "--arm-1"}, {arms[1], "--arm-2"}, {arms[2], "--arm-3"}, {arms[3], "--arm-4"},
	{arms[4], "--arm-5"}, {arms[5], "--arm-6"}, {arms[6], "--arm-7"}, {arms[7], "--arm-8"},
}

// dashes are the line patterns, in points; the first is solid.
var dashes = [...][]float64{nil, {5, 2.5}, {1.6, 1.6}, {6.5, 2.5, 1.6, 2.5}, {9.5, 3}, {3, 1.6}, {9.5, 2.5, 1.6, 2.5, 1.6, 2.5}, {1, 3}}

// A Style tells arms apart: colour, marker and dash are indices from 0, taken
// modulo the eight there are of each.
type Style struct {
	Color, Marker, Dash int
}

// StyleOf is the style of the i-th arm when one factor tells arms apart.
func StyleOf(i int) Style { return Style{Color: i, Marker: i, Dash: i} }

func (s Style) color() color.NRGBA { return arms[wrap(s.Color, len(arms))] }
func (s Style) dash() []float64    { return dashes[wrap(s.Dash, len(dashes))] }

func wrap(i, n int) int { return ((i % n) + n) % n }

// Hex is the colour of an arm in the light palette, e.g. "#2a3aa6".
func (s Style) Hex() string { return hex(s.color()) }

func hex(c color.NRGBA) string {
	const digits = "0123456789abcdef"
	b := []byte{'#', 0, 0, 0, 0, 0, 0}
	for i, v := range [...]uint8{c.R, c.G, c.B} {
		b[1+2*i], b[2+2*i] = digits[v>>4], digits[v&15]
	}
	return string(b)
}
