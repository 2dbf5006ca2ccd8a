package runner

import (
	"context"
	"fmt"

	"alidade/ablation"
	"alidade/store"
	"alidade/trainer"
)

// censored is the word and the code of runs that halving has ended.
const censored = "censored"

// rungs are those that a life still has to climb.
type rungs struct {
	rule ablation.Halving
	left []int64 // steps
}

// loadRungs reads the study's rule. Rungs that lie behind the stored progress
// were judged at their time.
func (l *life) loadRungs(ctx context.Context) {
	rec, err := l.r.store.Study(ctx, l.studyID)
	if err != nil || rec.Study.Halving == nil {
		return
	}
	l.rungs.rule = *rec.Study.Halving
	last, err := l.r.store.Last(ctx, []ablation.RunID{l.run.ID}, []string{l.rungs.rule.Metric})
	if err != nil {
		l.r.log.Error("read how far the run came", "run", l.run.ID, "err", err)
		return
	}
	at := int64(0)
	if p, ok := last[l.run.ID][l.rungs.rule.Metric]; ok {
		at = p.Step
	}
	for _, step := range l.rungs.rule.Rungs {
		if step > at {
			l.rungs.left = append(l.rungs.left, step)
		}
	}
}

// climb judges the run at each rung that it has reached: it goes on, or is
// ended and counts as censored.
func (l *life) climb(ctx context.Context, events []trainer.Event) {
	for _, e := range events {
		if len(l.rungs.left) == 0 || l.run.State == ablation.Stopping {
			return
		}
		if e.Kind != trainer.KindPoints || e.Points.Step < l.rungs.left[0] {
			continue
		}
		own, ok := e.Points.Values[l.rungs.rule.Metric]
		if !ok {
			continue
		}
		rung := l.rungs.left[0]
		for len(l.rungs.left) > 0 && l.rungs.left[0] <= e.Points.Step {
			rung, l.rungs.left = l.rungs.left[0], l.rungs.left[1:]
		}
		values, err := l.r.atRung(ctx, l.studyID, l.rungs.rule.Metric, rung)
		if err != nil { // without the others nothing can be said: it goes on
			l.r.log.Error("read the values at a rung", "run", l.run.ID, "rung", rung, "err", err)
			continue
		}
		if l.rungs.rule.Keeps(float64(own), values) {
			continue
		}
		text := fmt.Sprintf("%s at rung %d: %s is %.4g, not among the best 1 in %d of %d runs that came this far",
			censored, rung, l.rungs.rule.Metric, float64(own), l.rungs.rule.Reduction, len(values))
		l.alertAt(ctx, trainer.Alert{Level: "info", Code: censored, Text: text, Step: e.Points.Step})
		if err := l.r.stop(ctx, l.run.ID, "", text); err != nil {
			l.r.log.Error("end a weak run", "run", l.run.ID, "err", err)
		}
	}
}

// atRung returns the metric of each run of a study at its first step from the
// rung on.
func (r *Runner) atRung(ctx context.Context, study ablation.StudyID, metric string, rung int64) ([]float64, error) {
	runs, err := r.store.Runs(ctx, store.RunFilter{Study: study})
	if err != nil {
		return nil, err
	}
	ids := make([]ablation.RunID, len(runs))
	for i, run := range runs {
		ids[i] = run.ID
	}
	all, err := r.store.Series(ctx, store.SeriesQuery{Runs: ids, Metrics: []string{metric}})
	if err != nil {
		return nil, err
	}
	var values []float64
	for _, s := range all {
		for _, p := range s.Points {
			if p.Step >= rung {
				values = append(values, p.Value)
				break
			}
		}
	}
	return values, nil
}
