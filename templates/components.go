package templates

import (
	"fmt"
	"strconv"
	"strings"
)

// SectionView opens a section of a page.
type SectionView struct {
	ID    string // of the heading; the section is labelled by it
	Title string
	Note  string // caption on the same line
}

// Status is a state in an icon and a word; never one without the other.
type Status struct {
	Kind string // ok, run, queue, pause, stop, warn, bad, lost, info
	Word string
}

// class is the colour of the status; the icon's shape says the same.
func (s Status) class() string {
	switch s.Kind {
	case "ok", "run", "warn", "bad":
		return "status status-" + s.Kind
	case "queue", "pause", "stop", "lost":
		return "status status-off"
	}
	return "status"
}

// Fact is one label over one value.
type Fact struct {
	Label  string
	Value  string // big, mono; "" when Status or Rule is set
	Unit   string // after the value, small: "of 52 finished"
	Status []Status
	Rule   *RuleView
	ID     string // for live updates: data-fact
	Links  []Link
}

// ActionView is a button that posts, or a link that looks like a button.
type ActionView struct {
	Label   string
	Href    string // a link
	Post    string // an address to post to
	Kind    string // primary, danger, quiet, ""
	Icon    string
	Key     string // shortcut shown in the button; the page's script presses it
	Off     string // why it cannot be used now; "" = it can
	Toast   string // said after the post: "Paused; runs that train go on"
	Undo    string // address whose post takes it back
	Confirm string // question with numbers, only for what cannot be taken back
	Small   bool
	Reload  bool   // read the whole page anew afterwards: its tables and charts get new rows
	Name    string // for screen readers and to find the button again, where the label alone says too little
}

func (a ActionView) class() string {
	c := "button"
	if a.Kind != "" {
		c += " button-" + a.Kind
	}
	if a.Small {
		c += " button-small"
	}
	return c
}

// ChoiceView is a row of exclusive options.
type ChoiceView struct {
	Label   string // for screen readers
	Name    string // data-choice, for scripts
	Options []ChoiceOption
}

// ChoiceOption is one option: a link, or a button for scripts when Href is empty.
type ChoiceOption struct {
	Value, Label, Href string
	On                 bool
}

func pressed(on bool) string {
	if on {
		return "true"
	}
	return "false"
}

// AlertView is something a person should look at.
type AlertView struct {
	Level   string // info, warn, bad
	Title   string // what: where, since when
	Text    string // one sentence of numbers
	When    string // "12 min ago"
	At      string // RFC 3339
	Links   []Link
	Actions []ActionView
}

func (a AlertView) icon() string {
	switch a.Level {
	case "warn", "bad":
		return a.Level
	}
	return "info"
}

// EmptyView says what would be here and the next move.
type EmptyView struct {
	Title, Text string
	Actions     []ActionView
}

// ErrorView says what happened, where, and what can be done.
type ErrorView struct {
	Title  string
	Text   string
	Fields []string // one line a field
	Retry  string   // address to try again
	Back   Link
}

// MarkView is the mark of an arm: colour and marker by the first factor, dash
// by the second.
type MarkView struct {
	Color  int  // 1–8
	Marker int  // 1–8
	Dash   int  // 1–8
	Ink    bool // a dash alone, in ink: a level of the second factor
	Label  string
	Href   string
}

// MarkerPath draws marker n of radius r around (x, y): disc, square, triangle,
// diamond, triangle down, cross, plus, hexagon.
func MarkerPath(n int, x, y, r float64) string {
	p := func(format string, a ...float64) string {
		args := make([]any, len(a))
		for i, v := range a {
			args[i] = short(v)
		}
		return fmt.Sprintf(format, args...)
	}
	switch (n-1)%8 + 1 {
	case 2:
		s := r * .92
		return p("M%s %sh%sv%sh%sz", x-s, y-s, 2*s, 2*s, -2*s)
	case 3:
		s := r * 1.2
		return p("M%s %sl%s %sh%sz", x, y-s, s, 1.8*s, -2*s)
	case 4:
		s := r * 1.25
		return p("M%s %sl%s %sl%s %sl%s %sz", x, y-s, s, s, -s, s, -s, -s)
	case 5:
		s := r * 1.2
		return p("M%s %sl%s %sh%sz", x, y+s, s, -1.8*s, -2*s)
	case 6:
		a, b := r*1.05, r*.4
		return p("M%s %sl%s %sl%s %sl%s %sl%s %sl%s %sl%s %sl%s %sl%s %sl%s %sl%s %sz", x-a, y-a+b, b, -b, a-b, a-b, a-b, b-a, b, b, b-a, a-b, a-b, a-b, -b, b, b-a, b-a, b-a, a-b, -b, -b, a-b, b-a)
	case 7:
		a, b := r*1.15, r*.42
		return p("M%s %sh%sv%sh%sv%sh%sv%sh%sv%sh%sv%sh%sz", x-b, y-a, 2*b, a-b, a-b, 2*b, b-a, a-b, -2*b, b-a, b-a, -2*b, a-b)
	case 8:
		return p("M%s %sl%s %sv%sl%s %sl%s %sv%sz", x, y-r*1.15, r, r*.575, r*1.15, -r, r*.575, -r, -r*.575, -r*1.15)
	}
	return p("M%s %sa%s %s 0 1 0 %s 0a%s %s 0 1 0 %s 0z", x-r, y, r, r, 2*r, r, r, -2*r)
}

