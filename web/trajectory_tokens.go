package web

import (
	"fmt"
	"math"
	"net/url"

	"alidade/templates"
	"alidade/trainer"
)

// What the strip and the words of a trajectory show of each token.
const (
	byEntropy   = "entropy"
	byAdvantage = "advantage"
)

// wordsInPage bounds the words of one turn that are drawn singly.
const wordsInPage = 400

// measure is what is shown of each token of one trajectory.
type measure struct {
	by   string
	peak float64 // largest absolute value of the episode; 0 = the trainer gave none
	all  *float64
}

// measures says which of them the trajectory has.
func measures(t *trainer.Trajectory) map[string]measure {
	entropy, advantage := measure{by: byEntropy}, measure{by: byAdvantage}
	if a := t.Advantage; a != nil && a.InLoss {
		advantage.all = &a.Value
	}
	for _, m := range []*measure{&entropy, &advantage} {
		for _, turn := range t.Turns {
			for _, v := range m.of(turn) {
				if v = math.Abs(v); v > m.peak {
					m.peak = v
				}
			}
		}
	}
	found := map[string]measure{byEntropy: entropy}
	if advantage.all != nil && advantage.peak > 0 {
		found[byAdvantage] = advantage
	}
	return found
}

// measureOf is the wanted measure, or the entropy where it is missing.
func measureOf(t *trainer.Trajectory, by string) measure {
	all := measures(t)
	if m, ok := all[by]; ok {
		return m
	}
	return all[byEntropy]
}

// of returns a turn's values, one a token, or nil. A record whose list is of
// another length than its tokens gives what it has.
func (m measure) of(turn trainer.Turn) []float64 {
	list := turn.Entropy
	if m.by == byAdvantage {
		if m.all == nil {
			return nil
		}
		list = turn.Advantages
		if len(list) == 0 {
			values := make([]float64, min(max(turn.Tokens, 0), 1<<20))
			for i := range values {
				values[i] = *m.all
			}
			return values
		}
	}
	values := make([]float64, len(list))
	for i, v := range list {
		values[i] = float64(v)
	}
	return values
}

// tokenChoice switches between the measures that a trajectory has; nil for one.
func tokenChoice(t *trainer.Trajectory, base, by string) *templates.ChoiceView {
	all := measures(t)
	if len(all) < 2 || all[byEntropy].peak == 0 {
		return nil
	}
	return &templates.ChoiceView{Label: "Show by token", Options: []templates.ChoiceOption{
		{Label: "entropy", Href: base, On: by == byEntropy},
		{Label: "advantage", Href: base + "?" + url.Values{"tokens": {byAdvantage}}.Encode(), On: by == byAdvantage},
	}}
}

// wordsOf are a turn's words, each shaded by its share of the episode's
// largest value.
func wordsOf(t *trainer.Trajectory, turn trainer.Turn, m measure) (words []templates.WordView, left string) {
	values := m.of(turn)
	for i, text := range turn.Words {
		if i == wordsInPage {
			return words, plural(len(turn.Words)-i, "further token is", "further tokens are") + " not in the page"
		}
		text, _ = clip(text, 80)
		w := templates.WordView{Text: text, Title: wordTitle(t, turn, i)}
		if i < len(values) && m.peak > 0 {
			w.Class = shade(values[i] / m.peak)
		}
		words = append(words, w)
	}
	return words, ""
}

// shade is the class of a value from −1 to 1.
func shade(share float64) string {
	level := int(math.Ceil(4*math.Abs(share) - .2))
	switch {
	case level <= 0 || math.IsNaN(share):
		return ""
	case share < 0:
		return fmt.Sprintf("word-down-%d", min(level, 4))
	}
	return fmt.Sprintf("word-up-%d", min(level, 4))
}

// wordTitle has the numbers of the turn's i-th token.
func wordTitle(t *trainer.Trajectory, turn trainer.Turn, i int) string {
	title := ""
	add := func(name string, v float64) {
		if title != "" {
			title += ", "
		}
		title += name + " " + fixed(v, 3)
	}
	if i < len(turn.Entropy) {
		add("entropy", float64(turn.Entropy[i]))
	}
	if i < len(turn.LogProbs) {
		add("log-probability", float64(turn.LogProbs[i]))
	}
	switch {
	case i < len(turn.Advantages):
		add("advantage", float64(turn.Advantages[i]))
	case t.Advantage != nil && t.Advantage.InLoss:
		add("advantage", t.Advantage.Value)
	}
	return title
}
