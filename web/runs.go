package web

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"

	"alidade/ablation"
	"alidade/store"
	"alidade/templates"
)

const (
	queuePage = 50 // queued runs on one page
	endedRuns = 25 // the newest of those that have ended
)

func (s *site) routesRuns(r chi.Router) {
	r.Get("/runs", s.page(s.runs))
	r.Post("/queue/{act:pause|resume}", s.page(s.postQueue))
	r.Get("/api/v1/queue", s.page(s.apiQueue))
	r.Post("/api/v1/queue/{act:pause|resume}", s.page(s.apiQueueAct))
	for _, tail := range []string{"", "/{place:-?[0-9]{1,19}}"} {
		r.Post("/runs/{run:[0-9]+}/priority/{value:-?[0-9]{1,9}}"+tail, s.page(s.postPriority))
		r.Post("/api/v1/runs/{run}/priority/{value:-?[0-9]{1,9}}"+tail, s.page(s.apiPriority))
	}
}

// runs shows what runs, what waits and why, and what has ended.
func (s *site) runs(w http.ResponseWriter, r *http.Request) error {
	page, err := intParam(r, "page", 1, 1, 1<<20)
	if err != nil {
		return err
	}
	d, err := s.readRuns(r.Context(), int(page))
	if err != nil {
		return err
	}
	p := s.view(r, "runs", "runs", "Runs")
	p.Keys = []templates.Key{{Keys: []string{"j", "k"}, Label: "move"}, {Keys: []string{"↵"}, Label: "open"}, {Keys: []string{"K", "J"}, Label: "one place up, down"}, {Keys: []string{"[", "]"}, Label: "page of the queue"}}
	return s.render(w, r, http.StatusOK, templates.Runs(p, runsView(d, s.Queue != nil, s.now())))
}

// runsData is what the page of all runs is made of.
type runsData struct {
	queue   waits
	page    int // of the queue, from 1
	waiting map[ablation.RunID]ablation.Run
	live    []ablation.Run
	ended   []ablation.Run // newest first, the first of them
	ends    int            // how many have ended
	studies map[ablation.StudyID]ablation.StudyRecord
	alerts  []ablation.Alert
}

func (s *site) readRuns(ctx context.Context, page int) (runsData, error) {
	d := runsData{page: page, studies: map[ablation.StudyID]ablation.StudyRecord{}, waiting: map[ablation.RunID]ablation.Run{}}
	var err error
	if d.queue, err = s.readQueue(ctx); err != nil {
		return d, err
	}
	studies, err := s.Store.Studies(ctx)
	if err != nil {
		return d, fmt.Errorf("read studies: %w", err)
	}
	for _, st := range studies {
		d.studies[st.ID] = st
	}
	d.live, err = s.Store.Runs(ctx, store.RunFilter{States: []ablation.State{ablation.Starting, ablation.Running, ablation.Stopping, ablation.Lost}})
	if err != nil {
		return d, fmt.Errorf("read running runs: %w", err)
	}
	shown := d.shown()
	ids := make([]ablation.RunID, len(shown))
	for i, w := range shown {
		ids[i] = w.Run
	}
	if len(ids) > 0 {
		runs, err := s.Store.Runs(ctx, store.RunFilter{IDs: ids})
		if err != nil {
			return d, fmt.Errorf("read queued runs: %w", err)
		}
		for _, r := range runs {
			d.waiting[r.ID] = r
		}
	}
	if d.ended, d.ends, err = s.Store.Ended(ctx, endedRuns); err != nil {
		return d, fmt.Errorf("read ended runs: %w", err)
	}
	if d.alerts, err = s.Store.Alerts(ctx, 0, 0, 50); err != nil {
		return d, fmt.Errorf("read alerts: %w", err)
	}
	return d, nil
}

// shown is the part of the queue that the page lists.
func (d *runsData) shown() []Waiting {
	first := min((d.page-1)*queuePage, len(d.queue.list))
	return d.queue.list[first:min(first+queuePage, len(d.queue.list))]
}

