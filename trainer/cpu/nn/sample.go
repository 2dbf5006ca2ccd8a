package nn

import (
	"fmt"
	"math"
	"slices"
)

// Sampling says how to choose a token.
type Sampling struct {
	Temperature float64 // above 0 to sample, 0 for the most likely token
	TopP        float64 // keep the likeliest tokens that together reach it; 0 or 1 keeps all
}

// Validate reports the first field that is out of range.
func (o Sampling) Validate() error {
	switch {
	case !(o.Temperature >= 0) || math.IsInf(o.Temperature, 0):
		return fmt.Errorf("sampling temperature %v: allowed is a finite number from 0", o.Temperature)
	case !(o.TopP >= 0 && o.TopP <= 1):
		return fmt.Errorf("sampling top_p %v: allowed is 0 to 1", o.TopP)
	}
	return nil
}

// Sampled is a chosen token. LogProb and Entropy are of the distribution at
// the sampling temperature before top-p cuts it (at temperature 1 when
// greedy): the same numbers that [TrainerOf.Score] gives.
type Sampled[F Float] struct {
	Token            int32
	LogProb, Entropy F
}

// Sample chooses the token that follows a slot's last one. It does not push
// it, and asking again without a Step in between gives the same answer: the
// draw is a function of the slot's stream and length.
func (d *DecoderOf[F]) Sample(id Slot, o Sampling) (Sampled[F], error) {
	s, err := d.at(id)
	if err != nil {
		return Sampled[F]{}, err
	}
	var out [1]Sampled[F]
	err = d.SampleEach(id, o, []uint64{s.stream}, out[:])
	return out[0], err
}

// SampleEach chooses a token for each of several streams, into out: what forks
// of the slot with these streams would sample. Sequences that are alike so far
// can share a slot that way.
func (d *DecoderOf[F]) SampleEach(id Slot, o Sampling, streams []uint64, out []Sampled[F]) error {
	s, err := d.at(id)
	if err != nil {
		return err
	}
	if err := o.Validate(); err != nil {
		return err
	}
	if !s.fresh || len(s.pending) > 0 {
		return fmt.Errorf("decoder slot %d has no logits: push tokens and step first", id)
	}
	vocab := d.model.cfg.Vocab
	d.sample = append(d.sample[:0], s.logits...)
	z := d.sample
	temperature := o.Temperature
	if temperature == 0 {
		temperature = 1
	}
	lse, entropy := d.model.k.logSoftmax(z, vocab, F(1/temperature))
	whole := o.TopP == 0 || o.TopP == 1
	total := 0.0
	if whole && o.Temperature > 0 {
		total = d.chances(z, lse)
	}
	for i, stream := range streams {
		var token int
		switch {
		case o.Temperature == 0:
			token = argmax(z[:vocab])
		case whole:
			token = pick(z[:vocab], total, uniform(stream, uint64(s.n)))
		default:
			token = d.nucleus(z[:vocab], float64(lse), o.TopP, uniform(stream, uint64(s.n)))
		}
		if token < 0 {
			return fmt.Errorf("decoder slot %d: logits: %w", id, ErrNotFinite)
		}
		out[i] = Sampled[F]{Token: int32(token), LogProb: d.scaled(s, token, temperature) - lse, Entropy: entropy}
	}
	return nil
}

// Logits returns the raw logits after a slot's last token, valid until the
// next Step, or nil if there are none.
func (d *DecoderOf[F]) Logits(id Slot) []F {
	s, err := d.at(id)
	if err != nil || !s.fresh {
		return nil
	}
	return s.logits[:d.model.cfg.Vocab]
}

// scaled is one logit divided by the temperature, as logSoftmax does it.
func (d *DecoderOf[F]) scaled(s *slot[F], token int, temperature float64) F {
	return s.logits[token] * F(1/temperature)
}

// chances turns scaled logits into probabilities and returns their sum.
func (d *DecoderOf[F]) chances(z []F, lse F) (total float64) {
	vocab := d.model.cfg.Vocab
	// With g = -1 and h = 0 this is exp(z − lse).
	d.model.k.logSoftmaxBack(z, vocab, 1, lse, 0, -1, 0)
	for _, p := range z[:vocab] {
		total += float64(p)
	}
	return total
}

// pick walks the cumulative distribution to u. It returns -1 if the
// distribution is not finite.
func pick[F Float](z []F, total, u float64) int {
	if !(total > 0) || math.IsInf(total, 0) {
		return -1
	}
	left := u * total
	last := -1
	for i, p := range z {
		if p == 0 {
			continue
		}
		last = i
		if left -= float64(p); left < 0 {
			break
		}
	}
	return last
}

// nucleus draws among the likeliest tokens that together reach topP.
func (d *DecoderOf[F]) nucleus(z []F, lse, topP, u float64) int {
	d.order = d.order[:0]
	for i := range z {
		d.order = append(d.order, int32(i))
	}
	slices.SortFunc(d.order, func(a, b int32) int {
		switch {
		case z[a] > z[b]:
			return -1
		case z[a] < z[b]:
			return 1
		}
		return int(a - b)
	})
	var kept float64
	n := 0
	for n < len(d.order) && kept < topP {
		kept += math.Exp(float64(z[d.order[n]]) - lse)
		n++
	}
	if math.IsNaN(kept) {
		return -1
	}
	left := u * kept
	for _, t := range d.order[:n] {
		if left -= math.Exp(float64(z[t]) - lse); left < 0 {
			return int(t)
		}
	}
	return int(d.order[n-1])
}

// argmax returns the first of the largest elements, or -1 for NaN.
func argmax[F Float](z []F) int {
	best := -1
	top := F(math.Inf(-1))
	for i, v := range z {
		if v > top {
			best, top = i, v
		}
	}
	return best
}
