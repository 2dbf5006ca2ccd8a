package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-chi/chi/v5"

	"alidade/ablation"
	"alidade/store"
	"alidade/templates"
)

// rolloutsOnPage is how many rows one page of the list holds.
const rolloutsOnPage = 100

func (s *site) routesTrajectories(r chi.Router) {
	r.Get("/trajectories", s.page(s.trajectoriesPage))
	r.Get("/runs/{run}/trajectories/{trajectory}", s.page(s.trajectoryPage))
	r.Get("/runs/{run}/trajectories/{trajectory}/turns/{turn}", s.page(s.trajectoryTurn))
	r.Get("/runs/{run}/trajectories/{trajectory}/messages.json", s.page(s.trajectoryMessages))
	r.Get("/runs/{run}/groups/{group}", s.page(s.groupPage))
	r.Get("/api/v1/trajectories", s.page(s.apiTrajectories))
	r.Get("/api/v1/runs/{run}/trajectories/{trajectory}", s.page(s.apiTrajectory))
}

// trajectoriesPage lists rollouts by the filters in the address.
func (s *site) trajectoriesPage(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	filter, page, err := trajectoryFilter(q)
	if err != nil {
		return err
	}
	heads, total, err := s.Store.Trajectories(r.Context(), filter)
	if err != nil {
		return fmt.Errorf("list trajectories: %w", err)
	}
	studies, err := s.Store.Studies(r.Context())
	if err != nil {
		return fmt.Errorf("list studies: %w", err)
	}
	runs, err := s.runsOf(r, heads)
	if err != nil {
		return err
	}
	v := trajectoriesView(q, filter, page, heads, total, studies, runs)
	p := s.view(r, "trajectories", "trajectories", "Trajectories")
	p.Keys = []templates.Key{{Keys: []string{"j", "k"}, Label: "move"}, {Keys: []string{"↵"}, Label: "open"}, {Keys: []string{"[", "]"}, Label: "page"}}
	return s.render(w, r, http.StatusOK, templates.TrajectoriesPage(p, v))
}

// runsOf reads the runs that the listed rollouts belong to.
func (s *site) runsOf(r *http.Request, heads []store.TrajectoryHead) (map[ablation.RunID]ablation.Run, error) {
	var ids []ablation.RunID
	byID := map[ablation.RunID]ablation.Run{}
	for _, h := range heads {
		if _, seen := byID[h.Run]; !seen {
			byID[h.Run] = ablation.Run{ID: h.Run}
			ids = append(ids, h.Run)
		}
	}
	if len(ids) == 0 {
		return byID, nil
	}
	runs, err := s.Store.Runs(r.Context(), store.RunFilter{IDs: ids})
	if err != nil {
		return nil, fmt.Errorf("runs of the listed trajectories: %w", err)
	}
	for _, run := range runs {
		byID[run.ID] = run
	}
	return byID, nil
}

// trajectoriesView builds the list page.
func trajectoriesView(q url.Values, f store.TrajectoryFilter, page int, heads []store.TrajectoryHead, total int, studies []ablation.StudyRecord, runs map[ablation.RunID]ablation.Run) templates.TrajectoriesView {
	v := templates.TrajectoriesView{
		Title: plural(total, "rollout", "rollouts"), ClearHref: "/trajectories",
		Lede:    "Every episode of every evaluation, and a seeded sample of whole groups from training.",
		Filter:  filterForm(q, f, studies),
		Chips:   filterChips(q, studies),
		Columns: sortColumns(q, f.Sort),
	}
	if len(v.Chips) > 0 {
		v.Title = plural(total, "rollout matches", "rollouts match")
	}
	for _, h := range heads {
		v.Rows = append(v.Rows, rowOf(h, runs[h.Run]))
	}
	v.Here = listLink(q, "page", "")
	first := f.Offset + 1
	if len(heads) > 0 {
		v.Shown = fmt.Sprintf("%s–%s of %s", digits(int64(first)), digits(int64(f.Offset+len(heads))), digits(int64(total)))
	}
	if page > 1 {
		v.Prev = listLink(q, "page", fmt.Sprint(page-1))
	}
	if f.Offset+len(heads) < total {
		v.Next = listLink(q, "page", fmt.Sprint(page+1))
	}
	if len(heads) == 0 {
		v.Empty = emptyList(len(v.Chips) > 0, total)
	}
	return v
}

