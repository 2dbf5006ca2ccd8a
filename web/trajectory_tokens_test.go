package web

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"alidade/trainer"
)

// tokenTrajectory is a rollout of two turns whose tokens differ in advantage.
func tokenTrajectory() trainer.Trajectory {
	tr := sampleTrajectory(40, 0, 4)
	tr.Advantage = &trainer.Advantage{Value: -0.5, InLoss: true}
	for i := range tr.Turns {
		turn := &tr.Turns[i]
		turn.Tokens, turn.Words, turn.Entropy = 3, []string{"alpha", "beta", "gamma"}, []float32{0.1, 0.9, 0}
		turn.Advantages, turn.Branch = []float32{1, 0.25, -0.5}, i == 1
	}
	return tr
}

func TestTokensByMeasure(t *testing.T) {
	page := func(tr trainer.Trajectory, by string) string {
		var b bytes.Buffer
		if err := templatesTrajectory(&b, trajectoryView(&tr, sampleRun(1), nil, by)); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	for name, c := range map[string]struct {
		change func(tr *trainer.Trajectory)
		by     string
		want   []string
		wrong  []string
	}{
		"entropy": {by: "", want: []string{"Entropy by token", "highest 0.90", "?tokens=advantage", `word-up-4" title="entropy 0.900, advantage 0.250">beta`, `class="branch"`},
			wrong: []string{"word-down", "tokens below"}},
		"advantage": {by: "advantage", want: []string{"Advantage by token", "largest 1.00", "tokens below", `word-up-4" title="entropy 0.100, advantage 1.000">alpha`, "word-up-1", "word-down-2"}},
		"one advantage for all": {by: "advantage", change: func(tr *trainer.Trajectory) {
			for i := range tr.Turns {
				tr.Turns[i].Advantages = nil
			}
		}, want: []string{"Advantage by token", "largest 0.50", "word-down-4", "advantage −0.500"}, wrong: []string{"word-up"}},
		"not in the loss": {by: "advantage", change: func(tr *trainer.Trajectory) { tr.Advantage.InLoss = false },
			want: []string{"Entropy by token"}, wrong: []string{"?tokens=advantage"}},
		"no entropy": {by: "", change: func(tr *trainer.Trajectory) {
			for i := range tr.Turns {
				tr.Turns[i].Entropy = nil
			}
		}, want: []string{"Tokens by turn", "gave no entropy"}, wrong: []string{"word-up"}},
		"lists of the wrong length": {by: "advantage", change: func(tr *trainer.Trajectory) {
			tr.Turns[0].Advantages, tr.Turns[1].Words, tr.Turns[2].Tokens = tr.Turns[0].Advantages[:1], nil, -4
			tr.Turns[2].Advantages, tr.Turns[3].Entropy[1] = nil, float32(math.NaN())
		}, want: []string{"Advantage by token"}},
		"an unknown measure": {by: "mood", want: []string{"Entropy by token"}},
	} {
		t.Run(name, func(t *testing.T) {
			tr := tokenTrajectory()
			if c.change != nil {
				c.change(&tr)
			}
			got := page(tr, c.by)
			for _, w := range c.want {
				if !strings.Contains(got, w) {
					t.Errorf("the page lacks %q", w)
				}
			}
			for _, w := range c.wrong {
				if strings.Contains(got, w) {
					t.Errorf("the page holds %q", w)
				}
			}
			for _, w := range []string{"NaN", "Inf"} {
				if name != "lists of the wrong length" && strings.Contains(got, w) {
					t.Errorf("the page holds %q", w)
				}
			}
		})
	}
}

func TestWordsAreCut(t *testing.T) {
	tr := tokenTrajectory()
	tr.Turns[0].Words = strings.Split(strings.Repeat("w ", wordsInPage+5), " ")
	words, left := wordsOf(&tr, tr.Turns[0], measureOf(&tr, ""))
	if len(words) != wordsInPage || left != "6 further tokens are not in the page" {
		t.Errorf("%d words, %q", len(words), left)
	}
}