func runsView(d runsData, acts bool, now time.Time) templates.RunsView {
	n := len(d.queue.list)
	v := templates.RunsView{
		Title: "Nothing runs", Lede: "Larger priority starts first, then the run that waits longer, unless you move it. A start is an estimate from earlier runs of the same arm or study.",
		Banner:      append(queueAlert(d.queue.status, n), pausedStudies(d, acts)...),
		RunningNote: plural(len(d.live), "run", "runs"), QueueNote: plural(n, "run", "runs") + ", next first",
		EndedNote: "newest first",
	}
	if n == 0 {
		v.QueueNote = ""
	}
	switch {
	case len(d.live) > 0 && n > 0:
		v.Title = fmt.Sprintf("%s going, %s waiting", plural(len(d.live), "run", "runs"), digits(int64(n)))
	case len(d.live) > 0:
		v.Title = plural(len(d.live), "run", "runs") + " going"
	case n > 0:
		v.Title = plural(n, "run waits", "runs wait")
	}
	if acts && !d.queue.status.Paused {
		v.Actions = append(v.Actions, templates.ActionView{Label: "Pause the queue", Icon: "pause", Post: "/queue/pause", Toast: "The queue is paused: running runs go on", Undo: "/queue/resume"})
	}
	for _, r := range d.live {
		v.Running = append(v.Running, liveRow(r, d, now))
	}
	shown := d.shown()
	for i, w := range shown {
		if r, ok := d.waiting[w.Run]; ok {
			v.Queue = append(v.Queue, queueRow((d.page-1)*queuePage+i+1, w, r, d.studies[w.Study], acts, now))
		}
	}
	at := func(page int) string { return "/runs?page=" + strconv.Itoa(page) }
	if d.page > 1 {
		v.Prev = at(d.page - 1)
	}
	if d.page*queuePage < n {
		v.Next = at(d.page + 1)
	}
	if n > queuePage && len(shown) > 0 {
		first := (d.page - 1) * queuePage
		v.QueueNote = fmt.Sprintf("%s–%s of %s, next first", digits(int64(first+1)), digits(int64(first+len(shown))), digits(int64(n)))
	}
	for _, r := range d.ended {
		v.Ended = append(v.Ended, endedRow(r, d.studies[r.Study], now))
	}
	if d.ends > len(d.ended) {
		v.EndedNote = fmt.Sprintf("the newest %d of %s", len(d.ended), digits(int64(d.ends)))
	}
	return v
}

// mostPaused is how many paused studies the page names.
const mostPaused = 3

// pausedStudies are the studies whose waiting runs are kept back, whoever
// paused them, each with the way to let it go on.
func pausedStudies(d runsData, acts bool) []templates.AlertView {
	waiting := map[ablation.StudyID]int{}
	var order []ablation.StudyID
	for i := range d.queue.list {
		id := d.queue.list[i].Study
		if d.studies[id].Paused {
			if waiting[id]++; waiting[id] == 1 {
				order = append(order, id)
			}
		}
	}
	var views []templates.AlertView
	for _, id := range order[:min(len(order), mostPaused)] {
		at := func(act string) string { return fmt.Sprintf("/studies/%d/%s", id, act) }
		a := templates.AlertView{Level: "warn", Title: fmt.Sprintf("Study %s is paused: %s", studyNumber(id), plural(waiting[id], "run waits", "runs wait")), Text: question(d.studies[id].Study),
			Links: []templates.Link{{Label: "Open the study", Href: fmt.Sprintf("/studies/%d", id)}}}
		if acts {
			a.Actions = []templates.ActionView{{Label: "Resume the study", Name: fmt.Sprintf("Resume study %d", id), Post: at("resume"), Toast: "Resumed: waiting runs start as devices get free", Undo: at("pause"), Small: true}}
		}
		views = append(views, a)
	}
	if more := len(order) - len(views); more > 0 {
		views[len(views)-1].Text += fmt.Sprintf(" %s more are paused too.", plural(more, "study", "studies"))
	}
	return views
}

// runName is a run's study, arm and seed in words.
func runName(r ablation.Run, st ablation.StudyRecord) (study templates.Link, arm string) {
	return templates.Link{Label: question(st.Study), Href: fmt.Sprintf("/studies/%d", r.Study)}, fmt.Sprintf("%s, seed %d", r.Arm.Label, r.Seed)
}

