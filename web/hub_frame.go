package web

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"alidade/ablation"
)

// subscription says what a page wants: the runs of a study (0: of all), or
// some runs, and the points of some metrics ("*": of all).
type subscription struct {
	study   ablation.StudyID
	runs    map[ablation.RunID]bool // nil: all of the study
	metrics map[string]bool
	all     bool
	key     string // equal subscriptions have equal keys
}

const (
	maxMetrics = 2000
	maxRuns    = 10_000
)

// newSubscription checks and canonicalises what a client asks for.
func newSubscription(study ablation.StudyID, runs []ablation.RunID, metrics []string) (subscription, error) {
	if len(metrics) > maxMetrics {
		return subscription{}, fmt.Errorf("metrics: %d names; allowed: at most %d", len(metrics), maxMetrics)
	}
	if len(runs) > maxRuns {
		return subscription{}, fmt.Errorf("runs: %d; allowed: at most %d", len(runs), maxRuns)
	}
	s := subscription{study: study, metrics: map[string]bool{}}
	for _, m := range metrics {
		if m == "*" {
			s.all = true
		}
		s.metrics[m] = true
	}
	if len(runs) > 0 {
		s.runs = map[ablation.RunID]bool{}
		for _, r := range runs {
			s.runs[r] = true
		}
	}
	var key strings.Builder
	fmt.Fprintf(&key, "%d|", study)
	sorted := slices.Clone(runs)
	slices.Sort(sorted)
	for _, r := range slices.Compact(sorted) {
		key.WriteString(strconv.FormatInt(int64(r), 10) + ",")
	}
	names := slices.Clone(metrics)
	slices.Sort(names)
	key.WriteString("|" + strings.Join(slices.Compact(names), "\x00"))
	s.key = key.String()
	return s, nil
}

func (s subscription) wants(e *entry) bool {
	if s.runs != nil {
		return s.runs[e.run.ID]
	}
	return s.study == 0 || s.study == e.study
}

// frameHeader is the JSON part of a frame. Points follow as columns.
type frameHeader struct {
	Seq          int64                  `json:"seq"`
	N            int                    `json:"n"`
	Metrics      []string               `json:"metrics,omitempty"` // a point's metric is an index into it
	Runs         []liveRun              `json:"runs,omitempty"`    // the runs that changed, as they stand now
	Alerts       []ablation.Alert       `json:"alerts,omitempty"`
	Evaluations  []liveEval             `json:"evaluations,omitempty"`
	Trajectories map[ablation.RunID]int `json:"trajectories,omitempty"` // new ones by run
}

// frameVersion is the first word of a frame.
const frameVersion = 1

// encodeFrame packs what sub wants of entries; ok is false when that is
// nothing. All numbers are little-endian:
//
//	u32 version, u32 header length (padded with spaces to a multiple of 8), header JSON,
//	f64 value[n], f64 wall[n] (unix ms), u32 step[n], u32 run[n], u16 metric[n], u16 attempt[n]
//
// so that every column can be read in place as a typed array.
func encodeFrame(sub subscription, entries []entry, seq int64) (frame []byte, ok bool) {
	h := frameHeader{Seq: seq}
	index := map[string]uint16{}
	place := map[ablation.RunID]int{}
	for i := range entries {
		e := &entries[i]
		if !sub.wants(e) {
			continue
		}
		ok = true
		if at, seen := place[e.run.ID]; seen {
			h.Runs[at] = e.run
		} else {
			place[e.run.ID] = len(h.Runs)
			h.Runs = append(h.Runs, e.run)
		}
		h.Alerts = append(h.Alerts, e.alerts...)
		h.Evaluations = append(h.Evaluations, e.evaluations...)
		if e.trajectories > 0 {
			if h.Trajectories == nil {
				h.Trajectories = map[ablation.RunID]int{}
			}
			h.Trajectories[e.run.ID] += e.trajectories
		}
		for _, p := range e.points {
			if !sub.all && !sub.metrics[p.Metric] {
				continue
			}
			if _, seen := index[p.Metric]; !seen {
				if len(h.Metrics) == math.MaxUint16 {
					continue
				}
				index[p.Metric] = uint16(len(h.Metrics))
				h.Metrics = append(h.Metrics, p.Metric)
			}
			h.N++
		}
	}
	if !ok {
		return nil, false
	}
	return appendColumns(h, sub, entries, index), true
}

func appendColumns(h frameHeader, sub subscription, entries []entry, index map[string]uint16) []byte {
	head, err := json.Marshal(h)
	if err != nil { // strings, numbers and times only: cannot fail
		head = []byte("{}")
	}
	for len(head)%8 != 0 {
		head = append(head, ' ')
	}
	n := h.N
	base := 8 + len(head)
	frame := make([]byte, base+n*28)
	le := binary.LittleEndian
	le.PutUint32(frame, frameVersion)
	le.PutUint32(frame[4:], uint32(len(head)))
	copy(frame[8:], head)
	values, walls, steps := frame[base:], frame[base+8*n:], frame[base+16*n:]
	runs, metrics, attempts := frame[base+20*n:], frame[base+24*n:], frame[base+26*n:]
	i := 0
	for k := range entries {
		e := &entries[k]
		if !sub.wants(e) {
			continue
		}
		for _, p := range e.points {
			m, known := index[p.Metric]
			if !known {
				continue
			}
			le.PutUint64(values[8*i:], math.Float64bits(p.Value))
			le.PutUint64(walls[8*i:], math.Float64bits(float64(p.Wall.UnixMilli())))
			le.PutUint32(steps[4*i:], uint32(p.Step))
			le.PutUint32(runs[4*i:], uint32(e.run.ID))
			le.PutUint16(metrics[2*i:], m)
			le.PutUint16(attempts[2*i:], uint16(e.attempt))
			i++
		}
	}
	return frame
}
