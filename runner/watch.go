package runner

import (
	"fmt"
	"os"
	"slices"
	"time"

	"alidade/ablation"
	"alidade/trainer"
)

const (
	leastGaps = 3               // step times needed before a phase's own pace counts
	mostGaps  = 64              // kept of each phase
	slowTimes = 12              // a checkpoint or evaluation may take so many times its longest so far
	soonAfter = 5 * time.Second // an adopted run's silence is told so long after the start
)

// A watch tells a silent trainer from a slow one: it learns each phase's pace
// from the trainer's own time stamps, so that reading a backlog fast does not
// teach it a wrong one. Checkpoints and evaluations are learned apart, whether
// they are announced as phases or only come with certain steps. Silence is
// measured by this process's monotonic clock.
type watch struct {
	timing Timing
	every  []int64   // steps after whose multiples something slow is due
	heard  time.Time // last line, or the start of watching
	any    bool      // a line was read
	phase  string
	opened int64 // trainer's clock when the phase was opened, ms
	step   int64
	stepT  int64              // trainer's clock at that step, ms; 0 = none in this visit of the phase
	gaps   map[string][]int64 // between ordinary steps, ms
	slow   map[string]int64   // longest gap after a step at which something slow is due, ms
	visit  map[string]int64   // longest visit of a phase, ms
	silent string             // an alert was given after this much silence
}

func newWatch(t Timing, recipe ablation.Recipe, now time.Time) watch {
	w := watch{timing: t, heard: now, gaps: make(map[string][]int64), slow: make(map[string]int64), visit: make(map[string]int64)}
	for _, n := range []int{recipe.Budget.CheckpointEvery, recipe.Evaluation.Every} {
		if n > 1 {
			w.every = append(w.every, int64(n))
		}
	}
	return w
}

// relearn takes what was stored before the server was started anew. The
// silence that was there already counts, but for a moment in which a trainer
// that is well will write.
func (w *watch) relearn(now time.Time, events []trainer.Event, path string) {
	w.hear(now, events)
	w.any = true
	if info, err := os.Stat(path); err == nil {
		quiet := min(now.Sub(info.ModTime()), w.patience()-soonAfter)
		w.heard = now.Add(-max(0, quiet)) // a clock that was set back is no silence
	}
}

// hear learns from new lines; lines without events count as a sign of life.
func (w *watch) hear(now time.Time, events []trainer.Event) {
	w.heard, w.any, w.silent = now, true, ""
	for _, e := range events {
		switch e.Kind {
		case trainer.KindPhase:
			if visit := e.T - w.opened; w.opened != 0 && visit > 0 {
				w.visit[w.phase] = max(w.visit[w.phase], visit)
			}
			w.phase, w.stepT, w.opened = e.Phase.Name, 0, e.T
		case trainer.KindPoints:
			if w.stepT != 0 && e.Points.Step <= w.step {
				continue
			}
			if gap := e.T - w.stepT; w.stepT != 0 && gap >= 0 {
				w.learn(gap)
			}
			w.step, w.stepT = e.Points.Step, e.T
		}
	}
}

// learn takes the time between two steps.
func (w *watch) learn(gap int64) {
	if w.slowStep(w.step) {
		w.slow[w.phase] = max(w.slow[w.phase], gap)
		return
	}
	gaps := append(w.gaps[w.phase], gap)
	w.gaps[w.phase] = gaps[max(0, len(gaps)-mostGaps):]
}

// slowStep reports whether a checkpoint or an evaluation is due after a step.
func (w *watch) slowStep(step int64) bool {
	return slices.ContainsFunc(w.every, func(n int64) bool { return step%n == 0 })
}

// patience is how long the trainer may be silent now.
func (w *watch) patience() time.Duration {
	gaps := w.gaps[w.phase]
	longest := time.Duration(slowTimes*w.visit[w.phase]) * time.Millisecond
	if !w.any || w.stepT == 0 || len(gaps) < leastGaps {
		return max(w.timing.FirstLine, longest)
	}
	sorted := slices.Sorted(slices.Values(gaps))
	median := time.Duration(sorted[len(sorted)/2]) * time.Millisecond
	most := max(w.timing.Stall, 4*median)
	if !w.slowStep(w.step) {
		return most
	}
	if slow, seen := w.slow[w.phase]; seen {
		return max(most, time.Duration(slowTimes*slow)*time.Millisecond)
	}
	return max(most, w.timing.FirstLine)
}

// look returns an alert when the trainer has been silent for too long; once
// for each silence.
func (w *watch) look(now time.Time, path string) *trainer.Alert {
	quiet := now.Sub(w.heard)
	if w.silent != "" || quiet < w.patience() {
		return nil
	}
	w.silent = quiet.Round(time.Second).String()
	if !w.any {
		return &trainer.Alert{Level: "warn", Code: "nothing-received",
			Text: fmt.Sprintf("nothing received %s after the start; watching %s", w.silent, path)}
	}
	where := ""
	if w.phase != "" {
		where = " in phase " + w.phase
	}
	return &trainer.Alert{Level: "warn", Code: "stalled",
		Text: fmt.Sprintf("nothing received for %s%s, where a step is due within %s; the devices stay with this run", w.silent, where, w.patience().Round(time.Second))}
}
