package cpu

import (
	"math"
	"testing"

	"alidade/trainer"
)

// Every recorded turn has a word and an entropy for each token the policy
// wrote; tokens have advantages of their own only where they differ.
func TestTrajectoriesKnowTheirTokens(t *testing.T) {
	root := t.TempDir()
	for _, kind := range []string{"grpo", "arpo"} {
		rec := tinyRecipe(t)
		rec.Algorithm.Kind, rec.Algorithm.BranchProb = kind, 1
		rec.SFT.Control = false
		rec.Evaluation.Queries, rec.Evaluation.OOD = 8, 4
		o := runTiny(t, t.Context(), root, kind, 1, rec, nil, Config{})
		if o.err != nil {
			t.Fatal(o.err)
		}
		groups, policies := map[string][]*trainer.Trajectory{}, map[string]bool{}
		for _, e := range o.events {
			if e.Trajectory == nil {
				continue
			}
			checkTokens(t, e.Trajectory, kind == "arpo" && e.Trajectory.Phase == "rl")
			policies[e.Trajectory.Policy+" "+e.Trajectory.RewardKind] = true
			if e.Trajectory.Phase == "rl" {
				groups[e.Trajectory.Group] = append(groups[e.Trajectory.Group], e.Trajectory)
			}
		}
		if len(groups) == 0 || !policies["policy ACCURACY"] || !policies["policy SUCCESS"] {
			t.Fatalf("%d groups recorded, policies %v", len(groups), policies)
		}
		if kind == "arpo" {
			checkLeaves(t, groups)
		}
	}
}

func checkTokens(t *testing.T, tr *trainer.Trajectory, differ bool) {
	t.Helper()
	modelled := tr.Policy == "policy" || tr.Policy == "sft"
	for i, turn := range tr.Turns {
		if len(turn.Words) != turn.Tokens || modelled && len(turn.Entropy) != turn.Tokens {
			t.Fatalf("%s turn %d: %d tokens, %d words, %d entropies", tr.ID, i+1, turn.Tokens, len(turn.Words), len(turn.Entropy))
		}
		if want := map[bool]int{true: turn.Tokens}[differ]; len(turn.Advantages) != want {
			t.Fatalf("%s turn %d: %d tokens, %d advantages", tr.ID, i+1, turn.Tokens, len(turn.Advantages))
		}
		if turn.Call != nil && turn.Tokens > 0 && turn.Words[0] == "" {
			t.Errorf("%s turn %d: words %q", tr.ID, i+1, turn.Words)
		}
	}
}

// checkLeaves: the mean over a group of the last token's advantage is that of
// the leaves, and a leaf that shares nothing has its own everywhere.
func checkLeaves(t *testing.T, groups map[string][]*trainer.Trajectory) {
	t.Helper()
	shared := 0
	for _, leaves := range groups {
		for _, leaf := range leaves {
			last := leaf.Turns[len(leaf.Turns)-1].Advantages
			if got := float64(last[len(last)-1]); math.Abs(got-leaf.Advantage.Value) > 1e-4 {
				t.Errorf("%s: the last token has advantage %g, the leaf %g", leaf.ID, got, leaf.Advantage.Value)
			}
			if first := float64(leaf.Turns[0].Advantages[0]); math.Abs(first-leaf.Advantage.Value) > 1e-4 {
				shared++
			}
		}
	}
	if shared == 0 {
		t.Error("no leaf shares its first token with another one of another worth")
	}
}
