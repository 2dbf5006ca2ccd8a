package web

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"alidade/ablation"
	"alidade/sandbox/travel"
	"alidade/sandbox/travel/dataset"
	"alidade/store"
	"alidade/templates"
)

// openInside opens a file below root: a path in an event cannot lead out of
// the data folder.
func openInside(root, path string) (*os.File, error) {
	dir, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	if filepath.IsAbs(path) {
		if path, err = filepath.Rel(root, path); err != nil {
			return nil, err
		}
	}
	return dir.Open(path)
}

// datasets lists the datasets, oldest first and each once: those that runs
// have announced, and the imported ones, which no run made.
func (s *site) datasets(ctx context.Context) ([]ablation.Artifact, error) {
	all, err := s.Store.Artifacts(ctx, 0)
	if err != nil {
		return nil, fmt.Errorf("list artifacts: %w", err)
	}
	var out []ablation.Artifact
	seen := map[string]bool{}
	for _, a := range append(all, s.imported()...) {
		if a.Kind == "dataset" && !seen[a.Hash] {
			seen[a.Hash] = true
			out = append(out, a)
		}
	}
	slices.SortStableFunc(out, func(a, b ablation.Artifact) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return out, nil
}

// datasetFolder is where datasets lie in the data folder.
const datasetFolder = "artifacts/dataset"

// importNote is the provenance.json of an imported dataset.
type importNote struct {
	Kind string         `json:"kind"`
	Hash string         `json:"hash"`
	Of   map[string]any `json:"of"`
	Run  ablation.RunID `json:"run"` // 0
	Made time.Time      `json:"made"`
}

// imported finds the datasets that no run has announced.
func (s *site) imported() []ablation.Artifact {
	folders, err := os.ReadDir(filepath.Join(s.Store.Dir(), datasetFolder))
	if err != nil {
		return nil // none was imported
	}
	var out []ablation.Artifact
	for _, f := range folders {
		path := filepath.Join(datasetFolder, f.Name())
		src, err := readInside(s.Store.Dir(), filepath.Join(path, "provenance.json"))
		var n importNote
		if err != nil || json.Unmarshal(src, &n) != nil || n.Run != 0 || n.Hash != f.Name() {
			continue
		}
		a := ablation.Artifact{Kind: "dataset", Hash: n.Hash, Path: path, CreatedAt: n.Made, Provenance: map[string]any{"of": n.Of}}
		if info, err := os.Stat(filepath.Join(s.Store.Dir(), path, onlySet.file)); err == nil {
			a.Bytes = info.Size()
		}
		out = append(out, a)
	}
	return out
}

func readInside(root, path string) ([]byte, error) {
	f, err := openInside(root, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxImport))
}

