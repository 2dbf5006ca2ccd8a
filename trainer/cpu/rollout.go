package cpu

import (
	"fmt"

	"alidade/sandbox/qa"
	"alidade/sandbox/travel"
	"alidade/sandbox/travel/compact"
	"alidade/trainer"
	"alidade/trainer/cpu/nn"
)

// episode is what a policy talks to, token by token.
type episode interface {
	Prompt() []compact.Token
	Feed(t compact.Token) (observed []compact.Token, done bool)
	Script() compact.Script
}

// rollout is one sampled episode and what became of it.
type rollout struct {
	ep      episode          // s or q
	s       *compact.Session // a trip; nil for a question
	q       *qa.Session      // a question; nil for a trip
	query   *compact.Query
	group   int // index of its prompt in the batch
	index   int // 0-based in the group
	logprob []float32
	entropy []float32
	ref     []float32 // log-probabilities under the reference policy

	origin   []int // of the tokens that another leaf said first: which leaf
	branched []int // token counts at which the rollout was forked

	judged    travel.Judgement
	reward    float64
	parts     []trainer.Component
	mean, std float64 // of the group's rewards
	advantage float64
	tokenAdv  []float64 // by token, if they differ
	inLoss    bool
}

// sampler plays rollouts with a policy. What a rollout says depends on the
// policy, its prompt and its stream alone, not on what is sampled beside it.
type sampler struct {
	decoder *nn.Decoder
	width   int // rollouts side by side
}

// sideBySide is how many rollouts are sampled together: the caches of many more
// would fall out of the processor's. It does not change what they say.
const sideBySide = 32

// newSampler makes a sampler with room for at least the given rollouts.
func newSampler(m *nn.Model, atLeast int) (*sampler, error) {
	width := max(sideBySide, atLeast)
	d, err := nn.NewDecoder(m, width)
	if err != nil {
		return nil, err
	}
	return &sampler{decoder: d, width: width}, nil
}

// play samples all rollouts to their end. Those of one group follow one
// another and share their prompt. stream names rollout i's random numbers.
func (p *sampler) play(all []*rollout, how nn.Sampling, stream func(i int) uint64) error {
	for first := 0; first < len(all); first += p.width {
		end := min(first+p.width, len(all))
		if err := p.batch(all[first:end], how, func(i int) uint64 { return stream(first + i) }); err != nil {
			return err
		}
	}
	return nil
}

// batch samples rollouts side by side.
func (p *sampler) batch(batch []*rollout, how nn.Sampling, stream func(i int) uint64) error {
	p.decoder.Reset()
	slots := make([]nn.Slot, len(batch))
	if err := p.prompts(batch, slots, stream); err != nil {
		return err
	}
	active := make([]int, len(batch))
	for i := range active {
		active[i] = i
	}
	for len(active) > 0 {
		still := active[:0]
		for _, i := range active {
			r := batch[i]
			got, err := p.decoder.Sample(slots[i], how)
			if err != nil {
				return fmt.Errorf("sample: %w", err)
			}
			_, done, err := p.speak(r, slots[i], got)
			if err != nil {
				return err
			}
			if !done {
				still = append(still, i)
			}
		}
		active = still
		p.decoder.Step()
	}
	return nil
}

// speak takes a sampled token into the rollout and says whether something was
// read in return, and whether the episode is over.
func (p *sampler) speak(r *rollout, slot nn.Slot, got nn.Sampled[float32]) (read, done bool, err error) {
	r.logprob = append(r.logprob, got.LogProb)
	r.entropy = append(r.entropy, got.Entropy)
	observed, done := r.ep.Feed(got.Token)
	if done {
		p.decoder.Free(slot)
		return false, true, nil
	}
	if err := p.decoder.Push(slot, got.Token); err != nil {
		return false, false, err
	}
	return len(observed) > 0, false, p.decoder.Push(slot, observed...)
}

// prompts runs each group's prompt once and forks it for the group.
func (p *sampler) prompts(batch []*rollout, slots []nn.Slot, stream func(i int) uint64) error {
	lead := func(i int) bool { return i == 0 || batch[i].group != batch[i-1].group }
	for i, r := range batch {
		if !lead(i) {
			continue
		}
		slot, err := p.decoder.New(stream(i))
		if err != nil {
			return err
		}
		if err := p.decoder.Push(slot, r.ep.Prompt()...); err != nil {
			return err
		}
		slots[i] = slot
	}
	p.decoder.Step()
	for i := range batch {
		if lead(i) {
			continue
		}
		slot, err := p.decoder.Fork(slots[i-1], stream(i))
		if err != nil {
			return err
		}
		slots[i] = slot
	}
	return nil
}

// sequence is the rollout as training data: every token it wrote is a target.
func (r *rollout) sequence() nn.Sequence {
	s := r.ep.Script()
	return nn.Sequence{Tokens: s.Tokens, Target: s.Own}
}
