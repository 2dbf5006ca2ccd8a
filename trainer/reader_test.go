package trainer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
)

const good = `{"v":1,"kind":"points","t":5,"points":{"step":1,"values":{"x":1}}}`

// deep is JSON nested n deep.
func deep(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

// bad are lines that cannot be taken, and why.
var bad = []struct {
	name, line string
	cause      Cause
}{
	{"cut", `{"v":1,"kind":"points","t":5,"points":{"step":1,"val`, CauseCut},
	{"cut in a word", `{"v":1,"kind":"done","t":5,"done":{"ok":tr`, CauseCut},
	{"cut number", `{"v":1,"kind":"done","t":-`, CauseCut},
	{"bare NaN", `{"v":1,"kind":"points","t":5,"points":{"step":1,"values":{"x":NaN}}}`, CauseNotFinite},
	{"bare Infinity", `{"v":1,"kind":"points","t":5,"points":{"step":1,"values":{"x":Infinity}}}`, CauseNotFinite},
	{"bare -Infinity", `{"v":1,"kind":"points","t":5,"points":{"step":1,"values":{"x":-Infinity}}}`, CauseNotFinite},
	{"1e999", `{"v":1,"kind":"points","t":5,"points":{"step":1,"values":{"x":1e999}}}`, CauseNumber},
	{"1e999 as a reward", `{"v":1,"kind":"trajectory","t":5,"trajectory":{"id":"a","reward":1e999}}`, CauseNumber},
	{"duplicate key", `{"v":1,"kind":"points","t":5,"points":{"step":1,"values":{"x":1,"x":2}}}`, CauseDuplicate},
	{"duplicate among many", `{"v":1,"kind":"points","t":5,"points":{"step":1,"values":{` + manyKeys(40) + `,"k7":1}}}`, CauseDuplicate},
	{"invalid UTF-8", "{\"v\":1,\"kind\":\"\xff\"}", CauseUTF8},
	{"NUL", "{\"v\":1,\x00\"kind\":\"points\"}", CauseNUL},
	{"zeros after a power cut", strings.Repeat("\x00", 300), CauseNUL},
	{"byte order mark", "\xef\xbb\xbf" + good, CauseBOM},
	{"10,000 deep", `{"v":1,"kind":"points","x":` + deep(10_000) + `}`, CauseDepth},
	{"64 KB key", `{"` + strings.Repeat("k", 64<<10) + `":1}`, CauseKey},
	{"long metric name", `{"v":1,"kind":"points","t":5,"points":{"step":1,"values":{"` + strings.Repeat("m", 300) + `":1}}}`, CauseKey},
	{"empty metric name", `{"v":1,"kind":"points","t":5,"points":{"step":1,"values":{"":1}}}`, CauseKey},
	{"not an object", `[1,2]`, CauseSyntax},
	{"plain text", `Traceback (most recent call last):`, CauseSyntax},
	{"trailing comma", `{"v":1,}`, CauseSyntax},
	{"two objects", good + good, CauseSyntax},
	{"leading zero", `{"v":01}`, CauseSyntax},
	{"raw tab in a string", "{\"v\":\"\t\"}", CauseSyntax},
	{"null value", `{"v":1,"kind":"points","t":5,"points":{"step":1,"values":{"x":null}}}`, CauseType},
	{"word as a value", `{"v":1,"kind":"points","t":5,"points":{"step":1,"values":{"x":"high"}}}`, CauseType},
	{"step as text", `{"v":1,"kind":"points","t":5,"points":{"step":"1","values":{"x":1}}}`, CauseType},
	{"fractional step", `{"v":1,"kind":"points","t":5,"points":{"step":1.5,"values":{"x":1}}}`, CauseType},
	{"version 2", `{"v":2,"kind":"points","t":5,"points":{"step":1,"values":{"x":1}}}`, CauseVersion},
	{"no version", `{"kind":"points","t":5,"points":{"step":1,"values":{"x":1}}}`, CauseField},
	{"no time", `{"v":1,"kind":"points","points":{"step":1,"values":{"x":1}}}`, CauseField},
	{"time in the stone age", `{"v":1,"kind":"points","t":-5,"points":{"step":1,"values":{"x":1}}}`, CauseField},
	{"no body", `{"v":1,"kind":"points","t":5}`, CauseField},
	{"null body", `{"v":1,"kind":"done","t":5,"done":null}`, CauseField},
	{"negative step", `{"v":1,"kind":"done","t":5,"done":{"ok":true,"step":-1}}`, CauseField},
	{"alert level", `{"v":1,"kind":"alert","t":5,"alert":{"level":"loud","code":"x","text":"y"}}`, CauseField},
}

func manyKeys(n int) string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf(`"k%d":1`, i)
	}
	return strings.Join(keys, ",")
}

