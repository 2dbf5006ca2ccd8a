package cpu

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"alidade/trainer/cpu/nn"
)

// best is the checkpoint with the highest success on the validation panel.
type best struct {
	Step  int64   `json:"step"` // 0 = none yet
	Value float64 `json:"value"`
	Dir   string  `json:"dir"`
}

// consider notes the step if its validation beats all before it, and says
// whether it does.
func (r *run) consider(e *exam) bool {
	v, ok := e.Metrics["eval/validation"]
	if !ok || r.best.Step > 0 && v <= r.best.Value {
		return false
	}
	r.best = best{Step: r.step, Value: v, Dir: filepath.Join(r.spec.Dir, stepDir(r.step))}
	return true
}

// recall takes the best so far from a checkpoint's metadata.
func (r *run) recall(text string) error {
	if text == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), &r.best); err != nil {
		return fmt.Errorf("%w: best checkpoint %q", nn.ErrCorrupt, text)
	}
	if r.best.Step > 0 && !exists(r.best.Dir) { // the folder has moved
		r.best.Dir = filepath.Join(filepath.Dir(r.spec.ResumeFrom), filepath.Base(r.best.Dir))
	}
	return nil
}

// crown judges the best checkpoint on the test panel once training is over.
func (r *run) crown(last *exam) error {
	if r.best.Step == 0 {
		return nil
	}
	m := map[string]float64{"eval/best_step": float64(r.best.Step), "eval/success_best": last.Metrics["eval/success"]}
	if r.best.Step != r.step {
		c, err := nn.LoadCheckpoint(filepath.Join(r.best.Dir, policyFile), r.recipe.Trainer.Kernel)
		if errors.Is(err, os.ErrNotExist) {
			return r.alert("warn", "best-missing", fmt.Sprintf("the best checkpoint, of step %d, is not in %s any more: it was not judged", r.best.Step, r.best.Dir))
		}
		if err != nil {
			return err
		}
		e, err := r.examine(c.Model, "best", r.recipe.Evaluation.Samples, false)
		if err != nil {
			return err
		}
		if err := r.publish(e, r.step); err != nil {
			return err
		}
		m["eval/success_best"] = e.Metrics["eval/success"]
	}
	return r.out.Points(r.step, m)
}
