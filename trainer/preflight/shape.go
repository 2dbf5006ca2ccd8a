// Package preflight says before a launch what a run of a language model's
// trainer would need and whether it can work: the memory of each device by
// phase, the disk for checkpoints, and what the adapter's own checks find. It
// starts no trainer; the one-step smoke run belongs to the run itself.
package preflight

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Shape is what memory depends on in a decoder-only transformer with gated
// MLP and grouped-query attention.
type Shape struct {
	Hidden, Layers, Heads, KVHeads, HeadDim, Inter, Vocab int

	Tied bool // input and output embeddings are one matrix
	Bias bool // of the query, key and value projections
}

// ErrUnknownModel says that a model's shape cannot be found here.
var ErrUnknownModel = errors.New("the shape of the model is not known here")

// Params counts the parameters: embeddings, per layer four attention and three
// MLP matrices and two norms, the last norm, and the head unless tied.
func (s Shape) Params() int64 {
	h, q, kv := int64(s.Hidden), int64(s.Heads*s.HeadDim), int64(s.KVHeads*s.HeadDim)
	layer := h*(2*q+2*kv) + 3*h*int64(s.Inter) + 2*h
	if s.Bias {
		layer += q + 2*kv
	}
	total := int64(s.Layers)*layer + h*int64(s.Vocab) + h
	if !s.Tied {
		total += h * int64(s.Vocab)
	}
	return total
}

// LoraParams counts the parameters of low-rank adapters on all seven matrices
// of each layer: rank × (rows + columns) each.
func (s Shape) LoraParams(rank int) int64 {
	h, q, kv, i := s.Hidden, s.Heads*s.HeadDim, s.KVHeads*s.HeadDim, s.Inter
	return int64(rank) * int64(s.Layers) * int64((h+q)+2*(h+kv)+(q+h)+3*(h+i))
}

// layerParams is the share of one layer, the unit that sharded trainers gather.
func (s Shape) layerParams() int64 {
	h, q, kv := int64(s.Hidden), int64(s.Heads*s.HeadDim), int64(s.KVHeads*s.HeadDim)
	return h*(2*q+2*kv) + 3*h*int64(s.Inter)
}

// kvBytes is the cache of one token in bfloat16: keys and values of all layers.
func (s Shape) kvBytes() float64 { return float64(2 * 2 * s.Layers * s.KVHeads * s.HeadDim) }

// known are the shapes of the models that the published studies use, from
// their public config.json files.
var known = map[string]Shape{
	"qwen2.5-0.5b":  {Hidden: 896, Layers: 24, Heads: 14, KVHeads: 2, HeadDim: 64, Inter: 4864, Vocab: 151936, Tied: true, Bias: true},
	"qwen2.5-1.5b":  {Hidden: 1536, Layers: 28, Heads: 12, KVHeads: 2, HeadDim: 128, Inter: 8960, Vocab: 151936, Tied: true, Bias: true},
	"qwen2.5-3b":    {Hidden: 2048, Layers: 36, Heads: 16, KVHeads: 2, HeadDim: 128, Inter: 11008, Vocab: 151936, Tied: true, Bias: true},
	"qwen2.5-7b":    {Hidden: 3584, Layers: 28, Heads: 28, KVHeads: 4, HeadDim: 128, Inter: 18944, Vocab: 152064, Bias: true},
	"qwen2.5-14b":   {Hidden: 5120, Layers: 48, Heads: 40, KVHeads: 8, HeadDim: 128, Inter: 13824, Vocab: 152064, Bias: true},
	"qwen2.5-32b":   {Hidden: 5120, Layers: 64, Heads: 40, KVHeads: 8, HeadDim: 128, Inter: 27648, Vocab: 152064, Bias: true},
	"qwen2.5-72b":   {Hidden: 8192, Layers: 80, Heads: 64, KVHeads: 8, HeadDim: 128, Inter: 29568, Vocab: 152064, Bias: true},
	"qwen3-0.6b":    {Hidden: 1024, Layers: 28, Heads: 16, KVHeads: 8, HeadDim: 128, Inter: 3072, Vocab: 151936, Tied: true},
	"qwen3-1.7b":    {Hidden: 2048, Layers: 28, Heads: 16, KVHeads: 8, HeadDim: 128, Inter: 6144, Vocab: 151936, Tied: true},
	"qwen3-4b":      {Hidden: 2560, Layers: 36, Heads: 32, KVHeads: 8, HeadDim: 128, Inter: 9728, Vocab: 151936, Tied: true},
	"qwen3-8b":      {Hidden: 4096, Layers: 36, Heads: 32, KVHeads: 8, HeadDim: 128, Inter: 12288, Vocab: 151936},
	"qwen3-14b":     {Hidden: 5120, Layers: 40, Heads: 40, KVHeads: 8, HeadDim: 128, Inter: 17408, Vocab: 151936},
	"qwen3-32b":     {Hidden: 5120, Layers: 64, Heads: 64, KVHeads: 8, HeadDim: 128, Inter: 25600, Vocab: 151936},
	"llama-3.1-8b":  {Hidden: 4096, Layers: 32, Heads: 32, KVHeads: 8, HeadDim: 128, Inter: 14336, Vocab: 128256},
	"llama-3.2-1b":  {Hidden: 2048, Layers: 16, Heads: 32, KVHeads: 8, HeadDim: 64, Inter: 8192, Vocab: 128256, Tied: true},
	"llama-3.2-3b":  {Hidden: 3072, Layers: 28, Heads: 24, KVHeads: 8, HeadDim: 128, Inter: 8192, Vocab: 128256, Tied: true},
	"llama-3.1-70b": {Hidden: 8192, Layers: 80, Heads: 64, KVHeads: 8, HeadDim: 128, Inter: 28672, Vocab: 128256},
}

