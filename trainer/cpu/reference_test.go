package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"alidade/ablation"
	"alidade/trainer/cpu/nn"
)

// The reference: loss functions as their authors write them, in plain loops
// over whole batches in float64, sharing nothing with the code under test. A
// token's term is its loss before aggregation; gradients are differences.

type refBatch struct {
	reward       []float64
	group        []int
	old, ref     [][]float64
	now, entropy [][]float64
}

// refAdvantage returns the advantage of each rollout.
func refAdvantage(kind string, std bool, b *refBatch) []float64 {
	adv := make([]float64, len(b.reward))
	for i := range adv {
		var peers []float64
		others := 0.0
		for j := range adv {
			if b.group[j] == b.group[i] {
				peers = append(peers, b.reward[j])
				if j != i {
					others += b.reward[j]
				}
			}
		}
		n, mean, ss := float64(len(peers)), 0.0, 0.0
		for _, p := range peers {
			mean += p / n
		}
		for _, p := range peers {
			ss += (p - mean) * (p - mean)
		}
		switch kind {
		case "rloo":
			adv[i] = b.reward[i] - others/(n-1)
		case "reinforce_plus_plus":
			adv[i] = b.reward[i]
		case "reinforce_plus_plus_baseline":
			adv[i] = b.reward[i] - mean
		case "dr_grpo":
			adv[i] = b.reward[i] - mean
		default:
			adv[i] = b.reward[i] - mean
			if std || kind == "dapo" {
				adv[i] /= math.Sqrt(ss/(n-1)) + 1e-6
			}
		}
	}
	if kind == "reinforce_plus_plus" || kind == "reinforce_plus_plus_baseline" {
		var flat []float64 // one entry a token
		for i, a := range adv {
			for range b.old[i] {
				flat = append(flat, a)
			}
		}
		mean, v := 0.0, 0.0
		for _, a := range flat {
			mean += a / float64(len(flat))
		}
		for _, a := range flat {
			v += (a - mean) * (a - mean) / float64(len(flat)-1)
		}
		for i := range adv {
			adv[i] = (adv[i] - mean) / math.Sqrt(v+1e-8)
		}
	}
	return adv
}

// refTerm is the loss of token t of rollout i.
func refTerm(kind string, a *ablation.Algorithm, b *refBatch, adv float64, i, t int) float64 {
	low, high, c := a.ClipLow, a.ClipHigh, a.ClipC
	ratio := math.Exp(b.now[i][t] - b.old[i][t])
	switch kind {
	case "gspo", "grpo_scr":
		mean := 0.0
		for k := range b.now[i] {
			mean += (b.now[i][k] - b.old[i][k]) / float64(len(b.now[i]))
		}
		ratio, low, high, c = math.Exp(mean), 3e-4, 4e-4, 0
	case "dapo", "grpo_tcr":
		if c == 0 {
			c = 10
		}
	}
	loss := math.Max(-adv*ratio, -adv*math.Min(math.Max(ratio, 1-low), 1+high))
	if adv < 0 && c > 0 {
		loss = math.Min(loss, -adv*c)
	}
	if a.UseKLLoss && kind != "dr_grpo" && kind != "dapo" && kind != "grpo_tcr" && kind != "grpo_scr" && kind != "arpo" {
		d := b.now[i][t] - b.ref[i][t]
		kl := map[string]float64{"kl": d, "mse": d * d / 2, "abs": math.Abs(d), "low_var_kl": math.Exp(-d) + d - 1}[a.KLLossType]
		loss += a.KLLossCoef * kl
	}
	return loss - a.EntropyCoeff*b.entropy[i][t]
}

