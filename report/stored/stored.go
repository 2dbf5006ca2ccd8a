// Package stored lets a report be made from a store: it answers what
// [report.Source] asks with what the data folder holds.
package stored

import (
	"context"
	"fmt"

	"alidade/ablation"
	"alidade/report"
	"alidade/store"
)

// Source reads from a store.
type Source struct{ *store.Store }

var _ report.Source = Source{}

// Runs returns the study's runs by id.
func (s Source) Runs(ctx context.Context, study ablation.StudyID) ([]ablation.Run, error) {
	return s.Store.Runs(ctx, store.RunFilter{Study: study})
}

// Hello returns what the run's trainer said of itself.
func (s Source) Hello(ctx context.Context, run ablation.RunID) (report.Hello, error) {
	h, err := s.Store.Hello(ctx, run)
	return report.Hello{Trainer: h.Trainer, Version: h.Version, Info: h.Info}, err
}

// Series returns the runs' metrics, thinned to maxPoints each.
func (s Source) Series(ctx context.Context, runs []ablation.RunID, metrics []string, maxPoints int) ([]ablation.Series, error) {
	return s.Store.Series(ctx, store.SeriesQuery{Runs: runs, Metrics: metrics, MaxPoints: maxPoints})
}

// Examples returns the best, the middle and the worst trajectory of the
// policy's last evaluation, by reward; fewer when there are fewer.
func (s Source) Examples(ctx context.Context, run ablation.RunID) ([]report.Example, error) {
	base := store.TrajectoryFilter{Runs: []ablation.RunID{run}, Phase: "eval", Policy: "policy", Mode: "sampled"}
	base.Sort, base.Limit = "-step", 1
	last, _, err := s.Trajectories(ctx, base)
	if err != nil || len(last) == 0 {
		return nil, err
	}
	base.StepFrom, base.StepTo, base.Sort = &last[0].Step, &last[0].Step, "-reward"
	_, total, err := s.Trajectories(ctx, base)
	if err != nil {
		return nil, err
	}
	var out []report.Example
	for _, e := range []struct {
		kind string
		at   int
	}{{"best", 0}, {"typical", total / 2}, {"worst", total - 1}} {
		if len(out) > 0 && e.at == 0 {
			break // one trajectory only
		}
		base.Offset = e.at
		heads, _, err := s.Trajectories(ctx, base)
		if err != nil {
			return nil, err
		}
		if len(heads) == 0 {
			continue
		}
		x, err := s.example(ctx, e.kind, heads[0])
		if err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	return out, nil
}

func (s Source) example(ctx context.Context, kind string, h store.TrajectoryHead) (report.Example, error) {
	t, _, err := s.Trajectory(ctx, h.Run, h.ID)
	if err != nil {
		return report.Example{}, fmt.Errorf("read trajectory %s: %w", h.ID, err)
	}
	e := report.Example{
		Kind: kind, Run: h.Run, ID: h.ID, Step: h.Step, Level: h.Level, Query: h.QueryText,
		Reward: h.Reward, Success: h.Success, FormatError: h.FormatError, Turns: h.Turns,
	}
	if t.FormatError != "" {
		e.Reasons = append(e.Reasons, t.FormatError)
	}
	for _, v := range t.Verdicts {
		if v.Outcome == "fail" || v.Outcome == "raises" {
			e.Reasons = append(e.Reasons, v.Reason)
		}
	}
	return e, nil
}
