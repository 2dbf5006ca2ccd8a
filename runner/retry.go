package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"alidade/ablation"
	"alidade/trainer"
)

const (
	triesWithin = 24 * time.Hour
	firstWait   = 10 * time.Second // before the first new attempt; doubled each time
	longestWait = 10 * time.Minute
)

// A decision says whether an ended attempt is tried again by itself.
type decision struct {
	again bool
	wait  time.Duration
	words string // why, or why not
}

// decide applies the rules of the table of signatures. attempts are all of the
// run's, the ended one last; saved reports whether that one left a checkpoint
// newer than it began with.
func decide(code string, attempts []ablation.Attempt, saved bool, now time.Time) decision {
	s := signatureOf(code)
	if s.class != again {
		return decision{words: s.class.advice()}
	}
	earlier := -1 // without the one that ended now
	for _, a := range attempts {
		if a.Code == code && now.Sub(a.EndedAt) < triesWithin {
			earlier++
		}
	}
	earlier = max(earlier, 0)
	switch {
	case earlier >= s.tries:
		return decision{words: fmt.Sprintf("not tried again by itself: %d attempts within a day ended like this", earlier+1)}
	case !saved && code != "preempted" && code != "node-failed":
		return decision{words: "not tried again by itself: it left no new checkpoint to go on from"}
	}
	wait := longestWait
	switch {
	case code == "preempted", code == "time-limit":
		wait = 0 // the cluster's own queue is wait enough
	case earlier < 6:
		wait = firstWait << earlier
	}
	return decision{again: true, wait: wait, words: fmt.Sprintf("tried again from the last checkpoint (%d of %d within a day)", earlier+1, s.tries)}
}

// decideNow is decide with what is stored of the run.
func (l *life) decideNow(ctx context.Context, v verdict) decision {
	if v.code == "" || v.state != ablation.Failed && !v.cluster {
		return decision{}
	}
	attempts, err := l.r.store.Attempts(ctx, l.run.ID)
	if err != nil {
		return decision{words: "not tried again by itself: the attempts cannot be read"}
	}
	for i := range attempts { // the one that ends now may not be stored yet
		if attempts[i].Number == l.attempt.Number {
			attempts[i].Code, attempts[i].EndedAt = v.code, time.Now()
		}
	}
	saved := false
	if all, err := l.r.store.Checkpoints(ctx, l.run.ID); err == nil {
		for _, c := range all {
			saved = saved || c.Attempt == l.attempt.Number && c.Step > l.attempt.FirstStep
		}
	}
	return decide(v.code, attempts, saved, time.Now())
}

// retry queues the run again, when that was decided.
func (l *life) retry(ctx context.Context, d decision) {
	if !d.again || l.run.State != ablation.Failed && l.run.State != ablation.Stopped {
		return
	}
	wait := time.Duration(float64(d.wait) * l.r.cfg.Timing.retryScale())
	l.patiently(ctx, "queue a new attempt", func(ctx context.Context) error {
		run, err := l.r.move(ctx, l.run.ID, ablation.EvRequeue, func(run *ablation.Run) {
			run.Cause, run.EndedAt, run.QueuedAt, run.ReadyAt, run.Place = "", time.Time{}, time.Now(), time.Now().Add(wait), 0
		})
		if errors.Is(err, ablation.ErrConflict) {
			return nil // a person was faster
		}
		if err == nil {
			l.run = run
		}
		return err
	})
	l.alert(ctx, trainer.Alert{Level: "info", Code: "retry", Text: fmt.Sprintf("attempt %d: %s", l.attempt.Number, d.words)})
}

// retryScale lets tests wait less: Retry is the first wait.
func (t Timing) retryScale() float64 { return float64(t.Retry) / float64(firstWait) }
