package ablation

import "time"

// StudyID and RunID identify stored studies and runs; both start at 1.
type (
	StudyID int64
	RunID   int64
)

// State is where a run stands. Moves between states are data: see [State.Next].
type State string

// The states of a run.
const (
	Queued    State = "queued"    // waits for a lease
	Starting  State = "starting"  // leased; its shim is being started
	Running   State = "running"   // its trainer writes
	Stopping  State = "stopping"  // asked to stop
	Succeeded State = "succeeded" // done event read and last step reached
	Failed    State = "failed"    // ended otherwise; Cause says why
	Stopped   State = "stopped"   // ended on request
	Lost      State = "lost"      // its state cannot be known; never re-queued by itself
)

// A Record of a study as stored.
type StudyRecord struct {
	ID        StudyID   `json:"id"`
	Study     Study     `json:"study"`
	Source    string    `json:"source,omitempty"` // the study file as written, YAML
	Paused    bool      `json:"paused"`
	Archived  bool      `json:"archived"`
	CreatedAt time.Time `json:"created_at"`
}

// A Run is one arm with one seed, as stored.
type Run struct {
	ID         RunID     `json:"id"`
	Study      StudyID   `json:"study"`
	Arm        Arm       `json:"arm"`
	Seed       uint64    `json:"seed"`
	State      State     `json:"state"`
	Cause      string    `json:"cause,omitempty"` // why it failed, stopped or is lost, in words
	Attempt    int       `json:"attempt"`         // number of the current attempt, 1-based; 0 before the first
	Phase      string    `json:"phase,omitempty"` // data, sft, rl, eval …, as the trainer last said
	Step       int64     `json:"step"`            // last step of the main phase
	TotalSteps int64     `json:"total_steps"`     // of the main phase
	Device     string    `json:"device,omitempty"`
	Priority   int       `json:"priority,omitempty"` // larger starts first; among equals the older
	Place      int64     `json:"place,omitempty"`    // among equals, as a person put it; 0 = by age
	Hold       string    `json:"hold,omitempty"`     // why a queued run may not start, in words; "" = it may
	ReadyAt    time.Time `json:"ready_at,omitzero"`  // a queued run may not start before
	QueuedAt   time.Time `json:"queued_at"`
	StartedAt  time.Time `json:"started_at,omitzero"`
	EndedAt    time.Time `json:"ended_at,omitzero"`
	HeardAt    time.Time `json:"heard_at,omitzero"` // last event read
}

// An Attempt is one execution of a run's trainer. Its folder is never reused.
type Attempt struct {
	Run       RunID     `json:"run"`
	Number    int       `json:"number"` // 1-based
	Dir       string    `json:"dir"`    // absolute
	Device    string    `json:"device"`
	PID       int       `json:"pid,omitempty"`
	Offset    int64     `json:"offset"`     // bytes of events.jsonl read and stored
	FirstStep int64     `json:"first_step"` // step it resumed from
	State     State     `json:"state"`
	ExitCode  *int      `json:"exit_code,omitempty"`
	Signal    string    `json:"signal,omitempty"`
	Cause     string    `json:"cause,omitempty"`
	Code      string    `json:"code,omitempty"`     // stable key of the cause, such as "cuda-oom"
	Evidence  string    `json:"evidence,omitempty"` // the log lines that prove it
	DeviceS   float64   `json:"device_s,omitempty"` // GPU-seconds held
	EnergyJ   float64   `json:"energy_j,omitempty"` // used by its GPUs
	Cost      float64   `json:"cost,omitempty"`     // at the price of the settings
	StartedAt time.Time `json:"started_at"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
}

// A Point is one metric value. Value may be NaN or ±Inf: that is data.
type Point struct {
	Step  int64     // of the metric's phase
	Wall  time.Time // when the trainer wrote it, millisecond resolution
	Value float64
}

// A Series is the points of one metric of one run in step order.
type Series struct {
	Run     RunID
	Metric  string
	Points  []Point
	Total   int  // points stored; len(Points) < Total when thinned
	Thinned bool // min/max-preserving thinning was applied
}

// An Alert is something a person should look at.
type Alert struct {
	ID    int64     `json:"id"`
	Run   RunID     `json:"run"`
	Level string    `json:"level"` // info, warn, bad
	Code  string    `json:"code"`  // stable key, e.g. "nan"
	Text  string    `json:"text"`
	Step  int64     `json:"step"`
	Since int64     `json:"since,omitempty"` // the first step it is about; 0 = only Step
	Late  bool      `json:"late,omitempty"`  // found while catching up: it is about the past
	At    time.Time `json:"at"`
}

// An Artifact is a content-addressed product of a stage.
type Artifact struct {
	Kind       string         `json:"kind"` // dataset, sft, checkpoint, control …
	Hash       string         `json:"hash"`
	Path       string         `json:"path"` // relative to the data folder
	Bytes      int64          `json:"bytes"`
	Run        RunID          `json:"run"` // the run that made it
	Step       int64          `json:"step"`
	Provenance map[string]any `json:"provenance,omitempty"`
	CreatedAt  time.Time      `json:"created_at"`
}

// An Evaluation is the outcome of one panel at one step, query by query.
type EvalResult struct {
	Run     RunID         `json:"run"`
	Panel   string        `json:"panel"`  // test, validation, ood …
	Policy  string        `json:"policy"` // policy, sft, sft-continued, random-legal, expert
	Mode    string        `json:"mode"`   // sampled, greedy
	Step    int64         `json:"step"`
	Samples int           `json:"samples"` // rollouts a query
	Hash    string        `json:"hash"`    // of the panel: arms with different hashes are not comparable
	Queries []QueryResult `json:"queries"`
}

// QueryResult is one query's outcome in an evaluation.
type QueryResult struct {
	Query  string `json:"q"`      // query hash
	Level  string `json:"level"`  // easy, medium, hard
	Passed int    `json:"passed"` // successful rollouts of Samples
}
