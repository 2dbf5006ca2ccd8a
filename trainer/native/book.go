package native

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"alidade/trainer"
)

// book holds what a stage has told so far: episodes that the environment
// server has scored wait here for what the trainer says about them, metrics of
// a lesser source for those of a better one. It is safe for concurrent use.
type book struct {
	r *run

	mu      sync.Mutex
	stage   string
	pending map[string]*waiting // scored episodes, by the server's id
	early   map[string]*trainer.Trajectory
	written map[string]bool      // ids of trajectories in the events
	steps   map[int64]*stepBook  // by RL step
	panels  map[int64]*evalTally // evaluations under way, by step
	low     []heldPoints         // values of lesser sources
	best    int64                // the newest step that the first source has told
	err     error                // of the events file

	alerts          map[string]int // by code
	lines, episodes int            // of this stage
	newest          int64          // step of this stage that any source has told
	minReward       float64
	maxReward       float64
	heard           time.Time
}

type waiting struct {
	t  trainer.Trajectory
	at time.Time
}

// stepBook is what is known about one RL step.
type stepBook struct {
	told map[string]bool // names that have been written
	sums tally           // of the environment's records
}

func newBook(r *run) *book {
	b := &book{r: r, written: map[string]bool{}}
	b.begin("")
	return b
}

// begin starts a stage.
func (b *book) begin(stage string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stage = stage
	b.pending, b.early = map[string]*waiting{}, map[string]*trainer.Trajectory{}
	b.alerts = map[string]int{}
	b.steps, b.panels = map[int64]*stepBook{}, map[int64]*evalTally{}
	b.low, b.best, b.lines, b.episodes, b.newest = nil, math.MinInt64, 0, 0, 0
	b.minReward, b.maxReward = math.Inf(1), math.Inf(-1)
	b.heard = time.Now()
}

func (b *book) step(n int64) *stepBook {
	s := b.steps[n]
	if s == nil {
		s = &stepBook{told: map[string]bool{}, sums: tally{}}
		b.steps[n] = s
		for old := range b.steps { // late values of long ago are not worth the memory
			if old < n-500 {
				delete(b.steps, old)
			}
		}
	}
	return s
}

// scored takes an episode from the environment server.
func (b *book) scored(t trainer.Trajectory) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.heard = time.Now()
	raw := t.ID
	if t.Group != "" {
		t.ID = fmt.Sprintf("%s-%d", t.Group, t.Rollout)
	}
	if t.Phase == StageEval && b.stage != StageSmoke {
		b.evaluated(&t)
		b.write(t)
		return
	}
	b.step(t.Step).sums.add("rollout", &t)
	if extra := b.early[raw]; extra != nil {
		delete(b.early, raw)
		merge(&t, extra)
		b.write(t)
		return
	}
	b.pending[raw] = &waiting{t, time.Now()}
}

// told takes a trajectory from a source: a whole one, or what the trainer
// adds to one of the environment server's, known by its id.
func (b *book) told(t *trainer.Trajectory) {
	whole := t.Query.Text != "" || t.Query.Hash != ""
	switch w := b.pending[t.ID]; {
	case w != nil:
		merge(&w.t, t)
		b.write(w.t)
		delete(b.pending, t.ID)
	case whole:
		b.write(*t)
	default:
		b.early[t.ID] = t
		if len(b.early) > 100_000 {
			clear(b.early) // nobody will ask for them
		}
	}
}

// flush writes the episodes of steps up to n that nobody has added to.
func (b *book) flush(n int64, all bool) {
	for id, w := range b.pending {
		if all || w.t.Step <= n && time.Since(w.at) > time.Second || time.Since(w.at) > 20*time.Minute {
			b.write(w.t)
			delete(b.pending, id)
		}
	}
}

// write writes an episode of which everything is known. Those of a smoke run
// are only counted.
func (b *book) write(t trainer.Trajectory) {
	b.episodes++
	b.minReward, b.maxReward = min(b.minReward, t.Reward), max(b.maxReward, t.Reward)
	if b.stage == StageSmoke {
		return
	}
	if t.Components == nil {
		t.Components = []trainer.Component{}
	}
	b.written[t.ID] = true
	b.keep(b.r.out.Trajectory(t))
}

func (b *book) keep(err error) { b.err = errors.Join(b.err, err) }

// merge adds what the trainer knows of an episode to the environment's record
// of it: advantage, lengths in real tokens, and values by token.
func merge(t, extra *trainer.Trajectory) {
	if extra.Advantage != nil {
		t.Advantage = extra.Advantage
	}
	if extra.Tokens > 0 {
		t.Tokens = extra.Tokens
	}
	if extra.Generated > 0 {
		t.Generated = extra.Generated
	}
	t.Overlong = t.Overlong || extra.Overlong
	for _, c := range extra.Components { // what the trainer paid beside the environment
		t.Components = append(t.Components, c)
		t.Reward += c.Value
	}
	for k, v := range extra.Labels {
		if t.Labels == nil {
			t.Labels = map[string]string{}
		}
		t.Labels[k] = v
	}
	for i := range min(len(t.Turns), len(extra.Turns)) {
		to, from := &t.Turns[i], &extra.Turns[i]
		if from.Tokens > 0 {
			to.Tokens = from.Tokens
		}
		if len(from.Entropy) > 0 {
			to.Entropy = from.Entropy
		}
		if len(from.LogProbs) > 0 {
			to.LogProbs = from.LogProbs
		}
		if len(from.Words) > 0 {
			to.Words = from.Words
		}
		if len(from.Advantages) > 0 {
			to.Advantages = from.Advantages
		}
	}
}
