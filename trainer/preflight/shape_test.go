package preflight

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The counts that the models' authors publish, in billions.
func TestParamsMatchPublishedCounts(t *testing.T) {
	for name, want := range map[string]float64{
		"Qwen/Qwen2.5-0.5B-Instruct": 0.49, "Qwen/Qwen2.5-1.5B": 1.54, "Qwen/Qwen2.5-3B-Instruct": 3.09, "Qwen/Qwen2.5-7B-Instruct": 7.61,
		"Qwen/Qwen2.5-14B": 14.7, "Qwen/Qwen2.5-32B": 32.5, "Qwen/Qwen2.5-72B": 72.7,
		"Qwen/Qwen3-0.6B": 0.6, "Qwen/Qwen3-1.7B": 1.7, "Qwen/Qwen3-4B-Instruct-2507": 4.0, "Qwen/Qwen3-8B": 8.2, "Qwen/Qwen3-14B": 14.8, "Qwen/Qwen3-32B": 32.8,
		"meta-llama/Llama-3.1-8B-Instruct": 8.03, "meta-llama/Llama-3.2-1B": 1.24, "meta-llama/Llama-3.2-3B": 3.21, "meta-llama/Llama-3.1-70B": 70.6,
	} {
		s, err := ShapeOf(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := float64(s.Params()) / 1e9; math.Abs(got-want) > 0.02*want+0.006 {
			t.Errorf("%s: %.3f B parameters, published %.2f B", name, got, want)
		}
	}
}

func TestShapeOfAFolder(t *testing.T) {
	dir := t.TempDir()
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"model_type":"qwen2","hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,"intermediate_size":128,"vocab_size":300,"tie_word_embeddings":true}`)
	s, err := ShapeOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	// 2 layers × (64·(2·64+2·32) + 3·64·128 + 2·64 + 64+64) + 64·300 + 64
	if want := int64(2*(64*192+3*64*128+128+128) + 64*300 + 64); s.Params() != want {
		t.Errorf("%d parameters, want %d", s.Params(), want)
	}
	for text, part := range map[string]string{
		`{"hidden_size":0}`: "must be a whole number", `{`: "unexpected end", `{"hidden_size":"x"}`: "cannot unmarshal",
	} {
		write(text)
		if _, err := ShapeOf(dir); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v, want it to say %q", text, err, part)
		}
	}
	write(`{"model_type":"qwen3_moe","num_experts":128}`)
	if _, err := ShapeOf(dir); !errors.Is(err, ErrUnknownModel) {
		t.Errorf("a mixture of experts: %v", err)
	}
	if _, err := ShapeOf("someone/else-9B"); !errors.Is(err, ErrUnknownModel) {
		t.Errorf("an unknown name: %v", err)
	}
	if _, err := ShapeOf("Qwen/Qwen3-30B-A3B"); !errors.Is(err, ErrUnknownModel) { // not Qwen3-3… nor any other prefix
		t.Errorf("another name of the family: %v", err)
	}
}
