package nn

import "math"

// Float is the arithmetic a model runs in.
type Float interface{ float32 | float64 }

// ModelOf is a decoder-only transformer: token and previous-token embeddings,
// layers of attention and ReLU² MLP behind gainless RMSNorm, and an untied
// head. It is not safe for concurrent use while it is trained.
type ModelOf[F Float] struct {
	cfg    Config
	kernel string
	k      kernels[F]

	slab   []F
	params []Param
	index  map[string]int

	embed, previous []F // views into slab
	layers          []layerWeights[F]
	head            weight[F]
	cos, sin        []F // [position][16]
}

// Model is the float32 model that is trained and sampled.
type Model = ModelOf[float32]

type layerWeights[F Float] struct {
	query, keyValue, output, up, down weight[F]
}

// NewModel makes a model with copy-friendly random weights drawn from seed.
// Kernel is "auto", "avx512", "avx2" or "generic"; see [Kernels].
func NewModel(cfg Config, kernel string, seed uint64) (*Model, error) {
	return newModel[float32](cfg, kernel, seed)
}

func newModel[F Float](cfg Config, kernel string, seed uint64) (*ModelOf[F], error) {
	m, err := emptyModel[F](cfg, kernel)
	if err != nil {
		return nil, err
	}
	m.initialise(seed)
	m.Refresh()
	return m, nil
}

// emptyModel makes a model with all parameters zero.
func emptyModel[F Float](cfg Config, kernel string) (*ModelOf[F], error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	k, name, err := kernelsFor[F](kernel)
	if err != nil {
		return nil, err
	}
	m := &ModelOf[F]{cfg: cfg, kernel: name, k: k, index: map[string]int{}}
	var size int
	m.params, size = layout(cfg)
	m.slab = alignedSlice[F](size)
	for i, p := range m.params {
		m.index[p.Name] = i
	}
	m.embed, m.previous = m.view("embed.token"), m.view("embed.previous")
	m.layers = make([]layerWeights[F], cfg.Layers)
	m.rotations()
	return m, nil
}

// Config returns the model's shape.
func (m *ModelOf[F]) Config() Config { return m.cfg }

// Kernel returns the name of the kernels in use, never "auto".
func (m *ModelOf[F]) Kernel() string { return m.kernel }

// Params lists the parameters in slab order.
func (m *ModelOf[F]) Params() []Param { return m.params }

// Slab returns all parameters. Call [ModelOf.Refresh] after changing them.
func (m *ModelOf[F]) Slab() []F { return m.slab }

// CopyFrom takes over the parameters of a model of the same shape.
func (m *ModelOf[F]) CopyFrom(src *ModelOf[F]) {
	copy(m.slab, src.slab)
	m.Refresh()
}

// Clone returns an independent copy, for instance a reference policy.
func (m *ModelOf[F]) Clone() *ModelOf[F] {
	c, err := emptyModel[F](m.cfg, m.kernel)
	if err != nil {
		panic("nn: clone of a valid model: " + err.Error()) // cannot happen: same config and kernel
	}
	c.CopyFrom(m)
	return c
}

// Refresh brings the packed weights up to date with the slab.
func (m *ModelOf[F]) Refresh() {
	i := 2
	next := func(w *weight[F]) {
		p := m.params[i]
		w.pack(m.slab[p.Offset:p.Offset+p.Len()], p.Rows, p.Cols)
		i++
	}
	for l := range m.layers {
		w := &m.layers[l]
		next(&w.query)
		next(&w.keyValue)
		next(&w.output)
		next(&w.up)
		next(&w.down)
	}
	next(&m.head)
}

// view returns the slab range of a named parameter.
func (m *ModelOf[F]) view(name string) []F { return viewOf(m.slab, m.params[m.index[name]]) }

func viewOf[F Float](slab []F, p Param) []F {
	return slab[p.Offset : p.Offset+p.Len() : p.Offset+p.Len()]
}

// rotations fills the RoPE tables: 16 angles per position, base 10000.
func (m *ModelOf[F]) rotations() {
	const half = HeadDim / 2
	m.cos = alignedSlice[F](m.cfg.MaxLen * half)
	m.sin = alignedSlice[F](m.cfg.MaxLen * half)
	for pos := range m.cfg.MaxLen {
		for i := range half {
			angle := float64(pos) * math.Pow(10000, -float64(i)/half)
			m.cos[pos*half+i] = F(math.Cos(angle))
			m.sin[pos*half+i] = F(math.Sin(angle))
		}
	}
}

// embedRow writes the input embedding of a token after its predecessor
// (prev < 0 at the start of a sequence) to x.
func (m *ModelOf[F]) embedRow(x []F, token, prev int32) {
	d := m.cfg.Dim
	e := m.embed[int(token)*d : int(token)*d+d]
	if prev < 0 {
		copy(x, e)
		return
	}
	p := m.previous[int(prev)*d : int(prev)*d+d]
	for i := range x {
		x[i] = e[i] + p[i]
	}
}

// product computes c (+)= a·W for n rows.
func (m *ModelOf[F]) product(c, a []F, n int, w *weight[F], accumulate bool) {
	m.k.gemm(c, w.cols, a, w.rows, 1, w.w, panel, w.rows*panel, n, w.cols, w.rows, accumulate)
}

// productT computes c (+)= a·Wᵀ for n rows.
func (m *ModelOf[F]) productT(c, a []F, n int, w *weight[F], accumulate bool) {
	m.k.gemm(c, w.rows, a, w.cols, 1, w.t, panel, w.cols*panel, n, w.rows, w.cols, accumulate)
}