// refLoss aggregates over the batch.
func refLoss(kind string, a *ablation.Algorithm, b *refBatch, maxTokens float64) float64 {
	agg := a.LossAgg
	switch kind {
	case "dr_grpo":
		agg = "seq-mean-token-sum-norm"
	case "gspo", "grpo_scr":
		agg = "seq-mean-token-mean"
	case "dapo", "grpo_tcr":
		agg = "token-mean"
	}
	adv := refAdvantage(kind, a.StdNorm, b)
	total, tokens, sequences := 0.0, 0.0, 0.0
	for i := range b.now {
		sum := 0.0
		for t := range b.now[i] {
			sum += refTerm(kind, a, b, adv[i], i, t)
		}
		n := float64(len(b.now[i]))
		tokens += n
		sequences++
		switch agg {
		case "seq-mean-token-mean":
			sum /= n
		case "seq-mean-token-sum-norm":
			sum /= maxTokens
		}
		total += sum
	}
	if agg == "token-mean" {
		return total / tokens
	}
	return total / sequences
}

// TestAlgorithmsAgainstTheReference holds loss and gradient of every algorithm,
// with every aggregation and KL estimator, against the loops above.
func TestAlgorithmsAgainstTheReference(t *testing.T) {
	base := tinyRecipe(t)
	for kind := range kinds {
		if kind == "arpo" {
			continue // differs in its rollouts: TestTreeAdvantages
		}
		for i, change := range []func(a *ablation.Algorithm){
			func(a *ablation.Algorithm) {},
			func(a *ablation.Algorithm) { a.StdNorm, a.LossAgg, a.ClipC = false, "seq-mean-token-mean", 1.4 },
			func(a *ablation.Algorithm) {
				a.LossAgg, a.EntropyCoeff = "seq-mean-token-sum", 0.01
				a.UseKLLoss, a.KLLossCoef, a.KLLossType = true, 0.1, "low_var_kl"
			},
			func(a *ablation.Algorithm) {
				a.LossAgg = "seq-mean-token-sum-norm"
				a.UseKLLoss, a.KLLossCoef, a.KLLossType = true, 0.1, "mse"
			},
			func(a *ablation.Algorithm) { a.UseKLLoss, a.KLLossCoef, a.KLLossType = true, 0.1, "kl" },
			func(a *ablation.Algorithm) { a.UseKLLoss, a.KLLossCoef, a.KLLossType = true, 0.1, "abs" },
		} {
			rec := base
			rec.Algorithm.Kind = kind
			change(&rec.Algorithm)
			t.Run(fmt.Sprintf("%s/%d", kind, i), func(t *testing.T) { againstReference(t, &rec) })
		}
	}
}

func againstReference(t *testing.T, rec *ablation.Recipe) {
	r := rand.New(rand.NewPCG(1, 2))
	all := append(group(t, 0, []float64{0, 1, 3}, nil), group(t, 1, []float64{2, 0, 0}, nil)...)
	b := &refBatch{}
	draw := func(spread float64) float64 { return float64(float32(-2 + spread*r.NormFloat64())) }
	for i, o := range all {
		var old, ref, now, entropy []float64
		for range 2 + i%3 {
			x := draw(0.5)
			step := 0.4
			if rec.Algorithm.Kind == "gspo" || rec.Algorithm.Kind == "grpo_scr" {
				step = 4e-4
			}
			old, ref = append(old, x), append(ref, draw(0.5))
			now = append(now, float64(float32(x+step*r.NormFloat64())))
			entropy = append(entropy, float64(r.Float32()))
			o.logprob = append(o.logprob, float32(x))
			o.ref = append(o.ref, float32(ref[len(ref)-1]))
		}
		b.old, b.ref, b.now, b.entropy = append(b.old, old), append(b.ref, ref), append(b.now, now), append(b.entropy, entropy)
		b.reward, b.group = append(b.reward, o.reward), append(b.group, o.group)
	}
	o := resolve(rec)
	advantages(all, &o)
	s := surrogate{o: &o, part: all}
	s.prepare()
	c := &nn.Chunk[float32]{Scores: nn.Scores[float32]{Offsets: []int{0}}}
	for i := range b.now {
		for k := range b.now[i] {
			c.LogProb = append(c.LogProb, float32(b.now[i][k]))
			c.Entropy = append(c.Entropy, float32(b.entropy[i][k]))
		}
		c.Offsets = append(c.Offsets, len(c.LogProb))
	}
	c.DLogProb, c.DEntropy = make([]float32, len(c.LogProb)), make([]float32, len(c.LogProb))
	if err := s.derive(c); err != nil {
		t.Fatal(err)
	}
	a, limit := &rec.Algorithm, float64(rec.Environment.MaxTokens)
	loss := func() float64 { return refLoss(a.Kind, a, b, limit) }
	if want := loss(); math.Abs(s.loss-want) > 1e-9*math.Max(1, math.Abs(want)) {
		t.Errorf("loss %.12g, the reference says %.12g", s.loss, want)
	}
	check := func(name string, got []float32, at [][]float64) {
		n := 0
		for i := range at {
			for k := range at[i] {
				const h = 1e-6
				was := at[i][k]
				at[i][k] = was + h
				up := loss()
				at[i][k] = was - h
				down := loss()
				at[i][k] = was
				if want := (up - down) / (2 * h); math.Abs(float64(got[n])-want) > 2e-6 {
					t.Errorf("%s of rollout %d token %d: %.9g, differences give %.9g", name, i, k, got[n], want)
				}
				n++
			}
		}
	}
	check("d loss/d log-probability", c.DLogProb, b.now)
	check("d loss/d entropy", c.DEntropy, b.entropy)
	if c.UseEntropy != (a.EntropyCoeff > 0) {
		t.Errorf("UseEntropy is %v", c.UseEntropy)
	}
}