func liveRow(r ablation.Run, d runsData, now time.Time) templates.LiveRunRow {
	study, arm := runName(r, d.studies[r.Study])
	row := templates.LiveRunRow{
		ID: fmt.Sprint(r.ID), Href: fmt.Sprintf("/runs/%d", r.ID), Study: study, Arm: arm, Status: statusOf(r, 0),
		Rule: runRule(r, 168, d.alerts), RuleSmall: runRule(r, 178, d.alerts), Step: stepText(r), Phase: orDash(visible(r.Phase)), Device: deviceText(r.Device), Left: leftText(r, now),
	}
	if why := d.queue.status.Handed[r.ID]; why != "" && r.State == ablation.Starting {
		row.Waits = visible(why)
	}
	at := func(act string) string { return fmt.Sprintf("/runs/%d/%s", r.ID, act) }
	if r.State == ablation.Starting || r.State == ablation.Running {
		row.Actions = append(row.Actions,
			templates.ActionView{Label: "Pause", Icon: "pause", Small: true, Kind: "quiet", Post: at("pause"), Toast: fmt.Sprintf("Run %d writes a checkpoint and waits", r.ID), Undo: at("unpause"), Name: fmt.Sprintf("Pause run %d", r.ID)},
			templates.ActionView{Label: "Stop", Small: true, Kind: "quiet", Post: at("stop"), Toast: fmt.Sprintf("Stopping run %d: it writes a checkpoint first", r.ID), Undo: at("resume"), Name: fmt.Sprintf("Stop run %d", r.ID)})
	}
	if r.State == ablation.Lost {
		row.Actions = append(row.Actions, templates.ActionView{Label: "Resume", Small: true, Kind: "quiet", Post: at("resume"), Toast: fmt.Sprintf("Run %d is queued again", r.ID), Undo: at("stop"), Name: fmt.Sprintf("Resume run %d", r.ID)})
	}
	return row
}

func queueRow(place int, w Waiting, r ablation.Run, st ablation.StudyRecord, acts bool, now time.Time) templates.QueueRow {
	study, arm := runName(r, st)
	row := templates.QueueRow{
		ID: fmt.Sprint(r.ID), Href: fmt.Sprintf("/runs/%d", r.ID), Place: digits(int64(place)), Study: study, Arm: arm,
		Reason: waitText(w, st, place, &r.Arm.Recipe), Start: startText(w, now), Priority: priorityText(w.Priority), Held: w.Hold != "",
		Queued: ago(r.QueuedAt, now), At: r.QueuedAt.UTC().Format(time.RFC3339),
	}
	if w.Takes > 0 {
		row.Takes = "takes " + hourMinutes(w.Takes)
	}
	if !acts {
		return row
	}
	at := func(act string) string { return fmt.Sprintf("/runs/%d/%s", r.ID, act) }
	back := at(fmt.Sprintf("priority/%d/%d", w.Priority, w.Place))
	step := func(act, undo, icon string) templates.ActionView {
		return templates.ActionView{Icon: icon, Small: true, Kind: "quiet", Post: at(act), Undo: at(undo), Toast: fmt.Sprintf("Run %d moves %s by one place", r.ID, act),
			Name: fmt.Sprintf("Move run %d %s one place", r.ID, act)}
	}
	row.Raise, row.Lower = step("up", "down", "up"), step("down", "up", "down")
	row.More = []templates.ActionView{
		{Label: "One place up", Icon: "up", Post: at("up"), Toast: row.Raise.Toast, Undo: at("down")},
		{Label: "One place down", Icon: "down", Post: at("down"), Toast: row.Lower.Toast, Undo: at("up")},
		{Label: "Start next", Post: at("first"), Toast: fmt.Sprintf("Run %d starts next", r.ID), Undo: back},
		{Label: "Start last", Post: at("last"), Toast: fmt.Sprintf("Run %d starts last", r.ID), Undo: back},
	}
	if w.Hold != "" {
		row.More = append(row.More, templates.ActionView{Label: "Let it start", Post: at("unpause"), Toast: fmt.Sprintf("Run %d may start", r.ID), Undo: at("pause")})
	} else {
		row.More = append(row.More, templates.ActionView{Label: "Pause", Icon: "pause", Post: at("pause"), Toast: fmt.Sprintf("Run %d is kept back", r.ID), Undo: at("unpause")})
	}
	row.More = append(row.More, templates.ActionView{Label: "Cancel", Icon: "cross", Post: at("stop"), Toast: fmt.Sprintf("Run %d is cancelled", r.ID), Undo: at("resume")})
	return row
}

// priorityText is a priority with its sign: 0, +2, −1.
func priorityText(p int) string {
	switch {
	case p > 0:
		return "+" + digits(int64(p))
	case p < 0:
		return minus + digits(int64(-p))
	}
	return "0"
}

