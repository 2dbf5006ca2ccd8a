package sandbox

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Kinds of injected failure. Unavailable is the published one; the others are
// further ways in which tools go wrong.
const (
	Unavailable = "unavailable" // the tool says that it is not available
	Timeout     = "timeout"     // the tool says that it timed out
	Truncated   = "truncated"   // only the first rows come back
	Stale       = "stale"       // some rows hold values of another day
	Corrupted   = "corrupted"   // some cells are damaged
	Latency     = "latency"     // the result is right but late
	Mixed       = "mixed"       // each failure is one of the above, drawn evenly
)

// FailureKinds lists the kinds a configuration may name.
func FailureKinds() []string {
	return []string{Unavailable, Timeout, Truncated, Stale, Corrupted, Latency, Mixed}
}

// Failures injects transient tool failures: at any tool call, with
// probability Rate or the tool's own rate, the real result is replaced or
// spoilt. The draw depends on (Seed, episode, call index) only, so every arm
// of a study that uses the same seed meets the same failures, a higher rate
// fails at least at the calls of a lower one, and a run is repeatable. The
// zero value injects nothing.
type Failures struct {
	Rate      float64 // 0..1, for tools that Tools does not name
	Seed      uint64
	Kind      string             // one of FailureKinds; "" = unavailable
	Tools     map[string]float64 // rates by tool name, instead of Rate
	LatencyMS float64            // mean of the added latency of kind latency, ms; 0 = 1000
}

// Injected says whether the call with this 0-based index within the episode
// fails at the common rate.
func (f Failures) Injected(episode uint64, call int) bool {
	return f.Rate > 0 && f.chance(episode, call) < f.Rate
}

// chance is the call's draw, uniform in [0, 1).
func (f Failures) chance(episode uint64, call int) float64 {
	return unit(Mix(f.Seed, episode, uint64(call)))
}

func unit(h uint64) float64 { return float64(h>>11) / (1 << 53) }

// Active tells whether any call can fail.
func (f Failures) Active() bool {
	if f.Rate > 0 {
		return true
	}
	for _, rate := range f.Tools {
		if rate > 0 {
			return true
		}
	}
	return false
}

// RateOf returns the rate at which a tool fails.
func (f Failures) RateOf(tool string) float64 {
	if rate, ok := f.Tools[tool]; ok {
		return rate
	}
	return f.Rate
}

// Draw says how a call fails: the kind, never mixed, or "" for not at all.
// salt is a seeded word for whatever else the failure has to draw.
func (f Failures) Draw(tool string, episode uint64, call int) (kind string, salt uint64) {
	rate := f.RateOf(tool)
	if rate <= 0 || f.chance(episode, call) >= rate {
		return "", 0
	}
	salt = Mix(f.Seed, episode, uint64(call), 0x6b696e64)
	switch f.Kind {
	case "":
		return Unavailable, salt
	case Mixed:
		kinds := [...]string{Unavailable, Timeout, Truncated, Stale, Corrupted, Latency}
		return kinds[salt%uint64(len(kinds))], Mix(salt)
	}
	return f.Kind, salt
}

// Delay draws the added latency of kind latency in ms: exponential with mean
// LatencyMS, at most ten times it.
func (f Failures) Delay(salt uint64) float64 {
	mean := f.LatencyMS
	if mean <= 0 {
		mean = 1000
	}
	return math.Round(mean * math.Min(-math.Log(1-unit(Mix(salt, 0x6c61))), 10))
}

// Check refuses rates that are no probabilities, unknown kinds, and rates for
// tools that are not among the given names.
func (f Failures) Check(tools []string) error {
	if !(f.Rate >= 0 && f.Rate <= 1) {
		return fmt.Errorf("failure rate is %v, must be from 0 to 1", f.Rate)
	}
	if f.Kind != "" && !slices.Contains(FailureKinds(), f.Kind) {
		return fmt.Errorf("failure kind is %q, must be one of %s", f.Kind, strings.Join(FailureKinds(), ", "))
	}
	if !(f.LatencyMS >= 0) {
		return fmt.Errorf("failure latency is %v ms, must be at least 0", f.LatencyMS)
	}
	for tool, rate := range f.Tools {
		if !slices.Contains(tools, tool) {
			return fmt.Errorf("failure rate for tool %q, must be for one of %s", tool, strings.Join(tools, ", "))
		}
		if !(rate >= 0 && rate <= 1) {
			return fmt.Errorf("failure rate of %s is %v, must be from 0 to 1", tool, rate)
		}
	}
	return nil
}

// Mix hashes a few words into one well-spread word (splitmix64 finaliser
// after each word). It is the one source of seeded draws in the sandboxes.
func Mix(words ...uint64) uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	for _, w := range words {
		h += w + 0x9e3779b97f4a7c15
		h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9
		h = (h ^ (h >> 27)) * 0x94d049bb133111eb
		h ^= h >> 31
	}
	return h
}
