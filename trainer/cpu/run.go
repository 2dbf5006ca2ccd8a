package cpu

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"alidade/ablation"
	"alidade/sandbox/travel"
	"alidade/sandbox/travel/compact"
	"alidade/trainer"
	"alidade/trainer/cpu/nn"
)

// codeVersion names the numbers that this code produces. Raise it with every
// change that alters them, so that artifacts of older code are not reused; the
// golden test fails until then.
const codeVersion = "2"

// run is one attempt of one run.
type run struct {
	spec   trainer.Spec
	recipe ablation.Recipe
	log    *slog.Logger
	save   <-chan os.Signal
	out    *trainer.Writer

	objective objective
	walks     walks
	failures  travel.Failures // of tools, in training
	reward    travel.Reward
	pay       map[string]float64 // of milestones
	bonus     float64            // entropy coefficient on its way to the target

	shape nn.Config
	data  *dataset
	start *stage // the SFT checkpoint that RL starts from
	step  int64  // last finished RL step

	warned bool // of numbers that are not finite
	best   best
	sftOOD float64 // out-of-domain accuracy of the SFT checkpoint
}

// train goes through the stages.
func (r *run) train(ctx context.Context) error {
	if err := r.check(); err != nil {
		return err
	}
	if err := r.hello(); err != nil {
		return err
	}
	if err := r.makeData(ctx); err != nil {
		return fmt.Errorf("data: %w", err)
	}
	base, err := r.baseModel(ctx)
	if err != nil {
		return fmt.Errorf("base: %w", err)
	}
	if r.start, err = r.sft(ctx, base); err != nil {
		return fmt.Errorf("sft: %w", err)
	}
	if err := r.pickPrompts(ctx); err != nil {
		return fmt.Errorf("pass rates: %w", err)
	}
	if err := r.baselines(ctx, 0); err != nil {
		return fmt.Errorf("baselines: %w", err)
	}
	if err := r.rl(ctx); err != nil {
		return fmt.Errorf("rl: %w", err)
	}
	if r.recipe.SFT.Control {
		if err := r.control(ctx); err != nil {
			return fmt.Errorf("control: %w", err)
		}
	}
	return r.baselines(ctx, r.step)
}

// check refuses what the spec allows and this trainer cannot do.
func (r *run) check() error {
	rec := &r.recipe
	var bad []ablation.FieldError
	add := func(ok bool, key string, value any, allowed string) {
		if !ok {
			bad = append(bad, ablation.FieldError{Field: "recipe." + key, Value: fmt.Sprint(value), Problem: "not for the embedded trainer", Allowed: allowed})
		}
	}
	add(rec.Trainer.Kind == "cpu", "trainer.kind", rec.Trainer.Kind, "cpu")
	add(kinds[rec.Algorithm.Kind] != nil, "algorithm.kind", rec.Algorithm.Kind, strings.Join(slices.Sorted(maps.Keys(kinds)), ", "))
	add(rec.Environment.World == "nano", "environment.world", rec.Environment.World, "nano")
	add(slices.Contains([]int{3, 5, 7}, rec.Environment.Days), "environment.days", rec.Environment.Days, "3, 5, 7")
	usualLimits(rec)
	add(rec.Environment.Cities >= compact.MinCities && rec.Environment.Cities <= compact.MaxCities, "environment.cities",
		rec.Environment.Cities, fmt.Sprintf("%d to %d", compact.MinCities, compact.MaxCities))
	add(rec.Environment.MaxTokens <= 1024, "environment.max_tokens", rec.Environment.MaxTokens, "at most 1024")
	add(rec.Algorithm.OverlongBuffer < rec.Environment.MaxTokens, "algorithm.overlong_buffer_len", rec.Algorithm.OverlongBuffer, fmt.Sprintf("below environment.max_tokens, %d", rec.Environment.MaxTokens))
	add(rec.SFT.Traces > 0, "sft.traces", rec.SFT.Traces, "at least 1")
	groups := rec.Algorithm.PromptsPerStep
	add(groups >= rec.Algorithm.Minibatches, "algorithm.minibatches", rec.Algorithm.Minibatches, fmt.Sprintf("at most algorithm.prompts_per_step, %d", groups))
	var err error
	r.shape, err = nn.SizeConfig(rec.Model.Size, compact.VocabFor(rec.Environment.Days))
	add(err == nil, "model.size", rec.Model.Size, "nano, small, medium, large, xl")
	failures, ferr := toolFailures(&rec.Environment, r.spec.Seed)
	add(ferr == nil, "environment.failure_rates", rec.Environment.FailureRates, "numbers from 0 to 1")
	r.failures = failures
	if len(bad) > 0 {
		return &ablation.Invalid{Fields: bad}
	}
	r.objective = resolve(rec)
	r.reward, r.pay, r.bonus = travel.RewardOf(*rec), travel.MilestonesOf(*rec), rec.Algorithm.EntropyCoeff
	if r.spec.Artifacts == "" {
		r.spec.Artifacts = filepath.Join(r.spec.Dir, "artifacts")
	}
	return nil
}

// kernel resolves "auto", so that artifacts are addressed by what really ran.
func (r *run) kernel() (string, error) {
	tiny, err := nn.SizeConfig("nano", 2)
	if err != nil {
		return "", err
	}
	kernel := r.recipe.Trainer.Kernel
	if kernel == "" {
		kernel = "auto"
	}
	m, err := nn.NewModel(tiny, kernel, 0)
	if err != nil {
		return "", err
	}
	return m.Kernel(), nil
}

func (r *run) hello() error {
	kernel, err := r.kernel()
	if err != nil {
		return err
	}
	r.recipe.Trainer.Kernel = kernel
	host, _ := os.Hostname()
	return r.out.Hello(trainer.Hello{
		Trainer: "alidade-cpu", Version: codeVersion, PID: os.Getpid(), Host: host, TotalSteps: int64(r.recipe.Budget.Steps),
		Info: map[string]string{
			"kernel": kernel, "parameters": strconv.Itoa(r.shape.Params()), "policy": r.recipe.Model.Size,
			"vocabulary": strconv.Itoa(r.shape.Vocab), "threads": strconv.Itoa(r.spec.Threads), "code": codeVersion,
			"algorithm": r.recipe.Algorithm.Kind, "loss": r.objective.String(),
			"note": "a small proxy policy in a small world: it responds to the design under study, its numbers are not those of a language model",
		},
	})
}

func (r *run) phase(name string, total int, main bool) error {
	return r.out.Phase(trainer.Phase{Name: name, Step: r.step, Total: int64(total), Main: main})
}

func (r *run) alert(level, code, text string) error {
	r.log.Warn("alert", "code", code, "text", text, "step", r.step)
	return r.out.Alert(trainer.Alert{Level: level, Code: code, Text: text, Step: r.step})
}
