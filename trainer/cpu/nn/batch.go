package nn

import "fmt"

// Sequence is one episode as the model sees it: all tokens in order, and which
// of them the loss is about. Target[i] means that token i is scored, given all
// tokens before it; Target[0] must be false. Neither slice is changed or kept.
type Sequence struct {
	Tokens []int32
	Target []bool
}

// Targets is the number of scored tokens.
func (s Sequence) Targets() int {
	n := 0
	for _, t := range s.Target {
		if t {
			n++
		}
	}
	return n
}

// inputs is the number of tokens that the model must read: those before the
// last target. It is 0 for a sequence without targets.
func (s Sequence) inputs() int {
	for i := len(s.Target) - 1; i > 0; i-- {
		if s.Target[i] {
			return i
		}
	}
	return 0
}

func (s Sequence) validate(c Config) error {
	switch {
	case len(s.Target) != len(s.Tokens):
		return fmt.Errorf("sequence has %d tokens and %d target marks: allowed is one mark for each token", len(s.Tokens), len(s.Target))
	case len(s.Tokens) > c.MaxLen+1:
		return fmt.Errorf("sequence length %d: allowed is at most %d", len(s.Tokens), c.MaxLen+1)
	case len(s.Target) > 0 && s.Target[0]:
		return fmt.Errorf("target mark 0: allowed is false, the first token has nothing before it")
	}
	for i, t := range s.Tokens {
		if t < 0 || int(t) >= c.Vocab {
			return fmt.Errorf("token %d at position %d: allowed is 0 to %d", t, i, c.Vocab-1)
		}
	}
	return nil
}

// span is one sequence inside a packed batch.
type span struct {
	start, n   int // input rows
	first, out int // scored rows: index of the first and how many
}

// batch is a set of sequences packed without padding.
type batch struct {
	tokens, prev []int32 // per input row; prev is -1 at the start of a sequence
	pos          []int32 // position of each input row in its sequence
	outRow       []int32 // input row that predicts each target
	outPos       []int32 // its position
	target       []int32 // the token it should predict
	spans        []span
}

// pack fills b with the sequences, leaving out what no target can see.
func (b *batch) pack(seqs []Sequence) {
	b.tokens, b.prev, b.pos = b.tokens[:0], b.prev[:0], b.pos[:0]
	b.outRow, b.outPos, b.target = b.outRow[:0], b.outPos[:0], b.target[:0]
	b.spans = b.spans[:0]
	for _, s := range seqs {
		start, first, n := len(b.tokens), len(b.target), s.inputs()
		last := int32(-1)
		for i, t := range s.Tokens[:n] {
			b.tokens = append(b.tokens, t)
			b.prev = append(b.prev, last)
			b.pos = append(b.pos, int32(i))
			last = t
			if s.Target[i+1] {
				b.outRow = append(b.outRow, int32(start+i))
				b.outPos = append(b.outPos, int32(i))
				b.target = append(b.target, s.Tokens[i+1])
			}
		}
		b.spans = append(b.spans, span{start, n, first, len(b.target) - first})
	}
}
