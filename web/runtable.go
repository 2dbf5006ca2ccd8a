package web

import (
	"fmt"
	"math"
	"time"

	"alidade/ablation"
	"alidade/templates"
)

// runTable is the data of the windowed table of a study's runs.
func runTable(d studyData, now time.Time) (templates.RunTableConfig, []string) {
	names := []string{d.rec.Study.Metric}
	names = append(names, headlineMetrics(d.metrics, d.rec.Study.Metric, runMetrics...)...)
	var c templates.RunTableConfig
	var heads []string
	for _, n := range names {
		c.Columns = append(c.Columns, templates.RunColumn{Metric: n, Info: chartInfo(n)})
		heads = append(heads, columnHead(infoOf(n)))
	}
	c.Rows = make([]templates.RunData, 0, len(d.runs))
	for _, r := range d.runs {
		status := statusOf(r, d.queue.place(r.ID))
		row := templates.RunData{
			ID: int64(r.ID), Arm: r.Arm.Index, Seed: fmt.Sprint(r.Seed), State: string(r.State), Kind: status.Kind, Word: status.Word, Cause: visible(r.Cause),
			Step: r.Step, Total: totalSteps(r), Device: r.Device, Left: leftText(r, now), LeftS: leftOrSpent(r, now),
		}
		if w, ok := d.queue.of(r.ID); ok {
			row.Cause = visible(w.Reason)
			if !w.Start.IsZero() {
				row.Left = "from " + startText(w, now)
			}
		}
		for _, n := range names {
			row.Values = append(row.Values, jsonValue(d.last[r.ID], n))
		}
		c.Rows = append(c.Rows, row)
	}
	return c, heads
}

func leftOrSpent(r ablation.Run, now time.Time) float64 {
	if left, ok := runLeft(r, now); ok {
		return left.Seconds()
	}
	if r.State.Terminal() {
		return runTime(r, now).Seconds()
	}
	return -1
}

// jsonValue is a point's value as JSON can hold it.
func jsonValue(last map[string]ablation.Point, metric string) any {
	p, ok := last[metric]
	switch {
	case !ok:
		return nil
	case math.IsNaN(p.Value):
		return "NaN"
	case math.IsInf(p.Value, 1):
		return "+Inf"
	case math.IsInf(p.Value, -1):
		return "-Inf"
	}
	return p.Value
}

// studyRunRows are the rows that stand in the page before the script windows
// the table.
func studyRunRows(d studyData, marks map[int]templates.MarkView, now time.Time) []templates.RunRow {
	var rows []templates.RunRow
	for _, r := range d.runs[:min(len(d.runs), firstRows)] {
		m := marks[r.Arm.Index]
		rows = append(rows, templates.RunRow{
			ID: fmt.Sprint(r.ID), Href: fmt.Sprintf("/runs/%d", r.ID), Arm: r.Arm.Label, Mark: &m, Seed: fmt.Sprint(r.Seed),
			Status: statusOf(r, d.queue.place(r.ID)), Rule: runRule(r, 140, d.alerts), Step: stepText(r), Device: deviceText(r.Device), Left: leftText(r, now),
		})
	}
	return rows
}
