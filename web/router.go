package web

import (
	"net/http"

	"github.com/go-chi/chi/v5"
)

// handler is the site from the outside in: checks that need no route first,
// then the routes.
func (s *site) handler() http.Handler {
	var h http.Handler = s.routes()
	h = s.requireToken(h)
	h = s.crossOrigin(h)
	h = limitBody(h)
	h = s.requireHost(h)
	h = secureHeaders(h)
	return s.recoverPanics(h)
}

// routes is the whole surface of the site. Each page's file registers its own.
func (s *site) routes() chi.Router {
	r := chi.NewRouter()
	r.NotFound(s.page(s.notFound))
	r.MethodNotAllowed(s.page(s.methodNotAllowed))
	for _, register := range []func(chi.Router){
		s.routesStatic,
		s.routesLogin,
		s.routesLive,
		s.routesAPI,
		s.routesHome,
		s.routesStudies,
		s.routesRun,
		s.routesRuns,
		s.routesSeeds,
		s.routesNewStudy,
		s.routesTrajectories,
		s.routesDatasets,
		s.routesDevices,
		s.routesReports,
		s.routesSettings,
	} {
		register(r)
	}
	return r
}
