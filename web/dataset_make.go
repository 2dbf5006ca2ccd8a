package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"alidade/ablation"
	"alidade/sandbox/travel"
	"alidade/sandbox/travel/dataset"
	"alidade/templates"
)

// maxImport bounds a file of queries that is sent.
const maxImport = 64 << 20

// mostProblems is how many bad lines of an import are listed.
const mostProblems = 20

// exportForms are the forms a set can be taken away in.
var exportForms = []struct{ name, label, ext string }{
	{dataset.FormTravelPlanner, "JSONL, TravelPlanner's form", "jsonl"},
	{dataset.FormStar, "JSONL, Agent-STAR's form", "jsonl"},
	{dataset.FormVerl, "Parquet for verl", "parquet"},
	{dataset.FormTRL, "Parquet for TRL", "parquet"},
}

func exportLink(hash, set, form string) string {
	return "/datasets/" + hash + "/export?" + url.Values{"set": {set}, "form": {form}}.Encode()
}

// exportSet sends a set in a form.
func (s *site) exportSet(w http.ResponseWriter, r *http.Request) error {
	a, _, set, err := s.chosenSet(r)
	if err != nil {
		return err
	}
	name := r.URL.Query().Get("form")
	if name == "" {
		name = dataset.FormTravelPlanner
	}
	if !slices.Contains(dataset.Forms(), name) {
		return invalidParam("form", name, strings.Join(dataset.Forms(), ", "))
	}
	lines, err := readSet(s.Store.Dir(), filepath.Join(a.Path, set.file))
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			err = ablation.ErrNotFound
		}
		return fmt.Errorf("read %s of dataset %s: %w", set.file, a.Hash, err)
	}
	kind, ext := "application/jsonl", "jsonl"
	var b bytes.Buffer
	rows := dataset.Rows{Split: set.name}
	switch name {
	case dataset.FormVerl:
		kind, ext, err = "application/vnd.apache.parquet", "parquet", dataset.WriteVerl(&b, lines, rows)
	case dataset.FormTRL:
		kind, ext, err = "application/vnd.apache.parquet", "parquet", dataset.WriteTRL(&b, lines, rows)
	case dataset.FormStar:
		for i := range lines {
			lines[i].Plan = travel.Plan{}
			if lines[i].Model == "" {
				lines[i].Model = "template"
			}
		}
		fallthrough
	default:
		err = travel.WriteQueryLines(&b, lines)
	}
	if err != nil {
		return fmt.Errorf("write dataset %s as %s: %w", a.Hash, name, err)
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="%s-%s-%s.%s"`, shortHash(a.Hash), set.name, name, ext))
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(b.Bytes()) // the client may have left
	return nil
}

// makeFields are the settings of a set to draw, by recipe key.
var makeFields = []struct{ form, key string }{
	{"world", "environment.world"}, {"cities", "environment.cities"}, {"tables", "environment.tables"}, {"n", "data.prompts"}, {"mix", "data.mix"},
	{"days", "environment.days"}, {"seed", "data.seed"}, {"sampler", "data.sampler"},
}

// makeForm shows the form for drawing a set.
func (s *site) makeForm(w http.ResponseWriter, r *http.Request) error {
	return s.showMake(w, r, http.StatusOK, nil, nil)
}

func (s *site) showMake(w http.ResponseWriter, r *http.Request, status int, given url.Values, bad []ablation.FieldError) error {
	value := func(key, standard string) string {
		if given != nil {
			return given.Get(key)
		}
		return standard
	}
	v := templates.DatasetForm{
		Title: "New dataset", Action: "/datasets/new", Submit: "Draw the queries",
		Lede: "The solver draws queries until the mix is exact, keeps those it has a plan for, and plays each one's expert trace. It runs as a study of its own; the set appears among the datasets when it starts to play.",
		Fields: []templates.FormField{
			{Key: "name", Label: "name", Kind: "text", Value: value("name", "queries"), Help: "letters, digits, - and _"},
			{Key: "world", Label: "world", Kind: "choice", Options: []string{"small", "nano", "full", "real"}, Value: value("world", "small"), Help: "small and nano are generated with as many cities as you say; full has 312; real reads TravelPlanner's tables"},
			{Key: "cities", Label: "cities", Kind: "number", Value: value("cities", "40"), Help: "of small and nano"},
			{Key: "tables", Label: "tables", Kind: "text", Value: value("tables", ""), Help: "folder of TravelPlanner's tables on this machine, for world real; flights are generated where it has none"},
			{Key: "n", Label: "queries", Kind: "number", Value: value("n", "100")},
			{Key: "mix", Label: "easy : medium : hard", Kind: "text", Value: value("mix", "4:3:3"), Help: "met exactly"},
			{Key: "days", Label: "days", Kind: "choice", Options: []string{"0", "3", "5", "7"}, Value: value("days", "0"), Help: "0 draws 3, 5 and 7 equally often"},
			{Key: "sampler", Label: "sampler", Kind: "choice", Options: []string{"star", "travelplanner"}, Value: value("sampler", "star"), Help: "star is Agent-STAR's, travelplanner the benchmark's own"},
			{Key: "seed", Label: "seed", Kind: "number", Value: value("seed", "1"), Help: "the same seed gives the same set"},
		},
	}
	for _, f := range bad {
		i := slices.IndexFunc(v.Fields, func(x templates.FormField) bool { return x.Key == formKey(f.Field) })
		if i < 0 {
			v.Problems = append(v.Problems, visible(f.Error()))
			continue
		}
		v.Fields[i].Problem = visible(strings.TrimPrefix(f.Error(), f.Field+": "))
	}
	p := s.view(r, "datasets", "datasets", v.Title)
	p.Crumbs = []templates.Crumb{{Label: "Datasets", Href: "/datasets"}, {Label: v.Title}}
	return s.render(w, r, status, templates.DatasetFormPage(p, v))
}

// formKey is the form's field for a recipe key.
func formKey(key string) string {
	key = strings.TrimPrefix(key, "base.")
	for _, f := range makeFields {
		if f.key == key {
			return f.form
		}
	}
	return key
}

// makeDataset launches the study that draws a set.
func (s *site) makeDataset(w http.ResponseWriter, r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return err
	}
	st, bad := datasetStudy(r.PostForm)
	if len(bad) == 0 {
		if s.Runs == nil {
			return errReadOnly
		}
		_, _, err := s.Runs.Launch(r.Context(), st, "")
		inv, invalid := errors.AsType[*ablation.Invalid](err)
		switch {
		case invalid:
			bad = inv.Fields
		case err != nil:
			return fmt.Errorf("launch: %w", err)
		default:
			http.Redirect(w, r, "/datasets", http.StatusSeeOther)
			return nil
		}
	}
	return s.showMake(w, r, http.StatusUnprocessableEntity, r.PostForm, bad)
}

var studyName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// datasetStudy is the study that a form asks for: one arm, one seed, no policy.
func datasetStudy(form url.Values) (ablation.Study, []ablation.FieldError) {
	recipe, _ := ablation.PresetNamed("solver")
	var bad []ablation.FieldError
	for _, f := range makeFields {
		text := strings.TrimSpace(form.Get(f.form))
		if text == "" {
			continue
		}
		var value any = text
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && f.form != "mix" {
			value = n
		}
		if err := ablation.Set(&recipe, f.key, value); err != nil {
			if fe, ok := errors.AsType[ablation.FieldError](err); ok {
				bad = append(bad, fe)
			} else {
				bad = append(bad, ablation.FieldError{Field: f.key, Value: text, Problem: err.Error()})
			}
		}
	}
	name := strings.TrimSpace(form.Get("name"))
	if !studyName.MatchString(name) {
		bad = append(bad, ablation.FieldError{Field: "name", Value: name, Problem: "not a name", Allowed: "up to 64 letters, digits, - and _, a letter or digit first"})
	}
	st := ablation.Study{Name: name, Question: fmt.Sprintf("Data set %s: %d certified queries with their expert traces", name, recipe.Data.Prompts),
		Base: recipe, Design: ablation.DesignGrid, Seeds: []uint64{1}, Metric: "eval/success"}
	if len(bad) == 0 {
		if _, err := ablation.Expand(st); err != nil {
			if inv, ok := errors.AsType[*ablation.Invalid](err); ok {
				return st, inv.Fields
			}
			bad = append(bad, ablation.FieldError{Problem: err.Error()})
		}
	}
	return st, bad
}

// importForm shows the form for importing a set.
func (s *site) importForm(w http.ResponseWriter, r *http.Request) error {
	return s.showImport(w, r, http.StatusOK, "", "", nil)
}

func (s *site) showImport(w http.ResponseWriter, r *http.Request, status int, name, text string, bad []ablation.FieldError) error {
	v := templates.DatasetForm{
		Title: "Import queries", Action: "/datasets/import", Submit: "Check and import", File: true,
		Lede: "One JSON object a line, in TravelPlanner's or Agent-STAR's form. Every line is checked first; nothing is kept unless all are good.",
		Fields: []templates.FormField{
			{Key: "name", Label: "name", Kind: "text", Value: name},
			{Key: "file", Label: "JSONL file", Kind: "file", Help: fmt.Sprintf("up to %d MB", maxImport>>20)},
			{Key: "text", Label: "or its lines", Kind: "lines", Value: text},
		},
	}
	for i, f := range bad {
		if i == mostProblems {
			v.Problems = append(v.Problems, fmt.Sprintf("and %s more", digits(int64(len(bad)-i))))
			break
		}
		v.Problems = append(v.Problems, visible(lineProblem(f)))
	}
	p := s.view(r, "datasets", "datasets", v.Title)
	p.Crumbs = []templates.Crumb{{Label: "Datasets", Href: "/datasets"}, {Label: v.Title}}
	return s.render(w, r, status, templates.DatasetFormPage(p, v))
}

// lineProblem writes a bad line as one sentence.
func lineProblem(f ablation.FieldError) string {
	t := ""
	if f.Line > 0 {
		t = fmt.Sprintf("line %d, ", f.Line)
	}
	t += f.Field + " " + f.Problem
	if f.Value != "" {
		t += ": " + f.Value
	}
	if f.Allowed != "" {
		t += "; must be " + f.Allowed
	}
	return t
}

// importDataset is the form's post.
func (s *site) importDataset(w http.ResponseWriter, r *http.Request) error {
	if err := r.ParseMultipartForm(8 << 20); err != nil && !errors.Is(err, http.ErrNotMultipart) {
		return err
	}
	name, text := strings.TrimSpace(r.FormValue("name")), r.FormValue("text")
	if r.MultipartForm != nil && len(r.MultipartForm.File["file"]) > 0 {
		sent, err := uploaded(r.MultipartForm)
		if err != nil {
			return err
		}
		if text = sent; name == "" {
			name = r.MultipartForm.File["file"][0].Filename
		}
	}
	hash, bad, err := s.keepImport(name, []byte(text))
	if err != nil {
		return err
	}
	if len(bad) > 0 {
		if len(text) > 1<<20 {
			text = ""
		}
		return s.showImport(w, r, http.StatusUnprocessableEntity, name, text, bad)
	}
	http.Redirect(w, r, "/datasets/"+hash, http.StatusSeeOther)
	return nil
}

// apiImport takes a JSONL body: POST /api/v1/datasets?name=….
func (s *site) apiImport(w http.ResponseWriter, r *http.Request) error {
	src, err := io.ReadAll(r.Body)
	if err != nil {
		return fmt.Errorf("read body: %w", err)
	}
	hash, bad, err := s.keepImport(r.URL.Query().Get("name"), src)
	if err != nil {
		return err
	}
	if len(bad) > 0 {
		return &ablation.Invalid{Fields: bad}
	}
	w.Header().Set("Location", "/datasets/"+hash)
	return writeJSON(w, http.StatusCreated, map[string]any{"hash": hash, "path": filepath.Join(datasetFolder, hash, onlySet.file)})
}

// checkLines reads queries line by line and tells every bad one.
func checkLines(src []byte) (lines []travel.QueryLine, bad []ablation.FieldError) {
	seen := map[string]int{}
	for i, text := range bytes.Split(src, []byte("\n")) {
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		n := i + 1
		l, err := readLine(bytes.TrimSpace(text))
		if err != nil {
			bad = append(bad, fieldOf(err, n))
			continue
		}
		wrong := checkQuery(l.Query)
		for k := range wrong {
			wrong[k].Line = n
		}
		bad = append(bad, wrong...)
		hash := l.Query.Hash()
		if before := seen[hash]; before > 0 {
			bad = append(bad, ablation.FieldError{Field: "query", Problem: fmt.Sprintf("is the same as in line %d", before), Line: n})
		}
		seen[hash] = n
		lines = append(lines, l)
	}
	if len(lines)+len(bad) == 0 {
		bad = append(bad, ablation.FieldError{Field: "file", Problem: "is empty", Allowed: "one JSON object a line"})
	}
	return lines, bad
}

// fieldOf takes apart "days is 4, must be …" of the reader.
func fieldOf(err error, line int) ablation.FieldError {
	text := err.Error()
	f := ablation.FieldError{Field: "line", Problem: text, Line: line}
	if head, allowed, ok := strings.Cut(text, ", must be "); ok {
		if key, value, ok := strings.Cut(head, " is "); ok && !strings.Contains(key, " ") {
			f.Field, f.Problem, f.Value, f.Allowed = key, "is not allowed", value, allowed
		}
	}
	return f
}

func checkQuery(q travel.Query) []ablation.FieldError {
	var bad []ablation.FieldError
	add := func(field string, value any, allowed string) {
		bad = append(bad, ablation.FieldError{Field: field, Value: fmt.Sprint(value), Problem: "is not allowed", Allowed: allowed})
	}
	if q.Days != 3 && q.Days != 5 && q.Days != 7 {
		add("days", q.Days, "3, 5 or 7")
	}
	if len(q.Dates) != q.Days {
		add("date", strings.Join(q.Dates, ", "), fmt.Sprintf("%d dates, one a day", q.Days))
	}
	if !(q.Budget > 0) {
		add("budget", q.Budget, "above 0")
	}
	if !slices.Contains([]string{"easy", "medium", "hard"}, q.Level) {
		add("level", q.Level, "easy, medium or hard")
	}
	return bad
}

// keepImport checks a set and keeps it as an artifact; the same content is
// kept once.
func (s *site) keepImport(name string, src []byte) (hash string, bad []ablation.FieldError, err error) {
	lines, bad := checkLines(src)
	if len(bad) > 0 {
		return "", bad, nil
	}
	sum := sha256.New()
	levels := map[string]int{}
	for i := range lines {
		fmt.Fprintln(sum, lines[i].Query.Hash(), lines[i].Query.Text)
		levels[lines[i].Query.Level]++
	}
	hash = hex.EncodeToString(sum.Sum(nil)[:8])
	dir := filepath.Join(s.Store.Dir(), datasetFolder, hash)
	if _, err := os.Stat(filepath.Join(dir, "provenance.json")); err == nil {
		return hash, nil, nil
	}
	name, _ = clip(templates.Plain(name), 80)
	note := importNote{Kind: "dataset", Hash: hash, Made: s.now().UTC(), Of: map[string]any{"name": name, "Prompts": len(lines),
		"Mix": fmt.Sprintf("%d:%d:%d", levels["easy"], levels["medium"], levels["hard"]), "imported": true}}
	provenance, err := json.MarshalIndent(note, "", " ")
	if err != nil {
		return "", nil, fmt.Errorf("keep import: %w", err)
	}
	card := dataset.NewCard(name, dataset.World{Kind: "not known"}, dataset.Made{From: name}, lines, nil, nil)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", nil, fmt.Errorf("keep import: %w", err)
	}
	err = errors.Join(dataset.Write(filepath.Join(dir, onlySet.file), dataset.FormTravelPlanner, lines, dataset.Rows{}), dataset.WriteCard(filepath.Join(dir, "card.json"), card))
	if err == nil { // last: a folder that holds it is complete
		err = os.WriteFile(filepath.Join(dir, "provenance.json"), append(provenance, '\n'), 0o644)
	}
	if err != nil {
		return "", nil, fmt.Errorf("keep import: %w", err)
	}
	return hash, nil, nil
}
