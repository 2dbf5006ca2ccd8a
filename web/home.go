package web

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/go-chi/chi/v5"

	"alidade/ablation"
	"alidade/store"
	"alidade/templates"
)

const (
	homeRuns    = 12
	homeStudies = 6
	homeAlerts  = 5
	sparkPoints = 30
)

func (s *site) routesHome(r chi.Router) {
	r.Get("/", s.page(s.home))
}

// home shows runs, alerts, devices and studies.
func (s *site) home(w http.ResponseWriter, r *http.Request) error {
	which := r.URL.Query().Get("runs")
	if which == "" {
		which = "active"
	}
	if !slices.Contains([]string{"active", "queued", "finished"}, which) {
		return invalidParam("runs", which, "active, queued, finished")
	}
	d, err := s.readHome(r, which)
	if err != nil {
		return err
	}
	p := s.view(r, "home", "home", "Home")
	p.Keys = []templates.Key{{Keys: []string{"n"}, Label: "new study"}, {Keys: []string{"j", "k"}, Label: "move"}, {Keys: []string{"↵"}, Label: "open"}}
	return s.render(w, r, http.StatusOK, templates.Home(p, homeView(d, s.now())))
}

// homeData is what the home page is made of.
type homeData struct {
	which   string
	studies []ablation.StudyRecord
	runs    []ablation.Run // of studies that are not archived, by id
	shown   []ablation.Run // the ones in the table
	rest    int            // further ones of that kind
	series  map[ablation.RunID][]ablation.Point
	last    map[ablation.RunID]map[string]ablation.Point
	alerts  []ablation.Alert
	devices []Device
	queue   waits
}

func (s *site) readHome(r *http.Request, which string) (homeData, error) {
	ctx := r.Context()
	d := homeData{which: which, devices: s.devices(), series: map[ablation.RunID][]ablation.Point{}}
	all, err := s.Store.Studies(ctx)
	if err != nil {
		return d, fmt.Errorf("read studies: %w", err)
	}
	open := map[ablation.StudyID]bool{}
	for _, st := range all {
		if !st.Archived {
			d.studies = append(d.studies, st)
			open[st.ID] = true
		}
	}
	runs, err := s.Store.Runs(ctx, store.RunFilter{})
	if err != nil {
		return d, fmt.Errorf("read runs: %w", err)
	}
	d.runs = slices.DeleteFunc(runs, func(run ablation.Run) bool { return !open[run.Study] })
	if d.queue, err = s.readQueue(ctx); err != nil {
		return d, err
	}
	d.pick()
	ids, metrics := runIDs(d.shown), primaryMetrics(d.studies)
	if len(ids) > 0 {
		series, err := s.Store.Series(ctx, store.SeriesQuery{Runs: ids, Metrics: metrics, MaxPoints: sparkPoints})
		if err != nil {
			return d, fmt.Errorf("read series: %w", err)
		}
		primary := d.primaryOf()
		for _, sr := range series {
			if sr.Metric == primary[sr.Run] {
				d.series[sr.Run] = sr.Points
			}
		}
	}
	if d.last, err = s.Store.Last(ctx, runIDs(d.runs), metrics); err != nil {
		return d, fmt.Errorf("read last values: %w", err)
	}
	if d.alerts, err = s.Store.Alerts(ctx, 0, 0, 50); err != nil {
		return d, fmt.Errorf("read alerts: %w", err)
	}
	return d, nil
}

// pick chooses the runs of the table: live ones first, then what waits.
func (d *homeData) pick() {
	var of, waiting []*ablation.Run // runs are large: they are not copied about
	for i := range d.runs {
		r := &d.runs[i]
		if r.State == ablation.Queued {
			waiting = append(waiting, r)
		}
		switch {
		case d.which == "active" && (r.State.Live() || r.State == ablation.Lost),
			d.which == "finished" && r.State.Terminal():
			of = append(of, r)
		}
	}
	if d.which == "finished" {
		slices.SortStableFunc(of, func(a, b *ablation.Run) int { return b.EndedAt.Compare(a.EndedAt) })
	}
	slices.SortStableFunc(waiting, func(a, b *ablation.Run) int { return d.queue.place(a.ID) - d.queue.place(b.ID) })
	switch {
	case d.which == "queued":
		of = waiting
	case d.which == "active" && len(of) < homeRuns: // show what comes next as well
		of = append(of, waiting[:min(len(waiting), homeRuns-len(of))]...)
	}
	d.rest = max(0, len(of)-homeRuns)
	for _, r := range of[:min(len(of), homeRuns)] {
		d.shown = append(d.shown, *r)
	}
}

