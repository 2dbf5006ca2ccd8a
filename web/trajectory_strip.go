package web

import (
	"fmt"
	"strings"

	"alidade/templates"
	"alidade/trainer"
)

// The strip is drawn in two widths; observations take a seventh of their
// tokens, since the policy did not write them.
const (
	stripWide     = 1376.0
	stripNarrow   = 358.0
	stripTop      = 10.0
	stripBase     = 60.0
	stripHeight   = 84.0
	observedShare = 1.0 / 7
)

// stripOf draws the tokens of an episode in order. It returns nil when the
// trainer counted no tokens.
func stripOf(t *trainer.Trajectory, failedTurns map[int]bool) *templates.StripView {
	peak, seen, tokens := 0.0, false, 0
	for _, turn := range t.Turns {
		tokens += turn.Tokens
		for _, h := range turn.Entropy {
			seen = true
			peak = max(peak, float64(h))
		}
	}
	if tokens == 0 {
		return nil
	}
	v := &templates.StripView{
		Title:   "Tokens by turn",
		Caption: "solid = written by the policy; hatched = observation, not in the loss, drawn at 1/7 width; this trainer gave no entropy",
		Aria:    "Tokens of each turn in order",
	}
	if seen {
		v.Title = "Entropy by token"
		v.Caption = "nats at sampling, highest " + fixed(peak, 2) + "; hatched = observation, not in the loss, drawn at 1/7 width; numbers = turns; ▾ injected failure"
		v.Aria = "Entropy of each token the policy wrote, by position; observations are left out"
	}
	v.Wide = drawStrip(t, stripWide, peak, failedTurns)
	v.Narrow = drawStrip(t, stripNarrow, peak, failedTurns)
	return v
}

func drawStrip(t *trainer.Trajectory, width, peak float64, failed map[int]bool) templates.StripDrawing {
	d := templates.StripDrawing{
		ViewBox: fmt.Sprintf("0 0 %s %s", unit(width), unit(stripHeight)),
		Width:   unit(width),
		Base:    fmt.Sprintf("M0 %sH%s", unit(stripBase+.5), unit(width)),
		Total:   digits(int64(t.Tokens)) + " tokens",
	}
	for _, share := range []float64{1. / 3, 2. / 3} {
		d.Grid += fmt.Sprintf("M0 %sH%s", unit(stripBase-share*(stripBase-stripTop)), unit(width))
	}
	total := 0.0
	for _, turn := range t.Turns {
		total += turnLength(turn)
	}
	scale := width / max(total, 1)
	x, labelEnd := 0.0, 0.0
	for i, turn := range t.Turns {
		w := float64(max(turn.Tokens, 1)) * scale
		last := i == len(t.Turns)-1
		s := templates.StripTurn{
			N: i + 1, Href: fmt.Sprintf("#t%d", i+1), X: unit(x), W: unit(turnLength(turn) * scale),
			Title: stripTitle(i+1, turn), Failed: failed[i+1], Last: last,
			Tick: fmt.Sprintf("M%s %sv6", unit(x+.5), unit(stripBase)),
		}
		s.Bars, s.BarWidth = bars(turn, x, w, peak)
		if turn.Observe != nil && turn.Observe.Injected != "" {
			s.Mark = fmt.Sprintf("M%s 2h8l-4 6z", unit(max(x-4, 0)))
		}
		label := fmt.Sprint(i + 1)
		if need := 7*float64(len(label)) + 5; x >= labelEnd && x+need < width-88 || i == 0 {
			s.Label, s.LabelX = label, unit(x+3)
			labelEnd = x + need
		}
		d.Turns = append(d.Turns, s)
		x += w
		if turn.Observe != nil && turn.Observe.Tokens > 0 {
			ow := float64(turn.Observe.Tokens) * observedShare * scale
			d.Masks = append(d.Masks, templates.StripMask{X: unit(x + .5), W: unit(max(ow-1, .5))})
			x += ow
		}
	}
	return d
}

// turnLength is a turn's length on the strip, in tokens.
func turnLength(turn trainer.Turn) float64 {
	n := float64(max(turn.Tokens, 1))
	if turn.Observe != nil {
		n += float64(turn.Observe.Tokens) * observedShare
	}
	return n
}

// bars draws a turn's tokens as one path of uprights. Where several tokens
// share two units of width, the highest stands for them.
func bars(turn trainer.Turn, x, w, peak float64) (path, width string) {
	if len(turn.Entropy) == 0 || peak <= 0 {
		y := stripBase - (stripBase-stripTop)*.4
		return fmt.Sprintf("M%s %sV%s", unit(x+w/2), unit(stripBase), unit(y)), unit(max(w-1, .75))
	}
	n := min(len(turn.Entropy), max(int(w/2), 1))
	pitch := w / float64(n)
	var b strings.Builder
	for i := range n {
		from, to := i*len(turn.Entropy)/n, (i+1)*len(turn.Entropy)/n
		top := 0.0
		for _, h := range turn.Entropy[from:to] {
			top = max(top, float64(h))
		}
		y := stripBase - max(top/peak*(stripBase-stripTop), .75)
		fmt.Fprintf(&b, "M%s %sV%s", unit(x+(float64(i)+.5)*pitch), unit(stripBase), unit(y))
	}
	return b.String(), unit(min(max(pitch*.8, .75), 9))
}

func stripTitle(n int, turn trainer.Turn) string {
	s := fmt.Sprintf("Turn %d: ", n)
	if turn.Call == nil {
		s += "answer"
	} else {
		s += templates.Plain(turn.Call.Tool)
	}
	s += ", " + plural(turn.Tokens, "token", "tokens")
	if h, ok := meanEntropy(turn); ok {
		s += ", mean entropy " + fixed(h, 2)
	}
	return s
}

// meanEntropy is the mean over the turn's tokens, in nats.
func meanEntropy(turn trainer.Turn) (float64, bool) {
	if len(turn.Entropy) == 0 {
		return 0, false
	}
	sum := 0.0
	for _, h := range turn.Entropy {
		sum += float64(h)
	}
	return sum / float64(len(turn.Entropy)), true
}
