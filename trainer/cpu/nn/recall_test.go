package nn

import (
	"math"
	"math/rand/v2"
	"testing"
)

// recallEpisode lists pairs of a key and an id, then asks for the id of every
// key in another order. Keys and ids are drawn afresh, so only looking back
// helps.
func recallEpisode(r *rand.Rand, vocab, pairs int) Sequence {
	half := vocab / 2
	keys, ids := r.Perm(half)[:pairs], r.Perm(vocab - half)[:pairs]
	var s Sequence
	add := func(key, id int, target bool) {
		s.Tokens = append(s.Tokens, int32(key), int32(half+id))
		s.Target = append(s.Target, false, target)
	}
	for i := range pairs {
		add(keys[i], ids[i], false)
	}
	for _, i := range r.Perm(pairs) {
		add(keys[i], ids[i], true)
	}
	return s
}

// recallLoss trains for some steps of 32 episodes and returns the mean
// cross-entropy of the last ten.
func recallLoss(tb testing.TB, m *Model, steps int, rate float64) float64 {
	tb.Helper()
	tr, err := NewTrainer(m, AdamW{MaxNorm: 1, Beta2: 0.99})
	if err != nil {
		tb.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	var last float64
	for step := range steps {
		var seqs []Sequence
		targets := 0
		for range 32 {
			s := recallEpisode(r, m.cfg.Vocab, 12)
			seqs = append(seqs, s)
			targets += s.Targets()
		}
		var loss float64
		err := tr.Accumulate(seqs, 1, func(c *Chunk[float32]) error {
			for i, lp := range c.LogProb {
				loss -= float64(lp) / float64(targets)
				c.DLogProb[i] = -1 / float32(targets)
			}
			return nil
		})
		if err != nil {
			tb.Fatal(err)
		}
		if _, err := tr.Step(rate); err != nil {
			tb.Fatal(err)
		}
		if step < 5 || step%25 == 0 {
			tb.Logf("step %d loss %.3f", step, loss)
		}
		if step >= steps-10 {
			last += loss / 10
		}
	}
	return last
}

// The copy-friendly start turns into a working look-up within a few hundred
// steps; everything that is learned later stands on it.
func TestRecallIsLearnedQuickly(t *testing.T) {
	if testing.Short() {
		t.Skip("trains for some seconds")
	}
	cfg, err := SizeConfig("small", 196)
	if err != nil {
		t.Fatal(err)
	}
	m, err := NewModel(cfg, "auto", 1)
	if err != nil {
		t.Fatal(err)
	}
	if loss := recallLoss(t, m, 150, 1.5e-3); !(loss < 0.3) || math.IsNaN(loss) {
		t.Errorf("recall loss %.3f after 150 steps, want below 0.3 (chance %.2f)", loss, math.Log(98))
	}
}
