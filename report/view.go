package report

import (
	"fmt"
	"strings"

	"alidade/report/chart"
	"alidade/templates"
)

// Place says where a view is read, which decides links and pictures.
type Place struct {
	TrajectoryURL func(run int64, id string) string // nil = no links
}

// View turns a report into finished strings, in reading order.
func View(r Report, at Place) (templates.ReportView, error) {
	w := viewer{r: r, at: at}
	v := templates.ReportView{Title: w.title(), Kicker: w.kicker(), By: w.by(), Partial: r.Partial, Answer: r.Headline, Foot: w.foot()}
	for _, build := range []func() templates.ReportSection{
		w.design, w.comparability, w.results, w.differences, w.curves, w.learning, w.published, w.costs, w.examples, w.limits, w.reproduce,
	} {
		if s := build(); len(s.Blocks) > 0 {
			v.Sections = append(v.Sections, s)
		}
	}
	numberUp(v.Sections)
	return v, w.err
}

// numberUp numbers tables and figures in reading order.
func numberUp(sections []templates.ReportSection) {
	table, figure := 0, 0
	for _, s := range sections {
		for _, b := range s.Blocks {
			switch {
			case b.Table != nil:
				table++
				b.Table.Title = fmt.Sprintf("Table %d.", table)
			case b.Figure != nil:
				figure++
				b.Figure.Title = fmt.Sprintf("Figure %d. %s", figure, b.Figure.Title)
			}
		}
	}
}

// A viewer builds the sections; err keeps the first figure that could not be
// drawn.
type viewer struct {
	r   Report
	at  Place
	err error
}

func (w *viewer) title() string {
	if w.r.Study.Question != "" {
		return w.r.Study.Question
	}
	return w.r.Study.Name
}

func (w *viewer) kicker() string {
	s := fmt.Sprintf("Alidade report on S-%d, %s", w.r.Study.ID, w.r.Study.Name)
	if w.r.Made != nil {
		s += ", " + w.r.Made.Format("2 January 2006")
	}
	return s
}

func (w *viewer) by() string {
	s := fmt.Sprintf("%s × %s. %d of %s used.",
		plural(len(w.r.Arms), "arm", "arms"), plural(len(w.r.Study.Seeds), "seed", "seeds"), w.r.Study.RunsUsed, plural(w.r.Study.RunsPlanned, "run", "runs"))
	return s
}

func (w *viewer) foot() string {
	s := fmt.Sprintf("±, [ ] and bars are %s intervals; query noise and seed noise are named and never mixed. Data %s.", percentLevel(w.r.Level), w.r.Provenance.DataHash)
	if w.r.Version != "" {
		s += " Made by Alidade " + w.r.Version + "."
	}
	return s
}

func percentLevel(level float64) string {
	return trimZero(fmt.Sprintf("%.1f", 100*level)) + "\u2009%"
}

func text(s string) templates.ReportBlock { return templates.ReportBlock{Text: s} }

func (w *viewer) design() templates.ReportSection {
	s := templates.ReportSection{ID: "design", Title: "Question and design", Blocks: []templates.ReportBlock{text(w.r.Study.Text)}}
	s.Margin = []string{"study " + w.r.Provenance.Study}
	if w.r.Provenance.Panel != "" {
		s.Margin = append(s.Margin, "panel "+w.r.Provenance.Panel)
	}
	s.Margin = append(s.Margin, w.r.Provenance.Datasets...)
	if w.r.Study.Notes != "" {
		s.Blocks = append(s.Blocks, text(w.r.Study.Notes))
	}
	return s
}

func (w *viewer) comparability() templates.ReportSection {
	g := w.r.Comparable
	status, words := &templates.ReportStatus{Kind: "ok", Word: "Comparable."}, "All runs share the "+and(g.Shared)+"."
	if len(g.Shared) == 0 {
		words = "Nothing is known that would speak against it."
	}
	if !g.OK {
		status = &templates.ReportStatus{Kind: "warn", Word: "Compare with care."}
	}
	s := templates.ReportSection{ID: "comparability", Title: "Comparability", Blocks: []templates.ReportBlock{{Status: status, Text: words}}}
	if len(g.Problems) > 0 {
		s.Blocks = append(s.Blocks, templates.ReportBlock{List: sentences(g.Problems)})
	}
	if len(g.Differences) > 0 {
		s.Blocks = append(s.Blocks, text("Arms differ by design in "+strings.Join(g.Differences, "; ")+"."))
	}
	if p := w.firstNotComparable(); p != nil {
		s.Blocks = append(s.Blocks, templates.ReportBlock{
			Status: &templates.ReportStatus{Kind: "open", Word: "Published values are not comparable in level."},
			Text:   capital(p.Why) + ". They are shown hollow and dashed, for their shape.",
		})
	}
	return s
}

