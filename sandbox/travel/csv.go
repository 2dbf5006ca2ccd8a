package travel

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
)

const maxRecordBytes = 1 << 20

// csvReader reads comma separated values the way the benchmark's programs do
// (pandas): a quote counts only at the start of a field, a doubled quote
// inside stands for one, blank lines are skipped, line ends may be \n, \r\n or \r.
type csvReader struct {
	r    *bufio.Reader
	line int // of the record just read
	next int
	buf  []byte
	ends []int
}

func newCSVReader(r io.Reader) *csvReader {
	c := &csvReader{r: bufio.NewReaderSize(r, 1<<16), next: 1}
	if bom, _ := c.r.Peek(3); string(bom) == "\ufeff" {
		_, _ = c.r.Discard(3)
	}
	return c
}

// read returns the next record; its fields are valid until the next call.
func (c *csvReader) read(fields [][]byte) ([][]byte, error) {
	for {
		if err := c.scan(); err != nil {
			return nil, err
		}
		if len(c.ends) > 1 || len(c.buf) > 0 {
			break
		}
	}
	fields = fields[:0]
	start := 0
	for _, end := range c.ends {
		fields = append(fields, c.buf[start:end])
		start = end
	}
	return fields, nil
}

// scan fills buf and ends with one record, which may be a blank line.
func (c *csvReader) scan() error {
	c.buf, c.ends, c.line = c.buf[:0], c.ends[:0], c.next
	quoted, begin, any := false, true, false
	for {
		b, err := c.r.ReadByte()
		if err == io.EOF {
			if !any {
				return io.EOF
			}
			c.ends = append(c.ends, len(c.buf))
			return nil
		}
		if err != nil {
			return err
		}
		any = true
		if len(c.buf) >= maxRecordBytes {
			return fmt.Errorf("line %d: record longer than %d bytes", c.line, maxRecordBytes)
		}
		switch {
		case quoted:
			if b == '"' {
				if p, _ := c.r.Peek(1); len(p) == 1 && p[0] == '"' {
					_, _ = c.r.Discard(1)
				} else {
					quoted = false
					continue
				}
			}
			if b == '\n' {
				c.next++
			}
			c.buf = append(c.buf, b)
		case b == '"' && begin:
			quoted, begin = true, false
		case b == ',':
			c.ends = append(c.ends, len(c.buf))
			begin = true
		case b == '\n' || b == '\r':
			if b == '\r' {
				if p, _ := c.r.Peek(1); len(p) == 1 && p[0] == '\n' {
					_, _ = c.r.Discard(1)
				}
			}
			c.next++
			c.ends = append(c.ends, len(c.buf))
			return nil
		default:
			begin = false
			c.buf = append(c.buf, b)
		}
	}
}

// missing tells whether a cell counts as empty: the words pandas takes for a
// missing value are missing too.
func missing(cell []byte) bool {
	if len(cell) > len("#N/A N/A") {
		return false
	}
	switch string(cell) {
	case "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
		"<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null":
		return true
	}
	return false
}

// row is one record with its columns by name. The first fault is kept.
type row struct {
	file   string
	line   int
	fields [][]byte
	cols   []int
	names  []string
	pool   map[string]string
	err    error
}

// text returns a cell; texts that occur often share their memory.
func (r *row) text(col int) string {
	cell := r.fields[r.cols[col]]
	if s, ok := r.pool[string(cell)]; ok {
		return s
	}
	s := string(cell)
	if len(r.pool) < 100_000 && len(s) < 100 {
		r.pool[s] = s
	}
	return s
}

// gap is the text of a cell that may be missing.
func (r *row) gap(col int) string {
	if missing(r.fields[r.cols[col]]) {
		return ""
	}
	return r.text(col)
}

func (r *row) number(col int) float64 {
	cell := r.fields[r.cols[col]]
	x, err := strconv.ParseFloat(string(cell), 64)
	if (err != nil || math.IsInf(x, 0) || math.IsNaN(x)) && r.err == nil {
		r.err = fmt.Errorf("%s:%d: %s is %q, must be a number", r.file, r.line, r.names[col], clip(string(cell)))
	}
	return x
}

func (r *row) integer(col int) int {
	x := r.number(col)
	if (x != math.Trunc(x) || math.Abs(x) > 1e9) && r.err == nil {
		r.err = fmt.Errorf("%s:%d: %s is %v, must be a whole number up to 1e9", r.file, r.line, r.names[col], x)
	}
	return int(x)
}

// clip shortens a value for a message.
func clip(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	i := most
	for i > 0 && s[i]&0xc0 == 0x80 {
		i--
	}
	return s[:i] + "…"
}

// eachRow reads a table: it finds the columns by name, drops rows with a
// missing cell anywhere unless keep is true, and hands the others to take.
func eachRow(file string, names []string, keep bool, take func(*row)) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	return readRows(f, file, names, keep, take)
}

func readRows(src io.Reader, file string, names []string, keep bool, take func(*row)) error {
	c := newCSVReader(src)
	head, err := c.read(nil)
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: no header line", file)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	r := &row{file: file, names: names, cols: make([]int, len(names)), pool: map[string]string{}}
	width := len(head)
	for i, name := range names {
		r.cols[i] = -1
		for j, h := range head {
			if string(h) == name {
				r.cols[i] = j
				break
			}
		}
		if r.cols[i] < 0 {
			return fmt.Errorf("%s: no column %q in the header", file, name)
		}
	}
	for {
		r.fields, err = c.read(r.fields)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		r.line = c.line
		if len(r.fields) > width {
			return fmt.Errorf("%s:%d: %d cells, must be at most %d as in the header", file, r.line, len(r.fields), width)
		}
		short := len(r.fields) < width
		for len(r.fields) < width {
			r.fields = append(r.fields, nil)
		}
		if !keep && (short || anyMissing(r.fields)) {
			continue
		}
		take(r)
		if r.err != nil {
			return r.err
		}
	}
}

func anyMissing(fields [][]byte) bool {
	for _, f := range fields {
		if missing(f) {
			return true
		}
	}
	return false
}
