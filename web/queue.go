package web

import (
	"context"
	"fmt"
	"time"

	"alidade/ablation"
	"alidade/templates"
)

// Queue is what the pages may ask about what waits, and of the devices.
type Queue interface {
	Status() QueueStatus
	Waiting(ctx context.Context) ([]Waiting, error) // in the order they will start
	PauseQueue(ctx context.Context, reason string) error
	ResumeQueue(ctx context.Context) error
	PauseRun(ctx context.Context, id ablation.RunID) error
	ResumeRun(ctx context.Context, id ablation.RunID) error                           // ends PauseRun
	SetPlace(ctx context.Context, id ablation.RunID, priority int, place int64) error // place among equals, 0 = by age
	MoveBy(ctx context.Context, id ablation.RunID, places int) error                  // below 0 = towards the head
	MoveFirst(ctx context.Context, id ablation.RunID) error
	MoveLast(ctx context.Context, id ablation.RunID) error
	AddSeeds(ctx context.Context, id ablation.StudyID, seeds []uint64) ([]ablation.RunID, error)
	Complete(ctx context.Context, id ablation.StudyID) (Completion, error)
	TakeBack(ctx context.Context, id ablation.StudyID, act string) error // "stop" or "complete", for the runs that it changed
	Dump(ctx context.Context, id ablation.RunID) (string, error)         // what a live run's processes do; kept as its log "dump"
	Quarantine(ctx context.Context, device, why string) error
	Unquarantine(ctx context.Context, device string) error
}

// QueueStatus says whether anything is started, and if not, why.
type QueueStatus struct {
	Paused   bool   `json:"paused"`
	ByPerson bool   `json:"by_person,omitempty"` // resuming it helps
	Reason   string `json:"reason,omitempty"`

	Handed map[ablation.RunID]string `json:"handed,omitempty"` // started runs that wait in a cluster's queue, and for what
}

// Waiting is a queued run in its place.
type Waiting struct {
	Run      ablation.RunID   `json:"run"`
	Study    ablation.StudyID `json:"study"`
	Priority int              `json:"priority"`
	Place    int64            `json:"place,omitempty"`    // among equals, as a person put it; 0 = by age
	Hold     string           `json:"hold,omitempty"`     // why it may not start; "" = it may
	Reason   string           `json:"reason,omitempty"`   // what it waits for
	Start    time.Time        `json:"start,omitzero"`     // estimated; zero = cannot be told
	Takes    time.Duration    `json:"takes_ns,omitempty"` // estimated; 0 = cannot be told
}

// Completion is what was queued to complete a design.
type Completion struct {
	Added   []ablation.RunID          `json:"added"`             // arms and seeds that had no run
	Again   []ablation.RunID          `json:"again"`             // failed, stopped or lost ones
	Skipped map[ablation.RunID]string `json:"skipped,omitempty"` // and why
}

// pausedByHand is the reason the pages give.
const pausedByHand = "paused by hand"

// waits is the queue as a page needs it.
type waits struct {
	status QueueStatus
	list   []Waiting
	at     map[ablation.RunID]int // index in list
}

// readQueue returns the queue. Without a runner the stored order is all that
// is known.
func (s *site) readQueue(ctx context.Context) (waits, error) {
	var q waits
	var err error
	if s.Queue != nil {
		q.status = s.Queue.Status()
		if q.list, err = s.Queue.Waiting(ctx); err != nil {
			return q, fmt.Errorf("read queue: %w", err)
		}
	} else {
		stored, err := s.Store.Queued(ctx, 0)
		if err != nil {
			return q, fmt.Errorf("read queue: %w", err)
		}
		for _, r := range stored {
			q.list = append(q.list, Waiting{Run: r.ID, Study: r.Study, Priority: r.Priority, Place: r.Place, Hold: r.Hold, Reason: r.Hold})
		}
	}
	q.at = make(map[ablation.RunID]int, len(q.list))
	for i, w := range q.list {
		q.at[w.Run] = i
	}
	return q, nil
}

// place is 1 for the run that starts next, 0 for one that does not wait.
func (q *waits) place(id ablation.RunID) int {
	if i, ok := q.at[id]; ok {
		return i + 1
	}
	return 0
}

// of returns how a run waits.
func (q *waits) of(id ablation.RunID) (Waiting, bool) {
	i, ok := q.at[id]
	if !ok {
		return Waiting{}, false
	}
	return q.list[i], true
}

// startText is when a waiting run will start, as far as that can be told.
func startText(w Waiting, now time.Time) string {
	switch {
	case w.Start.IsZero():
		return "–"
	case w.Start.Sub(now) < 30*time.Second:
		return "now"
	}
	clock, day := clockTime(w.Start, now)
	if day != "" {
		return clock + " " + day
	}
	return clock
}

// queueAlert is the banner of a queue that starts nothing.
func queueAlert(q QueueStatus, waiting int) []templates.AlertView {
	if !q.Paused {
		return nil
	}
	a := templates.AlertView{Level: "bad", Title: "The queue is paused", Text: sentence(q.Reason)}
	if waiting > 0 {
		a.Title += ": " + plural(waiting, "run waits", "runs wait")
	}
	if q.ByPerson {
		a.Level = "warn"
		if q.Reason == pausedByHand {
			a.Text = "Paused by hand."
		}
		a.Text += " Running runs go on."
		a.Actions = []templates.ActionView{{Label: "Resume the queue", Post: "/queue/resume", Toast: "The queue goes on", Undo: "/queue/pause", Small: true}}
	} else {
		a.Text += " Running runs go on."
	}
	return []templates.AlertView{a}
}

// studyPauseAlert is the banner of a study whose waiting runs are kept back,
// with the alert that says so when the runner did it.
func studyPauseAlert(rec ablation.StudyRecord, alerts []ablation.Alert, p progress) []templates.AlertView {
	if !rec.Paused || p.Waiting == 0 {
		return nil
	}
	a := templates.AlertView{Level: "warn", Title: "This study is paused: " + plural(p.Waiting, "run waits", "runs wait"), Text: "Paused by hand. Running runs go on."}
	for _, x := range alerts { // newest first
		if x.Code == "crash-loop" {
			a.Level, a.Text = "bad", sentence(firstLine(visible(x.Text)))
			a.Links = []templates.Link{{Label: fmt.Sprintf("Log of run %d", x.Run), Href: fmt.Sprintf("/runs/%d?log=stderr#log", x.Run)}}
			break
		}
	}
	at := func(act string) string { return fmt.Sprintf("/studies/%d/%s", rec.ID, act) }
	a.Actions = []templates.ActionView{{Label: "Resume the study", Post: at("resume"), Toast: "Resumed: waiting runs start as devices get free", Undo: at("pause"), Small: true}}
	return []templates.AlertView{a}
}

func firstLine(text string) string {
	for i, c := range text {
		if c == '\n' {
			return text[:i]
		}
	}
	return text
}

// waitAlert says on a run's page why it is not started.
func waitAlert(r ablation.Run, w Waiting) templates.AlertView {
	a := templates.AlertView{Level: "info", Title: "Why it waits", Text: sentence(visible(w.Reason))}
	if w.Hold != "" {
		a.Level = "warn"
		a.Actions = []templates.ActionView{{Label: "Let it start", Small: true, Post: fmt.Sprintf("/runs/%d/unpause", r.ID), Toast: fmt.Sprintf("Run %d may start", r.ID), Undo: fmt.Sprintf("/runs/%d/pause", r.ID)}}
	}
	return a
}
