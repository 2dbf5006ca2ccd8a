package nn

// stepRows is how many tokens a step runs together; more would fall out of the
// second-level cache.
const stepRows = 512

// Step runs all pushed tokens of all slots. Afterwards each slot that had any
// holds the logits that follow its last token.
func (d *DecoderOf[F]) Step() {
	b := &d.buf
	dim := d.model.cfg.Dim
	for id := range d.slots {
		s := &d.slots[id]
		if !s.used || len(s.pending) == 0 {
			continue
		}
		if len(d.rows) > 0 && len(d.rows)+len(s.pending) > stepRows {
			d.run()
		}
		first := len(d.rows)
		b.x = grown(b.x, (first+len(s.pending))*dim)
		d.reserve(s, s.n+len(s.pending))
		for i, t := range s.pending {
			at := (first + i) * dim
			d.model.embedRow(b.x[at:at+dim], t, s.last)
			d.rows = append(d.rows, Slot(id))
			d.pos = append(d.pos, int32(s.n))
			s.last = t
			s.n++
		}
		s.pending = s.pending[:0]
		d.onward = append(d.onward, int32(len(d.rows)-1))
		d.posOn = append(d.posOn, int32(s.n-1))
	}
	if len(d.rows) > 0 {
		d.run()
	}
}

// run takes the gathered rows through the model and clears them.
func (d *DecoderOf[F]) run() {
	m, b := d.model, &d.buf
	dim, hidden, wide := m.cfg.Dim, m.cfg.Hidden, m.cfg.vocabPadded()
	rows := len(d.rows)
	x, on := b.x, rows
	for l := range m.layers {
		w := &m.layers[l]
		last := l == len(m.layers)-1
		b.n, b.r = resized(b.n, rows*dim), resized(b.r, rows)
		m.k.normRows(b.n, b.r, x, rows, dim)
		b.kv = resized(b.kv, rows*2*dim)
		m.product(b.kv, b.n, rows, &w.keyValue, false)
		m.rotateHeads(b.kv, 2*dim, d.pos, l, 1)
		d.store(l)
		normed, pos := b.n, d.pos
		if last {
			on = len(d.onward)
			b.nOn = gather(resized(b.nOn, on*dim), b.n, d.onward, dim)
			b.xOn = gather(resized(b.xOn, on*dim), x, d.onward, dim)
			normed, x, pos = b.nOn, b.xOn, d.posOn
		}
		b.q, b.out = resized(b.q, on*dim), resized(b.out, on*dim)
		m.product(b.q, normed, on, &w.query, false)
		m.rotateHeads(b.q, dim, pos, l, 1)
		d.attend(l, pos, last)
		m.product(x, b.out, on, &w.output, true)

		m.k.normRows(b.n, b.r, x, on, dim)
		b.relu, b.hid = resized(b.relu, on*hidden), resized(b.hid, on*hidden)
		m.product(b.relu, b.n, on, &w.up, false)
		m.k.relu2(b.hid, b.relu)
		m.product(x, b.hid, on, &w.down, true)
	}
	m.k.normRows(b.n, b.r, x, on, dim)
	b.logits = resized(b.logits, on*wide)
	m.product(b.logits, b.n, on, &m.head, false)
	for i, r := range d.onward {
		s := &d.slots[d.rows[r]]
		copy(s.logits, b.logits[i*wide:(i+1)*wide])
		s.fresh = true
	}
	d.rows, d.pos = d.rows[:0], d.pos[:0]
	d.onward, d.posOn = d.onward[:0], d.posOn[:0]
}

// store puts the new keys and values into the caches.
func (d *DecoderOf[F]) store(l int) {
	m := d.model
	dim := m.cfg.Dim
	for i, id := range d.rows {
		c := &d.slots[id].layers[l]
		kv := d.buf.kv[i*2*dim : (i+1)*2*dim]
		pos := int(d.pos[i])
		for h := range m.cfg.Heads {
			keys, values := d.head(c, h)
			block := keys[pos/keyBlock*keyBlock*HeadDim+pos%keyBlock:]
			for j, v := range kv[h*HeadDim : (h+1)*HeadDim] {
				block[j*keyBlock] = v
			}
			copy(values[pos*HeadDim:(pos+1)*HeadDim], kv[dim+h*HeadDim:])
		}
	}
}

// attend runs the queries in buf.q, at the given positions, against the caches.
func (d *DecoderOf[F]) attend(l int, pos []int32, last bool) {
	m, b := d.model, &d.buf
	dim := m.cfg.Dim
	for i, p := range pos {
		row := i
		if last {
			row = int(d.onward[i])
		}
		c, n := &d.slots[d.rows[row]].layers[l], int(p)+1
		b.scores = resized(b.scores, roundUp(n, keyBlock))
		for h := range m.cfg.Heads {
			at := i*dim + h*HeadDim
			keys, values := d.head(c, h)
			m.k.attend(b.out[at:at+HeadDim], b.q[at:at+HeadDim], keys, values, HeadDim, n, F(attentionScale), b.scores)
		}
	}
}

// grown is resized, but keeps what is in s.
func grown[F Float](s []F, n int) []F {
	if cap(s) >= n {
		return s[:n]
	}
	t := alignedSlice[F](2 * n)[:n]
	copy(t, s)
	return t
}
