package runner

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"time"

	"alidade/trainer"
)

// sweep sees to it that nothing an ended attempt has started still runs when
// its devices are given on: SIGTERM, then SIGKILL, until all is gone. What
// does not go is told, and its devices are kept from others.
func (l *life) sweep(ctx context.Context) {
	sweeper, ok := l.r.cfg.Launcher.(Sweeper)
	if !ok {
		return
	}
	left := sweeper.Leftovers(ctx, l.handle, syscall.SIGTERM)
	if len(left) == 0 {
		return
	}
	l.r.log.Warn("the attempt left processes behind", "run", l.run.ID, "attempt", l.attempt.Number, "pids", left)
	until := time.Now().Add(l.r.cfg.Timing.Sweep)
	kill := time.Now().Add(l.r.cfg.Timing.Sweep / 10)
	for time.Now().Before(until) {
		select {
		case <-ctx.Done():
			return // the next server sees foreign processes on the devices
		case <-time.After(100 * time.Millisecond):
		}
		sig := syscall.Signal(0)
		if time.Now().After(kill) {
			sig = syscall.SIGKILL
		}
		if left = sweeper.Leftovers(ctx, l.handle, sig); len(left) == 0 {
			return
		}
	}
	text := fmt.Sprintf("%s after its end, processes %s of attempt %d still run and cannot be killed", l.r.cfg.Timing.Sweep, pids(left), l.attempt.Number)
	for _, d := range l.lease.Devices {
		if d.UUID != "" {
			l.r.quarantine(d, text)
		}
	}
	l.alert(ctx, trainer.Alert{Level: "bad", Code: "left-behind", Text: text})
}

func pids(list []int) string {
	words := make([]string, len(list))
	for i, pid := range list {
		words[i] = fmt.Sprint(pid)
	}
	return strings.Join(words, ", ")
}
