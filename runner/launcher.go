package runner

import (
	"context"
	"errors"
	"syscall"

	"alidade/gpu"
)

// A Launcher starts trainers somewhere and finds them again. The local one is
// in runner/local; runner/launchertest holds what every launcher must do.
// Methods are safe for concurrent use and return soon: none waits for a
// trainer to end.
type Launcher interface {
	// Start starts the trainer, detached from this process, in l.Dir. An
	// error means that it does not run and will not.
	Start(ctx context.Context, l Launch) (Handle, error)
	// Attach finds what Start started in dir, also from another process. It
	// is ErrNotStarted when nothing was started there and nothing will be.
	Attach(ctx context.Context, dir string) (Handle, error)
	// Alive reports whether anything of the attempt still runs.
	Alive(ctx context.Context, h Handle) Liveness
	// Signal passes a signal to the trainer and all that it started. It is
	// ErrUnhandled when sig is SIGUSR1 and the trainer does not handle it.
	Signal(ctx context.Context, h Handle, sig syscall.Signal) error
}

// A Launch says what to start.
type Launch struct {
	Dir     string   // the attempt's folder; stdout.log, stderr.log, shim.json and exit.json go here
	Argv    []string // the trainer; no shell is involved
	Env     []string // all of its environment, "KEY=value"
	WorkDir string   // "" = the server's
	Name    string   // for people and for the cluster's lists: "alidade-r12a1"
	Need    gpu.Request
	Threads int // CPU threads the trainer was told to use
}

// A Queuer is a Launcher with a queue of its own, such as a cluster's: runs
// are handed to it without devices of this machine.
type Queuer interface {
	// MostAtOnce is how many runs it takes at a time, waiting ones included.
	MostAtOnce() int
	// HasGPUs reports whether its machines have GPUs.
	HasGPUs() bool
}

// An Ender is a Launcher that knows more of an end than the exit record: what
// a cluster did to the job.
type Ender interface {
	// Ending tells how an attempt that is gone ended; false when nothing is
	// known.
	Ending(ctx context.Context, h Handle) (Ending, bool)
}

// An Ending is what a cluster says of a job's end. Code is "" when the job
// ended by itself, else one of "preempted", "node-failed", "time-limit",
// "oom-killer", "cancelled", "not-started".
type Ending struct {
	Code string
	Text string // in words, with the cluster's own
}

// A Waiter is a Launcher whose attempts may wait for long before they start.
type Waiter interface {
	// Waiting tells what an attempt that has not started waits for; false when
	// it has.
	Waiting(ctx context.Context, h Handle) (why string, waiting bool)
}

// A Sweeper is a Launcher that can find what an ended attempt left behind.
type Sweeper interface {
	// Leftovers lists the processes of an attempt that still run, and signals
	// them when sig is not 0.
	Leftovers(ctx context.Context, h Handle, sig syscall.Signal) []int
}

// A Dumper is a Launcher whose trainers this machine cannot see, and that can
// have their machines tell what they are doing.
type Dumper interface {
	// Dump returns what the attempt's processes are doing, and keeps it in the
	// attempt's folder under [shim.DumpName].
	Dump(ctx context.Context, h Handle) (string, error)
}

// A Handle names something started. Ref is the launcher's own and survives a
// restart of the server through Attach.
type Handle struct {
	Dir string
	PID int // of the trainer on this machine, to show; 0 = unknown
	Ref string

	Place string // where it runs, to show: "slurm job 12 on n3"; "" = on the leased devices
}

// Liveness is what is known about a started attempt.
type Liveness int

// What a launcher can know. Unknown is never read as gone.
const (
	Unknown Liveness = iota
	Alive
	Gone
)

// String says the liveness in a word.
func (l Liveness) String() string { return [...]string{"unknown", "alive", "gone"}[l] }

// Errors of launchers.
var (
	ErrNotStarted = errors.New("nothing was started in this folder")
	ErrUnhandled  = errors.New("the trainer does not handle this signal")
)
