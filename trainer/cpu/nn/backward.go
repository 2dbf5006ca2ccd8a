package nn

// gradients is the scratch of a backward pass.
type gradients[F Float] struct {
	dx, dOn, dN, dHid, dOut, dQ, dKV []F
}

// backward adds d(loss)/d(parameters) to grad (laid out like the slab), given
// d(loss)/d(logProb) and, unless nil, d(loss)/d(entropy) of every target of
// the forward pass in s. It uses up s.logits.
func (m *ModelOf[F]) backward(s *activations[F], g *gradients[F], b *batch, grad, dLogProb, dEntropy []F, temperature float64) {
	rows, d := len(b.tokens), m.cfg.Dim
	g.dOn = m.headBackward(s, g, b, grad, dLogProb, dEntropy, temperature)
	dx := g.dOn
	for l := m.cfg.Layers - 1; l >= 0; l-- {
		dx = m.layerBackward(s, g, b, l, grad, dx)
	}
	dEmbed, dPrev := m.gradOf(grad, 0), m.gradOf(grad, 1)
	for i := range rows {
		row := dx[i*d : i*d+d]
		m.k.add(dEmbed[int(b.tokens[i])*d:int(b.tokens[i])*d+d], row)
		if p := int(b.prev[i]); p >= 0 {
			m.k.add(dPrev[p*d:p*d+d], row)
		}
	}
}

func (m *ModelOf[F]) gradOf(grad []F, param int) []F { return viewOf(grad, m.params[param]) }

func (m *ModelOf[F]) headBackward(s *activations[F], g *gradients[F], b *batch, grad, dLogProb, dEntropy []F, temperature float64) []F {
	n, d, wide := len(b.target), m.cfg.Dim, m.cfg.vocabPadded()
	inv := F(1 / temperature)
	for i, t := range b.target {
		z := s.logits[i*wide : i*wide+wide]
		var h F
		if dEntropy != nil {
			h = dEntropy[i]
		}
		m.k.logSoftmaxBack(z, m.cfg.Vocab, inv, s.lse[i], s.entropy[i], dLogProb[i], h)
		z[t] += inv * dLogProb[i]
	}
	m.weightGradient(m.gradOf(grad, len(m.params)-1), s.final, s.logits, n, d, wide)
	g.dN = resized(g.dN, n*d)
	m.productT(g.dN, s.logits, n, &m.head, false)
	dx := resized(g.dOn, n*d)
	clear(dx)
	m.k.normBack(dx, g.dN, s.final, s.rFinal, n, d)
	return dx
}

// layerBackward turns the gradient of the rows that leave layer l into that of
// all rows that enter it.
func (m *ModelOf[F]) layerBackward(s *activations[F], g *gradients[F], b *batch, l int, grad, dx []F) []F {
	w, a := &m.layers[l], &s.layers[l]
	rows, d, hid := len(b.tokens), m.cfg.Dim, m.cfg.Hidden
	last := l == m.cfg.Layers-1
	on, pos := rows, b.pos
	if last {
		on, pos = len(b.outRow), b.outPos
	}
	first := 2 + 5*l // index of the layer's query matrix
	dw := func(i int) []F { return m.gradOf(grad, first+i) }

	// MLP
	g.dHid = resized(g.dHid, on*hid)
	m.productT(g.dHid, dx, on, &w.down, false)
	m.weightGradient(dw(4), a.hid, dx, on, hid, d)
	m.k.relu2Back(g.dHid, a.relu)
	m.weightGradient(dw(3), a.n2, g.dHid, on, d, hid)
	g.dN = resized(g.dN, rows*d)
	m.productT(g.dN[:on*d], g.dHid, on, &w.up, false)
	m.k.normBack(dx, g.dN, a.n2, a.r2, on, d)

	// attention
	m.weightGradient(dw(2), a.out, dx, on, d, d)
	g.dOut = resized(g.dOut, on*d)
	m.productT(g.dOut, dx, on, &w.output, false)
	g.dQ, g.dKV = resized(g.dQ, on*d), resized(g.dKV, rows*2*d)
	clear(g.dKV)
	m.attentionBackward(s, g, b, l)
	m.rotateHeads(g.dQ, d, pos, l, -1)
	m.rotateHeads(g.dKV, 2*d, b.pos, l, -1)
	m.weightGradient(dw(0), a.nq, g.dQ, on, d, d)
	m.weightGradient(dw(1), a.n1, g.dKV, rows, d, 2*d)
	m.productT(g.dN, g.dKV, rows, &w.keyValue, false)
	if !last {
		m.productT(g.dN, g.dQ, rows, &w.query, true)
		m.k.normBack(dx, g.dN, a.n1, a.r1, rows, d)
		return dx
	}
	// Rows without a target come back in: they were keys and values here.
	m.productT(g.dOut, g.dQ, on, &w.query, false)
	g.dx = resized(g.dx, rows*d)
	clear(g.dx)
	for i, r := range b.outRow {
		at := int(r) * d
		m.k.add(g.dN[at:at+d], g.dOut[i*d:i*d+d])
		copy(g.dx[at:at+d], dx[i*d:i*d+d])
	}
	m.k.normBack(g.dx, g.dN, a.n1, a.r1, rows, d)
	return g.dx
}

func (m *ModelOf[F]) attentionBackward(s *activations[F], g *gradients[F], b *batch, l int) {
	a, d := &s.layers[l], m.cfg.Dim
	m.eachHead(s, b, l, func(h *head[F]) {
		at := len(a.q) - len(h.q)
		h.dq, h.dout = g.dQ[at:], g.dOut[at:]
		at = len(a.kv) - len(h.k)
		h.dk, h.dv = g.dKV[at:], g.dKV[at+d:]
		s.att.backward(&m.k, h)
	})
}

// weightGradient adds xᵀ·dy to dw, for n rows of widths rows and cols.
func (m *ModelOf[F]) weightGradient(dw, x, dy []F, n, rows, cols int) {
	m.k.gemm(dw, cols, x, 1, rows, dy, cols, panel, rows, cols, n, true)
}
