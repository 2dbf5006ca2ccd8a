package report

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"alidade/ablation"
	"alidade/report/chart"
	"alidade/stats"
)

// A builder holds what the parts of a report share while it is computed.
type builder struct {
	in      Input
	sample  stats.Resampling
	primary Metric
	arms    []armData
	report  Report
}

// armData is one arm with the runs that count and their outcomes.
type armData struct {
	Arm
	planned int
	runs    []RunData // used, by seed
	final   []outcome // one a used run that has one, of the trained policy, sampled
	greedy  []outcome
	sft     []outcome
	control []outcome
	value   Estimate // of the primary metric
}

// Build computes the report. It is pure: time and seed are part of the input.
func Build(in Input) (Report, error) {
	st := in.Study.Study
	if st.Name == "" && in.Study.ID == 0 {
		return Report{}, errors.New("build report: the input names no study")
	}
	if st.Metric == "" {
		st.Metric = "eval/success"
		in.Study.Study.Metric = st.Metric
	}
	if in.Options.Level <= 0 || in.Options.Level >= 1 {
		in.Options.Level = 0.95
	}
	if in.Options.Resamples <= 0 {
		in.Options.Resamples = 2000
	}
	b := &builder{
		in: in, primary: metric(st.Metric),
		sample: stats.Resampling{Resamples: in.Options.Resamples, Level: in.Options.Level, Kind: stats.BCa, Seed: in.Options.Seed},
	}
	b.gather()
	b.report = Report{Format: FormatVersion, Version: in.Options.Version, Metric: b.primary, Level: in.Options.Level}
	if !in.Options.Made.IsZero() {
		made := in.Options.Made.UTC()
		b.report.Made = &made
	}
	for _, a := range b.arms {
		b.report.Arms = append(b.report.Arms, a.Arm)
	}
	b.report.Study = b.study()
	b.report.Partial = b.partial()
	b.results()
	b.baselines()
	b.compare()
	b.publish()
	b.report.Comparable = b.guard()
	b.costs()
	b.sick()
	b.examples()
	b.report.Provenance = b.provenance()
	b.figures()
	b.report.Limits = b.limits()
	b.report.Headline = b.headline()
	return b.report, nil
}

// gather sorts runs into arms and decides which count: the runs that
// succeeded, or, while none has, whatever has been measured so far.
func (b *builder) gather() {
	byIndex := map[int]*armData{}
	var order []int
	provisional := !slices.ContainsFunc(b.in.Runs, func(r RunData) bool { return r.Run.State == ablation.Succeeded })
	for _, r := range b.in.Runs {
		i := r.Run.Arm.Index
		a := byIndex[i]
		if a == nil {
			arm := r.Run.Arm
			a = &armData{Arm: Arm{Index: i, Label: arm.Label, Levels: arm.Levels, Hash: arm.Hash}}
			byIndex[i] = a
			order = append(order, i)
		}
		a.planned++
		if r.Run.State == ablation.Succeeded || provisional && len(r.Last)+len(r.Evaluations) > 0 {
			a.runs = append(a.runs, r)
		}
	}
	slices.Sort(order)
	for k, i := range order {
		a := byIndex[i]
		slices.SortStableFunc(a.runs, func(x, y RunData) int { return cmp.Compare(x.Run.Seed, y.Run.Seed) })
		for _, r := range a.runs {
			a.Seeds, a.Runs = append(a.Seeds, r.Run.Seed), append(a.Runs, r.Run.ID)
		}
		a.Style = b.style(k, a.Levels)
		a.Note = armNote(len(a.runs), a.planned, provisional)
		a.outcomes()
		b.arms = append(b.arms, *a)
	}
}

func armNote(used, planned int, provisional bool) string {
	switch {
	case used == 0:
		return "no finished run"
	case provisional:
		return "not finished"
	case used < planned:
		return fmt.Sprintf("%d of %d runs", used, planned)
	}
	return ""
}

// style tells arms apart: with two factors the first gives colour and marker,
// the second the dash; otherwise the place in the design gives all three.
func (b *builder) style(k int, levels map[string]any) chart.Style {
	f := b.in.Study.Study.Factors
	if len(f) != 2 {
		return chart.StyleOf(k)
	}
	first, second := levelIndex(f[0], levels), levelIndex(f[1], levels)
	if first < 0 || second < 0 {
		return chart.StyleOf(k)
	}
	return chart.Style{Color: first, Marker: first, Dash: second}
}

func levelIndex(f ablation.Factor, levels map[string]any) int {
	return slices.IndexFunc(f.Levels, func(l any) bool { return sameLevel(l, levels[f.Key]) })
}

// outcomes reads the per-query results of the arm's runs.
func (a *armData) outcomes() {
	for _, r := range a.runs {
		if o, ok := outcomeOf(r, policyOwn, modeSampled); ok {
			a.final = append(a.final, o)
		}
		if o, ok := outcomeOf(r, policyOwn, modeGreedy); ok {
			a.greedy = append(a.greedy, o)
		}
		if o, ok := sftOutcome(r); ok {
			a.sft = append(a.sft, o)
		}
		if o, ok := outcomeOf(r, policyControl, modeSampled); ok {
			a.control = append(a.control, o)
		}
	}
}

// study describes the design.
func (b *builder) study() StudyInfo {
	st := b.in.Study.Study
	info := StudyInfo{
		ID: b.in.Study.ID, Name: st.Name, Question: st.Question, Template: st.Template, Design: st.Design, Factors: st.Factors,
		Seeds: st.Seeds, MinDifference: st.MinDifference, RunsPlanned: len(b.in.Runs), Notes: st.Notes,
	}
	for _, a := range b.arms {
		info.RunsUsed += len(a.runs)
	}
	info.Text = designText(st, len(b.arms))
	return info
}

// partial says why the report is not the last word on its study.
func (b *builder) partial() string {
	counts := map[ablation.State]int{}
	for _, r := range b.in.Runs {
		counts[r.Run.State]++
	}
	total, done := len(b.in.Runs), counts[ablation.Succeeded]
	switch {
	case total == 0:
		return "Partial: the study has no runs yet."
	case done == total:
		return ""
	case done == 0:
		return fmt.Sprintf("Partial: none of %d runs has finished; values are the latest ones seen, and runs may stand at different steps.", total)
	}
	open := counts[ablation.Queued] + counts[ablation.Starting] + counts[ablation.Running] + counts[ablation.Stopping]
	text := fmt.Sprintf("Partial: %d of %d runs have finished", done, total)
	if open > 0 {
		text += fmt.Sprintf(", %d are still to come", open)
	}
	if lost := total - done - open; lost > 0 {
		text += fmt.Sprintf(", %d ended without a result", lost)
	}
	return text + ". Only finished runs are used."
}

func isNotFound(err error) bool { return errors.Is(err, ablation.ErrNotFound) }
