package nn

import "unsafe"

// gemmRowsavx512 covers the rows of one panel by tiles of 8, 4, 2 and 1.
func gemmRowsavx512(c *float32, ldc int, a *float32, ars, acs int, b *float32, ldb, rows, k, accumulate int) {
	if n := rows / 8; n > 0 {
		gemm8x32avx512(a, b, c, ars, acs, ldb, ldc, k, n, accumulate)
		if rows %= 8; rows == 0 {
			return
		}
		a, c = forward(a, 8*n*ars), forward(c, 8*n*ldc)
	}
	if rows >= 4 {
		gemm4x32avx512(a, b, c, ars, acs, ldb, ldc, k, 1, accumulate)
		if rows -= 4; rows == 0 {
			return
		}
		a, c = forward(a, 4*ars), forward(c, 4*ldc)
	}
	if rows >= 2 {
		gemm2x32avx512(a, b, c, ars, acs, ldb, ldc, k, 1, accumulate)
		if rows -= 2; rows == 0 {
			return
		}
		a, c = forward(a, 2*ars), forward(c, 2*ldc)
	}
	if rows > 0 {
		gemm1x32avx512(a, b, c, ars, acs, ldb, ldc, k, 1, accumulate)
	}
}

// gemmRowsavx2 covers the rows of one panel by tiles of 6, 4, 2 and 1.
func gemmRowsavx2(c *float32, ldc int, a *float32, ars, acs int, b *float32, ldb, rows, k, accumulate int) {
	six := rows / 6
	if rows%6 == 2 && six > 0 {
		six-- // 8 rows left: two tiles of 4 beat 6 and 2
	}
	if six > 0 {
		gemm6x32avx2(a, b, c, ars, acs, ldb, ldc, k, six, accumulate)
		if rows -= 6 * six; rows == 0 {
			return
		}
		a, c = forward(a, 6*six*ars), forward(c, 6*six*ldc)
	}
	if n := rows / 4; n > 0 {
		gemm4x32avx2(a, b, c, ars, acs, ldb, ldc, k, n, accumulate)
		if rows %= 4; rows == 0 {
			return
		}
		a, c = forward(a, 4*n*ars), forward(c, 4*n*ldc)
	}
	if rows >= 2 {
		gemm2x32avx2(a, b, c, ars, acs, ldb, ldc, k, 1, accumulate)
		if rows -= 2; rows == 0 {
			return
		}
		a, c = forward(a, 2*ars), forward(c, 2*ldc)
	}
	if rows > 0 {
		gemm1x32avx2(a, b, c, ars, acs, ldb, ldc, k, 1, accumulate)
	}
}

// forward moves a pointer on by bytes, inside its slice.
func forward(p *float32, bytes int) *float32 {
	return (*float32)(unsafe.Add(unsafe.Pointer(p), bytes))
}
