package native

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"alidade/ablation"
	"alidade/trainer"
)

// stages takes the run through its stages.
func (r *run) stages(ctx context.Context) error {
	if err := r.stage(ctx, StageCompose, trainer.Phase{}, r.job(StageCompose, 0)); err != nil {
		return err
	}
	if err := r.sft(ctx); err != nil {
		return err
	}
	if err := r.smoke(ctx); err != nil {
		return err
	}
	steps := int64(r.recipe.Budget.Steps)
	if r.last < steps || steps == 0 {
		job := r.job(StageRL, steps)
		job.Resume = r.spec.ResumeFrom
		if err := r.stage(ctx, StageRL, trainer.Phase{Name: StageRL, Step: r.last, Total: steps, Main: true}, job); err != nil {
			return err
		}
	} else if err := r.out.Phase(trainer.Phase{Name: StageRL, Step: r.last, Total: steps, Main: true}); err != nil {
		return err
	}
	return r.stage(ctx, StageEval, trainer.Phase{Name: StageEval, Step: r.last}, r.job(StageEval, steps))
}

// job is what all stages' jobs have in common.
func (r *run) job(stage string, steps int64) Job {
	return Job{Spec: r.spec, Stage: stage, Versions: r.versions, Machine: r.machine, Python: r.python,
		Dir: filepath.Join(r.spec.Dir, "native", stage), Model: r.model, Data: r.data, Env: r.env, Steps: steps}
}

// stage plans and runs one stage; one that the framework does not have is
// passed over.
func (r *run) stage(ctx context.Context, stage string, phase trainer.Phase, job Job) error {
	if err := os.MkdirAll(job.Dir, 0o755); err != nil {
		return fmt.Errorf("stage folder: %w", err)
	}
	plan, err := r.adapter.Plan(job)
	if err != nil {
		return fmt.Errorf("%s: %w", stage, err)
	}
	if len(plan.Argv) == 0 {
		if err := os.Remove(job.Dir); err != nil && !errors.Is(err, os.ErrNotExist) {
			r.log.Debug("stage folder stays", "stage", stage, "err", err)
		}
		if stage == StageRL && job.Steps > 0 {
			return fmt.Errorf("recipe.budget.steps is %d: trainer %s has no RL; set it to 0", job.Steps, r.recipe.Trainer.Kind)
		}
		return nil
	}
	if phase.Name != "" {
		if err := r.out.Phase(phase); err != nil {
			return err
		}
	}
	r.book.begin(stage)
	return r.launch(ctx, stage, plan, job)
}

// sftKey is what an SFT checkpoint depends on.
type sftKey struct {
	Kind      string
	Versions  Versions
	Model     string
	Data      string // folder of the data set, which is named by its content
	SFT       ablation.SFT
	Seed      uint64
	Precision string
	Lora      int
	Prompt    int
	Response  int
	Overrides map[string]string
}

// sft fine-tunes the model on the expert's traces, or takes what another run
// with equal settings has made.
func (r *run) sft(ctx context.Context) error {
	if r.data.Traces == "" {
		return nil
	}
	n, s := r.recipe.Native, r.recipe.SFT
	s.Control = false
	key := sftKey{Kind: r.recipe.Trainer.Kind, Versions: r.versions, Model: n.Model, Data: filepath.Base(filepath.Dir(r.data.Traces)), SFT: s, Seed: r.spec.Seed,
		Precision: n.Precision, Lora: n.LoraRank, Prompt: n.MaxPrompt, Response: n.MaxResponse, Overrides: n.Overrides}
	skipped := false
	dir, err := r.artifact(ctx, StageSFT, key, func(work string) (map[string]any, error) {
		job := r.job(StageSFT, 0)
		job.Out = filepath.Join(work, "model")
		if err := os.MkdirAll(job.Out, 0o755); err != nil {
			return nil, err
		}
		if err := r.stage(ctx, StageSFT, trainer.Phase{Name: StageSFT}, job); err != nil {
			return nil, err
		}
		if entries, err := os.ReadDir(job.Out); err != nil || len(entries) == 0 {
			skipped = true
			return nil, errors.Join(err, errNoModel)
		}
		return map[string]any{"model": n.Model}, nil
	})
	switch {
	case skipped && errors.Is(err, errNoModel) && !exists(filepath.Join(r.spec.Dir, "native", StageSFT)):
		return nil // the framework has no such stage: its adapter has said so
	case err != nil:
		return err
	}
	r.model = filepath.Join(dir, "model")
	return nil
}

var errNoModel = errors.New("SFT ended well but left no model")

// smokeKey is what a smoke run depends on: no seed, so that one smoke run
// speaks for all seeds of an arm.
type smokeKey struct {
	Recipe   ablation.Recipe
	Versions Versions
	Devices  []float64
	SFT      bool
}

// smoke runs one small step before the launch. One that has passed is
// remembered.
func (r *run) smoke(ctx context.Context) error {
	if r.recipe.Native.Smoke == "skip" || r.recipe.Budget.Steps == 0 {
		return nil
	}
	if !r.has(StageSmoke) {
		return nil
	}
	key := smokeKey{Recipe: r.recipe, Versions: r.versions, Devices: r.machine.DeviceGiB, SFT: r.data.Traces != ""}
	key.Recipe.Budget.Steps = 1 // more steps of the same need no other smoke run
	_, err := r.artifact(ctx, StageSmoke, key, func(string) (map[string]any, error) {
		if err := r.stage(ctx, StageSmoke, trainer.Phase{Name: StageSmoke, Total: 1}, r.job(StageSmoke, 1)); err != nil {
			return nil, err
		}
		text, notes, ok := r.book.passed()
		if !ok {
			return nil, fmt.Errorf("the smoke run did not pass: %s", text)
		}
		return notes, nil
	})
	return err
}

// has tells whether the adapter plans a stage at all.
func (r *run) has(stage string) bool {
	job := r.job(stage, 1)
	if err := os.MkdirAll(job.Dir, 0o755); err != nil {
		return true // and the stage says what is wrong
	}
	plan, err := r.adapter.Plan(job)
	return err != nil || len(plan.Argv) > 0
}

// reached notes a step of the main phase.
func (r *run) reached(step int64) { r.last = max(r.last, step) }
