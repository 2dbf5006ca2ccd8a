package synth

import (
	"fmt"
	"path/filepath"

	"alidade/ablation"
)

// OpenRecipe opens the world that a recipe names. artifacts is the folder that
// keeps the caches of large worlds; "" keeps none.
func OpenRecipe(r ablation.Recipe, artifacts string) (*World, error) {
	e := r.Environment
	s := Spec{Kind: Generated, Cities: e.Cities, Seed: r.Data.Seed}
	switch e.World {
	case "real":
		s.Kind, s.Dir = Real, e.Tables
	case "reference":
		s.Kind, s.File, s.States = Reference, filepath.Join(e.Tables, "train_ref_info.jsonl"), filepath.Join(e.Tables, "city_states.tsv")
	case "full":
		s.Cities = Sizes()["full"]
	}
	if artifacts != "" && (e.World == "full" || e.World == "real") {
		s.Cache = filepath.Join(artifacts, "worlds")
	}
	w, _, err := Open(s)
	if err != nil {
		return nil, fmt.Errorf("recipe.environment: %w", err)
	}
	return w, nil
}
