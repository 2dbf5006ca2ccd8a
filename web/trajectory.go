package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/go-chi/chi/v5"

	"alidade/ablation"
	"alidade/store"
	"alidade/templates"
	"alidade/trainer"
)

// maxGroup bounds how many rollouts of one group are read.
const maxGroup = 256

// rawShown is how much of a stored record the raw view carries, in bytes.
const rawShown = 64 << 10

// trajectoryPage shows one rollout; ?view=raw shows the record as stored,
// ?tokens=advantage the advantage of each token instead of its entropy.
func (s *site) trajectoryPage(w http.ResponseWriter, r *http.Request) error {
	run, t, raw, err := s.trajectoryOf(r)
	if err != nil {
		return err
	}
	group, err := s.groupHeads(r.Context(), run.ID, t.Group)
	if err != nil {
		return err
	}
	v := trajectoryView(&t, run, group, r.URL.Query().Get("tokens"))
	if r.URL.Query().Get("view") == "raw" {
		v.Raw = rawOf(raw)
		v.View.Options[0].On, v.View.Options[1].On = false, true
	}
	p := s.view(r, "trajectories", "trajectory", templates.Plain(v.Title))
	p.Crumbs, err = s.trajectoryCrumbs(r.Context(), run, &t)
	if err != nil {
		return err
	}
	p.Keys = []templates.Key{
		{Keys: []string{"j", "k"}, Label: "turn"}, {Keys: []string{"o"}, Label: "unfold"},
		{Keys: []string{"h", "l"}, Label: "rollout"}, {Keys: []string{"y"}, Label: "copy link"},
	}
	return s.render(w, r, http.StatusOK, templates.TrajectoryPage(p, v))
}

// trajectoryTurn answers one whole turn as a fragment of the page.
func (s *site) trajectoryTurn(w http.ResponseWriter, r *http.Request) error {
	run, t, _, err := s.trajectoryOf(r)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(chi.URLParam(r, "turn"))
	if err != nil || n < 1 || n > len(t.Turns) {
		return fmt.Errorf("turn %q of %d: %w", chi.URLParam(r, "turn"), len(t.Turns), ablation.ErrNotFound)
	}
	v := turnOf(&t, indexPlan(t.Plan), measureOf(&t, r.URL.Query().Get("tokens")), n-1, limits{rows: wholeRows, text: wholeText}, trajectoryPath(run.ID, t.ID))
	v.Open = true
	v.LoadURL = ""
	return s.render(w, r, http.StatusOK, templates.Turn(v))
}

// trajectoryMessages answers the episode as chat messages.
func (s *site) trajectoryMessages(w http.ResponseWriter, r *http.Request) error {
	_, t, _, err := s.trajectoryOf(r)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, messagesOf(&t))
}

// trajectoryOf reads the run and the trajectory that the route names.
func (s *site) trajectoryOf(r *http.Request) (ablation.Run, trainer.Trajectory, []byte, error) {
	id, err := runID(r)
	if err != nil {
		return ablation.Run{}, trainer.Trajectory{}, nil, err
	}
	run, err := s.Store.Run(r.Context(), id)
	if err != nil {
		return ablation.Run{}, trainer.Trajectory{}, nil, fmt.Errorf("run %d: %w", id, err)
	}
	tid, err := pathText(r, "trajectory")
	if err != nil {
		return ablation.Run{}, trainer.Trajectory{}, nil, err
	}
	t, raw, err := s.Store.Trajectory(r.Context(), id, tid)
	if err != nil {
		return ablation.Run{}, trainer.Trajectory{}, nil, fmt.Errorf("trajectory %s of run %d: %w", templates.Plain(tid), id, err)
	}
	return run, t, raw, nil
}

// pathText reads a part of the route that may carry escaped characters.
func pathText(r *http.Request, name string) (string, error) {
	text, err := url.PathUnescape(chi.URLParam(r, name))
	if err != nil || text == "" || len(text) > 512 {
		return "", fmt.Errorf("%s: %w", name, ablation.ErrNotFound)
	}
	return text, nil
}

// groupHeads are the rollouts of one prompt at one step, in rollout order.
func (s *site) groupHeads(ctx context.Context, run ablation.RunID, group string) ([]store.TrajectoryHead, error) {
	if group == "" {
		return nil, nil
	}
	heads, _, err := s.Store.Trajectories(ctx, store.TrajectoryFilter{Runs: []ablation.RunID{run}, Group: group, Limit: maxGroup})
	if err != nil {
		return nil, fmt.Errorf("group %s: %w", templates.Plain(group), err)
	}
	return heads, nil
}

func (s *site) trajectoryCrumbs(ctx context.Context, run ablation.Run, t *trainer.Trajectory) ([]templates.Crumb, error) {
	crumbs, err := s.runCrumbs(ctx, run)
	if err != nil {
		return nil, err
	}
	crumbs = append(crumbs, templates.Crumb{Label: stepWord(t.Phase, t.Step), Href: stepPath(run.ID, t.Phase, t.Step)})
	if t.Group != "" {
		crumbs = append(crumbs, templates.Crumb{Label: "prompt " + shortGroup(t.Group), Href: groupPath(run.ID, t.Group)})
	}
	return append(crumbs, templates.Crumb{Label: fmt.Sprintf("rollout %d", t.Rollout+1)}), nil
}

// runCrumbs are the study and the run of a page below a run.
func (s *site) runCrumbs(ctx context.Context, run ablation.Run) ([]templates.Crumb, error) {
	st, err := s.Store.Study(ctx, run.Study)
	if err != nil {
		return nil, fmt.Errorf("study %d: %w", run.Study, err)
	}
	return []templates.Crumb{
		{Label: st.Study.Name, Href: fmt.Sprintf("/studies/%d", run.Study)},
		{Label: fmt.Sprintf("run %d, %s, seed %d", run.ID, run.Arm.Label, run.Seed), Href: fmt.Sprintf("/runs/%d", run.ID)},
	}, nil
}

func stepWord(phase string, step int64) string {
	if phase == "" || phase == "rl" {
		return "step " + digits(step)
	}
	return templates.Plain(phase) + " at step " + digits(step)
}

// stepPath lists the trajectories of one step.
func stepPath(run ablation.RunID, phase string, step int64) string {
	q := url.Values{"run": {fmt.Sprint(run)}, "from": {fmt.Sprint(step)}, "to": {fmt.Sprint(step)}}
	if phase != "" {
		q.Set("phase", phase)
	}
	return "/trajectories?" + q.Encode()
}

// shortGroup is the last part of a group's id, which names the prompt.
func shortGroup(group string) string {
	for i := len(group) - 1; i >= 0; i-- {
		if group[i] == '-' || group[i] == '/' || group[i] == ':' {
			if i+1 < len(group) {
				return templates.Plain(group[i+1:])
			}
			break
		}
	}
	return templates.Plain(group)
}

// rawOf is the start of the stored record, laid out when all of it is shown.
func rawOf(raw []byte) *templates.RawView {
	if len(raw) <= rawShown {
		return &templates.RawView{Text: indentJSON(raw), Showing: "all " + digits(int64(len(raw))) + " bytes"}
	}
	cut := raw[:rawShown]
	for len(cut) > 0 && cut[len(cut)-1] >= 0x80 { // not inside a character
		cut = cut[:len(cut)-1]
	}
	return &templates.RawView{Text: string(cut), Showing: "the first " + digits(int64(len(cut))) + " of " + digits(int64(len(raw))) + " bytes"}
}
