package cpu

import (
	"fmt"

	"alidade/ablation"
	"alidade/sandbox"
	"alidade/sandbox/travel"
	"alidade/sandbox/travel/compact"
	"alidade/trainer/cpu/nn"
)

// batch is what a step sampled, scored.
type batch struct {
	all    []*rollout
	kept   []*rollout // those that the policy learns from, whole groups
	rounds int
}

// sample plays the step's rollouts. Under dynamic sampling it plays further
// rounds of prompts in place of groups whose members all score alike, until
// the batch is full or the rounds are used up.
func (r *run) sample(l *learner, step int64) (batch, error) {
	var b batch
	want := r.recipe.Algorithm.PromptsPerStep
	for b.rounds < r.objective.Rounds && len(b.kept) < want*r.recipe.Algorithm.GroupSize {
		round, err := r.playRound(l, step, b.rounds)
		if err != nil {
			return b, err
		}
		if l.ref != nil {
			if err := compare(l.ref, round, r.recipe.Algorithm.Temperature); err != nil {
				return b, err
			}
		}
		r.score(round, step, len(b.all))
		b.all = append(b.all, round...)
		b.rounds++
		if !r.objective.Filter {
			b.kept = b.all
			break
		}
		b.kept = append(b.kept, r.objective.spreadGroups(round, want-len(b.kept)/r.recipe.Algorithm.GroupSize)...)
	}
	return b, nil
}

// playRound samples one round of groups to their ends.
func (r *run) playRound(l *learner, step int64, round int) ([]*rollout, error) {
	a := &r.recipe.Algorithm
	how := nn.Sampling{Temperature: a.Temperature, TopP: a.TopP}
	seed := sandbox.Mix(r.spec.Seed, forRollouts, uint64(step))
	base := round * a.PromptsPerStep // of the group numbers
	stream := func(group, index int) uint64 { return nn.Stream(seed, uint64(group*a.GroupSize+index)) }
	if t := r.objective.Tree; t != nil {
		groups, err := growth{sampler: l.sampler, tree: t, size: a.GroupSize, vocab: r.shape.Vocab, how: how,
			stream: func(group, index int) uint64 { return stream(base+group, index) },
			coin: func(group, index, token, way int) float64 {
				return compact.Rand(seed, forBranch, uint64(base+group), uint64(index), uint64(token), uint64(way)).Float64()
			},
			fresh: func(group, index int) *rollout { return r.open(step, round, group, index) },
		}.grow(a.PromptsPerStep)
		for _, o := range groups {
			o.group += base
		}
		return groups, err
	}
	var all []*rollout
	for p := range a.PromptsPerStep {
		for g := range a.GroupSize {
			o := r.open(step, round, p, g)
			o.group += base
			all = append(all, o)
		}
	}
	return all, l.sampler.play(all, how, func(i int) uint64 { return stream(all[i].group, all[i].index) })
}

// open begins the episode of rollout g of prompt p. All arms with the same
// seed meet the same prompts, labels and tool failures in the first round;
// further rounds take their prompts from a walk of their own, so that how many
// a step needed does not move the next step's prompts.
func (r *run) open(step int64, round, p, g int) *rollout {
	a, env := &r.recipe.Algorithm, &r.recipe.Environment
	seed := r.spec.Seed
	at := int(step-1)*a.PromptsPerStep + p
	walk, labels := sandbox.Mix(seed, forPrompts), sandbox.Mix(seed, forTrainLabels, uint64(at))
	number := uint64(at*a.GroupSize + g)
	if round > 0 {
		at = (int(step-1)*r.objective.Rounds+round)*a.PromptsPerStep + p
		walk, labels = sandbox.Mix(seed, forMorePrompts), sandbox.Mix(seed, forTrainLabels, uint64(at), 1)
		number = uint64(at*a.GroupSize+g) + 1<<40
	}
	q := r.data.prompts[r.walks.nth(at, len(r.data.prompts), walk)]
	s := r.data.world.NewSession(q, compact.SessionConfig{
		Episode: number, Labels: labels,
		Failures: r.failures, Milestones: r.pay, Profile: travel.Profile(r.recipe.Reward.Profile),
		MaxTurns: env.MaxTurns, MaxTokens: env.MaxTokens, Think: think(env)})
	return &rollout{s: s, ep: s, query: q, group: p, index: g}
}

// toolFailures are the failures that training meets.
func toolFailures(env *ablation.Environment, seed uint64) (travel.Failures, error) {
	tools, err := ablation.Numbers(env.FailureRates)
	if err != nil {
		return travel.Failures{}, fmt.Errorf("environment.failure_rates: %w", err)
	}
	return travel.Failures{Rate: env.ToolFailureRate, Seed: sandbox.Mix(seed, forFailures),
		Kind: env.FailureKind, Tools: tools, LatencyMS: env.FailureLatencyMS}, nil
}

// think is the budget of thought of an episode.
func think(env *ablation.Environment) int {
	switch {
	case env.Reasoning != "deliberative":
		return 0
	case env.ThinkBudget > 0:
		return env.ThinkBudget
	}
	return 16
}

// metrics adds what the sampling of a step was like.
func (b *batch) metrics(o *objective, m map[string]float64) {
	groups := float64(b.all[len(b.all)-1].group + 1)
	if o.Filter {
		m["sampling/rounds"] = float64(b.rounds)
		m["sampling/groups"] = groups
		m["sampling/kept"] = float64(len(b.kept)) / float64(len(b.all))
	}
	if o.reference() {
		m["policy/kl"] = drift(b.all)
	}
	if o.Tree == nil {
		return
	}
	forks, shared, tokens := 0, 0, 0
	for _, r := range b.all {
		if r.shared() > 0 {
			forks++
		}
		shared += r.shared()
		tokens += len(r.logprob)
	}
	m["sampling/branches"] = float64(forks) / groups
	m["sampling/shared"] = float64(shared) / float64(tokens)
}
