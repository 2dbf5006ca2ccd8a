package web

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/go-chi/chi/v5"

	"alidade/ablation"
	"alidade/templates"
)

// queriesOnPage is how many queries one page of a dataset holds.
const queriesOnPage = 50

// datasetSets are the files of a dataset that hold queries.
var datasetSets = []struct{ name, label, file string }{
	{"prompts", "RL prompts", "prompts.jsonl"},
	{"sft", "expert traces", "sft.jsonl"},
	{"panel", "held out", "panel.jsonl"},
}

// datasetPage shows one dataset's card and its queries.
func (s *site) datasetPage(w http.ResponseWriter, r *http.Request) error {
	hash := chi.URLParam(r, "hash")
	artifacts, err := s.Store.Artifacts(r.Context(), 0)
	if err != nil {
		return fmt.Errorf("list artifacts: %w", err)
	}
	var found *ablation.Artifact
	for i := range artifacts {
		if artifacts[i].Kind == "dataset" && artifacts[i].Hash == hash {
			found = &artifacts[i]
		}
	}
	if found == nil {
		return fmt.Errorf("dataset %s: %w", hash, ablation.ErrNotFound)
	}
	rd := paramReader{q: r.URL.Query()}
	set := rd.oneOf("set", []string{"prompts", "sft", "panel"})
	page := int(max(rd.whole("page", 1), 1))
	if len(rd.bad) > 0 {
		return &ablation.Invalid{Fields: rd.bad}
	}
	if set == "" {
		set = "prompts"
	}
	v := datasetView(*found, set, page, s.now())
	s.fillQueries(&v, *found, set, page)
	p := s.view(r, "datasets", "dataset", v.Title)
	p.Crumbs = []templates.Crumb{{Label: "Datasets", Href: "/datasets"}, {Label: shortHash(hash)}}
	return s.render(w, r, http.StatusOK, templates.DatasetPage(p, v))
}

func datasetView(a ablation.Artifact, set string, page int, now time.Time) templates.DatasetView {
	v := templates.DatasetView{
		Title: "Dataset " + shortHash(a.Hash), Set: set,
		Lede: fmt.Sprintf("Made by run %d %s, %s. Its hash names everything that went into it.", a.Run, ago(a.CreatedAt, now), bytesText(a.Bytes)),
		Facts: []templates.Fact{
			{Label: "RL prompts", Value: countNote(a, "Prompts", "prompts")},
			{Label: "expert traces", Value: countNote(a, "Traces", "traces"), Unit: "after the filter"},
			{Label: "held-out queries", Value: countNote(a, "Panel", "panel")},
			{Label: "easy : medium : hard", Value: orDash(note(a, "Mix"))},
			{Label: "cities", Value: countNote(a, "Cities", "cities")},
		},
	}
	for _, d := range datasetSets {
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

// datasetQuery is one line of a dataset's file.
type datasetQuery struct {
	Hash  string
	Query struct {
		Org, Dest string
		Days      int
		People    int
		Budget    float64
		Level     string
		Text      string
		Wish      struct {
			HouseRule, RoomType, Transportation string
			Cuisine                             []string
		}
	}
}

// fillQueries reads one page of a set from the dataset's folder. A folder
// that is gone is said on the page; the card stands without it.
func (s *site) fillQueries(v *templates.DatasetView, a ablation.Artifact, set string, page int) {
	file := ""
	for _, d := range datasetSets {
		if d.name == set {
			file = d.file
		}
	}
	queries, levels, total, err := readQueries(s.Store.Dir(), filepath.Join(a.Path, file), (page-1)*queriesOnPage, queriesOnPage)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		v.Problem = "This dataset's folder holds no " + file + "."
		return
	case err != nil:
		s.log.Warn("read dataset", "file", file, "err", err)
		v.Problem = "The file " + file + " could not be read."
		return
	}
	for _, q := range queries {
		v.Queries = append(v.Queries, queryRow(q))
	}
	for _, level := range []string{"easy", "medium", "hard"} {
		if n := levels[level]; n > 0 {
			v.Levels = append(v.Levels, templates.LevelShare{Level: level, Count: digits(int64(n)), Share: fixed(100*float64(n)/float64(total), 1) + thin + "%"})
		}
	}
	first := (page - 1) * queriesOnPage
	if len(queries) > 0 {
		v.Shown = fmt.Sprintf("%s–%s of %s", digits(int64(first+1)), digits(int64(first+len(queries))), digits(int64(total)))
	} else {
		v.Problem = "There is nothing on this page of the set."
	}
	if page > 1 {
		v.Prev = datasetLink(a.Hash, set, page-1)
	}
	if first+len(queries) < total {
		v.Next = datasetLink(a.Hash, set, page+1)
	}
}

func queryRow(q datasetQuery) templates.QueryRow {
	var wish []string
	if len(q.Query.Wish.Cuisine) > 0 {
		wish = append(wish, strings.Join(q.Query.Wish.Cuisine, ", "))
	}
	for _, w := range []string{q.Query.Wish.RoomType, q.Query.Wish.HouseRule, q.Query.Wish.Transportation} {
		if w != "" {
			wish = append(wish, w)
		}
	}
	row := templates.QueryRow{
		Hash: q.Hash, Href: "/trajectories?" + url.Values{"q": {q.Hash}}.Encode(), Level: templates.Plain(q.Query.Level),
		Days: fmt.Sprint(q.Query.Days), People: fmt.Sprint(q.Query.People), Budget: digits(int64(q.Query.Budget + .5)), Wish: strings.Join(wish, "; "),
	}
	row.Text, _ = clip(q.Query.Text, 600)
	if row.Text == "" {
		row.Text = fmt.Sprintf("%s to %s, %s, %s", q.Query.Org, q.Query.Dest, plural(q.Query.Days, "day", "days"), plural(q.Query.People, "person", "people"))
	}
	return row
}

// readQueries reads limit queries of a file below root, counting all of them
// by level.
func readQueries(root, path string, offset, limit int) (queries []datasetQuery, levels map[string]int, total int, err error) {
	dir, err := os.OpenRoot(root) // a path in an event cannot lead out of the data folder
	if err != nil {
		return nil, nil, 0, err
	}
	defer dir.Close()
	if filepath.IsAbs(path) {
		if path, err = filepath.Rel(root, path); err != nil {
			return nil, nil, 0, err
		}
	}
	f, err := dir.Open(path)
	if err != nil {
		return nil, nil, 0, err
	}
	defer f.Close()
	levels = map[string]int{}
	r := bufio.NewReader(f)
	for {
		line, err := r.ReadBytes('\n')
		if len(line) > 1 {
			var q datasetQuery
			if bad := json.Unmarshal(line, &q); bad != nil {
				return nil, nil, 0, fmt.Errorf("query %d: %w", total+1, bad)
			}
			if total >= offset && len(queries) < limit {
				queries = append(queries, q)
			}
			levels[q.Query.Level]++
			total++
		}
		if err == io.EOF {
			return queries, levels, total, nil
		}
		if err != nil {
			return nil, nil, 0, err
		}
	}
}
