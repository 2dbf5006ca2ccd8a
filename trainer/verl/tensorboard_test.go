package verl

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"alidade/trainer/native"

	"google.golang.org/protobuf/encoding/protowire"
)

// The records of the format's own test vectors: a file's first record, and
// loss = 0.5 at step 7.
const (
	firstRecord  = "1800000000000000a37f4b2209000000000000f03f1a0d627261696e2e4576656e743a3286bf577a"
	scalarRecord = "1a00000000000000129bd82d09000000000000004010072a0d0a0b0a046c6f7373150000003fc33fc24a"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// record frames data as a TFRecord.
func record(data []byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(data)))
	b = binary.LittleEndian.AppendUint32(b, maskedCRC(b))
	b = append(b, data...)
	return binary.LittleEndian.AppendUint32(b, maskedCRC(data))
}

// scalar is an event with one simple value.
func scalar(tag string, step int64, v float32) []byte {
	var value []byte
	value = protowire.AppendTag(value, 1, protowire.BytesType)
	value = protowire.AppendString(value, tag)
	value = protowire.AppendTag(value, 2, protowire.Fixed32Type)
	value = protowire.AppendFixed32(value, math.Float32bits(v))
	return event(step, value)
}

func event(step int64, value []byte) []byte {
	var summary, e []byte
	summary = protowire.AppendTag(summary, 1, protowire.BytesType)
	summary = protowire.AppendBytes(summary, value)
	e = protowire.AppendTag(e, 1, protowire.Fixed64Type)
	e = protowire.AppendFixed64(e, math.Float64bits(2))
	e = protowire.AppendTag(e, 2, protowire.VarintType)
	e = protowire.AppendVarint(e, uint64(step))
	e = protowire.AppendTag(e, 5, protowire.BytesType)
	return protowire.AppendBytes(e, summary)
}

// tensorEvent has its value as a tensor of rank 0, the newer form.
func tensorEvent(tag string, step int64, v float64) []byte {
	var tensor, value []byte
	tensor = protowire.AppendTag(tensor, 1, protowire.VarintType)
	tensor = protowire.AppendVarint(tensor, tensorDouble)
	tensor = protowire.AppendTag(tensor, 4, protowire.BytesType)
	tensor = protowire.AppendBytes(tensor, binary.LittleEndian.AppendUint64(nil, math.Float64bits(v)))
	value = protowire.AppendTag(value, 1, protowire.BytesType)
	value = protowire.AppendString(value, tag)
	value = protowire.AppendTag(value, 8, protowire.BytesType)
	return event(step, protowire.AppendBytes(value, tensor))
}

func TestRecordVectors(t *testing.T) {
	if got := maskedCRC([]byte("123456789")); got != 0xc78ab0e5 {
		t.Errorf("masked checksum %08x", got)
	}
	b := append(unhex(t, firstRecord), unhex(t, scalarRecord)...)
	first, rest, err := NextRecord(b)
	if err != nil || !bytes.Contains(first, []byte("brain.Event:2")) {
		t.Fatalf("first record: %q, %v", first, err)
	}
	second, rest, err := NextRecord(rest)
	if err != nil || len(rest) != 0 {
		t.Fatalf("second record: %v, %d bytes left", err, len(rest))
	}
	got, err := ParseEvent(second)
	if err != nil || len(got) != 1 || got[0] != (Scalar{"loss", 7, 2, 0.5}) {
		t.Errorf("scalars %+v, %v", got, err)
	}
	if !bytes.Equal(record(second), unhex(t, scalarRecord)) {
		t.Error("a record framed here differs from the vector")
	}
}

func TestEventSourceTails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "run", "events.out.tfevents.1700000000.host.1.0")
	s := EventSource(dir)
	if got := poll(t, s, false); len(got) != 0 {
		t.Fatalf("an empty folder gave %v", got)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	b := append(unhex(t, firstRecord), record(scalar("a", 1, 0.5))...)
	b = append(b, record(tensorEvent("b", 1, 0.25))...)
	next := record(scalar("a", 2, float32(math.NaN())))
	for cut := range len(next) { // however far the writer has got, the step is not there yet
		if err := os.WriteFile(path, append(bytes.Clone(b), next[:cut]...), 0o644); err != nil {
			t.Fatal(err)
		}
		got := poll(t, s, false)
		if cut == 0 && (len(got) != 1 || got[0].Step != 1 || got[0].Values["a"] != 0.5 || got[0].Values["b"] != 0.25) || cut > 0 && len(got) != 0 {
			t.Fatalf("cut at %d: %+v", cut, got)
		}
	}
	if err := os.WriteFile(path, append(bytes.Clone(b), next...), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := poll(t, s, false); len(got) != 1 || got[0].Step != 2 || !math.IsNaN(got[0].Values["a"]) {
		t.Errorf("the second step: %+v", got)
	}
}

func TestEventSourceSaysWhatIsDamaged(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "events.out.tfevents.1")
	b := append(record(scalar("a", 1, 1)), record(scalar("a", 2, 2))...)
	b[len(b)-6] ^= 1
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	s := EventSource(dir)
	var got []native.Reading
	err := s.Poll(false, func(r native.Reading) { got = append(got, r) })
	if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "byte") {
		t.Errorf("error %v, want one with file and place", err)
	}
	if len(got) != 2 || got[0].Values["a"] != 1 || got[1].Bad != 1 {
		t.Errorf("readings %+v, want the first record and one bad", got)
	}
	if got := poll(t, s, true); len(got) != 0 {
		t.Errorf("the damaged file is read on: %+v", got)
	}
}

// TestEventsOfTensorBoardX reads a file that another program wrote, where one
// is at hand.
func TestEventsOfTensorBoardX(t *testing.T) {
	python := os.Getenv("ALIDADE_TENSORBOARD_PYTHON")
	if python == "" {
		t.Skip("needs ALIDADE_TENSORBOARD_PYTHON, an interpreter with tensorboardX")
	}
	dir := t.TempDir()
	script := "from tensorboardX import SummaryWriter\nw=SummaryWriter('" + dir + "')\nfor i in range(5):\n w.add_scalar('critic/score/mean', i/4, i)\n w.add_text('t','x',i)\nw.close()"
	if out, err := exec.CommandContext(t.Context(), python, "-c", script).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got := poll(t, EventSource(dir), true)
	if len(got) != 5 || got[4].Step != 4 || got[4].Values["critic/score/mean"] != 1 {
		t.Errorf("readings %+v", got)
	}
}

func FuzzEvents(f *testing.F) {
	f.Add(append(unhex(f, firstRecord), unhex(f, scalarRecord)...))
	f.Add(record(tensorEvent("b", 1, 0.25)))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		for len(b) > 0 {
			data, rest, err := NextRecord(b)
			if err != nil {
				if len(rest) != len(b) {
					t.Error("bytes were taken of a record that failed")
				}
				break
			}
			if len(rest) >= len(b) {
				t.Fatal("no progress")
			}
			if _, err := ParseEvent(data); err != nil && len(data) == 0 {
				t.Error("nothing cannot be wrong")
			}
			b = rest
		}
		// Records that are whole, whatever is in them.
		if got, _, err := NextRecord(record(b)); err != nil || !bytes.Equal(got, b) {
			t.Errorf("a record framed here does not come back: %v", err)
		}
		_, _ = ParseEvent(b)
	})
}
