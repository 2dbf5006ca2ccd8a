package cpu

import (
	"fmt"
	"math"
	"slices"

	"alidade/ablation"
	"alidade/trainer/cpu/nn"
)

// tree says how rollouts branch after tool results.
type tree struct {
	Initial     int     // rollouts of a group that start from the prompt
	Beam        int     // ways out of a branching point
	Probability float64 // of branching at unchanged entropy
	Weight      float64 // of the change in entropy
}

func (t *tree) String() string {
	return fmt.Sprintf("tree of %d roots, beam %d, branch when u − %g·ΔH ≤ %g", t.Initial, t.Beam, t.Weight, t.Probability)
}

// arpo is GRPO on branching rollouts, without KL: where the policy's entropy
// has risen after a tool result, the episode is forked and goes on several
// ways, until the group has its leaves.
func arpo(o *objective, a *ablation.Algorithm) {
	o.KLLoss, o.KLReward = 0, 0
	o.Tree = &tree{Initial: a.InitialRollouts, Beam: a.BeamSize,
		Probability: orFloat(a.BranchProb, 0.5), Weight: orFloat(a.EntropyWeight, 0.2)}
	if o.Tree.Initial == 0 {
		o.Tree.Initial = max(1, a.GroupSize/2)
	}
	if o.Tree.Beam == 0 {
		o.Tree.Beam = 2
	}
}

// branches decides on a branch: u is uniform in [0, 1), rise the change in
// normalised entropy since the first turn.
func (t *tree) branches(u, rise float64) bool {
	return min(max(u-t.Weight*rise, 0), 1) <= t.Probability
}

// growth is the sampling of branching groups.
type growth struct {
	*sampler
	tree   *tree
	size   int // leaves of a group
	vocab  int // words of the language
	how    nn.Sampling
	stream func(group, index int) uint64
	coin   func(group, index, token, way int) float64 // uniform
	fresh  func(group, index int) *rollout            // a root
}

// grow samples groups 0 to n−1 to their full size. The roots begin at the
// prompt; leaves that branching leaves over begin there too.
func (g growth) grow(n int) ([]*rollout, error) {
	groups := make([][]*rollout, n)
	width := max(1, g.width/g.size) // groups side by side
	err := g.each((n+width-1)/width, func(by *sampler, piece int) error {
		mine := g
		mine.sampler = by
		return mine.some(groups[piece*width:min((piece+1)*width, n)], piece*width)
	})
	return slices.Concat(groups...), err
}

// some samples the groups from number first on.
func (g growth) some(groups [][]*rollout, first int) error {
	var roots, rest []*rollout
	for i := range groups {
		for k := range g.tree.Initial {
			groups[i] = append(groups[i], g.fresh(first+i, k))
		}
		roots = append(roots, groups[i]...)
	}
	if err := g.forest(roots, groups, first); err != nil {
		return err
	}
	for i := range groups {
		have := len(groups[i])
		for k := have; k < g.size; k++ {
			groups[i] = append(groups[i], g.fresh(first+i, k))
		}
		rest = append(rest, groups[i][have:]...)
	}
	if len(rest) == 0 {
		return nil
	}
	return g.batch(rest, g.how, func(i int) uint64 { return g.stream(rest[i].group, rest[i].index) })
}

// limb is a rollout that is being sampled.
type limb struct {
	r      *rollout
	slot   nn.Slot
	looked bool // it has just read a tool result
}

// forest samples the roots and whatever branches off them.
func (g growth) forest(roots []*rollout, groups [][]*rollout, first int) error {
	d := g.decoder
	d.Reset()
	slots := make([]nn.Slot, len(roots))
	if err := g.prompts(roots, slots, func(i int) uint64 { return g.stream(roots[i].group, roots[i].index) }); err != nil {
		return err
	}
	var active []limb
	for i, r := range roots {
		active = append(active, limb{r: r, slot: slots[i]})
	}
	for len(active) > 0 {
		var next []limb
		for i := 0; i < len(active); i++ {
			l := active[i]
			got, err := d.Sample(l.slot, g.how)
			if err != nil {
				return fmt.Errorf("sample: %w", err)
			}
			if l.looked {
				born, err := g.fork(l, float64(got.Entropy), &groups[l.r.group-first])
				if err != nil {
					return err
				}
				active = append(active, born...)
			}
			seen, done, err := g.speak(l.r, l.slot, got)
			if err != nil {
				return err
			}
			if !done {
				next = append(next, limb{l.r, l.slot, seen})
			}
		}
		active = next
		d.Step()
	}
	return nil
}

// fork lets other rollouts go on from where l stands.
func (g growth) fork(l limb, entropy float64, leaves *[]*rollout) ([]limb, error) {
	rise := (entropy - float64(l.r.entropy[0])) / math.Log(float64(g.vocab))
	var born []limb
	for way := 1; way < g.tree.Beam && len(*leaves) < g.size; way++ {
		at := len(l.r.logprob)
		if !g.tree.branches(g.coin(l.r.group, l.r.index, at, way), rise) {
			continue
		}
		child := l.r.branch(len(*leaves))
		slot, err := g.decoder.Fork(l.slot, g.stream(child.group, child.index))
		if err != nil {
			return nil, err
		}
		*leaves = append(*leaves, child)
		l.r.branched = append(l.r.branched, at)
		born = append(born, limb{r: child, slot: slot})
	}
	return born, nil
}

// branch copies a rollout as leaf number index of its group. What both have
// said so far they share.
func (r *rollout) branch(index int) *rollout {
	s := r.s.Fork()
	c := &rollout{s: s, ep: s, query: r.query, group: r.group, index: index,
		logprob: append([]float32(nil), r.logprob...), entropy: append([]float32(nil), r.entropy...),
		branched: []int{len(r.logprob)}}
	for k := range r.logprob {
		c.origin = append(c.origin, r.from(k))
	}
	return c
}

// from is the index of the leaf that first said the rollout's k-th token.
func (r *rollout) from(k int) int {
	if k < len(r.origin) {
		return r.origin[k]
	}
	return r.index
}

// shareAdvantages gives every token the mean advantage of the leaves that
// share it.
func shareAdvantages(all []*rollout) {
	type node struct{ group, leaf, token int }
	type sum struct{ n, adv float64 }
	sums := map[node]sum{}
	for _, r := range all {
		for k := range r.logprob {
			at := node{r.group, r.from(k), k}
			s := sums[at]
			sums[at] = sum{s.n + 1, s.adv + r.advantage}
		}
	}
	for _, r := range all {
		r.tokenAdv = make([]float64, len(r.logprob))
		for k := range r.tokenAdv {
			s := sums[node{r.group, r.from(k), k}]
			r.tokenAdv[k] = s.adv / s.n
		}
	}
}

// shared is how many tokens of the rollout another leaf said first.
func (r *rollout) shared() int { return len(r.origin) }
