package nn

// The functions that asmgen writes. Their contracts stand above each function
// in asmgen's templates.

//go:noescape
func gemm8x32avx512(a, b, c *float32, ars, acs, ldb, ldc, k, tiles, accumulate int)

//go:noescape
func gemm4x32avx512(a, b, c *float32, ars, acs, ldb, ldc, k, tiles, accumulate int)

//go:noescape
func gemm2x32avx512(a, b, c *float32, ars, acs, ldb, ldc, k, tiles, accumulate int)

//go:noescape
func gemm1x32avx512(a, b, c *float32, ars, acs, ldb, ldc, k, tiles, accumulate int)

//go:noescape
func gemm6x32avx2(a, b, c *float32, ars, acs, ldb, ldc, k, tiles, accumulate int)

//go:noescape
func gemm4x32avx2(a, b, c *float32, ars, acs, ldb, ldc, k, tiles, accumulate int)

//go:noescape
func gemm2x32avx2(a, b, c *float32, ars, acs, ldb, ldc, k, tiles, accumulate int)

//go:noescape
func gemm1x32avx2(a, b, c *float32, ars, acs, ldb, ldc, k, tiles, accumulate int)

//go:noescape
func softmaxavx512(x *float32, n int, scale float32)

//go:noescape
func softmaxBackavx512(dp, p *float32, n int, scale float32)

//go:noescape
func logSoftmaxavx512(z *float32, n int, scale float32) (top, sum, weighted float32)

//go:noescape
func logSoftmaxBackavx512(z *float32, n int, scale, lse, entropy, dlp, dent float32)

//go:noescape
func normRowsavx512(y, r, x *float32, rows, d int, inverse, eps float32)

//go:noescape
func normBackavx512(dx, dy, y, r *float32, rows, d int, inverse float32)

//go:noescape
func relu2avx512(h, u *float32, n int)

//go:noescape
func relu2Backavx512(dh, u *float32, n int)

//go:noescape
func addavx512(dst, src *float32, n int)

//go:noescape
func rotateavx512(x *float32, ld int, pos *int32, rows int, cos, sin *float32, sign float32)

//go:noescape
func adamavx512(p, grad, m, v *float32, n int, s *adamStep[float32])

//go:noescape
func sumSquaresavx512(x *float32, n int) float64

//go:noescape
func scores4avx512(scores, q, keys, values *float32, groups int)

//go:noescape
func scores2avx512(scores, q, keys, values *float32, groups int)

//go:noescape
func scores1avx512(scores, q, keys, values *float32, groups int)

//go:noescape
func valuesavx512(out, p, v *float32, ldv, n int)

//go:noescape
func transpose8avx512(dst, src *float32, ld, groups int)

func avx512() assembly {
	return assembly{
		gemm: gemmRowsavx512, softmax: softmaxavx512, softmaxBack: softmaxBackavx512,
		logSoftmax: logSoftmaxavx512, logSoftmaxBack: logSoftmaxBackavx512,
		normRows: normRowsavx512, normBack: normBackavx512, relu2: relu2avx512, relu2Back: relu2Backavx512,
		add: addavx512, rotate: rotateavx512, adam: adamavx512, sumSquares: sumSquaresavx512,
		scores4: scores4avx512, scores2: scores2avx512, scores1: scores1avx512, values: valuesavx512, transpose8: transpose8avx512,
	}
}

//go:noescape
func softmaxavx2(x *float32, n int, scale float32)

//go:noescape
func softmaxBackavx2(dp, p *float32, n int, scale float32)

//go:noescape
func logSoftmaxavx2(z *float32, n int, scale float32) (top, sum, weighted float32)

//go:noescape
func logSoftmaxBackavx2(z *float32, n int, scale, lse, entropy, dlp, dent float32)

//go:noescape
func normRowsavx2(y, r, x *float32, rows, d int, inverse, eps float32)

//go:noescape
func normBackavx2(dx, dy, y, r *float32, rows, d int, inverse float32)

//go:noescape
func relu2avx2(h, u *float32, n int)

//go:noescape
func relu2Backavx2(dh, u *float32, n int)

//go:noescape
func addavx2(dst, src *float32, n int)

//go:noescape
func rotateavx2(x *float32, ld int, pos *int32, rows int, cos, sin *float32, sign float32)

//go:noescape
func adamavx2(p, grad, m, v *float32, n int, s *adamStep[float32])

//go:noescape
func sumSquaresavx2(x *float32, n int) float64

//go:noescape
func scores4avx2(scores, q, keys, values *float32, groups int)

//go:noescape
func scores2avx2(scores, q, keys, values *float32, groups int)

//go:noescape
func scores1avx2(scores, q, keys, values *float32, groups int)

//go:noescape
func valuesavx2(out, p, v *float32, ldv, n int)

//go:noescape
func transpose8avx2(dst, src *float32, ld, groups int)

func avx2() assembly {
	return assembly{
		gemm: gemmRowsavx2, softmax: softmaxavx2, softmaxBack: softmaxBackavx2,
		logSoftmax: logSoftmaxavx2, logSoftmaxBack: logSoftmaxBackavx2,
		normRows: normRowsavx2, normBack: normBackavx2, relu2: relu2avx2, relu2Back: relu2Backavx2,
		add: addavx2, rotate: rotateavx2, adam: adamavx2, sumSquares: sumSquaresavx2,
		scores4: scores4avx2, scores2: scores2avx2, scores1: scores1avx2, values: valuesavx2, transpose8: transpose8avx2,
	}
}
