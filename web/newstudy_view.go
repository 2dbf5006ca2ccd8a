package web

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"alidade/ablation"
	"alidade/ablation/studyfile"
	"alidade/templates"
)

// formOf builds the form from a draft, what the draft makes and what is wrong
// with it. fileBad are faults of a study file that could not be read.
func formOf(d draft, past history, fileBad []ablation.FieldError) templates.StudyFormView {
	st, planned, bad := d.check()
	arms, _ := ablation.Arms(st)
	problems := problemsByField(bad)
	v := templates.StudyFormView{
		Name:        templates.TextField{Value: d.Name, Problem: problems["name"]},
		Question:    templates.TextField{Value: d.Question},
		Notes:       templates.TextField{Value: d.Notes},
		Queue:       d.Queue.view(problems),
		Concurrency: templates.TextField{Value: d.Concurrency, Problem: problems["concurrency"]},
		Seeds:       templates.TextField{Value: d.Seeds, Problem: problems["seeds"]},
		Metric:      templates.TextField{Value: d.Metric, Problem: problems["metric"]},
		Difference:  templates.TextField{Value: d.MinDifference, Problem: problems["min_difference"]},
		Arms:        templates.TextField{Value: d.Arms, Problem: firstWith(problems, "arms")},
		Template:    d.Template, List: d.Design == string(ablation.DesignList),
		DifferenceUnit: "in the metric's unit",
		FactorProblem:  problems["factors"],
		Design:         designOptions(d, st), Metrics: metricOptions(d.Metric), Picker: pickerOf(d),
	}
	if isRate(st.Metric) {
		v.DifferenceUnit = "points"
	}
	for i, f := range d.Factors {
		v.Factors = append(v.Factors, factorView(i, f, len(d.Factors), problems))
	}
	presetsInto(&v, d.Preset)
	v.Groups, v.BaseNote = baseGroups(d, st, problems)
	v.Outlook = outlookOf(d, st, arms, planned, past, len(bad))
	v.Problems = problemLinks(bad)
	v.File = fileOf(d, st, bad, fileBad)
	v.Ready = len(bad) == 0 && len(planned) > 0
	v.Runs, v.Summary = "Launch", "Nothing runs until you launch."
	if v.Ready {
		v.Runs = "Launch " + plural(len(planned), "run", "runs")
		v.Summary = fmt.Sprintf("%s × %s, %s", plural(len(arms), "arm", "arms"), plural(len(st.Seeds), "seed", "seeds"), past.timeWords(arms, len(st.Seeds)))
	}
	return v
}

// presetsInto lists the presets by the trainer they are for, and says of the
// chosen one what it is.
func presetsInto(v *templates.StudyFormView, chosen string) {
	groups := []templates.PresetGroup{{Name: "In this program"}, {Name: "Language models"}}
	for _, p := range ablation.Presets() {
		g := &groups[0]
		o := templates.FilterOption{Value: p.Name, Label: p.Title, On: p.Name == chosen}
		if p.Recipe.IsNative() {
			g, o.Label = &groups[1], p.Title+", "+p.Recipe.Trainer.Kind
		}
		g.Options = append(g.Options, o)
		if p.Name != chosen {
			continue
		}
		v.PresetHelp = capital(p.Help) + "."
		for _, n := range []templates.PresetNote{{Word: "published", Lines: p.Published}, {Word: "inferred", Lines: p.Inferred}, {Word: "unknown", Lines: p.Unknown}} {
			if len(n.Lines) > 0 {
				v.PresetNotes = append(v.PresetNotes, n)
			}
		}
	}
	v.Presets = groups
}

// problemsByField writes each fault under the field it belongs to.
func problemsByField(bad []ablation.FieldError) map[string]string {
	out := map[string]string{}
	for _, e := range bad {
		if out[e.Field] == "" {
			out[e.Field] = problemText(e)
		}
	}
	return out
}

// firstWith is the problem of the first field whose name starts with prefix.
func firstWith(problems map[string]string, prefix string) string {
	best := ""
	for field := range problems {
		if strings.HasPrefix(field, prefix) && (best == "" || field < best) {
			best = field
		}
	}
	if best == "" {
		return ""
	}
	if m := indexed.FindStringSubmatch(best); m != nil {
		n, _ := strconv.Atoi(m[1])
		return fmt.Sprintf("Arm %d: %s", n+1, problems[best])
	}
	return problems[best]
}

var indexed = regexp.MustCompile(`^\w+\[(\d+)\]`)

