package web

import (
	"context"
	"net/http"
	"os/exec"
	"runtime"
	"strings"

	"github.com/go-chi/chi/v5"

	"alidade/templates"
	"alidade/trainer"
)

func (s *site) routesSettings(r chi.Router) {
	r.Get("/settings", s.page(s.settingsPage))
}

// settingsPage says how this server is set up.
func (s *site) settingsPage(w http.ResponseWriter, r *http.Request) error {
	v := s.settingsView(r.Context(), exec.LookPath)
	return s.render(w, r, http.StatusOK, templates.SettingsPage(s.view(r, "settings", "settings", "Settings"), v))
}

func (s *site) settingsView(ctx context.Context, look func(string) (string, error)) templates.SettingsView {
	dir := s.DataDir
	if dir == "" {
		dir = s.Store.Dir()
	}
	access := templates.SettingsLine{Label: "access", Status: &templates.Status{Kind: "ok", Word: "by token"}, Hint: "the token file in the data folder holds it; only its owner can read that file"}
	hint := templates.SettingsLine{Label: "token", Value: tokenHint(s.Token), Mono: true, Hint: "its last characters; scripts send Authorization: Bearer"}
	if s.NoAuth {
		access = templates.SettingsLine{Label: "access", Status: &templates.Status{Kind: "warn", Word: "open on this machine"}, Hint: "started with --no-auth: everyone on this machine can start processes here"}
		hint = templates.SettingsLine{Label: "token", Value: "none"}
	}
	hosts := "loopback only"
	if len(s.Hosts) > 0 {
		hosts = "loopback, " + strings.Join(s.Hosts, ", ")
	}
	runs := &templates.Status{Kind: "ok", Word: "runs studies"}
	if s.Runs == nil {
		runs = &templates.Status{Kind: "pause", Word: "read only"}
	}
	return templates.SettingsView{
		Lede: "How this server was started. Flags and the data folder decide; nothing here is changed from the browser.",
		Sections: []templates.SettingsSection{
			{ID: "access", Title: "Access", Note: "who may call this server", Lines: []templates.SettingsLine{access, hint, {Label: "names it answers to", Value: hosts, Mono: true}}},
			{ID: "place", Title: "Data and program", Lines: []templates.SettingsLine{
				{Label: "data folder", Value: dir, Mono: true, Hint: "run folders in it are the truth; alidade rebuild makes the database from them again"},
				{Label: "version", Value: orDash(s.Version), Mono: true},
				{Label: "trainer protocol", Value: digits(trainer.Version), Mono: true},
				{Label: "built for", Value: runtime.GOOS + "/" + runtime.GOARCH + ", " + runtime.Version(), Mono: true},
				{Label: "this server", Status: runs},
			}},
		},
		Trainers: append(trainersFound(look), s.frameworks(ctx)...),
	}
}

// tokenHint shows the last four characters, which tell two tokens apart and
// open nothing.
func tokenHint(token string) string {
	if len(token) < 16 {
		return "set"
	}
	return "…" + token[len(token)-4:]
}

// trainersFound looks for what can train here.
func trainersFound(look func(string) (string, error)) []templates.TrainerRow {
	here := func(program string) templates.Status {
		if path, err := look(program); err == nil {
			return templates.Status{Kind: "ok", Word: path}
		}
		return templates.Status{Kind: "queue", Word: "not found"}
	}
	return []templates.TrainerRow{
		{Name: "cpu", What: "small policies, trained in this program", Found: templates.Status{Kind: "ok", Word: "built in"}, How: "trainer.kind: cpu"},
		{Name: "solver", What: "the exact solver answers queries; no policy", Found: templates.Status{Kind: "ok", Word: "built in"}, How: "trainer.kind: solver"},
		{Name: "endpoint", What: "a model behind an OpenAI-compatible server plays the sandbox", Found: templates.Status{Kind: "ok", Word: "built in"}, How: "trainer.kind: endpoint with endpoint.url and endpoint.model; docs/endpoint.md"},
		{Name: "command", What: "any program that reads spec.json and appends events", Found: templates.Status{Kind: "ok", Word: "your program"}, How: "trainer.kind: command with trainer.command; docs/trainer-protocol.md"},
		{Name: "python3", What: "for trainers written in Python", Found: here("python3"), How: "examples/command.yaml"},
		{Name: "nvidia-smi", What: "lists the GPUs of this machine", Found: here("nvidia-smi"), How: "GPUs become devices when it is found"},
	}
}

// frameworks are the trainers of language models.
func (s *site) frameworks(ctx context.Context) []templates.TrainerRow {
	if s.Trainers == nil {
		return nil
	}
	var rows []templates.TrainerRow
	for _, t := range s.Trainers.Found(ctx) {
		row := templates.TrainerRow{Name: t.Kind, What: t.What, Found: templates.Status{Kind: "ok", Word: t.Found}, How: "trainer.kind: " + t.Kind}
		if !t.Ready {
			row.Found = templates.Status{Kind: "queue", Word: orDash(t.Found)}
			row.How = t.How
		}
		rows = append(rows, row)
	}
	return rows
}
