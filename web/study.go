package web

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"alidade/ablation"
	"alidade/templates"
)

const (
	firstRows   = 60  // runs of a study that are in the page itself
	chartPoints = 400 // a run's series in a chart, at most
)

// side are the small charts beside the primary one, in order of interest.
var side = []string{"reward/mean", "train/success", "policy/entropy", "rollout/tokens", "rollout/tool_calls"}

// tableMetrics are the columns of the arm table after the primary metric.
var tableMetrics = []string{"eval/success_greedy", "eval/delivery", "eval/cs_macro", "eval/hard_macro", "reward/mean", "rollout/tokens", "rollout/tool_calls"}

// runMetrics are the columns of the run table after the primary metric.
var runMetrics = []string{"train/success", "reward/mean", "policy/entropy", "rollout/tokens"}

// studyData is what the page of a study is made of.
type studyData struct {
	rec     ablation.StudyRecord
	runs    []ablation.Run
	metrics []string
	last    map[ablation.RunID]map[string]ablation.Point
	alerts  []ablation.Alert
	primary armStats
	others  []namedStats
	queue   waits
}

type namedStats struct {
	metric string
	stats  armStats
}

func (s *site) study(w http.ResponseWriter, r *http.Request) error {
	d, err := s.readStudyData(r)
	if err != nil {
		return err
	}
	v := studyView(d, s.now())
	p := s.view(r, "studies", "study", v.Title)
	p.Crumbs = []templates.Crumb{{Label: "Studies", Href: "/studies"}, {Label: studyNumber(d.rec.ID)}}
	p.Keys = []templates.Key{
		{Keys: []string{"j", "k"}, Label: "move"}, {Keys: []string{"↵"}, Label: "open"},
		{Keys: []string{"f"}, Label: "full screen"}, {Keys: []string{"r"}, Label: "report"},
	}
	return s.render(w, r, http.StatusOK, templates.Study(p, v))
}

func (s *site) readStudyData(r *http.Request) (studyData, error) {
	rec, runs, err := s.loadStudy(r)
	if err != nil {
		return studyData{}, err
	}
	ctx := r.Context()
	d := studyData{rec: rec, runs: runs}
	ids := runIDs(runs)
	if d.metrics, err = s.Store.Metrics(ctx, ids); err != nil {
		return d, fmt.Errorf("read metric names: %w", err)
	}
	want := append([]string{rec.Study.Metric}, tableMetrics...)
	want = append(want, runMetrics...)
	if d.last, err = s.Store.Last(ctx, ids, want); err != nil {
		return d, fmt.Errorf("read last values: %w", err)
	}
	if d.alerts, err = s.Store.Alerts(ctx, rec.ID, 0, 50); err != nil {
		return d, fmt.Errorf("read alerts: %w", err)
	}
	if err := s.estimateArms(ctx, &d); err != nil {
		return d, err
	}
	d.queue, err = s.readQueue(ctx)
	return d, err
}

func (s *site) estimateArms(ctx context.Context, d *studyData) (err error) {
	metric := d.rec.Study.Metric
	if metric == "eval/success" {
		if d.primary, err = s.successStats(ctx, d.rec.ID, d.runs, d.last); err != nil {
			return err
		}
	}
	if len(d.primary.byArm) == 0 {
		d.primary = seedStats(d.runs, metric, d.last, infoOf(metric).Lower)
	}
	for _, m := range headlineMetrics(d.metrics, metric, tableMetrics...) {
		if len(d.others) == 6 {
			break
		}
		d.others = append(d.others, namedStats{m, seedStats(d.runs, m, d.last, infoOf(m).Lower)})
	}
	return nil
}