// problemLinks lists what is wrong for the launch bar, each with the way to it.
func problemLinks(bad []ablation.FieldError) []templates.ProblemLink {
	var out []templates.ProblemLink
	for _, e := range bad {
		l := templates.ProblemLink{Href: "#f-" + e.Field, Text: strings.ReplaceAll(e.Field, "_", " ")}
		if f, ok := ablation.FieldOf(e.Field); ok {
			l = templates.ProblemLink{Href: "#s-" + f.Key, Text: f.Label}
		} else if m := indexed.FindStringSubmatch(e.Field); m != nil {
			n, _ := strconv.Atoi(m[1])
			l = templates.ProblemLink{Href: "#s-factor-" + m[1], Text: fmt.Sprintf("factor %d", n+1)}
			if strings.HasPrefix(e.Field, "arms") {
				l = templates.ProblemLink{Href: "#f-arms", Text: fmt.Sprintf("arm %d", n+1)}
			}
		} else if e.Field == "design" {
			l.Href = "#s-factors"
		}
		if !slices.Contains(out, l) {
			out = append(out, l)
		}
	}
	return out
}

func factorView(i int, f draftFactor, n int, problems map[string]string) templates.FactorView {
	v := templates.FactorView{At: i, Key: f.Key, Name: f.Name, Label: f.Key, First: i == 0, Last: i == n-1}
	field, known := ablation.FieldOf(f.Key)
	if known {
		v.Label, v.Help = field.Label, f.Key+": "+field.Help
		v.Numeric = field.Kind == ablation.KindInt || field.Kind == ablation.KindFloat || field.Kind == ablation.KindUint
		v.Unit = field.Unit
		values := field.Enum
		if field.Kind == ablation.KindBool {
			values = []string{"true", "false"}
		}
		for _, o := range values {
			if !slices.Contains(f.Levels, o) {
				v.Options = append(v.Options, o)
			}
		}
	}
	at := fmt.Sprintf("factors[%d]", i)
	for j, l := range f.Levels {
		problem := problems[fmt.Sprintf("%s.levels[%d]", at, j)]
		v.Levels = append(v.Levels, templates.LevelView{At: j, Text: l, Problem: problem})
		if problem != "" && v.Problem == "" {
			v.Problem = problem
		}
	}
	for _, part := range []string{".key", ".levels", ""} {
		if p := problems[at+part]; p != "" && v.Problem == "" {
			v.Problem = p
		}
	}
	// A rule of the recipe that a level breaks is reported under the key.
	if p := problems[f.Key]; p != "" && v.Problem == "" {
		v.Problem = p
	}
	return v
}

func designOptions(d draft, st ablation.Study) []templates.DesignOption {
	grid, one := 1, 1
	for _, f := range d.Factors {
		grid = min(grid*max(len(f.Levels), 1), ablation.MaxRuns+1)
		one += max(len(f.Levels)-1, 0)
	}
	count := func(n int) string {
		if len(d.Factors) == 0 {
			return ""
		}
		if n > ablation.MaxRuns {
			return ", too many"
		}
		return ", " + digits(int64(n))
	}
	list := "list"
	if n := len(nonEmptyLines(d.Arms)); n > 0 && st.Design == ablation.DesignList {
		list = fmt.Sprintf("list, %d", n)
	}
	return []templates.DesignOption{
		{Value: string(ablation.DesignGrid), Label: "full grid" + count(grid), On: d.Design == string(ablation.DesignGrid)},
		{Value: string(ablation.DesignOneFactor), Label: "one at a time" + count(one), On: d.Design == string(ablation.DesignOneFactor)},
		{Value: string(ablation.DesignList), Label: list, On: d.Design == string(ablation.DesignList)},
	}
}

// usualMetrics are what a study is usually judged by.
var usualMetrics = []string{"eval/success", "eval/success_greedy", "eval/success_hard", "eval/success_official", "eval/cs_macro", "eval/hard_macro", "eval/delivery", "reward/mean", "train/success", "eval/tokens", "eval/tool_calls"}

func metricOptions(chosen string) []templates.FilterOption {
	var out []templates.FilterOption
	for _, m := range usualMetrics {
		label := metricTable[m].Label
		if label == "" {
			label = m
		}
		out = append(out, templates.FilterOption{Value: m, Label: label, On: m == chosen})
	}
	if !slices.Contains(usualMetrics, chosen) {
		out = append(out, templates.FilterOption{Value: chosen, Label: templates.Plain(chosen), On: true})
	}
	return out
}

