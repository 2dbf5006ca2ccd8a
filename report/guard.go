package report

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"alidade/ablation"
)

// guard says whether the arms may be compared: same panel, code, environment
// and kernel, and recipes that differ in the factors only.
func (b *builder) guard() Guard {
	var g Guard
	b.guardPanel(&g)
	b.guardTrainer(&g)
	b.guardRecipes(&g)
	b.guardSteps(&g)
	g.OK = len(g.Problems) == 0
	return g
}

func (b *builder) guardPanel(g *Guard) {
	panels := map[string][]string{} // hash → arms
	queries := 0
	for _, a := range b.arms {
		for _, o := range a.final {
			queries = max(queries, len(o.passed))
			if !slices.Contains(panels[o.hash], a.Label) {
				panels[o.hash] = append(panels[o.hash], a.Label)
			}
		}
	}
	switch len(panels) {
	case 0:
	case 1:
		for hash := range panels {
			g.Shared = append(g.Shared, fmt.Sprintf("evaluation panel of %d queries%s", queries, hashNote(hash)))
		}
	default:
		var parts []string
		for _, hash := range slices.Sorted(maps.Keys(panels)) {
			parts = append(parts, fmt.Sprintf("%s: %s", shortHash(hash), list(panels[hash])))
		}
		g.Problems = append(g.Problems, "arms were judged on different panels ("+strings.Join(parts, "; ")+"); only the queries they share are compared")
	}
}

func hashNote(hash string) string {
	if hash == "" {
		return ""
	}
	return " (hash " + shortHash(hash) + ")"
}

func shortHash(h string) string {
	if len(h) > 8 {
		return h[:8]
	}
	return h
}

// identity are what a trainer says of itself that must be the same in all
// runs; others, such as the host, may differ.
func identity(key string) bool {
	if strings.Contains(key, "hash") {
		return true
	}
	return slices.Contains([]string{"kernel", "code", "environment", "world", "panel"}, key)
}

func (b *builder) guardTrainer(g *Guard) {
	values := map[string]map[string][]string{} // key → value → arms
	note := func(key, value, arm string) {
		if value == "" {
			return
		}
		if values[key] == nil {
			values[key] = map[string][]string{}
		}
		if !slices.Contains(values[key][value], arm) {
			values[key][value] = append(values[key][value], arm)
		}
	}
	for _, a := range b.arms {
		for _, r := range a.runs {
			note("trainer", strings.TrimSpace(r.Hello.Trainer+" "+r.Hello.Version), a.Label)
			for k, v := range r.Hello.Info {
				if identity(k) {
					note(k, v, a.Label)
				}
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		of := values[key]
		name := strings.ReplaceAll(key, "_", " ")
		if len(of) == 1 {
			for v := range of {
				g.Shared = append(g.Shared, name+" "+shown(key, v))
			}
			continue
		}
		var parts []string
		for _, v := range slices.Sorted(maps.Keys(of)) {
			parts = append(parts, fmt.Sprintf("%s: %s", shown(key, v), list(of[v])))
		}
		text := fmt.Sprintf("%s differs (%s)", name, strings.Join(parts, "; "))
		if b.byDesign(key) {
			g.Differences = append(g.Differences, text+", by design")
		} else {
			g.Problems = append(g.Problems, text)
		}
	}
}

func shown(key, value string) string {
	if strings.Contains(key, "hash") {
		return shortHash(value)
	}
	return value
}

// byDesign says whether a factor explains why something differs.
func (b *builder) byDesign(key string) bool {
	for _, k := range b.varied() {
		group, _, _ := strings.Cut(k, ".")
		word := map[string]string{"environment": "env", "data": "data", "model": "model", "sft": "sft", "trainer": "kernel"}[group]
		if word != "" && strings.Contains(key, word) || group == "environment" && strings.Contains(key, "world") {
			return true
		}
		if strings.Contains(key, "recipe") || strings.Contains(key, "config") {
			return true
		}
	}
	return false
}

// varied are the recipe keys that the design varies.
func (b *builder) varied() []string {
	var keys []string
	for _, f := range b.in.Study.Study.Factors {
		keys = append(keys, f.Key)
	}
	for _, m := range b.in.Study.Study.Arms {
		for k := range m {
			if !slices.Contains(keys, k) {
				keys = append(keys, k)
			}
		}
	}
	slices.Sort(keys)
	return keys
}

func (b *builder) guardRecipes(g *Guard) {
	var flat []map[string]string
	for _, a := range b.arms {
		if r, ok := b.recipeOf(a.Index); ok {
			flat = append(flat, flatten(r))
		}
	}
	if len(flat) < 2 {
		return
	}
	varied := b.varied()
	keys := map[string]bool{}
	for _, f := range flat {
		for k := range f {
			keys[k] = true
		}
	}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		var values []string
		for _, f := range flat {
			if v := f[k]; !slices.Contains(values, v) {
				values = append(values, v)
			}
		}
		if len(values) < 2 || k == "preset" {
			continue
		}
		text := k + ": " + strings.Join(values, ", ")
		if slices.Contains(varied, k) {
			g.Differences = append(g.Differences, text)
		} else {
			g.Problems = append(g.Problems, "arms also differ in "+text)
		}
	}
}

func (b *builder) recipeOf(arm int) (ablation.Recipe, bool) {
	for _, r := range b.in.Runs {
		if r.Run.Arm.Index == arm {
			return r.Run.Arm.Recipe, true
		}
	}
	return ablation.Recipe{}, false
}

// flatten lists a recipe's keys with their values. A trainer's environment is
// left out: it may hold what a report must not show.
func flatten(r ablation.Recipe) map[string]string {
	r.Trainer.Env = nil
	raw, err := json.Marshal(r)
	if err != nil {
		return nil
	}
	var tree map[string]any
	if json.Unmarshal(raw, &tree) != nil {
		return nil
	}
	out := map[string]string{}
	walk("", tree, out)
	return out
}

func walk(prefix string, v any, out map[string]string) {
	m, ok := v.(map[string]any)
	if !ok {
		raw, err := json.Marshal(v)
		if err == nil {
			out[prefix] = strings.Trim(string(raw), `"`)
		}
		return
	}
	for k, inner := range m {
		if prefix != "" {
			k = prefix + "." + k
		}
		walk(k, inner, out)
	}
}

func (b *builder) guardSteps(g *Guard) {
	steps := map[int64][]string{}
	for _, a := range b.arms {
		if a.value.Seeds > 0 {
			s := a.step(b.primary.Key)
			steps[s] = append(steps[s], a.Label)
		}
	}
	if len(steps) == 1 {
		for s := range steps {
			g.Shared = append(g.Shared, fmt.Sprintf("last evaluation at step %d", s))
		}
		return
	}
	var parts []string
	for _, s := range slices.Sorted(maps.Keys(steps)) {
		parts = append(parts, fmt.Sprintf("step %d: %s", s, list(steps[s])))
	}
	if len(parts) > 1 && !slices.Contains(b.varied(), "budget.steps") {
		g.Problems = append(g.Problems, "arms were last evaluated at different steps ("+strings.Join(parts, "; ")+")")
	}
}
