//go:build unix

package nn

import (
	"fmt"
	"math"
	"testing"
	"time"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// gemmShapes are products a small and a large model make, as M×K×N.
var gemmShapes = [][3]int{{64, 128, 512}, {512, 64, 64}, {512, 64, 256}, {512, 256, 64}, {512, 96, 384}, {512, 128, 512}, {2048, 64, 256}, {4096, 128, 512}}

// reportGFLOPs runs a product and reports the rate of the fastest call, which
// other load on the machine disturbs least.
func reportGFLOPs(b *testing.B, m, k, n int, product func()) {
	best := math.Inf(1)
	for b.Loop() {
		start := time.Now()
		product()
		best = min(best, time.Since(start).Seconds())
	}
	b.ReportMetric(2*float64(m)*float64(k)*float64(n)/best/1e9, "GFLOP/s")
	b.ReportMetric(0, "ns/op")
}

func BenchmarkGEMM(b *testing.B) {
	for _, s := range gemmShapes {
		m, k, n := s[0], s[1], s[2]
		x, w, dy := randoms(1, m*k), randoms(2, k*n), randoms(3, m*n)
		y, dw := make([]float32, m*n), make([]float32, k*n)
		for _, name := range Kernels() {
			kern, _, _ := kernelsFor[float32](name)
			b.Run(fmt.Sprintf("%dx%dx%d/%s/forward", m, k, n, name), func(b *testing.B) {
				reportGFLOPs(b, m, k, n, func() { kern.gemm(y, n, x, k, 1, w, panel, panel*k, m, n, k, false) })
			})
			b.Run(fmt.Sprintf("%dx%dx%d/%s/weight", m, k, n, name), func(b *testing.B) {
				reportGFLOPs(b, m, k, n, func() { kern.gemm(dw, n, x, 1, k, dy, n, panel, k, n, m, true) })
			})
		}
		b.Run(fmt.Sprintf("%dx%dx%d/gonum/forward", m, k, n), func(b *testing.B) {
			reportGFLOPs(b, m, k, n, func() {
				gonum.Implementation{}.Sgemm(blas.NoTrans, blas.NoTrans, m, n, k, 1, x, k, w, n, 0, y, n)
			})
		})
	}
}

// benchSizes are measured with 256 tokens of vocabulary, as in the feasibility
// figures, so that the two can be laid side by side.
var benchSizes = []string{"small", "medium", "large", "xl"}

func benchModel(b *testing.B, size, kernel string) *Model {
	cfg, err := SizeConfig(size, 256)
	if err != nil {
		b.Fatal(err)
	}
	m, err := NewModel(cfg, kernel, 1)
	if err != nil {
		b.Fatal(err)
	}
	return m
}

// episodes makes n sequences of a length with every share-th token a target.
func episodes(c Config, n, length, share int) []Sequence {
	var out []Sequence
	for i := range n {
		s := Sequence{Tokens: make([]int32, length), Target: make([]bool, length)}
		for j := range length {
			s.Tokens[j] = int32(Stream(7, uint64(i), uint64(j)) % uint64(c.Vocab))
			s.Target[j] = j > 0 && j%share == 0
		}
		out = append(out, s)
	}
	return out
}

// reportTokens runs one round after another and reports tokens per second of
// processor time in the fastest.
func reportTokens(b *testing.B, tokens int, round func()) {
	best := math.Inf(1)
	for b.Loop() {
		start := cpuSeconds(b)
		round()
		best = min(best, cpuSeconds(b)-start)
	}
	b.ReportMetric(float64(tokens)/best, "tok/cpu-s")
	b.ReportMetric(1000*best, "cpu-ms/round")
}

// BenchmarkTrain measures forward, backward and update: "long" is 16 sequences
// of 300 tokens, all targets; "episode" is an RL step's 128 sequences of 117
// tokens with 44 targets.
func BenchmarkTrain(b *testing.B) {
	for _, kernel := range Kernels() {
		for _, size := range benchSizes {
			m := benchModel(b, size, kernel)
			long, short := episodes(m.cfg, 16, 300, 1), episodes(m.cfg, 128, 117, 1)
			for i := range short {
				for j := range short[i].Target {
					short[i].Target[j] = j > 12 && j%7 > 3 || j == 20 || j == 116
				}
			}
			for _, c := range []struct {
				name string
				seqs []Sequence
			}{{"long", long}, {"episode", short}} {
				b.Run(kernel+"/"+size+"/"+c.name, func(b *testing.B) {
					tr, err := NewTrainer(m.Clone(), AdamW{MaxNorm: 1})
					if err != nil {
						b.Fatal(err)
					}
					reportTokens(b, len(c.seqs)*len(c.seqs[0].Tokens), func() {
						err := tr.Accumulate(c.seqs, 1, func(c *Chunk[float32]) error {
							for i := range c.DLogProb {
								c.DLogProb[i] = -0.001
							}
							return nil
						})
						if err != nil {
							b.Fatal(err)
						}
						if _, err := tr.Step(1e-4); err != nil {
							b.Fatal(err)
						}
					})
				})
			}
		}
	}
}

// BenchmarkSample measures token-by-token sampling at temperature 1 from a
// prompt of 13 tokens, in many sequences at once, to a length of 117 or 300.
func BenchmarkSample(b *testing.B) {
	for _, kernel := range Kernels() {
		for _, size := range benchSizes {
			for _, c := range [][2]int{{8, 117}, {16, 117}, {32, 117}, {128, 117}, {64, 300}, {128, 300}} {
				b.Run(fmt.Sprintf("%s/%s/%dx%d", kernel, size, c[0], c[1]), func(b *testing.B) {
					m := benchModel(b, size, kernel)
					d, err := NewDecoder(m, c[0])
					if err != nil {
						b.Fatal(err)
					}
					reportTokens(b, c[0]*(c[1]-13), func() { sampleAll(b, d, c[0], c[1]) })
				})
			}
		}
	}
}

func sampleAll(tb testing.TB, d *Decoder, n, length int) [][]int32 {
	tb.Helper()
	d.Reset()
	out := make([][]int32, n)
	slots := make([]Slot, n)
	prompt := []int32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}
	for i := range slots {
		var err error
		if i == 0 {
			slots[0], err = d.New(Stream(1, 0))
			if err == nil {
				err = d.Push(slots[0], prompt...)
			}
			d.Step()
		} else {
			slots[i], err = d.Fork(slots[0], Stream(1, uint64(i)))
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
	for range length - len(prompt) {
		for i, s := range slots {
			got, err := d.Sample(s, Sampling{Temperature: 1})
			if err != nil {
				tb.Fatal(err)
			}
			out[i] = append(out[i], got.Token)
			if err := d.Push(s, got.Token); err != nil {
				tb.Fatal(err)
			}
		}
		d.Step()
	}
	return out
}
