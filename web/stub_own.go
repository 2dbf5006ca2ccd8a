package web

import (
	"net/http"

	"github.com/go-chi/chi/v5"
)

func (s *site) routesHome(r chi.Router) {
	r.Get("/", s.page(func(w http.ResponseWriter, r *http.Request) error { return s.notFound(w, r) }))
}
func (s *site) routesStudies(r chi.Router) {}
func (s *site) routesRun(r chi.Router)     {}
