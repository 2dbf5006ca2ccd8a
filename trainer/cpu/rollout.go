package cpu

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

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
// policy, its prompt and its stream alone, not on what is sampled beside it or
// by which thread.
type sampler struct {
	decoder *nn.Decoder
	width   int        // rollouts side by side
	helpers []*sampler // one for each further thread
}

// sideBySide is how many rollouts are sampled together: the caches of many more
// would fall out of the processor's. It does not change what they say.
const sideBySide = 32

// newSampler makes a sampler with room for at least the given rollouts.
func newSampler(m *nn.Model, atLeast, threads int) (*sampler, error) {
	width := max(sideBySide, atLeast)
	d, err := nn.NewDecoder(m, width)
	if err != nil {
		return nil, err
	}
	p := &sampler{decoder: d, width: width}
	for range threads - 1 {
		h, err := newSampler(m, width, 1)
		if err != nil {
			return nil, err
		}
		p.helpers = append(p.helpers, h)
	}
	return p, nil
}

// each does n pieces of work, several at a time if there are helpers, each
// piece by one sampler.
func (p *sampler) each(n int, do func(by *sampler, piece int) error) error {
	var next atomic.Int64
	work := func(by *sampler) error {
		for {
			piece := int(next.Add(1)) - 1
			if piece >= n {
				return nil
			}
			if err := do(by, piece); err != nil {
				next.Store(int64(n))
				return err
			}
		}
	}
	failed := make([]error, len(p.helpers)+1)
	var busy sync.WaitGroup
	for i, h := range p.helpers {
		busy.Go(func() { failed[i+1] = work(h) })
	}
	failed[0] = work(p)
	busy.Wait()
	return errors.Join(failed...)
}

// play samples all rollouts to their end. Those of one group follow one
// another and share their prompt. stream names rollout i's random numbers.
func (p *sampler) play(all []*rollout, how nn.Sampling, stream func(i int) uint64) error {
	return p.each((len(all)+p.width-1)/p.width, func(by *sampler, piece int) error {
		first := piece * p.width
		end := min(first+p.width, len(all))
		return by.batch(all[first:end], how, func(i int) uint64 { return stream(first + i) })
	})
}

// bundle is rollouts that have said and read the same so far: they share a
// slot, and part where they begin to differ.
type bundle struct {
	slot    nn.Slot
	members []int // of the batch
}

// batch samples rollouts side by side.
func (p *sampler) batch(batch []*rollout, how nn.Sampling, stream func(i int) uint64) error {
	p.decoder.Reset()
	var active []bundle
	for i, r := range batch {
		if i > 0 && r.group == batch[i-1].group {
			b := &active[len(active)-1]
			b.members = append(b.members, i)
			continue
		}
		slot, err := p.decoder.New(0)
		if err != nil {
			return err
		}
		if err := p.decoder.Push(slot, r.ep.Prompt()...); err != nil {
			return err
		}
		active = append(active, bundle{slot, []int{i}})
	}
	for len(active) > 0 {
		p.decoder.Step()
		var next []bundle
		for _, b := range active {
			parts, err := p.round(batch, b, how, stream)
			if err != nil {
				return err
			}
			next = append(next, parts...)
		}
		active = next
	}
	return nil
}

// part is what some members of a bundle said and read next.
type part struct {
	said    compact.Token
	read    []compact.Token
	members []int
}

// round lets every member of a bundle say its next token and returns the
// bundles of those that go on. What they said and read is pushed.
func (p *sampler) round(batch []*rollout, b bundle, how nn.Sampling, stream func(i int) uint64) ([]bundle, error) {
	streams, got := make([]uint64, len(b.members)), make([]nn.Sampled[float32], len(b.members))
	for k, i := range b.members {
		streams[k] = stream(i)
	}
	if err := p.decoder.SampleEach(b.slot, how, streams, got); err != nil {
		return nil, fmt.Errorf("sample: %w", err)
	}
	var parts []part
	for k, i := range b.members {
		read, done := batch[i].say(got[k])
		if done {
			continue
		}
		at := slices.IndexFunc(parts, func(q part) bool { return q.said == got[k].Token && slices.Equal(q.read, read) })
		if at < 0 {
			at, parts = len(parts), append(parts, part{said: got[k].Token, read: read})
		}
		parts[at].members = append(parts[at].members, i)
	}
	if len(parts) == 0 {
		p.decoder.Free(b.slot)
		return nil, nil
	}
	out := make([]bundle, len(parts))
	for k, q := range parts {
		out[k] = bundle{b.slot, q.members}
		if k == 0 {
			continue
		}
		var err error
		if out[k].slot, err = p.decoder.Fork(b.slot, 0); err != nil {
			return nil, err
		}
	}
	for k, q := range parts {
		if err := errors.Join(p.decoder.Push(out[k].slot, q.said), p.decoder.Push(out[k].slot, q.read...)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// say takes a sampled token into the rollout and returns what it reads in
// return, and whether the episode is over.
func (r *rollout) say(got nn.Sampled[float32]) (read []compact.Token, done bool) {
	r.logprob = append(r.logprob, got.LogProb)
	r.entropy = append(r.entropy, got.Entropy)
	return r.ep.Feed(got.Token)
}

// speak takes a sampled token into the rollout and says whether something was
// read in return, and whether the episode is over.
func (p *sampler) speak(r *rollout, slot nn.Slot, got nn.Sampled[float32]) (read, done bool, err error) {
	observed, done := r.say(got)
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
