package nn

import (
	"math"
	"slices"
	"testing"
)

// rollout samples n tokens after a prompt in one slot.
func rollout(t *testing.T, d *Decoder, s Slot, n int, o Sampling) []Sampled[float32] {
	t.Helper()
	var out []Sampled[float32]
	for range n {
		got, err := d.Sample(s, o)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, got)
		if err := d.Push(s, got.Token); err != nil {
			t.Fatal(err)
		}
		d.Step()
	}
	return out
}

func TestSamplesDoNotDependOnCompany(t *testing.T) {
	for _, kernel := range Kernels() {
		m := smallModel(t, kernel)
		prompt := []int32{3, 1, 4, 1, 5}
		want := make([][]Sampled[float32], 8)
		for i := range want {
			d, _ := NewDecoder(m, 1)
			s, _ := d.New(Stream(9, uint64(i)))
			if err := d.Push(s, prompt...); err != nil {
				t.Fatal(err)
			}
			d.Step()
			want[i] = rollout(t, d, s, 10+3*i, Sampling{Temperature: 1.3})
		}
		// Forked from one prompt, in another order, ending at different times.
		d, _ := NewDecoder(m, len(want)+1)
		root, _ := d.New(0)
		if err := d.Push(root, prompt...); err != nil {
			t.Fatal(err)
		}
		d.Step()
		slots := make([]Slot, len(want))
		for i := range slots {
			j := (i*5 + 2) % len(want)
			var err error
			if slots[j], err = d.Fork(root, Stream(9, uint64(j))); err != nil {
				t.Fatal(err)
			}
		}
		d.Free(root)
		got := make([][]Sampled[float32], len(want))
		for step := range 40 {
			for i, s := range slots {
				if step >= len(want[i]) {
					continue
				}
				v, err := d.Sample(s, Sampling{Temperature: 1.3})
				if err != nil {
					t.Fatal(err)
				}
				got[i] = append(got[i], v)
				if err := d.Push(s, v.Token); err != nil {
					t.Fatal(err)
				}
				if len(got[i]) == len(want[i]) {
					d.Free(s)
				}
			}
			d.Step()
		}
		for i := range want {
			if !slices.Equal(got[i], want[i]) {
				t.Errorf("%s: sequence %d differs in company", kernel, i)
			}
		}
	}
}

func TestSampledNumbersAreTheTrainers(t *testing.T) {
	m := smallModel(t, "auto")
	d, _ := NewDecoder(m, 2)
	s, _ := d.New(5)
	tokens := []int32{1, 2}
	if err := d.Push(s, tokens...); err != nil {
		t.Fatal(err)
	}
	d.Step()
	mid, _ := d.Fork(s, 6)
	if d.Len(mid) != 2 {
		t.Fatalf("fork has %d tokens, want 2", d.Len(mid))
	}
	got := rollout(t, d, s, 50, Sampling{Temperature: 0.8})
	target := []bool{false, false}
	for _, g := range got {
		tokens, target = append(tokens, g.Token), append(target, true)
	}
	tr, _ := NewTrainer(m, AdamW{})
	want, err := tr.Score([]Sequence{{tokens, target}}, 0.8)
	if err != nil {
		t.Fatal(err)
	}
	for i, g := range got {
		if g.LogProb != want.LogProb[i] || g.Entropy != want.Entropy[i] {
			t.Fatalf("token %d: sampled %v, scored %v %v", i, g, want.LogProb[i], want.Entropy[i])
		}
	}
}

