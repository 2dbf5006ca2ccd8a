package chart

import (
	"cmp"
	"math"
	"slices"
)

// A tag is a direct label on its way to a free place.
type tag struct {
	text    string
	face    face
	from, y float64 // where the line ends, where the label stands
	x       float64
}

func (p pen) labels(panel Panel, xs, ys scale, b box) {
	var tags []tag
	for _, l := range panel.Lines {
		if l.Label != "" {
			y := ys.clamp(l.At)
			tags = append(tags, tag{text: l.label(), face: faceQuiet, from: y, y: y, x: b.right})
		}
	}
	for _, s := range panel.Series {
		_, last, ok := ends(s)
		if s.Label == "" || s.Ghost || !ok {
			continue
		}
		y := ys.clamp(last.Y)
		f := faceLabel
		if s.Published {
			f = faceQuiet
		}
		tags = append(tags, tag{text: s.Label, face: f, from: y, y: y, x: xs.at(last.X)})
	}
	spread(tags, b.bottom, b.top)
	for _, t := range tags {
		if math.Abs(t.y-t.from) > 1.5 || t.x < b.right-6 {
			p.line(rule2, 0.5, nil, pt(t.x+4, t.from), pt(max(t.x+4, b.right), t.from), pt(b.right+leaderWidth-3, t.y))
		}
		p.text(t.face, b.right+leaderWidth-1, t.y-2.7, left, t.text)
	}
}

// spread moves labels apart by the least that keeps them in order, legible and
// inside: neighbours that touch become a block around the mean of their places.
func spread(tags []tag, bottom, top float64) {
	slices.SortStableFunc(tags, func(a, b tag) int { return cmp.Compare(a.from, b.from) })
	gap := labelGap
	if n := len(tags); n > 1 {
		gap = min(gap, (top-bottom+4)/float64(n-1))
	}
	type block struct{ sum, count float64 } // of places minus their rank's offset
	var blocks []block
	for i, t := range tags {
		blocks = append(blocks, block{t.from - float64(i)*gap, 1})
		for k := len(blocks) - 1; k > 0 && blocks[k-1].sum/blocks[k-1].count > blocks[k].sum/blocks[k].count; k-- {
			blocks[k-1] = block{blocks[k-1].sum + blocks[k].sum, blocks[k-1].count + blocks[k].count}
			blocks = blocks[:k]
		}
	}
	i := 0
	n := float64(len(tags))
	for _, b := range blocks {
		for range int(b.count) {
			base := min(max(b.sum/b.count, bottom-2), top+2-(n-1)*gap)
			tags[i].y = base + float64(i)*gap
			i++
		}
	}
}
