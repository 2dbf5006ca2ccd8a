package web

import (
	"fmt"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"alidade/ablation"
	"alidade/store"
	"alidade/templates"
)

func (s *site) routesDevices(r chi.Router) {
	r.Get("/devices", s.page(s.devicesPage))
}

// waitingShown is how much of the queue the page lists.
const waitingShown = 50

// devicesPage shows devices, who holds them, and what waits.
func (s *site) devicesPage(w http.ResponseWriter, r *http.Request) error {
	queued, err := s.Store.Runs(r.Context(), store.RunFilter{States: []ablation.State{ablation.Queued}})
	if err != nil {
		return fmt.Errorf("list queued runs: %w", err)
	}
	studies, err := s.Store.Studies(r.Context())
	if err != nil {
		return fmt.Errorf("list studies: %w", err)
	}
	v := devicesView(s.devices(), queued, studies, s.now())
	return s.render(w, r, http.StatusOK, templates.DevicesPage(s.view(r, "devices", "devices", "Devices"), v))
}

func devicesView(devices []Device, queued []ablation.Run, studies []ablation.StudyRecord, now time.Time) templates.DevicesView {
	v := templates.DevicesView{Title: "No devices", Lede: "A run takes its devices when it starts and gives them back when it ends. What other programs use is never taken."}
	byKind := map[string][]Device{}
	free := 0
	for _, d := range devices {
		byKind[d.Kind] = append(byKind[d.Kind], d)
		if d.Free {
			free++
		}
	}
	for _, kind := range []struct{ id, title string }{{"gpu", "GPUs"}, {"cpu", "CPU slots"}} {
		if of := byKind[kind.id]; len(of) > 0 {
			cells, _, sum := deviceStrip(of)
			v.Groups = append(v.Groups, templates.DeviceGroup{ID: kind.id, Title: kind.title, Note: sum, Devices: cells})
		}
	}
	switch {
	case len(devices) == 0:
		v.Empty = &templates.EmptyView{Title: "This server has no devices", Text: "It only shows what is stored. Start it with alidade serve on a machine with free CPU cores or GPUs to run studies."}
	case free == 0:
		v.Title = plural(len(devices), "device", "devices") + ", all leased"
	default:
		v.Title = fmt.Sprintf("%s, %d free", plural(len(devices), "device", "devices"), free)
	}
	names, paused := map[ablation.StudyID]string{}, map[ablation.StudyID]bool{}
	for _, st := range studies {
		names[st.ID], paused[st.ID] = st.Study.Name, st.Paused
	}
	v.WaitingNote = plural(len(queued), "run", "runs") + ", next first"
	if len(queued) > waitingShown {
		v.WaitingNote += fmt.Sprintf("; the first %d are listed", waitingShown)
		queued = queued[:waitingShown]
	}
	for _, r := range queued {
		row := templates.WaitingRow{
			Run: runLink(r.ID), Study: templates.Link{Label: names[r.Study], Href: fmt.Sprintf("/studies/%d", r.Study)},
			Arm: fmt.Sprintf("%s, seed %d", r.Arm.Label, r.Seed), Needs: needsWords(&r.Arm.Recipe),
			Queued: ago(r.QueuedAt, now), At: r.QueuedAt.UTC().Format(time.RFC3339),
		}
		if paused[r.Study] {
			row.Needs += "; its study is paused"
		}
		v.Waiting = append(v.Waiting, row)
	}
	return v
}

// needsWords says what a recipe needs of the machine.
func needsWords(r *ablation.Recipe) string {
	n := max(r.Trainer.Devices, 1)
	if r.Trainer.MemoryGiB > 0 {
		return fmt.Sprintf("%s of at least %s GiB", plural(n, "device", "devices"), fixed(r.Trainer.MemoryGiB, 0))
	}
	return plural(n, "device", "devices")
}
