package runner

import (
	"fmt"
	"slices"
	"time"

	"alidade/trainer"
)

const (
	leastGaps = 3  // step times needed before a phase's own pace counts
	mostGaps  = 64 // kept of each phase
)

// A watch tells a silent trainer from a slow one: it learns each phase's pace
// from the trainer's own time stamps, so that reading a backlog fast does not
// teach it a wrong one. Silence is measured by this process's clock.
type watch struct {
	timing Timing
	heard  time.Time // last line, or the start of watching
	any    bool      // a line was read
	phase  string
	step   int64
	stepT  int64 // trainer's clock at that step, ms; 0 = none in this visit of the phase
	gaps   map[string][]int64
	silent string // an alert was given after this much silence
}

func newWatch(t Timing, now time.Time) watch {
	return watch{timing: t, heard: now, gaps: make(map[string][]int64)}
}

// hear learns from new lines; lines without events count as a sign of life.
func (w *watch) hear(now time.Time, events []trainer.Event) {
	w.heard, w.any, w.silent = now, true, ""
	for _, e := range events {
		switch e.Kind {
		case trainer.KindPhase:
			w.phase, w.stepT = e.Phase.Name, 0
		case trainer.KindPoints:
			if w.stepT != 0 && e.Points.Step <= w.step {
				continue
			}
			if w.stepT != 0 {
				gaps := append(w.gaps[w.phase], e.T-w.stepT)
				w.gaps[w.phase] = gaps[max(0, len(gaps)-mostGaps):]
			}
			w.step, w.stepT = e.Points.Step, e.T
		}
	}
}

// patience is how long the trainer may be silent now.
func (w *watch) patience() time.Duration {
	gaps := w.gaps[w.phase]
	if !w.any || w.stepT == 0 || len(gaps) < leastGaps {
		return w.timing.FirstLine
	}
	sorted := slices.Sorted(slices.Values(gaps))
	median := time.Duration(sorted[len(sorted)/2]) * time.Millisecond
	return max(w.timing.Stall, 4*median)
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