func studyView(d studyData, now time.Time) templates.StudyView {
	st := d.rec.Study
	arms := armsOf(d.runs)
	marks := marksOf(st, arms)
	p := progressOf(d.runs, now)
	v := templates.StudyView{
		Title: question(st), Lede: studyLede(st, len(arms), len(d.runs)),
		LiveNote: liveNote(d.runs, st),
		Facts:    studyFacts(d, p, now),
		Charts:   studyCharts(d, arms, marks, p),
	}
	v.Actions, v.More = studyActions(d.rec, d.runs, p)
	v.Banner = append(queueAlert(d.queue.status, p.Waiting), studyPauseAlert(d.rec, d.alerts, p)...)
	if p.Waiting == 0 {
		v.Banner = nil
	}
	v.Alerts = studyAlerts(d, now)
	v.Legend = legendOf(st, arms, marks)
	v.Arms = armTable(d, arms, marks)
	v.RunTable, v.RunsColumns = runTable(d, now)
	v.Runs = studyRunRows(d, marks, now)
	v.RunsNote = plural(len(d.runs), "run", "runs") + waitingNote(d, now)
	if len(d.runs) == 0 {
		v.NoRuns = &templates.EmptyView{Title: "No runs", Text: "This study has no runs stored."}
	}
	return v
}

func studyLede(st ablation.Study, arms, runs int) string {
	info := infoOf(st.Metric)
	t := designText(st, arms, runs) + ". Primary metric: " + lowerFirst(info.Label)
	if st.Metric == "eval/success" {
		t += fmt.Sprintf(" on %s held-out queries, %s checks", digits(int64(st.Base.Evaluation.Queries)), st.Base.Reward.Profile)
	}
	t += ". " + recipeLine(st.Base) + "."
	return t
}

// recipeLine says in a few words what trains on what.
func recipeLine(r ablation.Recipe) string {
	parts := []string{r.Model.Size + " policy", r.Algorithm.Kind, r.Environment.World + " world"}
	switch r.Trainer.Kind {
	case "cpu":
		parts = append(parts, "embedded trainer")
	case "command":
		parts = append(parts, "trainer: "+strings.Join(r.Trainer.Command[:min(1, len(r.Trainer.Command))], " "))
	default:
		parts = append(parts, r.Trainer.Kind)
	}
	return strings.ToUpper(parts[0][:1]) + parts[0][1:] + ", " + strings.Join(parts[1:], ", ")
}

func liveNote(runs []ablation.Run, st ablation.Study) string {
	low, high, n := int64(math.MaxInt64), int64(0), 0
	for _, r := range runs {
		if r.Step > 0 {
			low, high = min(low, r.Step), max(high, r.Step)
			n++
		}
	}
	note := fmt.Sprintf("mean over seeds; the band is the lowest and highest of %s", plural(seedsOf(runs), "seed", "seeds"))
	if n > 0 && low != high {
		note += fmt.Sprintf("; %d of %d runs stand at steps %d–%d", n, len(runs), low, high)
	}
	return note
}

func studyFacts(d studyData, p progress, now time.Time) []templates.Fact {
	status := studyStatus(d.rec, p)
	if status.Kind == "run" {
		status.Word = "running"
	}
	live := p.Live+p.Waiting > 0
	stands := []templates.Status{status}
	if d.rec.Archived {
		stands = append(stands, templates.Status{Kind: "info", Word: "archived"})
	}
	facts := []templates.Fact{
		{Label: "status", Status: stands},
		{Label: "runs", Value: digits(int64(p.Finished)), Unit: fmt.Sprintf("of %s ended", digits(int64(p.Runs)))},
	}
	rule := studyRule(p, 320, p.Live > 0)
	rule.ID = "study"
	facts = append(facts, templates.Fact{Label: fmt.Sprintf("progress, %s steps", digits(p.Total)), Rule: &rule})
	if live {
		clock, words := finishText(p, now)
		if p.Waiting > 0 && (d.rec.Paused || d.queue.status.Paused) {
			clock, words = "–", "known when its runs may start"
		}
		facts = append(facts, templates.Fact{Label: "finishes", Value: clock, Unit: words})
	} else if end := lastEnd(d.runs); !end.IsZero() {
		clock, day := clockTime(end, now)
		facts = append(facts, templates.Fact{Label: "ended", Value: clock, Unit: day})
	}
	hours := "CPU-hours"
	if !slices.Contains([]string{"cpu", "solver", "endpoint"}, d.rec.Study.Base.Trainer.Kind) {
		hours = "device-hours"
	}
	f := templates.Fact{Label: hours, Value: hoursText(p.Hours)}
	if live && p.Steps > 0 && p.Total > p.Steps {
		f.Unit = "of about " + hoursText(p.Hours*float64(p.Total)/float64(p.Steps))
	}
	facts = append(facts, f)
	if look := needsALook(d, p); len(look) > 0 {
		facts = append(facts, templates.Fact{Label: "needs a look", Status: look})
	}
	return facts
}

