package web

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"

	"alidade/ablation"
	"alidade/ablation/studyfile"
	"alidade/store"
	"alidade/templates"
)

// routesAPI is the JSON API. Trajectories and reports register theirs beside
// their pages.
func (s *site) routesAPI(r chi.Router) {
	r.Get("/api/v1/studies", s.page(s.apiStudies))
	r.Post("/api/v1/studies", s.page(s.apiLaunch))
	r.Post("/api/v1/studies/check", s.page(s.apiCheck))
	r.Get("/api/v1/studies/{study}", s.page(s.apiStudy))
	r.Get("/api/v1/studies/{study}/runs", s.page(s.apiStudyRuns))
	r.Get("/api/v1/studies/{study}/metrics", s.page(s.apiStudyMetrics))
	r.Get("/api/v1/studies/{study}/series", s.page(s.apiStudySeries))
	r.Get("/api/v1/studies/{study}/study.yaml", s.page(s.apiStudyFile))
	r.Post("/api/v1/studies/{study}/{act:pause|resume|stop|unstop|complete|uncomplete|archive|unarchive}", s.page(s.apiStudyAct))
	r.Get("/api/v1/runs/{run}", s.page(s.apiRun))
	r.Get("/api/v1/runs/{run}/series", s.page(s.apiRunSeries))
	r.Get("/api/v1/runs/{run}/log", s.page(s.apiRunLog))
	r.Post("/api/v1/runs/{run}/{act:stop|resume|pause|unpause|up|down|first|last|dump}", s.page(s.apiRunAct))
	r.Get("/api/v1/series", s.page(s.apiSeries))
	r.Get("/api/v1/devices", s.page(s.apiDevices))
}

// readStudy decodes the body: YAML as in a study file, or the same as JSON,
// which YAML contains.
func readStudy(r *http.Request) (ablation.Study, string, error) {
	name := "study.yaml"
	switch kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind {
	case "application/json":
		name = "study.json"
	case "", "application/yaml", "application/x-yaml", "text/yaml", "text/plain", "application/octet-stream", "application/x-www-form-urlencoded":
		// curl's default content type is the last one
	default:
		return ablation.Study{}, "", &Problem{Status: http.StatusUnsupportedMediaType, Text: "Content-Type " + printable(kind) + " is not taken; allowed: application/yaml, application/json"}
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return ablation.Study{}, "", fmt.Errorf("read body: %w", err)
	}
	st, err := studyfile.Decode(name, body)
	return st, string(body), err
}

// launched is the answer to a launch.
type launched struct {
	Study ablation.StudyRecord `json:"study"`
	Runs  []ablation.Run       `json:"runs"`
}

func (s *site) apiLaunch(w http.ResponseWriter, r *http.Request) error {
	st, source, err := readStudy(r)
	if err != nil {
		return err
	}
	if s.Runs == nil {
		return errReadOnly
	}
	rec, runs, err := s.Runs.Launch(r.Context(), st, source)
	if err != nil {
		return fmt.Errorf("launch: %w", err)
	}
	w.Header().Set("Location", fmt.Sprintf("/api/v1/studies/%d", rec.ID))
	return writeJSON(w, http.StatusCreated, launched{Study: rec, Runs: runs})
}

// errReadOnly answers actions on a server without a runner.
var errReadOnly = &Problem{Status: http.StatusConflict, Text: "This server only shows what is stored; it runs nothing"}

// checked is what a study would become.
type checked struct {
	Study ablation.Study `json:"study"`
	Arms  []ablation.Arm `json:"arms"`
	Runs  int            `json:"runs"`
	Seeds []uint64       `json:"seeds"`
}

func (s *site) apiCheck(w http.ResponseWriter, r *http.Request) error {
	st, _, err := readStudy(r)
	if err != nil {
		return err
	}
	planned, err := ablation.Expand(st)
	if err != nil {
		return err
	}
	arms, err := ablation.Arms(st)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, checked{Study: st, Arms: arms, Runs: len(planned), Seeds: st.Seeds})
}

