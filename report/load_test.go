package report

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"alidade/ablation"
)

// memory is a Source that answers from an Input.
type memory struct {
	in   Input
	fail string // name of the method that fails
}

func (m memory) run(id ablation.RunID) RunData {
	for _, r := range m.in.Runs {
		if r.Run.ID == id {
			return r
		}
	}
	return RunData{}
}

func (m memory) err(method string) error {
	if m.fail == method {
		return errors.New("disk on fire")
	}
	return nil
}

func (m memory) Study(context.Context, ablation.StudyID) (ablation.StudyRecord, error) {
	return m.in.Study, m.err("Study")
}

func (m memory) Runs(context.Context, ablation.StudyID) ([]ablation.Run, error) {
	var out []ablation.Run
	for _, r := range m.in.Runs {
		out = append(out, r.Run)
	}
	return out, m.err("Runs")
}

func (m memory) Attempts(_ context.Context, id ablation.RunID) ([]ablation.Attempt, error) {
	return m.run(id).Attempts, m.err("Attempts")
}

func (m memory) Hello(_ context.Context, id ablation.RunID) (Hello, error) {
	if m.fail == "no hello" {
		return Hello{}, fmt.Errorf("run %d: %w", id, ablation.ErrNotFound)
	}
	return m.run(id).Hello, m.err("Hello")
}

func (m memory) Metrics(context.Context, []ablation.RunID) ([]string, error) {
	names := map[string]bool{}
	for _, r := range m.in.Runs {
		for k := range r.Last {
			names[k] = true
		}
	}
	return sortedKeys(names), m.err("Metrics")
}

func (m memory) Series(_ context.Context, ids []ablation.RunID, metrics []string, _ int) ([]ablation.Series, error) {
	var out []ablation.Series
	for _, id := range ids {
		for _, name := range metrics {
			if pts := m.run(id).Series[name]; len(pts) > 0 {
				out = append(out, ablation.Series{Run: id, Metric: name, Points: pts, Total: len(pts)})
			}
		}
	}
	return out, m.err("Series")
}

func (m memory) Last(_ context.Context, ids []ablation.RunID, _ []string) (map[ablation.RunID]map[string]ablation.Point, error) {
	out := map[ablation.RunID]map[string]ablation.Point{}
	for _, id := range ids {
		out[id] = m.run(id).Last
	}
	return out, m.err("Last")
}

func (m memory) Evaluations(_ context.Context, ids []ablation.RunID) ([]ablation.EvalResult, error) {
	var out []ablation.EvalResult
	for _, id := range ids {
		out = append(out, m.run(id).Evaluations...)
	}
	return out, m.err("Evaluations")
}

func (m memory) Alerts(_ context.Context, _ ablation.StudyID, id ablation.RunID, _ int) ([]ablation.Alert, error) {
	return m.run(id).Alerts, m.err("Alerts")
}

func (m memory) Artifacts(_ context.Context, id ablation.RunID) ([]ablation.Artifact, error) {
	return m.run(id).Artifacts, m.err("Artifacts")
}

func (m memory) Examples(_ context.Context, id ablation.RunID) ([]Example, error) {
	return m.run(id).Examples, m.err("Examples")
}

func TestLoadGivesBackTheInput(t *testing.T) {
	in := scaleStudy().input()
	first, err := Load(t.Context(), memory{in: in}, 13, in.Options)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Load(t.Context(), memory{in: first}, 13, in.Options)
	if err != nil {
		t.Fatal(err)
	}
	if mustJSON(t, mustBuild(t, first)) != mustJSON(t, mustBuild(t, again)) {
		t.Error("the report of an input that was loaded twice differs")
	}
	if a, b := mustBuild(t, first), mustBuild(t, in); a.Headline != b.Headline || len(a.Results) != len(b.Results) {
		t.Errorf("the loaded input gives another finding: %s, want %s", a.Headline, b.Headline)
	}
}

func mustJSON(t *testing.T, r Report) string {
	t.Helper()
	raw, err := JSON(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestLoadSaysWhatFailed(t *testing.T) {
	in := rewardStudy().input()
	for _, method := range []string{"Study", "Runs", "Attempts", "Hello", "Metrics", "Series", "Last", "Evaluations", "Alerts", "Artifacts", "Examples"} {
		if _, err := Load(t.Context(), memory{in: in, fail: method}, 12, in.Options); err == nil || !strings.Contains(err.Error(), "load ") || !strings.Contains(err.Error(), "disk on fire") {
			t.Errorf("%s fails: error = %v, want what was loaded and the cause", method, err)
		}
	}
	if _, err := Load(t.Context(), memory{in: in, fail: "no hello"}, 12, in.Options); err != nil {
		t.Errorf("a run without hello: %v, want no error", err)
	}
}

// A script's study: no evaluations by query, a metric of its own that is
// better when lower.
func TestStudyOfAScript(t *testing.T) {
	m := rewardStudy()
	m.study.Metric, m.study.MinDifference, m.study.Template = "val/loss", 0, ""
	m.study.Seeds = []uint64{1, 2, 3}
	m.change = func(i int, r *RunData) {
		r.Evaluations, r.Examples = nil, nil
		r.Series = map[string][]ablation.Point{}
		r.Last = map[string]ablation.Point{}
		for step := int64(0); step <= 10; step++ {
			p := ablation.Point{Step: step, Value: 3 - 0.1*float64(step) - 0.2*float64(r.Run.Arm.Index) + 0.01*float64(r.Run.Seed)}
			r.Series["val/loss"] = append(r.Series["val/loss"], p)
			r.Last["val/loss"] = p
		}
	}
	r := mustBuild(t, m.input())
	if !strings.HasPrefix(r.Headline, "CURRICULUM has the best val/loss, 1.42") || !strings.Contains(r.Headline, "is clear of every other arm") {
		t.Errorf("headline = %s", r.Headline)
	}
	if len(r.Results) != 4 || r.Results[0].Queries != 0 || r.Results[0].Seed == nil {
		t.Errorf("results = %+v", r.Results)
	}
	if _, err := HTML(t.Context(), r); err != nil {
		t.Error(err)
	}
}

// Runs judged by other policies only, as a solver's are.
func TestStudyWithoutAPolicy(t *testing.T) {
	m := rewardStudy()
	m.change = func(i int, r *RunData) {
		r.Evaluations = r.Evaluations[5:]
		r.Series = map[string][]ablation.Point{}
		r.Last = map[string]ablation.Point{"eval/success": {Step: 100, Value: 0.9}}
	}
	r := mustBuild(t, m.input())
	if !strings.Contains(r.Headline, "90.0") {
		t.Errorf("headline = %s", r.Headline)
	}
	if _, err := Markdown(r); err != nil {
		t.Error(err)
	}
}