func (w *viewer) firstNotComparable() *Published {
	for i := range w.r.Published {
		if !w.r.Published[i].Comparable {
			return &w.r.Published[i]
		}
	}
	return nil
}

func sentences(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = capital(s) + "."
	}
	return out
}

// figures are the figures of one section, drawn.
func (w *viewer) figures(section string) []templates.ReportBlock {
	var out []templates.ReportBlock
	for _, f := range w.r.Figures {
		if f.Section != section || f.Chart == nil {
			continue
		}
		svg, err := chart.InlineSVG(f.Chart)
		if err != nil {
			if w.err == nil {
				w.err = fmt.Errorf("figure %s: %w", f.Name, err)
			}
			continue
		}
		out = append(out, templates.ReportBlock{Figure: &templates.ReportFigure{Name: f.Name, Title: f.Title, Subtitle: f.Subtitle, Source: f.Source, Alt: f.Chart.Alt(), SVG: svg}})
	}
	return out
}

func (w *viewer) curves() templates.ReportSection {
	s := templates.ReportSection{ID: "curves", Title: "Against a factor", Blocks: w.figures(sectionCurves)}
	for _, c := range w.r.Curves {
		s.Blocks = append(s.Blocks, text(c.NoFit))
	}
	return s
}

func (w *viewer) learning() templates.ReportSection {
	return templates.ReportSection{ID: "learning", Title: "Learning", Blocks: w.figures(sectionLearning)}
}

func (w *viewer) limits() templates.ReportSection {
	return templates.ReportSection{ID: "limits", Title: "Limits", Blocks: []templates.ReportBlock{{List: w.r.Limits}}}
}

func (w *viewer) reproduce() templates.ReportSection {
	p := w.r.Provenance
	s := templates.ReportSection{ID: "reproduce", Title: "Reproduce", Blocks: []templates.ReportBlock{{Code: p.Commands}}}
	var facts []string
	for _, k := range sortedKeys(p.Trainer) {
		if len(p.Trainer[k]) > 60 {
			continue // a remark, not a fact
		}
		facts = append(facts, k+" "+p.Trainer[k])
	}
	if len(facts) > 0 {
		s.Blocks = append(s.Blocks, text("Trainers said of themselves: "+strings.Join(facts, "; ")+"."))
	}
	t := templates.ReportTable{Title: "Table", Caption: "Hash of each arm's recipe, and the runs behind its numbers.", Head: heads("arm", "recipe", "seeds", "runs")}
	for _, a := range w.r.Arms {
		var seeds, runs []string
		for i := range a.Seeds {
			seeds, runs = append(seeds, fmt.Sprint(a.Seeds[i])), append(runs, fmt.Sprint(a.Runs[i]))
		}
		t.Rows = append(t.Rows, []templates.ReportCell{w.armCell(a.Index), {Text: a.Hash}, {Text: dash(strings.Join(seeds, ", "))}, {Text: dash(strings.Join(runs, ", "))}})
	}
	s.Blocks = append(s.Blocks, templates.ReportBlock{Table: &t},
		text(fmt.Sprintf("Bootstrap: %d resamples, seed %d. The same data give the same bytes.", p.Resample, p.Seed)))
	s.Margin = []string{"data " + p.DataHash}
	return s
}

// heads are column heads; a leading "#" marks a column of numbers.
func heads(names ...string) []templates.ReportCell {
	out := make([]templates.ReportCell, len(names))
	for i, n := range names {
		out[i] = templates.ReportCell{Text: strings.TrimPrefix(n, "#"), Number: strings.HasPrefix(n, "#")}
	}
	return out
}

func dash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}

// armCell heads a row with the arm's marker and name.
func (w *viewer) armCell(index int) templates.ReportCell {
	for _, a := range w.r.Arms {
		if a.Index == index {
			return templates.ReportCell{Head: true, Text: a.Label, Note: a.Note, Arm: 1 + wrapEight(a.Style.Color), Marker: a.Style.Marker}
		}
	}
	return templates.ReportCell{Head: true, Text: fmt.Sprintf("arm %d", index+1)}
}

func wrapEight(i int) int { return ((i % 8) + 8) % 8 }
