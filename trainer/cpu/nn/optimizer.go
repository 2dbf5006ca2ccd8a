package nn

import (
	"errors"
	"fmt"
	"math"
)

// AdamW holds the optimizer's constants. The zero value of a field means its
// default; weight decay and clipping are off at zero.
type AdamW struct {
	Beta1   float64 // default 0.9
	Beta2   float64 // default 0.999
	Eps     float64 // default 1e-8
	Decay   float64 // decoupled, times the learning rate; matrices only, not embeddings
	MaxNorm float64 // gradients are scaled down to this global norm; 0 = no clipping
}

// Validate reports the first constant that is out of range.
func (a AdamW) Validate() error {
	for _, f := range []struct {
		name   string
		v, max float64
	}{
		{"beta1", a.Beta1, 1}, {"beta2", a.Beta2, 1}, {"eps", a.Eps, 1},
		{"decay", a.Decay, math.MaxFloat32}, {"max_norm", a.MaxNorm, math.MaxFloat32},
	} {
		if !(f.v >= 0 && f.v < f.max) {
			return fmt.Errorf("optimizer %s %v: allowed is 0 or more and below %g", f.name, f.v, f.max)
		}
	}
	return nil
}

func (a AdamW) withDefaults() AdamW {
	or := func(v, def float64) float64 {
		if v == 0 {
			return def
		}
		return v
	}
	a.Beta1, a.Beta2, a.Eps = or(a.Beta1, 0.9), or(a.Beta2, 0.999), or(a.Eps, 1e-8)
	return a
}

// ErrNotFinite reports NaN or infinity in a gradient, or in the logits that a
// token was to be sampled from. The step was not taken: parameters and
// optimizer state are as before.
var ErrNotFinite = errors.New("not finite")

// StepInfo says what an optimizer step did.
type StepInfo struct {
	GradNorm float64 // before clipping
	Clipped  bool
}

// Step applies the accumulated gradient with the given learning rate and
// clears it. A gradient that is not finite is thrown away with [ErrNotFinite].
func (t *TrainerOf[F]) Step(rate float64) (StepInfo, error) {
	if !(rate >= 0) || math.IsInf(rate, 0) {
		return StepInfo{}, fmt.Errorf("learning rate %v: allowed is a finite number from 0", rate)
	}
	info := StepInfo{GradNorm: math.Sqrt(t.model.k.sumSquares(t.grad))}
	if math.IsNaN(info.GradNorm) || math.IsInf(info.GradNorm, 0) {
		t.ClearGrad()
		return info, ErrNotFinite
	}
	o := t.opt.withDefaults()
	clip := 1.0
	if o.MaxNorm > 0 && info.GradNorm > o.MaxNorm {
		clip, info.Clipped = o.MaxNorm/info.GradNorm, true
	}
	t.steps++
	c1 := 1 - math.Pow(o.Beta1, float64(t.steps))
	c2 := 1 - math.Pow(o.Beta2, float64(t.steps))
	s := adamStep[F]{
		clip: F(clip), b1: F(o.Beta1), b2: F(o.Beta2), eps: F(o.Eps),
		rate: F(rate / c1), vscale: F(1 / math.Sqrt(c2)),
	}
	for _, p := range t.model.params {
		s.decay = 0
		if p.Decay {
			s.decay = F(rate * o.Decay)
		}
		t.model.k.adam(viewOf(t.model.slab, p), viewOf(t.grad, p), viewOf(t.m, p), viewOf(t.v, p), &s)
	}
	t.ClearGrad()
	t.model.Refresh()
	return info, nil
}

// ClearGrad throws the accumulated gradient away.
func (t *TrainerOf[F]) ClearGrad() { clear(t.grad) }

// Grad returns the accumulated gradient, laid out like the model's slab.
func (t *TrainerOf[F]) Grad() []F { return t.grad }

// GroupNorms returns the norm of the accumulated gradient of each part of the
// model ("embed", "layer0" …, "head").
func (t *TrainerOf[F]) GroupNorms() map[string]float64 {
	norms := map[string]float64{}
	for _, p := range t.model.params {
		norms[p.Group()] += t.model.k.sumSquares(viewOf(t.grad, p))
	}
	for g, sum := range norms {
		norms[g] = math.Sqrt(sum)
	}
	return norms
}
