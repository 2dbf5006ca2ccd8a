package runner

import (
	"context"
	"fmt"
	"path/filepath"

	"alidade/ablation"
	"alidade/runner/shim"
	"alidade/trainer"
)

const (
	crashLimit = 3  // instant crashes in a row that pause a study
	crashLines = 50 // of the last one's log, shown with the alert
)

// guard pauses a study whose runs crash as soon as they are started: a broken
// command must not burn through the whole queue.
func (l *life) guard(ctx context.Context, v verdict) {
	r := l.r
	instant := v.state == ablation.Failed && l.attempt.EndedAt.Sub(l.attempt.StartedAt) < r.cfg.Timing.Crash
	r.mu.Lock()
	if !instant {
		if v.state == ablation.Succeeded || v.state == ablation.Failed {
			delete(r.crashes, l.studyID)
		}
		r.mu.Unlock()
		return
	}
	r.crashes[l.studyID]++
	n := r.crashes[l.studyID]
	r.mu.Unlock()
	if n != crashLimit {
		return
	}
	l.patiently(ctx, "pause study", func(ctx context.Context) error {
		return r.store.SetStudyPaused(ctx, l.studyID, true)
	})
	tail := tailOf(filepath.Join(l.attempt.Dir, shim.StderrFile), 64<<10)
	l.alert(ctx, trainer.Alert{Level: "bad", Code: "crash-loop", Text: withLines(
		fmt.Sprintf("the study is paused: %d runs in a row failed within %s of their start; resume it when the cause is gone", n, r.cfg.Timing.Crash),
		lastLines(tail, crashLines))})
}
