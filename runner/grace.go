package runner

import "time"

// nativeTerm is how long a trainer of a language model may take from SIGTERM:
// a checkpoint of some tens of gigabytes has to reach the disk.
const nativeTerm = 3 * time.Minute

// term is the time from SIGTERM to SIGKILL.
func (l *life) term() time.Duration {
	t := l.r.cfg.Timing.Term
	if l.run.Arm.Recipe.IsNative() {
		return max(t, nativeTerm)
	}
	return t
}
