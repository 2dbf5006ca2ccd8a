package nn

import "math"

// How strongly the first head of each layer starts out copying.
const (
	matchScale = 1.7 // length of its query and key projections
	copyScale  = 1.0 // share of a found token that it writes to the residual stream
	headScale  = 0.5 // the head starts as this much of the token embedding
)

// initialise draws all weights. Embeddings have unit variance. The first head
// of every layer starts as a look-up: its query reads the token at hand, its
// keys read the token before each position, and its values carry the token at
// that position to a head that starts as the token embedding. Small models
// learn in-context recall in seconds from there and hardly at all without.
func (m *ModelOf[F]) initialise(seed uint64) {
	d := m.cfg.Dim
	draw := func(part uint64) *normals { return &normals{stream: Stream(seed, part)} }

	fill(m.embed, draw(0), 1)
	turn := orthonormal(draw(1), d, d)
	// previous[t] = embed[t]·turn: the same geometry in other directions.
	for t := range m.cfg.Vocab {
		multiply(m.previous[t*d:t*d+d], m.embed[t*d:t*d+d], turn, d)
	}
	for l := range m.cfg.Layers {
		m.initLayer(l, draw(uint64(l)+10), turn)
	}
	p := m.params[len(m.params)-1]
	head := viewOf(m.slab, p)
	scale := headScale / math.Sqrt(float64(d)/float64(HeadDim))
	for t := range m.cfg.Vocab {
		for i := range d {
			head[i*p.Cols+t] = F(scale) * m.embed[t*d+i]
		}
	}
}

func (m *ModelOf[F]) initLayer(l int, n *normals, turn []float64) {
	d := m.cfg.Dim
	at := func(i int) []F { return viewOf(m.slab, m.params[2+5*l+i]) }
	query, keyValue, output, up, down := at(0), at(1), at(2), at(3), at(4)
	in, out := 1/math.Sqrt(float64(d)), 0.2/math.Sqrt(float64(d)*float64(m.cfg.Layers))
	fill(query, n, in)
	fill(keyValue, n, in)
	fill(output, n, out)
	fill(up, n, in)
	fill(down, n, out/2)

	match, carry := orthonormal(n, d, HeadDim), orthonormal(n, d, HeadDim)
	col := make([]float64, HeadDim)
	for i := range d {
		// Row i of turnᵀ·match: reads the previous-token part of a row.
		clear(col)
		for j := range d {
			for c := range col {
				col[c] += turn[j*d+i] * match[j*HeadDim+c]
			}
		}
		for c := range HeadDim {
			query[i*d+c] = F(matchScale * match[i*HeadDim+c])
			keyValue[i*2*d+c] = F(matchScale * col[c])
			keyValue[i*2*d+d+c] = F(carry[i*HeadDim+c])
			output[c*d+i] = F(copyScale * carry[i*HeadDim+c])
		}
	}
}

func fill[F Float](x []F, n *normals, scale float64) {
	for i := range x {
		x[i] = F(n.next() * scale)
	}
}

// multiply writes y = x·w for a d×d matrix.
func multiply[F Float](y, x []F, w []float64, d int) {
	sum := make([]float64, d)
	for i, v := range x {
		for j := range sum {
			sum[j] += float64(v) * w[i*d+j]
		}
	}
	for j, v := range sum {
		y[j] = F(v)
	}
}

// orthonormal draws a rows×cols matrix, row-major, with orthonormal columns
// (Gram-Schmidt on normal numbers), cols ≤ rows.
func orthonormal(n *normals, rows, cols int) []float64 {
	w := make([]float64, rows*cols)
	for i := range w {
		w[i] = n.next()
	}
	dot := func(a, b int) (s float64) {
		for r := range rows {
			s += w[r*cols+a] * w[r*cols+b]
		}
		return s
	}
	for c := range cols {
		for range 2 { // twice, for accuracy
			for p := range c {
				s := dot(c, p)
				for r := range rows {
					w[r*cols+c] -= s * w[r*cols+p]
				}
			}
		}
		inv := 1 / math.Sqrt(dot(c, c))
		for r := range rows {
			w[r*cols+c] *= inv
		}
	}
	return w
}
