package travel

import (
	"time"

	"alidade/trainer"
)

// ToolAccount adds up the calls of one tool in an episode.
type ToolAccount struct {
	Tool      string
	Calls     int
	Errors    int            // no hits, bad arguments; not injected ones
	Injected  map[string]int // by kind; nil for none
	LatencyMS float64        // injected, simulated
	Busy      time.Duration  // measured: what the sandbox itself took
}

// Account lists the tools called, in the order of their first call.
func (e *Episode) Account() []ToolAccount { return e.account }

// InjectedKinds counts the injected failures of the episode by kind.
func (e *Episode) InjectedKinds() map[string]int {
	kinds := map[string]int{}
	for _, a := range e.account {
		for kind, n := range a.Injected {
			kinds[kind] += n
		}
	}
	return kinds
}

// LatencyMS is the injected latency of the whole episode, ms.
func (e *Episode) LatencyMS() float64 {
	sum := 0.0
	for _, a := range e.account {
		sum += a.LatencyMS
	}
	return sum
}

// book enters a call.
func (e *Episode) book(tool string, obs *trainer.Observed, busy time.Duration) {
	e.calls++
	a := e.accountOf(tool)
	a.Calls++
	a.Busy += busy
	a.LatencyMS += obs.LatencyMS
	if obs.Injected != "" {
		e.injected++
		if a.Injected == nil {
			a.Injected = map[string]int{}
		}
		a.Injected[obs.Injected]++
	}
	if obs.Error != "" {
		e.errors++
		a.Errors++
	}
}

func (e *Episode) accountOf(tool string) *ToolAccount {
	for i := range e.account {
		if e.account[i].Tool == tool {
			return &e.account[i]
		}
	}
	e.account = append(e.account, ToolAccount{Tool: tool})
	return &e.account[len(e.account)-1]
}