// readSet reads the queries of a file below root: in the benchmark's form, or
// as the embedded trainer records them.
func readSet(root, path string) ([]travel.QueryLine, error) {
	f, err := openInside(root, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []travel.QueryLine
	r := bufio.NewReader(f)
	for n := 1; ; n++ {
		src, err := r.ReadBytes('\n')
		if len(bytes.TrimSpace(src)) > 0 {
			l, bad := readLine(src)
			if bad != nil {
				return nil, fmt.Errorf("line %d: %w", n, bad)
			}
			out = append(out, l)
		}
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func readLine(src []byte) (l travel.QueryLine, err error) {
	if !bytes.HasPrefix(src, []byte(`{"Hash"`)) {
		err = l.UnmarshalJSON(src)
		return l, err
	}
	var own struct {
		Hash  string
		Query travel.Query
	}
	err = json.Unmarshal(src, &own)
	return travel.QueryLine{ID: own.Hash, Query: own.Query}, err
}

// fillCard draws what is in a set, and says what became of the draws.
func (s *site) fillCard(v *templates.DatasetView, a ablation.Artifact, set querySet, lines []travel.QueryLine) {
	var card dataset.Card
	src, err := readInside(s.Store.Dir(), filepath.Join(a.Path, "card.json"))
	if err != nil || json.Unmarshal(src, &card) != nil || card.Queries != len(lines) {
		card = dataset.NewCard(set.label, dataset.World{}, dataset.Made{}, lines, nil, nil)
	}
	for _, level := range []string{"easy", "medium", "hard"} {
		if n := card.Levels[level]; n > 0 {
			v.Levels = append(v.Levels, templates.LevelShare{Level: level, Count: digits(int64(n)), Share: percentOf(n, len(lines))})
		}
	}
	for _, h := range card.Histograms {
		v.Hists = append(v.Hists, histView(h))
	}
	for _, kind := range mostFirst(card.Wishes) {
		v.Wishes = append(v.Wishes, barRow(kind, card.Wishes[kind], len(lines)))
	}
	if card.Solvable != nil {
		v.Facts = append(v.Facts, templates.Fact{Label: "solvable", Value: fixed(100*card.Solvable.Share, 1), Unit: fmt.Sprintf("%% of %s draws the solver was asked about", digits(int64(card.Solvable.Whole)))})
	}
	if n := card.Counts; n != nil {
		for _, row := range []struct {
			label string
			n     int
		}{{"kept", len(lines)}, {"no route", n.NoRoute}, {"too little on offer", n.NoBudget}, {"infeasible", n.Infeasible}, {"not proven solvable", n.NotProven}, {"drawn twice", n.Duplicate}, {"of another split", n.OtherSplit}} {
			if row.n > 0 {
				v.Draws = append(v.Draws, barRow(row.label, row.n, n.Drawn))
			}
		}
		v.DrawNote = digits(int64(n.Drawn)) + " draws in all"
	}
	if card.Made.Certified {
		v.Lede += " Every query has a plan that passes every strict check."
	}
}

func percentOf(n, of int) string {
	return fixed(100*float64(n)/float64(max(1, of)), 1) + thin + "%"
}

func barRow(label string, n, of int) templates.BarRow {
	return templates.BarRow{Label: label, Count: digits(int64(n)), Share: percentOf(n, of), W: unit(96 * float64(n) / float64(max(1, of)))}
}

// mostFirst lists keys by count, the largest first.
func mostFirst(m map[string]int) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int {
		if m[a] != m[b] {
			return m[b] - m[a]
		}
		return strings.Compare(a, b)
	})
	return keys
}

// histView draws a card's histogram in a box of 240 × 64.
func histView(h dataset.Histogram) templates.HistView {
	v := templates.HistView{Title: upperFirst(h.Name), Sub: "queries", Source: "mean " + grouped(h.Mean, decimalsFor(h.Mean))}
	if h.Unit != "" {
		v.Sub += " by " + h.Unit
	}
	most := max(1, slices.Max(append([]int{1}, h.Counts...)))
	w := 240 / float64(max(1, len(h.Counts)))
	decimals := decimalsFor(h.Edges[len(h.Edges)-1])
	if !slices.ContainsFunc(h.Edges, func(x float64) bool { return x != math.Trunc(x) }) {
		decimals = 0
	}
	edge := func(i int) string { return grouped(h.Edges[i], decimals) }
	peak := 0
	for i, n := range h.Counts {
		if n > h.Counts[peak] {
			peak = i
		}
		y := 63.0
		for k, level := range []string{"hard", "medium", "easy", ""} {
			if i >= len(h.ByLevel[level]) || h.ByLevel[level][i] == 0 {
				continue
			}
			of := h.ByLevel[level][i]
			height := 60 * float64(of) / float64(most)
			y -= height
			name := level
			if name == "" {
				name = "no level"
			}
			v.Bars = append(v.Bars, templates.HistBar{Class: fmt.Sprintf("shade-%d", k+1), X: unit(float64(i)*w + .5), Y: unit(y), W: unit(max(1, w-1)), H: unit(height),
				Title: fmt.Sprintf("%s–%s: %d %s of %d", edge(i), edge(i+1), of, name, n)})
		}
	}
	v.Low, v.High = edge(0), edge(len(h.Edges)-1)
	v.Label = fmt.Sprintf("%s from %s to %s, mean %s; most queries, %d, lie in %s–%s", v.Title, v.Low, v.High, grouped(h.Mean, decimalsFor(h.Mean)), h.Counts[peak], edge(peak), edge(peak+1))
	return v
}

func upperFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// grouped writes a number with its thousands separated.
func grouped(x float64, decimals int) string {
	if decimals == 0 {
		return digits(int64(math.Round(x)))
	}
	return fixed(x, decimals)
}

// decimalsFor gives numbers about three digits.
func decimalsFor(x float64) int {
	switch {
	case x < 3:
		return 2
	case x < 30:
		return 1
	}
	return 0
}

// fillQueries shows one page of a set, each query with its expert's trace.
func (s *site) fillQueries(ctx context.Context, v *templates.DatasetView, a ablation.Artifact, set string, lines []travel.QueryLine, page int) error {
	first := min((page-1)*queriesOnPage, len(lines))
	shown := lines[first:min(first+queriesOnPage, len(lines))]
	if len(shown) == 0 {
		v.Problem = "There is nothing on this page of the set."
		return nil
	}
	traces, err := s.expertTraces(ctx, a, set, first, len(shown))
	if err != nil {
		return err
	}
	for _, l := range shown {
		row := queryRow(l)
		if id, ok := traces[l.Query.Hash()]; ok {
			row.Trace = &templates.Link{Label: "expert trace", Href: fmt.Sprintf("/runs/%d/trajectories/%s", a.Run, url.PathEscape(id))}
		}
		v.Queries = append(v.Queries, row)
	}
	v.Shown = fmt.Sprintf("%s–%s of %s", digits(int64(first+1)), digits(int64(first+len(shown))), digits(int64(len(lines))))
	if page > 1 {
		v.Prev = datasetLink(a.Hash, set, page-1)
	}
	if first+len(shown) < len(lines) {
		v.Next = datasetLink(a.Hash, set, page+1)
	}
	return nil
}

// expertTraces finds the solver's trips for the queries first… of a set it
// drew: it plays the n-th query at step n.
func (s *site) expertTraces(ctx context.Context, a ablation.Artifact, set string, first, n int) (map[string]string, error) {
	if a.Run == 0 || set != onlySet.name {
		return nil, nil
	}
	from, to := int64(first+1), int64(first+n)
	heads, _, err := s.Store.Trajectories(ctx, store.TrajectoryFilter{Runs: []ablation.RunID{a.Run}, Phase: "judge", StepFrom: &from, StepTo: &to, Limit: n})
	if err != nil {
		return nil, fmt.Errorf("find expert traces: %w", err)
	}
	out := make(map[string]string, len(heads))
	for _, h := range heads {
		out[h.QueryHash] = h.ID
	}
	return out, nil
}

func queryRow(l travel.QueryLine) templates.QueryRow {
	q := l.Query
	var wish []string
	if len(q.Wish.Cuisine) > 0 {
		wish = append(wish, strings.Join(q.Wish.Cuisine, ", "))
	}
	for _, w := range []string{q.Wish.RoomType, q.Wish.HouseRule, q.Wish.Transportation} {
		if w != "" {
			wish = append(wish, w)
		}
	}
	hash := q.Hash()
	if len(l.ID) == 16 { // the embedded trainer's key names its rollouts
		hash = l.ID
	}
	row := templates.QueryRow{
		Hash: hash, Href: "/trajectories?" + url.Values{"q": {hash}}.Encode(), Level: templates.Plain(q.Level),
		Days: fmt.Sprint(q.Days), People: fmt.Sprint(q.People), Budget: digits(int64(q.Budget + .5)), Wish: strings.Join(wish, "; "),
	}
	row.Text, _ = clip(q.Text, 600)
	if row.Text == "" {
		row.Text = fmt.Sprintf("%s to %s, %s, %s", q.Org, q.Dest, plural(q.Days, "day", "days"), plural(q.People, "person", "people"))
	}
	return row
}