func TestReaderCountsBadLinesAndKeepsTheGoodOnes(t *testing.T) {
	for _, tt := range bad {
		t.Run(tt.name, func(t *testing.T) {
			file := good + "\n" + tt.line + "\n" + good + "\r\n\n" + `{"v":1,"kind":"mood"}` + "\n"
			r := NewReader(strings.NewReader(file), ReaderOptions{})
			n := 0
			for r.Next() {
				n++
				if e := r.Event(); e.Kind != KindPoints || e.Points.Values["x"] != 1 {
					t.Errorf("event %+v", e)
				}
			}
			if r.Err() != nil || n != 2 || r.Malformed() != 1 || r.Unknown() != 1 || r.Offset() != int64(len(file)) {
				t.Errorf("%d events, %d malformed, %d unknown, offset %d of %d, %v", n, r.Malformed(), r.Unknown(), r.Offset(), len(file), r.Err())
			}
			f := r.Faults()
			if len(f) != 1 || f[0].Line != 2 || f[0].Offset != int64(len(good)+1) || f[0].Cause != tt.cause {
				t.Errorf("Faults = %v, want %s in line 2", f, tt.cause)
			}
			if len(f) == 1 && (len(f[0].Text) > 400 || strings.Contains(f[0].Text, "\n")) {
				t.Errorf("text of %d bytes: %s", len(f[0].Text), f[0].Text)
			}
		})
	}
}

// TestReaderTakesTenThousandBadLines is a file that is nothing but faults,
// with a good line between any two.
func TestReaderTakesTenThousandBadLines(t *testing.T) {
	var file bytes.Buffer
	const n = 10_000
	for i := range n {
		file.WriteString(bad[i%len(bad)].line + "\n" + good + "\n")
	}
	r := NewReader(&file, ReaderOptions{})
	events, faults := 0, 0
	for r.Next() {
		events++
		faults += len(r.Faults())
	}
	if faults += len(r.Faults()); events != n || r.Malformed() != n || faults != n {
		t.Errorf("%d events, %d malformed, %d described; want %d each", events, r.Malformed(), faults, n)
	}
}

func TestReaderKeepsATornLastLine(t *testing.T) {
	var in bytes.Buffer
	r := NewReader(&in, ReaderOptions{Offset: 1000})
	for i := range len(good) {
		in.WriteByte(good[i])
		if r.Next() {
			t.Fatalf("an event after %d bytes", i+1)
		}
	}
	if r.Offset() != 1000 || r.Pending() != int64(len(good)) || r.Malformed() != 0 {
		t.Errorf("offset %d, pending %d, malformed %d", r.Offset(), r.Pending(), r.Malformed())
	}
	in.WriteString("\n")
	if !r.Next() || r.Offset() != int64(1000+len(good)+1) || r.Pending() != 0 {
		t.Errorf("after the newline: offset %d, pending %d, %v", r.Offset(), r.Pending(), r.Err())
	}
}

func TestReaderWithSmallReads(t *testing.T) {
	file := strings.Repeat(good+"\n", 500)
	for name, in := range map[string]io.Reader{
		"a byte at a time":    iotest.OneByteReader(strings.NewReader(file)),
		"half of what asked":  iotest.HalfReader(strings.NewReader(file)),
		"data with the error": iotest.DataErrReader(strings.NewReader(file)),
	} {
		r := NewReader(in, ReaderOptions{})
		n := 0
		for r.Next() {
			n++
		}
		if n != 500 || r.Err() != nil {
			t.Errorf("%s: %d events, %v", name, n, r.Err())
		}
	}
	broken := io.MultiReader(strings.NewReader(good+"\n"), iotest.ErrReader(errors.New("disk gone")))
	r := NewReader(broken, ReaderOptions{})
	if !r.Next() || r.Next() || r.Err() == nil || !strings.Contains(r.Err().Error(), "disk gone") {
		t.Errorf("Err = %v", r.Err())
	}
}

