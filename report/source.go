package report

import (
	"context"
	"fmt"
	"slices"
	"time"

	"alidade/ablation"
	"alidade/ablation/published"
)

// A Source is where a report's data come from; package report/stored makes
// one of a store.
type Source interface {
	Study(ctx context.Context, id ablation.StudyID) (ablation.StudyRecord, error)
	Runs(ctx context.Context, study ablation.StudyID) ([]ablation.Run, error) // by id
	Attempts(ctx context.Context, run ablation.RunID) ([]ablation.Attempt, error)
	Hello(ctx context.Context, run ablation.RunID) (Hello, error) // ablation.ErrNotFound when there is none
	Metrics(ctx context.Context, runs []ablation.RunID) ([]string, error)
	Series(ctx context.Context, runs []ablation.RunID, metrics []string, maxPoints int) ([]ablation.Series, error)
	Last(ctx context.Context, runs []ablation.RunID, metrics []string) (map[ablation.RunID]map[string]ablation.Point, error)
	Evaluations(ctx context.Context, runs []ablation.RunID) ([]ablation.EvalResult, error)
	Alerts(ctx context.Context, study ablation.StudyID, run ablation.RunID, limit int) ([]ablation.Alert, error)
	Artifacts(ctx context.Context, run ablation.RunID) ([]ablation.Artifact, error)
	Examples(ctx context.Context, run ablation.RunID) ([]Example, error) // of the last evaluation
}

// Hello is what a trainer said of itself when it started.
type Hello struct {
	Trainer string
	Version string
	Info    map[string]string // kernel, parameters, code and environment hashes …
}

// An Example is a trajectory worth reading.
type Example struct {
	Kind        string         `json:"kind"` // best, typical, worst
	Run         ablation.RunID `json:"run"`
	ID          string         `json:"id"`
	Step        int64          `json:"step"`
	Level       string         `json:"level"`
	Query       string         `json:"query"`
	Reward      float64        `json:"reward"`
	Success     bool           `json:"success"`
	FormatError bool           `json:"format_error,omitempty"`
	Turns       int            `json:"turns"`
	Reasons     []string       `json:"reasons,omitempty"` // of the checks that failed, in words
}

// Options are the choices of who asks for a report.
type Options struct {
	Made      time.Time // when the report is made; zero = no date, for files that must not change
	Version   string    // of this program
	Seed      uint64    // of the bootstrap
	Level     float64   // of the intervals; 0 = 0.95
	Resamples int       // of the bootstrap; 0 = 2,000
	MaxPoints int       // of a drawn series; 0 = 400
}

// An Input is all that a report is computed from.
type Input struct {
	Options   Options
	Study     ablation.StudyRecord
	Runs      []RunData // by id
	Published []published.Value
}

// RunData is one run's share of the input.
type RunData struct {
	Run         ablation.Run
	Attempts    []ablation.Attempt
	Hello       Hello
	Evaluations []ablation.EvalResult
	Series      map[string][]ablation.Point // the metrics drawn as curves
	Thinned     bool                        // a series holds fewer points than are stored
	Last        map[string]ablation.Point   // the last value of every metric
	Alerts      []ablation.Alert
	Artifacts   []ablation.Artifact
	Examples    []Example
}

// curveMetrics are drawn as learning curves where a study has them, in this
// order.
var curveMetrics = []string{
	"eval/success", "eval/success_greedy", "reward/mean", "train/success", "policy/entropy", "group/zero_variance",
	"rollout/format_error", "rollout/tool_calls",
}

// Load gathers the input for a report.
func Load(ctx context.Context, src Source, id ablation.StudyID, o Options) (Input, error) {
	st, err := src.Study(ctx, id)
	if err != nil {
		return Input{}, fmt.Errorf("load study %d: %w", id, err)
	}
	runs, err := src.Runs(ctx, id)
	if err != nil {
		return Input{}, fmt.Errorf("load runs of study %d: %w", id, err)
	}
	in := Input{Options: o, Study: st, Published: published.For(st.Study.Template)}
	ids := make([]ablation.RunID, len(runs))
	at := make(map[ablation.RunID]int, len(runs))
	for i, r := range runs {
		ids[i], at[r.ID] = r.ID, i
		in.Runs = append(in.Runs, RunData{Run: r, Series: map[string][]ablation.Point{}})
	}
	if len(ids) == 0 {
		return in, nil
	}
	if err := loadNumbers(ctx, src, &in, ids, at); err != nil {
		return Input{}, err
	}
	for i := range in.Runs {
		if err := loadRun(ctx, src, id, &in.Runs[i]); err != nil {
			return Input{}, err
		}
	}
	return in, nil
}

// loadNumbers reads evaluations and series of all runs at once.
func loadNumbers(ctx context.Context, src Source, in *Input, ids []ablation.RunID, at map[ablation.RunID]int) error {
	evals, err := src.Evaluations(ctx, ids)
	if err != nil {
		return fmt.Errorf("load evaluations: %w", err)
	}
	for _, e := range evals {
		if i, ok := at[e.Run]; ok {
			in.Runs[i].Evaluations = append(in.Runs[i].Evaluations, e)
		}
	}
	names, err := src.Metrics(ctx, ids)
	if err != nil {
		return fmt.Errorf("load metric names: %w", err)
	}
	last, err := src.Last(ctx, ids, names)
	if err != nil {
		return fmt.Errorf("load last values: %w", err)
	}
	for id, values := range last {
		if i, ok := at[id]; ok {
			in.Runs[i].Last = values
		}
	}
	drawn := []string{in.Study.Study.Metric}
	for _, m := range curveMetrics {
		if !slices.Contains(drawn, m) {
			drawn = append(drawn, m)
		}
	}
	drawn = slices.DeleteFunc(drawn, func(m string) bool { return !slices.Contains(names, m) })
	limit := in.Options.MaxPoints
	if limit == 0 {
		limit = 400
	}
	series, err := src.Series(ctx, ids, drawn, limit)
	if err != nil {
		return fmt.Errorf("load series: %w", err)
	}
	for _, s := range series {
		if i, ok := at[s.Run]; ok {
			in.Runs[i].Series[s.Metric] = s.Points
			in.Runs[i].Thinned = in.Runs[i].Thinned || s.Thinned
		}
	}
	return nil
}

func loadRun(ctx context.Context, src Source, study ablation.StudyID, r *RunData) error {
	var err error
	if r.Attempts, err = src.Attempts(ctx, r.Run.ID); err != nil {
		return fmt.Errorf("load attempts of run %d: %w", r.Run.ID, err)
	}
	if r.Hello, err = src.Hello(ctx, r.Run.ID); err != nil && !isNotFound(err) {
		return fmt.Errorf("load trainer of run %d: %w", r.Run.ID, err)
	}
	if r.Alerts, err = src.Alerts(ctx, study, r.Run.ID, 20); err != nil {
		return fmt.Errorf("load alerts of run %d: %w", r.Run.ID, err)
	}
	if r.Artifacts, err = src.Artifacts(ctx, r.Run.ID); err != nil {
		return fmt.Errorf("load artifacts of run %d: %w", r.Run.ID, err)
	}
	if r.Examples, err = src.Examples(ctx, r.Run.ID); err != nil && !isNotFound(err) {
		return fmt.Errorf("load examples of run %d: %w", r.Run.ID, err)
	}
	return nil
}
