package cpu

import (
	"math"
	"testing"

	"alidade/ablation"
	"alidade/sandbox/travel/compact"
	"alidade/trainer/cpu/nn"
)

// group makes rollouts with the given rewards; over-long where marked.
func group(t *testing.T, g int, rewards []float64, overlong []bool) []*rollout {
	t.Helper()
	w, err := compact.NewWorld(1, 12)
	if err != nil {
		t.Fatal(err)
	}
	sets, err := w.Queries(1, 1, compact.QuerySet{N: 1, Mix: compact.Mix{1, 0, 0}})
	if err != nil {
		t.Fatal(err)
	}
	var out []*rollout
	for i, reward := range rewards {
		cfg := compact.SessionConfig{}
		if overlong != nil && overlong[i] {
			cfg.MaxTokens = compact.PromptLen + 1
		}
		s := w.NewSession(sets[0][0], cfg)
		s.Feed(compact.TokPlan)
		out = append(out, &rollout{s: s, query: sets[0][0], group: g, index: i, reward: reward})
	}
	return out
}

func TestAdvantagesAreGroupRelative(t *testing.T) {
	all := append(group(t, 0, []float64{0, 0, 3, 1}, nil), group(t, 1, []float64{1, 1, 1, 1}, nil)...)
	if zero := advantages(all, true, true); zero != 0.5 {
		t.Errorf("zero-variance share %g, want 0.5", zero)
	}
	// mean 1, sample variance (1+1+4+0)/3 = 2
	for i, want := range []float64{-1 / math.Sqrt2, -1 / math.Sqrt2, 2 / math.Sqrt2, 0, 0, 0, 0, 0} {
		if math.Abs(all[i].advantage-want) > 1e-5 {
			t.Errorf("advantage %d is %g, want %g", i, all[i].advantage, want)
		}
		if all[i].inLoss != (i < 4) {
			t.Errorf("rollout %d in the loss: %v", i, all[i].inLoss)
		}
	}
	advantages(all, false, true)
	if got := all[2].advantage; got != 2 {
		t.Errorf("advantage without the standard deviation is %g, want 2", got)
	}
}

func TestOverlongRolloutsCountInTheStatisticsOnly(t *testing.T) {
	all := group(t, 0, []float64{0, 2}, []bool{true, false})
	advantages(all, false, true)
	if all[0].inLoss || !all[1].inLoss || all[1].advantage != 1 {
		t.Errorf("masked: %+v %+v", all[0], all[1])
	}
	advantages(all, false, false)
	if !all[0].inLoss || all[0].advantage != -1 {
		t.Errorf("not masked: %+v", all[0])
	}
}

func TestClippedSurrogate(t *testing.T) {
	tests := []struct {
		ratio, adv, value, slope float64
		side                     int
	}{
		{1, 2, 2, 2, 0},
		{1.5, 2, 2.56, 0, 1},     // above 1+0.28 with a good outcome: cut
		{1.5, -2, -3, -3, 0},     // with a bad one: full force
		{0.5, 2, 1, 1, 0},        // below with a good one: full force
		{0.5, -2, -1.6, 0, -1},   // with a bad one: cut at 1−0.2
		{1.28, 1, 1.28, 1.28, 0}, // on the edge
	}
	for _, tt := range tests {
		value, slope, side := clipped(tt.ratio, tt.adv, 0.2, 0.28)
		if math.Abs(value-tt.value) > 1e-12 || math.Abs(slope-tt.slope) > 1e-12 || side != tt.side {
			t.Errorf("ratio %g advantage %g: %g %g %d, want %g %g %d", tt.ratio, tt.adv, value, slope, side, tt.value, tt.slope, tt.side)
		}
	}
}

// The three aggregations are checked against sums written out by hand.
func TestLossAggregation(t *testing.T) {
	part := group(t, 0, []float64{0, 0}, nil)
	part[0].logprob = make([]float32, 1)
	part[1].logprob = make([]float32, 3)
	for mode, want := range map[string][]float64{
		"token-mean":          {1. / 4, 1. / 4},
		"seq-mean-token-mean": {1. / 2, 1. / 6},
		"seq-mean-token-sum":  {1. / 2, 1. / 2},
	} {
		s := surrogate{algorithm: ablation.Algorithm{LossAgg: mode}, part: part}
		s.prepare()
		for i, w := range want {
			if math.Abs(s.weight[i]-w) > 1e-12 {
				t.Errorf("%s: weight of rollout %d is %g, want %g", mode, i, s.weight[i], w)
			}
		}
	}
}

// derive's derivative is that of its own loss, by central differences.
func TestSurrogateDerivative(t *testing.T) {
	part := group(t, 0, []float64{0}, nil)
	part[0].logprob = []float32{-1, -2, -0.5}
	for _, adv := range []float64{1.5, -0.7} {
		part[0].advantage = adv
		loss := func(now []float32) (float64, []float32) {
			s := surrogate{algorithm: ablation.Algorithm{ClipLow: 0.2, ClipHigh: 0.28, LossAgg: "token-mean"}, part: part}
			s.prepare()
			c := &nn.Chunk[float32]{Scores: nn.Scores[float32]{LogProb: now, Entropy: make([]float32, 3), Offsets: []int{0, 3}}, DLogProb: make([]float32, 3)}
			if err := s.derive(c); err != nil {
				t.Fatal(err)
			}
			return s.loss, c.DLogProb
		}
		now := []float32{-0.9, -1.2, -1.5}
		_, got := loss(now)
		for i := range now {
			const h = 1.0 / 64
			up, down := append([]float32(nil), now...), append([]float32(nil), now...)
			up[i] += h
			down[i] -= h
			a, _ := loss(up)
			b, _ := loss(down)
			if want := (a - b) / (2 * h); math.Abs(want-float64(got[i])) > 2e-3 {
				t.Errorf("advantage %g token %d: derivative %g, differences give %g", adv, i, got[i], want)
			}
		}
	}
}
