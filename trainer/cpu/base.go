package cpu

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"alidade/sandbox"
	"alidade/sandbox/travel/compact"
	"alidade/trainer/cpu/nn"
)

// shipped holds the base checkpoints made by "alidade pretrain", each with a
// JSON file that says how.
//
//go:embed base
var shipped embed.FS

// PretrainConfig says how a base checkpoint is made.
type PretrainConfig struct {
	Size        string  `json:"size"`
	Kernel      string  `json:"kernel"`
	Seed        uint64  `json:"seed"`
	RecallSteps int     `json:"recall_steps"`   // of looking things up and nothing else
	StrollSteps int     `json:"stroll_steps"`   // of legal sessions without sense
	Batch       int     `json:"batch"`          // scripts a step
	LR          float64 `json:"lr"`             // peak, cosine
	Long        bool    `json:"long,omitempty"` // in the language of longer trips
}

// DefaultPretrain returns the settings the shipped checkpoint of a size was
// made with, or would be. Nano needs three times the strolls at twice the rate
// to hold the format. The larger sizes learn less long: they are made in the
// run, once for each data folder.
func DefaultPretrain(size string) PretrainConfig {
	c := PretrainConfig{Size: size, Kernel: "auto", Seed: 1, RecallSteps: 200, StrollSteps: 1000, Batch: 32, LR: 1.5e-3}
	switch size {
	case "nano":
		c.StrollSteps, c.LR = 10800, 3e-3
	case "small":
		c.StrollSteps = 3600
	case "medium":
		c.StrollSteps = 1800
	}
	return c
}

// pretrainWorlds is the first data seed of the worlds that base checkpoints
// stroll in. Studies use other seeds, so the base has never seen their world.
const pretrainWorlds = 1 << 40

// Pretrain makes a base model: it learns to look things up (recall), then to
// read, call and copy in a nano world (strolls). It sees no expert, no reward
// and no world that a study uses. report may be nil.
func Pretrain(ctx context.Context, c PretrainConfig, report func(phase string, p lessonPoint) error) (*nn.Model, error) {
	shape, err := nn.SizeConfig(c.Size, c.vocab())
	if err != nil {
		return nil, err
	}
	m, err := nn.NewModel(shape, c.Kernel, c.Seed)
	if err != nil {
		return nil, err
	}
	seed := sandbox.Mix(c.Seed, forPretrain)
	var world strollWorld
	for _, phase := range []struct {
		name  string
		steps int
		write func(step, i int) compact.Script
	}{
		{"recall", c.RecallSteps, func(step, i int) compact.Script { return c.recall(seed, uint64(step*c.Batch+i)) }},
		{"stroll", c.StrollSteps, func(step, i int) compact.Script { return world.stroll(seed, uint64(step*c.Batch+i)) }},
	} {
		l := lesson{
			steps:    phase.steps,
			schedule: nn.Schedule{Kind: "cosine", Peak: c.LR, Floor: c.LR / 20, Warmup: int64(min(50, phase.steps/4)), Total: int64(max(phase.steps, 2))},
			batch: func(step int) []compact.Script {
				if phase.name == "stroll" && step%100 == 0 {
					world, err = c.world(pretrainWorlds + uint64(step/100))
				}
				out := make([]compact.Script, c.Batch)
				for i := range out {
					out[i] = phase.write(step, i)
				}
				return out
			},
			report: func(p lessonPoint) error {
				if report == nil {
					return err
				}
				return report(phase.name, p)
			},
		}
		if err := l.learn(ctx, m); err != nil {
			return nil, fmt.Errorf("%s: %w", phase.name, err)
		}
	}
	return m, err
}

// baseModel returns the model that SFT starts from: the shipped base of the
// size, or one that is pre-trained once and shared as an artifact.
func (r *run) baseModel(ctx context.Context) (stage, error) {
	size := baseName(&r.recipe)
	if src, ext, ok := shippedBase(size); ok && r.recipe.Model.Base == "shipped" {
		sum := sha256.Sum256(src)
		return r.baseStage(ctx, map[string]string{"shipped": hex.EncodeToString(sum[:])}, func(dir string) (map[string]any, error) {
			return map[string]any{"shipped": size + ext}, r.unpackBase(src, ext, filepath.Join(dir, policyFile))
		})
	}
	c := DefaultPretrain(r.recipe.Model.Size)
	if longDays(&r.recipe) > 0 {
		c = LongPretrain(r.recipe.Model.Size)
	}
	c.Kernel = r.recipe.Trainer.Kernel
	if r.recipe.Model.Base == "scratch" {
		c.Seed = r.spec.Seed
	}
	return r.baseStage(ctx, map[string]any{"code": codeVersion, "pretrain": c, "shape": r.shape}, func(dir string) (map[string]any, error) {
		if err := r.phase("pretrain", c.RecallSteps+c.StrollSteps, false); err != nil {
			return nil, err
		}
		m, err := Pretrain(ctx, c, r.pretrainReport(c))
		if err != nil {
			return nil, err
		}
		return nil, nn.SaveCheckpoint(filepath.Join(dir, policyFile), m, nil, nil)
	})
}