func primaryMetrics(studies []ablation.StudyRecord) []string {
	var names []string
	for _, st := range studies {
		if st.Study.Metric != "" && !slices.Contains(names, st.Study.Metric) {
			names = append(names, st.Study.Metric)
		}
	}
	if len(names) == 0 {
		names = []string{"eval/success"}
	}
	return names
}

// primaryOf is the primary metric of each run's study.
func (d *homeData) primaryOf() map[ablation.RunID]string {
	byStudy := map[ablation.StudyID]string{}
	for _, st := range d.studies {
		byStudy[st.ID] = st.Study.Metric
	}
	out := map[ablation.RunID]string{}
	for _, r := range d.runs {
		out[r.ID] = byStudy[r.Study]
	}
	return out
}

func homeView(d homeData, now time.Time) templates.HomeView {
	p := progressOf(d.runs, now)
	alerts := homeAlertViews(d, now)
	v := templates.HomeView{
		Title:      homeTitle(p, len(alerts)),
		Lede:       homeLede(p, d.queue.status, now),
		Actions:    []templates.ActionView{{Label: "New study", Href: "/studies/new", Kind: "primary", Icon: "plus", Key: "n"}},
		RunsNote:   "long marks are evaluations; ▾ above a rule is an alert",
		AlertsNote: "newest first",
		AllStudies: templates.Link{Label: fmt.Sprintf("All %d", len(d.studies)), Href: "/studies"},
		Live:       templates.LiveConfig{Metrics: primaryMetrics(d.studies)},
	}
	ended := p.Finished
	v.Which = templates.ChoiceView{Label: "Which runs", Options: []templates.ChoiceOption{
		{Label: fmt.Sprintf("active %d", p.Live+p.ByState[ablation.Lost]), Href: "/", On: d.which == "active"},
		{Label: fmt.Sprintf("queued %d", p.Waiting), Href: "/?runs=queued", On: d.which == "queued"},
		{Label: fmt.Sprintf("finished %d", ended), Href: "/?runs=finished", On: d.which == "finished"},
	}}
	v.Banner = queueAlert(d.queue.status, p.Waiting)
	v.Alerts = alerts[:min(len(alerts), homeAlerts)]
	if len(alerts) > 0 {
		v.AlertsNote = fmt.Sprintf("%d, newest first", len(alerts))
	}
	v.Metric = homeMetricHead(d.studies)
	v.Runs = homeRows(d, now)
	if d.rest > 0 {
		v.More = &templates.Link{Label: plural(d.rest, "more run", "more runs") + ": the queue and all that runs", Href: "/runs"}
	}
	if len(v.Runs) == 0 {
		v.NoRuns = noRuns(d)
	}
	v.Devices, v.DevicesNote, v.DevicesSum = deviceStrip(d.devices)
	v.Studies = studyRows(d.studies[:min(len(d.studies), homeStudies)], d.runs, d.last, now)
	if len(v.Studies) == 0 {
		v.NoStudies = &templates.EmptyView{
			Title: "No study yet", Text: "A study is a question, a base recipe and the factors that are varied. One of 4 rewards × 2 seeds at quick size takes about 5 minutes on 2 cores.",
			Actions: []templates.ActionView{{Label: "Start from a template", Href: "/studies/new"}},
		}
	}
	return v
}

func homeTitle(p progress, alerts int) string {
	if p.Live+p.Waiting == 0 {
		return "Nothing is running"
	}
	t := plural(p.Live, "run", "runs") + " going"
	if p.Waiting > 0 {
		t += fmt.Sprintf(", %s waiting", digits(int64(p.Waiting)))
	}
	if alerts > 0 {
		t += ", " + plural(alerts, "alert", "alerts")
	}
	return t
}

