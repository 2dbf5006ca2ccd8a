package nn

import (
	"math"
	"testing"
)

// scoreByDecoder plays the sequences into a decoder, tokens between targets
// several at a time, and returns log-probability and entropy of the targets.
func scoreByDecoder[F Float](t *testing.T, m *ModelOf[F], seqs []Sequence, temperature float64) Scores[F] {
	t.Helper()
	d, err := newDecoder(m, len(seqs))
	if err != nil {
		t.Fatal(err)
	}
	out := Scores[F]{Offsets: []int{0}}
	perSeq := make([][2][]F, len(seqs))
	slots := make([]Slot, len(seqs))
	at := make([]int, len(seqs))
	for i := range seqs {
		if slots[i], err = d.New(uint64(i)); err != nil {
			t.Fatal(err)
		}
	}
	for busy := true; busy; {
		busy = false
		var ready []int
		for i, s := range seqs {
			from := at[i]
			for at[i] < s.inputs() {
				at[i]++
				if s.Target[at[i]] {
					break
				}
			}
			if at[i] > from {
				if err := d.Push(slots[i], s.Tokens[from:at[i]]...); err != nil {
					t.Fatal(err)
				}
				ready = append(ready, i)
				busy = true
			}
		}
		d.Step()
		for _, i := range ready {
			z := append([]F(nil), d.slots[slots[i]].logits...)
			lse, ent := m.k.logSoftmax(z, m.cfg.Vocab, F(1/temperature))
			perSeq[i][0] = append(perSeq[i][0], z[seqs[i].Tokens[at[i]]]-lse)
			perSeq[i][1] = append(perSeq[i][1], ent)
		}
	}
	for i := range seqs {
		out.LogProb = append(out.LogProb, perSeq[i][0]...)
		out.Entropy = append(out.Entropy, perSeq[i][1]...)
		out.Offsets = append(out.Offsets, len(out.LogProb))
	}
	return out
}

func TestDecoderEqualsTrainer64(t *testing.T) {
	cfg := Config{Vocab: 37, Dim: 64, Layers: 2, Heads: 2, Hidden: 96, MaxLen: 256}
	m, err := newModel[float64](cfg, "generic", 3)
	if err != nil {
		t.Fatal(err)
	}
	shake(m)
	tr, _ := newTrainer(m, AdamW{})
	seqs := randomSequences(4, cfg, 60, 3, 130, 17)
	want, err := tr.Score(seqs, 0.7)
	if err != nil {
		t.Fatal(err)
	}
	got := scoreByDecoder(t, m, seqs, 0.7)
	if len(got.LogProb) != len(want.LogProb) {
		t.Fatalf("decoder scored %d tokens, trainer %d", len(got.LogProb), len(want.LogProb))
	}
	for i := range want.LogProb {
		if math.Abs(got.LogProb[i]-want.LogProb[i]) > 1e-11 || math.Abs(got.Entropy[i]-want.Entropy[i]) > 1e-11 {
			t.Fatalf("target %d: decoder %v %v, trainer %v %v", i, got.LogProb[i], got.Entropy[i], want.LogProb[i], want.Entropy[i])
		}
	}
}

// The sampler's numbers are the trainer's, bit for bit: the first on-policy
// ratio is exactly 1.
func TestDecoderEqualsTrainerExactly(t *testing.T) {
	for _, kernel := range Kernels() {
		for _, size := range []string{"nano", "small", "medium"} {
			t.Run(kernel+" "+size, func(t *testing.T) {
				cfg, err := SizeConfig(size, 196)
				if err != nil {
					t.Fatal(err)
				}
				m, err := NewModel(cfg, kernel, 3)
				if err != nil {
					t.Fatal(err)
				}
				tr, _ := NewTrainer(m, AdamW{})
				seqs := randomSequences(4, cfg, 60, 3, 130, 17, 97)
				want, err := tr.Score(seqs, 0.7)
				if err != nil {
					t.Fatal(err)
				}
				got := scoreByDecoder(t, m, seqs, 0.7)
				for i := range want.LogProb {
					if got.LogProb[i] != want.LogProb[i] || got.Entropy[i] != want.Entropy[i] {
						t.Fatalf("target %d: decoder %v %v, trainer %v %v", i, got.LogProb[i], got.Entropy[i], want.LogProb[i], want.Entropy[i])
					}
				}
			})
		}
	}
}
