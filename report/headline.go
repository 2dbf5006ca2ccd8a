package report

import (
	"fmt"
	"strings"

	"alidade/ablation"
	"alidade/stats"
)

// headline answers the question in a few sentences of fixed patterns.
func (b *builder) headline() string {
	best := b.best()
	if best == nil {
		return "No run has been evaluated yet: there is nothing to compare."
	}
	parts := []string{b.liftSentence(best)}
	if s := b.controlSentence(best); s != "" {
		parts = append(parts, s)
	}
	if s := b.orderSentence(best); s != "" {
		parts = append(parts, s)
	}
	if s := b.seedSentence(); s != "" {
		parts = append(parts, s)
	}
	return strings.Join(parts, " ")
}

// best is the arm with the best mean of the primary metric.
func (b *builder) best() *armData {
	var best *armData
	for i := range b.arms {
		a := &b.arms[i]
		if a.value.Seeds > 0 && isFinite(float64(a.value.Mean)) && (best == nil || b.primary.beats(float64(a.value.Mean), float64(best.value.Mean))) {
			best = a
		}
	}
	return best
}

// liftSentence compares the best arm with its SFT checkpoint.
func (b *builder) liftSentence(a *armData) string {
	m := b.primary
	lift, ok := b.over(OverSFT, a.Index)
	if !ok {
		s := fmt.Sprintf("%s has the best %s, %s", a.Label, m.Name, m.value(float64(a.value.Mean)))
		if len(b.arms) == 1 {
			s = fmt.Sprintf("%s reaches %s of %s", a.Label, m.value(float64(a.value.Mean)), m.Name)
		}
		if iv := a.value.main(); iv != nil {
			s += " " + m.span(iv, false)
		}
		return s + "."
	}
	from, to := float64(a.value.Mean)-float64(lift.Mean), float64(a.value.Mean)
	size := fmt.Sprintf("%s %s %s", m.diff(float64(lift.Mean)), m.Points, m.span(lift.main(), true))
	if others := b.lifted(); lift.Verdict == Undecided && len(others) > 0 {
		return fmt.Sprintf("%s has the best %s, but its difference from the SFT checkpoint is undecided, %s; clear of theirs: %s.", a.Label, m.Name, size, few(others))
	}
	if lift.Verdict == Undecided {
		return fmt.Sprintf("No arm lifts %s clear of its SFT checkpoint; the largest difference is %s's, %s.", m.Name, a.Label, size)
	}
	verb := "lifts"
	if lift.Mean < 0 {
		verb = "lowers"
	}
	return fmt.Sprintf("%s %s %s from %s to %s: %s over the SFT checkpoint.", a.Label, verb, m.Name, m.value(from), m.value(to), size)
}

// lifted lists the arms that are clear of their SFT checkpoint, on the good
// side of it.
func (b *builder) lifted() []string {
	var names []string
	for i := range b.arms {
		c, ok := b.over(OverSFT, b.arms[i].Index)
		if ok && c.Verdict == Clear && b.primary.beats(float64(c.Mean), 0) {
			names = append(names, b.arms[i].Label)
		}
	}
	return names
}

// few writes the first names of a list, and how many there are.
func few(names []string) string {
	const most = 4
	if len(names) <= most {
		return list(names)
	}
	return fmt.Sprintf("%s and %d more arms", strings.Join(names[:most], ", "), len(names)-most)
}

func (b *builder) controlSentence(a *armData) string {
	c, ok := b.over(OverControl, a.Index)
	if !ok {
		return ""
	}
	m := b.primary
	if c.Verdict == Undecided {
		return fmt.Sprintf("Against SFT continued for the same compute the difference is undecided (%s %s %s).", m.diff(float64(c.Mean)), m.Points, m.span(c.main(), true))
	}
	return fmt.Sprintf("Over SFT continued for the same compute it is %s %s %s.", m.diff(float64(c.Mean)), m.Points, m.span(c.main(), true))
}

// orderSentence says which arms the best is clear of.
func (b *builder) orderSentence(best *armData) string {
	var clear, undecided []string
	for i := range b.arms {
		if a := &b.arms[i]; a.Index != best.Index {
			if c, ok := b.find(best.Index, a.Index); ok {
				if c.Verdict == Clear {
					clear = append(clear, a.Label)
				} else {
					undecided = append(undecided, a.Label)
				}
			}
		}
	}
	any := false
	for _, c := range b.report.Comparisons {
		any = any || c.Family == Between && c.Verdict == Clear
	}
	switch {
	case len(clear)+len(undecided) == 0:
		return ""
	case !any:
		return "Differences between the arms are inside the noise: none is clear after Holm's correction."
	case len(undecided) == 0:
		return fmt.Sprintf("%s is clear of every other arm.", best.Label)
	case len(clear) == 0:
		return fmt.Sprintf("Which arm is best is undecided: %s is not separable from %s.", best.Label, list(undecided))
	}
	return fmt.Sprintf("%s is clear of %s; against %s it is undecided.", best.Label, list(clear), list(undecided))
}

