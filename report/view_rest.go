package report

import (
	"fmt"
	"math"
	"strings"

	"alidade/ablation/published"
	"alidade/stats"
	"alidade/templates"
)

// published lists what others have published on the same question.
func (w *viewer) published() templates.ReportSection {
	s := templates.ReportSection{ID: "published", Title: "Published for the same question"}
	if len(w.r.Published) == 0 {
		return s
	}
	m := w.r.Metric
	t := templates.ReportTable{
		Title: "Table", Caption: fmt.Sprintf("%s as published; ± is half the %s interval of the test set alone.", capital(m.with()), percentLevel(w.r.Level)),
		Head: heads("arm", "#published", "#this study", "source", "known as"),
	}
	for _, p := range w.r.Published {
		own := "–"
		for _, r := range w.r.Results {
			if r.Arm == p.Arm && r.Metric.Key == m.Key {
				own = m.number(float64(r.Mean))
			}
		}
		half := ""
		if isFinite(float64(p.SE)) {
			half = "±" + num(m.shown(1.96*float64(p.SE)), 1)
		}
		t.Rows = append(t.Rows, []cell{
			{Head: true, Text: p.Label, Note: p.Note}, {Text: m.number(p.Value.Value), Interval: half, Number: true}, num0(own), {Text: p.Source.String()}, {Text: string(p.Strength)},
		})
	}
	dropColumns(&t)
	t.Note = "Protocol: " + w.r.Published[0].Protocol.String() + ". No seed noise is known for any of them."
	s.Blocks = append(s.Blocks, templates.ReportBlock{Table: &t})
	if list := w.publishedDifferences(); len(list) > 0 {
		s.Blocks = append(s.Blocks, text("Published differences between the same arms, with the binomial error of the test sets alone (unpaired, not corrected):"), templates.ReportBlock{List: list})
	}
	if w.r.Published[0].Set == "star-figure-6" {
		s.Blocks = append(s.Blocks, text("In words only: "+strings.Join(published.FailureStatements(), "; ")+"."))
	}
	return s
}

// mostPublished bounds the list of published differences.
const mostPublished = 12

// publishedDifferences compares neighbouring published arms at each scale.
func (w *viewer) publishedDifferences() []string {
	m := w.r.Metric
	var out []string
	for i, p := range w.r.Published {
		for _, q := range w.r.Published[i+1:] {
			if p.Arm < 0 || q.Arm < 0 || p.Arm == q.Arm || p.Scale != q.Scale || !isFinite(float64(p.SE)) || !isFinite(float64(q.SE)) || len(out) >= mostPublished {
				continue
			}
			z, _ := stats.ZTest(q.Value.Value-p.Value.Value, float64(p.SE), float64(q.SE))
			word := "not separable from query noise alone"
			switch {
			case math.Abs(z) > 2.8:
				word = "clear of query noise"
			case math.Abs(z) > 1.96:
				word = "borderline, before any correction"
			}
			out = append(out, fmt.Sprintf("%s − %s: %s %s, z %s, %s", q.Label, p.Label, m.diff(q.Value.Value-p.Value.Value), m.Points, signed(z, 1), word))
		}
	}
	return out
}

func (w *viewer) costs() templates.ReportSection {
	s := templates.ReportSection{ID: "costs", Title: "Costs and sick runs"}
	c := w.r.Costs
	var parts []string
	if c.CPUHours > 0 {
		parts = append(parts, hours(c.CPUHours, "CPU"))
	}
	if c.GPUHours > 0 {
		parts = append(parts, hours(c.GPUHours, "GPU"))
	}
	if len(c.Runs) > 0 {
		low, high := math.Inf(1), 0.0
		for _, r := range c.Runs {
			low, high = min(low, r.Minutes), max(high, r.Minutes)
		}
		parts = append(parts, fmt.Sprintf("%s wall from first start to last end", minutes(60*c.Wall)), fmt.Sprintf("%s to %s a run", minutes(low), minutes(high)))
		s.Blocks = append(s.Blocks, text(capital(strings.Join(parts, ", "))+"."))
	}
	if len(w.r.Sick) == 0 {
		if len(c.Runs) > 0 {
			s.Blocks = append(s.Blocks, text("No run failed, was retried, or logged values that are not finite."))
		}
		return s
	}
	var list []string
	for _, k := range w.r.Sick {
		use := "left out"
		if k.Used {
			use = "used"
		}
		list = append(list, fmt.Sprintf("Run %d (%s, seed %d), %s: %s.", k.Run, w.armName(k.Arm), k.Seed, use, k.What))
	}
	s.Blocks = append(s.Blocks, templates.ReportBlock{List: list})
	return s
}

func (w *viewer) armName(index int) string {
	for _, a := range w.r.Arms {
		if a.Index == index {
			return a.Label
		}
	}
	return fmt.Sprintf("arm %d", index+1)
}

func hours(h float64, kind string) string {
	if h < 1 {
		return fmt.Sprintf("%s %s-minutes", num(60*h, 1), kind)
	}
	return fmt.Sprintf("%s %s-hours", num(h, 1), kind)
}

func minutes(m float64) string {
	switch {
	case m < 1:
		return fmt.Sprintf("%.0f s", 60*m)
	case m < 90:
		return fmt.Sprintf("%.1f min", m)
	}
	h := int(m / 60)
	return fmt.Sprintf("%d h %02d", h, int(m+0.5)-60*h)
}

func (w *viewer) examples() templates.ReportSection {
	s := templates.ReportSection{ID: "examples", Title: "Example trajectories"}
	for _, e := range w.r.Examples {
		var quotes []templates.ReportQuote
		for _, x := range e.Examples {
			quotes = append(quotes, w.quote(x))
		}
		s.Blocks = append(s.Blocks, text(w.armName(e.Arm)+":"), templates.ReportBlock{Quotes: quotes})
	}
	return s
}

func (w *viewer) quote(x Example) templates.ReportQuote {
	end := "failed"
	if x.Success {
		end = "success"
	}
	if x.FormatError {
		end = "format error"
	}
	q := templates.ReportQuote{
		Head: fmt.Sprintf("%s: reward %s, %s, %s, run %d, step %d, %s", capital(x.Kind), num(x.Reward, 2), end, plural(x.Turns, "turn", "turns"), x.Run, x.Step, x.Level),
		Text: shorten(x.Query, 240), Reasons: x.Reasons,
	}
	if w.at.TrajectoryURL != nil {
		q.Href = w.at.TrajectoryURL(int64(x.Run), x.ID)
	} else {
		q.Text += " (" + x.ID + ")"
	}
	return q
}

// shorten cuts a text at a word.
func shorten(s string, limit int) string {
	r := []rune(strings.Join(strings.Fields(s), " "))
	if len(r) <= limit {
		return string(r)
	}
	cut := string(r[:limit])
	if i := strings.LastIndex(cut, " "); i > limit/2 {
		cut = cut[:i]
	}
	return cut + " …"
}
