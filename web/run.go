package web

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"alidade/ablation"
	"alidade/store"
	"alidade/templates"
	"alidade/trainer"
)

const pageTail = 32 << 10 // bytes of a log in the page

// runSide are the small charts beside a run's primary one.
var runSide = []string{"reward/mean", "policy/entropy", "rollout/tokens"}

func (s *site) routesRun(r chi.Router) {
	r.Get("/runs/{run:[0-9]+}", s.page(s.run))
	r.Post("/runs/{run:[0-9]+}/{act:stop|resume|pause|unpause|up|down|first|last|dump}", s.page(s.postRun))
}

// runData is what the page of a run is made of.
type runData struct {
	run         ablation.Run
	study       ablation.StudyRecord
	attempts    []ablation.Attempt
	phases      []store.Phase
	metrics     []string
	last        map[string]ablation.Point
	alerts      []ablation.Alert
	artifacts   []ablation.Artifact
	checkpoints []store.Checkpoint
	counts      store.Counts
	hello       trainer.Hello
	log         string
	stream      string
	attempt     int
	queue       waits
}

func (s *site) run(w http.ResponseWriter, r *http.Request) error {
	d, err := s.readRun(r)
	if err != nil {
		return err
	}
	v := runView(d, s.now())
	if v.Ratios, err = s.ratios(r.Context(), d.run); err != nil {
		return err
	}
	p := s.view(r, "studies", "run", v.Title)
	p.Crumbs = []templates.Crumb{
		{Label: "Studies", Href: "/studies"},
		{Label: studyNumber(d.run.Study), Href: fmt.Sprintf("/studies/%d", d.run.Study)},
		{Label: fmt.Sprintf("Run %d", d.run.ID)},
	}
	p.Keys = []templates.Key{{Keys: []string{"f"}, Label: "full screen"}, {Keys: []string{"esc"}, Label: "back"}}
	return s.render(w, r, http.StatusOK, templates.Run(p, v))
}

func (s *site) readRun(r *http.Request) (runData, error) {
	ctx := r.Context()
	var d runData
	id, err := runID(r)
	if err != nil {
		return d, err
	}
	if d.run, err = s.Store.Run(ctx, id); err != nil {
		return d, fmt.Errorf("read run %d: %w", id, err)
	}
	if d.study, err = s.Store.Study(ctx, d.run.Study); err != nil {
		return d, fmt.Errorf("read study %d: %w", d.run.Study, err)
	}
	if d.attempts, err = s.Store.Attempts(ctx, id); err != nil {
		return d, fmt.Errorf("read attempts: %w", err)
	}
	if d.phases, err = s.Store.Phases(ctx, id); err != nil {
		return d, fmt.Errorf("read phases: %w", err)
	}
	if d.metrics, err = s.Store.Metrics(ctx, []ablation.RunID{id}); err != nil {
		return d, fmt.Errorf("read metric names: %w", err)
	}
	last, err := s.Store.Last(ctx, []ablation.RunID{id}, []string{d.study.Study.Metric, "train/success", "reward/mean"})
	if err != nil {
		return d, fmt.Errorf("read last values: %w", err)
	}
	d.last = last[id]
	if d.alerts, err = s.Store.Alerts(ctx, 0, id, 20); err != nil {
		return d, fmt.Errorf("read alerts: %w", err)
	}
	if d.artifacts, err = s.Store.Artifacts(ctx, id); err != nil {
		return d, fmt.Errorf("read artifacts: %w", err)
	}
	if d.checkpoints, err = s.Store.Checkpoints(ctx, id); err != nil {
		return d, fmt.Errorf("read checkpoints: %w", err)
	}
	if d.counts, err = s.Store.Counts(ctx, id); err != nil {
		return d, fmt.Errorf("count what is stored: %w", err)
	}
	if d.hello, err = s.Store.Hello(ctx, id); err != nil {
		d.hello = trainer.Hello{} // none yet
	}
	if d.run.State == ablation.Queued || d.run.State == ablation.Starting {
		if d.queue, err = s.readQueue(ctx); err != nil {
			return d, err
		}
	}
	return d, s.readRunLog(r, &d)
}

