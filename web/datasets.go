package web

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"alidade/ablation"
	"alidade/store"
	"alidade/templates"
)

func (s *site) routesDatasets(r chi.Router) {
	r.Get("/datasets", s.page(s.datasetsPage))
	r.Get("/datasets/new", s.page(s.makeForm))
	r.Post("/datasets/new", s.page(s.makeDataset))
	r.Get("/datasets/import", s.page(s.importForm))
	r.Post("/datasets/import", s.page(s.importDataset))
	r.Post("/api/v1/datasets", s.page(s.apiImport))
	r.Get("/datasets/{hash:[0-9a-zA-Z]+}", s.page(s.datasetPage))
	r.Get("/datasets/{hash:[0-9a-zA-Z]+}/export", s.page(s.exportSet))
}

// datasetsPage lists datasets and what else runs share.
func (s *site) datasetsPage(w http.ResponseWriter, r *http.Request) error {
	artifacts, err := s.Store.Artifacts(r.Context(), 0)
	if err != nil {
		return fmt.Errorf("list artifacts: %w", err)
	}
	artifacts = append(artifacts, s.imported()...)
	slices.SortStableFunc(artifacts, func(a, b ablation.Artifact) int { return a.CreatedAt.Compare(b.CreatedAt) })
	runs, err := s.Store.Runs(r.Context(), store.RunFilter{})
	if err != nil {
		return fmt.Errorf("list runs: %w", err)
	}
	v := datasetsView(artifacts, runs, s.now())
	q, err := s.readQueue(r.Context())
	if err != nil {
		return err
	}
	v.Making = makingRows(runs, &q, s.now())
	if s.Runs != nil {
		v.Actions = append(v.Actions, templates.ActionView{Label: "New dataset", Href: "/datasets/new", Kind: "primary", Icon: "plus"})
	}
	v.Actions = append(v.Actions, templates.ActionView{Label: "Import queries", Href: "/datasets/import"})
	return s.render(w, r, http.StatusOK, templates.DatasetsPage(s.view(r, "datasets", "datasets", "Datasets"), v))
}

func datasetsView(artifacts []ablation.Artifact, runs []ablation.Run, now time.Time) templates.DatasetsView {
	v := templates.DatasetsView{Lede: "Made once from world, seed and mix; reused by every run whose recipe asks for the same."}
	used := usersOf(runs)
	seen := map[string]bool{}
	for _, a := range slices.Backward(artifacts) { // newest first
		if key := a.Kind + a.Hash; seen[key] {
			continue
		} else {
			seen[key] = true
		}
		switch a.Kind {
		case "dataset":
			v.Datasets = append(v.Datasets, datasetRow(a, used, now))
		case "checkpoint": // belongs to one run; its page lists it
		default:
			v.Others = append(v.Others, templates.SharedRow{
				Kind: templates.Plain(a.Kind), Hash: shortHash(a.Hash), What: artifactWords(a), MadeBy: runLink(a.Run),
				Made: ago(a.CreatedAt, now), At: a.CreatedAt.UTC().Format(time.RFC3339), Size: bytesText(a.Bytes),
			})
		}
	}
	v.Note = plural(len(v.Datasets), "dataset", "datasets") + ", newest first"
	if len(v.Datasets) == 0 {
		v.Empty = &templates.EmptyView{Title: "No dataset yet", Text: "The first run of a study synthesises its queries and expert traces; they are listed here with their difficulty mix and hash.", Actions: []templates.ActionView{{Label: "New study", Href: "/studies/new", Kind: "primary"}}}
		v.Note = ""
	}
	return v
}

func datasetRow(a ablation.Artifact, used map[string]int, now time.Time) templates.DatasetRow {
	n := used[usageKey(note(a, "Mix"), note(a, "Prompts"), note(a, "Seed"), note(a, "Traces"), note(a, "Panel"))]
	row := templates.DatasetRow{
		Href: "/datasets/" + a.Hash, Hash: shortHash(a.Hash), Mix: note(a, "Mix"),
		World: orDash(note(a, "cities")) + " cities", Prompts: countNote(a, "Prompts", "prompts"), Traces: countNote(a, "Traces", "traces"), Panel: countNote(a, "Panel", "panel"),
		Seed: orDash(note(a, "Seed")), Made: ago(a.CreatedAt, now), At: a.CreatedAt.UTC().Format(time.RFC3339), MadeBy: runLink(a.Run), Size: bytesText(a.Bytes), Used: "by " + plural(n, "run", "runs"),
	}
	switch {
	case a.Run == 0:
		row.Used, row.World = "imported", visible(orDash(note(a, "name")))
	case n == 0:
		row.Used = fmt.Sprintf("made by run %d", a.Run)
	}
	if kind := note(a, "Kind"); kind != "" {
		row.Traces = row.Prompts // the solver plays each one
		row.World = visible(kind) + ", " + row.World
	}
	row.MixBar = mixBar(row.Mix)
	row.Mix = orDash(row.Mix)
	return row
}

