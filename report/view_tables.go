package report

import (
	"fmt"
	"slices"
	"strings"

	"alidade/templates"
)

type cell = templates.ReportCell

func (w *viewer) results() templates.ReportSection {
	s := templates.ReportSection{ID: "results", Title: "Results"}
	if len(w.r.Results) == 0 {
		s.Blocks = []templates.ReportBlock{text("No run has been evaluated yet.")}
		return s
	}
	s.Margin = []string{"data " + w.r.Provenance.DataHash}
	s.Margin = append(s.Margin, w.methods()...)
	s.Blocks = append(s.Blocks, templates.ReportBlock{Table: w.summary()})
	s.Blocks = append(s.Blocks, w.figures(sectionResults)...)
	for _, t := range w.secondary() {
		s.Blocks = append(s.Blocks, templates.ReportBlock{Table: &t})
	}
	return s
}

// methods names the methods of the intervals in the summary.
func (w *viewer) methods() []string {
	var out []string
	add := func(iv *Interval, what string) {
		if iv == nil {
			return
		}
		if m := what + ": " + iv.Method; !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	for _, r := range w.r.Results {
		if r.Metric.Key == w.r.Metric.Key {
			add(r.Query, "query noise")
			add(w.seedInterval(r.Estimate), "seed noise")
		}
	}
	return out
}

// summary is the table of the primary metric: arms, then reference lines.
func (w *viewer) summary() *templates.ReportTable {
	m := w.r.Metric
	t := &templates.ReportTable{
		Title:   "Table",
		Caption: fmt.Sprintf("Final %s, mean over seeds and queries. Query interval: given these seeds. Seed interval: given this panel.", m.with()),
		Head:    heads("arm", "#seeds", "#queries", "#mean", "#query interval", "#seed interval", "#over SFT, "+m.Points, "#over SFT continued, "+m.Points),
	}
	best := w.bestArm()
	for _, r := range w.r.Results {
		if r.Metric.Key != m.Key {
			continue
		}
		t.Rows = append(t.Rows, []cell{
			w.armCell(r.Arm), {Text: fmt.Sprint(r.Seeds), Number: true}, {Text: w.queries(r.Estimate), Number: true},
			{Text: m.number(float64(r.Mean)), Number: true, Strong: r.Arm == best, Mark: w.mark(r.Arm, best)},
			{Text: dash(m.span(r.Query, false)), Number: true}, {Text: dash(m.span(w.seedInterval(r.Estimate), false)), Number: true},
			w.lift(OverSFT, r.Arm), w.lift(OverControl, r.Arm),
		})
	}
	for _, a := range w.r.Arms {
		if !slices.ContainsFunc(w.r.Results, func(r Result) bool { return r.Arm == a.Index && r.Metric.Key == m.Key }) {
			t.Rows = append(t.Rows, []cell{w.armCell(a.Index), num0("0"), num0("–"), num0("–"), num0("–"), num0("–"), num0("–"), num0("–")})
		}
	}
	for _, l := range w.r.Baselines {
		t.Rows = append(t.Rows, []cell{
			{Head: true, Text: l.Label, Note: "reference line"}, num0(fmt.Sprint(l.Seeds)), num0(w.queries(l.Estimate)),
			num0(m.number(float64(l.Mean))), num0(dash(m.span(l.Query, false))), num0(dash(m.span(w.seedInterval(l.Estimate), false))), num0("–"), num0("–"),
		})
	}
	dropColumns(t)
	t.Note = w.bestWord() + " = best: difference from it undecided after Holm, on the same queries and seeds. Differences are paired by query and seed."
	if w.ownBaselines() {
		t.Note += " The SFT checkpoint differs between arms, so it is no common line: each arm is compared with its own."
	}
	if w.twoSeeds() {
		t.Note += " A t interval over 2 seeds is too wide to say anything and is left out; report.json has it."
	}
	return t
}

func (w *viewer) bestWord() string {
	if w.r.Metric.Lower {
		return "best: lowest mean."
	}
	return "best: highest mean."
}

func num0(s string) cell { return cell{Text: s, Number: true} }

// seedInterval leaves out the interval over two seeds.
func (w *viewer) seedInterval(e Estimate) *Interval {
	if e.Seeds < 3 {
		return nil
	}
	return e.Seed
}

// ownBaselines says whether arms were compared with checkpoints of their own.
func (w *viewer) ownBaselines() bool {
	compared := slices.ContainsFunc(w.r.Comparisons, func(c Comparison) bool { return c.Family == OverSFT })
	return compared && !slices.ContainsFunc(w.r.Baselines, func(l Baseline) bool { return l.Key == "sft" })
}

func (w *viewer) twoSeeds() bool {
	return slices.ContainsFunc(w.r.Results, func(r Result) bool { return r.Seeds == 2 })
}

func (w *viewer) queries(e Estimate) string {
	if e.Queries == 0 {
		return "–"
	}
	return fmt.Sprintf("%d × %d", e.Queries, e.Samples)
}

func (w *viewer) bestArm() int {
	best, value := -1, 0.0
	for _, r := range w.r.Results {
		if r.Metric.Key == w.r.Metric.Key && isFinite(float64(r.Mean)) && (best < 0 || r.Metric.beats(float64(r.Mean), value)) {
			best, value = r.Arm, float64(r.Mean)
		}
	}
	return best
}

func (w *viewer) mark(arm, best int) string {
	if len(w.r.Arms) < 2 {
		return ""
	}
	if arm == best {
		return "best"
	}
	for _, c := range w.r.Comparisons {
		if c.Family == Between && (c.A == arm && c.B == best || c.A == best && c.B == arm) && c.Verdict == Undecided {
			return "= best"
		}
	}
	return ""
}

func (w *viewer) lift(family string, arm int) cell {
	for _, c := range w.r.Comparisons {
		if c.Family == family && c.A == arm {
			return cell{Text: w.r.Metric.diff(float64(c.Mean)), Number: true, Note: strings.TrimSpace(w.r.Metric.span(c.main(), true) + " " + c.Verdict), Strong: c.Verdict == Clear}
		}
	}
	return num0("–")
}

// secondary are the tables of the other metrics and of the single checks: a
// row a metric, a column an arm.
func (w *viewer) secondary() []templates.ReportTable {
	other := w.byMetric(func(m Metric) bool { return m.Key != w.r.Metric.Key && !strings.HasPrefix(m.Key, "eval/check/") })
	checks := w.byMetric(func(m Metric) bool { return strings.HasPrefix(m.Key, "eval/check/") })
	var out []templates.ReportTable
	if len(other) > 0 {
		out = append(out, w.chunks(other, templates.ReportTable{
			Title: "Table", Caption: "Other metrics at the last step, mean over seeds. In grey: the query interval where outcomes are known by query; otherwise the t interval from three seeds on, or the range of two.",
			Head: w.armHeads("metric"),
		})...)
	}
	if len(checks) > 0 {
		out = append(out, w.chunks(checks, templates.ReportTable{
			Title: "Table", Caption: "Pass rate of each check in the last evaluation, %, mean over seeds. The lowest are what keeps plans from success.",
			Head: w.armHeads("check"),
		})...)
	}
	return out
}

// Arms side by side: up to four with their intervals on one line, up to six
// with the intervals below; more take several tables.
const (
	roomyArms = 4
	mostArms  = 6
)

// chunks cuts wide tables into several that fit the column.
func (w *viewer) chunks(rows [][]cell, t templates.ReportTable) []templates.ReportTable {
	n := len(w.r.Arms)
	if n > roomyArms {
		for _, row := range rows {
			for i := range row {
				row[i].Note, row[i].Interval = row[i].Note+row[i].Interval, ""
			}
		}
	}
	t.Rows = rows
	dropColumns(&t) // arms without a run
	rows, n = t.Rows, len(t.Head)-1
	t.Rows = nil
	var out []templates.ReportTable
	for from := 0; from < n; from += mostArms {
		to := min(from+mostArms, n)
		part := t
		if n > mostArms {
			part.Caption = fmt.Sprintf("%s Arms %d to %d of %d.", t.Caption, from+1, to, n)
		}
		part.Head = append([]cell{t.Head[0]}, t.Head[1+from:1+to]...)
		for _, row := range rows {
			part.Rows = append(part.Rows, append([]cell{row[0]}, row[1+from:1+to]...))
		}
		out = append(out, part)
	}
	return out
}

func (w *viewer) armHeads(first string) []cell {
	out := heads(first)
	for _, a := range w.r.Arms {
		out = append(out, cell{Text: a.Label, Number: true})
	}
	return out
}

func (w *viewer) byMetric(keep func(Metric) bool) [][]cell {
	var rows [][]cell
	at := map[string]int{}
	for _, r := range w.r.Results {
		if !keep(r.Metric) {
			continue
		}
		i, ok := at[r.Metric.Key]
		if !ok {
			i = len(rows)
			at[r.Metric.Key] = i
			name := r.Metric.with()
			if strings.HasPrefix(r.Metric.Key, "eval/check/") {
				name = r.Metric.Name
			}
			row := []cell{{Head: true, Text: name}}
			for range w.r.Arms {
				row = append(row, num0("–"))
			}
			rows = append(rows, row)
		}
		for k, a := range w.r.Arms {
			if a.Index == r.Arm {
				rows[i][k+1] = cell{Text: r.Metric.number(float64(r.Mean)), Interval: w.quiet(r), Number: true}
			}
		}
	}
	return rows
}

// quiet is what stands in grey beside a secondary value.
func (w *viewer) quiet(r Result) string {
	if strings.HasPrefix(r.Metric.Key, "eval/check/") {
		return ""
	}
	switch {
	case r.Query != nil:
		return r.Metric.span(r.Query, false)
	case r.Seeds >= 3 && r.Seed != nil:
		return r.Metric.span(r.Seed, false)
	case r.Seeds == 2:
		a, b := float64(r.BySeed[0]), float64(r.BySeed[1])
		low, high := r.Metric.number(min(a, b)), r.Metric.number(max(a, b))
		if low == high {
			return ""
		}
		return low + "–" + high
	}
	return ""
}

func (w *viewer) differences() templates.ReportSection {
	s := templates.ReportSection{ID: "differences", Title: "Differences"}
	if len(w.r.Comparisons) == 0 {
		return s
	}
	s.Blocks = w.figures(sectionDifferences)
	m := w.r.Metric
	t := templates.ReportTable{
		Title: "Table", Caption: fmt.Sprintf("Differences of final %s, %s, paired by query and seed.", m.Name, m.Points),
		Head: heads("contrast", "#difference", "#query interval", "#seed interval", "#Holm p", "verdict", "evidence"),
	}
	for _, c := range w.r.Comparisons {
		label := c.Label
		switch c.Family {
		case OverSFT:
			label += " − SFT"
		case OverControl:
			label += " − SFT continued"
		}
		kind := "open"
		if c.Verdict == Clear {
			kind = "ok"
		}
		t.Rows = append(t.Rows, []cell{
			{Head: true, Text: label}, {Text: m.diff(float64(c.Mean)), Number: true, Strong: c.Verdict == Clear},
			num0(dash(m.span(c.Query, true))), num0(dash(m.span(w.seedInterval(c.Estimate), true))), num0(pText(float64(c.HolmP))),
			{Status: &templates.ReportStatus{Kind: kind, Word: c.Verdict}, Note: c.Remark}, {Text: c.Grade},
		})
	}
	dropColumns(&t)
	t.Note = "Verdicts are after Holm's correction within each family (over SFT, over SFT continued, between arms); intervals are not corrected. " +
		"A: clear of query noise and, over three seeds or more, of seed noise. B: clear of query noise on these seeds. C: not separable."
	s.Blocks = append(s.Blocks, templates.ReportBlock{Table: &t})
	return s
}

func pText(p float64) string {
	switch {
	case !isFinite(p):
		return "–"
	case p < 0.001:
		return "<0.001"
	}
	return fmt.Sprintf("%.3f", p)
}

// dropColumns takes out the columns that say nothing.
func dropColumns(t *templates.ReportTable) {
	for c := len(t.Head) - 1; c > 0; c-- {
		empty := len(t.Rows) > 0
		for _, row := range t.Rows {
			if row[c].Text != "–" || row[c].Status != nil {
				empty = false
			}
		}
		if !empty {
			continue
		}
		t.Head = slices.Delete(t.Head, c, c+1)
		for i := range t.Rows {
			t.Rows[i] = slices.Delete(t.Rows[i], c, c+1)
		}
	}
}