// readRunLog takes the tail of the log that the address asks for.
func (s *site) readRunLog(r *http.Request, d *runData) error {
	d.stream = r.URL.Query().Get("log")
	if d.stream == "" {
		d.stream = "stdout"
	}
	if !isStream(d.stream) {
		return invalidParam("log", d.stream, "stdout, stderr, dump")
	}
	attempt, err := intParam(r, "attempt", int64(d.run.Attempt), 0, math.MaxInt32)
	if err != nil {
		return err
	}
	d.attempt = int(attempt)
	if s.Runs == nil || d.attempt == 0 {
		return nil
	}
	body, err := s.Runs.Log(r.Context(), d.run.ID, d.attempt, d.stream, pageTail)
	if err != nil {
		s.log.Warn("log not readable", "run", d.run.ID, "attempt", d.attempt, "err", err)
		d.log = "The log could not be read: " + problemOf(err).Text
		return nil
	}
	d.log = tidyLog(string(body))
	return nil
}

// tidyLog shows a log as a terminal would: what a carriage return overwrote is
// gone, colours and other escapes are dropped, control characters are marked.
func tidyLog(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	var b strings.Builder
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			b.WriteByte('\n')
		}
		line = strings.TrimSuffix(line, "\r")
		if at := strings.LastIndexByte(line, '\r'); at >= 0 {
			line = line[at+1:]
		}
		b.WriteString(stripEscapes(line))
	}
	return b.String()
}

// stripEscapes drops ANSI sequences and marks what could mislead a reader:
// control characters, bidirectional overrides and zero-width marks.
func stripEscapes(line string) string {
	if strings.IndexFunc(line, hidden) < 0 {
		return line
	}
	var b strings.Builder
	for i := 0; i < len(line); {
		if n := escapeLength(line[i:]); n > 0 {
			i += n
			continue
		}
		c, size := decodeRune(line[i:])
		if hidden(c) {
			fmt.Fprintf(&b, "⟨%04X⟩", c)
		} else {
			b.WriteString(line[i : i+size])
		}
		i += size
	}
	return b.String()
}

func runView(d runData, now time.Time) templates.RunView {
	r := d.run
	marks := marksOf(d.study.Study, []ablation.Arm{r.Arm})
	m := marks[r.Arm.Index]
	v := templates.RunView{
		Title: fmt.Sprintf("%s, seed %d", r.Arm.Label, r.Seed), Lede: question(d.study.Study), Mark: &m,
		Actions: runActions(r), Facts: runFacts(d, now), Charts: runCharts(d, m),
		LiveNote: "this run alone; click a point to open the rollouts of its step",
	}
	v.Phases, v.PhasesNote = phaseViews(d, now)
	if w, ok := d.queue.of(r.ID); ok && w.Reason != "" {
		v.Alerts = append(v.Alerts, waitAlert(r, w))
	} else if why := d.queue.status.Handed[r.ID]; why != "" && r.State == ablation.Starting {
		v.Alerts = append(v.Alerts, waitAlert(r, Waiting{Reason: why}))
	}
	if r.State == ablation.Failed || r.State == ablation.Lost {
		v.Alerts = append(v.Alerts, runAlert(r, now))
	}
	for _, a := range d.alerts {
		shown := alertView(a, now)
		if hangs(a) && r.State.Live() {
			shown.Actions = append(shown.Actions, templates.ActionView{Label: "See where it hangs", Small: true, Post: fmt.Sprintf("/runs/%d/dump", r.ID), Toast: "What its processes do is in the log, under dump"})
		}
		v.Alerts = append(v.Alerts, shown)
	}
	v.Alerts = v.Alerts[:min(len(v.Alerts), 5)]
	v.Recipe, v.RecipeNote = recipeGroups(d.study.Study, r.Arm)
	v.Attempts = attemptRows(d, now)
	v.Log = logView(d)
	v.Artifacts = artifactRows(d, now)
	v.Trajs, v.TrajsNote = trajectoryLinks(d)
	return v
}

