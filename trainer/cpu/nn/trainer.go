package nn

import (
	"fmt"
	"math"
)

// TrainerOf accumulates gradients and updates a model. It is not safe for
// concurrent use.
type TrainerOf[F Float] struct {
	model *ModelOf[F]
	opt   AdamW

	grad, m, v []F
	steps      int64

	passes [2]pass[F]
	ahead  bool
	scr    gradients[F]
	dl, de []F
	chunk  int
}

// pass is one chunk on its way through the model.
type pass[F Float] struct {
	batch batch
	acts  activations[F]
}

// Trainer trains a float32 model.
type Trainer = TrainerOf[float32]

// chunkTokens is how many tokens are run forward and backward together. Their
// activations should fit the second-level cache.
const chunkTokens = 512

// NewTrainer prepares training of m with fresh optimizer state.
func NewTrainer(m *Model, opt AdamW) (*Trainer, error) { return newTrainer(m, opt) }

func newTrainer[F Float](m *ModelOf[F], opt AdamW) (*TrainerOf[F], error) {
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	n := len(m.slab)
	return &TrainerOf[F]{
		model: m, opt: opt, chunk: chunkTokens,
		grad: alignedSlice[F](n), m: alignedSlice[F](n), v: alignedSlice[F](n),
	}, nil
}

// Model returns the model being trained.
func (t *TrainerOf[F]) Model() *ModelOf[F] { return t.model }

// Ahead says whether [TrainerOf.Accumulate] and [TrainerOf.Score] may use a
// second thread: the next chunk goes forward while the loss and the backward
// pass of this one are worked out. The numbers are the same.
func (t *TrainerOf[F]) Ahead(on bool) { t.ahead = on }

// Steps is the number of optimizer steps taken since the state was fresh.
func (t *TrainerOf[F]) Steps() int64 { return t.steps }

// Scores holds one value per target token, sequence after sequence.
type Scores[F Float] struct {
	LogProb []F   // log-probability at the given temperature, natural log
	Entropy []F   // entropy of the whole distribution there, nats
	Offsets []int // sequence i owns values Offsets[i] to Offsets[i+1]
}

// Of returns log-probabilities and entropies of sequence i.
func (s Scores[F]) Of(i int) (logProb, entropy []F) {
	lo, hi := s.Offsets[i], s.Offsets[i+1]
	return s.LogProb[lo:hi], s.Entropy[lo:hi]
}

// Chunk is the part of a batch between its forward and its backward pass: some
// whole sequences, from First on. A [Loss] reads Scores (indices count from
// First) and fills the derivatives.
type Chunk[F Float] struct {
	First int // index in the batch of the chunk's first sequence
	Scores[F]
	DLogProb []F // d(loss)/d(LogProb), zero on entry
	DEntropy []F // d(loss)/d(Entropy), zero on entry; read if UseEntropy is set
	// UseEntropy says that DEntropy matters; without it that part is skipped.
	UseEntropy bool
}

// Sequences is the number of sequences in the chunk.
func (c *Chunk[F]) Sequences() int { return len(c.Offsets) - 1 }

// Loss fills the derivatives of a chunk. Chunks of one batch come in order.
type Loss[F Float] func(c *Chunk[F]) error

// Accumulate adds the gradient of a loss over the sequences to the trainer's
// gradient. Sequences are worked on in chunks that fit the cache, so a loss
// that needs a whole-batch quantity (a token count, an advantage) must know it
// beforehand; that can come from [TrainerOf.Score] or the sampler.
func (t *TrainerOf[F]) Accumulate(seqs []Sequence, temperature float64, loss Loss[F]) error {
	return t.chunks(seqs, temperature, func(first int, p *pass[F], s Scores[F]) error {
		n := len(s.LogProb)
		t.dl, t.de = resized(t.dl, n), resized(t.de, n)
		clear(t.dl)
		clear(t.de)
		c := Chunk[F]{First: first, Scores: s, DLogProb: t.dl, DEntropy: t.de}
		if err := loss(&c); err != nil {
			return err
		}
		dEntropy := t.de
		if !c.UseEntropy {
			dEntropy = nil
		}
		if n > 0 {
			t.model.backward(&p.acts, &t.scr, &p.batch, t.grad, t.dl, dEntropy, temperature)
		}
		return nil
	})
}

// Score runs the sequences forward only. The result is the caller's to keep.
func (t *TrainerOf[F]) Score(seqs []Sequence, temperature float64) (Scores[F], error) {
	out := Scores[F]{Offsets: []int{0}}
	err := t.chunks(seqs, temperature, func(_ int, _ *pass[F], s Scores[F]) error {
		base := len(out.LogProb)
		out.LogProb = append(out.LogProb, s.LogProb...)
		out.Entropy = append(out.Entropy, s.Entropy...)
		for _, o := range s.Offsets[1:] {
			out.Offsets = append(out.Offsets, base+o)
		}
		return nil
	})
	return out, err
}

// chunks runs whole sequences forward, about t.chunk tokens at a time.
func (t *TrainerOf[F]) chunks(seqs []Sequence, temperature float64, visit func(first int, p *pass[F], s Scores[F]) error) error {
	if !(temperature > 0) || math.IsInf(temperature, 0) {
		return fmt.Errorf("temperature %v: allowed is a finite number above 0", temperature)
	}
	for i, s := range seqs {
		if err := s.validate(t.model.cfg); err != nil {
			return fmt.Errorf("sequence %d: %w", i, err)
		}
	}
	cuts := t.cuts(seqs)
	run := func(k int) *pass[F] {
		p := &t.passes[0] // one alone stays in the cache
		if t.ahead {
			p = &t.passes[k%len(t.passes)]
		}
		p.batch.pack(seqs[cuts[k]:cuts[k+1]])
		t.model.forward(&p.acts, &p.batch, temperature)
		return p
	}
	offsets := make([]int, 0, 64)
	var coming chan *pass[F] // the next chunk, on its way in another thread
	for k := range len(cuts) - 1 {
		var p *pass[F]
		if coming != nil {
			p = <-coming
		} else {
			p = run(k)
		}
		coming = nil
		if t.ahead && k+2 < len(cuts) {
			coming = make(chan *pass[F], 1)
			go func(to chan<- *pass[F]) { to <- run(k + 1) }(coming)
		}
		offsets = offsets[:0]
		for _, sp := range p.batch.spans {
			offsets = append(offsets, sp.first)
		}
		offsets = append(offsets, len(p.batch.target))
		if err := visit(cuts[k], p, Scores[F]{p.acts.logProb, p.acts.entropy, offsets}); err != nil {
			if coming != nil {
				<-coming // it reads the sequences and the weights
			}
			return err
		}
	}
	return nil
}

// cuts is where chunks begin: the first sequence of each, and the end.
func (t *TrainerOf[F]) cuts(seqs []Sequence) []int {
	cuts := []int{0}
	for first := 0; first < len(seqs); {
		end, rows := first, 0
		for end < len(seqs) && (end == first || rows+seqs[end].inputs() <= t.chunk) {
			rows += seqs[end].inputs()
			end++
		}
		cuts = append(cuts, end)
		first = end
	}
	return cuts
}
