package web

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"alidade/ablation"
	"alidade/templates"
)

// Rows and rules that several pages show.

// runRule draws a run's steps: short marks each 5 steps, long marks where the
// policy is evaluated.
func runRule(r ablation.Run, width float64, alerts []ablation.Alert) templates.RuleView {
	total := float64(totalSteps(r))
	major := float64(r.Arm.Recipe.Evaluation.Every)
	if major <= 0 {
		major = total / 5
	}
	var flags []float64
	for _, a := range alerts {
		if a.Run == r.ID && a.Level != "info" {
			flags = append(flags, float64(a.Step))
		}
	}
	v := templates.NewRule(width, total, float64(r.Step), 5, major, flags)
	v.Off = !r.State.Live()
	v.ID = strconv.FormatInt(int64(r.ID), 10)
	v.Label = fmt.Sprintf("step %d of %d", r.Step, totalSteps(r))
	return v
}

// studyRule draws the steps of all runs of a study, a long mark a run.
func studyRule(p progress, width float64, live bool) templates.RuleView {
	total := float64(p.Total)
	major := total / float64(max(1, p.Runs))
	v := templates.NewRule(width, total, float64(p.Steps), major/5, major, nil)
	v.Off = !live
	v.Label = fmt.Sprintf("%d of %d steps", p.Steps, p.Total)
	return v
}

// stepText is "12 / 100".
func stepText(r ablation.Run) string {
	if r.State == ablation.Queued && r.Step == 0 {
		return ""
	}
	return fmt.Sprintf("%s / %s", digits(r.Step), digits(totalSteps(r)))
}

// leftText is the time a run still needs, or how long it took.
func leftText(r ablation.Run, now time.Time) string {
	if left, ok := runLeft(r, now); ok {
		return hourMinutes(left)
	}
	if r.State.Terminal() && !r.StartedAt.IsZero() {
		return hourMinutes(runTime(r, now))
	}
	return "–"
}

// statusOf is a run's state as the pages write it; place is its place in the
// queue, 0 when it does not wait.
func statusOf(r ablation.Run, place int) templates.Status {
	kind, word := stateWord(r)
	if r.State == ablation.Queued && place > 0 {
		word = "queued, " + ordinal(place)
		if place == 1 {
			word = "queued, next"
		}
	}
	return templates.Status{Kind: kind, Word: word}
}

// studyStatus sums up where a study stands.
func studyStatus(rec ablation.StudyRecord, p progress) templates.Status {
	n := func(s ablation.State) int { return p.ByState[s] }
	switch {
	case p.Runs == 0:
		return templates.Status{Kind: "info", Word: "no runs"}
	case rec.Paused && p.Waiting > 0:
		return templates.Status{Kind: "pause", Word: fmt.Sprintf("paused, %d of %d", p.Finished, p.Runs)}
	case p.Live > 0:
		return templates.Status{Kind: "run", Word: fmt.Sprintf("%d of %d", p.Finished, p.Runs)}
	case p.Waiting > 0:
		return templates.Status{Kind: "queue", Word: fmt.Sprintf("%d waiting", p.Waiting)}
	case n(ablation.Lost) > 0:
		return templates.Status{Kind: "lost", Word: fmt.Sprintf("%d lost", n(ablation.Lost))}
	case n(ablation.Failed) > 0:
		return templates.Status{Kind: "bad", Word: fmt.Sprintf("%d failed", n(ablation.Failed))}
	case n(ablation.Stopped) > 0:
		return templates.Status{Kind: "stop", Word: fmt.Sprintf("%d stopped", n(ablation.Stopped))}
	}
	return templates.Status{Kind: "ok", Word: "finished"}
}

// question is how a study is headed: its question, or its name.
func question(st ablation.Study) string {
	if st.Question != "" {
		return visible(st.Question)
	}
	return visible(st.Name)
}

