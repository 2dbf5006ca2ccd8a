package nn

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"strconv"
	"strings"
)

// checkpointVersion is raised when a file could no longer be read as before.
const checkpointVersion = "1"

// Metadata keys that the package writes itself; the caller's must differ.
const (
	metaVersion = "nn.version"
	metaConfig  = "nn.config"
	metaKernel  = "nn.kernel"
	metaSteps   = "nn.optimizer_steps"
)

const (
	firstMoment  = "adam.m/"
	secondMoment = "adam.v/"
)

// ErrVersion reports a checkpoint made by another version of the format.
var ErrVersion = errors.New("checkpoint version")

// Checkpoint is a file read back.
type Checkpoint struct {
	Model    *Model
	Metadata map[string]string // the caller's, as saved
	Kernel   string            // that was in use when it was saved

	steps int64
	m, v  []float32 // nil in a file without optimizer state
}

// HasOptimizer says whether the file holds optimizer state.
func (c *Checkpoint) HasOptimizer() bool { return c.m != nil }

// Resume gives the checkpoint's model and optimizer state to a new trainer,
// which then goes on exactly where the saved one stood (gradients not yet
// applied are not saved).
func (c *Checkpoint) Resume(opt AdamW) (*Trainer, error) {
	if c.m == nil {
		return nil, errors.New("checkpoint holds no optimizer state")
	}
	t, err := NewTrainer(c.Model, opt)
	if err != nil {
		return nil, err
	}
	copy(t.m, c.m)
	copy(t.v, c.v)
	t.steps = c.steps
	return t, nil
}

// SaveCheckpoint writes the model, with the optimizer state of t unless t is
// nil, and the caller's metadata (random-number and data positions, …) to a
// safetensors file. The file appears whole or not at all.
func SaveCheckpoint(path string, m *Model, t *Trainer, metadata map[string]string) error {
	meta := maps.Clone(metadata)
	if meta == nil {
		meta = map[string]string{}
	}
	for k := range meta {
		if strings.HasPrefix(k, "nn.") {
			return fmt.Errorf("checkpoint metadata %q: names that begin with \"nn.\" are taken", k)
		}
	}
	cfg, err := json.Marshal(m.cfg)
	if err != nil {
		return fmt.Errorf("encode model config: %w", err)
	}
	meta[metaVersion], meta[metaConfig], meta[metaKernel] = checkpointVersion, string(cfg), m.kernel
	tensors := slabTensors("", m.params, m.slab)
	if t != nil {
		if t.model != m {
			return errors.New("save checkpoint: the trainer trains another model")
		}
		meta[metaSteps] = strconv.FormatInt(t.steps, 10)
		tensors = append(tensors, slabTensors(firstMoment, m.params, t.m)...)
		tensors = append(tensors, slabTensors(secondMoment, m.params, t.v)...)
	}
	err = writeFileAtomic(path, func(w io.Writer) error { return EncodeTensors(w, tensors, meta) })
	if err != nil {
		return fmt.Errorf("save checkpoint %s: %w", path, err)
	}
	return nil
}

// LoadCheckpoint reads a file written by [SaveCheckpoint] and runs its model
// with the named kernel. Errors wrap [ErrCorrupt], [ErrVersion] or the file
// system's own.
func LoadCheckpoint(path, kernel string) (*Checkpoint, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("load checkpoint: %w", err)
	}
	c, err := decodeCheckpoint(src, kernel)
	if err != nil {
		return nil, fmt.Errorf("load checkpoint %s: %w", path, err)
	}
	return c, nil
}

func decodeCheckpoint(src []byte, kernel string) (*Checkpoint, error) {
	tensors, meta, err := DecodeTensors(src)
	if err != nil {
		return nil, err
	}
	if v := meta[metaVersion]; v != checkpointVersion {
		return nil, fmt.Errorf("%w %q: this program reads %q", ErrVersion, v, checkpointVersion)
	}
	var cfg Config
	if err := json.Unmarshal([]byte(meta[metaConfig]), &cfg); err != nil {
		return nil, fmt.Errorf("%w: model config: %v", ErrCorrupt, err)
	}
	if err := checkTensors(tensors, cfg); err != nil {
		return nil, fmt.Errorf("%w: %v", ErrCorrupt, err)
	}
	m, err := emptyModel[float32](cfg, kernel)
	if err != nil {
		return nil, err
	}
	c := &Checkpoint{Model: m, Kernel: meta[metaKernel]}
	if text, ok := meta[metaSteps]; ok {
		if c.steps, err = strconv.ParseInt(text, 10, 64); err != nil || c.steps < 0 {
			return nil, fmt.Errorf("%w: optimizer steps %q", ErrCorrupt, text)
		}
		c.m, c.v = alignedSlice[float32](len(m.slab)), alignedSlice[float32](len(m.slab))
	}
	if err := c.fill(tensors); err != nil {
		return nil, fmt.Errorf("%w: %v", ErrCorrupt, err)
	}
	for k := range meta {
		if strings.HasPrefix(k, "nn.") {
			delete(meta, k)
		}
	}
	c.Metadata = meta
	m.Refresh()
	return c, nil
}

// checkTensors refuses a config that the file's size does not bear out, before
// anything of that size is allocated.
func checkTensors(tensors []Tensor, cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	total := 0
	for _, t := range tensors {
		total += len(t.Data)
	}
	if n := cfg.Params(); n > total {
		return fmt.Errorf("model config needs %d parameters, the file holds %d", n, total)
	}
	return nil
}

// fill copies the tensors into the model and the optimizer state; all must be
// there, with the right shapes, and nothing else.
func (c *Checkpoint) fill(tensors []Tensor) error {
	byName := make(map[string]Tensor, len(tensors))
	for _, t := range tensors {
		byName[t.Name] = t
	}
	into := func(prefix string, slab []float32) error {
		for _, p := range c.Model.params {
			t, ok := byName[prefix+p.Name]
			if !ok || len(t.Shape) != 2 || t.Shape[0] != p.Rows || t.Shape[1] != p.Cols {
				return fmt.Errorf("tensor %q: shape %v, the model needs [%d %d]", prefix+p.Name, t.Shape, p.Rows, p.Cols)
			}
			copy(viewOf(slab, p), t.Data)
			delete(byName, prefix+p.Name)
		}
		return nil
	}
	if err := into("", c.Model.slab); err != nil {
		return err
	}
	if c.m != nil {
		if err := into(firstMoment, c.m); err != nil {
			return err
		}
		if err := into(secondMoment, c.v); err != nil {
			return err
		}
	}
	for name := range byName {
		return fmt.Errorf("tensor %q does not belong to the model", name)
	}
	return nil
}

func slabTensors(prefix string, params []Param, slab []float32) []Tensor {
	var out []Tensor
	for _, p := range params {
		out = append(out, Tensor{prefix + p.Name, []int{p.Rows, p.Cols}, viewOf(slab, p)})
	}
	return out
}
