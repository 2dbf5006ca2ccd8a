package store

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
)

// column is the points of one metric, by field: steps, times in unix
// milliseconds, values.
type column struct {
	steps  []int64
	walls  []int64
	values []float64
}

func (c *column) len() int { return len(c.steps) }

func (c *column) add(step, wall int64, value float64) {
	c.steps = append(c.steps, step)
	c.walls = append(c.walls, wall)
	c.values = append(c.values, value)
}

func (c *column) append(o column) {
	c.steps = append(c.steps, o.steps...)
	c.walls = append(c.walls, o.walls...)
	c.values = append(c.values, o.values...)
}

// slice returns the points from i up to j; it shares their memory.
func (c *column) slice(i, j int) column {
	return column{c.steps[i:j], c.walls[i:j], c.values[i:j]}
}

func (c *column) reset() {
	c.steps, c.walls, c.values = c.steps[:0], c.walls[:0], c.values[:0]
}

// errDamaged is a blob that cannot be what was written.
var errDamaged = errors.New("stored points are damaged")

// The tail's bodies: one record for each points event, its metrics together.
//
//	step, wall  zigzag varints
//	n           uvarint, number of values
//	n times     name uvarint, value 8 bytes little-endian

func appendTailHead(b []byte, step, wall int64, n int) []byte {
	b = binary.AppendVarint(b, step)
	b = binary.AppendVarint(b, wall)
	return binary.AppendUvarint(b, uint64(n))
}

func appendTailValue(b []byte, name int64, value float64) []byte {
	b = binary.AppendUvarint(b, uint64(name))
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(value))
}

// readTail calls point for each value of a body.
func readTail(b []byte, point func(name, step, wall int64, value float64)) error {
	for len(b) > 0 {
		step, i := binary.Varint(b)
		if i <= 0 {
			return errDamaged
		}
		b = b[i:]
		wall, i := binary.Varint(b)
		if i <= 0 {
			return errDamaged
		}
		b = b[i:]
		n, i := binary.Uvarint(b)
		if i <= 0 {
			return errDamaged
		}
		b = b[i:]
		for range n {
			name, i := binary.Uvarint(b)
			if i <= 0 || len(b) < i+8 {
				return errDamaged
			}
			point(int64(name), step, wall, math.Float64frombits(binary.LittleEndian.Uint64(b[i:])))
			b = b[i+8:]
		}
	}
	return nil
}

// A chunk's payload: steps and times each as second differences in zigzag
// varints, then the values' bytes shuffled: all first bytes, all second …

func appendColumn(b []byte, c column) []byte {
	b = appendDeltas(b, c.steps)
	b = appendDeltas(b, c.walls)
	n := len(c.values)
	at := len(b)
	b = append(b, make([]byte, 8*n)...)
	planes := b[at:]
	for i, v := range c.values {
		bits := math.Float64bits(v)
		for k := range 8 {
			planes[k*n+i] = byte(bits >> (8 * k))
		}
	}
	return b
}

func appendDeltas(b []byte, x []int64) []byte {
	var last, delta int64
	for _, v := range x {
		d := v - last
		b = binary.AppendVarint(b, d-delta)
		last, delta = v, d
	}
	return b
}

// readColumn appends the n points of a payload to c.
func readColumn(b []byte, n int, c *column) error {
	var err error
	if c.steps, b, err = readDeltas(c.steps, b, n); err != nil {
		return err
	}
	if c.walls, b, err = readDeltas(c.walls, b, n); err != nil {
		return err
	}
	if len(b) != 8*n {
		return errDamaged
	}
	c.values = slices.Grow(c.values, n)
	b0, b1, b2, b3 := b[:n], b[n:2*n], b[2*n:3*n], b[3*n:4*n]
	b4, b5, b6, b7 := b[4*n:5*n], b[5*n:6*n], b[6*n:7*n], b[7*n:8*n]
	for i := range b0 {
		bits := uint64(b0[i]) | uint64(b1[i])<<8 | uint64(b2[i])<<16 | uint64(b3[i])<<24 |
			uint64(b4[i])<<32 | uint64(b5[i])<<40 | uint64(b6[i])<<48 | uint64(b7[i])<<56
		c.values = append(c.values, math.Float64frombits(bits))
	}
	return nil
}

func readDeltas(x []int64, b []byte, n int) ([]int64, []byte, error) {
	x = slices.Grow(x, n)
	var last, delta int64
	for range n {
		if len(b) > 0 && b[0] < 0x80 { // most are small
			delta += int64(b[0]>>1) ^ -int64(b[0]&1)
			b = b[1:]
		} else {
			dd, i := binary.Varint(b)
			if i <= 0 {
				return x, b, errDamaged
			}
			b = b[i:]
			delta += dd
		}
		last += delta
		x = append(x, last)
	}
	return x, b, nil
}

// brief is a column's first, smallest, largest and last point in order: what
// a chart with fewer pixels than chunks needs. It is empty when a value is not
// finite, since that must be seen.
func brief(c column) column {
	low, high := 0, 0
	for i, v := range c.values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return column{}
		}
		if v < c.values[low] {
			low = i
		}
		if v > c.values[high] {
			high = i
		}
	}
	var out column
	last := -1
	for _, i := range [...]int{0, min(low, high), max(low, high), c.len() - 1} {
		if i != last {
			out.append(c.slice(i, i+1))
		}
		last = i
	}
	return out
}
