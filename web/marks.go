package web

import (
	"fmt"
	"slices"

	"alidade/ablation"
	"alidade/templates"
)

// armsOf returns the arms that runs belong to, in design order.
func armsOf(runs []ablation.Run) []ablation.Arm {
	seen := map[int]bool{}
	var arms []ablation.Arm
	for _, r := range runs {
		if !seen[r.Arm.Index] {
			seen[r.Arm.Index] = true
			arms = append(arms, r.Arm)
		}
	}
	slices.SortFunc(arms, func(a, b ablation.Arm) int { return a.Index - b.Index })
	return arms
}

// marksOf gives every arm of a study its mark: in a grid the first factor
// takes colour and marker, the second the dash; otherwise each arm its own.
// The map is by arm index.
func marksOf(st ablation.Study, arms []ablation.Arm) map[int]templates.MarkView {
	marks := make(map[int]templates.MarkView, len(arms))
	for i, a := range arms {
		m := templates.MarkView{Color: i + 1, Marker: i + 1, Dash: 1, Label: a.Label}
		if st.Design == ablation.DesignGrid && len(st.Factors) > 0 {
			m.Color = levelPlace(st.Factors[0], a) + 1
			m.Marker = m.Color
			m.Dash = 1
			if len(st.Factors) > 1 {
				m.Dash = levelPlace(st.Factors[1], a) + 1
			}
		}
		marks[a.Index] = m
	}
	return marks
}

// levelPlace is which level of f the arm has, 0-based.
func levelPlace(f ablation.Factor, a ablation.Arm) int {
	has := fmt.Sprint(a.Levels[f.Key])
	for i, l := range f.Levels {
		if fmt.Sprint(l) == has {
			return i
		}
	}
	return 0
}

// facetsOf splits many arms of a grid into small multiples: one for each
// combination of the levels after the first factor, which keeps its colours in
// all of them. It returns nil when one chart can hold the arms.
func facetsOf(st ablation.Study, arms []ablation.Arm) (facets []templates.ChartFacet, place func(ablation.Arm) int, short func(ablation.Arm) string) {
	if len(arms) <= 4 || st.Design != ablation.DesignGrid || len(st.Factors) < 2 {
		return nil, func(ablation.Arm) int { return 0 }, func(a ablation.Arm) string { return a.Label }
	}
	first, rest := st.Factors[0], st.Factors[1:]
	place = func(a ablation.Arm) int {
		n := 0
		for _, f := range rest {
			n = n*len(f.Levels) + levelPlace(f, a)
		}
		return n
	}
	named := map[int]string{}
	last := 0
	for _, a := range arms {
		label := ""
		for _, f := range rest {
			if label != "" {
				label += ", "
			}
			label += namedLevel(f, a.Levels[f.Key])
		}
		named[place(a)] = label
		last = max(last, place(a))
	}
	for i := range last + 1 {
		facets = append(facets, templates.ChartFacet{Label: named[i]})
	}
	return facets, place, func(a ablation.Arm) string { return ablation.LevelLabel(first.Key, a.Levels[first.Key]) }
}

// namedLevel names a level with its factor, unless the level's own label does.
func namedLevel(f ablation.Factor, level any) string {
	if f.Key == "environment.tool_failure_rate" {
		return ablation.LevelLabel(f.Key, level)
	}
	return fmt.Sprintf("%s %v", factorName(f), level)
}

// legendOf is the key of a study's marks: its arms, or in a crossed grid the
// levels of the first factor by colour and of the second by dash.
func legendOf(st ablation.Study, arms []ablation.Arm, marks map[int]templates.MarkView) []templates.MarkView {
	var out []templates.MarkView
	if st.Design == ablation.DesignGrid && len(st.Factors) == 2 {
		first, second := st.Factors[0], st.Factors[1]
		for i, l := range first.Levels {
			out = append(out, templates.MarkView{Color: i + 1, Marker: i + 1, Dash: 1, Label: ablation.LevelLabel(first.Key, l)})
		}
		for i, l := range second.Levels {
			out = append(out, templates.MarkView{Ink: true, Dash: i + 1, Label: namedLevel(second, l)})
		}
		return out
	}
	if len(arms) > 12 {
		return nil // the panels name them
	}
	for _, a := range arms {
		out = append(out, marks[a.Index])
	}
	return out
}

// designText says a study's design in words: "reward (4) × group size (2), 3
// seeds, 24 runs".
func designText(st ablation.Study, arms, runs int) string {
	var parts string
	for i, f := range st.Factors {
		if i > 0 {
			parts += " × "
		}
		parts += fmt.Sprintf("%s (%d)", factorName(f), len(f.Levels))
	}
	switch {
	case parts == "":
		parts = "one recipe"
	case st.Design == ablation.DesignOneFactor:
		parts = "one factor at a time: " + parts
	case st.Design == ablation.DesignList:
		parts = plural(arms, "arm", "arms") + " listed"
	}
	return fmt.Sprintf("%s, %s, %s", parts, plural(len(st.Seeds), "seed", "seeds"), plural(runs, "run", "runs"))
}

// factorName is a factor's label, or the last part of its key.
func factorName(f ablation.Factor) string {
	if f.Name != "" {
		return f.Name
	}
	if field, ok := ablation.FieldOf(f.Key); ok && field.Label != "" {
		return field.Label
	}
	return f.Key
}
