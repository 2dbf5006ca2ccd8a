package nn

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"sort"
)

// Tensor is one named float32 array, row-major.
type Tensor struct {
	Name  string
	Shape []int
	Data  []float32
}

// ErrCorrupt is the class of every error about a file that is not a whole,
// well-formed safetensors file.
var ErrCorrupt = errors.New("corrupt tensor file")

const (
	maxHeaderBytes = 16 << 20
	metadataKey    = "__metadata__"
)

// tensorHeader is one entry of a safetensors header.
type tensorHeader struct {
	DType   string   `json:"dtype"`
	Shape   []int64  `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

// EncodeTensors writes tensors and metadata in the safetensors format: eight
// bytes of header length, a JSON header, then the data, little-endian.
func EncodeTensors(w io.Writer, tensors []Tensor, metadata map[string]string) error {
	header := map[string]any{}
	if len(metadata) > 0 {
		header[metadataKey] = metadata
	}
	var offset int64
	for _, t := range tensors {
		shape, n := make([]int64, len(t.Shape)), 1
		for i, s := range t.Shape {
			shape[i] = int64(s)
			n *= s
		}
		if _, dup := header[t.Name]; dup || n != len(t.Data) {
			return fmt.Errorf("tensor %q: name must be unique and shape %v must match %d elements", t.Name, t.Shape, len(t.Data))
		}
		size := 4 * int64(len(t.Data))
		header[t.Name] = tensorHeader{"F32", shape, [2]int64{offset, offset + size}}
		offset += size
	}
	text, err := json.Marshal(header)
	if err != nil {
		return fmt.Errorf("encode tensor header: %w", err)
	}
	text = append(text, bytes.Repeat([]byte(" "), (8-len(text)%8)%8)...)
	if _, err := w.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(text)))); err != nil {
		return err
	}
	if _, err := w.Write(text); err != nil {
		return err
	}
	var buf []byte
	for _, t := range tensors {
		buf = buf[:0]
		for _, v := range t.Data {
			buf = binary.LittleEndian.AppendUint32(buf, math.Float32bits(v))
		}
		if _, err := w.Write(buf); err != nil {
			return err
		}
	}
	return nil
}

// DecodeTensors reads what [EncodeTensors] wrote, or any safetensors file whose
// tensors are all F32. Tensors come back in the order of their data. Damage of
// any kind is an error that wraps [ErrCorrupt] and says what is wrong.
func DecodeTensors(src []byte) ([]Tensor, map[string]string, error) {
	corrupt := func(format string, args ...any) ([]Tensor, map[string]string, error) {
		return nil, nil, fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
	}
	if len(src) < 8 {
		return corrupt("%d bytes is too short for a header", len(src))
	}
	size := binary.LittleEndian.Uint64(src)
	if size > maxHeaderBytes || size > uint64(len(src)-8) {
		return corrupt("header of %d bytes in a file of %d (truncated?)", size, len(src))
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(src[8:8+size], &raw); err != nil {
		return corrupt("header: %v", err)
	}
	data := src[8+size:]
	metadata := map[string]string{}
	headers := map[string]tensorHeader{}
	var names []string
	for name, text := range raw {
		var h tensorHeader
		var into any = &h
		if name == metadataKey {
			into = &metadata
		}
		if err := json.Unmarshal(text, into); err != nil {
			return corrupt("header entry %q: %v", name, err)
		}
		if name != metadataKey {
			headers[name] = h
			names = append(names, name)
		}
	}
	sort.Slice(names, func(i, j int) bool {
		a, b := headers[names[i]].Offsets, headers[names[j]].Offsets
		if a != b {
			return a[0] < b[0] || a[0] == b[0] && a[1] < b[1]
		}
		return names[i] < names[j]
	})
	var tensors []Tensor
	var end int64
	for _, name := range names {
		h := headers[name]
		t, err := decodeTensor(name, h, data, end)
		if err != nil {
			return corrupt("tensor %q: %v", name, err)
		}
		end = h.Offsets[1]
		tensors = append(tensors, t)
	}
	if end != int64(len(data)) {
		return corrupt("%d bytes of data, the header describes %d (truncated?)", len(data), end)
	}
	return tensors, metadata, nil
}

// decodeTensor checks one header entry against the data and the end of the
// tensor before it.
func decodeTensor(name string, h tensorHeader, data []byte, end int64) (Tensor, error) {
	if h.DType != "F32" {
		return Tensor{}, fmt.Errorf("dtype %q: allowed is F32", h.DType)
	}
	t := Tensor{Name: name, Shape: make([]int, len(h.Shape))}
	n := int64(1)
	for i, s := range h.Shape {
		if s < 0 || s > math.MaxInt32 || s > 0 && n > math.MaxInt32/s {
			return t, fmt.Errorf("shape %v is out of range", h.Shape)
		}
		n *= s
		t.Shape[i] = int(s)
	}
	lo, hi := h.Offsets[0], h.Offsets[1]
	if lo != end || hi < lo || hi > int64(len(data)) || hi-lo != 4*n {
		return t, fmt.Errorf("bytes %d to %d do not fit shape %v, the tensor before (ends at %d) and %d bytes of data (truncated?)", lo, hi, h.Shape, end, len(data))
	}
	t.Data = make([]float32, n)
	for i := range t.Data {
		t.Data[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[lo+4*int64(i):]))
	}
	return t, nil
}

// writeFileAtomic writes a file under a temporary name, syncs it and renames
// it, so that a reader or a crash never meets half a file.
func writeFileAtomic(path string, write func(io.Writer) error) (err error) {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	if err := write(f); err != nil {
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
