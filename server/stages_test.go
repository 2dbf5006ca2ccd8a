package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"alidade/ablation"
	"alidade/web"
)

// TestEqualStagesRunOnce: three arms that differ in the reward share each
// seed's SFT checkpoint. One run of a seed makes it, the others wait in the
// queue and hold no slot meanwhile; other work goes past them.
func TestEqualStagesRunOnce(t *testing.T) {
	data := t.TempDir()
	p := serve(t, data, "--cpu-slots", "4")
	study := tiny("shared", 4, "factors:\n  - key: reward.kind\n    levels: [SUM, MACRO, SUCCESS]\n", "[1]")
	shared := p.launch(t, strings.Replace(study, "traces: 40, epochs: 1", "traces: 200, epochs: 6", 1))
	other := p.launch(t, solverStudy("other", 5, "1"))
	var reasons []string
	waitFor(t, time.Minute, "the queue to say what it waits for", func() bool {
		var q struct{ Waiting []web.Waiting }
		p.call(t, http.MethodGet, "/api/v1/queue", "", &q)
		reasons = nil
		for _, w := range q.Waiting {
			reasons = append(reasons, w.Reason)
		}
		return len(q.Waiting) == 2 && q.Waiting[0].Reason != ""
	})
	for _, why := range reasons {
		if why != "waits for the SFT checkpoint of run 1" {
			t.Errorf("a run %s", why)
		}
	}
	if body := p.html(t, "/runs"); !strings.Contains(body, "aits for the SFT checkpoint of run 1") {
		t.Error("the page of runs does not say what they wait for")
	}
	for _, id := range []ablation.StudyID{other, shared} {
		for _, r := range p.wait(t, id, 4*time.Minute) {
			if r.State != ablation.Succeeded {
				t.Errorf("run %d is %s: %s", r.ID, r.State, r.Cause)
			}
		}
	}
	p.stop(t)
	s := openStore(t, data)
	defer s.Close()
	var made time.Time
	hashes := make(map[string]bool)
	for id := ablation.RunID(1); id <= 4; id++ {
		artifacts, err := s.Artifacts(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		attempts, err := s.Attempts(t.Context(), id)
		if err != nil || len(attempts) != 1 {
			t.Fatalf("run %d: %d attempts, %v", id, len(attempts), err)
		}
		began := attempts[0].StartedAt
		for _, a := range artifacts {
			if a.Kind != ablation.StageSFT {
				continue
			}
			hashes[a.Hash] = true
			if a.Run != 1 {
				t.Errorf("run %d's SFT checkpoint was made by run %d", id, a.Run)
			}
			made = a.CreatedAt
			if id != 1 && began.Before(made) {
				t.Errorf("run %d started %s before its SFT checkpoint was there", id, made.Sub(began))
			}
		}
		if id == 4 && !began.Before(made) {
			t.Errorf("run 4, which shares nothing, started %s after that checkpoint", began.Sub(made))
		}
	}
	if len(hashes) != 1 {
		t.Errorf("%d SFT checkpoints, want one", len(hashes))
	}
}
