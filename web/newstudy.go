package web

import (
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strconv"

	"github.com/go-chi/chi/v5"

	"alidade/ablation"
	"alidade/ablation/studyfile"
	"alidade/templates"
)

// newStudy is the page that makes studies.
type newStudy struct {
	*site
	past pastRuns
}

func (s *site) routesNewStudy(r chi.Router) {
	n := &newStudy{site: s}
	r.Get("/studies/new", s.page(n.open))
	r.Post("/studies/new", s.page(n.post))
}

// partHeader asks for the form alone, for the page's script.
const partHeader = "X-Alidade-Part"

// open starts from a template, from an earlier study, or blank.
func (s *newStudy) open(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	d, starting := blankDraft(), false
	switch {
	case q.Get("template") != "":
		t, ok := ablation.TemplateByID(q.Get("template"))
		if !ok {
			return fmt.Errorf("template %s: %w", templates.Plain(q.Get("template")), ablation.ErrNotFound)
		}
		d = draftOf(t.Study)
	case q.Get("from") != "":
		id, err := strconv.ParseInt(q.Get("from"), 10, 64)
		if err != nil {
			return invalidParam("from", q.Get("from"), "the number of a study")
		}
		rec, err := s.Store.Study(r.Context(), ablation.StudyID(id))
		if err != nil {
			return fmt.Errorf("study %d: %w", id, err)
		}
		d = draftOf(rec.Study)
		d.Name = copyName(d.Name)
	case q.Get("blank") == "":
		starting = true
	}
	return s.show(w, r, http.StatusOK, d, nil, starting)
}

// post changes the draft as a button says, launches it, or hands it
// out as a file.
func (s *newStudy) post(w http.ResponseWriter, r *http.Request) error {
	if err := r.ParseMultipartForm(maxBody); err != nil && !errors.Is(err, http.ErrNotMultipart) {
		return err
	}
	form := r.Form
	d := draftFromForm(form)
	act, yaml := form.Get("do"), form.Get("yaml")
	if act == "preset" { // without script the radio says which
		act = "preset:" + form.Get("preset")
	}
	if act == "import" {
		text, err := uploaded(r.MultipartForm)
		if err != nil {
			return err
		}
		act, yaml = "yaml", text
	}
	var inv *ablation.Invalid
	if err := d.apply(act, yaml); err != nil && !errors.As(err, &inv) {
		return err
	}
	if inv != nil {
		return s.show(w, r, http.StatusUnprocessableEntity, d, inv.Fields, false)
	}
	switch act {
	case "launch":
		return s.launch(w, r, d)
	case "export":
		return exportDraft(w, d)
	}
	return s.show(w, r, http.StatusOK, d, nil, false)
}

// launch queues the study's runs and leads to its page; a draft with
// problems is shown again.
func (s *newStudy) launch(w http.ResponseWriter, r *http.Request, d draft) error {
	st, planned, bad := d.check()
	if len(bad) > 0 || len(planned) == 0 {
		return s.show(w, r, http.StatusUnprocessableEntity, d, nil, false)
	}
	if s.Runs == nil {
		return errReadOnly
	}
	source, err := studyfile.Encode(st)
	if err != nil {
		return fmt.Errorf("write study file: %w", err)
	}
	rec, _, err := s.Runs.Launch(r.Context(), st, string(source))
	if err != nil {
		return fmt.Errorf("launch: %w", err)
	}
	http.Redirect(w, r, fmt.Sprintf("/studies/%d?launched=1", rec.ID), http.StatusSeeOther)
	return nil
}

// exportDraft hands the study out as a file.
func exportDraft(w http.ResponseWriter, d draft) error {
	st, _ := d.study()
	text, err := studyfile.Encode(st)
	if err != nil {
		return fmt.Errorf("write study file: %w", err)
	}
	name := fileSafe(st.Name)
	if name == "" {
		name = "study"
	}
	w.Header().Set("Content-Type", "application/yaml; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="`+name+`.yaml"`)
	_, _ = w.Write(text)
	return nil
}

// uploaded reads the study file of an import.
func uploaded(form *multipart.Form) (string, error) {
	if form == nil || len(form.File["file"]) == 0 {
		return "", invalidParam("file", "", "a study file, YAML or JSON")
	}
	f, err := form.File["file"][0].Open()
	if err != nil {
		return "", fmt.Errorf("open upload: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		return "", fmt.Errorf("read upload: %w", err)
	}
	return string(text), nil
}

// show writes the page, or the form alone when the script asks.
func (s *newStudy) show(w http.ResponseWriter, r *http.Request, status int, d draft, fileBad []ablation.FieldError, starting bool) error {
	past, err := s.past.history(r.Context(), s.site)
	if err != nil {
		return err
	}
	form := formOf(d, past, fileBad)
	offer(form.Groups, s.missingKinds(r.Context()))
	if st, planned, _ := d.check(); len(planned) > 0 {
		arms, _ := ablation.Arms(st)
		form.Refused = s.preflight(r.Context(), arms, &form.Outlook)
	}
	if s.Runs == nil {
		form.ReadOnly = errReadOnly.Text
	}
	cards := cardsOf(d.Template)
	if r.Header.Get(partHeader) == "study" {
		return s.render(w, r, status, templates.StudyForm(form, cards))
	}
	p := s.view(r, "studies", "newstudy", "New study")
	p.Crumbs = []templates.Crumb{{Label: "Studies", Href: "/studies"}, {Label: "new"}}
	p.Keys = []templates.Key{{Keys: []string{"f"}, Label: "make factor"}, {Keys: []string{"⌘", "↵"}, Label: "launch"}}
	v := templates.NewStudyView{Note: "Nothing runs until you launch.", Cards: cards, Form: form, Starting: starting}
	return s.render(w, r, status, templates.NewStudyPage(p, v))
}
