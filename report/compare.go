package report

import (
	"fmt"
	"math"
	"slices"

	"alidade/stats"
)

// mostPaired is the number of arms up to which every pair is compared; with
// more, each arm is compared with the first.
const mostPaired = 8

// compare fills the three families of comparisons and corrects each for its
// size.
func (b *builder) compare() {
	b.family(OverSFT, func(a *armData) []outcome { return a.sft })
	b.family(OverControl, func(a *armData) []outcome { return a.control })
	from := len(b.report.Comparisons)
	for i := range b.arms {
		for j := i + 1; j < len(b.arms); j++ {
			if i > 0 && len(b.arms) > mostPaired {
				continue
			}
			if c, ok := b.between(&b.arms[j], &b.arms[i]); ok {
				b.report.Comparisons = append(b.report.Comparisons, c)
			}
		}
	}
	b.correct(from)
}

// family compares each arm with its own baseline, run by run.
func (b *builder) family(name string, baseline func(*armData) []outcome) {
	if b.primary.Key != "eval/success" {
		return
	}
	from := len(b.report.Comparisons)
	for i := range b.arms {
		a := &b.arms[i]
		c, err := b.paired(a.final, b.fill(a, baseline))
		if err != nil || c.Query.N == 0 {
			continue
		}
		b.report.Comparisons = append(b.report.Comparisons, b.comparison(name, a.Index, -1, a.Label, c, a.final))
	}
	b.correct(from)
}

// fill gives each run its own baseline, or, where an earlier run made the
// checkpoint and kept its evaluation to itself, that of another run with the
// same seed, or the only one there is.
func (b *builder) fill(a *armData, baseline func(*armData) []outcome) []outcome {
	own := baseline(a)
	if len(own) == len(a.final) || len(a.final) == 0 {
		return own
	}
	pool := slices.Clone(own)
	if b.sharedBaseline() {
		for i := range b.arms {
			pool = append(pool, baseline(&b.arms[i])...)
		}
	}
	var out []outcome
	for _, f := range a.final {
		k := slices.IndexFunc(pool, func(o outcome) bool { return o.seed == f.seed })
		if k < 0 {
			continue
		}
		out = append(out, pool[k])
	}
	return out
}

// sharedBaseline says whether no factor changes what a baseline is.
func (b *builder) sharedBaseline() bool {
	return !slices.ContainsFunc(b.in.Study.Study.Factors, func(f factor) bool { return touchesSFT(f.Key) })
}

// between compares two arms on the seeds and queries they share.
func (b *builder) between(a, ref *armData) (Comparison, bool) {
	label := a.Label + " − " + ref.Label
	if b.primary.Key == "eval/success" && len(a.final) > 0 && len(ref.final) > 0 {
		c, err := b.paired(a.final, ref.final)
		if err != nil || c.Query.N == 0 {
			return Comparison{}, false
		}
		return b.comparison(Between, a.Index, ref.Index, label, c, a.final), true
	}
	x, y := b.scalars(a, ref)
	if len(x) < 2 {
		return Comparison{}, false
	}
	seed, err := stats.PairedSeeds(x, y, b.in.Options.Level)
	if err != nil {
		return Comparison{}, false
	}
	c := stats.Comparison{Query: stats.Estimate{Mean: seed.Mean, P: seed.P, Interval: stats.Interval{Low: nan(), High: nan()}}, Seed: seed}
	return b.comparison(Between, a.Index, ref.Index, label, c, nil), true
}

// scalars are the primary metric's last values on common seeds.
func (b *builder) scalars(a, ref *armData) (x, y []float64) {
	for _, r := range a.runs {
		for _, s := range ref.runs {
			p, ok := r.Last[b.primary.Key]
			q, also := s.Last[b.primary.Key]
			if ok && also && r.Run.Seed == s.Run.Seed {
				x, y = append(x, p.Value), append(y, q.Value)
			}
		}
	}
	return x, y
}

// paired lines two sets of outcomes up by seed and query and compares them.
func (b *builder) paired(a, ref []outcome) (stats.Comparison, error) {
	var left, right []outcome
	for _, o := range a {
		if k := slices.IndexFunc(ref, func(r outcome) bool { return r.seed == o.seed }); k >= 0 {
			left, right = append(left, o), append(right, ref[k])
		}
	}
	if len(left) == 0 {
		return stats.Comparison{}, nil
	}
	all := newTable(append(slices.Clone(left), right...), "")
	if len(all.queries) == 0 {
		return stats.Comparison{}, nil
	}
	return stats.PairedClusters(all.rate[:len(left)], all.rate[len(left):], b.sample)
}

