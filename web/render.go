package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/a-h/templ"
	"github.com/go-chi/chi/v5"

	"alidade/ablation"
	"alidade/templates"
)

// page adapts a handler that returns an error.
func (s *site) page(fn func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := fn(w, r); err != nil {
			s.fail(w, r, err)
		}
	}
}

// view starts the frame of a page for this request.
func (s *site) view(r *http.Request, section, name, title string) templates.PageView {
	return templates.PageView{
		Title: title, Section: section, Name: name,
		Theme: themeOf(r), Version: s.Version, Assets: s.links,
	}
}

// themeOf reads the theme that the browser keeps in a cookie.
func themeOf(r *http.Request) string {
	if c, err := r.Cookie("theme"); err == nil && (c.Value == "light" || c.Value == "dark") {
		return c.Value
	}
	return ""
}

// render writes a component as HTML once it is complete, so that a template
// that fails can still be an error page.
func (s *site) render(w http.ResponseWriter, r *http.Request, status int, c templ.Component) error {
	var b bytes.Buffer
	if err := c.Render(r.Context(), &b); err != nil {
		return fmt.Errorf("render page: %w", err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // the client may have left
	return nil
}

// writeJSON writes v once it is complete.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(v); err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes())
	return nil
}

// pathID reads a positive whole number from the route.
func pathID(r *http.Request, name string) (int64, error) {
	text := chi.URLParam(r, name)
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id <= 0 {
		return 0, fmt.Errorf("%s %q: %w", name, text, ablation.ErrNotFound)
	}
	return id, nil
}

// studyID and runID read the id of the route.
func studyID(r *http.Request) (ablation.StudyID, error) {
	id, err := pathID(r, "study")
	return ablation.StudyID(id), err
}

func runID(r *http.Request) (ablation.RunID, error) {
	id, err := pathID(r, "run")
	return ablation.RunID(id), err
}
