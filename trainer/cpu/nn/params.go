package nn

import (
	"fmt"
	"strings"
)

// Param is one named matrix inside the flat slab.
type Param struct {
	Name       string
	Rows, Cols int
	Offset     int  // of the first element in the slab
	Layer      int  // -1 for embeddings, Config.Layers for the head
	Decay      bool // weight decay applies
	UsedCols   int  // columns beyond it are padding and stay zero
}

// Len is the number of elements in the slab.
func (p Param) Len() int { return p.Rows * p.Cols }

// Group names the part of the model a parameter belongs to: "embed",
// "layer0" …, "head".
func (p Param) Group() string {
	switch {
	case p.Layer < 0:
		return "embed"
	case strings.HasPrefix(p.Name, "head"):
		return "head"
	}
	return fmt.Sprintf("layer%d", p.Layer)
}

// layout lists the parameters of a model in slab order and the slab's length.
// Matrices are stored input × output, so that y = x·W.
func layout(c Config) ([]Param, int) {
	var ps []Param
	size := 0
	add := func(name string, rows, cols, layer int, decay bool) {
		ps = append(ps, Param{Name: name, Rows: rows, Cols: cols, Offset: size, Layer: layer, Decay: decay, UsedCols: cols})
		size += rows * cols
	}
	add("embed.token", c.Vocab, c.Dim, -1, false)
	add("embed.previous", c.Vocab, c.Dim, -1, false)
	for l := range c.Layers {
		at := func(s string) string { return fmt.Sprintf("layers.%d.%s", l, s) }
		add(at("attention.query"), c.Dim, c.Dim, l, true)
		add(at("attention.keyvalue"), c.Dim, 2*c.Dim, l, true)
		add(at("attention.output"), c.Dim, c.Dim, l, true)
		add(at("mlp.up"), c.Dim, c.Hidden, l, true)
		add(at("mlp.down"), c.Hidden, c.Dim, l, true)
	}
	add("head", c.Dim, c.vocabPadded(), c.Layers, true)
	ps[len(ps)-1].UsedCols = c.Vocab
	return ps, size
}

// weight is a matrix in the two packed forms that the matrix product reads:
// w for x·W and t for dy·Wᵀ. Panels are 32 columns wide.
type weight[F Float] struct {
	rows, cols int
	w, t       []F
}

// pack refreshes both packed forms from the row-major matrix src.
func (w *weight[F]) pack(src []F, rows, cols int) {
	w.rows, w.cols = rows, cols
	if w.w == nil {
		w.w = alignedSlice[F](rows * cols)
		w.t = alignedSlice[F](rows * cols)
	}
	for p := 0; p < cols; p += panel {
		dst := w.w[p*rows:]
		for r := range rows {
			copy(dst[r*panel:r*panel+panel], src[r*cols+p:r*cols+p+panel])
		}
	}
	for p := 0; p < rows; p += panel {
		dst := w.t[p*cols : (p+panel)*cols]
		for r := range panel {
			row := src[(p+r)*cols : (p+r+1)*cols]
			for c, v := range row {
				dst[c*panel+r] = v
			}
		}
	}
}