func lastEnd(runs []ablation.Run) time.Time {
	var t time.Time
	for _, r := range runs {
		if r.EndedAt.After(t) {
			t = r.EndedAt
		}
	}
	return t
}

func needsALook(d studyData, p progress) []templates.Status {
	var out []templates.Status
	alerts := 0
	for _, a := range d.alerts {
		if a.Level != "info" {
			alerts++
		}
	}
	if alerts > 0 {
		out = append(out, templates.Status{Kind: "warn", Word: plural(alerts, "alert", "alerts")})
	}
	if n := p.ByState[ablation.Failed]; n > 0 {
		out = append(out, templates.Status{Kind: "bad", Word: fmt.Sprintf("%d failed", n)})
	}
	if n := p.ByState[ablation.Lost]; n > 0 {
		out = append(out, templates.Status{Kind: "lost", Word: fmt.Sprintf("%d lost", n)})
	}
	return out
}

// studyAlerts shows the newest few; the rest stand with their runs.
func studyAlerts(d studyData, now time.Time) []templates.AlertView {
	var views []templates.AlertView
	for _, r := range d.runs {
		if r.State == ablation.Failed || r.State == ablation.Lost {
			views = append(views, runAlert(r, now))
		}
	}
	for _, a := range d.alerts {
		if a.Level != "info" {
			views = append(views, alertView(a, now))
		}
	}
	return views[:min(len(views), 3)]
}

// studyActions are the buttons of a study: what can be done now, undone by one
// click afterwards.
func studyActions(rec ablation.StudyRecord, runs []ablation.Run, p progress) (buttons, more []templates.ActionView) {
	at := func(act string) string { return fmt.Sprintf("/studies/%d/%s", rec.ID, act) }
	if p.Live+p.Waiting > 0 {
		if rec.Paused {
			buttons = append(buttons, templates.ActionView{Label: "Resume", Post: at("resume"), Toast: "Resumed: waiting runs start as devices get free", Undo: at("pause")})
		} else if p.Waiting > 0 {
			buttons = append(buttons, templates.ActionView{Label: "Pause", Icon: "pause", Post: at("pause"), Toast: fmt.Sprintf("Paused: %s, running ones go on", plural(p.Waiting, "run waits", "runs wait")), Undo: at("resume")})
		}
		buttons = append(buttons, templates.ActionView{Label: fmt.Sprintf("Stop %s", plural(p.Live+p.Waiting, "run", "runs")), Kind: "danger", Post: at("stop"), Toast: "Stopping: each run writes a checkpoint first", Undo: at("unstop")})
	} else if n := p.ByState[ablation.Failed] + p.ByState[ablation.Stopped] + p.ByState[ablation.Lost]; n > 0 {
		buttons = append(buttons, templates.ActionView{Label: fmt.Sprintf("Resume %s", plural(n, "run", "runs")), Post: at("complete"), Toast: "Queued again: each goes on from its last checkpoint", Undo: at("uncomplete")})
	}
	report := templates.ActionView{Label: "Report", Href: fmt.Sprintf("/studies/%d/report", rec.ID), Key: "r"}
	if p.ByState[ablation.Succeeded] > 0 {
		report.Kind = "primary"
	}
	buttons = append(buttons, report)
	more = []templates.ActionView{
		{Label: "Export study.yaml", Icon: "save", Href: fmt.Sprintf("/api/v1/studies/%d/study.yaml", rec.ID)},
		{Label: "Clone as a new study", Icon: "plus", Href: fmt.Sprintf("/studies/new?from=%d", rec.ID)},
		{Label: "Trajectories", Icon: "right", Href: fmt.Sprintf("/trajectories?study=%d", rec.ID)},
	}
	more = append(more, designActions(rec, runs, p)...)
	if rec.Archived {
		more = append(more, templates.ActionView{Label: "Bring back from the archive", Post: at("unarchive"), Toast: "Back among the open studies", Undo: at("archive")})
	} else {
		more = append(more, templates.ActionView{Label: "Archive", Icon: "cross", Post: at("archive"), Toast: "Archived: all data is kept", Undo: at("unarchive")})
	}
	return buttons, more
}

