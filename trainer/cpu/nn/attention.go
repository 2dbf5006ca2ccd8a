package nn

import "math"

// queryBlock is how many query rows share one block of attention weights. The
// weights are made again in the backward pass instead of being kept, so memory
// grows with the length of a sequence and not with its square.
const queryBlock = 64

// attention holds the scratch of block-causal attention over packed sequences.
type attention[F Float] struct {
	keysT, valuesT []F // packed transposes of one head
	p, dp          []F // queryBlock × padded key count
}

var attentionScale = 1 / math.Sqrt(HeadDim)

// head is one head of one sequence. Query row i sits at position pos[i] and
// sees keys 0..pos[i]; positions rise.
type head[F Float] struct {
	q, out, dq, dout []F // row stride ldq, first row at 0
	k, v, dk, dv     []F // row stride ldkv
	ldq, ldkv        int
	nq, n            int
	pos              []int32
}

func (a *attention[F]) reserve(n int) int {
	width := roundUp(n, panel)
	a.keysT = resized(a.keysT, width*HeadDim)
	a.valuesT = resized(a.valuesT, width*HeadDim)
	a.p = resized(a.p, queryBlock*width)
	a.dp = resized(a.dp, queryBlock*width)
	return width
}

// weights fills a.p with the attention weights of query rows i0..i1, row
// stride width, zero beyond each row's own position.
func (a *attention[F]) weights(k *kernels[F], h *head[F], i0, i1, width int) {
	const tile = 8
	for i := i0; i < i1; i += tile {
		rows := min(tile, i1-i)
		see := roundUp(int(h.pos[i+rows-1])+1, panel)
		row := a.p[(i-i0)*width:]
		k.gemm(row, width, h.q[i*h.ldq:], h.ldq, 1, a.keysT, panel, panel*HeadDim, rows, see, HeadDim, false)
		for r := range rows {
			k.softmax(row[r*width:r*width+see], int(h.pos[i+r])+1, F(attentionScale))
		}
	}
}

// forward computes out for one head.
func (a *attention[F]) forward(k *kernels[F], h *head[F]) {
	width := a.reserve(h.n)
	k.transpose(a.keysT, h.k, h.ldkv, h.n)
	for i0 := 0; i0 < h.nq; i0 += queryBlock {
		i1 := min(i0+queryBlock, h.nq)
		a.weights(k, h, i0, i1, width)
		a.eachTile(h, i0, i1, func(i, rows, see int) {
			k.gemm(h.out[i*h.ldq:], h.ldq, a.p[(i-i0)*width:], width, 1, h.v, h.ldkv, 0, rows, HeadDim, see, false)
		})
	}
}

// eachTile visits the query rows i0..i1 eight at a time with the number of
// keys that the last of them sees.
func (a *attention[F]) eachTile(h *head[F], i0, i1 int, visit func(i, rows, see int)) {
	const tile = 8
	for i := i0; i < i1; i += tile {
		rows := min(tile, i1-i)
		visit(i, rows, int(h.pos[i+rows-1])+1)
	}
}

// backward adds to dk and dv and writes dq, given dout.
func (a *attention[F]) backward(k *kernels[F], h *head[F]) {
	width := a.reserve(h.n)
	k.transpose(a.keysT, h.k, h.ldkv, h.n)
	k.transpose(a.valuesT, h.v, h.ldkv, h.n)
	for i0 := 0; i0 < h.nq; i0 += queryBlock {
		i1 := min(i0+queryBlock, h.nq)
		a.weights(k, h, i0, i1, width)
		a.eachTile(h, i0, i1, func(i, rows, see int) {
			wide := roundUp(see, panel)
			dp, p := a.dp[(i-i0)*width:], a.p[(i-i0)*width:]
			k.gemm(dp, width, h.dout[i*h.ldq:], h.ldq, 1, a.valuesT, panel, panel*HeadDim, rows, wide, HeadDim, false)
			for r := range rows {
				k.softmaxBack(dp[r*width:r*width+wide], p[r*width:r*width+wide], F(attentionScale))
			}
			k.gemm(h.dq[i*h.ldq:], h.ldq, dp, width, 1, h.k, h.ldkv, 0, rows, HeadDim, see, false)
		})
		a.keyGradients(k, h, i0, i1, width)
	}
}

// keyGradients adds the share of query rows i0..i1 to dk and dv, eight keys at
// a time, starting at the first tile of rows that sees them.
func (a *attention[F]) keyGradients(k *kernels[F], h *head[F], i0, i1, width int) {
	const tile = 8
	from := i0 // first row of a tile that sees key j
	for j := 0; j <= int(h.pos[i1-1]); j += tile {
		for from < i1 && int(h.pos[min(from+tile, i1)-1]) < j {
			from += tile
		}
		rows := min(tile, h.n-j)
		// Rows of one tile hold defined weights for whole panels, so the tile
		// that sees key j also holds keys j+1..j+7 (as zeros if unseen).
		p, dp := a.p[(from-i0)*width+j:], a.dp[(from-i0)*width+j:]
		k.gemm(h.dv[j*h.ldkv:], h.ldkv, p, 1, width, h.dout[from*h.ldq:], h.ldq, 0, rows, HeadDim, i1-from, true)
		k.gemm(h.dk[j*h.ldkv:], h.ldkv, dp, 1, width, h.q[from*h.ldq:], h.ldq, 0, rows, HeadDim, i1-from, true)
	}
}