// pretrainReport writes the learning curve of a base made in the run, about
// 100 points over both of its phases: making one takes minutes, and a trainer
// that says nothing for so long looks stalled.
func (r *run) pretrainReport(c PretrainConfig) func(phase string, p lessonPoint) error {
	total := c.RecallSteps + c.StrollSteps
	every := max(1, total/100)
	return func(phase string, p lessonPoint) error {
		step := p.Step
		if phase == "stroll" {
			step += c.RecallSteps
		}
		if step%every != 0 && step != 1 && step != total {
			return nil
		}
		return r.out.Points(int64(step), map[string]float64{"pretrain/loss": p.Loss, "pretrain/lr": p.LR, "pretrain/tokens_per_s": p.Rate})
	}
}

const (
	extFull = ".safetensors"
	extHalf = ".bf16"
)

// shippedBase returns the embedded base of a size, if there is one.
func shippedBase(size string) (src []byte, ext string, ok bool) {
	for _, ext := range []string{extFull, extHalf} {
		if src, err := shipped.ReadFile("base/" + size + ext); err == nil {
			return src, ext, true
		}
	}
	return nil, "", false
}

// unpackBase writes an embedded base as a checkpoint file.
func (r *run) unpackBase(src []byte, ext, path string) error {
	if ext == extFull {
		return os.WriteFile(path, src, 0o644)
	}
	m, err := nn.NewModel(r.shape, r.recipe.Trainer.Kernel, 0)
	if err != nil {
		return err
	}
	if err := unpackHalf(m, src); err != nil {
		return err
	}
	return nn.SaveCheckpoint(path, m, nil, nil)
}

func (r *run) baseStage(ctx context.Context, key any, build func(string) (map[string]any, error)) (stage, error) {
	dir, err := r.artifact(ctx, "base", key, build)
	if err != nil {
		return stage{}, err
	}
	s, err := r.load(dir)
	if err != nil {
		return stage{}, err
	}
	if s.model.Config() != r.shape {
		return stage{}, fmt.Errorf("base checkpoint %s has shape %+v, this program needs %+v", dir, s.model.Config(), r.shape)
	}
	return *s, nil
}

// WriteBase makes a base checkpoint at path (ending in .safetensors, or .bf16
// for half the size) and the record of its making beside it (path with .json),
// for shipping. report may be nil.
func WriteBase(ctx context.Context, path string, c PretrainConfig, report func(line string)) error {
	if ext := filepath.Ext(path); ext != extFull && ext != extHalf {
		return fmt.Errorf("base checkpoint %q: the name must end in %s or %s", path, extFull, extHalf)
	}
	began := cpuSeconds()
	last := map[string]float64{}
	m, err := Pretrain(ctx, c, func(phase string, p lessonPoint) error {
		last[phase+"_loss"] = p.Loss
		if report != nil && p.Step%100 == 0 {
			report(fmt.Sprintf("%s step %d loss %.3f, %.0f tokens/s, %.0f CPU-s", phase, p.Step, p.Loss, p.Rate, cpuSeconds()-began))
		}
		return nil
	})
	if err != nil {
		return err
	}
	c.Kernel = m.Kernel()
	switch filepath.Ext(path) {
	case extFull:
		err = nn.SaveCheckpoint(path, m, nil, map[string]string{"made-by": "alidade pretrain"})
	case extHalf:
		err = os.WriteFile(path, packHalf(m), 0o644)
	}
	if err != nil {
		return err
	}
	return writeJSON(path+".json", map[string]any{
		"settings": c, "code": codeVersion, "parameters": m.Config().Params(), "vocabulary": m.Config().Vocab,
		"last": last, "cpu_s": cpuSeconds() - began, "made": time.Now().UTC().Format(time.DateOnly),
		"learned_from": "recall sequences and random legal sessions in generated worlds that no study uses; no expert, no reward",
	})
}