func runActions(r ablation.Run) []templates.ActionView {
	at := func(act string) string { return fmt.Sprintf("/runs/%d/%s", r.ID, act) }
	var out []templates.ActionView
	switch {
	case r.State == ablation.Queued || r.State == ablation.Starting || r.State == ablation.Running || r.State == ablation.Lost:
		if r.State != ablation.Lost && r.Hold == "" {
			out = append(out, templates.ActionView{Label: "Pause", Icon: "pause", Post: at("pause"), Toast: fmt.Sprintf("Run %d is kept back; if it runs, it writes a checkpoint first", r.ID), Undo: at("unpause")})
		}
		out = append(out, templates.ActionView{Label: "Stop run", Kind: "danger", Post: at("stop"), Toast: fmt.Sprintf("Stopping run %d: it writes a checkpoint first", r.ID), Undo: at("resume")})
	case r.State == ablation.Failed || r.State == ablation.Stopped:
		out = append(out, templates.ActionView{Label: "Resume from the last checkpoint", Post: at("resume"), Toast: fmt.Sprintf("Run %d is queued again", r.ID), Undo: at("stop")})
	}
	return append(out, templates.ActionView{Label: "Trajectories", Href: fmt.Sprintf("/trajectories?run=%d", r.ID)})
}

func runFacts(d runData, now time.Time) []templates.Fact {
	r := d.run
	rule := runRule(r, 320, d.alerts)
	rule.ID = "run"
	facts := []templates.Fact{
		{Label: "status", Status: []templates.Status{statusOf(r, d.queue.place(r.ID))}, ID: "status"},
		{Label: "step", Value: digits(r.Step), Unit: "of " + digits(totalSteps(r)), ID: "step"},
		{Label: "progress", Rule: &rule},
	}
	if w, ok := d.queue.of(r.ID); ok {
		start := templates.Fact{Label: "starts, about", Value: startText(w, now)}
		if w.Takes > 0 {
			start.Unit = "takes " + hourMinutes(w.Takes)
		}
		facts = append(facts, start, templates.Fact{Label: "place in the queue", Value: digits(int64(d.queue.place(r.ID))), Unit: "of " + digits(int64(len(d.queue.list))), Links: []templates.Link{{Label: "Queue", Href: "/runs"}}})
	}
	if left, ok := runLeft(r, now); ok {
		clock, day := clockTime(now.Add(left), now)
		unit := "in " + hourMinutes(left)
		if day != "" {
			unit = day + ", " + unit
		}
		facts = append(facts, templates.Fact{Label: "finishes", Value: clock, Unit: unit, ID: "left"})
	} else if r.State.Terminal() {
		facts = append(facts, templates.Fact{Label: "took", Value: hourMinutes(runTime(r, now))})
	}
	metric := d.study.Study.Metric
	for _, name := range []string{metric, "train/success"} {
		if p, ok := d.last[name]; ok {
			info := infoOf(name)
			facts = append(facts, templates.Fact{Label: lowerFirst(info.Label), Value: info.format(p.Value), Unit: strings.TrimSpace(info.unitText() + fmt.Sprintf(" at step %d", p.Step))})
		}
	}
	device := templates.Fact{Label: "device", Value: deviceText(r.Device)}
	if d.hello.Info["kernel"] != "" {
		device.Unit = d.hello.Info["kernel"]
	}
	facts = append(facts, device)
	if bad := d.counts.Malformed + d.counts.Overflow; bad > 0 {
		facts = append(facts, templates.Fact{Label: "lines not read", Status: []templates.Status{{Kind: "warn", Word: digits(bad)}}})
	}
	return facts
}

