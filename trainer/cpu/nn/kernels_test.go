package nn

import (
	"fmt"
	"math"
	"testing"
)

// eachKernel runs a test with every float32 kernel of this machine.
func eachKernel(t *testing.T, test func(t *testing.T, k kernels[float32])) {
	for _, name := range Kernels() {
		t.Run(name, func(t *testing.T) {
			k, _, err := kernelsFor[float32](name)
			if err != nil {
				t.Fatal(err)
			}
			test(t, k)
		})
	}
}

func randoms(seed uint64, n int) []float32 {
	s := make([]float32, n)
	fill(s, &normals{stream: seed}, 1)
	return s
}

func widen(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

// near fails unless got equals want to a tolerance relative to max(1, |want|).
func near(t *testing.T, what string, got []float32, want []float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i, w := range want {
		if d := math.Abs(float64(got[i]) - w); !(d <= tolerance*max(1, math.Abs(w))) {
			t.Fatalf("%s: value %d is %v, want %v", what, i, got[i], w)
		}
	}
}

func TestGEMM(t *testing.T) {
	want := genericKernels[float64]().gemm
	eachKernel(t, func(t *testing.T, k kernels[float32]) {
		for _, m := range []int{1, 2, 3, 5, 6, 7, 8, 9, 12, 13, 14, 23, 64} {
			for _, kk := range []int{0, 1, 2, 31, 64, 130} {
				for _, n := range []int{32, 96} {
					for mode := range 8 {
						transposed, packed, acc := mode&1 > 0, mode&2 > 0, mode&4 > 0
						ars, acs, size := kk+3, 1, m*(kk+3)
						if transposed {
							ars, acs, size = 1, m+2, kk*(m+2)
						}
						ldb, bps := n+8, panel
						if packed {
							ldb, bps = panel, panel*kk
						}
						a, b, c := randoms(1, size+1), randoms(2, (kk+1)*(n+8)+panel), randoms(3, m*(n+5))
						wide := widen(c)
						want(wide, n+5, widen(a), ars, acs, widen(b), ldb, bps, m, n, kk, acc)
						k.gemm(c, n+5, a, ars, acs, b, ldb, bps, m, n, kk, acc)
						near(t, fmt.Sprintf("m %d n %d k %d mode %d", m, n, kk, mode), c, wide, 1e-5*math.Sqrt(float64(kk+1)))
					}
				}
			}
		}
	})
}

// A row's result must not depend on how many rows are computed with it.
func TestGEMMRowsAreIndependent(t *testing.T) {
	eachKernel(t, func(t *testing.T, k kernels[float32]) {
		const m, n, kk = 29, 64, 70
		a, b := randoms(1, m*kk), randoms(2, kk*n)
		all := make([]float32, m*n)
		k.gemm(all, n, a, kk, 1, b, n, panel, m, n, kk, false)
		for i := range m {
			one := make([]float32, n)
			k.gemm(one, n, a[i*kk:], kk, 1, b, n, panel, 1, n, kk, false)
			for j, v := range one {
				if v != all[i*n+j] {
					t.Fatalf("row %d column %d: alone %v, among others %v", i, j, v, all[i*n+j])
				}
			}
		}
	})
}

func TestSoftmaxKernels(t *testing.T) {
	g := genericKernels[float64]()
	eachKernel(t, func(t *testing.T, k kernels[float32]) {
		for _, n := range []int{1, 2, 15, 16, 17, 31, 32, 33, 60, 64, 100, 196} {
			wide := roundUp(n, panel)
			x := randoms(uint64(n), wide)
			for i := range x {
				x[i] *= 20
			}
			row, want := append([]float32(nil), x...), widen(x)
			k.softmax(row, n, 0.7)
			g.softmax(want, n, 0.7)
			near(t, fmt.Sprint("softmax ", n), row, want, 2e-6)
			for i := n; i < wide; i++ {
				if row[i] != 0 {
					t.Fatalf("softmax %d: tail %v, want 0", n, row[i])
				}
			}

			dp := randoms(5, wide)
			wantDP := widen(dp)
			g.softmaxBack(wantDP, widen(row), 0.3)
			k.softmaxBack(dp, row, 0.3)
			near(t, fmt.Sprint("softmaxBack ", n), dp, wantDP, 2e-6)

			for _, scale := range []float32{1, 1e-3, 3, 50} {
				z, wantZ := append([]float32(nil), x...), widen(x)
				lse, ent := k.logSoftmax(z, n, scale)
				wantLSE, wantEnt := g.logSoftmax(wantZ, n, float64(scale))
				near(t, fmt.Sprint("logSoftmax ", n, scale), []float32{lse, ent}, []float64{wantLSE, wantEnt}, 3e-5)
				near(t, fmt.Sprint("scaled ", n, scale), z[:n], wantZ[:n], 1e-6)
				k.logSoftmaxBack(z, n, 1.5, lse, ent, -0.7, 0.4)
				g.logSoftmaxBack(wantZ, n, 1.5, wantLSE, wantEnt, -0.7, 0.4)
				near(t, fmt.Sprint("logSoftmaxBack ", n, scale), z, wantZ, 2e-4)
			}
		}
	})
}

func TestExpAccuracy(t *testing.T) {
	eachKernel(t, func(t *testing.T, k kernels[float32]) {
		for at := float32(0); at > -87; at -= 0.0137 {
			z := make([]float32, 16)
			z[1] = at
			k.logSoftmaxBack(z, 2, 1, 0, 0, -1, 0)
			want := math.Exp(float64(at))
			if d := math.Abs(float64(z[1])/want - 1); d > 4e-7 {
				t.Fatalf("exp(%v) = %v, want %v (relative error %.2g)", at, z[1], want, d)
			}
		}
	})
}

func TestRowKernels(t *testing.T) {
	g := genericKernels[float64]()
	eachKernel(t, func(t *testing.T, k kernels[float32]) {
		for _, d := range []int{32, 64, 96, 192} {
			const rows = 7
			x := randoms(1, rows*d)
			y, r := make([]float32, rows*d), make([]float32, rows)
			wantY, wantR := make([]float64, rows*d), make([]float64, rows)
			k.normRows(y, r, x, rows, d)
			g.normRows(wantY, wantR, widen(x), rows, d)
			near(t, "normRows", y, wantY, 1e-6)
			near(t, "normRows scale", r, wantR, 1e-6)

			dx, dy := randoms(2, rows*d), randoms(3, rows*d)
			want := widen(dx)
			g.normBack(want, widen(dy), wantY, wantR, rows, d)
			k.normBack(dx, dy, y, r, rows, d)
			near(t, "normBack", dx, want, 2e-6)

			u, h := randoms(4, rows*d), make([]float32, rows*d)
			wantU, wantH := widen(u), make([]float64, rows*d)
			g.relu2(wantH, wantU)
			k.relu2(h, u)
			near(t, "relu2", h, wantH, 1e-6)
			near(t, "relu2 kept", u, wantU, 0)
			wantD := widen(dy)
			g.relu2Back(wantD, wantU)
			k.relu2Back(dy, u)
			near(t, "relu2Back", dy, wantD, 1e-6)

			sum := widen(x)
			g.add(sum, widen(h))
			k.add(x, h)
			near(t, "add", x, sum, 1e-6)
			if got, want := k.sumSquares(x), g.sumSquares(widen(x)); math.Abs(got-want) > 1e-9*want {
				t.Fatalf("sumSquares = %v, want %v", got, want)
			}
		}
	})
}

func TestRotateAndTranspose(t *testing.T) {
	m64, err := emptyModel[float64](Config{Vocab: 2, Dim: 32, Layers: 1, Heads: 1, Hidden: 32, MaxLen: 64}, "generic")
	if err != nil {
		t.Fatal(err)
	}
	m32, _ := emptyModel[float32](m64.cfg, "generic")
	eachKernel(t, func(t *testing.T, k kernels[float32]) {
		const ld, rows = 40, 21
		pos := make([]int32, rows)
		for i := range pos {
			pos[i] = int32(i*3) % 64
		}
		x := randoms(1, ld*rows)
		want := widen(x)
		m64.k.rotate(want, ld, pos, m64.cos, m64.sin, 1)
		k.rotate(x, ld, pos, m32.cos, m32.sin, 1)
		near(t, "rotate", x, want, 1e-6)
		for _, n := range []int{1, 7, 8, 9, 21, 32, 33, 41, 64, 70} {
			src := randoms(2, n*ld)
			dst := randoms(3, roundUp(n, panel)*HeadDim)
			want := widen(dst)
			m64.k.transpose(want, widen(src), ld, n)
			k.transpose(dst, src, ld, n)
			near(t, fmt.Sprint("transpose ", n), dst, want, 0)
		}
	})
}

func TestAttendKernel(t *testing.T) {
	g := genericKernels[float64]()
	eachKernel(t, func(t *testing.T, k kernels[float32]) {
		for _, n := range []int{1, 5, 16, 17, 63, 64, 65, 128, 150} {
			wide := roundUp(n, keyBlock)
			q, keys, values := randoms(1, HeadDim), randoms(2, wide*HeadDim), randoms(3, n*64)
			out, scores := make([]float32, HeadDim), make([]float32, wide)
			want := make([]float64, HeadDim)
			g.attend(want, widen(q), widen(keys), widen(values), 64, n, 0.2, make([]float64, wide))
			k.attend(out, q, keys, values, 64, n, 0.2, scores)
			near(t, fmt.Sprint("attend ", n), out, want, 3e-6)
		}
	})
}

func TestAdamKernel(t *testing.T) {
	g := genericKernels[float64]()
	eachKernel(t, func(t *testing.T, k kernels[float32]) {
		p, grad, m := randoms(1, 64), randoms(2, 64), randoms(3, 64)
		v := randoms(4, 64)
		for i := range v {
			v[i] *= v[i]
		}
		wp, wm, wv := widen(p), widen(m), widen(v)
		g.adam(wp, widen(grad), wm, wv, &adamStep[float64]{0.5, 0.9, 0.99, 0.01, 1.3, 1e-8, 0.002})
		k.adam(p, grad, m, v, &adamStep[float32]{0.5, 0.9, 0.99, 0.01, 1.3, 1e-8, 0.002})
		near(t, "adam parameters", p, wp, 1e-6)
		near(t, "adam first moment", m, wm, 1e-6)
		near(t, "adam second moment", v, wv, 1e-6)
	})
}

func TestUnknownKernel(t *testing.T) {
	if _, err := NewModel(Config{Vocab: 8, Dim: 32, Layers: 1, Heads: 1, Hidden: 32, MaxLen: 8}, "mmx", 1); err == nil {
		t.Fatal("kernel \"mmx\" was accepted")
	}
}
