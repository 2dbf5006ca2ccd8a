package verl

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"alidade/trainer/native"

	"google.golang.org/protobuf/encoding/protowire"
)

// A Scalar is one value of an event file.
type Scalar struct {
	Tag      string
	Step     int64
	WallTime float64 // unix seconds
	Value    float64
}

// longestRecord bounds a record; a longer length is damage.
const longestRecord = 256 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errShort says that the rest of a record is not there yet.
var errShort = errors.New("record not complete")

// maskedCRC is the checksum of TFRecord: CRC-32C, turned and shifted.
func maskedCRC(b []byte) uint32 {
	c := crc32.Checksum(b, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}

// NextRecord cuts the first record off b: a length, its checksum, the data,
// and their checksum. It returns errShort (see [IsShort]) when more bytes are needed, and another
// error when the bytes are damaged.
func NextRecord(b []byte) (data, rest []byte, err error) {
	if len(b) < 12 {
		return nil, b, errShort
	}
	n := binary.LittleEndian.Uint64(b)
	if maskedCRC(b[:8]) != binary.LittleEndian.Uint32(b[8:]) {
		return nil, b, errors.New("event file: checksum of a length is wrong")
	}
	if n > longestRecord {
		return nil, b, fmt.Errorf("event file: a record of %d bytes", n)
	}
	end := 12 + int(n) + 4
	if len(b) < end {
		return nil, b, errShort
	}
	data = b[12 : 12+n]
	if maskedCRC(data) != binary.LittleEndian.Uint32(b[12+n:]) {
		return nil, b, errors.New("event file: checksum of a record is wrong")
	}
	return data, b[end:], nil
}

// IsShort tells whether an error of [NextRecord] means that the writer is not
// done with the record.
func IsShort(err error) bool { return errors.Is(err, errShort) }

// ParseEvent reads the scalars of one record. Other content is passed over.
func ParseEvent(b []byte) ([]Scalar, error) {
	var step int64
	var wall float64
	var values [][]byte
	err := fields(b, func(num protowire.Number, typ protowire.Type, v []byte, n uint64) {
		switch {
		case num == 1 && typ == protowire.Fixed64Type:
			wall = math.Float64frombits(n)
		case num == 2 && typ == protowire.VarintType:
			step = int64(n)
		case num == 5 && typ == protowire.BytesType:
			values = append(values, v)
		}
	})
	if err != nil {
		return nil, err
	}
	var out []Scalar
	for _, summary := range values {
		err := fields(summary, func(num protowire.Number, typ protowire.Type, v []byte, _ uint64) {
			if num != 1 || typ != protowire.BytesType {
				return
			}
			if s, ok := parseValue(v); ok {
				s.Step, s.WallTime = step, wall
				out = append(out, s)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// parseValue reads a Summary.Value: a simple value, or a tensor of one number.
func parseValue(b []byte) (s Scalar, ok bool) {
	err := fields(b, func(num protowire.Number, typ protowire.Type, v []byte, n uint64) {
		switch {
		case num == 1 && typ == protowire.BytesType:
			s.Tag = string(v)
		case num == 2 && typ == protowire.Fixed32Type:
			s.Value, ok = float64(math.Float32frombits(uint32(n))), true
		case num == 8 && typ == protowire.BytesType:
			if x, fits := parseTensor(v); fits {
				s.Value, ok = x, true
			}
		}
	})
	return s, ok && err == nil && s.Tag != ""
}

// Types of tensors that hold one number.
const (
	tensorFloat  = 1
	tensorDouble = 2
	tensorInt32  = 3
	tensorInt64  = 9
)

func parseTensor(b []byte) (float64, bool) {
	var dtype uint64
	var content []byte
	var value float64
	found := false
	err := fields(b, func(num protowire.Number, typ protowire.Type, v []byte, n uint64) {
		switch {
		case num == 1 && typ == protowire.VarintType:
			dtype = n
		case num == 4 && typ == protowire.BytesType:
			content = v
		case num == 5 && len(v) >= 4: // float_val, packed
			value, found = float64(math.Float32frombits(binary.LittleEndian.Uint32(v))), true
		case num == 6 && len(v) >= 8:
			value, found = math.Float64frombits(binary.LittleEndian.Uint64(v)), true
		}
	})
	switch {
	case err != nil:
		return 0, false
	case dtype == tensorFloat && len(content) == 4:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(content))), true
	case dtype == tensorDouble && len(content) == 8:
		return math.Float64frombits(binary.LittleEndian.Uint64(content)), true
	case dtype == tensorInt32 && len(content) == 4:
		return float64(int32(binary.LittleEndian.Uint32(content))), true
	case dtype == tensorInt64 && len(content) == 8:
		return float64(int64(binary.LittleEndian.Uint64(content))), true
	}
	return value, found
}

// fields walks over a protobuf message. v is set for bytes, n for numbers.
func fields(b []byte, each func(num protowire.Number, typ protowire.Type, v []byte, n uint64)) error {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return fmt.Errorf("event: %w", protowire.ParseError(n))
		}
		b = b[n:]
		var v []byte
		var x uint64
		switch typ {
		case protowire.VarintType:
			x, n = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			x, n = protowire.ConsumeFixed64(b)
		case protowire.Fixed32Type:
			var y uint32
			y, n = protowire.ConsumeFixed32(b)
			x = uint64(y)
		case protowire.BytesType:
			v, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(num, typ, b)
		}
		if n < 0 {
			return fmt.Errorf("event: %w", protowire.ParseError(n))
		}
		each(num, typ, v, x)
		b = b[n:]
	}
	return nil
}

// EventSource follows the TensorBoard event files below a folder. Files are
// read in the order of their names, all of them as long as they grow.
func EventSource(dir string) native.Source {
	return &events{dir: dir, files: map[string]*eventFile{}}
}

type events struct {
	dir   string
	files map[string]*eventFile
}

type eventFile struct {
	offset int64
	broken bool
}

func (e *events) Name() string { return "tensorboard" }

func (e *events) Poll(_ bool, emit func(native.Reading)) error {
	var names []string
	err := filepath.WalkDir(e.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.Contains(d.Name(), "tfevents") {
			names = append(names, path)
		}
		return nil // what cannot be listed now is tried at the next poll
	})
	if err != nil {
		return err
	}
	slices.Sort(names)
	var errs []error
	for _, name := range names {
		f := e.files[name]
		if f == nil {
			f = &eventFile{}
			e.files[name] = f
		}
		if err := f.read(name, emit); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// read emits the complete records that are new, a step's scalars together.
func (f *eventFile) read(name string, emit func(native.Reading)) error {
	if f.broken {
		return nil
	}
	src, err := os.Open(name)
	if err != nil {
		return err
	}
	defer src.Close()
	info, err := src.Stat()
	if err != nil {
		return err
	}
	if info.Size() < f.offset {
		f.offset = 0 // another file under the same name
	}
	if info.Size() == f.offset {
		return nil
	}
	if _, err := src.Seek(f.offset, io.SeekStart); err != nil {
		return err
	}
	b, err := io.ReadAll(io.LimitReader(src, longestRecord+16))
	if err != nil {
		return err
	}
	var step int64
	values := map[string]float64{}
	flush := func() {
		if len(values) > 0 {
			emit(native.Reading{Step: step, Values: values})
			values = map[string]float64{}
		}
	}
	for {
		data, rest, err := NextRecord(b)
		if IsShort(err) {
			break
		}
		if err != nil {
			f.broken = true
			flush()
			emit(native.Reading{Bad: 1})
			return fmt.Errorf("%s at byte %d: %w", name, f.offset, err)
		}
		f.offset += int64(len(b) - len(rest))
		b = rest
		scalars, err := ParseEvent(data)
		if err != nil {
			emit(native.Reading{Bad: 1})
			continue
		}
		for _, s := range scalars {
			if s.Step != step {
				flush()
				step = s.Step
			}
			values[s.Tag] = s.Value
		}
	}
	flush()
	return nil
}
