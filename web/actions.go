package web

import (
	"context"
	"fmt"
	"net/http"

	"github.com/go-chi/chi/v5"

	"alidade/ablation"
)

// Actions are posted by programs to /api/v1/… and by the pages' forms to the
// same words under the page's address; both end here.

func (s *site) actOnStudy(ctx context.Context, id ablation.StudyID, act string) error {
	if _, err := s.Store.Study(ctx, id); err != nil {
		return fmt.Errorf("read study %d: %w", id, err)
	}
	switch act {
	case "archive":
		return s.Store.SetStudyArchived(ctx, id, true)
	case "unarchive":
		return s.Store.SetStudyArchived(ctx, id, false)
	}
	if s.Runs == nil {
		return errReadOnly
	}
	switch act {
	case "pause":
		return s.Runs.PauseStudy(ctx, id)
	case "resume":
		return s.Runs.ResumeStudy(ctx, id)
	case "stop":
		return s.Runs.StopStudy(ctx, id)
	}
	if s.Queue == nil {
		return errReadOnly
	}
	switch act {
	case "unstop":
		return s.Queue.TakeBack(ctx, id, "stop")
	case "uncomplete":
		return s.Queue.TakeBack(ctx, id, "complete")
	}
	_, err := s.Queue.Complete(ctx, id)
	return err
}

func (s *site) actOnRun(ctx context.Context, id ablation.RunID, act string) error {
	if _, err := s.Store.Run(ctx, id); err != nil {
		return fmt.Errorf("read run %d: %w", id, err)
	}
	if s.Runs == nil {
		return errReadOnly
	}
	switch act {
	case "stop":
		return s.Runs.Stop(ctx, id)
	case "resume":
		return s.Runs.Resume(ctx, id)
	}
	if s.Queue == nil {
		return errReadOnly
	}
	switch act {
	case "pause":
		return s.Queue.PauseRun(ctx, id)
	case "unpause":
		return s.Queue.ResumeRun(ctx, id)
	case "up":
		return s.Queue.MoveBy(ctx, id, -1)
	case "down":
		return s.Queue.MoveBy(ctx, id, 1)
	case "dump":
		_, err := s.Queue.Dump(ctx, id)
		return err
	case "first":
		return s.Queue.MoveFirst(ctx, id)
	case "last":
		return s.Queue.MoveLast(ctx, id)
	}
	return ablation.ErrNotFound
}

func (s *site) apiStudyAct(w http.ResponseWriter, r *http.Request) error {
	id, err := studyID(r)
	if err != nil {
		return err
	}
	act := chi.URLParam(r, "act")
	if err := s.actOnStudy(r.Context(), id, act); err != nil {
		return fmt.Errorf("%s study %d: %w", act, id, err)
	}
	rec, err := s.Store.Study(r.Context(), id)
	if err != nil {
		return fmt.Errorf("read study %d: %w", id, err)
	}
	return writeJSON(w, http.StatusOK, rec)
}

func (s *site) apiRunAct(w http.ResponseWriter, r *http.Request) error {
	id, err := runID(r)
	if err != nil {
		return err
	}
	act := chi.URLParam(r, "act")
	if err := s.actOnRun(r.Context(), id, act); err != nil {
		return fmt.Errorf("%s run %d: %w", act, id, err)
	}
	run, err := s.Store.Run(r.Context(), id)
	if err != nil {
		return fmt.Errorf("read run %d: %w", id, err)
	}
	return writeJSON(w, http.StatusOK, run)
}

// postStudy is a page's form: act, then show the study again.
func (s *site) postStudy(w http.ResponseWriter, r *http.Request) error {
	id, err := studyID(r)
	if err != nil {
		return err
	}
	act := chi.URLParam(r, "act")
	if err := s.actOnStudy(r.Context(), id, act); err != nil {
		return fmt.Errorf("%s study %d: %w", act, id, err)
	}
	http.Redirect(w, r, fmt.Sprintf("/studies/%d", id), http.StatusSeeOther)
	return nil
}

func (s *site) postRun(w http.ResponseWriter, r *http.Request) error {
	id, err := runID(r)
	if err != nil {
		return err
	}
	act := chi.URLParam(r, "act")
	if err := s.actOnRun(r.Context(), id, act); err != nil {
		return fmt.Errorf("%s run %d: %w", act, id, err)
	}
	to := fmt.Sprintf("/runs/%d", id)
	if act == "dump" {
		to += "?log=dump#log"
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
	return nil
}