func TestReaderOverflow(t *testing.T) {
	for _, size := range []int{99, 100, 101, 5000, 1 << 20} {
		long := `{"v":1,"kind":"mood","x":"` + strings.Repeat("y", size-28) + `"}`
		if len(long) != size {
			t.Fatalf("line of %d bytes", len(long))
		}
		file := good + "\n" + long + "\n" + good + "\n"
		r := NewReader(strings.NewReader(file), ReaderOptions{MaxLine: 100})
		var kinds []string
		for r.Next() {
			kinds = append(kinds, string(r.Event().Kind))
			if o := r.Event().Overflow; o != nil {
				if o.Bytes != int64(size) || o.Offset != int64(len(good)+1) || !strings.HasPrefix(o.Head, `{"v":1,"kind":"mood"`) || r.Event().T != 5 {
					t.Errorf("size %d: overflow %+v at %d", size, o, r.Event().T)
				}
			}
		}
		want := "points overflow points"
		if size <= 100 {
			want = "points points"
		}
		if got := strings.Join(kinds, " "); got != want || r.Offset() != int64(len(file)) || r.Malformed() != 0 {
			t.Errorf("size %d: %s, offset %d of %d, %d malformed; want %s", size, got, r.Offset(), len(file), r.Malformed(), want)
		}
	}
}

// endless is a line of n bytes that nobody holds in memory.
type endless struct{ n int64 }

func (e *endless) Read(b []byte) (int, error) {
	if e.n == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(b)), e.n)
	for i := range b[:n] {
		b[i] = 'x'
	}
	e.n -= n
	return int(n), nil
}

func TestReaderDoesNotHoldALineOverTheLimit(t *testing.T) {
	const size = 100 << 20
	in := io.MultiReader(&endless{size}, strings.NewReader("\n"+good+"\n"))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	r := NewReader(in, ReaderOptions{})
	if !r.Next() || r.Event().Overflow == nil || r.Event().Overflow.Bytes != size {
		t.Fatalf("event %+v", r.Event())
	}
	if !r.Next() || r.Event().Kind != KindPoints {
		t.Fatalf("event %+v", r.Event())
	}
	runtime.ReadMemStats(&after)
	// Growing by doubling allocates at most twice the limit in all; at any
	// moment at most one and a half times the limit is held.
	if got := after.TotalAlloc - before.TotalAlloc; got > 3*DefaultMaxLine {
		t.Errorf("allocated %d MiB for a line of 100 MiB", got>>20)
	}
	if cap(r.store) > 4*readSize {
		t.Errorf("keeps a buffer of %d KiB", cap(r.store)>>10)
	}
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// read takes what a follower has.
func read(t *testing.T, f *Follower) Lines {
	t.Helper()
	l, err := f.Read(0)
	if err != nil {
		t.Fatalf("Read: %v", err)
	}
	return l
}

// line is a points event of a step.
func line(step int) string {
	return fmt.Sprintf(`{"v":1,"kind":"points","t":5,"points":{"step":%d,"values":{"x":1}}}`+"\n", step)
}

// stepsOf are the steps of what was read.
func stepsOf(l Lines) string {
	var out []string
	for _, e := range l.Events {
		out = append(out, fmt.Sprint(e.Points.Step))
	}
	return strings.Join(out, " ")
}

func TestFollowerWaitsForTheFileAndGrowsWithIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.jsonl")
	f := Follow(path, FollowOptions{})
	defer f.Close()
	if l := read(t, f); !l.Empty() || !f.Missing() {
		t.Errorf("before the file is there: %+v, missing %v", l, f.Missing())
	}
	appendTo(t, path, line(1)+line(2)[:10])
	if l := read(t, f); stepsOf(l) != "1" || l.Segment || l.Offset != int64(len(line(1))) || f.Pending() != 10 {
		t.Errorf("first: %+v, pending %d", l, f.Pending())
	}
	if l := read(t, f); !l.Empty() || l.Offset != int64(len(line(1))) {
		t.Errorf("nothing new: %+v", l)
	}
	appendTo(t, path, line(2)[10:]+line(3))
	if l := read(t, f); stepsOf(l) != "2 3" || l.Segment {
		t.Errorf("second: %+v", l)
	}
	offset := read(t, f).Offset
	again := Follow(path, FollowOptions{Offset: offset})
	defer again.Close()
	appendTo(t, path, "broken\n"+line(4))
	l := read(t, again)
	if stepsOf(l) != "4" || l.Segment || len(l.Faults) != 1 || l.Faults[0].Line != 4 {
		t.Errorf("from the stored offset: %+v", l)
	}
}

func TestFollowerReadsInParts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.jsonl")
	for i := range 10 {
		appendTo(t, path, line(i))
	}
	f := Follow(path, FollowOptions{})
	defer f.Close()
	for _, want := range []string{"0 1 2 3", "4 5 6 7", "8 9", ""} {
		if l, err := f.Read(4); err != nil || stepsOf(l) != want {
			t.Errorf("Read(4) = %q, %v; want %q", stepsOf(l), err, want)
		}
	}
}