func armClass(n int) string  { return "arm-" + strconv.Itoa((max(n, 1)-1)%8+1) }
func dashClass(n int) string { return "dash-" + strconv.Itoa((max(n, 1)-1)%8+1) }

// short prints a coordinate with at most one decimal.
func short(v float64) string {
	return strconv.FormatFloat(float64(int64(v*10+sign(v)*.5))/10, 'f', -1, 64)
}

func sign(v float64) float64 {
	if v < 0 {
		return -1
	}
	return 1
}

// RuleView is the graduated rule: progress of a run's steps, a study's runs
// or a run's phases. Build it with [NewRule].
type RuleView struct {
	Width              float64
	Minor, Major, Base string
	Done               string
	Now                string
	Flags              []string
	Off                bool // not running: quiet
	Label              string
	ID                 string // data-rule, for live updates
	Total, MajorEvery  float64
	NowValue           float64
}

// NewRule draws a rule of total units in width px, now units done, with short
// marks each minor units, long marks each major units and flags at the given
// units. Marks closer than 3 px are thinned out.
func NewRule(width, total, now, minor, major float64, flags []float64) RuleView {
	const y = 13.0
	v := RuleView{Width: width, Total: total, NowValue: now, MajorEvery: major}
	if total <= 0 {
		total = 1
	}
	now = min(max(now, 0), total)
	x := func(u float64) float64 { return u / total * width }
	marks := func(every, height, gap float64) string {
		if every <= 0 {
			return ""
		}
		for x(every) < gap {
			every *= 2
		}
		var b strings.Builder
		for u := 0.0; u < total; u += every {
			fmt.Fprintf(&b, "M%s %sv-%s", short(x(u)), short(y), short(height))
		}
		fmt.Fprintf(&b, "M%s %sv-%s", short(width), short(y), short(height))
		return b.String()
	}
	v.Minor = marks(minor, 3, 3.2)
	v.Major = marks(major, 7, 12)
	v.Base = fmt.Sprintf("M0 %sH%s", short(y), short(width))
	v.Done = fmt.Sprintf("M0 %sH%s", short(y), short(x(now)))
	v.Now = fmt.Sprintf("M%s 15l-3.5 5h7z", short(x(now)))
	for _, f := range flags {
		v.Flags = append(v.Flags, fmt.Sprintf("M%s 5l-3.5-4.5h7z", short(x(min(max(f, 0), total)))))
	}
	v.Label = fmt.Sprintf("%s of %s", strconv.FormatFloat(now, 'f', -1, 64), strconv.FormatFloat(total, 'f', -1, 64))
	return v
}

// SparkView is a small line without axes. Build it with [NewSpark].
type SparkView struct {
	Width, Height float64
	Path          string
	EndX, EndY    string
	Label         string
	ID            string // data-spark, for live updates
}

// NewSpark draws values from left to right in a box, 0 at its floor when zero
// is set, otherwise their own range. NaN and ±Inf make gaps.
func NewSpark(width, height float64, values []float64, zero bool) SparkView {
	v := SparkView{Width: width, Height: height}
	lo, hi, n := 0.0, 0.0, 0
	for _, y := range values {
		if !finite(y) {
			continue
		}
		if n == 0 || y < lo {
			lo = y
		}
		if n == 0 || y > hi {
			hi = y
		}
		n++
	}
	if n == 0 {
		return v
	}
	if zero && lo > 0 {
		lo = 0
	}
	if hi == lo {
		hi = lo + 1
	}
	var b strings.Builder
	pen := "M"
	step := width
	if len(values) > 1 {
		step = width / float64(len(values)-1)
	}
	for i, y := range values {
		if !finite(y) {
			pen = "M"
			continue
		}
		px, py := float64(i)*step, height-2-(y-lo)/(hi-lo)*(height-4)
		v.EndX, v.EndY = short(px), short(py)
		b.WriteString(pen + v.EndX + " " + v.EndY)
		pen = "L"
	}
	v.Path = b.String()
	return v
}

// NewSparkTo is NewSpark from 0 to top; top 0 is the largest value.
func NewSparkTo(width, height float64, values []float64, top float64) SparkView {
	for _, y := range values {
		if finite(y) {
			top = max(top, y)
		}
	}
	if top <= 0 {
		top = 1
	}
	v := SparkView{Width: width, Height: height}
	pen := "M"
	for i, y := range values {
		if !finite(y) {
			pen = "M"
			continue
		}
		v.EndX = short(float64(i) / float64(max(1, len(values)-1)) * width)
		v.EndY = short(height - 2 - y/top*(height-4))
		v.Path += pen + v.EndX + " " + v.EndY
		pen = "L"
	}
	return v
}

func finite(f float64) bool { return f-f == 0 }

// viewBox returns the attribute for a box at the origin.
func viewBox(w, h float64) string { return "0 0 " + short(w) + " " + short(h) }