// mixBar draws "4:3:3" as shades from easy to hard, 96 units wide.
func mixBar(mix string) []templates.CostSeg {
	parts, err := ablation.ParseMix(mix)
	if err != nil {
		return nil
	}
	total, x := float64(parts[0]+parts[1]+parts[2]), 0.0
	var out []templates.CostSeg
	for i, n := range parts {
		w := float64(n) / total * 96
		if w > 0 {
			out = append(out, templates.CostSeg{Class: fmt.Sprintf("shade-%d", 4-i-1), X: unit(x), W: unit(max(w-1, 1))})
		}
		x += w
	}
	return out
}

// usersOf counts runs by the data their recipe asks for.
func usersOf(runs []ablation.Run) map[string]int {
	used := map[string]int{}
	for _, r := range runs {
		if r.StartedAt.IsZero() {
			continue
		}
		e := &r.Arm.Recipe
		used[usageKey(e.Data.Mix, strconv.Itoa(e.Data.Prompts), strconv.FormatUint(e.Data.Seed, 10), strconv.Itoa(e.SFT.Traces), strconv.Itoa(e.Evaluation.Queries))]++
	}
	return used
}

func usageKey(parts ...string) string { return strings.Join(parts, "|") }

// note reads a value of an artifact's provenance as text: its own notes, or
// the key it was made of.
func note(a ablation.Artifact, key string) string {
	if of, ok := a.Provenance["of"].(map[string]any); ok {
		if v, ok := of[key]; ok {
			return noteText(v)
		}
	}
	return noteText(a.Provenance[key])
}

func noteText(v any) string {
	switch x := v.(type) {
	case nil:
		return ""
	case string:
		return x
	case float64:
		if x != math.Trunc(x) {
			return strconv.FormatFloat(x, 'g', 4, 64)
		}
		return strconv.FormatFloat(x, 'f', -1, 64)
	case bool:
		return map[bool]string{true: "yes", false: "no"}[x]
	}
	return jsonText(v)
}

// countNote is what was made, or else what was asked for.
func countNote(a ablation.Artifact, asked, made string) string {
	text := noteText(a.Provenance[made])
	if text == "" {
		text = note(a, asked)
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return digits(n)
	}
	return orDash(templates.Plain(text))
}

func shortHash(h string) string { return h[:min(len(h), 12)] }

func runLink(id ablation.RunID) templates.Link {
	return templates.Link{Label: fmt.Sprintf("run %d", id), Href: fmt.Sprintf("/runs/%d", id)}
}

// artifactWords says what a shared product is, from its notes.
func artifactWords(a ablation.Artifact) string {
	var parts []string
	for _, k := range sortedNotes(a.Provenance) {
		if k == "of" || k == "cpu_s" {
			continue
		}
		text, cut := clip(noteText(a.Provenance[k]), 32)
		if !cut && text != "" {
			parts = append(parts, strings.ReplaceAll(k, "_", " ")+" "+text)
		}
		if len(parts) == 4 {
			break
		}
	}
	return templates.Plain(strings.Join(parts, ", "))
}

func sortedNotes(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// makingRows are the runs of the solver that have not ended.
func makingRows(runs []ablation.Run, q *waits, now time.Time) []templates.MakingRow {
	var rows []templates.MakingRow
	for _, r := range runs {
		if r.Arm.Recipe.Trainer.Kind != "solver" || r.Arm.Recipe.Data.QueriesFile != "" || r.State.Terminal() {
			continue
		}
		e := &r.Arm.Recipe
		row := templates.MakingRow{
			ID: fmt.Sprint(r.ID), Href: fmt.Sprintf("/runs/%d", r.ID), Status: statusOf(r, q.place(r.ID)), Step: stepText(r), Left: leftText(r, now),
			What: fmt.Sprintf("%s, %s world, %s, seed %d", plural(e.Data.Prompts, "query", "queries"), e.Environment.World, e.Data.Mix, e.Data.Seed),
			Rule: templates.NewRule(168, float64(e.Data.Prompts), float64(r.Step), 5, max(1, float64(e.Data.Prompts)/10), nil),
		}
		row.Rule.ID, row.Rule.Off = row.ID, !r.State.Live()
		row.Rule.Label = fmt.Sprintf("query %d of %d", r.Step, e.Data.Prompts)
		rows = append(rows, row)
	}
	return rows
}
