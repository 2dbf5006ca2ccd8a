package nn

import "math"

func genericKernels[F Float]() kernels[F] {
	return kernels[F]{
		gemm: genericGEMM[F], softmax: genericSoftmax[F], softmaxBack: genericSoftmaxBack[F],
		logSoftmax: genericLogSoftmax[F], logSoftmaxBack: genericLogSoftmaxBack[F],
		normRows: genericNormRows[F], normBack: genericNormBack[F],
		relu2: genericReLU2[F], relu2Back: genericReLU2Back[F],
		rotate: genericRotate[F], add: genericAdd[F], transpose: genericTranspose[F],
		attend: genericAttend[F], adam: genericAdam[F], sumSquares: genericSumSquares[F],
	}
}

// genericGEMM works on one row and one panel at a time: 32 sums stay in a
// local array while a column of A and a panel row of B stream past.
func genericGEMM[F Float](c []F, ldc int, a []F, ars, acs int, b []F, ldb, bps int, m, n, k int, accumulate bool) {
	for j := 0; j < n; j += panel {
		bp := b[j/panel*bps:]
		for i := range m {
			row := c[i*ldc+j : i*ldc+j+panel]
			var sum [panel]F
			if accumulate {
				copy(sum[:], row)
			}
			for p := range k {
				v := a[i*ars+p*acs]
				src := (*[panel]F)(bp[p*ldb:])
				for x := range sum {
					sum[x] += v * src[x]
				}
			}
			copy(row, sum[:])
		}
	}
}

func exp[F Float](x F) F { return F(math.Exp(float64(x))) }

func genericSoftmax[F Float](row []F, n int, scale F) {
	top := row[0]
	for _, v := range row[1:n] {
		top = max(top, v)
	}
	var sum F
	for i, v := range row[:n] {
		e := exp((v - top) * scale)
		row[i] = e
		sum += e
	}
	inv := 1 / sum
	for i := range row[:n] {
		row[i] *= inv
	}
	clear(row[n:])
}

func genericSoftmaxBack[F Float](dp, p []F, scale F) {
	var dot F
	for i, v := range p {
		dot += v * dp[i]
	}
	for i, v := range p {
		dp[i] = scale * v * (dp[i] - dot)
	}
}

func genericLogSoftmax[F Float](z []F, n int, scale F) (lse, entropy F) {
	top := F(math.Inf(-1))
	for i := range z[:n] {
		z[i] *= scale
		top = max(top, z[i])
	}
	var sum, weighted F
	for _, v := range z[:n] {
		e := exp(v - top)
		sum += e
		weighted += e * (v - top)
	}
	log := F(math.Log(float64(sum)))
	return top + log, log - weighted/sum
}

func genericLogSoftmaxBack[F Float](z []F, n int, scale, lse, entropy, g, h F) {
	for i, v := range z[:n] {
		logp := v - lse
		z[i] = -scale * exp(logp) * (g + h*(logp+entropy))
	}
	clear(z[n:])
}

func genericNormRows[F Float](y, r, x []F, rows, d int) {
	for i := range rows {
		xi, yi := x[i*d:i*d+d], y[i*d:i*d+d]
		var sum F
		for _, v := range xi {
			sum += v * v
		}
		inv := F(1 / math.Sqrt(float64(sum)/float64(d)+normEps))
		r[i] = inv
		for j, v := range xi {
			yi[j] = v * inv
		}
	}
}

func genericNormBack[F Float](dx, dy, y, r []F, rows, d int) {
	for i := range rows {
		dxi, dyi, yi := dx[i*d:i*d+d], dy[i*d:i*d+d], y[i*d:i*d+d]
		var dot F
		for j, v := range dyi {
			dot += v * yi[j]
		}
		dot /= F(d)
		for j, v := range dyi {
			dxi[j] += r[i] * (v - yi[j]*dot)
		}
	}
}

func genericReLU2[F Float](h, u []F) {
	for i, v := range u {
		v = max(v, 0)
		u[i] = v
		h[i] = v * v
	}
}

func genericReLU2Back[F Float](dh, u []F) {
	for i, v := range u {
		dh[i] *= 2 * v
	}
}

func genericRotate[F Float](x []F, ld int, pos []int32, cos, sin []F, sign F) {
	const half = HeadDim / 2
	for r, p := range pos {
		lo, hi := x[r*ld:r*ld+half], x[r*ld+half:r*ld+HeadDim]
		for i, c := range cos[int(p)*half : int(p+1)*half] {
			s := sin[int(p)*half+i] * sign
			a, b := lo[i], hi[i]
			lo[i] = a*c - b*s
			hi[i] = a*s + b*c
		}
	}
}

func genericAdd[F Float](dst, src []F) {
	for i, v := range src {
		dst[i] += v
	}
}

func genericTranspose[F Float](dst, src []F, ld, n int) { transposeTail(dst, src, ld, 0, n) }

// transposeTail transposes rows from..n and pads with zeros.
func transposeTail[F Float](dst, src []F, ld, from, n int) {
	for j := from; j < n; j++ {
		row := src[j*ld : j*ld+HeadDim]
		col := dst[j/panel*panel*HeadDim+j%panel:]
		for c, v := range row {
			col[c*panel] = v
		}
	}
	for j := n; j < roundUp(n, panel); j++ {
		col := dst[j/panel*panel*HeadDim+j%panel:]
		for c := range HeadDim {
			col[c*panel] = 0
		}
	}
}

// keyBlock is the number of keys in one block of the decoder's cache.
const keyBlock = 16

func genericAttend[F Float](out, q, keys, values []F, ldv, n int, scale F, scores []F) {
	for j := range n {
		block := keys[j/keyBlock*keyBlock*HeadDim+j%keyBlock:]
		var s F
		for c, v := range q[:HeadDim] {
			s += v * block[c*keyBlock]
		}
		scores[j] = s
	}
	genericSoftmax(scores[:roundUp(n, keyBlock)], n, scale)
	var sum [HeadDim]F
	for j := range n {
		v := (*[HeadDim]F)(values[j*ldv:])
		p := scores[j]
		for c := range sum {
			sum[c] += p * v[c]
		}
	}
	copy(out, sum[:])
}

func genericAdam[F Float](p, g, m, v []F, s *adamStep[F]) {
	for i, gi := range g {
		gi *= s.clip
		m[i] = s.b1*m[i] + (1-s.b1)*gi
		v[i] = s.b2*v[i] + (1-s.b2)*gi*gi
		p[i] -= s.rate*m[i]/(F(math.Sqrt(float64(v[i])))*s.vscale+s.eps) + s.decay*p[i]
	}
}

func genericSumSquares[F Float](x []F) float64 {
	var sum float64
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	return sum
}
