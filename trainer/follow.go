package trainer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// FollowOptions says where a follower begins and what it refuses.
type FollowOptions struct {
	Offset  int64 // as stored; 0 = from the start
	MaxLine int   // as in ReaderOptions
}

// Lines is what a follower read in one go.
type Lines struct {
	Events             []Event
	Offset             int64 // after the last line taken; store it in the same transaction as the events
	Malformed, Unknown int
	Faults             []Fault
	Segment            bool // the file was replaced or cut: these lines begin a new segment
}

// Empty reports whether nothing was read.
func (l Lines) Empty() bool {
	return len(l.Events) == 0 && l.Malformed == 0 && l.Unknown == 0 && !l.Segment
}

// A Follower reads an events file while a trainer appends to it. It notices
// when the file is replaced (another inode) or cut and written anew, and then
// begins a new segment at its start. It is not safe for concurrent use.
type Follower struct {
	path    string
	max     int
	offset  int64 // where to begin when the file is opened
	file    *os.File
	reader  *Reader
	mark    []byte // the bytes before markEnd when the end was last reached
	markEnd int64
	segment bool // what is read next begins a new segment
	missing bool
}

// Follow returns a follower of the events file at path. The file need not
// exist yet. Close the follower.
func Follow(path string, o FollowOptions) *Follower {
	return &Follower{path: path, max: o.MaxLine, offset: o.Offset}
}

// Missing reports whether the file is not there (any more). What was already
// open is read to its end all the same.
func (f *Follower) Missing() bool { return f.missing }

// Pending returns how many bytes of an unfinished last line are there.
func (f *Follower) Pending() int64 {
	if f.reader == nil {
		return 0
	}
	return f.reader.Pending()
}

// Close closes the file.
func (f *Follower) Close() error {
	if f.file == nil {
		return nil
	}
	err := f.file.Close()
	f.file, f.reader = nil, nil
	return err
}

// Read reads what complete lines there are, stopping after most events (0 =
// 1000) or about 16 MiB of lines. An empty result means that nothing new is
// there; call again later.
func (f *Follower) Read(most int) (Lines, error) {
	if most <= 0 {
		most = 1000
	}
	if err := f.prepare(); err != nil || f.reader == nil {
		return Lines{Offset: f.offset}, err
	}
	const mostBytes = 16 << 20
	r := f.reader
	malformed, unknown, from := r.malformed, r.unknown, r.offset
	out := Lines{Segment: f.segment}
	for len(out.Events) < most && r.offset-from < mostBytes && r.Next() {
		out.Events = append(out.Events, r.Event())
	}
	f.segment = false
	f.offset = r.offset
	out.Offset = r.offset
	out.Malformed, out.Unknown = int(r.malformed-malformed), int(r.unknown-unknown)
	out.Faults = r.Faults()
	if err := r.Err(); err != nil {
		_ = f.Close() // open it again next time, at the offset
		return out, err
	}
	return out, f.setMark()
}

// prepare opens the file, or opens it again when it is not the one that was
// being read.
func (f *Follower) prepare() error {
	info, err := os.Stat(f.path)
	f.missing = errors.Is(err, fs.ErrNotExist)
	if f.missing {
		return nil // go on with the open file, if there is one
	}
	if err != nil {
		return fmt.Errorf("follow events: %w", err)
	}
	if f.file != nil {
		same, err := f.sameFile(info)
		if err != nil || same {
			return err
		}
		if rest, err := f.rest(); err != nil || rest {
			return err // the old file has complete lines left: those first
		}
		_ = f.Close()
		f.offset, f.segment = 0, true
	}
	return f.open()
}

func (f *Follower) open() error {
	file, err := os.Open(f.path)
	if err != nil {
		return fmt.Errorf("follow events: %w", err)
	}
	if begins, err := beginsLine(file, f.offset); err != nil || !begins {
		if err != nil {
			_ = file.Close()
			return fmt.Errorf("follow events: %w", err)
		}
		f.offset, f.segment = 0, true
	}
	if _, err := file.Seek(f.offset, io.SeekStart); err != nil {
		_ = file.Close()
		return fmt.Errorf("follow events: %w", err)
	}
	offset := f.offset
	f.file, f.mark, f.markEnd = file, nil, 0
	f.reader = NewReader(file, ReaderOptions{Offset: offset, MaxLine: f.max, Lines: func() (int64, error) {
		return countLines(io.NewSectionReader(file, 0, offset))
	}})
	return nil
}

// sameFile reports whether the file at the path is the one being read, grown
// at most.
func (f *Follower) sameFile(now fs.FileInfo) (bool, error) {
	open, err := f.file.Stat()
	if err != nil {
		return false, fmt.Errorf("follow events: %w", err)
	}
	read := f.reader.Offset() + f.reader.Pending()
	if !os.SameFile(open, now) || now.Size() < read {
		return false, nil
	}
	if len(f.mark) == 0 {
		return true, nil
	}
	was := make([]byte, len(f.mark))
	if _, err := f.file.ReadAt(was, f.markEnd-int64(len(was))); err != nil {
		return false, nil // shorter than it was a moment ago
	}
	return bytes.Equal(was, f.mark), nil
}

// rest reports whether the file being read was replaced by another one and
// still holds complete lines that were not read.
func (f *Follower) rest() (bool, error) {
	var now syscall.Stat_t
	if err := syscall.Fstat(int(f.file.Fd()), &now); err != nil {
		return false, fmt.Errorf("follow events: %w", err)
	}
	read := f.reader.Offset() + f.reader.Pending()
	if now.Size <= read {
		return false, nil
	}
	if info, err := os.Stat(f.path); err == nil {
		if open, err := f.file.Stat(); err == nil && os.SameFile(open, info) {
			return false, nil // written anew in place: what was there is gone
		}
	}
	left := make([]byte, min(now.Size-read, 64<<10))
	n, _ := f.file.ReadAt(left, read)
	return bytes.IndexByte(left[:n], '\n') >= 0, nil
}

// setMark remembers the last bytes read, so that a file written anew in place
// is noticed even when it has grown past the offset.
func (f *Follower) setMark() error {
	end := f.reader.Offset() + f.reader.Pending()
	if f.mark != nil && end == f.markEnd {
		return nil
	}
	mark := make([]byte, min(end, 64))
	if n, err := f.file.ReadAt(mark, end-int64(len(mark))); err != nil && n < len(mark) {
		return nil // cut since; the size tells next time
	}
	f.mark, f.markEnd = mark, end
	return nil
}

// beginsLine reports whether offset is the start of a line of the file.
func beginsLine(file *os.File, offset int64) (bool, error) {
	if offset == 0 {
		return true, nil
	}
	var b [1]byte
	_, err := file.ReadAt(b[:], offset-1)
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	return b[0] == '\n', err
}

// countLines counts newlines.
func countLines(r io.Reader) (int64, error) {
	var n int64
	buf := make([]byte, 64<<10)
	for {
		got, err := r.Read(buf)
		n += int64(bytes.Count(buf[:got], []byte{'\n'}))
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}
