package chart

import (
	"bytes"
	"encoding/xml"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

var show = flag.String("show", "", "folder to write the sample figures to, for looking at them")

// samples are the kinds of figure that a report draws, with the cases that
// are hard to lay out.
func samples() map[string]Chart {
	learning := Curves{
		Title:    "MACRO and CURRICULUM part from SUCCESS at step 40",
		Subtitle: "sampled success on 256 held-out queries, %; line: mean over 2 seeds, thin lines: single seeds (no band below 3 seeds)",
		Source:   "8 runs, data 91c0·77ab, no thinning",
		X:        Axis{Title: "RL step"}, Y: Axis{Unit: "%", FromZero: true, Limit: 100},
	}
	var p Panel
	for i, name := range []string{"SUM", "MACRO", "SUCCESS", "CURRICULUM"} {
		s := Series{Style: StyleOf(i)}
		for k := range 21 {
			x := float64(5 * k)
			y := 8 + float64(24+2*i)*(1-math.Exp(-x/(30+10*float64(i))))
			if i == 2 && k == 9 {
				y = math.NaN()
			}
			s.X, s.Y = append(s.X, x), append(s.Y, y)
			s.Low, s.High = append(s.Low, y-2), append(s.High, y+2)
			s.Band = true
		}
		_, last, _ := ends(s)
		s.Label = fmt.Sprintf("%s %.1f", name, last.Y)
		p.Series = append(p.Series, s)
	}
	p.Lines = []Level{{"expert 97.0", 97, true}, {"SFT continued 12.1", 12.1, false}, {"SFT 8.0", 8, false}, {"random legal 0.4", 0.4, false}}
	learning.Panels = []Panel{p}

	thin := learning
	q := p
	q.Series = nil
	for _, s := range p.Series {
		s.Low, s.High, s.Band = nil, nil, false
		for d := range 2 {
			var t []XY
			for k := range s.X {
				t = append(t, XY{s.X[k], s.Y[k] + float64(2*d-1)*1.5})
			}
			s.Threads = append(s.Threads, t)
		}
		q.Series = append(q.Series, s)
	}
	thin.Panels = []Panel{q}

	multiples := learning
	multiples.Title, multiples.Panels = "Small multiples", nil
	for i := range p.Series {
		panel := Panel{Title: p.Series[i].Label}
		for j, s := range p.Series {
			s.Label, s.Ghost = "", i != j
			panel.Series = append(panel.Series, s)
		}
		multiples.Panels = append(multiples.Panels, panel)
	}

	sizes := []Tick{{0, "small", "0.15 M"}, {1, "medium", "0.4 M"}, {2, "large", "0.7 M"}}
	pub := []Tick{{0, "Qwen2.5", "1.5 B"}, {1, "Qwen2.5", "3 B"}, {2, "Qwen2.5", "7 B"}}
	scaleX := Curves{
		Title: "Success rises with policy size", Subtitle: "sampled success, %; bars: 95 % bootstrap over 256 queries", Source: "published: arXiv 2603.21972, Table 1; not comparable",
		X: Axis{Title: "policy", Ticks: sizes}, Y: Axis{Unit: "%", FromZero: true},
	}
	var here, there Panel
	here.Title, there.Title = "this study, 3 seeds", "published, one run each"
	there.X = &Axis{Title: "policy (Qwen2.5)", Ticks: pub}
	for i, name := range []string{"SUM", "MACRO", "SUCCESS", "CURRICULUM"} {
		s := Series{Style: StyleOf(i), Label: name, Markers: true, X: []float64{0, 1, 2}, Y: []float64{20 + float64(i), 28 + 2*float64(i), 37 - float64(i)}}
		for _, y := range s.Y {
			s.Low, s.High = append(s.Low, y-2.5), append(s.High, y+2.5)
		}
		here.Series = append(here.Series, s)
		s.Published = true
		s.Y = [][]float64{{33.1, 47, 62.8}, {30.1, 48.2, 58.9}, {33.8, 46.6, 60.9}, {34.9, 49.9, 57}}[i]
		s.Low, s.High = nil, nil
		there.Series = append(there.Series, s)
	}
	scaleX.Panels = []Panel{here, there}

	data := Curves{
		Title: "Success against prompts", Subtitle: "sampled success, %; bars: 95 % t interval over 5 seeds", X: Axis{Title: "RL prompts", Log: true, Ticks: []Tick{{100, "100", ""}, {200, "200", ""}, {500, "500", ""}, {1000, "1,000", ""}, {2000, "2,000", ""}}},
		Y: Axis{Unit: "%", FromZero: true},
		Panels: []Panel{{Series: []Series{
			{Label: "this study", Style: StyleOf(0), Markers: true, X: []float64{100, 200, 500, 1000}, Y: []float64{18, 21, 24, 25}, Low: []float64{16, 19, 22, 23}, High: []float64{20, 23, 26, 27}},
			{Label: "published, 3B", Published: true, Style: StyleOf(1), Markers: true, X: []float64{100, 200, 500, 1000, 2000}, Y: []float64{37.5, 44.1, 45.4, 49.9, 50.8}, Low: []float64{34.5, 41, 42.3, 46.8, 47.7}, High: []float64{40.5, 47.2, 48.5, 53, 53.9}},
		}, Lines: []Level{{"SFT", 8, false}}}},
	}

	factor := Rows{
		Title: "MACRO, CURRICULUM and SUM lift success; SUCCESS does not", Subtitle: "final sampled success, %; mark: mean over 2 seeds, line: 95 % BCa bootstrap over 256 queries, given these seeds; dots: single seeds; hollow: published",
		Source: "8 runs, 256 queries × 4 samples", X: Axis{Title: "sampled success", Unit: "%", FromZero: true}, Head: "arm", NumberHead: "mean [95 %]",
		Lines: []Level{{"random legal", 0.4, false}, {"SFT", 8, false}, {"SFT continued", 12.1, false}, {"expert", 96, true}},
	}
	for i, name := range []string{"SUM × failure rate 5 %, a long name indeed", "MACRO", "SUCCESS", "CURRICULUM"} {
		st := StyleOf(i)
		m := 20 + 4*float64(i)
		factor.Rows = append(factor.Rows, Row{Label: name, Style: &st, Value: m, Low: m - 3, High: m + 3, Outer: [2]float64{m - 8, m + 8}, Dots: []float64{m - 1, m + 1}, Text: fmt.Sprintf("%.1f [%.1f, %.1f]", m, m-3, m+3), Published: []Mark{{m + 20, m + 17, m + 23}}})
	}
	forest := Rows{
		Title: "Only MACRO − SUCCESS is clear", Subtitle: "difference of final sampled success, points; same queries and seeds; 95 % BCa bootstrap over 256 queries; grey: under ±2 points", Zero: true, TooSmall: 2,
		X: Axis{Title: "points of success"}, Head: "contrast", NumberHead: "estimate [95 %]",
		Rows: []Row{{Label: "Lift over the SFT checkpoint", Group: true}},
	}
	for i, name := range []string{"MACRO − SUM", "MACRO − SUCCESS", "CURRICULUM − SUM"} {
		v := []float64{1.2, 5.4, 0.3}[i]
		verdict := "undecided"
		if i == 1 {
			verdict = "clear"
		}
		forest.Rows = append(forest.Rows, Row{Label: name, Value: v, Low: v - 2.2, High: v + 2.2, Text: fmt.Sprintf("+%.1f [%+.1f, %+.1f]", v, v-2.2, v+2.2), Verdict: verdict, Strong: i == 1})
	}
	return map[string]Chart{"learning": learning, "thin": thin, "multiples": multiples, "scale": scaleX, "data": data, "factor": factor, "forest": forest, "empty": Curves{Title: "Nothing yet"}, "norows": Rows{Title: "Nothing yet"}}
}

func TestFiguresDraw(t *testing.T) {
	for name, c := range samples() {
		svg, err := SVG(c)
		if err != nil {
			t.Fatalf("SVG(%s): %v", name, err)
		}
		again, _ := SVG(c)
		if !bytes.Equal(svg, again) {
			t.Errorf("SVG(%s) differs between two calls", name)
		}
		wellFormed(t, name, svg)
		inline, err := InlineSVG(c)
		if err != nil {
			t.Fatalf("InlineSVG(%s): %v", name, err)
		}
		if strings.Contains(inline, "style=") || !strings.HasPrefix(inline, "<svg") || strings.Contains(inline, "NaN") {
			t.Errorf("InlineSVG(%s) holds a style attribute, a NaN, or does not begin with <svg", name)
		}
		if *show != "" {
			png, err := PNG(c, 200)
			if err != nil {
				t.Fatalf("PNG(%s): %v", name, err)
			}
			for ext, data := range map[string][]byte{"png": png, "svg": svg} {
				if err := os.WriteFile(filepath.Join(*show, name+"."+ext), data, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

func wellFormed(t *testing.T, name string, svg []byte) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		if _, err := d.Token(); err == io.EOF {
			return
		} else if err != nil {
			t.Fatalf("SVG(%s) is not well formed: %v", name, err)
		}
	}
}

// Every text lies inside the picture: nothing is cut off at an edge.
func TestNothingIsClipped(t *testing.T) {
	type text struct {
		X      float64 `xml:"x,attr"`
		Size   string  `xml:"font-size,attr"`
		Weight string  `xml:"font-weight,attr"`
		Family string  `xml:"font-family,attr"`
		Body   string  `xml:",chardata"`
	}
	for name, c := range samples() {
		inline, err := InlineSVG(c)
		if err != nil {
			t.Fatal(err)
		}
		p := newPen(draw.New(vgsvg.New(10, 10)))
		d := xml.NewDecoder(strings.NewReader(inline))
		for {
			tok, err := d.Token()
			if err != nil {
				break
			}
			start, ok := tok.(xml.StartElement)
			if !ok || start.Name.Local != "text" {
				continue
			}
			var x text
			if err := d.DecodeElement(&x, &start); err != nil {
				t.Fatal(err)
			}
			f := face{bold: x.Weight == "bold", mono: strings.Contains(x.Family, "Mono")}
			fmt.Sscanf(x.Size, "%g", &f.size)
			if end := x.X + p.width(f, x.Body); x.X < -0.5 || end > Width+0.5 {
				t.Errorf("%s: %q runs from %.1f to %.1f of %.0f", name, x.Body, x.X, end, Width)
			}
		}
	}
}

func TestLabelsKeepApart(t *testing.T) {
	for _, places := range [][]float64{{50, 50, 50, 50}, {0, 1, 2, 99, 100}, {10}, {100, 100, 100}, {0, 0, 0}, {20, 60, 61, 62, 20}} {
		var tags []tag
		for _, y := range places {
			tags = append(tags, tag{from: y, y: y})
		}
		spread(tags, 0, 100)
		for i := range tags {
			if i > 0 && tags[i].y-tags[i-1].y < labelGap-1e-9 {
				t.Errorf("labels at %v: %d and %d are %.2f apart, want %.1f", places, i-1, i, tags[i].y-tags[i-1].y, labelGap)
			}
			if tags[i].y < -2.1 || tags[i].y > 102.1 {
				t.Errorf("labels at %v: %d stands at %.1f, outside", places, i, tags[i].y)
			}
		}
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		axis Axis
		e    extent
		want string
	}{
		{Axis{FromZero: true, Unit: "%", Limit: 100}, extent{3, 33}, "0 10 20 30 40 %"},
		{Axis{FromZero: true, Limit: 100}, extent{3, 97}, "0 20 40 60 80 100"},
		{Axis{}, extent{-4, 12}, "−5 0 5 10 15"},
		{Axis{}, extent{0.002, 0.011}, "0.002 0.004 0.006 0.008 0.010 0.012"},
		{Axis{FromZero: true}, extent{0, 9000}, "0 2k 4k 6k 8k 10k"},
		{Axis{}, extent{0.5, 0.5}, "0.44 0.46 0.48 0.50 0.52 0.54 0.56"},
		{Axis{FromZero: true}, extent{0, 0}, "0.0 0.2 0.4 0.6 0.8 1.0"},
	} {
		_, _, ticks := c.axis.span(c.e, 5)
		var got []string
		for _, tk := range ticks {
			got = append(got, tk.Label)
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("ticks of %v = %q, want %q", c.e, s, c.want)
		}
	}
}
