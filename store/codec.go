package store

import (
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// codec compresses and decompresses blobs: one byte that says how, then the
// bytes. It is safe for concurrent use.
type codec struct {
	enc *zstd.Encoder
	dec *zstd.Decoder
}

const (
	packedPlain = 0
	packedZstd  = 1
)

// maxBlob bounds what a damaged blob can make us allocate.
const maxBlob = 1 << 30

func newCodec() *codec {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false))
	if err != nil {
		panic(err) // the options are constants
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(maxBlob))
	if err != nil {
		panic(err)
	}
	return &codec{enc, dec}
}

func (c *codec) close() { c.dec.Close() }

// pack compresses b when that makes it smaller.
func (c *codec) pack(b []byte) []byte {
	out := c.enc.EncodeAll(b, append(make([]byte, 0, len(b)/2+64), packedZstd))
	if len(out) <= len(b) {
		return out
	}
	return append(append(out[:0], packedPlain), b...)
}

// unpack appends what pack was given to into.
func (c *codec) unpack(b, into []byte) ([]byte, error) {
	if len(b) == 0 {
		return nil, errDamaged
	}
	switch b[0] {
	case packedPlain:
		return append(into, b[1:]...), nil
	case packedZstd:
		out, err := c.dec.DecodeAll(b[1:], into)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errDamaged, err)
		}
		return out, nil
	}
	return nil, errDamaged
}