// waitText says why a queued run waits.
func waitText(w Waiting, st ablation.StudyRecord, place int, recipe *ablation.Recipe) string {
	switch {
	case w.Hold != "":
		return visible(w.Hold)
	case w.Reason != "":
		return visible(w.Reason)
	case st.Paused:
		return "its study is paused"
	case place == 1:
		return "next"
	}
	return "needs " + needsWords(recipe)
}

func endedRow(r ablation.Run, st ablation.StudyRecord, now time.Time) templates.EndedRow {
	study, arm := runName(r, st)
	row := templates.EndedRow{
		ID: fmt.Sprint(r.ID), Href: fmt.Sprintf("/runs/%d", r.ID), Study: study, Arm: arm, Status: statusOf(r, 0), Step: stepText(r),
		Took: "–", When: ago(r.EndedAt, now), At: r.EndedAt.UTC().Format(time.RFC3339),
	}
	if !r.StartedAt.IsZero() {
		row.Took = hourMinutes(runTime(r, now))
	}
	if r.State != ablation.Succeeded {
		cause, cut := clip(firstLine(visible(r.Cause)), 160)
		if row.Cause = cause; cut {
			row.Cause += "…"
		}
		label := "Resume"
		if r.State == ablation.Failed {
			label = "Retry"
		}
		row.Actions = []templates.ActionView{{Label: label, Small: true, Kind: "quiet", Name: fmt.Sprintf("%s run %d", label, r.ID), Post: fmt.Sprintf("/runs/%d/resume", r.ID),
			Toast: fmt.Sprintf("Run %d is queued again: it goes on from its last checkpoint", r.ID), Undo: fmt.Sprintf("/runs/%d/stop", r.ID)}}
	}
	return row
}

// actOnQueue pauses or resumes the queue.
func (s *site) actOnQueue(ctx context.Context, act string) error {
	switch {
	case s.Queue == nil:
		return errReadOnly
	case act == "pause":
		return s.Queue.PauseQueue(ctx, pausedByHand)
	}
	return s.Queue.ResumeQueue(ctx)
}

func (s *site) postQueue(w http.ResponseWriter, r *http.Request) error {
	if err := s.actOnQueue(r.Context(), chi.URLParam(r, "act")); err != nil {
		return fmt.Errorf("%s the queue: %w", chi.URLParam(r, "act"), err)
	}
	http.Redirect(w, r, "/runs", http.StatusSeeOther)
	return nil
}

// queueAnswer is the queue in the JSON API.
type queueAnswer struct {
	QueueStatus
	Waiting []Waiting `json:"waiting"`
}

func (s *site) apiQueue(w http.ResponseWriter, r *http.Request) error {
	q, err := s.readQueue(r.Context())
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, queueAnswer{q.status, append([]Waiting{}, q.list...)})
}

func (s *site) apiQueueAct(w http.ResponseWriter, r *http.Request) error {
	if err := s.actOnQueue(r.Context(), chi.URLParam(r, "act")); err != nil {
		return fmt.Errorf("%s the queue: %w", chi.URLParam(r, "act"), err)
	}
	return writeJSON(w, http.StatusOK, s.Queue.Status())
}

func (s *site) setPriority(r *http.Request) (ablation.RunID, error) {
	id, err := runID(r)
	if err != nil {
		return 0, err
	}
	if s.Queue == nil {
		return 0, errReadOnly
	}
	p, err := strconv.Atoi(chi.URLParam(r, "value"))
	if err != nil {
		return 0, invalidParam("priority", chi.URLParam(r, "value"), "a whole number")
	}
	place := int64(0)
	if text := chi.URLParam(r, "place"); text != "" {
		if place, err = strconv.ParseInt(text, 10, 64); err != nil {
			return 0, invalidParam("place", text, "a whole number")
		}
	}
	return id, s.Queue.SetPlace(r.Context(), id, p, place)
}

func (s *site) postPriority(w http.ResponseWriter, r *http.Request) error {
	if _, err := s.setPriority(r); err != nil {
		return err
	}
	http.Redirect(w, r, "/runs", http.StatusSeeOther)
	return nil
}

func (s *site) apiPriority(w http.ResponseWriter, r *http.Request) error {
	id, err := s.setPriority(r)
	if err != nil {
		return err
	}
	run, err := s.Store.Run(r.Context(), id)
	if err != nil {
		return fmt.Errorf("read run %d: %w", id, err)
	}
	return writeJSON(w, http.StatusOK, run)
}
