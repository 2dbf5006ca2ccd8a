package nn

// stepRows is how many tokens a step runs together; more would fall out of the
// second-level cache.
const stepRows = 512

// Step runs all pushed tokens of all slots. Afterwards each slot that had any
// holds the logits that follow its last token.
func (d *DecoderOf[F]) Step() {
	d.rows = d.rows[:0]
	d.onward = d.onward[:0]
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
			d.rows = append(d.rows, cacheRow{Slot(id), int32(s.n)})
			s.last = t
			s.n++
		}
		s.pending = s.pending[:0]
		d.onward = append(d.onward, int32(len(d.rows)-1))
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
		d.store(l)
		normed := b.n
		if last {
			on = len(d.onward)
			b.nOn = gather(resized(b.nOn, on*dim), b.n, d.onward, dim)
			b.xOn = gather(resized(b.xOn, on*dim), x, d.onward, dim)
			normed, x = b.nOn, b.xOn
		}
		b.q, b.out = resized(b.q, on*dim), resized(b.out, on*dim)
		m.product(b.q, normed, on, &w.query, false)
		d.attend(l, on, last)
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
		s := &d.slots[d.rows[r].slot]
		copy(s.logits, b.logits[i*wide:(i+1)*wide])
		s.fresh = true
	}
	d.rows, d.onward = d.rows[:0], d.onward[:0]
}

// store turns the new keys and puts keys and values into the caches.
func (d *DecoderOf[F]) store(l int) {
	const half = HeadDim / 2
	m := d.model
	dim := m.cfg.Dim
	for i, r := range d.rows {
		c := &d.slots[r.slot].layers[l]
		kv := d.buf.kv[i*2*dim : (i+1)*2*dim]
		pos := int(r.pos)
		for h := range m.cfg.Heads {
			k := kv[h*HeadDim : (h+1)*HeadDim]
			if m.cfg.rotary(l, h) {
				m.k.rotate(k, m.cos[pos*half:pos*half+half], m.sin[pos*half:pos*half+half], 1)
			}
			block := d.headKeys(c, h)[pos/keyBlock*keyBlock*HeadDim+pos%keyBlock:]
			for j, v := range k {
				block[j*keyBlock] = v
			}
		}
		copy(c.values[pos*dim:], kv[dim:])
	}
}

// attend runs the queries in buf.q against the caches.
func (d *DecoderOf[F]) attend(l, on int, last bool) {
	const half = HeadDim / 2
	m, b := d.model, &d.buf
	dim := m.cfg.Dim
	for i := range on {
		r := d.rows[i]
		if last {
			r = d.rows[d.onward[i]]
		}
		c := &d.slots[r.slot].layers[l]
		pos := int(r.pos)
		b.scores = resized(b.scores, roundUp(pos+1, keyBlock))
		for h := range m.cfg.Heads {
			at := i*dim + h*HeadDim
			q := b.q[at : at+HeadDim]
			if m.cfg.rotary(l, h) {
				m.k.rotate(q, m.cos[pos*half:pos*half+half], m.sin[pos*half:pos*half+half], 1)
			}
			m.k.attend(b.out[at:at+HeadDim], q, d.headKeys(c, h), c.values[h*HeadDim:], dim, pos+1, F(attentionScale), b.scores)
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