func (b *builder) comparison(family string, a, ref int, label string, c stats.Comparison, outcomes []outcome) Comparison {
	e := Estimate{Mean: Float(c.Query.Mean), Seeds: c.Seed.N, Queries: c.Query.N, Query: known(c.Query.Interval), Seed: known(c.Seed.Interval)}
	for _, o := range outcomes {
		if e.Samples == 0 || o.samples < e.Samples {
			e.Samples = o.samples
		}
	}
	e.Warnings = append(append(e.Warnings, c.Query.Warnings...), c.Seed.Warnings...)
	return Comparison{Family: family, A: a, B: ref, Label: label, Estimate: e, P: Float(c.P())}
}

// correct applies Holm to the comparisons from an index on, and judges them.
func (b *builder) correct(from int) {
	family := b.report.Comparisons[from:]
	p := make([]float64, len(family))
	for i, c := range family {
		p[i] = float64(c.P)
	}
	if seeds := mostSeeds(family); seeds >= stats.UsefulSeeds {
		for i, c := range family {
			if c.Seeds < stats.UsefulSeeds && c.Query != nil {
				p[i] = nan() // judged against query noise alone it would pass too easily beside the others
			}
		}
	}
	for i, adjusted := range stats.Holm(p) {
		family[i].HolmP = Float(adjusted)
		b.judge(&family[i])
	}
}

func mostSeeds(family []Comparison) int {
	n := 0
	for _, c := range family {
		n = max(n, c.Seeds)
	}
	return n
}

// judge gives a comparison its verdict, evidence grade and remark. A
// difference is clear when it is so after Holm and every interval that can be
// had clears zero; from three seeds on that includes seed noise.
//
// Where others of its family have seeds enough and this one has not, it stays
// undecided.
func (b *builder) judge(c *Comparison) {
	clear := float64(c.HolmP) < 1-b.in.Options.Level && (c.Query == nil || clears(c.Query))
	if c.Seeds >= stats.UsefulSeeds || c.Query == nil {
		clear = clear && clears(c.Seed)
	}
	c.Verdict, c.Grade = Undecided, "C"
	if clear {
		c.Verdict, c.Grade = Clear, "B"
		if c.Seeds >= stats.UsefulSeeds {
			c.Grade = "A"
		}
	}
	if c.Query != nil && !isFinite(float64(c.HolmP)) && clears(c.Query) {
		c.Grade = "B"
	}
	c.Remark = b.remark(*c)
}

func clears(iv *Interval) bool { return iv != nil && (iv.Low > 0 || iv.High < 0) }

func (b *builder) remark(c Comparison) string {
	least := b.in.Study.Study.MinDifference
	matter := ""
	if least > 0 {
		matter = fmt.Sprintf("the %s that matter", b.amount(least))
	}
	switch {
	case c.Verdict == Clear && least > 0 && math.Abs(float64(c.Mean)) < least:
		return "smaller than " + matter
	case !isFinite(float64(c.HolmP)) && clears(c.Query):
		return fmt.Sprintf("clear on its %s; seed noise cannot be judged", plural(c.Seeds, "seed", "seeds"))
	case c.Verdict == Undecided && least > 0 && c.Query != nil && c.Query.Low > -least && c.Query.High < least:
		return "inside ±" + b.amount(least) + " by query noise"
	case c.Verdict == Undecided && clears(c.Query) && c.Seeds >= stats.UsefulSeeds && !clears(c.Seed):
		return "clear of query noise, not of seed noise"
	case c.Verdict == Undecided && clears(c.Query):
		return "clear alone, not after Holm"
	}
	return ""
}

// amount is a difference with its unit: "2 points".
func (b *builder) amount(d float64) string {
	s := trimZero(fmt.Sprintf("%.1f", b.primary.shown(d)))
	if b.primary.Points == "" {
		return s
	}
	return s + " " + b.primary.Points
}

// find returns the comparison of two arms, its sign turned so that it reads a − ref.
func (b *builder) find(a, ref int) (Comparison, bool) {
	for _, c := range b.report.Comparisons {
		if c.Family != Between {
			continue
		}
		if c.A == a && c.B == ref {
			return c, true
		}
		if c.A == ref && c.B == a {
			return c.turned(), true
		}
	}
	return Comparison{}, false
}

func (c Comparison) turned() Comparison {
	c.A, c.B, c.Mean = c.B, c.A, -c.Mean
	c.Query, c.Seed = turn(c.Query), turn(c.Seed)
	return c
}

func turn(iv *Interval) *Interval {
	if iv == nil {
		return nil
	}
	return &Interval{Low: -iv.High, High: -iv.Low, Method: iv.Method}
}

// over returns an arm's comparison with a baseline.
func (b *builder) over(family string, arm int) (Comparison, bool) {
	i := slices.IndexFunc(b.report.Comparisons, func(c Comparison) bool { return c.Family == family && c.A == arm })
	if i < 0 {
		return Comparison{}, false
	}
	return b.report.Comparisons[i], true
}
