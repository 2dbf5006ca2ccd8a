package nn

// activations is everything a forward pass leaves for the backward pass.
type activations[F Float] struct {
	x      []F // residual stream, all rows
	xLast  []F // residual stream after the last layer, scored rows only
	layers []layerActs[F]
	final  []F // normed xLast
	rFinal []F
	logits []F // scored rows × padded vocabulary, scaled by 1/temperature
	lse    []F // per scored row
	att    attention[F]

	logProb, entropy []F
}

type layerActs[F Float] struct {
	n1, r1    []F // normed input and its scale, all rows
	nq        []F // n1 of the rows that go on; n1 itself except in the last layer
	q, out    []F // rows that go on
	kv        []F // all rows
	n2, r2    []F // rows that go on, like the rest
	relu, hid []F
}

// forward runs the packed batch and leaves log-probability and entropy of each
// target in s.logProb and s.entropy, at the given temperature.
//
// The last layer computes keys and values for all rows, and everything else
// only for rows with a target.
func (m *ModelOf[F]) forward(s *activations[F], b *batch, temperature float64) {
	rows, d := len(b.tokens), m.cfg.Dim
	s.x = resized(s.x, rows*d)
	for i, t := range b.tokens {
		m.embedRow(s.x[i*d:i*d+d], t, b.prev[i])
	}
	if s.layers == nil {
		s.layers = make([]layerActs[F], m.cfg.Layers)
	}
	x := s.x
	for l := range m.layers {
		x = m.layerForward(s, b, l, x)
	}
	m.headForward(s, b, x, temperature)
}

func (m *ModelOf[F]) layerForward(s *activations[F], b *batch, l int, x []F) []F {
	w, a := &m.layers[l], &s.layers[l]
	rows, d := len(b.tokens), m.cfg.Dim
	last := l == m.cfg.Layers-1

	a.n1, a.r1 = resized(a.n1, rows*d), resized(a.r1, rows)
	m.k.normRows(a.n1, a.r1, x, rows, d)
	a.kv = resized(a.kv, rows*2*d)
	m.product(a.kv, a.n1, rows, &w.keyValue, false)

	on, pos := rows, b.pos
	if last {
		on, pos = len(b.outRow), b.outPos
		a.nq = gather(resized(a.nq, on*d), a.n1, b.outRow, d)
		s.xLast = gather(resized(s.xLast, on*d), x, b.outRow, d)
		x = s.xLast
	} else {
		a.nq = a.n1
	}
	a.q = resized(a.q, on*d)
	m.product(a.q, a.nq, on, &w.query, false)
	m.rotateHeads(a.kv, 2*d, b.pos, l, 1)
	m.rotateHeads(a.q, d, pos, l, 1)

	a.out = resized(a.out, on*d)
	m.eachHead(s, b, l, func(h *head[F]) { s.att.forward(&m.k, h) })
	m.product(x, a.out, on, &w.output, true)

	a.n2, a.r2 = resized(a.n2, on*d), resized(a.r2, on)
	m.k.normRows(a.n2, a.r2, x, on, d)
	a.relu, a.hid = resized(a.relu, on*m.cfg.Hidden), resized(a.hid, on*m.cfg.Hidden)
	m.product(a.relu, a.n2, on, &w.up, false)
	m.k.relu2(a.hid, a.relu)
	m.product(x, a.hid, on, &w.down, true)
	return x
}

func (m *ModelOf[F]) headForward(s *activations[F], b *batch, x []F, temperature float64) {
	n, d, wide := len(b.target), m.cfg.Dim, m.cfg.vocabPadded()
	s.final, s.rFinal = resized(s.final, n*d), resized(s.rFinal, n)
	m.k.normRows(s.final, s.rFinal, x, n, d)
	s.logits, s.lse = resized(s.logits, n*wide), resized(s.lse, n)
	m.product(s.logits, s.final, n, &m.head, false)
	s.logProb, s.entropy = resized(s.logProb, n), resized(s.entropy, n)
	for i, t := range b.target {
		z := s.logits[i*wide : i*wide+wide]
		s.lse[i], s.entropy[i] = m.k.logSoftmax(z, m.cfg.Vocab, F(1/temperature))
		s.logProb[i] = z[t] - s.lse[i]
	}
}

// rotateHeads applies RoPE to the rotary heads of rows with stride ld.
func (m *ModelOf[F]) rotateHeads(x []F, ld int, pos []int32, layer int, sign F) {
	for h := range m.cfg.Heads {
		if m.cfg.rotary(layer, h) {
			m.k.rotate(x[min(h*HeadDim, len(x)):], ld, pos, m.cos, m.sin, sign)
		}
	}
}

// eachHead visits every head of every sequence of layer l.
func (m *ModelOf[F]) eachHead(s *activations[F], b *batch, l int, visit func(*head[F])) {
	a, d := &s.layers[l], m.cfg.Dim
	last := l == m.cfg.Layers-1
	for _, sp := range b.spans {
		if sp.n == 0 {
			continue
		}
		h := head[F]{ldq: d, ldkv: 2 * d, n: sp.n}
		first := sp.start
		if last {
			first, h.nq, h.pos = sp.first, sp.out, b.outPos[sp.first:sp.first+sp.out]
		} else {
			h.nq, h.pos = sp.n, b.pos[sp.start:sp.start+sp.n]
		}
		for i := range m.cfg.Heads {
			at := first*d + i*HeadDim
			h.q, h.out = a.q[at:], a.out[at:]
			at = sp.start*2*d + i*HeadDim
			h.k, h.v = a.kv[at:], a.kv[at+d:]
			visit(&h)
		}
	}
}

// gather copies the given rows of src to dst and returns dst.
func gather[F Float](dst, src []F, rows []int32, d int) []F {
	for i, r := range rows {
		copy(dst[i*d:i*d+d], src[int(r)*d:int(r)*d+d])
	}
	return dst
}
