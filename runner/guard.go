package runner

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"alidade/ablation"
	"alidade/runner/shim"
	"alidade/trainer"
)

const (
	crashLimit = 3  // instant crashes in a row that pause a study
	crashLines = 50 // of the last one's log, shown with the alert
)

// guard pauses a study whose runs crash as soon as they are started: a broken
// command must not burn through the whole queue. The count outlives the
// server, and an attempt counts once however often it is settled.
func (l *life) guard(ctx context.Context, v verdict) {
	r := l.r
	lasted := l.attempt.EndedAt.Sub(l.attempt.StartedAt)
	instant := v.state == ablation.Failed && lasted < r.cfg.Timing.Crash && lasted >= -clockSlack // else the clock was set
	counted := len(r.saved.get().Crashes[l.studyID])
	if !instant && (counted == 0 || v.state != ablation.Succeeded && v.state != ablation.Failed) {
		return
	}
	name := fmt.Sprintf("%d/%d", l.run.ID, l.attempt.Number)
	n := 0
	err := r.saved.change(func(q *queueState) {
		if !instant {
			delete(q.Crashes, l.studyID)
			return
		}
		if !slices.Contains(q.Crashes[l.studyID], name) {
			q.Crashes[l.studyID] = append(q.Crashes[l.studyID], name)
		}
		n = len(q.Crashes[l.studyID])
	})
	if err != nil {
		r.log.Error("count crashes", "study", l.studyID, "err", err)
	}
	if n < crashLimit {
		return
	}
	rec, err := r.store.Study(ctx, l.studyID)
	if err == nil && rec.Paused {
		return // said already
	}
	l.patiently(ctx, "pause study", func(ctx context.Context) error {
		return r.store.SetStudyPaused(ctx, l.studyID, true)
	})
	tail := tailOf(filepath.Join(l.attempt.Dir, shim.StderrFile), 64<<10)
	l.alert(ctx, trainer.Alert{Level: "bad", Code: "crash-loop", Text: withLines(
		fmt.Sprintf("the study is paused: %d runs in a row failed within %s of their start; resume it when the cause is gone", n, r.cfg.Timing.Crash),
		lastLines(tail, crashLines))})
}

// forgive starts the count of instant crashes of a study anew.
func (r *Runner) forgive(id ablation.StudyID) error {
	if len(r.saved.get().Crashes[id]) == 0 {
		return nil
	}
	return r.saved.change(func(q *queueState) { delete(q.Crashes, id) })
}
