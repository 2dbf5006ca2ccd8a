package nn

import (
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
)

var errFull = errors.New("no space left")

func failingWrite(w io.Writer) error {
	if _, err := w.Write([]byte("half")); err != nil {
		return err
	}
	return errFull
}

func TestTrainingRepeatsBitForBit(t *testing.T) {
	for _, kernel := range Kernels() {
		run := func() []float32 {
			tr, err := NewTrainer(smallModel(t, kernel), AdamW{MaxNorm: 1})
			if err != nil {
				t.Fatal(err)
			}
			trainSteps(t, tr, 10)
			return tr.Model().Slab()
		}
		if !slices.Equal(run(), run()) {
			t.Errorf("%s: two runs differ", kernel)
		}
	}
}

// Kernels differ in rounding only.
func TestKernelsAgreeOnGradients(t *testing.T) {
	grad := func(kernel string) []float32 {
		m := smallModel(t, kernel)
		tr, _ := NewTrainer(m, AdamW{})
		err := tr.Accumulate(randomSequences(3, m.cfg, 80, 3, 41), 0.9, func(c *Chunk[float32]) error {
			c.UseEntropy = true
			for i := range c.DLogProb {
				c.DLogProb[i], c.DEntropy[i] = -0.1, 0.02
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return tr.Grad()
	}
	want := widen(grad("generic"))
	for _, kernel := range Kernels() {
		near(t, kernel, grad(kernel), want, 2e-4)
	}
}

func TestScoresDoNotDependOnTheBatch(t *testing.T) {
	for _, kernel := range Kernels() {
		m := smallModel(t, kernel)
		tr, _ := NewTrainer(m, AdamW{})
		seqs := randomSequences(8, m.cfg, 80, 3, 41, 1, 0, 200)
		all, err := tr.Score(seqs, 1)
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range seqs {
			one, err := tr.Score([]Sequence{s}, 1)
			if err != nil {
				t.Fatal(err)
			}
			lp, ent := all.Of(i)
			if len(lp) != s.Targets() || !slices.Equal(lp, one.LogProb) || !slices.Equal(ent, one.Entropy) {
				t.Errorf("%s: sequence %d scores differently alone", kernel, i)
			}
		}
	}
}

func TestLossFalls(t *testing.T) {
	m := smallModel(t, "auto")
	tr, _ := NewTrainer(m, AdamW{MaxNorm: 1})
	seqs := randomSequences(1, m.cfg, 30, 30, 30, 30)
	mean := func() float64 {
		s, err := tr.Score(seqs, 1)
		if err != nil {
			t.Fatal(err)
		}
		var sum float64
		for _, lp := range s.LogProb {
			sum -= float64(lp)
		}
		return sum / float64(len(s.LogProb))
	}
	before := mean()
	for range 150 {
		err := tr.Accumulate(seqs, 1, func(c *Chunk[float32]) error {
			for i := range c.DLogProb {
				c.DLogProb[i] = -1.0 / 48
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tr.Step(3e-3); err != nil {
			t.Fatal(err)
		}
	}
	if after := mean(); !(after < before/4) {
		t.Errorf("loss went from %.3f to %.3f, want a quarter or less", before, after)
	}
}

func TestNotFiniteGradientIsRefused(t *testing.T) {
	for _, kernel := range Kernels() {
		m := smallModel(t, kernel)
		tr, _ := NewTrainer(m, AdamW{})
		before := slices.Clone(m.Slab())
		nan := float32(math.NaN())
		err := tr.Accumulate(randomSequences(3, m.cfg, 20), 1, func(c *Chunk[float32]) error {
			c.DLogProb[0] = nan
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tr.Step(1e-3); !errors.Is(err, ErrNotFinite) {
			t.Fatalf("%s: error %v, want ErrNotFinite", kernel, err)
		}
		if !slices.Equal(before, m.Slab()) || tr.Steps() != 0 {
			t.Errorf("%s: the step was taken", kernel)
		}
		trainSteps(t, tr, 1) // and the trainer is still usable
		for i := range m.embed {
			m.embed[i] = nan
		}
		s, err := tr.Score(randomSequences(3, m.cfg, 20), 1)
		if err != nil {
			t.Fatal(err)
		}
		if v := float64(s.LogProb[0]); !math.IsNaN(v) {
			t.Errorf("%s: NaN weights gave log-probability %v", kernel, v)
		}
	}
}

func TestClippingScalesTheStep(t *testing.T) {
	m := smallModel(t, "generic")
	tr, _ := NewTrainer(m, AdamW{MaxNorm: 0.5})
	for i := range tr.grad {
		tr.grad[i] = 0.01
	}
	want := 0.01 * math.Sqrt(float64(len(tr.grad)))
	info, err := tr.Step(0)
	if err != nil {
		t.Fatal(err)
	}
	if !info.Clipped || math.Abs(info.GradNorm-want) > 1e-3 {
		t.Errorf("step = %+v, want norm %.4f, clipped", info, want)
	}
	if got := math.Sqrt(genericSumSquares(tr.m)); math.Abs(got-0.05) > 1e-4 {
		t.Errorf("first moment has norm %.5f, want 0.1 of the clipped 0.5", got)
	}
}

func TestGroupNorms(t *testing.T) {
	m := smallModel(t, "generic")
	tr, _ := NewTrainer(m, AdamW{})
	for i := range tr.grad {
		tr.grad[i] = 1
	}
	var sum float64
	norms := tr.GroupNorms()
	for _, n := range norms {
		sum += n * n
	}
	if len(norms) != 4 || math.Abs(sum-float64(len(tr.grad))) > 1e-6 {
		t.Errorf("norms %v, want 4 groups whose squares sum to %d", norms, len(tr.grad))
	}
}

func TestBadInputNamesFieldAndValue(t *testing.T) {
	m := smallModel(t, "generic")
	tr, _ := NewTrainer(m, AdamW{})
	loss := func(*Chunk[float32]) error { return nil }
	for _, c := range []struct {
		err  error
		want string
	}{
		{tr.Accumulate(nil, 0, loss), "temperature 0"},
		{tr.Accumulate([]Sequence{{[]int32{1, 99}, []bool{false, true}}}, 1, loss), "token 99 at position 1"},
		{tr.Accumulate([]Sequence{{[]int32{1, 2}, []bool{true, true}}}, 1, loss), "target mark 0"},
		{tr.Accumulate([]Sequence{{[]int32{1, 2}, []bool{false}}}, 1, loss), "2 tokens and 1"},
		{AdamW{Beta1: 1}.Validate(), "beta1 1"},
		{AdamW{MaxNorm: math.NaN()}.Validate(), "max_norm NaN"},
		{Schedule{Kind: "linear"}.Validate(), `kind "linear"`},
		{Schedule{Kind: "cosine", Peak: 1, Total: 3, Warmup: 3}.Validate(), "total 3"},
		{Schedule{Kind: "constant", Peak: math.Inf(1)}.Validate(), "peak +Inf"},
		{Config{Vocab: 1}.Validate(), "vocab 1"},
		{Config{Vocab: 8, Dim: 48, Heads: 2}.Validate(), "dim 48"},
		{Sampling{Temperature: -1}.Validate(), "temperature -1"},
		{Sampling{TopP: 2}.Validate(), "top_p 2"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) || !strings.Contains(c.err.Error(), "allowed") {
			t.Errorf("error %v, want %q and what is allowed", c.err, c.want)
		}
	}
	if _, err := SizeConfig("huge", 8); err == nil {
		t.Error("size huge was accepted")
	}
}

func TestSchedule(t *testing.T) {
	s := Schedule{Kind: "cosine", Peak: 1, Floor: 0.1, Warmup: 4, Total: 104}
	for _, c := range []struct {
		step int64
		want float64
	}{{0, 0.25}, {3, 1}, {4, 1}, {54, 0.55}, {104, 0.1}, {1000, 0.1}} {
		if got := s.At(c.step); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("At(%d) = %v, want %v", c.step, got, c.want)
		}
	}
	if got := (Schedule{Kind: "constant", Peak: 0.3}).At(99); got != 0.3 {
		t.Errorf("constant rate = %v, want 0.3", got)
	}
}

func TestLadder(t *testing.T) {
	last := 0
	for _, s := range Ladder() {
		c, err := SizeConfig(s.Name, 256)
		if err != nil {
			t.Fatal(err)
		}
		m, err := emptyModel[float32](c, "generic")
		if err != nil {
			t.Fatal(err)
		}
		if c.Params() <= last || c.Params() != len(m.slab) {
			t.Errorf("%s has %d parameters, slab %d, the size below %d", s.Name, c.Params(), len(m.slab), last)
		}
		last = c.Params()
	}
	if last < 1_800_000 || last > 2_200_000 {
		t.Errorf("the largest size has %d parameters, want about 2 million", last)
	}
}

// A second thread changes no bit, and an error in the middle of a batch leaves
// the trainer fit for the next one.
func TestAheadChangesNothing(t *testing.T) {
	for _, kernel := range Kernels() {
		run := func(ahead bool) ([]float32, []float32) {
			m := smallModel(t, kernel)
			tr, err := NewTrainer(m, AdamW{MaxNorm: 1})
			if err != nil {
				t.Fatal(err)
			}
			tr.Ahead(ahead)
			tr.chunk = 60
			lengths := []int{17, 60, 3, 41, 90, 1, 33, 58, 20, 20, 20, 44}
			var scores []float32
			for step := range 3 {
				seqs, seen := randomSequences(uint64(step), m.cfg, lengths...), 0
				loss := func(c *Chunk[float32]) error {
					c.UseEntropy = true
					for i := range c.DLogProb {
						c.DLogProb[i], c.DEntropy[i] = -0.1*c.LogProb[i], 0.02
					}
					scores = append(scores, c.LogProb...)
					if seen++; step == 1 && seen == 3 {
						return errFull
					}
					return nil
				}
				if err := tr.Accumulate(seqs, 1, loss); (err != nil) != (step == 1) {
					t.Fatalf("step %d: %v", step, err)
				}
				s, err := tr.Score(seqs, 0.8)
				if err != nil {
					t.Fatal(err)
				}
				scores = append(scores, s.LogProb...)
				if _, err := tr.Step(1e-2); err != nil {
					t.Fatal(err)
				}
			}
			return m.Slab(), scores
		}
		slab, scores := run(false)
		slab2, scores2 := run(true)
		if !slices.Equal(slab, slab2) || !slices.Equal(scores, scores2) {
			t.Errorf("%s: two threads give other numbers than one", kernel)
		}
	}
}
