package runner

import (
	"testing"
	"time"

	"alidade/ablation"
	"alidade/gpu"
	"alidade/runner/shim"
)

// However the clock was set while an attempt ran, it lasted as long as it did.
func TestSteadyEnd(t *testing.T) {
	start := time.Date(2025, 3, 30, 1, 30, 0, 0, time.UTC)
	for _, tt := range []struct {
		name   string
		ended  time.Time
		lasted time.Duration
		want   time.Duration // after the start
	}{
		{"no change", start.Add(time.Hour), time.Hour, time.Hour},
		{"set by a second", start.Add(time.Hour + time.Second), time.Hour, time.Hour + time.Second},
		{"a day ahead", start.Add(25 * time.Hour), time.Hour, time.Hour},
		{"a day back", start.Add(-23 * time.Hour), time.Hour, time.Hour},
		{"an older record", start.Add(25 * time.Hour), 0, 25 * time.Hour},
	} {
		exit := &shim.Exit{Started: start, Ended: tt.ended, LastedS: tt.lasted.Seconds()}
		if got := steadyEnd(start.Add(time.Millisecond), exit).Sub(start); got.Round(time.Second) != tt.want {
			t.Errorf("%s: it lasted %s, want %s", tt.name, got, tt.want)
		}
	}
}

// An attempt that seems to have ended before it began, the clock having been
// set back, is not counted among the instant crashes.
func TestAClockSetBackIsNoCrash(t *testing.T) {
	r := idle(t, 1, gpu.Config{Spec: "cpu:1"})
	now := time.Now()
	for n, lasted := range []time.Duration{-24 * time.Hour, time.Second} {
		l := &life{r: r, studyID: 1, run: ablation.Run{ID: 1, Study: 1}, complaints: map[string]string{}}
		l.attempt = ablation.Attempt{Run: 1, Number: n + 1, Dir: t.TempDir(), StartedAt: now, EndedAt: now.Add(lasted)}
		l.guard(t.Context(), verdict{event: ablation.EvFailed, state: ablation.Failed})
		if got := len(r.saved.get().Crashes[1]); got != n {
			t.Errorf("after an attempt of %s: %d crashes counted, want %d", lasted, got, n)
		}
	}
}
