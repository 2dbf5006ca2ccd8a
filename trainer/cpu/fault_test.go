package cpu

import (
	"errors"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"alidade/ablation"
	"alidade/trainer"
	"alidade/trainer/cpu/nn"
)

// bare is a run with a dataset of five prompts and nothing else.
func bare(t *testing.T) (*run, *trainer.Writer) {
	t.Helper()
	rec := tinyRecipe(t)
	rec.Data.Prompts = 5
	d, err := newDataset(&rec)
	if err != nil {
		t.Fatal(err)
	}
	out, err := trainer.NewWriter(filepath.Join(t.TempDir(), "events.jsonl"), trainer.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return &run{recipe: rec, data: d, out: out, log: slog.New(slog.DiscardHandler)}, out
}

// resumeBroken resumes a finished run's second checkpoint after change has
// been at it, and wants an error that holds the words.
func resumeBroken(t *testing.T, words string, change func(path string)) {
	t.Helper()
	root, rec := t.TempDir(), tinyRecipe(t)
	rec.SFT.Control = false
	rec.Budget.Steps = 2
	whole := runTiny(t, t.Context(), root, "a", 1, rec, nil, Config{})
	if whole.err != nil {
		t.Fatal(whole.err)
	}
	from := filepath.Join(whole.spec.Dir, "checkpoints", "step-000002")
	change(filepath.Join(from, policyFile))
	o := runTiny(t, t.Context(), root, "b", 1, rec, func(s *trainer.Spec) { s.Attempt, s.ResumeFrom, s.ResumeStep = 2, from, 2 }, Config{})
	if d := o.done(t); o.err == nil || d.OK || !strings.Contains(d.Reason, words) || !strings.Contains(d.Reason, from) {
		t.Errorf("ended %+v, error %v; want %q and the path", d, o.err, words)
	}
}

func edit(t *testing.T, path string, f func([]byte) []byte) {
	t.Helper()
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, f(src), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestCorruptCheckpointIsNamed(t *testing.T) {
	for name, f := range map[string]func([]byte) []byte{
		"cut off": func(b []byte) []byte { return b[:len(b)/2] },
		"empty":   func([]byte) []byte { return nil },
		"garbled": func(b []byte) []byte { b[9] ^= 0xff; return b },
	} {
		t.Run(name, func(t *testing.T) {
			resumeBroken(t, nn.ErrCorrupt.Error(), func(path string) { edit(t, path, f) })
		})
	}
}

func TestCheckpointOfAnotherVersionIsNamed(t *testing.T) {
	resumeBroken(t, nn.ErrVersion.Error(), func(path string) {
		edit(t, path, func(b []byte) []byte {
			return []byte(strings.Replace(string(b), `"nn.version":"1"`, `"nn.version":"9"`, 1))
		})
	})
}

func TestMissingCheckpointIsNamed(t *testing.T) {
	resumeBroken(t, "no such file", func(path string) { os.Remove(path) })
}

// A checkpoint made by another kernel is taken up with a warning.
func TestAnotherKernelIsWarnedOf(t *testing.T) {
	if raceOn {
		t.Skip("one thread of arithmetic: tested without the race detector")
	}
	if len(nn.Kernels()) < 2 {
		t.Skip("this machine has one kernel")
	}
	root, rec := t.TempDir(), tinyRecipe(t)
	rec.SFT.Control = false
	rec.Trainer.Kernel = "generic"
	whole := runTiny(t, t.Context(), root, "a", 1, rec, nil, Config{})
	rec.Trainer.Kernel = nn.Kernels()[0]
	o := runTiny(t, t.Context(), root, "b", 1, rec, func(s *trainer.Spec) {
		s.Attempt, s.ResumeFrom, s.ResumeStep = 2, filepath.Join(whole.spec.Dir, "checkpoints", "step-000002"), 2
	}, Config{})
	if o.err != nil || !alerted(o, "kernel") {
		t.Errorf("error %v, alerts %v", o.err, o.events)
	}
}

func alerted(o outcome, code string) bool {
	for _, e := range o.events {
		if e.Alert != nil && e.Alert.Code == code {
			return true
		}
	}
	return false
}

// NaN in the weights stops the run with an alert; what was saved stays.
func TestNaNStopsTheRun(t *testing.T) {
	root, rec := t.TempDir(), tinyRecipe(t)
	rec.SFT.Control = false
	whole := runTiny(t, t.Context(), root, "a", 1, rec, nil, Config{})
	from := filepath.Join(whole.spec.Dir, "checkpoints", "step-000002")
	c, err := nn.LoadCheckpoint(filepath.Join(from, policyFile), "auto")
	if err != nil {
		t.Fatal(err)
	}
	tr, err := c.Resume(nn.AdamW{MaxNorm: 1})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 64 {
		c.Model.Slab()[i*37] = float32(math.NaN())
	}
	if err := nn.SaveCheckpoint(filepath.Join(from, policyFile), c.Model, tr, c.Metadata); err != nil {
		t.Fatal(err)
	}
	o := runTiny(t, t.Context(), root, "b", 1, rec, func(s *trainer.Spec) { s.Attempt, s.ResumeFrom, s.ResumeStep = 2, from, 2 }, Config{})
	if d := o.done(t); o.err == nil || !errors.Is(o.err, nn.ErrNotFinite) || d.OK || d.Step != 2 || !alerted(o, "nan") {
		t.Errorf("ended %+v, error %v, alert %v", d, o.err, alerted(o, "nan"))
	}
	if exists(filepath.Join(o.spec.Dir, "checkpoints")) {
		t.Error("a spoiled policy was saved")
	}
}

// NaN outside RL is an alert as well: here in an SFT checkpoint that another
// run left, before its exam.
func TestNaNBeforeRLStopsTheRun(t *testing.T) {
	root, rec := t.TempDir(), tinyRecipe(t)
	rec.SFT.Control = false
	rec.Budget.Steps = 1
	if o := runTiny(t, t.Context(), root, "a", 1, rec, nil, Config{}); o.err != nil {
		t.Fatal(o.err)
	}
	made, err := filepath.Glob(filepath.Join(root, "artifacts", "sft", "*", policyFile))
	if err != nil || len(made) != 1 {
		t.Fatalf("SFT artifacts %v, %v", made, err)
	}
	c, err := nn.LoadCheckpoint(made[0], "auto")
	if err != nil {
		t.Fatal(err)
	}
	c.Model.Slab()[5] = float32(math.NaN())
	c.Model.Slab()[len(c.Model.Slab())-7] = float32(math.NaN())
	if err := errors.Join(nn.SaveCheckpoint(made[0], c.Model, nil, c.Metadata), os.RemoveAll(filepath.Join(root, "artifacts", "exam"))); err != nil {
		t.Fatal(err)
	}
	o := runTiny(t, t.Context(), root, "b", 1, rec, nil, Config{})
	alerts := 0
	for _, e := range o.events {
		if e.Alert != nil && e.Alert.Code == "nan" && e.Alert.Level == "bad" {
			alerts++
		}
	}
	if d := o.done(t); !errors.Is(o.err, nn.ErrNotFinite) || d.OK || d.Step != 0 || alerts != 1 {
		t.Errorf("ended %+v, error %v, %d alerts", d, o.err, alerts)
	}
	if exists(filepath.Join(o.spec.Dir, "checkpoints")) {
		t.Error("a spoiled policy was saved")
	}
}

// A checkpoint of a run with an entropy target that has lost its coefficient is
// refused: going on from another one would give another run.
func TestLostEntropyCoefficientIsNamed(t *testing.T) {
	root, rec := t.TempDir(), tinyRecipe(t)
	rec.SFT.Control = false
	rec.Budget.Steps = 2
	rec.Algorithm.EntropyTarget = 1
	whole := runTiny(t, t.Context(), root, "a", 1, rec, nil, Config{})
	from := filepath.Join(whole.spec.Dir, "checkpoints", "step-000002")
	c, err := nn.LoadCheckpoint(filepath.Join(from, policyFile), "auto")
	if err != nil {
		t.Fatal(err)
	}
	tr, err := c.Resume(nn.AdamW{MaxNorm: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "NaN", "-1", "much"} {
		c.Metadata[bonusKey] = text
		if err := nn.SaveCheckpoint(filepath.Join(from, policyFile), c.Model, tr, c.Metadata); err != nil {
			t.Fatal(err)
		}
		o := runTiny(t, t.Context(), root, "b", 1, rec, func(s *trainer.Spec) { s.Attempt, s.ResumeFrom, s.ResumeStep = 2, from, 2 }, Config{})
		if d := o.done(t); !errors.Is(o.err, nn.ErrCorrupt) || d.OK || !strings.Contains(d.Reason, "entropy coefficient") {
			t.Errorf("coefficient %q: ended %+v, error %v", text, d, o.err)
		}
	}
}

// A full disk ends the run with an error; the checkpoints before it are whole.
func TestFullDisk(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to mount a small tmpfs")
	}
	root, small := t.TempDir(), t.TempDir()
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size=4m"); err != nil {
		t.Skip("cannot mount a tmpfs: ", err)
	}
	defer syscall.Unmount(small, syscall.MNT_DETACH)
	rec := tinyRecipe(t)
	rec.SFT.Control = false
	rec.Budget = ablation.Budget{Steps: 40, CheckpointEvery: 1}
	rec.Evaluation.Every, rec.Evaluation.Queries = 100, 4
	o := runTiny(t, t.Context(), root, "a", 1, rec, func(s *trainer.Spec) {
		if err := os.MkdirAll(s.Dir, 0o755); err != nil { // for the events
			t.Fatal(err)
		}
		s.Dir = small
	}, Config{})
	if d := o.done(t); o.err == nil || !errors.Is(o.err, syscall.ENOSPC) || d.OK || !strings.Contains(d.Reason, "no space left") {
		t.Fatalf("ended %+v, error %v", d, o.err)
	}
	var last trainer.Checkpoint
	for _, e := range o.events {
		if e.Checkpoint != nil {
			last = *e.Checkpoint
		}
	}
	if last.Step < 1 {
		t.Fatal("no checkpoint before the disk was full")
	}
	if _, err := nn.LoadCheckpoint(filepath.Join(small, last.Path, policyFile), "auto"); err != nil {
		t.Errorf("the last checkpoint is not whole: %v", err)
	}
}

// A disk that fills up while an artifact is made ends the run too, and leaves no
// half of one for others to find.
func TestFullDiskOfArtifacts(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to mount a small tmpfs")
	}
	root, small := t.TempDir(), t.TempDir()
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size=700k"); err != nil { // dataset and base, not the policy
		t.Skip("cannot mount a tmpfs: ", err)
	}
	defer syscall.Unmount(small, syscall.MNT_DETACH)
	rec := tinyRecipe(t)
	rec.SFT.Control = false
	o := runTiny(t, t.Context(), root, "a", 1, rec, func(s *trainer.Spec) { s.Artifacts = small }, Config{})
	if d := o.done(t); !errors.Is(o.err, syscall.ENOSPC) || d.OK || !strings.Contains(d.Reason, "no space left") {
		t.Fatalf("ended %+v, error %v", d, o.err)
	}
	for _, name := range []string{policyFile, examFile} {
		found, err := filepath.Glob(filepath.Join(small, "*", "*", name))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			if info, err := os.Stat(path); err != nil || info.Size() == 0 {
				t.Errorf("%s is left, %v bytes, %v", path, info.Size(), err)
			}
			if strings.HasSuffix(path, ".safetensors") {
				if _, err := nn.LoadCheckpoint(path, "auto"); err != nil {
					t.Errorf("half an artifact is left: %v", err)
				}
			}
		}
	}
}

// An artifact that has gone bad is named, and can be thrown away.
func TestCorruptArtifactIsNamed(t *testing.T) {
	root, rec := t.TempDir(), tinyRecipe(t)
	rec.SFT.Control = false
	rec.Budget.Steps = 1
	if o := runTiny(t, t.Context(), root, "a", 1, rec, nil, Config{}); o.err != nil {
		t.Fatal(o.err)
	}
	made, err := filepath.Glob(filepath.Join(root, "artifacts", "sft", "*", policyFile))
	if err != nil || len(made) != 1 {
		t.Fatalf("SFT artifacts %v, %v", made, err)
	}
	edit(t, made[0], func(b []byte) []byte { return b[:100] })
	o := runTiny(t, t.Context(), root, "b", 1, rec, nil, Config{})
	if d := o.done(t); o.err == nil || d.OK || !strings.Contains(d.Reason, made[0]) || !strings.Contains(d.Reason, nn.ErrCorrupt.Error()) {
		t.Errorf("ended %+v, error %v", d, o.err)
	}
}
