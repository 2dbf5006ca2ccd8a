package native

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"alidade/trainer"
)

// lowWait is how long a value of a lesser source waits for a better one.
const lowWait = 20 * time.Second

// heldPoints are values of a lesser source.
type heldPoints struct {
	at     time.Time
	step   int64
	values map[string]float64
}

// read takes what a source has understood. rank is its place in the plan; the
// first source is 0.
func (b *book) read(rank int, x Reading) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.heard = time.Now()
	if len(x.Values) > 0 {
		b.lines++
		b.newest = max(b.newest, x.Step)
		values := b.named(x.Values)
		switch {
		case b.stage == StageSmoke:
		case rank == 0:
			b.best = max(b.best, x.Step)
			b.put(x.Step, values)
		default:
			b.low = append(b.low, heldPoints{time.Now(), x.Step, values})
		}
	}
	if x.Trajectory != nil {
		b.told(x.Trajectory)
	}
	if b.stage == StageSmoke {
		return
	}
	if x.Evaluation != nil {
		x.Evaluation.Run = b.r.spec.Run
		b.keep(b.r.out.Evaluation(*x.Evaluation))
	}
	if x.Alert != nil {
		b.alert(*x.Alert)
	}
}

// mostAlerts is how many alerts of one code a stage writes: what fails for
// every rollout would fill the page, and its share is a metric anyway.
const mostAlerts = 20

func (b *book) alert(a trainer.Alert) {
	b.alerts[a.Code]++
	switch n := b.alerts[a.Code]; {
	case n > mostAlerts:
		return
	case n == mostAlerts:
		a.Text += " (further alerts of this kind are left out)"
	}
	b.keep(b.r.out.Alert(a))
}

// settle releases what has waited long enough; with last set, everything.
func (b *book) settle(last bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	kept := b.low[:0]
	for _, h := range b.low {
		if last || h.step <= b.best || time.Since(h.at) > lowWait {
			b.put(h.step, h.values)
		} else {
			kept = append(kept, h)
		}
	}
	b.low = kept
	b.flush(b.best, last)
	if last {
		for step := range b.panels {
			b.panelEnded(step)
		}
	}
	err := b.err
	b.err = nil
	return err
}

// put writes the values of a step that no better source has told, and with
// them what the environment server knows about it.
func (b *book) put(step int64, values map[string]float64) {
	s := b.step(step)
	out := map[string]float64{}
	for name, v := range values {
		if !s.told[name] {
			out[name] = v
		}
	}
	if b.main() {
		for name, v := range s.sums.values() {
			if _, ok := values[name]; !ok && !s.told[name] {
				out[name] = v
			}
		}
	}
	if len(out) == 0 {
		return
	}
	for name := range out {
		s.told[name] = true
	}
	b.keep(b.r.out.Points(step, out))
	if b.main() {
		b.r.reached(step)
		for at := range b.panels { // all its episodes lie before a later step
			if at < step {
				b.panelEnded(at)
			}
		}
	}
}

// newestStep is the last step of the stage that was told.
func (b *book) newestStep() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.newest
}

// main tells whether the stage's steps are the run's progress.
func (b *book) main() bool { return b.stage == StageRL }

// named maps the framework's names to the product's.
func (b *book) named(values map[string]float64) map[string]float64 {
	kind := b.r.recipe.Trainer.Kind
	naming, _ := b.r.adapter.(Naming)
	out := make(map[string]float64, len(values))
	for native, v := range values {
		name, ok := "", false
		if naming != nil {
			name, ok = naming.Name(native)
		}
		if !ok {
			name = kind + "/" + native
		}
		if b.stage == StageSFT { // its x is the SFT step
			name = "sft/" + name[strings.LastIndexByte(name, '/')+1:]
		}
		if len(name) <= 200 {
			out[name] = v
		}
	}
	return out
}

// passed tells whether a smoke run gave what a launch needs: a metric line, an
// episode, and rewards that differ.
func (b *book) passed() (text string, notes map[string]any, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	notes = map[string]any{"metric_lines": b.lines, "episodes": b.episodes}
	if b.episodes > 0 {
		maps.Copy(notes, map[string]any{"reward_min": b.minReward, "reward_max": b.maxReward})
	}
	switch {
	case b.lines == 0:
		return "it wrote no metric line", notes, false
	case b.episodes == 0:
		return "no episode was finished: nothing reached the environment server, and no dump was written", notes, false
	case !(b.maxReward > b.minReward):
		return fmt.Sprintf("all %d episodes have the reward %g: there is nothing to learn from; check the reward, the tools and the model, or set native.smoke to skip", b.episodes, b.minReward), notes, false
	}
	return "", notes, true
}