// Tokens of a shared stem get the mean over its leaves; the rest their own.
func TestTreeAdvantages(t *testing.T) {
	all := group(t, 0, []float64{0, 1, 2}, nil)
	for i, o := range all {
		o.logprob, o.advantage = make([]float32, 4), float64(3*i)
	}
	all[1].origin = []int{0, 0}    // two tokens with leaf 0
	all[2].origin = []int{0, 0, 1} // the same two, and one more with leaf 1
	shareAdvantages(all)
	for i, want := range [][]float64{{3, 3, 0, 0}, {3, 3, 4.5, 3}, {3, 3, 4.5, 6}} {
		for k := range want {
			if math.Abs(all[i].adv(k)-want[k]) > 1e-12 {
				t.Errorf("leaf %d: %v, want %v", i, all[i].tokenAdv, want)
				break
			}
		}
	}
}

func TestBranchingFollowsEntropy(t *testing.T) {
	tr := tree{Probability: 0.5, Weight: 0.2}
	for _, tt := range []struct {
		u, rise float64
		want    bool
	}{{0.5, 0, true}, {0.51, 0, false}, {0.55, 0.3, true}, {0.45, -0.5, false}, {0.05, 1, true}} {
		if got := tr.branches(tt.u, tt.rise); got != tt.want {
			t.Errorf("u %g, rise %g: branch is %v", tt.u, tt.rise, got)
		}
	}
}

func TestDivergenceIsCut(t *testing.T) {
	if kl, slope := divergence("low_var_kl", -30, 0); kl != 10 || slope != 0 {
		t.Errorf("far below the reference: %g, slope %g", kl, slope)
	}
	if kl, slope := divergence("low_var_kl", 0, -30); slope != 0 || math.Abs(kl-10) > 1e-9 {
		t.Errorf("far above the reference: %g, slope %g", kl, slope)
	}
}

// KL in the reward is the summed log ratio, times its weight.
func TestKLInTheReward(t *testing.T) {
	o := group(t, 0, []float64{2}, nil)[0]
	o.logprob, o.ref = []float32{-1, -2}, []float32{-1.5, -3}
	charge(o, 0.1)
	if math.Abs(o.reward-(2-0.1*1.5)) > 1e-6 || len(o.parts) != 1 || math.Abs(o.parts[0].Value+0.15) > 1e-6 {
		t.Errorf("reward %g, parts %+v", o.reward, o.parts)
	}
}