// studySummary is a study with where its runs stand.
type studySummary struct {
	ablation.StudyRecord
	Progress progress `json:"progress"`
}

func (s *site) apiStudies(w http.ResponseWriter, r *http.Request) error {
	recs, err := s.Store.Studies(r.Context())
	if err != nil {
		return fmt.Errorf("read studies: %w", err)
	}
	runs, err := s.Store.Runs(r.Context(), store.RunFilter{})
	if err != nil {
		return fmt.Errorf("read runs: %w", err)
	}
	byStudy := map[ablation.StudyID][]ablation.Run{}
	for _, run := range runs {
		byStudy[run.Study] = append(byStudy[run.Study], run)
	}
	out := make([]studySummary, len(recs))
	for i, rec := range recs {
		out[i] = studySummary{StudyRecord: rec, Progress: progressOf(byStudy[rec.ID], s.now())}
	}
	return writeJSON(w, http.StatusOK, map[string]any{"studies": out})
}

// loadStudy reads the study of the route and its runs.
func (s *site) loadStudy(r *http.Request) (ablation.StudyRecord, []ablation.Run, error) {
	id, err := studyID(r)
	if err != nil {
		return ablation.StudyRecord{}, nil, err
	}
	rec, err := s.Store.Study(r.Context(), id)
	if err != nil {
		return ablation.StudyRecord{}, nil, fmt.Errorf("read study %d: %w", id, err)
	}
	runs, err := s.Store.Runs(r.Context(), store.RunFilter{Study: id})
	if err != nil {
		return ablation.StudyRecord{}, nil, fmt.Errorf("read runs of study %d: %w", id, err)
	}
	return rec, runs, nil
}

func (s *site) apiStudy(w http.ResponseWriter, r *http.Request) error {
	rec, runs, err := s.loadStudy(r)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, studySummary{StudyRecord: rec, Progress: progressOf(runs, s.now())})
}

func (s *site) apiStudyRuns(w http.ResponseWriter, r *http.Request) error {
	_, runs, err := s.loadStudy(r)
	if err != nil {
		return err
	}
	if runs == nil {
		runs = []ablation.Run{}
	}
	return writeJSON(w, http.StatusOK, map[string]any{"runs": runs})
}

func (s *site) apiStudyMetrics(w http.ResponseWriter, r *http.Request) error {
	_, runs, err := s.loadStudy(r)
	if err != nil {
		return err
	}
	names, err := s.Store.Metrics(r.Context(), runIDs(runs))
	if err != nil {
		return fmt.Errorf("read metric names: %w", err)
	}
	out := map[string]any{"metrics": append([]string{}, names...)}
	if r.URL.Query().Get("info") == "1" { // how to write each of them, for the charts
		out["info"] = chartInfos(names)
	}
	return writeJSON(w, http.StatusOK, out)
}

func (s *site) apiStudyFile(w http.ResponseWriter, r *http.Request) error {
	id, err := studyID(r)
	if err != nil {
		return err
	}
	rec, err := s.Store.Study(r.Context(), id)
	if err != nil {
		return fmt.Errorf("read study %d: %w", id, err)
	}
	body := []byte(rec.Source)
	if len(body) == 0 || r.URL.Query().Get("canonical") == "1" {
		if body, err = studyfile.Encode(rec.Study); err != nil {
			return fmt.Errorf("write study file: %w", err)
		}
	}
	w.Header().Set("Content-Type", "application/yaml; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="`+fileSafe(rec.Study.Name)+`.yaml"`)
	_, _ = w.Write(body)
	return nil
}

// fileSafe keeps letters, digits, dash, dot and underscore of a name.
func fileSafe(name string) string {
	b := []byte(name)
	for i, c := range b {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.' && i > 0) {
			b[i] = '-'
		}
	}
	if len(b) == 0 {
		return "study"
	}
	return string(b[:min(len(b), 80)])
}

