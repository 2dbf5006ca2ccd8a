// Package native drives trainers of language models that other people wrote.
//
// An [Adapter] knows one framework: what to start for a recipe, at the version
// that is installed, and how to read what the framework writes. [Main] is the
// life that all of them share: probe, preflight, data, environment server,
// stages (SFT, smoke, RL, evaluation), translation, end. It runs as the
// trainer of an attempt, beside the shim, so that a native run survives the
// server like any other, and everything it says goes into events.jsonl.
//
// argv is a vector and never passes a shell; secrets travel in the
// environment or in files of mode 0600.
package native

import (
	"context"
	"net/http"
	"time"

	"alidade/ablation"
	"alidade/sandbox/travel"
	"alidade/trainer"
)

// An Adapter is one framework. It is stateless and safe for concurrent use;
// what belongs to a run is in the Job.
type Adapter interface {
	// Kind is the recipe's trainer.kind.
	Kind() string
	// Probe asks an interpreter which versions it has. It is cheap, needs no
	// GPU, and returns a *Missing when the framework is not there.
	Probe(ctx context.Context, python string) (Versions, error)
	// Check tells what can be known before anything starts: types, ranges,
	// rules across keys, keys that this version accepts and ignores, and what
	// is worth a warning. It does not start anything.
	Check(r ablation.Recipe, v Versions, m Machine) []Verdict
	// Plan says what to start for one stage of a run.
	Plan(j Job) (Plan, error)
}

// Versions are what a probe found: "verl" → "0.7.1", "torch" → "2.8.0",
// "python" → "3.11.9"; "verl.commit" → a checkout's commit where there is one.
type Versions map[string]string

// Missing says that a framework is not installed, and how to install it.
type Missing struct {
	Kind, Python, How string
	Err               error
}

// Error implements error.
func (m *Missing) Error() string {
	return m.Kind + " is not installed in " + m.Python + ": " + m.How
}

// Unwrap returns what the probe met.
func (m *Missing) Unwrap() error { return m.Err }

// A Machine is what a run would get: each device's memory in GiB, none for a
// run on the CPU; the host's memory and the free disk of the data folder, GiB.
type Machine struct {
	DeviceGiB []float64
	HostGiB   float64
	DiskGiB   float64
}

// Levels of a verdict.
const (
	Refuse = "refuse" // the trainer would fail, or the result would be wrong
	Warn   = "warn"
	Note   = "note" // what was resolved, for the record
)

// A Verdict is one finding of a preflight.
type Verdict struct {
	Level string `json:"level"`
	Code  string `json:"code"`            // stable: "dead-key", "memory", "batch-sizes"
	Key   string `json:"key,omitempty"`   // the recipe's key, or the framework's
	Value string `json:"value,omitempty"` // what it is
	Text  string `json:"text"`            // what is wrong
	Fix   string `json:"fix,omitempty"`   // what to write instead
}

// The stages of a run. An adapter plans those that its framework has.
const (
	StageCompose = "compose" // print the resolved configuration and end
	StageSFT     = "sft"
	StageSmoke   = "smoke" // one RL step, small
	StageRL      = "rl"
	StageEval    = "eval"
)

// A Job is what a plan is made for.
type Job struct {
	Spec     trainer.Spec
	Stage    string
	Versions Versions
	Machine  Machine
	Python   string // interpreter, absolute
	Dir      string // folder of this stage in the attempt, absolute, exists, empty: <attempt>/native/<stage>
	Model    string // what this stage starts from: the SFT checkpoint's folder once there is one
	Data     Data
	Env      EnvServer
	Steps    int64  // the last RL step of this stage
	Resume   string // native checkpoint to go on from; "" = none
	Out      string // SFT: where the trained model goes, absolute, exists; what lies beside it stays when the run is cut short
}

