// Package web is all that knows HTTP: pages, the JSON API, the websocket hub
// and their security. [New] makes one http.Handler from a [Config]; it reads
// the store, asks the runner (through the small interface [Runs]) to change
// runs, and never changes a run itself. Publishing is the other way round:
// the wiring hands [Hub.Publish] to the runner.
//
// A subject has one file here (study.go) and one in package templates
// (study.templ); a page's routes are registered by a routesX method in its own
// file, and all of them are listed in router.go.
package web