// runDetail is a run with its attempts.
type runDetail struct {
	ablation.Run
	Attempts []ablation.Attempt `json:"attempts"`
	Metrics  []string           `json:"metrics"`
	Counts   store.Counts       `json:"counts"`

	Info map[string]templates.MetricInfo `json:"info"` // how to write each metric
}

func (s *site) apiRun(w http.ResponseWriter, r *http.Request) error {
	id, err := runID(r)
	if err != nil {
		return err
	}
	run, err := s.Store.Run(r.Context(), id)
	if err != nil {
		return fmt.Errorf("read run %d: %w", id, err)
	}
	d := runDetail{Run: run}
	if d.Attempts, err = s.Store.Attempts(r.Context(), id); err != nil {
		return fmt.Errorf("read attempts of run %d: %w", id, err)
	}
	if d.Metrics, err = s.Store.Metrics(r.Context(), []ablation.RunID{id}); err != nil {
		return fmt.Errorf("read metric names of run %d: %w", id, err)
	}
	d.Info = chartInfos(d.Metrics)
	if d.Counts, err = s.Store.Counts(r.Context(), id); err != nil {
		return fmt.Errorf("count what is stored of run %d: %w", id, err)
	}
	return writeJSON(w, http.StatusOK, d)
}

const (
	defaultTail = 64 << 10
	maxTail     = 8 << 20
)

// apiRunLog sends the tail of a log as it is on disk.
func (s *site) apiRunLog(w http.ResponseWriter, r *http.Request) error {
	id, err := runID(r)
	if err != nil {
		return err
	}
	if s.Runs == nil {
		return errReadOnly
	}
	q := r.URL.Query()
	stream := q.Get("stream")
	if stream == "" {
		stream = "stdout"
	}
	if !isStream(stream) {
		return invalidParam("stream", stream, "stdout, stderr, dump")
	}
	attempt, err := intParam(r, "attempt", 0, 0, 1<<31)
	if err != nil {
		return err
	}
	tail, err := intParam(r, "tail", defaultTail, 1, maxTail)
	if err != nil {
		return err
	}
	if attempt == 0 {
		run, err := s.Store.Run(r.Context(), id)
		if err != nil {
			return fmt.Errorf("read run %d: %w", id, err)
		}
		attempt = int64(run.Attempt)
	}
	var body []byte
	if attempt > 0 {
		if body, err = s.Runs.Log(r.Context(), id, int(attempt), stream, tail); err != nil {
			return fmt.Errorf("read log of run %d: %w", id, err)
		}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if r.URL.Query().Get("shown") == "1" { // as the page shows it
		body = []byte(tidyLog(string(body)))
	}
	_, _ = w.Write(body)
	return nil
}

// intParam reads a whole number from the query.
func intParam(r *http.Request, name string, missing, low, high int64) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return missing, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < low || n > high {
		return 0, invalidParam(name, text, fmt.Sprintf("a whole number from %d to %d", low, high))
	}
	return n, nil
}

func (s *site) apiDevices(w http.ResponseWriter, r *http.Request) error {
	devices := []jsonDevice{}
	for _, d := range s.devices() {
		devices = append(devices, jsonDevice{Device: d, Util: jsonNumber(d.Util), PowerW: jsonNumber(d.PowerW), TempC: jsonNumber(d.TempC)})
	}
	return writeJSON(w, http.StatusOK, map[string]any{"devices": devices, "at": s.now().UTC().Format(time.RFC3339)})
}

// jsonDevice writes numbers that are unknown (NaN) as null.
type jsonDevice struct {
	Device
	Util   *float64 `json:"util"`
	PowerW *float64 `json:"power_w"`
	TempC  *float64 `json:"temp_c"`
}

func jsonNumber(v float64) *float64 {
	if v-v != 0 {
		return nil
	}
	return &v
}

func (s *site) devices() []Device {
	if s.Devices == nil {
		return nil
	}
	return s.Devices()
}

func runIDs(runs []ablation.Run) []ablation.RunID {
	ids := make([]ablation.RunID, len(runs))
	for i, r := range runs {
		ids[i] = r.ID
	}
	return ids
}
