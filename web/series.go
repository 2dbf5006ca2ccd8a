package web

import (
	"fmt"
	"math"
	"net/http"
	"strconv"

	"alidade/ablation"
	"alidade/store"
)

const (
	defaultPoints = 600    // a series in a chart
	maxPoints     = 50_000 // a series in one answer
)

// apiStudySeries sends one or more metrics of all runs of a study.
func (s *site) apiStudySeries(w http.ResponseWriter, r *http.Request) error {
	_, runs, err := s.loadStudy(r)
	if err != nil {
		return err
	}
	return s.sendSeries(w, r, runIDs(runs))
}

// apiRunSeries sends metrics of one run.
func (s *site) apiRunSeries(w http.ResponseWriter, r *http.Request) error {
	id, err := runID(r)
	if err != nil {
		return err
	}
	if _, err := s.Store.Run(r.Context(), id); err != nil {
		return fmt.Errorf("read run %d: %w", id, err)
	}
	return s.sendSeries(w, r, []ablation.RunID{id})
}

// apiSeries sends metrics of the runs that the query names: run=1&run=2.
func (s *site) apiSeries(w http.ResponseWriter, r *http.Request) error {
	var ids []ablation.RunID
	for _, text := range r.URL.Query()["run"] {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil || id <= 0 {
			return invalidParam("run", text, "a run's number")
		}
		ids = append(ids, ablation.RunID(id))
	}
	if len(ids) == 0 {
		return invalidParam("run", "", "at least one run's number")
	}
	return s.sendSeries(w, r, ids)
}

func (s *site) sendSeries(w http.ResponseWriter, r *http.Request, ids []ablation.RunID) error {
	q := r.URL.Query()
	metrics := q["metric"]
	if len(metrics) == 0 {
		return invalidParam("metric", "", "at least one metric name; …/metrics lists them")
	}
	if len(metrics) > 200 {
		return invalidParam("metric", strconv.Itoa(len(metrics))+" names", "at most 200 at once")
	}
	points, err := intParam(r, "points", defaultPoints, 0, maxPoints)
	if err != nil {
		return err
	}
	attempt, err := intParam(r, "attempt", 0, 0, math.MaxInt32)
	if err != nil {
		return err
	}
	from, err := intParam(r, "from", 0, 0, math.MaxInt64)
	if err != nil {
		return err
	}
	to, err := intParam(r, "to", 0, 0, math.MaxInt64)
	if err != nil {
		return err
	}
	var series []ablation.Series
	if len(ids) > 0 {
		series, err = s.Store.Series(r.Context(), store.SeriesQuery{Runs: ids, Metrics: metrics, From: from, To: to, MaxPoints: int(points), Attempt: int(attempt)})
		if err != nil {
			return fmt.Errorf("read series: %w", err)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(appendSeries(make([]byte, 0, 1<<16), series))
	return nil
}

// appendSeries writes {"series":[{"run","metric","total","thinned","steps","walls","values"}]}
// with columns: walls in unix milliseconds, values as numbers or "NaN",
// "+Inf", "-Inf". Written by hand: it is most of what a page loads.
func appendSeries(b []byte, series []ablation.Series) []byte {
	b = append(b, `{"series":[`...)
	for i, sr := range series {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"run":`...)
		b = strconv.AppendInt(b, int64(sr.Run), 10)
		b = append(b, `,"metric":`...)
		b = appendJSONString(b, sr.Metric)
		b = append(b, `,"total":`...)
		b = strconv.AppendInt(b, int64(sr.Total), 10)
		b = append(b, `,"thinned":`...)
		b = strconv.AppendBool(b, sr.Thinned)
		b = append(b, `,"steps":[`...)
		for j, p := range sr.Points {
			if j > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendInt(b, p.Step, 10)
		}
		b = append(b, `],"walls":[`...)
		for j, p := range sr.Points {
			if j > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendInt(b, p.Wall.UnixMilli(), 10)
		}
		b = append(b, `],"values":[`...)
		for j, p := range sr.Points {
			if j > 0 {
				b = append(b, ',')
			}
			b = appendFloat(b, p.Value)
		}
		b = append(b, `]}`...)
	}
	return append(b, "]}\n"...)
}

// appendFloat writes the shortest text that reads back the same.
func appendFloat(b []byte, v float64) []byte {
	switch {
	case math.IsNaN(v):
		return append(b, `"NaN"`...)
	case math.IsInf(v, 1):
		return append(b, `"+Inf"`...)
	case math.IsInf(v, -1):
		return append(b, `"-Inf"`...)
	}
	return strconv.AppendFloat(b, v, 'g', -1, 64)
}

// appendJSONString writes s as a JSON string.
func appendJSONString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for _, c := range s { // invalid UTF-8 becomes U+FFFD
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', byte(c))
		case c < 0x20 || c == '<' || c == '>' || c == '&' || c == 0x2028 || c == 0x2029:
			b = append(b, '\\', 'u', hex[c>>12&15], hex[c>>8&15], hex[c>>4&15], hex[c&15])
		default:
			b = append(b, string(c)...)
		}
	}
	return append(b, '"')
}
