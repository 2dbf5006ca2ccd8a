package emulator

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// consoleLine is verl's line of a step. numpy 2 prints its own scalars.
func consoleLine(step int64, values map[string]float64, numpy2 bool) string {
	parts := []string{"step:" + strconv.FormatInt(step, 10)}
	for i, name := range slices.Sorted(maps.Keys(values)) {
		v := pyFloat(values[name])
		if numpy2 && i%2 == 0 {
			v = "np.float64(" + v + ")"
		}
		parts = append(parts, name+":"+v)
	}
	return strings.Join(parts, " - ")
}

// pyFloat writes a number as Python's repr does.
func pyFloat(v float64) string {
	switch {
	case math.IsNaN(v):
		return "nan"
	case math.IsInf(v, 1):
		return "inf"
	case math.IsInf(v, -1):
		return "-inf"
	}
	s := strconv.FormatFloat(v, 'g', 17, 64)
	if short := strconv.FormatFloat(v, 'g', -1, 64); len(short) < len(s) {
		s = short
	}
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}

// metricsFile is verl's file logger: opened for truncation, one line a step.
// Old versions buffer it in blocks and write NaN bare; newer ones write each
// line at once, and null for what is not finite.
type metricsFile struct {
	file     *os.File
	w        *bufio.Writer
	buffered bool
}

func openMetrics(path string, buffered bool) (*metricsFile, error) {
	f, err := os.Create(path) // its folder is not made: verl does not either
	if err != nil {
		return nil, err
	}
	return &metricsFile{f, bufio.NewWriterSize(f, 8192), buffered}, nil
}

func (m *metricsFile) step(step int64, values map[string]float64) error {
	if m == nil {
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, `{"step": %d, "data": {`, step)
	for i, name := range slices.Sorted(maps.Keys(values)) {
		if i > 0 {
			b.WriteString(", ")
		}
		v := values[name]
		text := pyFloat(v)
		switch {
		case !math.IsNaN(v) && !math.IsInf(v, 0):
		case !m.buffered:
			text = "null"
		case math.IsNaN(v):
			text = "NaN"
		default:
			text = strings.Replace(text, "inf", "Infinity", 1)
		}
		b.WriteString(strconv.Quote(name) + ": " + text)
	}
	b.WriteString("}}\n")
	if _, err := m.w.WriteString(b.String()); err != nil {
		return err
	}
	if m.buffered {
		return nil
	}
	return m.w.Flush()
}

func (m *metricsFile) close() error {
	if m == nil {
		return nil
	}
	return errors.Join(m.w.Flush(), m.file.Close())
}

// eventFile is a TensorBoard event file: records of TFRecord with the parts of
// the Event and Summary messages that scalars need.
type eventFile struct{ file *os.File }

func openEvents(dir string) (*eventFile, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.Create(filepath.Join(dir, fmt.Sprintf("events.out.tfevents.%d.emulator.1.0", time.Now().Unix())))
	if err != nil {
		return nil, err
	}
	e := &eventFile{f}
	var m []byte
	m = appendDouble(m, 1, float64(time.Now().Unix()))
	m = appendBytes(m, 3, []byte("brain.Event:2"))
	return e, e.record(m)
}

func (e *eventFile) step(step int64, values map[string]float64) error {
	if e == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		var value, summary, m []byte
		value = appendBytes(value, 1, []byte(name))
		value = binary.AppendUvarint(value, 2<<3|5)
		value = binary.LittleEndian.AppendUint32(value, math.Float32bits(float32(values[name])))
		summary = appendBytes(summary, 1, value)
		m = appendDouble(m, 1, float64(time.Now().UnixNano())/1e9)
		m = binary.AppendUvarint(m, 2<<3)
		m = binary.AppendUvarint(m, uint64(step))
		m = appendBytes(m, 5, summary)
		if err := e.record(m); err != nil {
			return err
		}
	}
	return nil
}

func (e *eventFile) close() error {
	if e == nil {
		return nil
	}
	return e.file.Close()
}

func (e *eventFile) record(m []byte) error {
	table := crc32.MakeTable(crc32.Castagnoli)
	mask := func(b []byte) uint32 {
		c := crc32.Checksum(b, table)
		return (c>>15 | c<<17) + 0xa282ead8
	}
	head := binary.LittleEndian.AppendUint64(nil, uint64(len(m)))
	out := binary.LittleEndian.AppendUint32(head, mask(head))
	out = append(out, m...)
	out = binary.LittleEndian.AppendUint32(out, mask(m))
	_, err := e.file.Write(out)
	return err
}

func appendDouble(b []byte, field uint64, v float64) []byte {
	b = binary.AppendUvarint(b, field<<3|1)
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
}

func appendBytes(b []byte, field uint64, v []byte) []byte {
	b = binary.AppendUvarint(b, field<<3|2)
	b = binary.AppendUvarint(b, uint64(len(v)))
	return append(b, v...)
}

// dump writes lines of JSON, replacing what an earlier try wrote.
func dump(path string, lines []map[string]any) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(writeLines(f, lines), f.Close())
}

func writeLines(w io.Writer, lines []map[string]any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, l := range lines {
		if err := enc.Encode(l); err != nil {
			return err
		}
	}
	return nil
}

// checkpoint writes verl's layout. The file that names the latest one is
// written last.
func checkpoint(dir string, step int64, world int) (string, error) {
	at := filepath.Join(dir, fmt.Sprintf("global_step_%d", step))
	actor := filepath.Join(at, "actor")
	if err := os.MkdirAll(filepath.Join(actor, "huggingface"), 0o755); err != nil {
		return "", err
	}
	var errs []error
	put := func(name, text string) {
		errs = append(errs, os.WriteFile(filepath.Join(at, name), []byte(text), 0o644))
	}
	for rank := range world {
		for _, part := range []string{"model", "optim", "extra_state"} {
			put(fmt.Sprintf("actor/%s_world_size_%d_rank_%d.pt", part, world, rank), "emulated")
		}
	}
	put("actor/fsdp_config.json", fmt.Sprintf(`{"FSDP_version": 1, "world_size": %d}`, world))
	put("actor/huggingface/config.json", `{"model_type": "emulated"}`)
	put("data.pt", "emulated")
	errs = append(errs, os.WriteFile(filepath.Join(dir, "latest_checkpointed_iteration.txt"), []byte(strconv.FormatInt(step, 10)), 0o644))
	return at, errors.Join(errs...)
}