// Data are the files that the driver has written from the recipe's queries;
// the adapter names the form it wants. Paths are absolute.
type Data struct {
	Train, Eval string // JSONL: one object a task: {"task_id", "split", "query_hash", "level", "prompt": chat messages}
	Traces      string // JSONL of expert traces as chat messages: {"task_id", "messages", "success"}; "" without SFT
	TrainN      int
	EvalN       int
	Seed        uint64
}

// EnvServer is the environment server of this run (sandbox/serve), with its
// token in the environment variable TokenEnv of the native process.
type EnvServer struct {
	URL      string
	TokenEnv string // name of the variable
	Tools    []byte // JSON list of OpenAI function schemas

	// Open begins an episode in the driver's own process, under the rules and
	// with the failures that the server at URL would give it, for adapters
	// whose rollouts this program plays itself (a gateway in the trainer).
	// split "" finds the task wherever it stands.
	Open func(split, task string, seed uint64, rollout int) (*travel.Episode, error)
	// Record takes such an episode when it is finished and paid, as one that
	// the server has scored: what the trainer says of it later is told under
	// its ID. Phase is rl or eval, Step the step that it is for.
	Record func(trainer.Trajectory)
}

// A Plan says what to start, and where to look for what it does. A plan
// without Argv says that the framework has no such stage. What the process
// prints goes to stdout.log and stderr.log in Job.Dir.
type Plan struct {
	Files map[string][]byte // written into Job.Dir before the start, by relative path, mode 0600
	Argv  []string
	Env   []string // besides the driver's own, NAME=value
	Unset []string // names that the native process must not see

	Resolved []Setting // the native configuration as it was meant, in order
	Sources  []Source  // best first: of a step and name that several tell, the first source counts

	// Checkpoints finds complete checkpoints, oldest first; nil = none.
	Checkpoints func() ([]Saved, error)
	// Save asks for a checkpoint now; nil = the framework cannot.
	Save func() error
	// Companion is started before Argv and ended after it (an inference
	// server); nil = none.
	Companion *Plan
	// Serve is what the native process calls back while it runs; nil = none.
	Serve *Service
	// Finished judges the end: the last step that was reached and the exit
	// code are known. nil = exit code 0 and the last step was reached.
	Finished func(last int64, exit int) (ok bool, reason string)
	// Quiet is how long the native process may be silent at its start before
	// an alert, 0 = 15 min.
	Quiet time.Duration
}

// A Service is an HTTP handler of an adapter. The driver serves it on loopback
// in its own process, from before Argv starts until after the last Poll, so
// that nothing is lost while the product's server is down.
type Service struct {
	Handler http.Handler
	// URLEnv names the variables of the native process that get the address,
	// "http://127.0.0.1:PORT".
	URLEnv []string
	// Secret is what the handler asks for. It is in Env of the plan already;
	// the driver keeps it out of what it writes and shows.
	Secret string
}

// A Setting is one key of the native configuration, with the recipe's key
// that it comes from ("" = a default that is written down).
type Setting struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	From  string `json:"from,omitempty"`
}

// Saved is a checkpoint on disk.
type Saved struct {
	Step int64
	Path string
}

// A Source reads one native output: a console, a log file, a folder of dumps.
// Poll reads what is new and emits it; it is called several times a second
// while the process runs and, with last set, once after it has ended. It must
// not block, keeps its own offset, and never fails on a line it does not
// understand: it counts it.
type Source interface {
	Name() string
	Poll(last bool, emit func(Reading)) error
}

// A Reading is what a source has understood. One of its parts is set.
type Reading struct {
	Step       int64
	Values     map[string]float64 // under the framework's own names
	Trajectory *trainer.Trajectory
	Evaluation *ablation.EvalResult
	Alert      *trainer.Alert
	Total      int64 // the framework says how many steps there will be
	Bad        int   // lines that were not understood
}

// A Naming maps a framework's metric names to the product's ("critic/score/mean"
// → "reward/mean"). Names it does not know are kept under the prefix
// "<kind>/", so that nothing is lost.
type Naming interface {
	Name(native string) (name string, ok bool)
}
