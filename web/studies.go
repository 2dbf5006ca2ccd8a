package web

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/go-chi/chi/v5"

	"alidade/ablation"
	"alidade/store"
	"alidade/templates"
)

func (s *site) routesStudies(r chi.Router) {
	r.Get("/studies", s.page(s.studies))
	r.Get("/studies/{study:[0-9]+}", s.page(s.study))
	r.Post("/studies/{study:[0-9]+}/{act:pause|resume|stop|unstop|complete|uncomplete|archive|unarchive}", s.page(s.postStudy))
}

// studies lists the studies: open ones, archived ones, or all.
func (s *site) studies(w http.ResponseWriter, r *http.Request) error {
	which := r.URL.Query().Get("show")
	if which == "" {
		which = "open"
	}
	if !slices.Contains([]string{"open", "archived", "all"}, which) {
		return invalidParam("show", which, "open, archived, all")
	}
	recs, err := s.Store.Studies(r.Context())
	if err != nil {
		return fmt.Errorf("read studies: %w", err)
	}
	runs, err := s.Store.Runs(r.Context(), store.RunFilter{})
	if err != nil {
		return fmt.Errorf("read runs: %w", err)
	}
	last, err := s.Store.Last(r.Context(), runIDs(runs), primaryMetrics(recs))
	if err != nil {
		return fmt.Errorf("read last values: %w", err)
	}
	archived := 0
	var shown []ablation.StudyRecord
	for _, rec := range recs {
		if rec.Archived {
			archived++
		}
		if which == "all" || (which == "archived") == rec.Archived {
			shown = append(shown, rec)
		}
	}
	v := templates.StudiesView{
		Title: "Studies", Lede: "Each asks one question: a base recipe, the factors that are varied, and the seeds.",
		Actions: []templates.ActionView{{Label: "New study", Href: "/studies/new", Kind: "primary", Icon: "plus", Key: "n"}},
		Which: templates.ChoiceView{Label: "Which studies", Options: []templates.ChoiceOption{
			{Label: fmt.Sprintf("open %d", len(recs)-archived), Href: "/studies", On: which == "open"},
			{Label: fmt.Sprintf("archived %d", archived), Href: "/studies?show=archived", On: which == "archived"},
			{Label: fmt.Sprintf("all %d", len(recs)), Href: "/studies?show=all", On: which == "all"},
		}},
		Live:    templates.LiveConfig{Metrics: primaryMetrics(recs)},
		Note:    "newest first",
		Studies: studyRows(shown, runs, last, s.now()),
	}
	if len(shown) == 0 {
		v.Empty = &templates.EmptyView{Title: "No study here", Text: "Studies appear here as soon as they are launched.", Actions: []templates.ActionView{{Label: "New study", Href: "/studies/new"}}}
		if which == "archived" {
			v.Empty = &templates.EmptyView{Title: "Nothing is archived", Text: "Archived studies keep all their data and can be brought back from here."}
		}
	}
	p := s.view(r, "studies", "studies", "Studies")
	p.Keys = []templates.Key{{Keys: []string{"n"}, Label: "new study"}, {Keys: []string{"j", "k"}, Label: "move"}, {Keys: []string{"↵"}, Label: "open"}}
	return s.render(w, r, http.StatusOK, templates.Studies(p, v))
}

// studyRows builds the table of studies.
func studyRows(recs []ablation.StudyRecord, runs []ablation.Run, last map[ablation.RunID]map[string]ablation.Point, now time.Time) []templates.StudyRow {
	count := map[ablation.StudyID]int{}
	for i := range runs {
		count[runs[i].Study]++
	}
	byStudy := make(map[ablation.StudyID][]ablation.Run, len(count))
	for id, n := range count {
		byStudy[id] = make([]ablation.Run, 0, n) // runs are large: no growing
	}
	for i := range runs {
		byStudy[runs[i].Study] = append(byStudy[runs[i].Study], runs[i])
	}
	var rows []templates.StudyRow
	for _, rec := range recs {
		of := byStudy[rec.ID]
		p := progressOf(of, now)
		rows = append(rows, templates.StudyRow{
			Number: studyNumber(rec.ID), Href: fmt.Sprintf("/studies/%d", rec.ID), Question: question(rec.Study),
			Design: designText(rec.Study, len(armsOf(of)), len(of)), Status: studyStatus(rec, p), Rule: studyRule(p, 120, p.Live > 0),
			Says: saysSoFar(rec.Study, of, p, last), Active: ago(rec.CreatedAt, now), At: rec.CreatedAt.UTC().Format(time.RFC3339), Archived: rec.Archived,
		})
	}
	return rows
}

// saysSoFar is what the primary metric shows, in one careful sentence: means
// and how many seeds they rest on; the study's page has the comparison.
func saysSoFar(st ablation.Study, runs []ablation.Run, p progress, last map[ablation.RunID]map[string]ablation.Point) string {
	info := infoOf(st.Metric)
	a := seedStats(runs, st.Metric, last, info.Lower)
	if len(a.byArm) == 0 {
		return "nothing to compare yet"
	}
	labels := map[int]string{}
	for _, arm := range armsOf(runs) {
		labels[arm.Index] = arm.Label
	}
	indexes := make([]int, 0, len(a.byArm))
	for i := range a.byArm {
		indexes = append(indexes, i)
	}
	slices.SortFunc(indexes, func(x, y int) int {
		dx, dy := a.byArm[x].Mean, a.byArm[y].Mean
		switch {
		case dx > dy != info.Lower && dx != dy:
			return -1
		case dx == dy:
			return x - y
		}
		return 1
	})
	name := func(i int) string { return fmt.Sprintf("%s %s", labels[i], info.format(a.byArm[i].Mean)) }
	unit := info.unitText()
	if unit != "" {
		unit = thin + unit
	}
	text := fmt.Sprintf("%s: %s%s", lowerFirst(info.Label), name(indexes[0]), unit)
	if n := len(indexes); n > 1 {
		text += fmt.Sprintf(", down to %s%s", name(indexes[n-1]), unit)
	}
	if p.Finished < p.Runs {
		text += "; provisional"
	}
	return text
}
