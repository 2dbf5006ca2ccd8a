package nn

import (
	"math"
	"testing"
)

// randomSequences draws episodes of uneven lengths with uneven target marks.
func randomSequences(seed uint64, c Config, lengths ...int) []Sequence {
	var out []Sequence
	for i, n := range lengths {
		s := Sequence{Tokens: make([]int32, n), Target: make([]bool, n)}
		for j := range n {
			h := Stream(seed, uint64(i), uint64(j))
			s.Tokens[j] = int32(h % uint64(c.Vocab))
			s.Target[j] = j > 0 && h>>40%5 < 2
		}
		out = append(out, s)
	}
	return out
}

// testLoss is a smooth function of log-probabilities and entropies with
// different weights everywhere: Σ a·lp + b·lp² + c·H.
func testLoss(seqs []Sequence) (Loss[float64], func(Scores[float64]) float64) {
	coef := func(i, j int) (a, b, c float64) {
		h := Stream(5, uint64(i), uint64(j))
		return float64(h%7) - 3, float64(h>>8%5)/10 - 0.2, float64(h>>16%9)/4 - 1
	}
	loss := func(c *Chunk[float64]) error {
		c.UseEntropy = true
		for i := range c.Sequences() {
			lp, _ := c.Of(i)
			for j := range lp {
				k := c.Offsets[i] + j
				a, b, h := coef(c.First+i, j)
				c.DLogProb[k] = a + 2*b*lp[j]
				c.DEntropy[k] = h
			}
		}
		return nil
	}
	value := func(s Scores[float64]) (sum float64) {
		for i := range seqs {
			lp, ent := s.Of(i)
			for j := range lp {
				a, b, h := coef(i, j)
				sum += a*lp[j] + b*lp[j]*lp[j] + h*ent[j]
			}
		}
		return sum
	}
	return loss, value
}

func TestGradientsAgainstDifferences(t *testing.T) {
	cases := []struct {
		name    string
		cfg     Config
		lengths []int
	}{
		{"one layer one head", Config{Vocab: 11, Dim: 32, Layers: 1, Heads: 1, Hidden: 64, MaxLen: 128}, []int{5, 2, 9}},
		{"two layers one head", Config{Vocab: 11, Dim: 32, Layers: 2, Heads: 1, Hidden: 64, MaxLen: 128}, []int{7, 1, 12}},
		{"rotary heads", Config{Vocab: 37, Dim: 64, Layers: 2, Heads: 2, Hidden: 96, MaxLen: 128}, []int{40, 3, 11}},
		{"several query blocks", Config{Vocab: 13, Dim: 32, Layers: 3, Heads: 1, Hidden: 32, MaxLen: 256}, []int{150}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m, err := newModel[float64](c.cfg, "generic", 3)
			if err != nil {
				t.Fatal(err)
			}
			shake(m)
			tr, err := newTrainer(m, AdamW{})
			if err != nil {
				t.Fatal(err)
			}
			tr.chunk = 16
			seqs := randomSequences(9, c.cfg, c.lengths...)
			const temperature = 0.8
			loss, value := testLoss(seqs)
			if err := tr.Accumulate(seqs, temperature, loss); err != nil {
				t.Fatal(err)
			}
			for _, p := range m.Params() {
				checkParam(t, tr, p, seqs, temperature, value)
			}
		})
	}
}

// shake moves all weights off their structured start.
func shake(m *ModelOf[float64]) {
	n := &normals{stream: 77}
	for _, p := range m.params {
		for i := range p.Rows {
			for j := range p.UsedCols {
				m.slab[p.Offset+i*p.Cols+j] += 0.1 * n.next()
			}
		}
	}
	m.Refresh()
}

// checkParam compares some elements and one random direction of a parameter's
// gradient with central differences, to 1e-6 of the larger of value and 1.
func checkParam(t *testing.T, tr *TrainerOf[float64], p Param, seqs []Sequence, temperature float64, value func(Scores[float64]) float64) {
	t.Helper()
	m := tr.model
	w, g := viewOf(m.slab, p), viewOf(tr.grad, p)
	at := func(move func(sign float64)) float64 {
		old := append([]float64(nil), w...)
		defer func() { copy(w, old); m.Refresh() }()
		move(1)
		m.Refresh()
		s, err := tr.Score(seqs, temperature)
		if err != nil {
			t.Fatal(err)
		}
		return value(s)
	}
	const h = 1e-5
	compare := func(what string, got float64, move func(float64)) {
		t.Helper()
		hi := at(func(float64) { move(h) })
		lo := at(func(float64) { move(-h) })
		want := (hi - lo) / (2 * h)
		if diff := math.Abs(got - want); diff > 1e-6*max(1, math.Abs(want)) {
			t.Errorf("%s %s: gradient %.9g, difference quotient %.9g", p.Name, what, got, want)
		}
	}
	n := &normals{stream: uint64(p.Offset)}
	for k := range 4 {
		i := int(Stream(1, uint64(p.Offset), uint64(k)) % uint64(len(w)))
		if i%p.Cols >= p.UsedCols {
			continue
		}
		compare("element", g[i], func(s float64) { w[i] += s })
	}
	dir := make([]float64, len(w))
	var along float64
	for i := range dir {
		if i%p.Cols < p.UsedCols {
			dir[i] = n.next() / math.Sqrt(float64(len(w)))
			along += dir[i] * g[i]
		}
	}
	compare("direction", along, func(s float64) {
		for i, d := range dir {
			w[i] += s * d
		}
	})
}
