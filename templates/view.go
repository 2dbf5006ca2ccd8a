// Package templates holds the pages and components as templ files, each with
// its view types beside it. A view holds finished strings, links and flags:
// templates query, format and decide nothing. Package web builds the views.
//
// Start with [Page] for the frame and components.templ for the parts.
package templates

// PageView is the frame of a page.
type PageView struct {
	Title   string // of the document; the product's name is added
	Section string // entry of the main navigation that is current: home, studies, runs, trajectories, datasets, devices, reports, settings
	Name    string // which script module serves the page: home, study, run, newstudy, trajectories …; "" = none
	Crumbs  []Crumb
	Theme   string // "", light or dark
	Keys    []Key  // shown at the foot, before the ones every page has
	Version string
	Assets  Assets
	Plain   bool // no navigation: login and start-up pages
}

// Assets are the addresses of the bundled files; empty when nothing is bundled.
type Assets struct {
	Style, Script, Icon string
}

// Crumb is one step of the way to a page. The last has no link.
type Crumb struct {
	Label, Href string
}

// Key is a keyboard shortcut and what it does.
type Key struct {
	Keys  []string
	Label string
}

// Link is a link in words.
type Link struct {
	Label, Href string
}

// navItems is the main navigation, in order.
var navItems = []struct{ ID, Label, Href string }{
	{"home", "Home", "/"},
	{"studies", "Studies", "/studies"},
	{"runs", "Runs", "/runs"},
	{"trajectories", "Trajectories", "/trajectories"},
	{"datasets", "Datasets", "/datasets"},
	{"devices", "Devices", "/devices"},
	{"reports", "Reports", "/reports"},
	{"settings", "Settings", "/settings"},
}

// documentTitle is what the browser shows in its tab.
func documentTitle(title string) string {
	if title == "" {
		return "Alidade"
	}
	return title + " · Alidade"
}