func emptyList(filtered bool, total int) *templates.EmptyView {
	switch {
	case total > 0:
		return &templates.EmptyView{Title: "This page is past the end", Actions: []templates.ActionView{{Label: "First page", Href: "/trajectories"}}}
	case filtered:
		return &templates.EmptyView{Title: "No rollout matches", Text: "Take a filter off above, or clear them all.", Actions: []templates.ActionView{{Label: "Clear all", Href: "/trajectories"}}}
	}
	return &templates.EmptyView{Title: "No rollouts yet", Text: "Rollouts appear as runs evaluate and train: each turn, the plan, and how every check judged it.", Actions: []templates.ActionView{{Label: "New study", Href: "/studies/new", Kind: "primary"}}}
}

// rowOf is one rollout of the list.
func rowOf(h store.TrajectoryHead, run ablation.Run) templates.TrajectoryRow {
	r := templates.TrajectoryRow{
		Href:  trajectoryPath(h.Run, h.ID),
		Name:  rolloutName(h),
		Query: h.QueryText, Level: templates.Plain(h.Level), Phase: templates.Plain(h.Phase),
		RunRef: templates.Link{Label: fmt.Sprintf("run %d", h.Run), Href: fmt.Sprintf("/runs/%d", h.Run)},
		Reward: fixed(h.Reward, 3), Advantage: "–",
		Turns: digits(int64(h.Turns)), Tokens: digits(int64(h.Tokens)), Step: digits(h.Step),
		Outcome: outcomeOf(h),
	}
	if run.Arm.Label != "" {
		r.Arm = fmt.Sprintf("%s, seed %d", run.Arm.Label, run.Seed)
	}
	if text, cut := clip(h.QueryText, 240); cut {
		r.Query = text + "…"
	}
	if r.Query == "" {
		r.Query = "query " + h.QueryHash
	}
	if h.Group != "" {
		r.GroupRef = templates.Link{Label: "prompt " + shortGroup(h.Group), Href: groupPath(h.Run, h.Group)}
	}
	if h.Phase == "judge" { // plans that are only judged earn nothing
		r.Reward = "–"
	}
	if h.Advantage != nil {
		r.Advantage = signed(*h.Advantage, 2)
	}
	var failed []string
	for _, key := range h.Failed[:min(len(h.Failed), 3)] {
		failed = append(failed, nameOfCheck(key))
	}
	r.Failed = strings.Join(failed, ", ")
	if more := len(h.Failed) - 3; more > 0 {
		r.Failed += fmt.Sprintf(" and %d more", more)
	}
	if h.Injected > 0 {
		r.Flags = append(r.Flags, templates.Status{Kind: "break", Word: plural(h.Injected, "injected failure", "injected failures")})
	}
	if h.Overlong {
		r.Flags = append(r.Flags, templates.Status{Kind: "warn", Word: "over-long"})
	}
	return r
}

func rolloutName(h store.TrajectoryHead) string {
	name := fmt.Sprintf("rollout %d", h.Rollout+1)
	if h.Policy != "" && h.Policy != "policy" {
		name = templates.Plain(h.Policy) + " " + name
	}
	if h.Phase != "" && h.Phase != "rl" {
		name += ", " + templates.Plain(h.Phase)
		if h.Mode != "" && h.Mode != h.Policy {
			name += " " + templates.Plain(h.Mode)
		}
	}
	return name
}

// outcomeOf is a rollout's result in an icon and a word.
func outcomeOf(h store.TrajectoryHead) templates.Status {
	switch {
	case h.Success:
		return templates.Status{Kind: "ok", Word: "success"}
	case h.FormatError:
		return templates.Status{Kind: "bad", Word: "format error"}
	case h.End == "turns":
		return templates.Status{Kind: "warn", Word: "out of turns"}
	case h.End == "context":
		return templates.Status{Kind: "warn", Word: "context full"}
	case len(h.Failed) > 0:
		return templates.Status{Kind: "bad", Word: fmt.Sprintf("fails %d", len(h.Failed))}
	}
	return templates.Status{Kind: "bad", Word: "no success"}
}
