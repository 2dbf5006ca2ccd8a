package nn

import (
	"math"

	"golang.org/x/sys/cpu"
)

//go:generate go run ./asmgen

// assemblyKernels lists the assembly kernels that this CPU can run, best first.
func assemblyKernels() []namedKernels {
	var out []namedKernels
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		out = append(out, namedKernels{"avx512", wrap(avx512())})
	}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		out = append(out, namedKernels{"avx2", wrap(avx2())})
	}
	return out
}

// assembly is one instruction set's functions, as asmgen writes them.
type assembly struct {
	gemm           func(c *float32, ldc int, a *float32, ars, acs int, b *float32, ldb, rows, k, accumulate int)
	softmax        func(x *float32, n int, scale float32)
	softmaxBack    func(dp, p *float32, n int, scale float32)
	logSoftmax     func(z *float32, n int, scale float32) (top, sum, weighted float32)
	logSoftmaxBack func(z *float32, n int, scale, lse, entropy, g, h float32)
	normRows       func(y, r, x *float32, rows, d int, inverse, eps float32)
	normBack       func(dx, dy, y, r *float32, rows, d int, inverse float32)
	relu2          func(h, u *float32, n int)
	relu2Back      func(dh, u *float32, n int)
	add            func(dst, src *float32, n int)
	rotate         func(x *float32, ld int, pos *int32, rows int, cos, sin *float32, sign float32)
	adam           func(p, g, m, v *float32, n int, s *adamStep[float32])
	sumSquares     func(x *float32, n int) float64
	scores4        func(scores, q, keys, values *float32, groups int)
	scores2        func(scores, q, keys, values *float32, groups int)
	scores1        func(scores, q, keys, values *float32, groups int)
	values         func(out, p, v *float32, ldv, n int)
	transpose8     func(dst, src *float32, ld, groups int)
}

// The assembly works on whole groups of 16 numbers. Slices of the model have
// such lengths; where a row's useful part has not, its tail is filled with
// numbers that vanish.
func wrap(a assembly) kernels[float32] {
	k := genericKernels[float32]()
	k.gemm = func(c []float32, ldc int, x []float32, ars, acs int, b []float32, ldb, bps int, m, n, kk int, accumulate bool) {
		if m == 0 || n == 0 {
			return
		}
		if kk == 0 {
			genericGEMM(c, ldc, x, ars, acs, b, ldb, bps, m, n, kk, accumulate)
			return
		}
		acc := 0
		if accumulate {
			acc = 1
		}
		// The last elements that will be touched, for the bounds check.
		_, _, _ = c[(m-1)*ldc+n-1], x[(m-1)*ars+(kk-1)*acs], b[(n/panel-1)*bps+(kk-1)*ldb+panel-1]
		for j := 0; j < n; j += panel {
			a.gemm(&c[j], 4*ldc, &x[0], 4*ars, 4*acs, &b[j/panel*bps], 4*ldb, m, kk, acc)
		}
	}
	k.softmax = func(row []float32, n int, scale float32) {
		wide := fillTail(row, n, float32(math.Inf(-1)))
		a.softmax(&row[0], wide, scale)
		clear(row[wide:])
	}
	k.softmaxBack = func(dp, p []float32, scale float32) { a.softmaxBack(&dp[0], &p[0], len(p), scale) }
	k.logSoftmax = func(z []float32, n int, scale float32) (lse, entropy float32) {
		wide := fillTail(z, n, max(-1e30/scale, -math.MaxFloat32))
		top, sum, weighted := a.logSoftmax(&z[0], wide, scale)
		log := float32(math.Log(float64(sum)))
		return top + log, log - weighted/sum
	}
	k.logSoftmaxBack = func(z []float32, n int, scale, lse, entropy, g, h float32) {
		a.logSoftmaxBack(&z[0], roundUp(n, 16), scale, lse, entropy, g, h)
		clear(z[n:])
	}
	k.normRows = func(y, r, x []float32, rows, d int) {
		if rows > 0 {
			_, _, _ = y[rows*d-1], r[rows-1], x[rows*d-1]
			a.normRows(&y[0], &r[0], &x[0], rows, d, 1/float32(d), normEps)
		}
	}
	k.normBack = func(dx, dy, y, r []float32, rows, d int) {
		if rows > 0 {
			_, _, _, _ = dx[rows*d-1], dy[rows*d-1], y[rows*d-1], r[rows-1]
			a.normBack(&dx[0], &dy[0], &y[0], &r[0], rows, d, 1/float32(d))
		}
	}
	wrapElementwise(&k, a)
	wrapAttention(&k, a)
	return k
}