// list names up to four arms.
func list(names []string) string {
	if len(names) > 4 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:3], ", "), len(names)-3)
	}
	return and(names)
}

func (b *builder) seedSentence() string {
	n := 0
	for _, a := range b.arms {
		n = max(n, a.value.Seeds)
	}
	switch {
	case n == 0 || n >= stats.UsefulSeeds:
		return ""
	case n == 1:
		return "With one seed an arm, seed noise is unknown: the verdicts hold for these runs."
	}
	return fmt.Sprintf("With %d seeds an arm, seed noise cannot be judged: the verdicts hold for these seeds.", n)
}

// fewestSeeds is the smallest number of seeds of any arm that has a value.
func (b *builder) fewestSeeds() int {
	n := 0
	for _, a := range b.arms {
		if a.value.Seeds > 0 && (n == 0 || a.value.Seeds < n) {
			n = a.value.Seeds
		}
	}
	return n
}

// designText describes a design in sentences.
func designText(st ablation.Study, arms int) string {
	var parts []string
	var factors []string
	for _, f := range st.Factors {
		var levels []string
		for _, l := range f.Levels {
			levels = append(levels, levelText(f.Key, l))
		}
		factors = append(factors, fmt.Sprintf("%s (%s)", factorName(f), strings.Join(levels, ", ")))
	}
	switch {
	case len(factors) == 0 && st.Design != ablation.DesignList:
		parts = append(parts, "One recipe.")
	case st.Design == ablation.DesignOneFactor:
		parts = append(parts, fmt.Sprintf("One factor at a time around the base recipe: %s.", and(factors)))
	case st.Design == ablation.DesignList:
		parts = append(parts, fmt.Sprintf("A list of %s.", plural(arms, "arm", "arms")))
	case len(factors) == 1:
		parts = append(parts, fmt.Sprintf("One factor, %s.", factors[0]))
	default:
		parts = append(parts, fmt.Sprintf("Full grid of %s.", and(factors)))
	}
	parts = append(parts, fmt.Sprintf("%s with %s each; the same seed meets the same prompts in every arm.", plural(arms, "arm", "arms"), plural(len(st.Seeds), "seed", "seeds")))
	r := st.Base
	if r.Budget.Steps > 0 {
		parts = append(parts, fmt.Sprintf("%s on %s policy: groups of %d, %d prompts a step, %d RL steps%s.",
			strings.ToUpper(r.Algorithm.Kind), article(r.Model.Size), r.Algorithm.GroupSize, r.Algorithm.PromptsPerStep, r.Budget.Steps, normText(r.Algorithm)))
	}
	if r.Trainer.Kind == "solver" {
		parts = append(parts, fmt.Sprintf("No policy: %s plans for at most %d queries, %s checks.", r.Data.Plans, r.Data.Prompts, r.Reward.Profile))
	} else if r.Evaluation.Queries > 0 {
		parts = append(parts, fmt.Sprintf("Primary metric, fixed in advance: %s on %d held-out queries, %s checks, temperature %s.",
			metric(st.Metric).Name, r.Evaluation.Queries, r.Reward.Profile, trimZero(fmt.Sprintf("%.2f", r.Evaluation.Temperature))))
	}
	if st.MinDifference > 0 {
		m := metric(st.Metric)
		parts = append(parts, fmt.Sprintf("The smallest difference that matters: %s %s.", trimZero(fmt.Sprintf("%.2f", m.shown(st.MinDifference))), m.Points))
	}
	return strings.Join(parts, " ")
}

// normText prints what "GRPO" leaves open: aggregation and normalisation.
func normText(a ablation.Algorithm) string {
	norm := "advantage not divided by the group's SD"
	if a.StdNorm {
		norm = "advantage divided by the group's SD"
	}
	if a.LossAgg == "" {
		return ", " + norm
	}
	return ", loss " + a.LossAgg + ", " + norm
}

func article(size string) string {
	if size == "" {
		return "the"
	}
	if strings.ContainsRune("aeiouxAEIOUX", rune(size[0])) {
		return "an " + size
	}
	return "a " + size
}
