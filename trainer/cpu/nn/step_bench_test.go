//go:build unix

package nn

import (
	"fmt"
	"testing"
)

// episodePlan says which tokens of a typical episode of 117 are the policy's:
// a prompt of 13, then calls of 4 and results of 12, and a plan of 24 at the
// end; 44 in all.
func episodePlan() (own []bool) {
	own = make([]bool, 13, 117)
	add := func(n int, mine bool) {
		for range n {
			own = append(own, mine)
		}
	}
	for range 5 {
		add(4, true)
		add(12, false)
	}
	add(24, true)
	return own
}

// play samples groups of rollouts along the plan, sideBySide at a time, with
// results drawn at random. It returns them as training data.
func play(tb testing.TB, d *Decoder, groups, rollouts, sideBySide int) []Sequence {
	own := episodePlan()
	check := func(err error) {
		if err != nil {
			tb.Fatal(err)
		}
	}
	var all []Sequence
	for first := 0; first < groups*rollouts; first += sideBySide {
		d.Reset()
		slots := make([]Slot, 0, sideBySide)
		seqs := make([]Sequence, 0, sideBySide)
		for i := first; i < first+sideBySide; i++ {
			var s Slot
			var err error
			prompt := make([]int32, 13)
			for j := range prompt {
				prompt[j] = int32(Stream(1, uint64(i/rollouts), uint64(j)) % 196)
			}
			if i%rollouts == 0 {
				s, err = d.New(uint64(i))
				check(err)
				check(d.Push(s, prompt...))
				d.Step()
			} else {
				s, err = d.Fork(slots[i-first-i%rollouts], uint64(i))
				check(err)
			}
			slots = append(slots, s)
			seqs = append(seqs, Sequence{prompt, own})
		}
		for at := 13; at < len(own); {
			for i, s := range slots {
				got, err := d.Sample(s, Sampling{Temperature: 1})
				check(err)
				seqs[i].Tokens = append(seqs[i].Tokens, got.Token)
				check(d.Push(s, got.Token))
				for j := at + 1; j < len(own) && !own[j]; j++ {
					t := int32(Stream(2, uint64(first+i), uint64(j)) % 196)
					seqs[i].Tokens = append(seqs[i].Tokens, t)
					check(d.Push(s, t))
				}
			}
			at = len(seqs[0].Tokens)
			if at < len(own) {
				d.Step()
			}
		}
		all = append(all, seqs...)
	}
	return all
}

// BenchmarkRLStep is the engine's share of one RL step, 16 prompts of 8
// rollouts: sampling, then one gradient step over all of them.
func BenchmarkRLStep(b *testing.B) {
	for _, size := range benchSizes {
		for _, side := range []int{8, 16, 32, 64, 128} {
			b.Run(fmt.Sprintf("%s/sample %d side by side", size, side), func(b *testing.B) {
				m := benchModel(b, size, "auto")
				d, err := NewDecoder(m, side)
				if err != nil {
					b.Fatal(err)
				}
				reportTokens(b, 128*117, func() { play(b, d, 16, 8, side) })
			})
		}
		b.Run(size+"/train", func(b *testing.B) {
			m := benchModel(b, size, "auto")
			d, err := NewDecoder(m, 128)
			if err != nil {
				b.Fatal(err)
			}
			seqs := play(b, d, 16, 8, 128)
			tr, err := NewTrainer(m, AdamW{MaxNorm: 1})
			if err != nil {
				b.Fatal(err)
			}
			reportTokens(b, 128*117, func() {
				err := tr.Accumulate(seqs, 1, func(c *Chunk[float32]) error {
					for i := range c.DLogProb {
						c.DLogProb[i] = -0.001
					}
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := tr.Step(1e-5); err != nil {
					b.Fatal(err)
				}
			})
		})
	}
}
