package cpu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"alidade/sandbox"
	"alidade/sandbox/travel/compact"
	"alidade/trainer"
	"alidade/trainer/cpu/nn"
)

const (
	examFile  = "exam.json"
	shownFile = "trajectories.jsonl"
)

// examKey is what the exam of a fixed policy depends on.
type examKey struct {
	Code        string
	Policy      string
	Of          string // hash of the checkpoint or settings
	Panel       string
	Validation  string
	OOD         string
	Samples     int
	Temperature float64
	MaxTurns    int
	MaxTokens   int
	Seed        uint64
	Kernel      string
}

// fixedExam returns the exam of a policy that does not change over a run. It
// is taken once and shared like every artifact.
func (r *run) fixedExam(ctx context.Context, policy, of string, seed uint64, take func() (*exam, error)) (*exam, error) {
	ev, env := &r.recipe.Evaluation, &r.recipe.Environment
	key := examKey{Code: codeVersion, Policy: policy, Of: of, Panel: r.data.test.id, Validation: r.data.validation.id, OOD: r.data.oodID, Samples: ev.Samples, Temperature: ev.Temperature,
		MaxTurns: env.MaxTurns, MaxTokens: env.MaxTokens, Seed: seed, Kernel: r.recipe.Trainer.Kernel}
	dir, err := r.artifact(ctx, "exam", key, func(dir string) (map[string]any, error) {
		e, err := take()
		if err != nil {
			return nil, err
		}
		if err := writeTrajectories(filepath.Join(dir, shownFile), e.Trajectories); err != nil {
			return nil, err
		}
		return map[string]any{"policy": policy, "success": e.Metrics["eval/success"]}, writeJSON(filepath.Join(dir, examFile), e)
	})
	if err != nil {
		return nil, err
	}
	e := &exam{}
	if err := readJSON(filepath.Join(dir, examFile), e); err != nil {
		return nil, err
	}
	for i := range e.Results {
		e.Results[i].Run = r.spec.Run
	}
	e.Trajectories, err = readTrajectories(filepath.Join(dir, shownFile))
	return e, err
}

// baselines writes the lines a learned policy is read against, at the given
// step. The first time it also writes their results by query and the episodes
// of the SFT checkpoint.
func (r *run) baselines(ctx context.Context, step int64) error {
	sft, err := r.fixedExam(ctx, "sft", r.start.hash, r.spec.Seed, func() (*exam, error) {
		return r.examine(r.start.model, "sft", r.recipe.Evaluation.Samples, true)
	})
	if err != nil {
		return err
	}
	r.sftOOD = sft.Metrics["ood/accuracy"]
	legal, err := r.scripted(ctx, "random-legal", r.recipe.Evaluation.Samples, func(q *compact.Query, stream uint64) compact.Trace {
		return r.data.world.RandomLegal(q, r.recipe.Data.Seed, stream)
	})
	if err != nil {
		return err
	}
	expert, err := r.scripted(ctx, "expert", 1, func(q *compact.Query, stream uint64) compact.Trace {
		return r.data.world.Expert(q, r.recipe.SFT.Noise, r.recipe.Data.Seed, stream)
	})
	if err != nil {
		return err
	}
	if step == 0 && r.spec.ResumeStep == 0 {
		for _, e := range []*exam{legal, expert, sft} {
			if err := r.publish(e, 0); err != nil {
				return err
			}
		}
		if err := r.out.Points(0, sft.Metrics); err != nil {
			return err
		}
	}
	return r.out.Points(step, map[string]float64{
		"baseline/sft": sft.Metrics["eval/success"], "baseline/random_legal": legal.Metrics["eval/success"], "baseline/expert": expert.Metrics["eval/success"]})
}

// publish writes an exam's results and episodes.
func (r *run) publish(e *exam, step int64) error {
	for _, res := range e.Results {
		res.Step = step
		if err := r.out.Evaluation(res); err != nil {
			return err
		}
	}
	for _, t := range e.Trajectories {
		t.ID, t.Step = fmt.Sprintf("%s-%d", t.ID, step), step
		if err := r.out.Trajectory(t); err != nil {
			return err
		}
	}
	return nil
}