// Models lists the names whose shapes are known without a file.
func Models() []string {
	names := make([]string, 0, len(known))
	for n := range known {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// ShapeOf finds the shape of a model: a folder with config.json, or a Hugging
// Face name whose family and size are known, whatever its owner and suffix
// ("Qwen/Qwen2.5-7B-Instruct"). Anything else is ErrUnknownModel.
func ShapeOf(model string) (Shape, error) {
	if filepath.IsAbs(model) {
		return readShape(filepath.Join(model, "config.json"))
	}
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	best := ""
	for k := range known {
		rest, ok := strings.CutPrefix(name, k)
		if ok && (rest == "" || rest[0] == '-') && len(k) > len(best) {
			best = k
		}
	}
	if best == "" {
		return Shape{}, fmt.Errorf("native.model %q: %w; known: %s, or a folder with config.json", model, ErrUnknownModel, strings.Join(Models(), ", "))
	}
	return known[best], nil
}

// readShape reads a config.json of transformers.
func readShape(path string) (Shape, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return Shape{}, fmt.Errorf("read the model's shape: %w", err)
	}
	var c struct {
		Type    string `json:"model_type"`
		Hidden  int    `json:"hidden_size"`
		Layers  int    `json:"num_hidden_layers"`
		Heads   int    `json:"num_attention_heads"`
		KVHeads int    `json:"num_key_value_heads"`
		HeadDim int    `json:"head_dim"`
		Inter   int    `json:"intermediate_size"`
		Vocab   int    `json:"vocab_size"`
		Tied    bool   `json:"tie_word_embeddings"`
		Experts int    `json:"num_experts"`
		Local   int    `json:"num_local_experts"`
	}
	if err := json.Unmarshal(src, &c); err != nil {
		return Shape{}, fmt.Errorf("read %s: %w", path, err)
	}
	if c.Experts > 0 || c.Local > 0 {
		return Shape{}, fmt.Errorf("%s is a mixture of experts: %w", path, ErrUnknownModel)
	}
	if c.KVHeads == 0 {
		c.KVHeads = c.Heads
	}
	if c.HeadDim == 0 && c.Heads > 0 {
		c.HeadDim = c.Hidden / c.Heads
	}
	for key, n := range map[string]int{"hidden_size": c.Hidden, "num_hidden_layers": c.Layers, "num_attention_heads": c.Heads, "intermediate_size": c.Inter, "vocab_size": c.Vocab, "head_dim": c.HeadDim} {
		if n < 1 || n > 1<<24 {
			return Shape{}, fmt.Errorf("%s: %s is %d, must be a whole number from 1 to 16777216", path, key, n)
		}
	}
	return Shape{c.Hidden, c.Layers, c.Heads, c.KVHeads, c.HeadDim, c.Inter, c.Vocab, c.Tied, strings.HasPrefix(c.Type, "qwen2")}, nil
}
