package runner

import (
	"context"
	"fmt"
	"time"

	"alidade/trainer"
)

// skew tells once when the trainer's clock and the server's differ: lines from
// the future, or from before the attempt began. Nothing is ordered or timed by
// comparing the two, but points carry the trainer's times.
func (l *life) skew(ctx context.Context, now time.Time, events []trainer.Event) {
	if l.skewed || len(events) == 0 {
		return
	}
	text := ""
	first, last := events[0].Time(), events[len(events)-1].Time()
	switch {
	case last.Sub(now) > clockSlack:
		text = fmt.Sprintf("the trainer's clock is %s ahead of the server's", last.Sub(now).Round(time.Second))
	case l.attempt.StartedAt.Sub(first) > clockSlack && !l.attempt.StartedAt.IsZero():
		text = fmt.Sprintf("the trainer's clock is %s or more behind the server's", l.attempt.StartedAt.Sub(first).Round(time.Second))
	default:
		return
	}
	l.skewed = true
	if told, err := l.r.store.Alerts(ctx, 0, l.run.ID, 100); err == nil {
		for _, a := range told {
			if a.Code == "clock-skew" {
				return // under an earlier server or attempt
			}
		}
	}
	l.alert(ctx, trainer.Alert{Level: "warn", Code: "clock-skew",
		Text: text + ": steps and durations are right all the same, the times of points are the trainer's"})
}
