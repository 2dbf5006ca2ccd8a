package nn

import "fmt"

// Slot names one sequence inside a decoder.
type Slot int

// DecoderOf samples from a model: it keeps the keys and values of many
// sequences and runs all of them forward together. The usual round is
//
//	slot, _ := d.New(stream)
//	d.Push(slot, prompt...)        // also later: the last sample and observations
//	d.Step()                       // runs everything pushed, in all slots
//	s, _ := d.Sample(slot, opts)   // looks at the logits, pushes nothing
//
// Sampling is bound by memory once the caches of all slots outgrow the
// processor's: 16 to 32 sequences at a time are about twice as fast as 128.
//
// Fork copies a sequence, for the rollouts of a group or a branch. What a slot
// samples depends on its tokens and its stream alone. A decoder reads the
// model's weights as they are at each call and must not be used while the
// model is being updated; sequences begun before an update keep old keys and
// values, so free them first.
type DecoderOf[F Float] struct {
	model *ModelOf[F]
	slots []slot[F]
	free  []Slot

	// The step being run: slot and position of each row, then the rows that go
	// through the whole last layer and their positions.
	rows          []Slot
	pos           []int32
	onward, posOn []int32

	buf    decodeBuffers[F]
	sample []F // scratch: one row of logits
	order  []int32
}

// Decoder samples from a float32 model.
type Decoder = DecoderOf[float32]

type slot[F Float] struct {
	used    bool
	stream  uint64
	n       int   // tokens in the cache
	last    int32 // the last of them
	pending []int32
	fresh   bool // logits belong to the last token
	logits  []F
	layers  []cacheLayer[F]
}

// cacheLayer holds the keys (heads × blocks of 16 keys × 32 dims × 16) and
// values (heads × rows of 32) of one layer of one sequence.
type cacheLayer[F Float] struct {
	keys, values []F
}

// decodeBuffers are the activations of a step; nothing is kept for gradients.
type decodeBuffers[F Float] struct {
	x, xOn, n, nOn, r, kv, q, out, hid, relu, logits, scores []F
}

// NewDecoder makes a decoder for up to slots sequences at a time.
func NewDecoder(m *Model, slots int) (*Decoder, error) { return newDecoder(m, slots) }

func newDecoder[F Float](m *ModelOf[F], slots int) (*DecoderOf[F], error) {
	if slots < 1 || slots > 1<<20 {
		return nil, fmt.Errorf("decoder slots %d: allowed is 1 to %d", slots, 1<<20)
	}
	d := &DecoderOf[F]{model: m, slots: make([]slot[F], slots)}
	d.Reset()
	return d, nil
}

// Reset frees every slot.
func (d *DecoderOf[F]) Reset() {
	d.free = d.free[:0]
	for i := len(d.slots) - 1; i >= 0; i-- {
		d.slots[i].used = false
		d.free = append(d.free, Slot(i))
	}
}

// New takes a free slot for an empty sequence that will draw its samples from
// the given stream (see [Stream]).
func (d *DecoderOf[F]) New(stream uint64) (Slot, error) {
	if len(d.free) == 0 {
		return 0, fmt.Errorf("decoder is full: all %d slots are in use", len(d.slots))
	}
	id := d.free[len(d.free)-1]
	d.free = d.free[:len(d.free)-1]
	s := &d.slots[id]
	s.used, s.stream, s.n, s.last, s.fresh = true, stream, 0, -1, false
	s.pending = s.pending[:0]
	if s.layers == nil {
		s.layers = make([]cacheLayer[F], d.model.cfg.Layers)
		s.logits = alignedSlice[F](d.model.cfg.vocabPadded())
	}
	return id, nil
}

// Fork copies a sequence, pushed tokens and logits included, into a free slot
// that draws from its own stream.
func (d *DecoderOf[F]) Fork(from Slot, stream uint64) (Slot, error) {
	src, err := d.at(from)
	if err != nil {
		return 0, err
	}
	id, err := d.New(stream)
	if err != nil {
		return 0, err
	}
	c := d.model.cfg
	dst := &d.slots[id]
	dst.n, dst.last, dst.fresh = src.n, src.last, src.fresh
	dst.pending = append(dst.pending, src.pending...)
	copy(dst.logits, src.logits)
	d.reserve(dst, src.n)
	for l := range src.layers {
		a, b := &dst.layers[l], &src.layers[l]
		used := roundUp(src.n, keyBlock) * HeadDim
		for h := range c.Heads {
			keys, values := d.head(b, h)
			toKeys, toValues := d.head(a, h)
			copy(toKeys[:used], keys)
			copy(toValues[:src.n*HeadDim], values)
		}
	}
	return id, nil
}

// Free gives a slot back.
func (d *DecoderOf[F]) Free(id Slot) {
	if s, err := d.at(id); err == nil {
		s.used = false
		d.free = append(d.free, id)
	}
}

// Len is the number of tokens in a sequence, pushed ones included.
func (d *DecoderOf[F]) Len(id Slot) int {
	s, err := d.at(id)
	if err != nil {
		return 0
	}
	return s.n + len(s.pending)
}

// Push appends tokens; the next Step runs them.
func (d *DecoderOf[F]) Push(id Slot, tokens ...int32) error {
	s, err := d.at(id)
	if err != nil {
		return err
	}
	c := d.model.cfg
	if n := s.n + len(s.pending) + len(tokens); n > c.MaxLen {
		return fmt.Errorf("sequence length %d: allowed is at most %d", n, c.MaxLen)
	}
	for _, t := range tokens {
		if t < 0 || int(t) >= c.Vocab {
			return fmt.Errorf("token %d: allowed is 0 to %d", t, c.Vocab-1)
		}
	}
	s.pending = append(s.pending, tokens...)
	return nil
}

func (d *DecoderOf[F]) at(id Slot) (*slot[F], error) {
	if id < 0 || int(id) >= len(d.slots) || !d.slots[id].used {
		return nil, fmt.Errorf("decoder slot %d is not in use", id)
	}
	return &d.slots[id], nil
}

// reserve makes room for n tokens. Capacity doubles, so that short episodes
// stay close together in memory.
func (d *DecoderOf[F]) reserve(s *slot[F], n int) {
	c := d.model.cfg
	room := len(s.layers[0].values) / c.Dim
	if n <= room {
		return
	}
	room = roundUp(max(n, 2*room, 64), keyBlock)
	for l := range s.layers {
		old := s.layers[l]
		grown := cacheLayer[F]{keys: alignedSlice[F](room * c.Dim), values: alignedSlice[F](room * c.Dim)}
		for h := range c.Heads {
			keys, values := d.head(&old, h)
			toKeys, toValues := d.head(&grown, h)
			copy(toKeys, keys)
			copy(toValues, values)
		}
		s.layers[l] = grown
	}
}

// head returns the key blocks and values of one head.
func (d *DecoderOf[F]) head(l *cacheLayer[F], h int) (keys, values []F) {
	per := len(l.keys) / d.model.cfg.Heads
	return l.keys[h*per : (h+1)*per], l.values[h*per : (h+1)*per]
}