func TestSamplingFollowsTheDistribution(t *testing.T) {
	m := smallModel(t, "auto")
	for _, o := range []Sampling{{Temperature: 1}, {Temperature: 2, TopP: 0.6}, {Temperature: 0}} {
		const n = 20000
		d, _ := NewDecoder(m, 1)
		counts := make([]float64, m.cfg.Vocab)
		var probs []float64
		for i := range n {
			d.Reset()
			s, _ := d.New(uint64(i))
			if err := d.Push(s, 7); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				d.Step()
				probs = distribution(widen(d.Logits(s)), o)
			} else {
				// The same logits again: skip the work.
				d.slots[s].n, d.slots[s].pending, d.slots[s].fresh = 1, d.slots[s].pending[:0], true
			}
			got, err := d.Sample(s, o)
			if err != nil {
				t.Fatal(err)
			}
			counts[got.Token]++
		}
		var chi float64
		cells := 0
		for i, p := range probs {
			if p == 0 && counts[i] > 0 {
				t.Fatalf("%+v: token %d was drawn, its probability is 0", o, i)
			}
			if p*n >= 5 {
				chi += (counts[i] - p*n) * (counts[i] - p*n) / (p * n)
				cells++
			}
		}
		if limit := float64(cells) + 5*math.Sqrt(2*float64(cells)); chi > limit {
			t.Errorf("%+v: chi-square %.1f over %d cells, limit %.1f", o, chi, cells, limit)
		}
	}
}

// distribution is what Sampling should draw from, by plain loops.
func distribution(z []float64, o Sampling) []float64 {
	order := make([]int, len(z))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		if z[a] > z[b] {
			return -1
		}
		return 1
	})
	p := make([]float64, len(z))
	if o.Temperature == 0 {
		p[order[0]] = 1
		return p
	}
	var total float64
	for i := range z {
		p[i] = math.Exp((z[i] - z[order[0]]) / o.Temperature)
		total += p[i]
	}
	topP := o.TopP
	if topP == 0 {
		topP = 1
	}
	var kept float64
	for _, i := range order {
		if kept/total >= topP {
			p[i] = 0
			continue
		}
		kept += p[i]
	}
	for i := range p {
		p[i] /= kept
	}
	return p
}

func TestDecoderRefusesMisuse(t *testing.T) {
	m := smallModel(t, "generic")
	d, err := NewDecoder(m, 1)
	if err != nil {
		t.Fatal(err)
	}
	s, _ := d.New(1)
	if _, err := d.New(2); err == nil {
		t.Error("a full decoder gave a slot")
	}
	if _, err := d.Fork(s, 2); err == nil {
		t.Error("a full decoder forked")
	}
	if _, err := d.Sample(s, Sampling{}); err == nil {
		t.Error("sampled before any step")
	}
	if err := d.Push(s, 37); err == nil {
		t.Error("a token outside the vocabulary was accepted")
	}
	if err := d.Push(s, make([]int32, 257)...); err == nil {
		t.Error("more tokens than MaxLen were accepted")
	}
	d.Free(s)
	if err := d.Push(s, 1); err == nil {
		t.Error("a freed slot was accepted")
	}
	if err := d.Push(Slot(7), 1); err == nil {
		t.Error("slot 7 of 1 was accepted")
	}
	if _, err := NewDecoder(m, 0); err == nil {
		t.Error("a decoder without slots was made")
	}
}

// One slot asked for many streams gives what forks with those streams give.
func TestSampleEachIsWhatForksSample(t *testing.T) {
	for _, kernel := range Kernels() {
		m := smallModel(t, kernel)
		d, _ := NewDecoder(m, 20)
		root, _ := d.New(1)
		if err := d.Push(root, 3, 1, 4); err != nil {
			t.Fatal(err)
		}
		d.Step()
		streams := make([]uint64, 16)
		for i := range streams {
			streams[i] = Stream(2, uint64(i))
		}
		for name, o := range map[string]Sampling{"whole": {Temperature: 1.7}, "top-p": {Temperature: 2, TopP: 0.95}, "greedy": {}} {
			got := make([]Sampled[float32], len(streams))
			if err := d.SampleEach(root, o, streams, got); err != nil {
				t.Fatal(err)
			}
			differ := false
			for i, stream := range streams {
				f, err := d.Fork(root, stream)
				if err != nil {
					t.Fatal(err)
				}
				want, err := d.Sample(f, o)
				if err != nil || got[i] != want {
					t.Errorf("%s, %s: stream %d samples %+v, its fork %+v (%v)", kernel, name, i, got[i], want, err)
				}
				differ = differ || got[i] != got[0]
				d.Free(f)
			}
			if differ != (name != "greedy") {
				t.Errorf("%s, %s: streams differ: %v", kernel, name, differ)
			}
		}
	}
}
