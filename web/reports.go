package web

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/go-chi/chi/v5"

	"alidade/ablation"
	"alidade/report"
	"alidade/report/stored"
	"alidade/store"
	"alidade/templates"
)

func (s *site) routesReports(r chi.Router) {
	r.Get("/reports", s.page(s.reportsPage))
	r.Get("/studies/{study:[0-9]+}/report", s.page(s.reportPage))
	for _, root := range []string{"", "/api/v1"} {
		r.Get(root+"/studies/{study:[0-9]+}/report.{format:html|md|csv|json}", s.page(s.reportFile))
		r.Get(root+"/studies/{study:[0-9]+}/figures/{name:[A-Za-z0-9_-]+}.{format:svg|png}", s.page(s.reportFigure))
	}
}

// reportFiles are the forms a report can be had in.
var reportFiles = []struct {
	format, label, media string
	write                func(r *http.Request, rep report.Report) ([]byte, error)
}{
	{"html", "HTML", "text/html; charset=utf-8", func(r *http.Request, rep report.Report) ([]byte, error) { return report.HTML(r.Context(), rep) }},
	{"md", "Markdown", "text/markdown; charset=utf-8", func(_ *http.Request, rep report.Report) ([]byte, error) { return report.Markdown(rep) }},
	{"csv", "CSV", "text/csv; charset=utf-8", func(_ *http.Request, rep report.Report) ([]byte, error) { return report.CSV(rep) }},
	{"json", "JSON", "application/json", func(_ *http.Request, rep report.Report) ([]byte, error) { return report.JSON(rep) }},
}

// buildReport computes a study's report from what is stored now. Made is the
// time of the study's last event, so that the same data give the same bytes.
func (s *site) buildReport(r *http.Request) (report.Report, ablation.StudyRecord, error) {
	id, err := studyID(r)
	if err != nil {
		return report.Report{}, ablation.StudyRecord{}, err
	}
	rec, err := s.Store.Study(r.Context(), id)
	if err != nil {
		return report.Report{}, rec, fmt.Errorf("study %d: %w", id, err)
	}
	in, err := report.Load(r.Context(), stored.Source{Store: s.Store}, id, report.Options{Version: s.Version})
	if err != nil {
		return report.Report{}, rec, err
	}
	rep, err := report.Build(in)
	if err != nil {
		return report.Report{}, rec, fmt.Errorf("report on study %d: %w", id, err)
	}
	return rep, rec, nil
}

// reportPage shows the report of a study.
func (s *site) reportPage(w http.ResponseWriter, r *http.Request) error {
	rep, rec, err := s.buildReport(r)
	if err != nil {
		return err
	}
	body, err := report.View(rep, report.Place{TrajectoryURL: func(run int64, id string) string { return trajectoryPath(ablation.RunID(run), id) }})
	if err != nil {
		return fmt.Errorf("draw report: %w", err)
	}
	v := templates.ReportPageView{Report: body, State: templates.Status{Kind: "ok", Word: "final: every run is in it"}}
	if body.Partial != "" {
		v.State = templates.Status{Kind: "warn", Word: "not final"}
	}
	for i, f := range reportFiles {
		a := templates.ActionView{Label: f.label, Href: fmt.Sprintf("/studies/%d/report.%s", rec.ID, f.format)}
		if i == 0 {
			a.Icon = "save"
		}
		v.Files = append(v.Files, a)
	}
	p := s.view(r, "reports", "report", rec.Study.Name)
	p.Crumbs = []templates.Crumb{{Label: "Reports", Href: "/reports"}, {Label: rec.Study.Name, Href: fmt.Sprintf("/studies/%d", rec.ID)}, {Label: "report"}}
	return s.render(w, r, http.StatusOK, templates.ReportPage(p, v))
}

// reportFile answers the report as a file.
func (s *site) reportFile(w http.ResponseWriter, r *http.Request) error {
	rep, rec, err := s.buildReport(r)
	if err != nil {
		return err
	}
	for _, f := range reportFiles {
		if f.format != chi.URLParam(r, "format") {
			continue
		}
		body, err := f.write(r, rep)
		if err != nil {
			return fmt.Errorf("write report: %w", err)
		}
		h := w.Header()
		h.Set("Content-Type", f.media)
		h.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="%s-report.%s"`, fileSafe(rec.Study.Name), f.format))
		h.Set("Cache-Control", "no-store")
		_, _ = w.Write(body)
		return nil
	}
	return ablation.ErrNotFound
}

// reportFigure answers one figure of the report.
func (s *site) reportFigure(w http.ResponseWriter, r *http.Request) error {
	rep, _, err := s.buildReport(r)
	if err != nil {
		return err
	}
	name, format := chi.URLParam(r, "name"), chi.URLParam(r, "format")
	body, err := report.FigureFile(rep, name, format)
	if err != nil {
		return fmt.Errorf("draw figure: %w", err)
	}
	if body == nil {
		return fmt.Errorf("figure %s: %w", name, ablation.ErrNotFound)
	}
	media := map[string]string{"svg": "image/svg+xml", "png": "image/png"}[format]
	w.Header().Set("Content-Type", media)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; sandbox")
	_, _ = w.Write(body)
	return nil
}

// reportsPage lists studies with their reports.
func (s *site) reportsPage(w http.ResponseWriter, r *http.Request) error {
	recs, err := s.Store.Studies(r.Context())
	if err != nil {
		return fmt.Errorf("list studies: %w", err)
	}
	runs, err := s.Store.Runs(r.Context(), store.RunFilter{})
	if err != nil {
		return fmt.Errorf("list runs: %w", err)
	}
	last, err := s.Store.Last(r.Context(), runIDs(runs), primaryMetrics(recs))
	if err != nil && !errors.Is(err, ablation.ErrNotFound) {
		return fmt.Errorf("read last values: %w", err)
	}
	v := templates.ReportsView{Lede: "Computed from what is stored when you open them. The page and its files say the same."}
	for i, row := range studyRows(recs, runs, last, s.now()) {
		if row.Archived {
			continue
		}
		at := fmt.Sprintf("/studies/%d/report", recs[i].ID)
		rr := templates.ReportRow{Study: row, Report: templates.Link{Label: "report", Href: at}}
		for _, f := range reportFiles {
			rr.Files = append(rr.Files, templates.Link{Label: f.label, Href: at + "." + f.format})
		}
		v.Rows = append(v.Rows, rr)
	}
	if len(v.Rows) == 0 {
		v.Empty = &templates.EmptyView{Title: "No reports yet", Text: "Every study has one, from its first evaluation on: a table with intervals, curves, what it cost and what it cannot say.", Actions: []templates.ActionView{{Label: "New study", Href: "/studies/new", Kind: "primary"}}}
	}
	return s.render(w, r, http.StatusOK, templates.ReportsPage(s.view(r, "reports", "reports", "Reports"), v))
}
