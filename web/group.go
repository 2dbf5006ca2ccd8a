package web

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"alidade/ablation"
	"alidade/store"
	"alidade/templates"
	"alidade/trainer"
)

// groupsOfStep bounds how many rollouts of a step the strip reads.
const groupsOfStep = 2048

// groupPage shows the rollouts of one prompt at one step.
func (s *site) groupPage(w http.ResponseWriter, r *http.Request) error {
	id, err := runID(r)
	if err != nil {
		return err
	}
	run, err := s.Store.Run(r.Context(), id)
	if err != nil {
		return fmt.Errorf("run %d: %w", id, err)
	}
	name, err := pathText(r, "group")
	if err != nil {
		return err
	}
	group, err := s.readGroup(r.Context(), id, name)
	if err != nil {
		return err
	}
	first := &group[0]
	step, err := s.stepHeads(r.Context(), id, first)
	if err != nil {
		return err
	}
	v := groupView(run, group, step)
	p := s.view(r, "trajectories", "group", v.Title)
	if p.Crumbs, err = s.runCrumbs(r.Context(), run); err != nil {
		return err
	}
	p.Crumbs = append(p.Crumbs,
		templates.Crumb{Label: stepWord(first.Phase, first.Step), Href: stepPath(id, first.Phase, first.Step)},
		templates.Crumb{Label: "prompt " + shortGroup(name)})
	p.Keys = []templates.Key{
		{Keys: []string{"←", "→"}, Label: "rollout"}, {Keys: []string{"↑", "↓"}, Label: "constraint"},
		{Keys: []string{"↵"}, Label: "open at the item"}, {Keys: []string{"[", "]"}, Label: "group"},
	}
	return s.render(w, r, http.StatusOK, templates.GroupPage(p, v))
}

// readGroup reads every rollout of a group, best reward first.
func (s *site) readGroup(ctx context.Context, run ablation.RunID, name string) ([]trainer.Trajectory, error) {
	heads, err := s.groupHeads(ctx, run, name)
	if err != nil {
		return nil, err
	}
	if len(heads) == 0 {
		return nil, fmt.Errorf("group %s of run %d: %w", templates.Plain(name), run, ablation.ErrNotFound)
	}
	group := make([]trainer.Trajectory, len(heads))
	for i, h := range heads {
		if group[i], _, err = s.Store.Trajectory(ctx, run, h.ID); err != nil {
			return nil, fmt.Errorf("trajectory %s: %w", templates.Plain(h.ID), err)
		}
		group[i].Turns = nil // the page needs the outcome alone
	}
	sortGroup(group)
	return group, nil
}

// sortGroup puts the best reward first, ties in rollout order.
func sortGroup(group []trainer.Trajectory) {
	slices.SortStableFunc(group, func(a, b trainer.Trajectory) int {
		switch {
		case a.Reward > b.Reward:
			return -1
		case a.Reward < b.Reward:
			return 1
		}
		return a.Rollout - b.Rollout
	})
}

// stepHeads are the stored rollouts of the step that t belongs to.
func (s *site) stepHeads(ctx context.Context, run ablation.RunID, t *trainer.Trajectory) ([]store.TrajectoryHead, error) {
	heads, _, err := s.Store.Trajectories(ctx, store.TrajectoryFilter{
		Runs: []ablation.RunID{run}, Phase: t.Phase, Mode: t.Mode, Policy: t.Policy, StepFrom: &t.Step, StepTo: &t.Step, Limit: groupsOfStep,
	})
	if err != nil {
		return nil, fmt.Errorf("rollouts of step %d: %w", t.Step, err)
	}
	return heads, nil
}
