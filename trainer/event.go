// Package trainer is the contract between Alidade and any trainer: it reads
// one file, spec.json, and appends lines to another, events.jsonl. Both are
// documented in docs/trainer-protocol.md and pinned by golden lines in
// testdata. Use [Writer] to write events, [Reader] to follow them.
package trainer

import (
	"time"

	"alidade/ablation"
)

// Version of the protocol. A reader accepts lines of its own version only.
const Version = 1

// Spec is spec.json: what a trainer is told. All paths are absolute.
type Spec struct {
	Version    int             `json:"version"`
	Run        ablation.RunID  `json:"run"`
	Study      string          `json:"study"`
	Arm        string          `json:"arm"`
	Attempt    int             `json:"attempt"`
	Seed       uint64          `json:"seed"`
	Recipe     ablation.Recipe `json:"recipe"`
	Dir        string          `json:"dir"`                   // the attempt's folder: events.jsonl and checkpoints go here
	Events     string          `json:"events"`                // events.jsonl
	Artifacts  string          `json:"artifacts"`             // shared content-addressed store: <artifacts>/<kind>/<hash>
	ResumeFrom string          `json:"resume_from,omitempty"` // checkpoint folder of an earlier attempt
	ResumeStep int64           `json:"resume_step,omitempty"`
	Threads    int             `json:"threads"` // CPU threads the trainer may use
	Devices    []string        `json:"devices"` // e.g. "cpu0", "gpu1"
}

// Kind says what an event is.
type Kind string

// The kinds of event. A reader counts and skips others.
const (
	KindHello      Kind = "hello"
	KindPhase      Kind = "phase"
	KindPoints     Kind = "points"
	KindTrajectory Kind = "trajectory"
	KindEvaluation Kind = "evaluation"
	KindCheckpoint Kind = "checkpoint"
	KindArtifact   Kind = "artifact"
	KindAlert      Kind = "alert"
	KindDone       Kind = "done"
	KindOverflow   Kind = "overflow" // made by the reader in place of a line over the limit
)

// Event is one line of events.jsonl. Exactly the field that Kind names is set.
type Event struct {
	V    int   `json:"v"`
	Kind Kind  `json:"kind"`
	T    int64 `json:"t"` // unix milliseconds, the trainer's clock

	Hello      *Hello               `json:"hello,omitempty"`
	Phase      *Phase               `json:"phase,omitempty"`
	Points     *Points              `json:"points,omitempty"`
	Trajectory *Trajectory          `json:"trajectory,omitempty"`
	Evaluation *ablation.EvalResult `json:"evaluation,omitempty"`
	Checkpoint *Checkpoint          `json:"checkpoint,omitempty"`
	Artifact   *ablation.Artifact   `json:"artifact,omitempty"`
	Alert      *Alert               `json:"alert,omitempty"`
	Done       *Done                `json:"done,omitempty"`
	Overflow   *Overflow            `json:"overflow,omitempty"`

	// Raw is the line as written, without its newline. A Reader sets it on
	// trajectories, so that they can be kept byte by byte.
	Raw []byte `json:"-"`
}

// Hello is the first event of an attempt.
type Hello struct {
	Trainer    string            `json:"trainer"` // "alidade-cpu"
	Version    string            `json:"version"`
	PID        int               `json:"pid"`
	Host       string            `json:"host"`
	TotalSteps int64             `json:"total_steps"`    // of the main phase
	Info       map[string]string `json:"info,omitempty"` // kernel, parameters, code and environment hashes …
}

// Phase opens a phase of the run.
type Phase struct {
	Name  string `json:"name"`  // data, sft, rl, control, eval
	Step  int64  `json:"step"`  // where it starts
	Total int64  `json:"total"` // its steps; 0 = unknown
	Main  bool   `json:"main"`  // its steps are the run's progress
}

// Points carries metric values of one step. In JSON a value is a number or
// one of the strings "NaN", "+Inf", "-Inf".
type Points struct {
	Step   int64            `json:"step"`
	Values map[string]Float `json:"values"`
}

// Float is a float64 whose JSON form round-trips NaN and ±Inf.
type Float float64

// Checkpoint says that a checkpoint is complete on disk.
type Checkpoint struct {
	Step   int64  `json:"step"`
	Path   string `json:"path"` // relative to the attempt's folder, or absolute
	SHA256 string `json:"sha256,omitempty"`
	Bytes  int64  `json:"bytes,omitempty"`
	Best   bool   `json:"best,omitempty"`
}

// Alert is something a person should look at.
type Alert struct {
	Level string `json:"level"` // info, warn, bad
	Code  string `json:"code"`
	Text  string `json:"text"`
	Step  int64  `json:"step"`
	Since int64  `json:"since,omitempty"` // the first step it is about; absent = only Step
	Late  bool   `json:"late,omitempty"`  // found while catching up: it is about the past
}

// Done is the last event. A run succeeded only if OK and Step is the last step.
type Done struct {
	OK     bool   `json:"ok"`
	Step   int64  `json:"step"`
	Reason string `json:"reason"` // "finished", "stopped", or the error in words
}

// Overflow stands for a line longer than the reader's limit.
type Overflow struct {
	Bytes  int64  `json:"bytes"`
	Offset int64  `json:"offset"`
	Head   string `json:"head"` // its first bytes
}

// Time returns the event's time.
func (e *Event) Time() time.Time { return time.UnixMilli(e.T) }
