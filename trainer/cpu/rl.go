package cpu

import (
	"context"
	"errors"
	"fmt"
	"time"

	"alidade/sandbox"
	"alidade/sandbox/travel/compact"
	"alidade/trainer/cpu/nn"
)

// learner is the policy under RL.
type learner struct {
	model   *nn.Model
	trainer *nn.Trainer
	sampler *sampler
	ref     *nn.Trainer // the SFT checkpoint, if the objective compares with it
	dull    int         // steps in a row without any gradient
}

// rl trains from the SFT checkpoint, or goes on from a checkpoint of its own.
func (r *run) rl(ctx context.Context) error {
	l, err := r.newLearner()
	if err != nil {
		return err
	}
	total := r.recipe.Budget.Steps
	if err := r.phase("rl", total, true); err != nil {
		return err
	}
	for r.step < int64(total) {
		if err := ctx.Err(); err != nil {
			return errors.Join(context.Cause(ctx), r.checkpoint(l))
		}
		if err := r.rlStep(l, r.step+1); err != nil {
			return err
		}
		r.step++
		if err := r.afterStep(l, total); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) newLearner() (*learner, error) {
	opt := nn.AdamW{MaxNorm: r.recipe.Algorithm.GradClip}
	l := &learner{}
	var err error
	if r.spec.ResumeFrom != "" {
		if l.trainer, err = r.resume(opt); err != nil {
			return nil, err
		}
		l.model = l.trainer.Model()
	} else {
		l.model = r.start.model.Clone()
		if l.trainer, err = nn.NewTrainer(l.model, opt); err != nil {
			return nil, err
		}
	}
	l.trainer.Ahead(r.spec.Threads > 1)
	if r.objective.reference() {
		if l.ref, err = nn.NewTrainer(r.start.model, opt); err != nil {
			return nil, err
		}
	}
	l.sampler, err = newSampler(l.model, r.recipe.Algorithm.GroupSize, r.spec.Threads)
	return l, err
}

// afterStep evaluates and checkpoints when it is time to. The best checkpoint
// so far is always kept.
func (r *run) afterStep(l *learner, total int) error {
	last, asked := r.step == int64(total), false
	if last || r.step%int64(r.recipe.Evaluation.Every) == 0 {
		var err error
		if asked, err = r.evaluate(l, last); err != nil {
			return fmt.Errorf("evaluate: %w", err)
		}
	}
	select {
	case <-r.save:
		asked = true
	default:
	}
	if last || asked || r.step%int64(r.recipe.Budget.CheckpointEvery) == 0 {
		return r.checkpoint(l)
	}
	return nil
}

// evaluate takes the exam of the policy, and says whether it is the best so
// far on the validation panel.
func (r *run) evaluate(l *learner, last bool) (top bool, err error) {
	samples := 1
	if last {
		samples = r.recipe.Evaluation.Samples
	}
	e, err := r.examine(l.model, "policy", samples, last)
	if err != nil {
		return false, err
	}
	r.oodChange(e)
	if err := errors.Join(r.publish(e, r.step), r.out.Points(r.step, e.Metrics)); err != nil {
		return false, err
	}
	top = r.consider(e)
	if last {
		return top, r.crown(e)
	}
	return top, nil
}

// rlStep samples groups, scores them, updates the policy and reports.
func (r *run) rlStep(l *learner, step int64) error {
	began := time.Now()
	b, err := r.sample(l, step)
	if err != nil {
		return r.spoiled(step, err)
	}
	r.steer(b.all)
	zero := advantages(b.all, &r.objective)
	sampled := time.Since(began)
	orders := make([][]int, r.objective.Epochs)
	for e := range orders {
		words := []uint64{r.spec.Seed, forMinibatch, uint64(step)}
		if e > 0 {
			words = append(words, uint64(e))
		}
		orders[e] = compact.Rand(words...).Perm(len(b.kept))
	}
	st, err := update(l.trainer, b.kept, orders, &r.objective, r.recipe.Algorithm.Temperature, r.recipe.Algorithm.LR)
	if err != nil {
		return r.spoiled(step, err)
	}
	m := r.stepMetrics(b.all, st)
	b.metrics(&r.objective, m)
	m["group/zero_variance"] = zero
	m["policy/lr"] = r.recipe.Algorithm.LR
	if r.objective.EntropyTarget > 0 {
		m["policy/entropy_coeff"] = r.objective.Entropy
	}
	took := time.Since(began)
	tokens, written := m["rollout/tokens"]*float64(len(b.all)), m["rollout/generated"]*float64(len(b.all))
	m["time/step_s"] = took.Seconds()
	m["speed/tokens_per_s"] = tokens / took.Seconds()
	m["speed/sample_tokens_per_s"] = written / sampled.Seconds()
	m["speed/train_tokens_per_s"] = float64(st.read) / max((took-sampled).Seconds(), 1e-9)
	if err := r.out.Points(step, m); err != nil {
		return err
	}
	if err := r.watch(l, m); err != nil {
		return err
	}
	return r.showGroups(b.kept, step)
}

// score judges and rewards the finished rollouts, which are the step's
// rollouts from number first on.
func (r *run) score(all []*rollout, step int64, first int) {
	progress := float64(step-1) / float64(max(r.recipe.Budget.Steps, 1))
	for i, o := range all {
		o.judged = o.s.Judgement()
		o.judged.Draw = sandbox.Mix(r.spec.Seed, forRandomReward, uint64(step), uint64(first+i))
		o.reward, o.parts = r.reward.Score(progress, o.judged, o.milestones(r.pay), o.s.FormatError() != "")
		switch {
		case r.objective.Overlong == "shape":
			o.reward, o.parts = r.objective.shape(len(o.s.Script().Tokens)-r.data.world.PromptLen(), o.reward, o.parts)
		case r.objective.Overlong == "zero" && o.s.Overlong():
			o.reward, o.parts = withhold(o.reward, o.parts)
		}
		if r.objective.KLReward > 0 {
			charge(o, r.objective.KLReward)
		}
	}
}

// stepMetrics are the means over a step's rollouts and what the updates did.
func (r *run) stepMetrics(all []*rollout, st updateStats) map[string]float64 {
	t := tally{}
	entropy, tokens := 0.0, 0
	for _, o := range all {
		t.add(o)
		t.put("reward", o.reward)
		for _, c := range o.parts {
			t.put("part/"+c.Name, c.Value)
		}
		t.put("injected", float64(o.s.Injected()))
		t.put("generated", float64(len(o.logprob)))
		t.put("thought", float64(o.s.Thought()))
		for _, h := range o.entropy {
			entropy += float64(h)
		}
		tokens += len(o.entropy)
	}
	m := map[string]float64{
		"reward/mean": t.mean("reward"), "train/success": t.mean("success"),
		"policy/entropy": entropy / float64(tokens), "policy/loss": st.loss, "policy/grad_norm": st.gradNorm,
		"policy/clip_low": st.clipLow, "policy/clip_high": st.clipHigh,
		"rollout/tokens": t.mean("tokens"), "rollout/generated": t.mean("generated"), "rollout/tool_calls": t.mean("tool_calls"),
		"rollout/injected": t.mean("injected"), "rollout/format_error": t.mean("format_error"), "rollout/overlong": t.mean("overlong"),
	}
	if think(&r.recipe.Environment) > 0 {
		m["rollout/thought"] = t.mean("thought")
	}
	n := float64(len(all))
	for name, v := range t {
		if len(name) > 5 && name[:5] == "part/" {
			m["reward/"+name[5:]] = v.sum / n // components a rollout lacks count as 0
		}
	}
	t.checks("check/", m)
	st.diagnose(m)
	return m
}

// watch raises alerts that a person should see while the run goes on.
func (r *run) watch(l *learner, m map[string]float64) error {
	if m["group/zero_variance"] < 1 {
		l.dull = 0
		return nil
	}
	l.dull++
	if l.dull != 10 {
		return nil
	}
	return r.alert("warn", "no-gradient", "no group had any spread of reward for 10 steps: the policy gets no gradient")
}

// spoiled raises the alert for numbers that are not finite and stops the run.
func (r *run) spoiled(step int64, err error) error {
	if errors.Is(err, nn.ErrNotFinite) {
		err = errors.Join(err, r.alert("bad", "nan", fmt.Sprintf("step %d: %v; the update was not applied and the run stops", step, err)))
		r.warned = true
	}
	return fmt.Errorf("step %d: %w", step, err)
}