// phaseViews puts the phases of the current attempt on a line with how long
// each took.
func phaseViews(d runData, now time.Time) ([]templates.PhaseView, string) {
	var of []store.Phase
	for _, p := range d.phases {
		if p.Attempt == d.run.Attempt {
			of = append(of, p)
		}
	}
	var views []templates.PhaseView
	for i, p := range of {
		v := templates.PhaseView{Name: strings.ToUpper(phaseWord(p.Name)[:1]) + phaseWord(p.Name)[1:]}
		end, done := now, false
		switch {
		case i+1 < len(of):
			end, done = of[i+1].At, true
		case d.run.State.Terminal() && !d.run.EndedAt.IsZero():
			end, done = d.run.EndedAt, true
		}
		v.Status = templates.Status{Kind: "ok", Word: hourMinutes(end.Sub(p.At))}
		if !done {
			v.Status = templates.Status{Kind: "run", Word: hourMinutes(end.Sub(p.At))}
		} else if i+1 == len(of) && d.run.State != ablation.Succeeded {
			kind, _ := stateWord(d.run)
			v.Status.Kind = kind
		}
		if p.Total > 0 {
			v.Detail = plural(int(p.Total), "step", "steps")
		}
		views = append(views, v)
	}
	note := ""
	if d.run.Attempt > 1 {
		note = fmt.Sprintf("of attempt %d", d.run.Attempt)
	}
	return views, note
}

func runCharts(d runData, m templates.MarkView) templates.ChartConfig {
	primary := d.study.Study.Metric
	if len(d.metrics) > 0 && !slices.Contains(d.metrics, primary) {
		primary = d.metrics[0]
		if slices.Contains(d.metrics, "train/success") {
			primary = "train/success"
		}
	}
	c := templates.ChartConfig{
		Study: int64(d.run.Study), Single: true, Primary: primary, Metrics: d.metrics, Info: chartInfos(append(slices.Clone(d.metrics), primary)),
		Active: !d.run.State.Terminal(), Points: 2000, Total: totalSteps(d.run),
		Runs: []templates.ChartRun{chartRun(d.run)},
		Arms: []templates.ChartArm{{Index: d.run.Arm.Index, Label: d.run.Arm.Label, Short: d.run.Arm.Label, Color: m.Color, Marker: m.Marker, Dash: 1}},
	}
	c.Side = headlineMetrics(d.metrics, primary, append([]string{"train/success"}, runSide...)...)
	c.Side = c.Side[:min(3, len(c.Side))]
	if len(d.metrics) == 0 {
		c.Side = runSide
		for _, n := range c.Side {
			c.Info[n] = chartInfo(n)
		}
	}
	return c
}

// recipeGroups lists the recipe by section, what differs from the study's base
// marked and its section open.
func recipeGroups(st ablation.Study, arm ablation.Arm) ([]templates.RecipeGroup, string) {
	var groups []templates.RecipeGroup
	base, own := st.Base, arm.Recipe
	differs := 0
	for _, f := range ablation.Fields() {
		have, err := ablation.Get(&own, f.Key)
		if err != nil {
			continue
		}
		if len(groups) == 0 || groups[len(groups)-1].Name != f.Group {
			groups = append(groups, templates.RecipeGroup{Name: f.Group})
		}
		g := &groups[len(groups)-1]
		row := templates.RecipeRow{Key: f.Key, Label: f.Label, Value: recipeValue(have), Unit: f.Unit}
		if was, err := ablation.Get(&base, f.Key); err == nil && fmt.Sprint(was) != fmt.Sprint(have) {
			row.Base = recipeValue(was)
			g.Open = true
			differs++
		}
		g.Rows = append(g.Rows, row)
	}
	note := "as the study's base"
	if differs > 0 {
		note = plural(differs, "field differs", "fields differ") + " from the study's base"
	}
	return groups, note + "; " + arm.Hash
}

func recipeValue(v any) string {
	text := fmt.Sprint(v)
	switch v := v.(type) {
	case bool:
		text = "no"
		if v {
			text = "yes"
		}
	case string:
		text = v
	}
	if text == "" || text == "[]" || text == "map[]" {
		return "–"
	}
	return visible(text)
}

