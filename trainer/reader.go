package trainer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// DefaultMaxLine is the longest line a reader takes unless told otherwise.
const DefaultMaxLine = 32 << 20

// readSize is how much is asked of the file at once, and the size of buffer a
// reader keeps after a long line.
const readSize = 256 << 10

// ReaderOptions says where a reader begins and what it refuses.
type ReaderOptions struct {
	Offset  int64                 // of the first byte of r in the file
	MaxLine int                   // bytes without the newline; 0 = DefaultMaxLine
	Lines   func() (int64, error) // counts the lines before Offset; called at the first fault; nil = none
}

// Reader reads events one by one. It is shaped like a scanner: call Next until
// it returns false, then Err. At the end of the input an unfinished last line
// is kept: Next returns false, and more when called after the input has grown.
// Bad lines do not end the stream: they are counted and described by Faults.
// A Reader is not safe for concurrent use.
type Reader struct {
	in    io.Reader
	max   int
	lines func() (int64, error)

	buf     []byte // unread bytes; buf[0] is at offset
	scanned int    // bytes of buf known to hold no newline
	store   []byte // the array buf lives in
	offset  int64
	line    int64 // complete lines taken
	skipped int64 // bytes dropped of a line over the limit
	head    []byte

	event     Event
	lastT     int64
	faults    []Fault
	malformed int64
	unknown   int64
	overflow  int64
	err       error
}

// NewReader returns a reader of in, which begins at o.Offset of its file.
func NewReader(in io.Reader, o ReaderOptions) *Reader {
	if o.MaxLine <= 0 {
		o.MaxLine = DefaultMaxLine
	}
	return &Reader{in: in, max: o.MaxLine, lines: o.Lines, offset: o.Offset}
}

// Next reads up to the next event and reports whether there is one.
func (r *Reader) Next() bool {
	for r.err == nil {
		line, from, ok := r.takeLine()
		if !ok {
			return false
		}
		if r.skipped > 0 {
			r.takeOverflow(from, int64(len(line)))
			return true
		}
		line = bytes.TrimRight(line, "\r")
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		e, err := decode(line)
		switch {
		case errors.Is(err, errUnknown):
			r.unknown++
		case err != nil:
			r.addFault(from, line, err)
		default:
			r.event, r.lastT = e, e.T
			return true
		}
	}
	return false
}

// Event returns the event that Next read.
func (r *Reader) Event() Event { return r.event }

// Err returns the first error of the input. The end of the input is none.
func (r *Reader) Err() error { return r.err }

// Offset returns the offset in the file after the last complete line taken.
func (r *Reader) Offset() int64 { return r.offset }

// Malformed returns how many lines could not be read so far.
func (r *Reader) Malformed() int64 { return r.malformed }

// Unknown returns how many lines of unknown kinds were skipped so far.
func (r *Reader) Unknown() int64 { return r.unknown }

// Overflows returns how many lines were over the limit so far.
func (r *Reader) Overflows() int64 { return r.overflow }

// Pending returns how many bytes of an unfinished last line were read.
func (r *Reader) Pending() int64 { return r.skipped + int64(len(r.buf)) }

// maxFaults bounds the faults kept between two calls of Faults.
const maxFaults = 1000

// Faults returns the malformed lines since the last call, at most a thousand:
// Malformed has the true count.
func (r *Reader) Faults() []Fault {
	f := r.faults
	r.faults = nil
	return f
}

func (r *Reader) addFault(from int64, line []byte, err error) {
	r.malformed++
	if len(r.faults) >= maxFaults {
		return
	}
	r.countBefore()
	text := fmt.Sprintf("%s: %s", oneLine(err), clip(line))
	r.faults = append(r.faults, Fault{Line: r.line, Offset: from, Cause: CauseOf(err), Text: text})
}

// oneLine joins the lines of a joined error.
func oneLine(err error) string {
	return string(bytes.ReplaceAll([]byte(err.Error()), []byte("\n"), []byte("; ")))
}

// countBefore adds the lines before the reader's first to its count, once. It
// waits for the first fault because nobody else asks for line numbers.
func (r *Reader) countBefore() {
	if r.lines == nil {
		return
	}
	if n, err := r.lines(); err == nil {
		r.line += n
	}
	r.lines = nil
}

// takeLine returns the next complete line, its newline taken but left out, and
// the offset at which it began. When r.skipped > 0 the line was over the limit
// and only its end is returned.
func (r *Reader) takeLine() (line []byte, from int64, ok bool) {
	for {
		if i := bytes.IndexByte(r.buf[r.scanned:], '\n'); i >= 0 {
			i += r.scanned
			if i > r.max && r.skipped == 0 {
				r.skip(i)
				continue
			}
			line, from = r.buf[:i], r.offset
			r.buf, r.scanned = r.buf[i+1:], 0
			r.offset += r.skipped + int64(i) + 1
			r.line++
			return line, from, true
		}
		r.scanned = len(r.buf)
		if len(r.buf) > r.max || r.skipped > 0 {
			r.skip(len(r.buf))
		}
		if !r.fill() {
			return nil, 0, false
		}
	}
}

// skip drops n bytes of a line that is over the limit.
func (r *Reader) skip(n int) {
	if r.skipped == 0 {
		r.head = bytes.Clone(r.buf[:min(n, 200)])
	}
	r.skipped += int64(n)
	r.buf, r.scanned = r.buf[n:], 0
	if cap(r.store) > 2*readSize && len(r.buf) == 0 {
		r.store, r.buf = nil, nil
	}
}

// takeOverflow makes the event that stands for a line over the limit.
func (r *Reader) takeOverflow(from, rest int64) {
	r.overflow++
	r.event = Event{V: Version, Kind: KindOverflow, T: r.lastT, Overflow: &Overflow{
		Bytes: r.skipped + rest, Offset: from, Head: string(bytes.ToValidUTF8(r.head, []byte("\uFFFD"))),
	}}
	r.skipped, r.head = 0, nil
}

// fill reads more and reports whether there was any.
func (r *Reader) fill() bool {
	r.makeRoom()
	n, err := r.in.Read(r.buf[len(r.buf):cap(r.buf)])
	r.buf = r.buf[:len(r.buf)+n]
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = fmt.Errorf("read events: %w", err)
	}
	return n > 0
}

// makeRoom leaves space for a read behind r.buf: by starting over in the same
// array, by moving what is unread to its front, or in a larger array. A large
// array is given back once the long line it held is gone.
func (r *Reader) makeRoom() {
	if len(r.buf) == 0 {
		if r.store == nil || cap(r.store) > 4*readSize {
			r.store = make([]byte, readSize)
		}
		r.buf = r.store[:0]
		return
	}
	if cap(r.buf)-len(r.buf) >= readSize/4 {
		return
	}
	if len(r.buf) > len(r.store)/2 {
		r.store = make([]byte, min(2*len(r.buf), r.max)+readSize)
	}
	r.buf = r.store[:copy(r.store, r.buf)]
}
