package store

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"alidade/ablation"
)

func TestCreateStudyAndReadItBack(t *testing.T) {
	s := open(t, t.TempDir())
	st, _ := study(t, "rewards", 2)
	st.Factors = append(st.Factors, ablation.Factor{Key: "algorithm.group_size", Levels: []any{int64(4), int64(8)}})
	planned, err := ablation.Expand(st)
	if err != nil {
		t.Fatal(err)
	}
	rec, runs, err := s.CreateStudy(t.Context(), st, "name: rewards # as written\n", planned)
	if err != nil {
		t.Fatal(err)
	}
	if len(runs) != 8 || rec.ID != 1 || runs[0].ID != 1 || runs[0].State != ablation.Queued {
		t.Fatalf("CreateStudy = study %d, %d runs", rec.ID, len(runs))
	}
	got, err := s.Study(t.Context(), rec.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rec, got); diff != "" {
		t.Errorf("study read back (-want +got):\n%s", diff)
	}
	back, err := s.Runs(t.Context(), RunFilter{Study: rec.ID})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(runs, back); diff != "" {
		t.Errorf("runs read back (-want +got):\n%s", diff)
	}
	for _, path := range []string{"studies/1/study.yaml", "studies/1/study.json", "runs/8/run.json"} {
		if _, err := os.Stat(filepath.Join(s.Dir(), path)); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.Study(t.Context(), 99); !errors.Is(err, ablation.ErrNotFound) {
		t.Errorf("Study(99) = %v, want ErrNotFound", err)
	}
	if _, err := s.Run(t.Context(), 99); !errors.Is(err, ablation.ErrNotFound) {
		t.Errorf("Run(99) = %v, want ErrNotFound", err)
	}
}

func TestRunFilter(t *testing.T) {
	s := open(t, t.TempDir())
	runs := create(t, s, 3)
	start(t, s, 2, 1, 0)
	tests := []struct {
		name string
		f    RunFilter
		want []ablation.RunID
	}{
		{"all", RunFilter{}, []ablation.RunID{1, 2, 3, 4, 5, 6}},
		{"states", RunFilter{States: []ablation.State{ablation.Running, ablation.Lost}}, []ablation.RunID{2}},
		{"ids", RunFilter{IDs: []ablation.RunID{5, 3, 77}}, []ablation.RunID{3, 5}},
		{"no ids", RunFilter{IDs: []ablation.RunID{}}, []ablation.RunID{}},
		{"page", RunFilter{Study: runs[0].Study, Limit: 2, Offset: 3}, []ablation.RunID{4, 5}},
		{"other study", RunFilter{Study: 9}, []ablation.RunID{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := s.Runs(t.Context(), tt.f)
			if err != nil {
				t.Fatal(err)
			}
			ids := []ablation.RunID{}
			for _, r := range got {
				ids = append(ids, r.ID)
			}
			if !equal(ids, tt.want) {
				t.Errorf("Runs(%+v) = %v, want %v", tt.f, ids, tt.want)
			}
		})
	}
}

func TestAddRunsRefusesWhatIsThere(t *testing.T) {
	s := open(t, t.TempDir())
	runs := create(t, s, 2)
	_, planned := study(t, "rewards", 3)
	slices.SortStableFunc(planned, func(a, b ablation.Planned) int { return int(a.Seed) - int(b.Seed) })
	if _, err := s.AddRuns(t.Context(), runs[0].Study, planned); !errors.Is(err, ablation.ErrConflict) {
		t.Fatalf("AddRuns of stored seeds = %v, want ErrConflict", err)
	}
	if all, _ := s.Runs(t.Context(), RunFilter{}); len(all) != 4 {
		t.Errorf("%d runs after the refusal, want 4", len(all))
	}
	if _, err := os.Stat(s.RunDir(5)); !os.IsNotExist(err) {
		t.Errorf("a folder was left behind: %v", err)
	}
	added, err := s.AddRuns(t.Context(), runs[0].Study, planned[4:])
	if err != nil || len(added) != 2 || added[0].ID != 5 || added[0].Seed != 3 {
		t.Errorf("AddRuns = %v, %v", added, err)
	}
	if _, err := s.AddRuns(t.Context(), 9, planned[4:]); !errors.Is(err, ablation.ErrNotFound) {
		t.Errorf("AddRuns to study 9 = %v, want ErrNotFound", err)
	}
}

func TestMoveFollowsTheRules(t *testing.T) {
	s := open(t, t.TempDir())
	run := create(t, s, 1)[0].ID
	w := s.RunWriter()
	if _, err := w.Move(t.Context(), run, ablation.EvSucceeded, nil); !errors.Is(err, ablation.ErrConflict) {
		t.Errorf("a queued run that succeeds: %v, want ErrConflict", err)
	}
	got, err := w.Move(t.Context(), run, ablation.EvLaunch, func(r *ablation.Run) { r.Device, r.StartedAt = "cpu0", clock(7) })
	if err != nil || got.State != ablation.Starting || got.Device != "cpu0" {
		t.Fatalf("Move = %+v, %v", got, err)
	}
	back, err := s.Run(t.Context(), run)
	if diff := cmp.Diff(got, back); err != nil || diff != "" {
		t.Errorf("read back: %v\n%s", err, diff)
	}
	if _, err := w.Move(t.Context(), 99, ablation.EvLaunch, nil); !errors.Is(err, ablation.ErrNotFound) {
		t.Errorf("Move(99) = %v, want ErrNotFound", err)
	}
	if err := os.RemoveAll(s.RunDir(run)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Move(t.Context(), run, ablation.EvStarted, nil); err != nil {
		t.Errorf("Move of a run whose folder is gone: %v", err)
	}
}

func TestStudyFlags(t *testing.T) {
	s := open(t, t.TempDir())
	create(t, s, 1)
	if err := errors.Join(s.SetStudyPaused(t.Context(), 1, true), s.SetStudyArchived(t.Context(), 1, true)); err != nil {
		t.Fatal(err)
	}
	got, err := s.Studies(t.Context())
	if err != nil || len(got) != 1 || !got[0].Paused || !got[0].Archived {
		t.Errorf("Studies = %+v, %v", got, err)
	}
	if err := s.SetStudyPaused(t.Context(), 5, true); !errors.Is(err, ablation.ErrNotFound) {
		t.Errorf("SetStudyPaused(5) = %v, want ErrNotFound", err)
	}
}

func TestAttempts(t *testing.T) {
	s := open(t, t.TempDir())
	run := create(t, s, 1)[0].ID
	start(t, s, run, 1, 0)
	w := s.RunWriter()
	if err := w.StartAttempt(t.Context(), ablation.Attempt{Run: run, Number: 1}); !errors.Is(err, ablation.ErrConflict) {
		t.Errorf("the same attempt again: %v, want ErrConflict", err)
	}
	if err := w.StartAttempt(t.Context(), ablation.Attempt{Run: 99, Number: 1}); !errors.Is(err, ablation.ErrNotFound) {
		t.Errorf("an attempt of run 99: %v, want ErrNotFound", err)
	}
	code := 137
	end := ablation.Attempt{Run: run, Number: 1, Dir: s.AttemptDir(run, 1), Device: "cpu0", PID: 42, State: ablation.Failed,
		ExitCode: &code, Signal: "killed", Cause: "killed by signal", StartedAt: clock(1), EndedAt: clock(9)}
	if err := w.EndAttempt(t.Context(), end); err != nil {
		t.Fatal(err)
	}
	got, err := s.Attempts(t.Context(), run)
	if diff := cmp.Diff([]ablation.Attempt{end}, got); err != nil || diff != "" {
		t.Errorf("Attempts: %v\n%s", err, diff)
	}
	if err := w.EndAttempt(t.Context(), ablation.Attempt{Run: run, Number: 2}); !errors.Is(err, ablation.ErrNotFound) {
		t.Errorf("EndAttempt of attempt 2 = %v, want ErrNotFound", err)
	}
}
