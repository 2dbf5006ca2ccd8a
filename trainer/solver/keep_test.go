package solver_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"alidade/ablation"
	"alidade/sandbox/travel/dataset"
	"alidade/trainer"
)

// TestKeepsItsQueries: what the solver drew is a data set with a card, each
// query with a plan that passes.
func TestKeepsItsQueries(t *testing.T) {
	var a *ablation.Artifact
	for _, e := range run(t, func(r *ablation.Recipe) { r.Data.Prompts, r.Data.Sampler = 10, "travelplanner" }) {
		if e.Kind == trainer.KindArtifact {
			a = e.Artifact
		}
	}
	if a == nil || a.Kind != "dataset" || filepath.Dir(a.Path) != "artifacts/dataset" {
		t.Fatalf("artifact = %+v, want a dataset below artifacts/dataset", a)
	}
	// the spec of run() lies beside its artifacts folder
	matches, _ := filepath.Glob(filepath.Join(os.TempDir(), "Test*", "*", a.Path))
	if len(matches) == 0 {
		t.Skip("the test's folder is not below the temporary folder")
	}
	lines, err := dataset.Read(filepath.Join(matches[0], "queries.jsonl"))
	if err != nil || len(lines) != 10 {
		t.Fatalf("%d queries: %v", len(lines), err)
	}
	for _, l := range lines {
		if !l.Plan.Delivered() || l.ID != l.Query.Hash() {
			t.Errorf("query %s has no plan or another id", l.ID)
		}
	}
	src, err := os.ReadFile(filepath.Join(matches[0], "card.json"))
	if err != nil {
		t.Fatal(err)
	}
	var card dataset.Card
	if err := json.Unmarshal(src, &card); err != nil {
		t.Fatal(err)
	}
	if card.Queries != 10 || card.Counts == nil || card.Made.Sampler != "travelplanner" || card.Levels["easy"] != 4 {
		t.Errorf("card = %+v", card)
	}
}
