package cpu

import (
	"context"
	"fmt"
	"math"
	"time"

	"alidade/sandbox/travel/compact"
	"alidade/trainer/cpu/nn"
)

// lesson is supervised learning: batches of scripts, imitated token by token.
type lesson struct {
	steps    int
	schedule nn.Schedule
	batch    func(step int) []compact.Script
	report   func(lessonPoint) error // each step; may be nil
	ahead    bool                    // use a second thread
}

// lessonPoint is what one step of a lesson gave.
type lessonPoint struct {
	Step int     `json:"step"` // 1-based
	Loss float64 `json:"loss"` // nats a token
	LR   float64 `json:"lr"`
	Rate float64 `json:"tokens_per_s"`
}

// learn trains m on the lesson with fresh optimizer state.
func (l lesson) learn(ctx context.Context, m *nn.Model) error {
	t, err := nn.NewTrainer(m, nn.AdamW{MaxNorm: 1})
	if err != nil {
		return err
	}
	t.Ahead(l.ahead)
	for step := range l.steps {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		began := time.Now()
		p, tokens, err := imitate(t, l.batch(step), l.schedule.At(int64(step)))
		if err != nil {
			return fmt.Errorf("step %d: %w", step+1, err)
		}
		p.Step, p.Rate = step+1, float64(tokens)/time.Since(began).Seconds()
		if l.report != nil {
			if err := l.report(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// imitate takes one step on the mean log-probability of the scripts' own tokens.
func imitate(t *nn.Trainer, scripts []compact.Script, rate float64) (p lessonPoint, tokens int, err error) {
	seqs := make([]nn.Sequence, len(scripts))
	own := 0
	for i, s := range scripts {
		seqs[i] = nn.Sequence{Tokens: s.Tokens, Target: s.Own}
		own += seqs[i].Targets()
		tokens += len(s.Tokens)
	}
	sum := 0.0
	err = t.Accumulate(seqs, 1, func(c *nn.Chunk[float32]) error {
		for i, lp := range c.LogProb {
			sum -= float64(lp)
			c.DLogProb[i] = -1 / float32(own)
		}
		return nil
	})
	if err != nil {
		return p, tokens, err
	}
	p.Loss, p.LR = sum/float64(own), rate
	if math.IsNaN(p.Loss) || math.IsInf(p.Loss, 0) {
		return p, tokens, fmt.Errorf("loss is %v: %w", p.Loss, nn.ErrNotFinite)
	}
	_, err = t.Step(rate)
	return p, tokens, err
}