func attemptRows(d runData, now time.Time) []templates.AttemptRow {
	var rows []templates.AttemptRow
	for _, a := range d.attempts {
		state := a.State
		if !state.Terminal() && a.Number == d.run.Attempt {
			state = d.run.State // an attempt's own record knows its start and its end
		}
		kind, word := stateWord(ablation.Run{State: state})
		row := templates.AttemptRow{
			Number: fmt.Sprint(a.Number), Status: templates.Status{Kind: kind, Word: word}, Cause: visible(a.Cause), Device: visible(orDash(a.Device)), From: digits(a.FirstStep),
			Started: ago(a.StartedAt, now), Exit: exitText(a), Lasted: "–", LogHref: fmt.Sprintf("/runs/%d?attempt=%d&log=%s#log", d.run.ID, a.Number, d.stream),
		}
		end := a.EndedAt
		if end.IsZero() && !a.State.Terminal() {
			end = now
		}
		if !end.IsZero() && !a.StartedAt.IsZero() {
			row.Lasted = hourMinutes(max(0, end.Sub(a.StartedAt)))
		}
		rows = append(rows, row)
	}
	slices.Reverse(rows)
	return rows
}

func exitText(a ablation.Attempt) string {
	switch {
	case a.Signal != "":
		return a.Signal
	case a.ExitCode != nil:
		return fmt.Sprint(*a.ExitCode)
	}
	return "–"
}

func logView(d runData) templates.LogView {
	v := templates.LogView{Text: d.log, Note: "carriage returns collapsed; the file itself is untouched"}
	if d.attempt > 0 {
		v.Address = fmt.Sprintf("/api/v1/runs/%d/log?stream=%s&attempt=%d&tail=%d", d.run.ID, d.stream, d.attempt, pageTail)
		v.Live = d.run.State.Live() && d.attempt == d.run.Attempt
		if len(d.attempts) > 1 {
			v.Note = fmt.Sprintf("attempt %d; ", d.attempt) + v.Note
		}
	}
	streams := []string{"stdout", "stderr"}
	if d.stream == "dump" || slices.ContainsFunc(d.alerts, hangs) {
		streams = append(streams, "dump")
	}
	for _, stream := range streams {
		v.Choice.Options = append(v.Choice.Options, templates.ChoiceOption{
			Label: stream, Href: fmt.Sprintf("/runs/%d?attempt=%d&log=%s#log", d.run.ID, d.attempt, stream), On: stream == d.stream,
		})
	}
	v.Choice.Label = "Which stream"
	return v
}

// isStream tells whether a run's log has such a stream: what its trainer
// writes, or what its processes were found doing.
func isStream(name string) bool { return name == "stdout" || name == "stderr" || name == "dump" }

func artifactRows(d runData, now time.Time) []templates.ArtifactRow {
	var rows []templates.ArtifactRow
	for _, c := range d.checkpoints {
		kind := "checkpoint"
		if c.Best {
			kind = "checkpoint, best"
		}
		hash := "–"
		if len(c.SHA256) >= 12 {
			hash = c.SHA256[:12]
		}
		rows = append(rows, templates.ArtifactRow{Kind: kind, Step: digits(c.Step), Hash: hash, Bytes: sizeOrDash(c.Bytes), Path: c.Path, When: ago(c.At, now)})
	}
	for _, a := range d.artifacts {
		if a.Kind == "checkpoint" {
			continue
		}
		rows = append(rows, templates.ArtifactRow{Kind: a.Kind, Step: digits(a.Step), Hash: a.Hash[:min(12, len(a.Hash))], Bytes: sizeOrDash(a.Bytes), Path: a.Path, When: ago(a.CreatedAt, now)})
	}
	return rows
}

func sizeOrDash(n int64) string {
	if n <= 0 {
		return "–"
	}
	return bytesText(n)
}

func trajectoryLinks(d runData) ([]templates.Link, string) {
	if d.counts.Trajectories == 0 {
		return nil, ""
	}
	at := func(query string) string { return fmt.Sprintf("/trajectories?run=%d%s", d.run.ID, query) }
	return []templates.Link{
		{Label: "all of this run", Href: at("")},
		{Label: "of training", Href: at("&phase=rl")},
		{Label: "of evaluation", Href: at("&phase=eval")},
		{Label: "that failed", Href: at("&outcome=failed")},
		{Label: "with a format error", Href: at("&format=1")},
	}, plural(int(d.counts.Trajectories), "rollout", "rollouts") + " stored"
}