func homeLede(p progress, q QueueStatus, now time.Time) string {
	switch {
	case q.Paused && p.Waiting > 0:
		return "Nothing is started while the queue is paused; what runs goes on."
	case p.Live+p.Waiting == 0 && p.Runs == 0:
		return "Start a study to train policies and compare them."
	case p.Live+p.Waiting == 0:
		return fmt.Sprintf("%s of %s finished; %s succeeded.", digits(int64(p.Finished)), plural(p.Runs, "run", "runs"), digits(int64(p.ByState[ablation.Succeeded])))
	case p.LeftS < 0:
		return "When it will be done is known after the first steps."
	}
	clock, words := finishText(p, now)
	return fmt.Sprintf("Everything queued now is done at %s, %s.", clock, words)
}

func noRuns(d homeData) *templates.EmptyView {
	v := &templates.EmptyView{Title: "No run is going", Text: "Runs appear here as soon as a study is launched, with their curve and the time left."}
	switch d.which {
	case "queued":
		v.Title, v.Text = "Nothing waits", "Runs wait here while all devices are leased."
	case "finished":
		v.Title, v.Text = "No run has ended yet", "Finished, failed and stopped runs appear here, newest first."
	default:
		v.Actions = []templates.ActionView{{Label: "New study", Href: "/studies/new"}}
	}
	return v
}

func homeMetricHead(studies []ablation.StudyRecord) string {
	names := primaryMetrics(studies)
	if len(names) != 1 {
		return "primary metric"
	}
	info := infoOf(names[0])
	if u := info.unitText(); u != "" {
		return lowerFirst(info.Label) + ", " + u
	}
	return lowerFirst(info.Label)
}

func homeRows(d homeData, now time.Time) []templates.RunRow {
	names := map[ablation.StudyID]string{}
	for _, st := range d.studies {
		names[st.ID] = question(st.Study)
	}
	primary := d.primaryOf()
	var rows []templates.RunRow
	for _, r := range d.shown {
		info := infoOf(primary[r.ID])
		row := templates.RunRow{
			ID: fmt.Sprint(r.ID), Href: fmt.Sprintf("/runs/%d", r.ID), Study: names[r.Study], Arm: fmt.Sprintf("%s, seed %d", r.Arm.Label, r.Seed),
			Status: statusOf(r, d.queue.place(r.ID)), Rule: runRule(r, 168, d.alerts), RuleSmall: runRule(r, 178, d.alerts),
			Step: stepText(r), Latest: "–", Metric: info.Label, Device: deviceText(r.Device), Left: leftText(r, now),
		}
		if w, ok := d.queue.of(r.ID); ok {
			row.Why = visible(w.Reason)
			if !w.Start.IsZero() {
				row.Left = "from " + startText(w, now)
			}
		}
		if p, ok := d.last[r.ID][primary[r.ID]]; ok {
			row.Latest = info.format(p.Value)
		}
		row.Spark = templates.NewSpark(80, 22, pointValues(d.series[r.ID]), info.Zero)
		row.Spark.Label = fmt.Sprintf("%s of run %d: latest %s", info.Label, r.ID, row.Latest)
		row.Spark.ID = fmt.Sprint(r.ID)
		rows = append(rows, row)
	}
	return rows
}

func pointValues(points []ablation.Point) []float64 {
	values := make([]float64, len(points))
	for i, p := range points {
		values[i] = p.Value
	}
	return values
}

func orDash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}

func lowerFirst(s string) string {
	if len(s) > 1 && s[0] >= 'A' && s[0] <= 'Z' && s[1] >= 'a' && s[1] <= 'z' {
		return string(s[0]+'a'-'A') + s[1:]
	}
	return s
}