// studyCharts is the script's share: who is who, and which metrics exist.
func studyCharts(d studyData, arms []ablation.Arm, marks map[int]templates.MarkView, p progress) templates.ChartConfig {
	st := d.rec.Study
	c := templates.ChartConfig{
		Study: int64(d.rec.ID), Primary: st.Metric, Metrics: d.metrics, Info: chartInfos(append(slices.Clone(d.metrics), st.Metric)),
		Active: p.Live+p.Waiting > 0, Points: min(chartPoints, max(60, 60_000/max(1, len(d.runs)))),
	}
	c.Side = headlineMetrics(d.metrics, st.Metric, side...)
	if len(d.metrics) == 0 {
		c.Side = side[:3]
		for _, m := range c.Side {
			c.Info[m] = chartInfo(m)
		}
	}
	c.Side = c.Side[:min(3, len(c.Side))]
	facets, place, short := facetsOf(st, arms)
	c.Facets = facets
	for _, a := range arms {
		m := marks[a.Index]
		c.Arms = append(c.Arms, templates.ChartArm{Index: a.Index, Label: a.Label, Color: m.Color, Marker: m.Marker, Dash: m.Dash, Facet: place(a), Short: short(a)})
	}
	for _, r := range d.runs {
		c.Runs = append(c.Runs, chartRun(r))
		c.Total = max(c.Total, totalSteps(r))
	}
	return c
}

func chartRun(r ablation.Run) templates.ChartRun {
	return templates.ChartRun{ID: int64(r.ID), Arm: r.Arm.Index, Seed: fmt.Sprint(r.Seed), State: string(r.State), Started: unixMilli(r.StartedAt), Devices: max(1, r.Arm.Recipe.Trainer.Devices), Rollouts: max(1, r.Arm.Recipe.Algorithm.GroupSize*r.Arm.Recipe.Algorithm.PromptsPerStep)}
}

func chartInfo(name string) templates.MetricInfo {
	m := infoOf(name)
	return templates.MetricInfo{Label: m.Label, Unit: m.Unit, Percent: m.Percent, Zero: m.Zero, Line: m.Line, Digits: m.Digits}
}

func chartInfos(names []string) map[string]templates.MetricInfo {
	out := make(map[string]templates.MetricInfo, len(names))
	for _, n := range names {
		out[n] = chartInfo(n)
	}
	return out
}

// waitingNote says for what the first waiting run of a study waits.
func waitingNote(d studyData, now time.Time) string {
	n := 0
	var first Waiting
	for _, w := range d.queue.list {
		if w.Study == d.rec.ID {
			if n == 0 {
				first = w
			}
			n++
		}
	}
	if n == 0 {
		return ""
	}
	text := fmt.Sprintf("; %s, the first at place %s of the queue", plural(n, "waits", "wait"), digits(int64(d.queue.place(first.Run))))
	if first.Reason != "" {
		text += ": " + visible(first.Reason)
	}
	if !first.Start.IsZero() {
		text += "; it starts at about " + startText(first, now)
	}
	return text
}

// seedsOf counts the seeds of runs: some may have been added to the design.
func seedsOf(runs []ablation.Run) int {
	seen := map[uint64]bool{}
	for _, r := range runs {
		seen[r.Seed] = true
	}
	return len(seen)
}
