package cpu

import (
	"fmt"
	"math"

	"alidade/ablation"
	"alidade/trainer/cpu/nn"
)

// advantages sets the group-relative advantage of every rollout: its reward
// minus the group's mean, divided by the group's standard deviation (n−1 in
// the denominator) if norm is set. Rollouts of a group follow one another.
// Over-long ones count in the statistics; with mask they leave the loss. It
// returns the share of groups without spread, which give no gradient.
func advantages(all []*rollout, norm, mask bool) (zeroVariance float64) {
	const eps = 1e-6 // added to the standard deviation, as verl does
	groups, zero := 0, 0
	for first := 0; first < len(all); {
		end := first
		sum := 0.0
		for end < len(all) && all[end].group == all[first].group {
			sum += all[end].reward
			end++
		}
		n := float64(end - first)
		mean, squares := sum/n, 0.0
		for _, r := range all[first:end] {
			squares += (r.reward - mean) * (r.reward - mean)
		}
		std := math.Sqrt(squares / max(n-1, 1))
		spread := std > 1e-9
		groups++
		if !spread {
			zero++
		}
		for _, r := range all[first:end] {
			r.mean, r.std = mean, std
			r.advantage, r.inLoss = 0, spread && !(mask && r.s.Overlong())
			if spread {
				r.advantage = r.reward - mean
				if norm {
					r.advantage /= std + eps
				}
			}
		}
		first = end
	}
	return float64(zero) / float64(groups)
}

// updateStats is what the updates of one step did.
type updateStats struct {
	loss, gradNorm    float64 // means over the updates
	tokens            int     // targets in the loss
	clipLow, clipHigh float64 // share of them whose ratio was clipped
	updates           int
	read              int // tokens run through the model
}

// update makes one pass over the rollouts in minibatches, with the clipped
// surrogate −min(ρA, clip(ρ, 1−low, 1+high)·A), where ρ is the probability
// ratio of a token between now and when it was sampled. order is the order of
// the rollouts; those outside the loss are left out.
func update(t *nn.Trainer, all []*rollout, order []int, a ablation.Algorithm) (updateStats, error) {
	var kept []*rollout
	for _, i := range order {
		if all[i].inLoss {
			kept = append(kept, all[i])
		}
	}
	var st updateStats
	low, high := 0, 0
	for m := range a.Minibatches {
		part := kept[m*len(kept)/a.Minibatches : (m+1)*len(kept)/a.Minibatches]
		if len(part) == 0 {
			continue
		}
		s := surrogate{algorithm: a, part: part}
		s.prepare()
		if err := t.Accumulate(s.seqs, a.Temperature, s.derive); err != nil {
			return st, err
		}
		if math.IsNaN(s.loss) || math.IsInf(s.loss, 0) {
			return st, fmt.Errorf("loss is %v: %w", s.loss, nn.ErrNotFinite)
		}
		info, err := t.Step(a.LR)
		if err != nil {
			return st, err
		}
		st.loss += s.loss
		st.gradNorm += info.GradNorm
		st.updates++
		st.tokens += s.targets
		st.read += s.read
		low, high = low+s.low, high+s.high
	}
	if st.updates > 0 {
		st.loss /= float64(st.updates)
		st.gradNorm /= float64(st.updates)
		st.clipLow, st.clipHigh = float64(low)/float64(st.tokens), float64(high)/float64(st.tokens)
	}
	return st, nil
}

// surrogate is the clipped objective over one minibatch.
type surrogate struct {
	algorithm ablation.Algorithm
	part      []*rollout

	seqs    []nn.Sequence
	weight  []float64 // of each token of a rollout
	targets int
	read    int

	loss      float64
	low, high int // clipped tokens
}

// prepare computes the weight of a token under the loss aggregation:
// token-mean weighs all tokens of the minibatch alike, the other two all
// rollouts alike, with the mean or the sum over their tokens.
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
		switch s.algorithm.LossAgg {
		case "seq-mean-token-mean":
			w = 1 / (n * float64(max(len(r.logprob), 1)))
		case "seq-mean-token-sum":
			w = 1 / n
		}
		s.weight = append(s.weight, w)
	}
}

// derive fills d(loss)/d(log-probability) of a chunk.
func (s *surrogate) derive(c *nn.Chunk[float32]) error {
	for i := range c.Sequences() {
		r, w := s.part[c.First+i], s.weight[c.First+i]
		now, _ := c.Of(i)
		if len(now) != len(r.logprob) {
			return fmt.Errorf("rollout has %d sampled tokens, the model scored %d", len(r.logprob), len(now))
		}
		at := c.Offsets[i]
		for k, lp := range now {
			ratio := math.Exp(float64(lp) - float64(r.logprob[k]))
			value, slope, side := clipped(ratio, r.advantage, s.algorithm.ClipLow, s.algorithm.ClipHigh)
			s.loss -= w * value
			c.DLogProb[at+k] = float32(-w * slope)
			switch side {
			case -1:
				s.low++
			case 1:
				s.high++
			}
		}
	}
	return nil
}

// clipped returns min(ρA, clip(ρ)A), its derivative by log ρ, and which side
// cut the gradient off: −1 below, 1 above, 0 neither.
func clipped(ratio, advantage, low, high float64) (value, slope float64, side int) {
	switch {
	case advantage >= 0 && ratio > 1+high:
		return (1 + high) * advantage, 0, 1
	case advantage < 0 && ratio < 1-low:
		return (1 - low) * advantage, 0, -1
	}
	return ratio * advantage, ratio * advantage, 0
}
