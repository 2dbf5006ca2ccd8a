package cpu

import (
	"fmt"
	"math"

	"alidade/trainer/cpu/nn"
)

// updateStats is what the updates of one step did.
type updateStats struct {
	loss, gradNorm    float64            // means over the updates
	layers            map[string]float64 // gradient norm by part of the model, likewise
	tokens            int                // targets in the loss, all passes together
	clipLow, clipHigh float64            // share of them whose ratio was clipped
	clipDual          float64            // share whose loss the dual clip bounded
	kl                float64            // mean of the KL term over the tokens
	ratios            []float64          // of all tokens
	updates           int
	read              int // tokens run through the model
}

// update makes one pass over the rollouts for each order, in minibatches.
// Those outside the loss are left out.
func update(t *nn.Trainer, all []*rollout, orders [][]int, o *objective, temperature, rate float64) (updateStats, error) {
	st := updateStats{layers: map[string]float64{}}
	low, high, dual := 0, 0, 0
	for _, order := range orders {
		var kept []*rollout
		for _, i := range order {
			if all[i].inLoss {
				kept = append(kept, all[i])
			}
		}
		for m := range o.Minibatches {
			part := kept[m*len(kept)/o.Minibatches : (m+1)*len(kept)/o.Minibatches]
			if len(part) == 0 {
				continue
			}
			s := surrogate{o: o, part: part, ratios: st.ratios}
			s.prepare()
			if err := t.Accumulate(s.seqs, temperature, s.derive); err != nil {
				return st, err
			}
			if math.IsNaN(s.loss) || math.IsInf(s.loss, 0) {
				return st, fmt.Errorf("loss is %v: %w", s.loss, nn.ErrNotFinite)
			}
			for name, norm := range t.GroupNorms() {
				st.layers[name] += norm
			}
			info, err := t.Step(rate)
			if err != nil {
				return st, err
			}
			st.loss += s.loss
			st.gradNorm += info.GradNorm
			st.kl += s.kl
			st.updates++
			st.tokens += s.targets
			st.read += s.read
			st.ratios = s.ratios
			low, high, dual = low+s.low, high+s.high, dual+s.dual
		}
	}
	if n := float64(st.updates); n > 0 {
		st.loss /= n
		st.gradNorm /= n
		for name := range st.layers {
			st.layers[name] /= n
		}
		tokens := float64(st.tokens)
		st.clipLow, st.clipHigh, st.clipDual = float64(low)/tokens, float64(high)/tokens, float64(dual)/tokens
		st.kl /= tokens
	}
	return st, nil
}

// surrogate is the objective over one minibatch:
// −min(ρA, clip(ρ, 1−low, 1+high)·A), where ρ is the probability ratio between
// now and when it was sampled, + β·KL − η·entropy, each weighed by token.
type surrogate struct {
	o    *objective
	part []*rollout

	seqs    []nn.Sequence
	weight  []float64 // of each token of a rollout
	targets int
	read    int

	loss            float64
	kl              float64 // summed over tokens
	low, high, dual int     // clipped tokens
	ratios          []float64
}

// prepare computes the weight of a token under the loss aggregation:
// token-mean weighs all tokens of the minibatch alike, the others all rollouts
// alike, with the mean, the sum or the scaled sum over their tokens.
func (s *surrogate) prepare() {
	for _, r := range s.part {
		q := r.sequence()
		s.seqs = append(s.seqs, q)
		s.targets += len(r.logprob)
		s.read += len(q.Tokens)
	}
	n := float64(len(s.part))
	for _, r := range s.part {
		w := 1 / float64(s.targets)
		switch s.o.Agg {
		case "seq-mean-token-mean":
			w = 1 / (n * float64(max(len(r.logprob), 1)))
		case "seq-mean-token-sum":
			w = 1 / n
		case "seq-mean-token-sum-norm":
			w = 1 / (n * s.o.LossScale)
		}
		s.weight = append(s.weight, w)
	}
}

// derive fills d(loss)/d(log-probability) and d(loss)/d(entropy) of a chunk.
func (s *surrogate) derive(c *nn.Chunk[float32]) error {
	o := s.o
	c.UseEntropy = o.Entropy > 0
	for i := range c.Sequences() {
		r, w := s.part[c.First+i], s.weight[c.First+i]
		now, entropy := c.Of(i)
		if len(now) != len(r.logprob) {
			return fmt.Errorf("rollout has %d sampled tokens, the model scored %d", len(r.logprob), len(now))
		}
		whole := 0.0
		if o.Ratio == "sequence" {
			whole = sequenceRatio(now, r.logprob)
		}
		at := c.Offsets[i]
		for k, lp := range now {
			ratio := whole
			if o.Ratio != "sequence" {
				ratio = math.Exp(min(float64(lp)-float64(r.logprob[k]), 20)) // cut as verl does
			}
			value, slope, side := clipped(ratio, r.adv(k), o)
			s.loss -= w * value
			d := -w * slope
			if o.KLLoss > 0 {
				kl, up := divergence(o.KLType, float64(lp), float64(r.ref[k]))
				s.kl += kl
				s.loss += o.KLLoss * w * kl
				d += o.KLLoss * w * up
			}
			if o.Entropy > 0 {
				s.loss -= o.Entropy * w * float64(entropy[k])
				c.DEntropy[at+k] = float32(-o.Entropy * w)
			}
			c.DLogProb[at+k] = float32(d)
			s.ratios = append(s.ratios, ratio)
			s.count(side)
		}
	}
	return nil
}

// The sides on which a term's gradient is cut off.
const (
	cutLow  = -1
	cutHigh = 1
	cutDual = 2
)

func (s *surrogate) count(side int) {
	switch side {
	case cutLow:
		s.low++
	case cutHigh:
		s.high++
	case cutDual:
		s.dual++
	}
}

// clipped returns min(ρA, clip(ρ)A), with a dual clip bounded below by c·A for
// A < 0, its derivative by log ρ, and which side cut the gradient off: 0 for
// none.
func clipped(ratio, advantage float64, o *objective) (value, slope float64, side int) {
	switch {
	case advantage >= 0 && ratio > 1+o.ClipHigh:
		return (1 + o.ClipHigh) * advantage, 0, cutHigh
	case advantage < 0 && ratio < 1-o.ClipLow:
		return (1 - o.ClipLow) * advantage, 0, cutLow
	case advantage < 0 && o.ClipC > 0 && ratio > o.ClipC:
		return o.ClipC * advantage, 0, cutDual
	}
	return ratio * advantage, ratio * advantage, 0
}
