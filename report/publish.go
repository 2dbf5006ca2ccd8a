package report

import (
	"slices"

	"alidade/ablation/published"
	"alidade/stats"
)

// baseKeys are recipe keys that a published value and the study must share,
// unless the study varies them, for the value to belong beside it.
var baseKeys = []string{"reward.kind", "algorithm.kind"}

// publish picks the published values of the primary metric that belong beside
// this study, and says of each whether it may be compared in level.
func (b *builder) publish() {
	for _, v := range b.in.Published {
		if v.Metric != b.primary.Key || !b.belongs(v) {
			continue
		}
		p := Published{Value: v, Arm: b.armLike(v), SE: Float(nan())}
		if v.Unit == published.Fraction && v.Protocol.Queries > 0 {
			p.SE = Float(stats.BinomialSE(v.Value, v.Protocol.Queries))
		}
		p.Comparable, p.Why = v.Comparable(b.in.Study.Study)
		b.report.Published = append(b.report.Published, p)
	}
}

// belongs leaves out values measured under another reward or algorithm than
// the study's base.
func (b *builder) belongs(v published.Value) bool {
	base := flatten(b.in.Study.Study.Base)
	varied := b.varied()
	for _, key := range baseKeys {
		level, has := v.Levels[key]
		if has && !slices.Contains(varied, key) && base[key] != "" && !sameLevel(level, base[key]) {
			return false
		}
	}
	return true
}

// armLike finds the arm with the value's levels in every factor; −1 when there
// is none. Policy scales never match: their names differ by kind of trainer.
func (b *builder) armLike(v published.Value) int {
	varied := b.varied()
	if len(varied) == 0 {
		return -1
	}
	for _, a := range b.arms {
		same := true
		for _, key := range varied {
			level, has := v.Levels[key]
			same = same && has && sameLevel(level, a.Levels[key])
		}
		if same {
			return a.Index
		}
	}
	return -1
}

// beside returns the one published value drawn on an arm's row: that of the
// smallest scale, which is the nearest to a proxy policy.
func (b *builder) beside(arm int) (Published, bool) {
	var best Published
	found := false
	for _, p := range b.report.Published {
		if p.Arm == arm && (!found || scaleOrder(p.Scale) < scaleOrder(best.Scale)) {
			best, found = p, true
		}
	}
	return best, found
}