// pickerOf lists the recipe keys that are not yet factors.
func pickerOf(d draft) []templates.PickerGroup {
	var groups []templates.PickerGroup
	for _, f := range ablation.Fields() {
		if slices.ContainsFunc(d.Factors, func(df draftFactor) bool { return df.Key == f.Key }) || f.Kind == ablation.KindMap || f.Kind == ablation.KindList {
			continue
		}
		if len(groups) == 0 || groups[len(groups)-1].Name != f.Group {
			groups = append(groups, templates.PickerGroup{Name: f.Group})
		}
		g := &groups[len(groups)-1]
		g.Items = append(g.Items, templates.PickerItem{Key: f.Key, Label: f.Label, Help: f.Help})
	}
	return groups
}

// fileOf is the study as a file: the canonical text while the form is right
// enough to be written, and what was typed while that cannot be read.
func fileOf(d draft, st ablation.Study, bad, fileBad []ablation.FieldError) templates.FileView {
	v := templates.FileView{}
	if len(fileBad) > 0 {
		v.Text = d.YAML
		for _, e := range fileBad {
			e.File = ""
			text := problemText(e)
			if e.Field != "" {
				text = e.Field + ": " + text
			}
			if e.Line > 0 {
				text = fmt.Sprintf("Line %d: %s", e.Line, text)
			}
			v.Problems = append(v.Problems, text)
		}
	} else if text, err := studyfile.Encode(st); err == nil {
		v.Text = string(text)
		if n := len(bad); n > 0 {
			v.Problems = []string{"The form has " + plural(n, "problem", "problems") + "; what is wrong there is missing or unchanged here."}
		}
	} else {
		v.Problems = []string{"The form cannot be written as a file yet: " + err.Error()}
	}
	v.Rows = strconv.Itoa(min(max(strings.Count(v.Text, "\n")+2, 16), 60))
	return v
}

// cardsOf is the gallery of studies to start from.
func cardsOf(current string) []templates.TemplateCard {
	cards := []templates.TemplateCard{{Href: "/studies/new?blank=1", Title: "Blank", What: "nothing decided", Size: "your own", On: current == ""}}
	for _, t := range ablation.Templates() {
		c := templates.TemplateCard{Href: "/studies/new?template=" + t.ID, Title: t.Title, What: t.What, Source: t.Source, On: t.ID == current}
		if arms, err := ablation.Arms(t.Study); err == nil {
			c.Size = fmt.Sprintf("%d × %s", len(arms), plural(len(t.Study.Seeds), "seed", "seeds"))
		}
		c.Thumb, c.Dots = thumbOf(t.Study)
		cards = append(cards, c)
	}
	cards[0].Thumb = "M30 12h20M40 4v16"
	return cards
}

// thumbOf sketches the kind of figure that a study gives: a curve over an
// ordered factor, bars over a named one, groups of bars for two, spokes for
// one at a time. It shows no result.
func thumbOf(st ablation.Study) (path string, dots []templates.Dot) {
	bar := func(x, h float64) string { return fmt.Sprintf("M%s 23V%s", unit(x), unit(23-h)) }
	switch {
	case st.Design == ablation.DesignOneFactor:
		for i := range st.Factors {
			y := 5 + float64(i)*7
			path += fmt.Sprintf("M12 %sh56", unit(y))
			for j := range st.Factors[i].Levels {
				dots = append(dots, templates.Dot{X: unit(22 + float64(j)*18), Y: unit(y), R: "2"})
			}
		}
	case len(st.Factors) >= 2:
		inner, outer := len(st.Factors[0].Levels), len(st.Factors[1].Levels)
		pitch := 72 / float64(inner*outer+outer-1)
		x := 4.0
		for o := range outer {
			for i := range inner {
				path += bar(x, 6+float64(o)*4+float64((i*5)%7)*.7)
				x += pitch
			}
			x += pitch
		}
	case len(st.Factors) == 1:
		n := len(st.Factors[0].Levels)
		field, _ := ablation.FieldOf(st.Factors[0].Key)
		for i := range n {
			x := 8 + float64(i)*64/float64(max(n-1, 1))
			if !field.Ordered {
				path += bar(x, 8+float64((i*5)%7)*1.3)
				continue
			}
			y := 17 - 10*float64(i)/float64(max(n-1, 1))
			pen := "L"
			if i == 0 {
				pen = "M"
			}
			path += fmt.Sprintf("%s%s %s", pen, unit(x), unit(y))
			dots = append(dots, templates.Dot{X: unit(x), Y: unit(y), R: "1.8"})
		}
	}
	return path, dots
}