// homeAlertViews puts failed and lost runs and the trainers' own alerts in one
// list, newest first.
func homeAlertViews(d homeData, now time.Time) []templates.AlertView {
	type dated struct {
		at time.Time
		v  templates.AlertView
	}
	var list []dated
	known := map[ablation.RunID]bool{}
	for _, r := range d.runs {
		known[r.ID] = true
		if r.State == ablation.Failed || r.State == ablation.Lost {
			at := r.EndedAt
			if at.IsZero() {
				at = r.HeardAt
			}
			list = append(list, dated{at, runAlert(r, now)})
		}
	}
	for _, a := range d.alerts {
		if known[a.Run] && a.Level != "info" {
			list = append(list, dated{a.At, alertView(a, now)})
		}
	}
	slices.SortStableFunc(list, func(a, b dated) int { return b.at.Compare(a.at) })
	views := make([]templates.AlertView, len(list))
	for i, e := range list {
		views[i] = e.v
	}
	return views
}

// deviceStrip shows the devices of this machine.
func deviceStrip(devices []Device) (cells []templates.DeviceView, note, sum string) {
	if len(devices) == 0 {
		return nil, "", ""
	}
	free, leased, power := 0, 0, 0.0
	for _, d := range devices {
		switch {
		case d.Free:
			free++
		case d.Run > 0:
			leased++
		}
		if d.PowerW == d.PowerW {
			power += d.PowerW
		}
		c := templates.DeviceView{ID: visible(d.ID), Name: visible(d.Name), Simulated: d.Simulated, Note: visible(d.Note), Holder: visible(d.Holder)}
		if d.Simulated && c.Note == "simulated" {
			c.Note = "" // the tag says it
		}
		switch {
		case d.Quarantined:
			c.Holder = "put away"
		case d.Run > 0:
			c.Holder, c.HolderHref = fmt.Sprintf("run %d", d.Run), fmt.Sprintf("/runs/%d", d.Run)
		case d.Free && d.Holder == "":
			c.Holder = "free"
		}
		if d.Util == d.Util {
			c.Bar = templates.BarView{Share: min(max(d.Util, 0), 1), Known: true, Label: fmt.Sprintf("busy %.0f %%", d.Util*100)}
			c.Facts = append(c.Facts, templates.Fact{Label: "busy", Value: fmt.Sprintf("%.0f", d.Util*100), Unit: "%"})
		} else {
			c.Bar.Label = "load unknown"
			c.Facts = append(c.Facts, templates.Fact{Label: "busy", Value: "–"})
		}
		switch {
		case d.MemoryMiB > 0 && d.Kind == "cpu" && d.UsedMiB == 0:
			c.Facts = append(c.Facts, templates.Fact{Label: "memory", Value: fmt.Sprintf("%.0f", float64(d.MemoryMiB)/1024), Unit: "GiB shared"})
		case d.Simulated:
			c.Facts = append(c.Facts, templates.Fact{Label: "memory", Value: fmt.Sprintf("%.0f", float64(d.MemoryMiB)/1024), Unit: "GiB"})
		case d.MemoryMiB > 0:
			c.Facts = append(c.Facts, templates.Fact{Label: "memory", Value: fmt.Sprintf("%.1f", float64(d.UsedMiB)/1024), Unit: fmt.Sprintf("of %.0f GiB", float64(d.MemoryMiB)/1024)})
		}
		if d.TempC > 0 {
			f := templates.Fact{Label: "temperature", Value: fmt.Sprintf("%.0f", d.TempC), Unit: "°C"}
			if d.TempC >= 84 {
				f.Status = []templates.Status{{Kind: "warn", Word: fmt.Sprintf("%.0f °C", d.TempC)}}
			}
			c.Facts = append(c.Facts, f)
		}
		if d.PowerW > 0 {
			c.Facts = append(c.Facts, templates.Fact{Label: "power", Value: fmt.Sprintf("%.0f", d.PowerW), Unit: "W"})
		}
		cells = append(cells, c)
	}
	sum = fmt.Sprintf("%d leased, %d free", leased, free)
	if others := len(devices) - leased - free; others > 0 {
		sum += fmt.Sprintf(", %d not to be had", others)
	}
	if power > 0 {
		sum += fmt.Sprintf("; %.1f kW", power/1000)
	}
	return cells, plural(len(devices), "device", "devices") + " on this machine", sum
}
