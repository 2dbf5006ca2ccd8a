package store

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"alidade/ablation"
	"alidade/trainer"
)

var errStub = errors.New("not implemented yet")

// Options tunes a store.
type Options struct {
	Logger      *slog.Logger
	ReadOnly    bool
	CommitEvery time.Duration
}

// Store is an open data folder.
type Store struct{}

// HeldError says that another process serves the data folder.
type HeldError struct {
	PID   int
	Since time.Time
}

// Error implements error.
func (e *HeldError) Error() string { return "held" }

// Errors that callers ask for with errors.Is.
var (
	ErrNewer    = errors.New("database is newer than this program")
	ErrDiskFull = errors.New("disk full")
	ErrReadOnly = errors.New("read-only")
)

func Open(dir string, o Options) (*Store, error) { return nil, errStub }
func (s *Store) Close() error                    { return nil }
func (s *Store) Dir() string                     { return "" }
func (s *Store) CreateStudy(ctx context.Context, st ablation.Study, source string, planned []ablation.Planned) (ablation.StudyRecord, []ablation.Run, error) {
	return ablation.StudyRecord{}, nil, errStub
}
func (s *Store) AddRuns(ctx context.Context, study ablation.StudyID, planned []ablation.Planned) ([]ablation.Run, error) {
	return nil, errStub
}
func (s *Store) Study(ctx context.Context, id ablation.StudyID) (ablation.StudyRecord, error) {
	return ablation.StudyRecord{}, errStub
}
func (s *Store) Studies(ctx context.Context) ([]ablation.StudyRecord, error) { return nil, errStub }
func (s *Store) SetStudyPaused(ctx context.Context, id ablation.StudyID, paused bool) error {
	return errStub
}
func (s *Store) SetStudyArchived(ctx context.Context, id ablation.StudyID, archived bool) error {
	return errStub
}

// RunFilter picks runs.
type RunFilter struct {
	Study         ablation.StudyID
	States        []ablation.State
	IDs           []ablation.RunID
	Limit, Offset int
}

func (s *Store) Runs(ctx context.Context, f RunFilter) ([]ablation.Run, error) { return nil, errStub }
func (s *Store) Run(ctx context.Context, id ablation.RunID) (ablation.Run, error) {
	return ablation.Run{}, errStub
}
func (s *Store) Attempts(ctx context.Context, run ablation.RunID) ([]ablation.Attempt, error) {
	return nil, errStub
}
func (s *Store) Metrics(ctx context.Context, runs []ablation.RunID) ([]string, error) {
	return nil, errStub
}

// SeriesQuery picks series.
type SeriesQuery struct {
	Runs      []ablation.RunID
	Metrics   []string
	From, To  int64 // steps, both included; 0, 0 = all
	MaxPoints int   // 0 = all; otherwise min/max-preserving thinning
	Attempt   int   // 0 = merged
}

func (s *Store) Series(ctx context.Context, q SeriesQuery) ([]ablation.Series, error) {
	return nil, errStub
}
func (s *Store) Last(ctx context.Context, runs []ablation.RunID, metrics []string) (map[ablation.RunID]map[string]ablation.Point, error) {
	return nil, errStub
}

// TrajectoryFilter picks trajectories; zero fields do not filter.
type TrajectoryFilter struct {
	Study                             ablation.StudyID
	Runs                              []ablation.RunID
	Arm                               *int
	Phase, Policy, Mode, Group, Level string
	StepFrom, StepTo                  *int64
	RewardMin, RewardMax              *float64
	Success                           *bool
	FailedCheck, Tool, Text           string
	Injected, FormatError, Overlong   *bool
	Sort                              string // newest, reward, turns, tokens, step; "-" prefix = descending
	Limit, Offset                     int
}

