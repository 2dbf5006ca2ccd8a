package cpu

import (
	"encoding/binary"
	"fmt"
	"math"

	"alidade/trainer/cpu/nn"
)

// A shipped base may be stored as bfloat16 (file name ".bf16"): the model's
// flat parameters in order, two bytes each, the upper half of the float32
// rounded to nearest even. It halves the file; SFT starts from the rounded
// weights, so nothing downstream is approximate.

// packHalf returns the parameters as bfloat16.
func packHalf(m *nn.Model) []byte {
	slab := m.Slab()
	out := make([]byte, 2*len(slab))
	for i, x := range slab {
		bits := math.Float32bits(x)
		bits += 0x7fff + bits>>16&1
		binary.LittleEndian.PutUint16(out[2*i:], uint16(bits>>16))
	}
	return out
}

// unpackHalf fills a model with what packHalf wrote.
func unpackHalf(m *nn.Model, src []byte) error {
	slab := m.Slab()
	if len(src) != 2*len(slab) {
		return fmt.Errorf("bfloat16 base has %d bytes, the model needs %d", len(src), 2*len(slab))
	}
	for i := range slab {
		slab[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(src[2*i:])) << 16)
	}
	m.Refresh()
	return nil
}
