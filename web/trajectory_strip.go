package web

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"alidade/templates"
	"alidade/trainer"
)

// The strip is drawn in two widths; observations take a seventh of their
// tokens, since the policy did not write them. Entropies stand on the base
// line, advantages on both sides of the middle.
const (
	stripWide     = 1376.0
	stripNarrow   = 358.0
	stripTop      = 10.0
	stripBase     = 60.0
	stripMiddle   = (stripTop + stripBase) / 2
	stripHeight   = 84.0
	observedShare = 1.0 / 7
)

// stripOf draws the tokens of an episode in order. It returns nil when the
// trainer counted no tokens.
func stripOf(t *trainer.Trajectory, m measure, failedTurns map[int]bool) *templates.StripView {
	tokens := 0
	for _, turn := range t.Turns {
		tokens += turn.Tokens
	}
	if tokens == 0 {
		return nil
	}
	v := &templates.StripView{
		Title:   "Tokens by turn",
		Caption: "solid = written by the policy; hatched = observation, not in the loss, drawn at 1/7 width; this trainer gave no entropy",
		Aria:    "Tokens of each turn in order",
	}
	rest := "; hatched = observation, not in the loss, drawn at 1/7 width; numbers = turns; ▾ injected failure"
	if slices.ContainsFunc(t.Turns, func(turn trainer.Turn) bool { return turn.Branch }) {
		rest += "; ◦ the episode was forked here"
	}
	switch {
	case m.by == byAdvantage:
		v.Title = "Advantage by token"
		v.Caption = "up: training makes the token likelier, down: less likely; largest " + fixed(m.peak, 2) + rest
		v.Aria = "Advantage of each token the policy wrote, by position; observations are left out"
	case m.peak > 0:
		v.Title = "Entropy by token"
		v.Caption = "nats at sampling, highest " + fixed(m.peak, 2) + rest
		v.Aria = "Entropy of each token the policy wrote, by position; observations are left out"
	}
	v.Wide = drawStrip(t, m, stripWide, failedTurns)
	v.Narrow = drawStrip(t, m, stripNarrow, failedTurns)
	return v
}

func drawStrip(t *trainer.Trajectory, m measure, width float64, failed map[int]bool) templates.StripDrawing {
	d := templates.StripDrawing{
		ViewBox: fmt.Sprintf("0 0 %s %s", unit(width), unit(stripHeight)),
		Width:   unit(width),
		Base:    fmt.Sprintf("M0 %sH%s", unit(stripBase+.5), unit(width)),
		Total:   digits(int64(t.Tokens)) + " tokens",
	}
	if m.by == byAdvantage {
		d.Base += fmt.Sprintf("M0 %sH%s", unit(stripMiddle), unit(width))
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
		s.Bars, s.Below, s.BarWidth = bars(m.of(turn), x, w, m)
		if turn.Branch {
			s.Branch = fmt.Sprintf("M%s 5m-2.5 0a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0 -5 0", unit(max(x+.5, 3)))
		}
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

// bars draws a turn's values as uprights in two paths, those above zero and
// those below. Where several tokens share two units of width, the largest
// stands for them.
func bars(values []float64, x, w float64, m measure) (above, below, width string) {
	if len(values) == 0 || m.peak <= 0 {
		y := stripBase - (stripBase-stripTop)*.4
		return fmt.Sprintf("M%s %sV%s", unit(x+w/2), unit(stripBase), unit(y)), "", unit(max(w-1, .75))
	}
	zero, room := stripBase, stripBase-stripTop
	if m.by == byAdvantage {
		zero, room = stripMiddle, room/2
	}
	n := min(len(values), max(int(w/2), 1))
	pitch := w / float64(n)
	var up, down strings.Builder
	for i := range n {
		top := 0.0
		for _, v := range values[i*len(values)/n : (i+1)*len(values)/n] {
			if math.Abs(v) > math.Abs(top) {
				top = v
			}
		}
		height := max(math.Abs(top)/m.peak*room, .75)
		if top < 0 {
			fmt.Fprintf(&down, "M%s %sV%s", unit(x+(float64(i)+.5)*pitch), unit(zero), unit(zero+height))
			continue
		}
		fmt.Fprintf(&up, "M%s %sV%s", unit(x+(float64(i)+.5)*pitch), unit(zero), unit(zero-height))
	}
	return up.String(), down.String(), unit(min(max(pitch*.8, .75), 9))
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