// TrajectoryHead is a trajectory without its body.
type TrajectoryHead struct {
	Seq                                                              int64
	Run                                                              ablation.RunID
	Attempt                                                          int
	ID, Phase, Policy, Mode, Group, QueryHash, QueryText, Level, End string
	Rollout                                                          int
	Step                                                             int64
	Reward                                                           float64
	Advantage                                                        *float64
	Success, FormatError, Overlong                                   bool
	Turns, Tokens, ToolCalls, Injected                               int
	Failed                                                           []string // check keys
	At                                                               time.Time
}

func (s *Store) Trajectories(ctx context.Context, f TrajectoryFilter) (heads []TrajectoryHead, total int, err error) {
	return nil, 0, errStub
}
func (s *Store) Trajectory(ctx context.Context, run ablation.RunID, id string) (trainer.Trajectory, []byte, error) {
	return trainer.Trajectory{}, nil, errStub
}
func (s *Store) Evaluations(ctx context.Context, runs []ablation.RunID) ([]ablation.EvalResult, error) {
	return nil, errStub
}
func (s *Store) Alerts(ctx context.Context, study ablation.StudyID, run ablation.RunID, limit int) ([]ablation.Alert, error) {
	return nil, errStub
}
func (s *Store) Artifacts(ctx context.Context, run ablation.RunID) ([]ablation.Artifact, error) {
	return nil, errStub
}

// Checkpoint is a checkpoint of an attempt, complete on disk.
type Checkpoint struct {
	Attempt int
	trainer.Checkpoint
	At time.Time
}

func (s *Store) Checkpoints(ctx context.Context, run ablation.RunID) ([]Checkpoint, error) {
	return nil, errStub
}

// Phase is a phase that an attempt opened.
type Phase struct {
	Attempt int
	trainer.Phase
	At time.Time
}

func (s *Store) Phases(ctx context.Context, run ablation.RunID) ([]Phase, error) { return nil, errStub }
func (s *Store) Done(ctx context.Context, run ablation.RunID, attempt int) (trainer.Done, error) {
	return trainer.Done{}, errStub
}
func (s *Store) Hello(ctx context.Context, run ablation.RunID) (trainer.Hello, error) {
	return trainer.Hello{}, errStub
}

// Counts says how much of a run is stored.
type Counts struct{ Points, Trajectories, Evaluations, Malformed, Unknown, Overflow int64 }

func (s *Store) Counts(ctx context.Context, run ablation.RunID) (Counts, error) {
	return Counts{}, errStub
}

// RunWriter changes runs.
type RunWriter struct{}

func (s *Store) RunWriter() *RunWriter { return nil }
func (w *RunWriter) Move(ctx context.Context, id ablation.RunID, ev ablation.Event, change func(*ablation.Run)) (ablation.Run, error) {
	return ablation.Run{}, errStub
}
func (w *RunWriter) StartAttempt(ctx context.Context, a ablation.Attempt) error { return errStub }
func (w *RunWriter) EndAttempt(ctx context.Context, a ablation.Attempt) error   { return errStub }

// Batch is what was read from one attempt's events since the last batch.
type Batch struct {
	Run                ablation.RunID
	Attempt            int
	Offset             int64 // bytes of events.jsonl, after the last line
	Events             []trainer.Event
	Malformed, Unknown int
	Faults             []trainer.Fault // of the malformed lines; may be fewer
	Segment            bool            // the file was replaced: a new segment begins
}

// MetricPoint is a point with its metric.
type MetricPoint struct {
	Metric string
	ablation.Point
}

// Commit is what one batch changed, as stored.
type Commit struct {
	Seq          int64
	Run          ablation.Run
	Points       []MetricPoint
	Trajectories []TrajectoryHead
	Evaluations  []ablation.EvalResult
	Alerts       []ablation.Alert
}

func (w *RunWriter) Append(ctx context.Context, b Batch) (Commit, error) { return Commit{}, errStub }

// Rebuild makes the database again.
func Rebuild(ctx context.Context, dir string, log *slog.Logger) error { return errStub }