func wrapElementwise(k *kernels[float32], a assembly) {
	k.relu2 = func(h, u []float32) {
		if n := len(u); n > 0 {
			_ = h[n-1]
			a.relu2(&h[0], &u[0], n)
		}
	}
	k.relu2Back = func(dh, u []float32) {
		if n := len(u); n > 0 {
			_ = dh[n-1]
			a.relu2Back(&dh[0], &u[0], n)
		}
	}
	k.add = func(dst, src []float32) {
		_ = dst[len(src)-1]
		a.add(&dst[0], &src[0], len(src))
	}
	k.rotate = func(x []float32, ld int, pos []int32, cos, sin []float32, sign float32) {
		if n := len(pos); n > 0 {
			_ = x[(n-1)*ld+HeadDim-1]
			a.rotate(&x[0], 4*ld, &pos[0], n, &cos[0], &sin[0], sign)
		}
	}
	k.adam = func(p, g, m, v []float32, s *adamStep[float32]) {
		n := len(g)
		_, _, _ = p[n-1], m[n-1], v[n-1]
		a.adam(&p[0], &g[0], &m[0], &v[0], n, s)
	}
	k.sumSquares = func(x []float32) float64 { return a.sumSquares(&x[0], len(x)) }
}

func wrapAttention(k *kernels[float32], a assembly) {
	k.transpose = func(dst, src []float32, ld, n int) {
		whole := n / 8 * 8
		for j := 0; j < whole; j += panel {
			a.transpose8(&dst[j*HeadDim], &src[j*ld], 4*ld, min(panel, whole-j)/8)
		}
		transposeTail(dst, src, ld, whole, n)
	}
	k.attend = func(out, q, keys, values []float32, ldv, n int, scale float32, scores []float32) {
		blocks := (n + keyBlock - 1) / keyBlock
		_, _, _ = scores[blocks*keyBlock-1], keys[blocks*keyBlock*HeadDim-1], values[(n-1)*ldv+HeadDim-1]
		a.scoreBlocks(scores, q, keys, values, ldv, blocks)
		fillTail(scores[:blocks*keyBlock], n, float32(math.Inf(-1)))
		a.softmax(&scores[0], blocks*keyBlock, scale)
		a.values(&out[0], &scores[0], &values[0], 4*ldv, n)
	}
}

// scoreBlocks scores keys four blocks at a time, then two, then one.
func (a *assembly) scoreBlocks(scores, q, keys, values []float32, ldv, blocks int) {
	at := 0
	score := func(f func(scores, q, keys, values *float32, groups int), groups, size int) {
		if groups > 0 {
			f(&scores[at], &q[0], &keys[at*HeadDim], &values[min(at*ldv, len(values)-1)], groups)
			at += groups * size * keyBlock
		}
	}
	score(a.scores4, blocks/4, 4)
	score(a.scores2, blocks%4/2, 2)
	score(a.scores1, blocks%2, 1)
}

// fillTail writes v from n up to the next multiple of 16, which it returns.
func fillTail(row []float32, n int, v float32) int {
	wide := roundUp(n, 16)
	tail := row[n:wide]
	for i := range tail {
		tail[i] = v
	}
	return wide
}
