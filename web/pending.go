package web

import "github.com/go-chi/chi/v5"

// Pages whose file does not exist yet.
func (s *site) routesDatasets(r chi.Router)     {}
func (s *site) routesDevices(r chi.Router)      {}
func (s *site) routesReports(r chi.Router)      {}
func (s *site) routesSettings(r chi.Router)     {}