// finishText is when a set of runs will be done: a clock time and what comes
// after it in words.
func finishText(p progress, now time.Time) (clock, words string) {
	if p.LeftS < 0 {
		return "–", "known after the first steps"
	}
	left := time.Duration(p.LeftS * float64(time.Second))
	clock, day := clockTime(now.Add(left), now)
	words = "in " + hourMinutes(left)
	if day != "" {
		words = day + ", " + words
	}
	return clock, words
}

// alertView shows a stored alert.
func alertView(a ablation.Alert, now time.Time) templates.AlertView {
	v := templates.AlertView{
		Level: a.Level, Title: fmt.Sprintf("%s: run %d, step %d", visible(alertTitle(a.Code)), a.Run, a.Step), Text: visible(a.Text),
		When: ago(a.At, now), At: a.At.UTC().Format(time.RFC3339),
		Links: []templates.Link{{Label: "Open run", Href: fmt.Sprintf("/runs/%d", a.Run)}},
	}
	if a.Step <= 0 {
		return v
	}
	from := a.Step
	if a.Since > 0 {
		from = a.Since
	}
	steps := fmt.Sprintf("step %d", a.Step)
	if from < a.Step {
		steps = fmt.Sprintf("steps %d–%d", from, a.Step)
		v.Links = append(v.Links, templates.Link{Label: "Curves of " + steps, Href: fmt.Sprintf("/runs/%d?zoom=%d-%d#live", a.Run, from, a.Step)})
	}
	v.Links = append(v.Links, templates.Link{Label: "Rollouts of " + steps, Href: fmt.Sprintf("/trajectories?run=%d&from=%d&to=%d", a.Run, from, a.Step)})
	return v
}

// hangs tells whether an alert is about a trainer that says nothing: then what
// its processes do is of interest.
func hangs(a ablation.Alert) bool { return a.Code == "stalled" || a.Code == "nothing-received" }

// alertTitle writes an alert's key as words.
func alertTitle(code string) string {
	switch code {
	case "nan":
		return "Not a number"
	case "":
		return "Alert"
	}
	b := []byte(code)
	for i, c := range b {
		if c == '-' || c == '_' {
			b[i] = ' '
		}
	}
	if b[0] >= 'a' && b[0] <= 'z' {
		b[0] -= 'a' - 'A'
	}
	return string(b)
}

// runAlert is a failed or lost run as something to look at.
func runAlert(r ablation.Run, now time.Time) templates.AlertView {
	word := "Failed"
	level := "bad"
	if r.State == ablation.Lost {
		word, level = "Lost", "warn"
	}
	v := templates.AlertView{Level: level, Title: fmt.Sprintf("%s: run %d, step %d of %d", word, r.ID, r.Step, totalSteps(r)), Text: visible(r.Cause)}
	at := r.EndedAt
	if at.IsZero() {
		at = r.HeardAt
	}
	if !at.IsZero() {
		v.When, v.At = ago(at, now), at.UTC().Format(time.RFC3339)
	}
	v.Links = []templates.Link{{Label: "Log and attempts", Href: fmt.Sprintf("/runs/%d#log", r.ID)}}
	return v
}

// deviceText writes the devices of a run: "cpu0", "gpu0–3", "gpu0, gpu2".
func deviceText(ids string) string {
	var out []string
	var kind string
	var first, last int
	flush := func() {
		switch {
		case kind == "":
		case first == last:
			out = append(out, fmt.Sprintf("%s%d", kind, first))
		default:
			out = append(out, fmt.Sprintf("%s%d–%d", kind, first, last))
		}
		kind = ""
	}
	for _, id := range strings.Split(ids, ",") {
		name := strings.TrimRight(id, "0123456789")
		n, err := strconv.Atoi(id[len(name):])
		if err != nil || name == "" { // a cluster's node
			flush()
			if id != "" {
				out = append(out, visible(id))
			}
			continue
		}
		if name == kind && n == last+1 {
			last = n
			continue
		}
		flush()
		kind, first, last = name, n, n
	}
	flush()
	return orDash(strings.Join(out, ", "))
}
