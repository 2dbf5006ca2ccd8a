package cpu

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"alidade/trainer"
	"alidade/trainer/cpu/nn"
)

// stepDir is the folder of a step's checkpoint within the run's.
func stepDir(step int64) string {
	return filepath.Join("checkpoints", fmt.Sprintf("step-%06d", step))
}

// checkpoint saves the policy with its optimizer state. Random streams and the
// position in the data follow from the step, so nothing else is needed.
func (r *run) checkpoint(l *learner) error {
	dir := stepDir(r.step)
	full := filepath.Join(r.spec.Dir, dir)
	if err := os.MkdirAll(full, 0o755); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	of, err := r.identity()
	if err != nil {
		return err
	}
	top, err := json.Marshal(r.best)
	if err != nil {
		return err
	}
	path := filepath.Join(full, policyFile)
	meta := map[string]string{"step": strconv.FormatInt(r.step, 10), "recipe": of, "code": codeVersion, "sft": r.start.hash, "best": string(top)}
	if r.objective.EntropyTarget > 0 {
		meta[bonusKey] = strconv.FormatFloat(r.bonus, 'g', -1, 64)
	}
	err = nn.SaveCheckpoint(path, l.model, l.trainer, meta)
	if err != nil {
		return err
	}
	src, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	sum := sha256.Sum256(src)
	return r.out.Checkpoint(trainer.Checkpoint{Step: r.step, Path: dir, SHA256: hex.EncodeToString(sum[:]), Bytes: int64(len(src))})
}

// identity names the recipe and seed that a checkpoint belongs to.
func (r *run) identity() (string, error) {
	recipe := r.recipe
	recipe.Budget.CheckpointEvery, recipe.Trainer.Kernel = 0, "" // may differ
	return hashOf([]any{recipe, r.spec.Seed})
}

// resume loads the checkpoint that the spec names and goes on from its step.
func (r *run) resume(opt nn.AdamW) (*nn.Trainer, error) {
	c, err := nn.LoadCheckpoint(filepath.Join(r.spec.ResumeFrom, policyFile), r.recipe.Trainer.Kernel)
	if err != nil {
		return nil, fmt.Errorf("resume: %w", err)
	}
	of, err := r.identity()
	if err != nil {
		return nil, err
	}
	if got := c.Metadata["recipe"]; got != of {
		return nil, fmt.Errorf("resume: checkpoint %s belongs to recipe and seed %s, this run is %s", r.spec.ResumeFrom, got, of)
	}
	step, err := strconv.ParseInt(c.Metadata["step"], 10, 64)
	if err != nil || step != r.spec.ResumeStep {
		return nil, fmt.Errorf("resume: checkpoint %s is of step %s, resume_step is %d", r.spec.ResumeFrom, c.Metadata["step"], r.spec.ResumeStep)
	}
	r.step = step
	if err := r.recallBonus(c.Metadata[bonusKey]); err != nil {
		return nil, fmt.Errorf("resume: %w", err)
	}
	if err := r.recall(c.Metadata["best"]); err != nil {
		return nil, fmt.Errorf("resume: %w", err)
	}
	if c.Kernel != r.recipe.Trainer.Kernel {
		text := fmt.Sprintf("checkpoint %s was made with kernel %s, this machine goes on with %s: the numbers after step %d will not repeat bit for bit", r.spec.ResumeFrom, c.Kernel, r.recipe.Trainer.Kernel, step)
		if err := r.alert("warn", "kernel", text); err != nil {
			return nil, err
		}
	}
	return c.Resume(opt)
}
