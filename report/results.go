package report

import (
	"maps"
	"slices"
	"strings"
)

// results fills arm × metric, the primary metric first.
func (b *builder) results() {
	for i := range b.arms {
		a := &b.arms[i]
		a.value = b.measure(a, b.primary.Key)
		b.add(a, b.primary, a.value)
	}
	for _, key := range b.secondaryKeys() {
		for i := range b.arms {
			a := &b.arms[i]
			b.add(a, metric(key), b.measure(a, key))
		}
	}
}

func (b *builder) add(a *armData, m Metric, e Estimate) {
	if e.Seeds > 0 {
		b.report.Results = append(b.report.Results, Result{Arm: a.Index, Metric: m, Step: a.step(m.Key), Estimate: e})
	}
}

// step is the last step at which the arm's runs were measured.
func (a *armData) step(key string) int64 {
	var step int64
	for _, r := range a.runs {
		if p, ok := r.Last[key]; ok {
			step = max(step, p.Step)
		}
	}
	if step == 0 {
		for _, o := range a.final {
			step = max(step, o.step)
		}
	}
	return step
}

// secondaryKeys are the other metrics that any used run has.
func (b *builder) secondaryKeys() []string {
	has := map[string]bool{}
	for _, a := range b.arms {
		for _, r := range a.runs {
			for k := range r.Last {
				has[k] = true
			}
		}
		has["eval/success"] = has["eval/success"] || len(a.final) > 0
		has["eval/success_greedy"] = has["eval/success_greedy"] || len(a.greedy) > 0
		for _, o := range a.final {
			for _, level := range o.level {
				has["eval/success_"+level] = true
			}
		}
	}
	delete(has, "eval/success_")
	var keys []string
	for _, k := range append([]string{"eval/success"}, secondary...) {
		if has[k] && k != b.primary.Key && !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	for _, c := range checkKeys() {
		if k := "eval/check/" + c; has[k] {
			keys = append(keys, k)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(has)) {
		if (strings.HasPrefix(k, "ood/") || strings.HasPrefix(k, "eval/check/")) && !slices.Contains(keys, k) && k != b.primary.Key {
			keys = append(keys, k)
		}
	}
	return keys
}

// measure estimates one metric of one arm: from per-query outcomes where
// there are some, otherwise from the last value of each run.
func (b *builder) measure(a *armData, key string) Estimate {
	switch {
	case key == "eval/success" && len(a.final) > 0:
		return newTable(a.final, "").estimate(b.sample)
	case key == "eval/success_greedy" && len(a.greedy) > 0:
		return newTable(a.greedy, "").estimate(b.sample)
	case strings.HasPrefix(key, "eval/success_") && len(a.final) > 0:
		if t := newTable(a.final, strings.TrimPrefix(key, "eval/success_")); len(t.queries) > 0 {
			return t.estimate(b.sample)
		}
	}
	var values []float64
	for _, r := range a.runs {
		if p, ok := r.Last[key]; ok {
			values = append(values, p.Value)
		}
	}
	if len(values) == 0 {
		return Estimate{Mean: Float(nan())}
	}
	return scalarEstimate(values, b.in.Options.Level)
}

// baselines measures the policies that are not arms.
func (b *builder) baselines() {
	for _, p := range []struct {
		key, label string
		pick       func(RunData) (outcome, bool)
	}{
		{"random_legal", "random legal policy", func(r RunData) (outcome, bool) { return outcomeOf(r, policyRandom, modeSampled) }},
		{"sft", "SFT checkpoint", sftOutcome},
		{"sft_continued", "SFT continued", func(r RunData) (outcome, bool) { return outcomeOf(r, policyControl, modeSampled) }},
		{"expert", "expert", func(r RunData) (outcome, bool) {
			if o, ok := outcomeOf(r, policyExpert, "expert"); ok {
				return o, true
			}
			if o, ok := outcomeOf(r, policyExpert, modeSampled); ok {
				return o, true
			}
			return outcomeOf(r, policyExpert, modeGreedy)
		}},
	} {
		if e, ok := b.baseline(p.key, p.pick); ok {
			b.report.Baselines = append(b.report.Baselines, Baseline{Key: p.key, Label: p.label, Estimate: e})
		}
	}
}

// baseline estimates a reference policy from one outcome a seed. A policy that
// differs between arms (its SFT data or scale is a factor) is no common line,
// and ok is false.
func (b *builder) baseline(key string, pick func(RunData) (outcome, bool)) (Estimate, bool) {
	if b.primary.Key != "eval/success" {
		return Estimate{}, false
	}
	bySeed := map[uint64]outcome{}
	for _, a := range b.arms {
		for _, r := range a.runs {
			o, ok := pick(r)
			if !ok {
				continue
			}
			if seen, twice := bySeed[o.seed]; twice && !maps.Equal(seen.passed, o.passed) {
				return Estimate{}, false
			}
			bySeed[o.seed] = o
		}
	}
	if len(bySeed) > 0 {
		return newTable(distinct(bySeed), "").estimate(b.sample), true
	}
	var values []float64
	for _, a := range b.arms {
		for _, r := range a.runs {
			if p, ok := r.Last["baseline/"+key]; ok && !slices.Contains(values, p.Value) {
				values = append(values, p.Value)
			}
		}
	}
	if len(values) == 0 || len(values) > len(b.in.Study.Study.Seeds) {
		return Estimate{}, false
	}
	return scalarEstimate(values, b.in.Options.Level), true
}

// distinct are the outcomes by seed; one that all seeds share counts once.
func distinct(bySeed map[uint64]outcome) []outcome {
	var out []outcome
	for _, seed := range slices.Sorted(maps.Keys(bySeed)) {
		o := bySeed[seed]
		if !slices.ContainsFunc(out, func(x outcome) bool { return maps.Equal(x.passed, o.passed) }) {
			out = append(out, o)
		}
	}
	return out
}

// lineOf is a baseline by key.
func (b *builder) lineOf(key string) (Baseline, bool) {
	i := slices.IndexFunc(b.report.Baselines, func(l Baseline) bool { return l.Key == key })
	if i < 0 {
		return Baseline{}, false
	}
	return b.report.Baselines[i], true
}
