package cpu

import (
	"math"
	"testing"

	"alidade/sandbox/travel/compact"
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
		out = append(out, &rollout{s: s, ep: s, query: sets[0][0], group: g, index: i, reward: reward})
	}
	return out
}

func grpo(std, mask string) *objective {
	return &objective{Baseline: "group", Std: std, Ratio: "token", Agg: "token-mean", ClipLow: 0.2, ClipHigh: 0.28, Overlong: mask}
}

func TestAdvantagesAreGroupRelative(t *testing.T) {
	all := append(group(t, 0, []float64{0, 0, 3, 1}, nil), group(t, 1, []float64{1, 1, 1, 1}, nil)...)
	if zero := advantages(all, grpo("group", "mask")); zero != 0.5 {
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
	advantages(all, grpo("none", "mask"))
	if got := all[2].advantage; got != 2 {
		t.Errorf("advantage without the standard deviation is %g, want 2", got)
	}
}

func TestOverlongRolloutsCountInTheStatisticsOnly(t *testing.T) {
	all := group(t, 0, []float64{0, 2}, []bool{true, false})
	advantages(all, grpo("none", "mask"))
	if all[0].inLoss || !all[1].inLoss || all[1].advantage != 1 {
		t.Errorf("masked: %+v %+v", all[0], all[1])
	}
	advantages(all, grpo("none", "zero"))
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
		{1.5, 2, 2.56, 0, cutHigh}, // above 1+0.28 with a good outcome: cut
		{1.5, -2, -3, -3, 0},       // with a bad one: full force
		{0.5, 2, 1, 1, 0},          // below with a good one: full force
		{0.5, -2, -1.6, 0, cutLow}, // with a bad one: cut at 1−0.2
		{1.28, 1, 1.28, 1.28, 0},   // on the edge
		{4, -2, -6, 0, cutDual},    // a bad one far above: bounded at 3·A
		{4, 2, 2.56, 0, cutHigh},   // the dual clip is for bad ones alone
		{2.9, -2, -5.8, -5.8, 0},   // below the bound
	}
	o := grpo("group", "mask")
	o.ClipC = 3
	for _, tt := range tests {
		value, slope, side := clipped(tt.ratio, tt.adv, o)
		if math.Abs(value-tt.value) > 1e-12 || math.Abs(slope-tt.slope) > 1e-12 || side != tt.side {
			t.Errorf("ratio %g advantage %g: %g %g %d, want %g %g %d", tt.ratio, tt.adv, value, slope, side, tt.value, tt.slope, tt.side)
		}
	}
}

func TestOverlongPenalty(t *testing.T) {
	o := objective{Limit: 100, Buffer: 20, Penalty: 2}
	for length, want := range map[int]float64{10: 0, 80: 0, 90: -1, 100: -2} {
		if got := o.overlongPenalty(length); math.Abs(got-want) > 1e-12 {
			t.Errorf("penalty of %d tokens is %g, want %g", length, got, want)
		}
	}
}

func TestDynamicSamplingKeepsGroupsThatDiffer(t *testing.T) {
	all := append(group(t, 0, []float64{1, 1}, nil), group(t, 1, []float64{1, 0}, nil)...)
	all = append(all, group(t, 2, []float64{0, 2}, nil)...)
	o := objective{FilterMetric: "score"}
	kept := o.spreadGroups(all, 1)
	if len(kept) != 2 || kept[0].group != 1 {
		t.Errorf("kept %d rollouts", len(kept))
	}
	o.FilterMetric = "acc" // none of them has a success
	if kept = o.spreadGroups(all, 3); len(kept) != 0 {
		t.Errorf("kept %d rollouts by success", len(kept))
	}
}