func TestFollowerNoticesAnotherFile(t *testing.T) {
	tests := []struct {
		name string
		turn func(t *testing.T, path string)
		want string
	}{
		{"cut and shorter", func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte(line(7)), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "7"},
		{"written anew and longer", func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte(line(11)+line(12)+line(13)+line(14)), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "11 12 13 14"},
		{"replaced", func(t *testing.T, path string) {
			if err := os.WriteFile(path+".new", []byte(line(21)+line(22)+line(23)+line(24)), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
		}, "21 22 23 24"},
		{"rotated", func(t *testing.T, path string) {
			if err := os.Rename(path, path+".1"); err != nil {
				t.Fatal(err)
			}
			appendTo(t, path, line(31))
		}, "31"},
		{"emptied", func(t *testing.T, path string) {
			if err := os.Truncate(path, 0); err != nil {
				t.Fatal(err)
			}
		}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "events.jsonl")
			appendTo(t, path, line(1)+line(2)+line(3))
			f := Follow(path, FollowOptions{})
			defer f.Close()
			if l := read(t, f); stepsOf(l) != "1 2 3" {
				t.Fatalf("first: %+v", l)
			}
			tt.turn(t, path)
			l := read(t, f)
			if stepsOf(l) != tt.want || !l.Segment {
				t.Errorf("then %q, segment %v; want %q in a new segment", stepsOf(l), l.Segment, tt.want)
			}
			if l := read(t, f); !l.Empty() {
				t.Errorf("then again %+v", l)
			}
		})
	}
}

// TestFollowerEndsTheOldFileFirst replaces a file that has lines nobody has
// read yet.
func TestFollowerEndsTheOldFileFirst(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.jsonl")
	appendTo(t, path, line(1))
	f := Follow(path, FollowOptions{})
	defer f.Close()
	read(t, f)
	appendTo(t, path, line(2))
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	appendTo(t, path, line(3))
	if l := read(t, f); stepsOf(l) != "2" || l.Segment {
		t.Errorf("first %q, segment %v; want the rest of the old file", stepsOf(l), l.Segment)
	}
	if l := read(t, f); stepsOf(l) != "3" || !l.Segment {
		t.Errorf("then %q, segment %v; want a new segment", stepsOf(l), l.Segment)
	}
}

func TestFollowerOfAStoredOffsetThatDoesNotFit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.jsonl")
	appendTo(t, path, line(1)+line(2))
	for _, offset := range []int64{3, 100_000} {
		f := Follow(path, FollowOptions{Offset: offset})
		if l := read(t, f); stepsOf(l) != "1 2" || !l.Segment {
			t.Errorf("offset %d: %q, segment %v; want all in a new segment", offset, stepsOf(l), l.Segment)
		}
		f.Close()
	}
}

func TestFollowerOfAFileThatWasDeleted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.jsonl")
	appendTo(t, path, line(1))
	f := Follow(path, FollowOptions{})
	defer f.Close()
	read(t, f)
	appendTo(t, path, line(2))
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if l := read(t, f); stepsOf(l) != "2" || !f.Missing() {
		t.Errorf("%q, missing %v; want the rest of the file, and missing", stepsOf(l), f.Missing())
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(good+"\n"), 7)
	for _, tt := range bad {
		if len(tt.line) < 1000 {
			f.Add([]byte(tt.line+"\n"+good+"\n"), 64)
		}
	}
	for kind := range examples() {
		golden, err := os.ReadFile(filepath.Join("testdata", string(kind)+".jsonl"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(golden, 1000)
	}
	f.Fuzz(func(t *testing.T, file []byte, most int) {
		most = 1 + (most&0xffff)%4096
		r := NewReader(bytes.NewReader(file), ReaderOptions{MaxLine: most})
		var n int64
		for r.Next() {
			n++
			e := r.Event()
			if e.Kind == KindOverflow {
				if e.Overflow.Bytes <= int64(most) {
					t.Fatalf("overflow of %d bytes, the limit is %d", e.Overflow.Bytes, most)
				}
				continue
			}
			if _, err := Encode(e); err != nil {
				t.Fatalf("an event that was read cannot be written: %v", err)
			}
		}
		lines := int64(bytes.Count(file, []byte("\n")))
		if got := n + r.Malformed() + r.Unknown(); got > lines {
			t.Fatalf("%d records from %d lines", got, lines)
		}
		if end := int64(bytes.LastIndexByte(file, '\n') + 1); r.Offset() != end || r.Err() != nil {
			t.Fatalf("offset %d, want %d; %v", r.Offset(), end, r.Err())
		}
	})
}
