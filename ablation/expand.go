package ablation

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Expand turns a study into the runs to queue, round by round: each round has
// every arm once, so that a comparison is complete early, and neighbours have
// different seeds, so that runs that start together do not wait for each
// other's shared stages. It returns *Invalid when the study or any arm's
// recipe is not right.
func Expand(s Study) ([]Planned, error) {
	if bad := s.check(); len(bad) > 0 {
		return nil, &Invalid{Fields: bad}
	}
	arms, err := s.arms()
	if err != nil {
		return nil, err
	}
	if n := len(arms) * len(s.Seeds); n > MaxRuns {
		return nil, &Invalid{Fields: []FieldError{{Field: "design", Value: fmt.Sprintf("%d runs", n), Problem: "too many", Allowed: fmt.Sprintf("at most %d runs in a study", MaxRuns)}}}
	}
	runs := make([]Planned, 0, len(arms)*len(s.Seeds))
	for round := range s.Seeds {
		for i, a := range arms {
			runs = append(runs, Planned{Arm: a, Seed: s.Seeds[(i+round)%len(s.Seeds)]})
		}
	}
	return runs, nil
}

// Arms returns the study's arms in design order.
func Arms(s Study) ([]Arm, error) {
	if bad := s.check(); len(bad) > 0 {
		return nil, &Invalid{Fields: bad}
	}
	return s.arms()
}

func (s Study) arms() ([]Arm, error) {
	var combos []map[string]any
	switch s.Design {
	case DesignGrid:
		if n := s.gridSize(); n > MaxRuns {
			return nil, &Invalid{Fields: []FieldError{{Field: "design", Value: fmt.Sprintf("grid of %d arms", n), Problem: "too many", Allowed: fmt.Sprintf("at most %d runs in a study", MaxRuns)}}}
		}
		combos = grid(s.Factors)
	case DesignOneFactor:
		combos = s.oneFactor()
	case DesignList:
		combos = s.Arms
	}
	var arms []Arm
	var bad []FieldError
	seen := map[string]int{}
	for i, levels := range combos {
		a, err := s.arm(i, levels)
		if err != nil {
			for _, f := range fieldErrors(err) {
				if !slices.ContainsFunc(bad, func(b FieldError) bool { return b.Field == f.Field && b.Value == f.Value }) {
					bad = append(bad, f)
				}
			}
			continue
		}
		if j, twice := seen[a.Hash]; twice {
			bad = append(bad, FieldError{Field: fmt.Sprintf("arms[%d]", i), Value: a.Label, Problem: "the same recipe as arm " + fmt.Sprint(j+1), Allowed: "each recipe once"})
			continue
		}
		seen[a.Hash] = i
		arms = append(arms, a)
	}
	if len(bad) > 0 {
		return nil, &Invalid{Fields: bad}
	}
	return arms, nil
}

func fieldErrors(err error) []FieldError {
	var inv *Invalid
	if errors.As(err, &inv) {
		return inv.Fields
	}
	return appendFieldError(nil, err)
}

func (s Study) gridSize() int {
	n := 1
	for _, f := range s.Factors {
		n *= max(len(f.Levels), 1)
		if n > MaxRuns {
			return n
		}
	}
	return n
}

// grid is every combination of levels, the last factor varying fastest.
func grid(factors []Factor) []map[string]any {
	combos := []map[string]any{{}}
	for _, f := range factors {
		var next []map[string]any
		for _, c := range combos {
			for _, l := range f.Levels {
				m := map[string]any{}
				for k, v := range c {
					m[k] = v
				}
				m[f.Key] = l
				next = append(next, m)
			}
		}
		combos = next
	}
	return combos
}

// oneFactor is the reference arm (each factor at its first level) and then
// each factor's other levels with the rest held there.
func (s Study) oneFactor() []map[string]any {
	ref := map[string]any{}
	for _, f := range s.Factors {
		ref[f.Key] = f.Levels[0]
	}
	combos := []map[string]any{ref}
	for _, f := range s.Factors {
		for _, l := range f.Levels[1:] {
			m := map[string]any{}
			for k, v := range ref {
				m[k] = v
			}
			m[f.Key] = l
			combos = append(combos, m)
		}
	}
	return combos
}

// arm builds one arm's recipe from the base and its levels.
func (s Study) arm(index int, levels map[string]any) (Arm, error) {
	a := Arm{Index: index, Levels: map[string]any{}, Recipe: s.Base.clone()}
	for _, key := range sortedKeys(levels) {
		if err := Set(&a.Recipe, key, levels[key]); err != nil {
			var fe FieldError
			if errors.As(err, &fe) && s.Design == DesignList {
				fe.Field = fmt.Sprintf("arms[%d].%s", index, fe.Field)
				return a, fe
			}
			return a, err
		}
		a.Levels[key], _ = Get(&a.Recipe, key)
	}
	if err := a.Recipe.Validate(); err != nil {
		return a, err
	}
	a.Label = s.label(a)
	a.Hash = a.Recipe.Hash()
	return a, nil
}

// label names an arm by its levels in the order of the factors.
func (s Study) label(a Arm) string {
	var keys []string
	for _, f := range s.Factors {
		if _, ok := a.Levels[f.Key]; ok {
			keys = append(keys, f.Key)
		}
	}
	for _, k := range sortedKeys(a.Levels) {
		if !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return "base"
	}
	parts := make([]string, len(keys))
	for i, k := range keys {
		parts[i] = LevelLabel(k, a.Levels[k])
	}
	return strings.Join(parts, " × ")
}

// LevelLabel writes a factor's value as people read it: rates as per cent,
// numbers and booleans with their key's name.
func LevelLabel(key string, v any) string {
	if key == "environment.tool_failure_rate" {
		if x, ok := asFloat(v); ok {
			return fmt.Sprintf("failures %g %%", x*100)
		}
	}
	_, last, _ := strings.Cut(key, ".")
	switch x := v.(type) {
	case string:
		return x
	case bool:
		if x {
			return last
		}
		return "no " + last
	}
	return fmt.Sprintf("%s %v", strings.ReplaceAll(last, "_", " "), v)
}

// Hash identifies a recipe: SHA-256 of its canonical JSON, 16 hex digits.
// The informative preset name does not count.
func (r Recipe) Hash() string {
	r.Preset = ""
	b, err := json.Marshal(r)
	if err != nil { // a Recipe holds only plain data
		panic(err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

// Diff lists the keys in which two recipes differ, in schema order.
func Diff(a, b Recipe) []string {
	var keys []string
	for _, f := range fields {
		va, _ := Get(&a, f.Key)
		vb, _ := Get(&b, f.Key)
		if fmt.Sprint(va) != fmt.Sprint(vb) {
			keys = append(keys, f.Key)
		}
	}
	return keys
}

func (r Recipe) clone() Recipe {
	r.Trainer.Command = slices.Clone(r.Trainer.Command)
	r.Reward.Stages = slices.Clone(r.Reward.Stages)
	r.Trainer.Env = maps.Clone(r.Trainer.Env)
	r.Reward.Weights = maps.Clone(r.Reward.Weights)
	r.Reward.Milestones = maps.Clone(r.Reward.Milestones)
	r.Environment.FailureRates = maps.Clone(r.Environment.FailureRates)
	return r
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
