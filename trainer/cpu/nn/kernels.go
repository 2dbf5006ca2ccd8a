package nn

import (
	"fmt"
	"unsafe"
)

// kernels is the arithmetic that a model calls. Every function is
// deterministic and treats rows independently of their neighbours.
type kernels[F Float] struct {
	// gemm computes C (+)= A·B. C is m×n with row stride ldc. A is m×k with
	// element (i,p) at a[i*ars+p*acs]. B is k×n, n a multiple of 32: element
	// (p,j) at b[j/32*bps+p*ldb+j%32]. Each element is one chain of fused
	// multiply-adds over p from 0, so it does not depend on m or n.
	gemm func(c []F, ldc int, a []F, ars, acs int, b []F, ldb, bps int, m, n, k int, accumulate bool)
	// softmax replaces row by softmax(scale·row[:n]) and zeros row[n:]; the
	// length of row is a multiple of 16.
	softmax func(row []F, n int, scale F)
	// softmaxBack turns dp into scale·p∘(dp − Σ dp∘p), in place.
	softmaxBack func(dp, p []F, scale F)
	// logSoftmax scales z[:n] in place and returns log Σ exp z and the entropy.
	logSoftmax func(z []F, n int, scale F) (lse, entropy F)
	// logSoftmaxBack replaces the scaled logits z[:n] by
	// scale·(−g·p − h·p·(log p + entropy)) and zeros z[n:]; the caller adds
	// scale·g at the target.
	logSoftmaxBack func(z []F, n int, scale, lse, entropy, g, h F)
	// normRows writes y = x·r with r = 1/√(mean x² + eps), row by row.
	normRows func(y, r, x []F, rows, d int)
	// normBack adds r·(dy − y·mean(dy∘y)) to dx, row by row.
	normBack func(dx, dy, y, r []F, rows, d int)
	// relu2 writes h = max(u,0)² and replaces u by max(u,0).
	relu2 func(h, u []F)
	// relu2Back turns dh into the gradient of u: dh·2·u, u as relu2 left it.
	relu2Back func(dh, u []F)
	// rotate turns one head of every row by the angles of the row's position;
	// sign −1 turns back. ld is the row stride, cos and sin whole tables.
	rotate func(x []F, ld int, pos []int32, cos, sin []F, sign F)
	// add adds src to dst.
	add func(dst, src []F)
	// transpose writes dst[j/32*32*32 + c*32 + j%32] = src[j*ld+c] for j < n
	// and 32 columns c, and zeros up to the next multiple of 32: the packed
	// transpose of one head.
	transpose func(dst, src []F, ld, n int)
	// attend is attention of one query over n cached keys of one head: keys in
	// blocks of 16 (dim-major), values in rows of stride ldv. scores is scratch.
	attend func(out, q, keys, values []F, ldv, n int, scale F, scores []F)
	// adam applies one AdamW update; see adamStep.
	adam func(p, g, m, v []F, s *adamStep[F])
	// sumSquares returns Σ x².
	sumSquares func(x []F) float64
}

// adamStep holds the constants of one AdamW update:
// m = b1·m + (1−b1)·g·clip; v likewise with squares;
// p −= rate·(m/(√v·vscale + eps)) + decay·p.
type adamStep[F Float] struct {
	clip, b1, b2, rate, vscale, eps, decay F
}

const normEps = 1e-6

// Kernels lists the float32 kernels that this machine can run, best first.
// "generic" is plain Go and always present.
func Kernels() []string {
	var names []string
	for _, k := range assemblyKernels() {
		names = append(names, k.name)
	}
	return append(names, "generic")
}

type namedKernels struct {
	name string
	k    kernels[float32]
}

// kernelsFor returns the kernels of a name and the name "auto" stands for.
func kernelsFor[F Float](name string) (kernels[F], string, error) {
	out := genericKernels[F]()
	f32, isF32 := any(&out).(*kernels[float32])
	if !isF32 || name == "generic" {
		if name == "" || name == "auto" || name == "generic" {
			return out, "generic", nil
		}
	}
	if isF32 {
		for _, k := range assemblyKernels() {
			if name == "" || name == "auto" || name == k.name {
				*f32 = k.k
				return out, k.name, nil
			}
		}
		if name == "" || name == "auto" {
			return out, "generic", nil
		}
	}
	return out, "", fmt.Errorf("kernel %q: this machine has %q, or use \"auto\"", name, Kernels())
}

// alignedSlice allocates n zeros that begin on a cache line.
func alignedSlice[F Float](n int) []F {
	var f F
	size := int(unsafe.Sizeof(f))
	raw := make([]F, n+64/size)
	skip := 0
	if rest := int(uintptr(unsafe.Pointer(unsafe.SliceData(raw))) % 64); rest != 0 {
		skip = (64 - rest) / size
	}
	return raw[skip : skip+n : skip+n]
}

// resized returns a slice of n elements, reusing s where it is large enough.
// Contents are undefined.
func resized[F Float](s []F, n int) []F {
	if cap(s) >= n {
		return s[:n]
	}
	return alignedSlice[F](n + n/4)[:n]
}
