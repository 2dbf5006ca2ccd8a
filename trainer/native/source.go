package native

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strconv"
)

// Tail follows a file that another process appends to, line by line. The zero
// offset begins at the start; a file that is not there yet is no error, one
// that became shorter is read again from its start.
type Tail struct {
	Path   string
	offset int64
	rest   []byte
}

// Lines calls each for every new whole line, without its end. With last set
// a line that has no end counts as one.
func (t *Tail) Lines(last bool, each func(line []byte)) error {
	f, err := os.Open(t.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err == nil && info.Size() < t.offset {
		t.offset, t.rest = 0, nil
	}
	if _, err := f.Seek(t.offset, io.SeekStart); err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(f, 64<<20)) // a bound for one poll
	if err != nil {
		return fmt.Errorf("read %s: %w", t.Path, err)
	}
	t.offset += int64(len(text))
	t.rest = append(t.rest, text...)
	for {
		line, rest, ok := bytes.Cut(t.rest, []byte{'\n'})
		if !ok {
			break
		}
		each(bytes.TrimSuffix(line, []byte{'\r'}))
		t.rest = rest
	}
	if last && len(t.rest) > 0 {
		each(t.rest)
		t.rest = nil
	}
	t.rest = bytes.Clone(t.rest)
	return nil
}

// MetricsFile is the source of a file with lines {"step": …, "data": {name:
// number}}, as verl's file logger and the TRL callback write them. Values that
// are no numbers are left out; NaN and infinities are data.
func MetricsFile(name, path string) Source { return &metricsFile{name: name, tail: Tail{Path: path}} }

type metricsFile struct {
	name string
	tail Tail
}

func (m *metricsFile) Name() string { return m.name }

func (m *metricsFile) Poll(last bool, emit func(Reading)) error {
	return m.tail.Lines(last, func(line []byte) { emit(metricsLine(line)) })
}

// metricsLine reads one line; what cannot be read is counted as Bad.
func metricsLine(line []byte) Reading {
	var x struct {
		Step *int64         `json:"step"`
		Data map[string]any `json:"data"`
	}
	dec := json.NewDecoder(bytes.NewReader(plainNumbers(line)))
	dec.UseNumber()
	if len(bytes.TrimSpace(line)) == 0 {
		return Reading{}
	}
	if err := dec.Decode(&x); err != nil || x.Step == nil || *x.Step < 0 {
		return Reading{Bad: 1}
	}
	r := Reading{Step: *x.Step, Values: map[string]float64{}}
	for name, v := range x.Data {
		if f, ok := number(v); ok {
			r.Values[name] = f
		}
	}
	return r
}

// number reads a JSON value as a number: also numbers, NaN and infinities
// that were written as texts.
func number(v any) (float64, bool) {
	switch v := v.(type) {
	case json.Number:
		f, err := v.Float64()
		return f, err == nil || math.IsInf(f, 0)
	case string:
		f, err := strconv.ParseFloat(v, 64)
		return f, err == nil
	case bool:
		return share(v), true
	}
	return 0, false
}

// plainNumbers puts the bare NaN and Infinity that Python writes between
// quotes, outside of texts.
func plainNumbers(line []byte) []byte {
	if !bytes.Contains(line, []byte("NaN")) && !bytes.Contains(line, []byte("Infinity")) {
		return line
	}
	out := make([]byte, 0, len(line)+16)
	inside := false
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case inside && c == '\\' && i+1 < len(line):
			out = append(out, c, line[i+1])
			i++
			continue
		case c == '"':
			inside = !inside
		case !inside && (c == 'N' || c == 'I' || c == '-'):
			word := ""
			for _, w := range []string{"NaN", "Infinity", "-Infinity"} {
				if bytes.HasPrefix(line[i:], []byte(w)) {
					word = w
				}
			}
			if word != "" {
				out = append(append(append(out, '"'), word...), '"')
				i += len(word) - 1
				continue
			}
		}
		out = append(out, c)
	}
	return out
}
