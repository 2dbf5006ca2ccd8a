package nn

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func smallModel(t testing.TB, kernel string) *Model {
	t.Helper()
	m, err := NewModel(Config{Vocab: 37, Dim: 64, Layers: 2, Heads: 2, Hidden: 96, MaxLen: 256}, kernel, 3)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// trainSteps takes n cross-entropy steps.
func trainSteps(t testing.TB, tr *Trainer, n int) {
	t.Helper()
	for range n {
		seqs := randomSequences(uint64(tr.Steps()), tr.model.cfg, 20, 31, 8)
		err := tr.Accumulate(seqs, 1, func(c *Chunk[float32]) error {
			for i := range c.DLogProb {
				c.DLogProb[i] = -0.02
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tr.Step(1e-3); err != nil {
			t.Fatal(err)
		}
	}
}

func TestResumeIsExact(t *testing.T) {
	opt := AdamW{Decay: 0.01, MaxNorm: 1}
	tr, err := NewTrainer(smallModel(t, "auto"), opt)
	if err != nil {
		t.Fatal(err)
	}
	trainSteps(t, tr, 5)
	path := filepath.Join(t.TempDir(), "model.safetensors")
	if err := SaveCheckpoint(path, tr.Model(), tr, map[string]string{"data": "17"}); err != nil {
		t.Fatal(err)
	}
	trainSteps(t, tr, 5)

	c, err := LoadCheckpoint(path, "auto")
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Metadata["data"]; got != "17" || len(c.Metadata) != 1 {
		t.Errorf("metadata = %v, want data 17 alone", c.Metadata)
	}
	if c.Kernel != tr.Model().Kernel() {
		t.Errorf("kernel = %q, want %q", c.Kernel, tr.Model().Kernel())
	}
	again, err := c.Resume(opt)
	if err != nil {
		t.Fatal(err)
	}
	trainSteps(t, again, 5)
	if !slices.Equal(again.Model().Slab(), tr.Model().Slab()) {
		t.Error("parameters differ after a resume")
	}
}

func TestCheckpointWithoutOptimizer(t *testing.T) {
	m := smallModel(t, "generic")
	path := filepath.Join(t.TempDir(), "model.safetensors")
	if err := SaveCheckpoint(path, m, nil, nil); err != nil {
		t.Fatal(err)
	}
	c, err := LoadCheckpoint(path, "generic")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(c.Model.Slab(), m.Slab()) {
		t.Error("parameters differ")
	}
	if _, err := c.Resume(AdamW{}); c.HasOptimizer() || err == nil {
		t.Error("a file without optimizer state could be resumed")
	}
}

func TestDamagedCheckpoints(t *testing.T) {
	m := smallModel(t, "generic")
	tr, _ := NewTrainer(m, AdamW{})
	path := filepath.Join(t.TempDir(), "model.safetensors")
	if err := SaveCheckpoint(path, m, tr, nil); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	header := int(binary.LittleEndian.Uint64(whole))
	edit := func(old, new string) []byte {
		if !bytes.Contains(whole, []byte(old)) {
			t.Fatalf("the header has no %q to damage", old)
		}
		return bytes.Replace(slices.Clone(whole), []byte(old), []byte(new), 1)
	}
	for _, c := range []struct {
		name string
		src  []byte
		want error
	}{
		{"empty", nil, ErrCorrupt},
		{"header cut", whole[:header/2], ErrCorrupt},
		{"data cut", whole[:len(whole)-1], ErrCorrupt},
		{"data added", append(slices.Clone(whole), 0), ErrCorrupt},
		{"not tensors", []byte("PK\x03\x04 something else altogether"), ErrCorrupt},
		{"other version", edit(`"nn.version":"1"`, `"nn.version":"9"`), ErrVersion},
		{"other shape", edit(`\"dim\":64`, `\"dim\":96`), ErrCorrupt},
		{"other heads", edit(`\"heads\":2`, `\"heads\":3`), ErrCorrupt},
		{"renamed tensor", edit(`"embed.token"`, `"embed.tokex"`), ErrCorrupt},
		{"other type", edit(`"F32"`, `"F16"`), ErrCorrupt},
	} {
		t.Run(c.name, func(t *testing.T) {
			bad := filepath.Join(t.TempDir(), "bad.safetensors")
			if err := os.WriteFile(bad, c.src, 0o644); err != nil {
				t.Fatal(err)
			}
			_, err := LoadCheckpoint(bad, "generic")
			if !errors.Is(err, c.want) {
				t.Fatalf("error %v, want %v", err, c.want)
			}
			if !strings.Contains(err.Error(), "bad.safetensors") {
				t.Errorf("error %q does not name the file", err)
			}
		})
	}
	if _, err := LoadCheckpoint(path+".missing", "generic"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
}

func TestSaveLeavesNothingBehindOnFailure(t *testing.T) {
	dir := t.TempDir()
	m := smallModel(t, "generic")
	if err := SaveCheckpoint(filepath.Join(dir, "a"), m, nil, map[string]string{"nn.version": "2"}); err == nil {
		t.Error("reserved metadata was accepted")
	}
	if err := SaveCheckpoint(filepath.Join(dir, "no", "such", "folder"), m, nil, nil); err == nil {
		t.Error("a missing folder was accepted")
	}
	if err := writeFileAtomic(filepath.Join(dir, "b"), failingWrite); !errors.Is(err, errFull) {
		t.Errorf("error %v, want that of the write", err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestTensorsRoundTrip(t *testing.T) {
	want := []Tensor{{"b", []int{2, 3}, []float32{1, 2, 3, 4, 5, 6}}, {"a", []int{0}, nil}, {"scalar", nil, []float32{-0.5}}}
	var buf bytes.Buffer
	if err := EncodeTensors(&buf, want, map[string]string{"k": "v"}); err != nil {
		t.Fatal(err)
	}
	got, meta, err := DecodeTensors(buf.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if meta["k"] != "v" || len(got) != len(want) {
		t.Fatalf("got %v %v", got, meta)
	}
	for _, w := range want {
		i := slices.IndexFunc(got, func(g Tensor) bool { return g.Name == w.Name })
		if i < 0 || !slices.Equal(got[i].Shape, w.Shape) || !slices.Equal(got[i].Data, w.Data) {
			t.Errorf("tensor %q did not come back: %v", w.Name, got)
		}
	}
	if err := EncodeTensors(&buf, []Tensor{{"a", []int{3}, []float32{1}}}, nil); err == nil {
		t.Error("a shape that does not match its data was written")
	}
}

func FuzzDecodeTensors(f *testing.F) {
	var buf bytes.Buffer
	_ = EncodeTensors(&buf, []Tensor{{"a", []int{2, 2}, []float32{1, 2, 3, 4}}, {"b", []int{1}, []float32{7}}}, map[string]string{"k": "v"})
	f.Add(buf.Bytes())
	f.Add(buf.Bytes()[:20])
	f.Add([]byte("\x02\x00\x00\x00\x00\x00\x00\x00{}"))
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff{}"))
	f.Fuzz(func(t *testing.T, src []byte) {
		tensors, meta, err := DecodeTensors(src)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatalf("error %v is not ErrCorrupt", err)
			}
			return
		}
		var out bytes.Buffer
		if err := EncodeTensors(&out, tensors, meta); err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		if _, _, err := DecodeTensors(out.Bytes()); err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
	})
}

func FuzzDecodeCheckpoint(f *testing.F) {
	m := smallModel(f, "generic")
	path := filepath.Join(f.TempDir(), "m")
	if err := SaveCheckpoint(path, m, nil, nil); err != nil {
		f.Fatal(err)
	}
	src, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	n := int(binary.LittleEndian.Uint64(src))
	f.Add(src[8 : 8+n])
	f.Fuzz(func(t *testing.T, header []byte) {
		file := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
		file = append(file, src[8+n:]...)
		_, err := decodeCheckpoint(file, "generic")
		if err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrVersion) {
			t.Fatalf("error %v has no class", err)
		}
	})
}
