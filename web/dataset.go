package web

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/go-chi/chi/v5"

	"alidade/ablation"
	"alidade/templates"
)

// queriesOnPage is how many queries one page of a dataset holds.
const queriesOnPage = 50

// A querySet is a file of a dataset that holds queries.
type querySet struct{ name, label, file string }

// trainerSets are the files of a dataset of the embedded trainer; onlySet is
// the file of one that the solver drew or that was imported.
var (
	trainerSets = []querySet{
		{"prompts", "RL prompts", "prompts.jsonl"},
		{"sft", "expert traces", "sft.jsonl"},
		{"panel", "held out", "panel.jsonl"},
		{"validation", "validation", "validation.jsonl"},
	}
	onlySet = querySet{"queries", "queries", "queries.jsonl"}
)

// setsOf lists the sets that a dataset's folder holds.
func (s *site) setsOf(a ablation.Artifact) []querySet {
	if s.holds(a, onlySet.file) {
		return []querySet{onlySet}
	}
	sets := trainerSets[:3:3]
	if s.holds(a, trainerSets[3].file) {
		sets = trainerSets
	}
	return sets
}

func (s *site) holds(a ablation.Artifact, file string) bool {
	f, err := openInside(s.Store.Dir(), filepath.Join(a.Path, file))
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	return err == nil && info.Size() > 0
}

// chosenSet reads dataset and set of a request.
func (s *site) chosenSet(r *http.Request) (a ablation.Artifact, sets []querySet, set querySet, err error) {
	hash := chi.URLParam(r, "hash")
	all, err := s.datasets(r.Context())
	if err != nil {
		return a, nil, set, err
	}
	i := slices.IndexFunc(all, func(a ablation.Artifact) bool { return a.Hash == hash })
	if i < 0 {
		return a, nil, set, fmt.Errorf("dataset %s: %w", hash, ablation.ErrNotFound)
	}
	a, sets = all[i], s.setsOf(all[i])
	names := make([]string, len(sets))
	for i, x := range sets {
		names[i] = x.name
	}
	rd := paramReader{q: r.URL.Query()}
	name := rd.oneOf("set", names)
	if len(rd.bad) > 0 {
		return a, nil, set, &ablation.Invalid{Fields: rd.bad}
	}
	set = sets[max(0, slices.Index(names, name))]
	return a, sets, set, nil
}

// datasetPage shows one dataset's card and its queries.
func (s *site) datasetPage(w http.ResponseWriter, r *http.Request) error {
	a, sets, set, err := s.chosenSet(r)
	if err != nil {
		return err
	}
	page, err := intParam(r, "page", 1, 1, 1<<20)
	if err != nil {
		return err
	}
	v := datasetView(a, sets, set.name, s.now())
	lines, err := readSet(s.Store.Dir(), filepath.Join(a.Path, set.file))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		v.Problem = "This dataset's folder holds no " + set.file + "."
	case err != nil:
		s.log.Warn("read dataset", "file", set.file, "err", err)
		v.Problem = "The file " + set.file + " could not be read."
	default:
		s.fillCard(&v, a, set, lines)
		if err := s.fillQueries(r.Context(), &v, a, set.name, lines, int(page)); err != nil {
			return err
		}
	}
	p := s.view(r, "datasets", "datasets", v.Title)
	p.Crumbs = []templates.Crumb{{Label: "Datasets", Href: "/datasets"}, {Label: shortHash(a.Hash)}}
	return s.render(w, r, http.StatusOK, templates.DatasetPage(p, v))
}

func datasetView(a ablation.Artifact, sets []querySet, set string, now time.Time) templates.DatasetView {
	v := templates.DatasetView{
		Title: "Dataset " + shortHash(a.Hash), Set: set,
		Lede:  fmt.Sprintf("Made by run %d %s, %s. Its hash names everything that went into it.", a.Run, ago(a.CreatedAt, now), bytesText(a.Bytes)),
		Facts: []templates.Fact{{Label: map[bool]string{true: "queries", false: "RL prompts"}[len(sets) == 1], Value: countNote(a, "Prompts", "prompts")}},
	}
	if a.Run == 0 {
		v.Lede = fmt.Sprintf("Imported %s, %s. Its hash names its content.", ago(a.CreatedAt, now), bytesText(a.Bytes))
		if name := note(a, "name"); name != "" {
			v.Title = visible(name)
		}
	}
	if len(sets) > 1 {
		v.Facts = append(v.Facts, templates.Fact{Label: "expert traces", Value: countNote(a, "Traces", "traces"), Unit: "after the filter"},
			templates.Fact{Label: "held-out queries", Value: countNote(a, "Panel", "panel")})
	}
	v.Facts = append(v.Facts, templates.Fact{Label: "easy : medium : hard", Value: orDash(note(a, "Mix"))})
	if n := countNote(a, "Cities", "cities"); n != "–" {
		v.Facts = append(v.Facts, templates.Fact{Label: "cities", Value: n})
	}
	for _, form := range exportForms {
		v.Exports = append(v.Exports, templates.ActionView{Label: form.label, Href: exportLink(a.Hash, set, form.name)})
	}
	for _, d := range sets {
		v.Sets.Options = append(v.Sets.Options, templates.ChoiceOption{Label: d.label, Href: datasetLink(a.Hash, d.name, 1), On: d.name == set})
	}
	v.Sets.Label = "Set"
	v.Card = append(v.Card, templates.CardLine{Label: "hash", Value: a.Hash}, templates.CardLine{Label: "folder", Value: a.Path})
	of, _ := a.Provenance["of"].(map[string]any)
	told := map[string]bool{}
	line := func(label string, value any) {
		if label = keyWords(label); !told[label] {
			told[label] = true
			v.Card = append(v.Card, templates.CardLine{Label: label, Value: noteText(value)})
		}
	}
	for _, k := range sortedNotes(of) {
		line(k, of[k])
	}
	for _, k := range sortedNotes(a.Provenance) {
		if k != "of" {
			line(k, a.Provenance[k])
		}
	}
	return v
}

// keyWords writes "BudgetFactor" and "panel_hash" as words.
func keyWords(key string) string {
	var b strings.Builder
	for i, r := range key {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return strings.ReplaceAll(b.String(), "_", " ")
}

func datasetLink(hash, set string, page int) string {
	q := url.Values{"set": {set}}
	if page > 1 {
		q.Set("page", fmt.Sprint(page))
	}
	return "/datasets/" + hash + "?" + q.Encode()
}
