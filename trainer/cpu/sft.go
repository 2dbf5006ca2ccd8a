package cpu

import (
	"context"
	"math"
	"path/filepath"

	"alidade/sandbox"
	"alidade/sandbox/travel/compact"
	"alidade/trainer/cpu/nn"
)

// stage is a checkpoint made by supervised learning, and where it came from.
type stage struct {
	dir, hash string
	model     *nn.Model
}

const policyFile = "policy.safetensors"
const lossFile = "loss.json"

// sftKey is what an SFT checkpoint depends on. RL settings, prompts and
// rewards are not in it: arms that differ in those share the checkpoint.
type sftKey struct {
	Code   string
	Data   dataKey
	Shape  nn.Config
	Base   string
	Epochs float64
	LR     float64
	Batch  int
	Seed   uint64
	Kernel string
	Think  int
}

// The purposes of the trainer's random streams.
const (
	forSFT = 100 + iota
	forOrder
	forControl
	forPrompts
	forRollouts
	forTrainLabels
	forMinibatch
	forPanelLabels
	forPanelRollouts
	forShown
	forRandomReward
	forFailures
	forPretrain
	forMorePrompts
	forBranch
	forPassRates
	forQuestions
)

// sft returns the SFT checkpoint of this recipe and seed.
func (r *run) sft(ctx context.Context, base stage) (*stage, error) {
	steps := r.sftSteps()
	if err := r.phase("sft", steps, false); err != nil {
		return nil, err
	}
	key := r.sftKeyOf(r.data.world.Travel.Hash(), base.hash)
	live := false
	dir, err := r.artifact(ctx, "sft", key, func(dir string) (map[string]any, error) {
		live = true
		var losses []lessonPoint
		l := r.traceLesson(steps, sandbox.Mix(r.spec.Seed, forSFT), func(p lessonPoint) error {
			losses = append(losses, p)
			return r.sftPoint(p, steps)
		})
		if err := l.learn(ctx, base.model); err != nil {
			return nil, err
		}
		if err := nn.SaveCheckpoint(filepath.Join(dir, policyFile), base.model, nil, nil); err != nil {
			return nil, err
		}
		return map[string]any{"steps": steps, "traces": len(r.data.traces), "question_traces": len(r.data.lessons), "last_loss": losses[len(losses)-1].Loss},
			writeJSON(filepath.Join(dir, lossFile), losses)
	})
	if err != nil {
		return nil, err
	}
	if !live {
		if err := r.replayLosses(dir, steps); err != nil {
			return nil, err
		}
	}
	return r.load(dir)
}

// sftKeyOf names the SFT checkpoint of this recipe and seed; ablation.Stages
// foretells when two are equal.
func (r *run) sftKeyOf(world, base string) sftKey {
	rec := &r.recipe
	data := dataKey{Code: codeVersion, World: world, Seed: rec.Data.Seed, BudgetFactor: rec.Environment.BudgetFactor,
		Panel: rec.Evaluation.Queries, Traces: rec.SFT.Traces, Noise: rec.SFT.Noise, Success: rec.SFT.FilterSuccess, TopShare: rec.SFT.TopShare, OODTraces: rec.Data.OODTraces, Days: longDays(rec)}
	data.Stitched, data.Renamed = stitched(rec), renamed(rec)
	return sftKey{Code: codeVersion, Data: data, Shape: r.shape, Base: base,
		Epochs: rec.SFT.Epochs, LR: rec.SFT.LR, Batch: rec.SFT.Batch, Seed: r.spec.Seed, Kernel: rec.Trainer.Kernel, Think: think(&rec.Environment)}
}

// load reads the checkpoint of an artifact.
func (r *run) load(dir string) (*stage, error) {
	c, err := nn.LoadCheckpoint(filepath.Join(dir, policyFile), r.recipe.Trainer.Kernel)
	if err != nil {
		return nil, err
	}
	return &stage{dir: dir, hash: filepath.Base(dir), model: c.Model}, nil
}

// sftSteps is the number of optimizer steps of SFT, 0 for none.
func (r *run) sftSteps() int {
	s := &r.recipe.SFT
	return max(1, int(math.Ceil(float64(len(r.data.traces)+len(r.data.lessons))*s.Epochs/float64(s.Batch))))
}

// traceLesson goes through the traces in a new order at each pass. Ids and
// cities are labelled anew at every use: the same few hundred traces would be
// learned by heart otherwise.
func (r *run) traceLesson(steps int, seed uint64, report func(lessonPoint) error) lesson {
	d, n := r.data, r.recipe.SFT.Batch
	return lesson{
		steps:    steps,
		ahead:    r.spec.Threads > 1,
		schedule: nn.Schedule{Kind: "cosine", Peak: r.recipe.SFT.LR, Floor: r.recipe.SFT.LR / 50, Warmup: int64(min(20, steps/10)), Total: int64(steps)},
		batch: func(step int) []compact.Script {
			out := make([]compact.Script, n)
			for i := range out {
				use := step*n + i
				which, labels := r.walks.nth(use, len(d.traces)+len(d.lessons), seed), sandbox.Mix(seed, uint64(use))
				switch budget := think(&r.recipe.Environment); {
				case which < len(d.traces):
					out[i] = d.world.WriteDeliberate(d.traces[which], labels, budget)
				default:
					out[i] = d.qa.Write(d.lessons[which-len(d.traces)], labels, r.recipe.Data.OODRenamed)
				}
			}
			return out
		},
		report: report,
	}
}

// sftPoint writes the metrics of an SFT step, about 100 times in all.
func (r *run) sftPoint(p lessonPoint, steps int) error {
	if every := max(1, steps/100); p.Step%every != 0 && p.Step != 1 && p.Step != steps {
		return nil
	}
	return r.out.Points(int64(p.Step), map[string]float64{"sft/loss": p.Loss, "sft/lr": p.LR, "sft/tokens_per_s": p.Rate})
}

// replayLosses writes the learning curve of a checkpoint another run made.
func (r *run) replayLosses(dir string, steps int) error {
	var losses []lessonPoint
	if err := readJSON(filepath.Join(dir, lossFile), &losses); err != nil {
		return err
	}
	for _, p := range losses {
		if err := r.sftPoint(p, steps); err != nil {
			return err
		}
	}
	return nil
}
