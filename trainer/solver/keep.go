package solver

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"alidade/ablation"
	"alidade/sandbox/travel"
	"alidade/sandbox/travel/dataset"
	"alidade/sandbox/travel/synth"
	"alidade/trainer"
)

// The files of a kept set of queries.
const (
	queriesFile    = "queries.jsonl" // the benchmark's form, with the certificate as the annotated plan
	cardFile       = "card.json"
	provenanceFile = "provenance.json" // written last: a folder that holds it is complete
)

// setKey is what a set of queries depends on.
type setKey struct {
	Code         string
	World        string // hash of the world's rows
	Kind         string // of world
	Cities       int
	Prompts      int
	Mix          string
	Days         int
	Seed         uint64
	RunSeed      uint64
	Sampler      string
	BudgetFactor float64
}

// keep writes the certified queries with their card as a data set, once for
// all runs that draw the same, and announces it.
func keep(spec trainer.Spec, world *synth.World, out *trainer.Writer, queries []travel.Query, sols []synth.Solution, counts synth.Counts) error {
	if spec.Artifacts == "" {
		return nil
	}
	r := spec.Recipe
	sampler := r.Data.Sampler
	if sampler == "" {
		sampler = string(synth.SamplerStar)
	}
	key := setKey{Version, world.Hash(), r.Environment.World, len(world.Cities()), len(queries), r.Data.Mix, r.Environment.Days, r.Data.Seed, spec.Seed, sampler, r.Environment.BudgetFactor}
	src, err := json.Marshal(key)
	if err != nil {
		return fmt.Errorf("keep queries: %w", err)
	}
	sum := sha256.Sum256(src)
	hash := hex.EncodeToString(sum[:8])
	dir := filepath.Join(spec.Artifacts, "dataset", hash)
	made := dataset.Made{Sampler: sampler, Mix: r.Data.Mix, Seed: r.Data.Seed, BudgetFactor: r.Environment.BudgetFactor, Certified: true}
	lines := make([]travel.QueryLine, len(queries))
	for i, q := range queries {
		lines[i] = travel.QueryLine{ID: q.Hash(), Query: q, Plan: travel.NewPlan(sols[i].Days)}
	}
	card := dataset.NewCard(spec.Study, dataset.Describe(r.Environment.World, world.World), made, lines, sols, &counts)
	bytes, err := writeSet(dir, lines, card, map[string]any{"kind": "dataset", "hash": hash, "of": key, "run": spec.Run, "made": time.Now().UTC()})
	if err != nil {
		return fmt.Errorf("keep queries: %w", err)
	}
	path := dir
	if rel, err := filepath.Rel(filepath.Dir(spec.Artifacts), dir); err == nil {
		path = rel
	}
	return out.Artifact(ablation.Artifact{Kind: "dataset", Hash: hash, Path: path, Bytes: bytes, Run: spec.Run, CreatedAt: time.Now().UTC(),
		Provenance: map[string]any{"of": key, "cities": len(world.Cities()), "prompts": len(lines), "solvable": share(card.Solvable)}})
}

func share(s *dataset.Share) float64 {
	if s == nil {
		return 0
	}
	return s.Share
}

// writeSet fills the folder of a set, in one step: another run may be writing
// the same. It returns the size of the queries.
func writeSet(dir string, lines []travel.QueryLine, card dataset.Card, provenance map[string]any) (int64, error) {
	if info, err := os.Stat(filepath.Join(dir, provenanceFile)); err == nil && info.Mode().IsRegular() {
		return sizeOf(filepath.Join(dir, queriesFile)), nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return 0, err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+"-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(tmp) // gone once it is renamed
	src, err := json.MarshalIndent(provenance, "", " ")
	if err = errors.Join(err,
		dataset.Write(filepath.Join(tmp, queriesFile), dataset.FormTravelPlanner, lines, dataset.Rows{}),
		dataset.WriteCard(filepath.Join(tmp, cardFile), card),
		os.WriteFile(filepath.Join(tmp, provenanceFile), append(src, '\n'), 0o644),
		os.Chmod(tmp, 0o755)); err != nil {
		return 0, err
	}
	size := sizeOf(filepath.Join(tmp, queriesFile))
	if err := os.Rename(tmp, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return 0, err
	}
	return size, nil
}

func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
