package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/go-chi/chi/v5"

	"alidade/ablation"
	"alidade/store"
	"alidade/templates"
)

// mostSeeds is how many seeds may be added at once.
const mostSeeds = 64

func (s *site) routesSeeds(r chi.Router) {
	r.Post("/api/v1/studies/{study}/seeds", s.page(s.apiSeeds))
	r.Post("/api/v1/studies/{study}/seeds/{n:[0-9]{1,3}}", s.page(s.apiSeeds))
	r.Post("/studies/{study:[0-9]+}/seeds/{n:[0-9]{1,3}}", s.page(s.postSeeds))
}

// designActions are what a study's design can still get.
func designActions(rec ablation.StudyRecord, runs []ablation.Run, p progress) []templates.ActionView {
	at := func(act string) string { return fmt.Sprintf("/studies/%d/%s", rec.ID, act) }
	arms := len(armsOf(runs))
	if arms == 0 {
		return nil
	}
	var out []templates.ActionView
	for _, n := range []int{1, 4} {
		out = append(out, templates.ActionView{
			Label: fmt.Sprintf("Add %s (%s)", plural(n, "seed", "seeds"), plural(n*arms, "run", "runs")), Icon: "plus", Post: at(fmt.Sprintf("seeds/%d", n)),
			Reload: true, Toast: fmt.Sprintf("%s queued: each arm with %s", plural(n*arms, "run", "runs"), plural(n, "further seed", "further seeds")),
		})
	}
	lack := max(0, arms*len(rec.Study.Seeds)-len(runs)) + p.ByState[ablation.Failed] + p.ByState[ablation.Stopped] + p.ByState[ablation.Lost]
	if lack > 0 {
		out = append(out, templates.ActionView{Label: fmt.Sprintf("Complete the design (%s)", plural(lack, "run", "runs")), Icon: "tick", Post: at("complete"),
			Toast: "Queued: every arm and seed that has no succeeded run and none on its way"})
	}
	return out
}

// nextSeeds are n seeds above all that the study has or has had.
func nextSeeds(st ablation.Study, runs []ablation.Run, n int) []uint64 {
	top := uint64(0)
	for _, s := range st.Seeds {
		top = max(top, s)
	}
	for _, r := range runs {
		top = max(top, r.Seed)
	}
	seeds := make([]uint64, n)
	for i := range seeds {
		seeds[i] = top + uint64(i) + 1
	}
	return seeds
}

// wantedSeeds reads which seeds a request adds: those it lists, or as many
// new ones as it says.
func wantedSeeds(r *http.Request) (list []uint64, n int, err error) {
	if text := chi.URLParam(r, "n"); text != "" {
		n, err = strconv.Atoi(text)
	} else {
		var body struct {
			Seeds []uint64 `json:"seeds"`
			N     int      `json:"n"`
		}
		dec := json.NewDecoder(r.Body)
		dec.DisallowUnknownFields()
		switch err = dec.Decode(&body); {
		case errors.Is(err, io.EOF):
			body.N, err = 1, nil
		case err != nil:
			return nil, 0, invalidParam("body", err.Error(), `{"seeds": [6, 7]} or {"n": 2}`)
		}
		list, n = body.Seeds, body.N
	}
	if err != nil || len(list) > mostSeeds || len(list) == 0 && (n < 1 || n > mostSeeds) {
		return nil, 0, invalidParam("n", strconv.Itoa(max(n, len(list))), fmt.Sprintf("1 to %d seeds", mostSeeds))
	}
	return list, n, nil
}

// addSeeds queues each arm of the study with further seeds.
func (s *site) addSeeds(ctx context.Context, id ablation.StudyID, r *http.Request) ([]ablation.RunID, error) {
	seeds, n, err := wantedSeeds(r)
	if err != nil {
		return nil, err
	}
	if s.Queue == nil {
		return nil, errReadOnly
	}
	if len(seeds) == 0 {
		rec, err := s.Store.Study(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("read study %d: %w", id, err)
		}
		runs, err := s.Store.Runs(ctx, store.RunFilter{Study: id})
		if err != nil {
			return nil, fmt.Errorf("read runs of study %d: %w", id, err)
		}
		seeds = nextSeeds(rec.Study, runs, n)
	}
	return s.Queue.AddSeeds(ctx, id, seeds)
}

func (s *site) apiSeeds(w http.ResponseWriter, r *http.Request) error {
	id, err := studyID(r)
	if err != nil {
		return err
	}
	added, err := s.addSeeds(r.Context(), id, r)
	if err != nil {
		return fmt.Errorf("add seeds to study %d: %w", id, err)
	}
	return writeJSON(w, http.StatusCreated, map[string]any{"added": append([]ablation.RunID{}, added...)})
}

func (s *site) postSeeds(w http.ResponseWriter, r *http.Request) error {
	id, err := studyID(r)
	if err != nil {
		return err
	}
	if _, err := s.addSeeds(r.Context(), id, r); err != nil {
		return fmt.Errorf("add seeds to study %d: %w", id, err)
	}
	http.Redirect(w, r, fmt.Sprintf("/studies/%d", id), http.StatusSeeOther)
	return nil
}
