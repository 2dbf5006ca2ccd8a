package web

import (
	"bytes"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"alidade/ablation"
	"alidade/static"
)

// assetLink is the address of a bundled file, which changes with its content;
// "" when it has not been bundled.
func assetLink(files map[string]static.File, name string) string {
	f, ok := files[name]
	if !ok {
		return ""
	}
	return "/static/" + name + "?v=" + f.Hash
}

func (s *site) routesStatic(r chi.Router) {
	r.Get("/static/{name}", s.page(s.asset))
	r.Head("/static/{name}", s.page(s.asset))
	r.Get("/healthz", s.page(s.healthy))
}

// asset serves a bundled file; one asked for by its hash never changes.
func (s *site) asset(w http.ResponseWriter, r *http.Request) error {
	name := chi.URLParam(r, "name")
	f, ok := s.assets[name]
	if !ok {
		return ablation.ErrNotFound
	}
	h := w.Header()
	h.Set("Content-Type", f.Type)
	h.Set("ETag", `"`+f.Hash+`"`)
	if r.URL.Query().Get("v") == f.Hash {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	} else {
		h.Set("Cache-Control", "no-cache")
	}
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(f.Body))
	return nil
}

func (s *site) healthy(w http.ResponseWriter, r *http.Request) error {
	return writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}
