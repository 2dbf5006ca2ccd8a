package ablation

import "fmt"

// Event is something that happens to a run.
type Event string

// The events of a run's life.
const (
	EvLaunch    Event = "launch"    // the scheduler took it
	EvStarted   Event = "started"   // its trainer wrote
	EvStop      Event = "stop"      // a person asked for it to end
	EvSucceeded Event = "succeeded" // done event read, last step reached
	EvFailed    Event = "failed"    // ended otherwise
	EvStopped   Event = "stopped"   // ended on request
	EvLost      Event = "lost"      // its state cannot be known
	EvRecovered Event = "recovered" // a lost run wrote again
	EvRequeue   Event = "requeue"   // resume or retry: a new attempt is wanted
)

// moves is the one table of run moves.
var moves = map[State]map[Event]State{
	Queued:    {EvLaunch: Starting, EvStop: Stopped, EvFailed: Failed},
	Starting:  {EvStarted: Running, EvStop: Stopping, EvSucceeded: Succeeded, EvFailed: Failed, EvStopped: Stopped, EvLost: Lost, EvRequeue: Queued},
	Running:   {EvStarted: Running, EvStop: Stopping, EvSucceeded: Succeeded, EvFailed: Failed, EvStopped: Stopped, EvLost: Lost},
	Stopping:  {EvStop: Stopping, EvSucceeded: Succeeded, EvFailed: Failed, EvStopped: Stopped, EvLost: Lost},
	Lost:      {EvRecovered: Running, EvStop: Stopping, EvSucceeded: Succeeded, EvFailed: Failed, EvStopped: Stopped, EvRequeue: Queued},
	Failed:    {EvRequeue: Queued},
	Stopped:   {EvRequeue: Queued},
	Succeeded: {},
}

// States lists all states in the order of a run's life.
func States() []State {
	return []State{Queued, Starting, Running, Stopping, Succeeded, Failed, Stopped, Lost}
}

// Next returns the state that e leads to, or ErrConflict if e cannot happen in s.
func (s State) Next(e Event) (State, error) {
	if next, ok := moves[s][e]; ok {
		return next, nil
	}
	return s, fmt.Errorf("%s while %s: %w", e, s, ErrConflict)
}

// Terminal reports whether a run in s has ended.
func (s State) Terminal() bool { return s == Succeeded || s == Failed || s == Stopped }

// Live reports whether a run in s has, or may have, a process.
func (s State) Live() bool { return s == Starting || s == Running || s == Stopping }