// scripted takes the exam of a policy that is no model.
func (r *run) scripted(ctx context.Context, policy string, samples int, answer func(q *compact.Query, stream uint64) compact.Trace) (*exam, error) {
	of := fmt.Sprintf("noise %g", r.recipe.SFT.Noise)
	if policy == "random-legal" {
		of = ""
	}
	return r.fixedExam(ctx, policy, of, r.recipe.Data.Seed, func() (*exam, error) {
		all := r.sittings(&r.data.test, samples)
		for i, o := range all {
			o.s.Play(answer(o.query, sandbox.Mix(forPanelRollouts, uint64(i))))
		}
		e := &exam{Metrics: map[string]float64{}}
		r.grade(e, &r.data.test, all, policy, "sampled", samples, false)
		return e, nil
	})
}

// controlShare is how many SFT scripts the control learns from for each episode
// of the RL phase. Learning from an episode costs what a script costs, sampling
// it about two thirds of that; groups without spread are sampled only. Measured
// over whole runs the control takes slightly more CPU time than RL.
const controlShare = 1.4

// controlSteps is how many SFT steps cost as much as the RL phase.
func (r *run) controlSteps() int {
	episodes := r.recipe.Budget.Steps * r.recipe.Algorithm.PromptsPerStep * r.recipe.Algorithm.GroupSize
	return max(1, int(controlShare*float64(episodes))/r.recipe.SFT.Batch)
}

// controlKey is what the control depends on.
type controlKey struct {
	Code  string
	SFT   string
	Steps int
	LR    float64
	Batch int
	Seed  uint64
}

// control continues SFT from the same checkpoint for the RL phase's compute,
// with a fresh optimizer and a new cosine from the same peak rate, and takes
// its exam. It is made once for each SFT checkpoint and shared by all arms.
func (r *run) control(ctx context.Context) error {
	steps := r.controlSteps()
	if err := r.phase("control", steps, false); err != nil {
		return err
	}
	key := controlKey{Code: codeVersion, SFT: r.start.hash, Steps: steps, LR: r.recipe.SFT.LR, Batch: r.recipe.SFT.Batch, Seed: r.spec.Seed}
	dir, err := r.artifact(ctx, "control", key, func(dir string) (map[string]any, error) {
		m := r.start.model.Clone()
		var losses []lessonPoint
		l := r.traceLesson(steps, sandbox.Mix(r.spec.Seed, forControl), func(p lessonPoint) error {
			losses = append(losses, p)
			return nil
		})
		if err := l.learn(ctx, m); err != nil {
			return nil, err
		}
		if err := writeJSON(filepath.Join(dir, lossFile), losses); err != nil {
			return nil, err
		}
		return map[string]any{"steps": steps, "last_loss": losses[len(losses)-1].Loss}, nn.SaveCheckpoint(filepath.Join(dir, policyFile), m, nil, nil)
	})
	if err != nil {
		return err
	}
	e, err := r.fixedExam(ctx, "sft-continued", filepath.Base(dir), r.spec.Seed, func() (*exam, error) {
		s, err := r.load(dir)
		if err != nil {
			return nil, err
		}
		return r.examine(s.model, "sft-continued", r.recipe.Evaluation.Samples, false)
	})
	if err != nil {
		return err
	}
	if err := r.publish(e, r.step); err != nil {
		return err
	}
	line := map[string]float64{"baseline/sft_continued": e.Metrics["eval/success"]}
	if v, ok := e.Metrics["ood/accuracy"]; ok {
		line["baseline/ood_sft_continued"] = v
	}
	return errors.Join(r.out.Points(0, line), r.out.Points(r.step, line))
}

func writeTrajectories(path string, all []trainer.Trajectory) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	enc := json.NewEncoder(f)
	for i := range all {
		if err := enc.Encode(&all[i]); err != nil {
			f.Close()
			return err
		}
	}
	return f.Close()
}

func readTrajectories(path string) ([]trainer.Trajectory, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []trainer.Trajectory
	for dec := json.NewDecoder(f); ; {
		var t trainer.Trajectory
		if err := dec.Decode(&t); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		all = append(all, t)
	}
}
