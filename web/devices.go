package web

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"alidade/ablation"
	"alidade/store"
	"alidade/templates"
)

func (s *site) routesDevices(r chi.Router) {
	r.Get("/devices", s.page(s.devicesPage))
	r.Post("/devices/{device:[a-z]+[0-9]+}/{act:quarantine|unquarantine}", s.page(s.postDevice))
	r.Post("/api/v1/devices/{device:[a-z]+[0-9]+}/{act:quarantine|unquarantine}", s.page(s.apiDeviceAct))
}

// waitingShown is how much of the queue the page lists.
const waitingShown = 10

// devicesPage shows devices, who holds them, and what waits.
func (s *site) devicesPage(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	q, err := s.readQueue(ctx)
	if err != nil {
		return err
	}
	d := devicesData{devices: s.devices(), queue: q, studies: map[ablation.StudyID]string{}, runs: map[ablation.RunID]ablation.Run{}}
	var ids []ablation.RunID
	for _, w := range q.list[:min(len(q.list), waitingShown)] {
		ids = append(ids, w.Run)
	}
	for _, dev := range d.devices {
		if dev.Run > 0 {
			ids = append(ids, dev.Run)
		}
	}
	if len(ids) > 0 {
		runs, err := s.Store.Runs(ctx, store.RunFilter{IDs: ids})
		if err != nil {
			return fmt.Errorf("read runs of devices: %w", err)
		}
		for _, run := range runs {
			d.runs[run.ID] = run
		}
	}
	studies, err := s.Store.Studies(ctx)
	if err != nil {
		return fmt.Errorf("list studies: %w", err)
	}
	for _, st := range studies {
		d.studies[st.ID] = question(st.Study)
	}
	v := s.devicesView(d)
	return s.render(w, r, http.StatusOK, templates.DevicesPage(s.view(r, "devices", "devices", "Devices"), v))
}

// devicesData is what the page of devices is made of.
type devicesData struct {
	devices []Device
	queue   waits
	runs    map[ablation.RunID]ablation.Run // that hold a device or are listed as waiting
	studies map[ablation.StudyID]string
}

func (s *site) devicesView(d devicesData) templates.DevicesView {
	v := templates.DevicesView{Title: "No devices", Lede: "A run takes its devices when it starts and gives them back when it ends. What other programs use is never taken."}
	byKind := map[string][]Device{}
	free, simulated := 0, 0
	for _, dev := range d.devices {
		byKind[dev.Kind] = append(byKind[dev.Kind], dev)
		if dev.Free {
			free++
		}
		if dev.Simulated {
			simulated++
		}
	}
	for _, kind := range []struct{ id, title string }{{"gpu", "GPUs"}, {"cpu", "CPU slots"}} {
		of := byKind[kind.id]
		if len(of) == 0 {
			continue
		}
		cells, _, sum := deviceStrip(of)
		for i := range cells {
			s.fillDevice(&cells[i], of[i], d)
		}
		v.Groups = append(v.Groups, templates.DeviceGroup{ID: kind.id, Title: kind.title, Note: sum, Devices: cells})
	}
	if s.History != nil {
		v.Lede += " Curves show the last 10 minutes."
	}
	if simulated > 0 {
		v.Banner = []templates.AlertView{{Level: "warn", Title: plural(simulated, "device is simulated", "devices are simulated"), Text: "Simulated devices exist for design and tests: the server was started with --devices sim:… Runs lease them; nothing is computed on them."}}
	}
	switch {
	case len(d.devices) == 0:
		v.Empty = &templates.EmptyView{Title: "This server has no devices", Text: "It only shows what is stored. Start it with alidade serve on a machine with free CPU cores or GPUs to run studies."}
	case !slices.ContainsFunc(d.devices, func(x Device) bool { return x.Run == 0 }):
		v.Title = plural(len(d.devices), "device", "devices") + ", all leased"
	case free == 0:
		v.Title = plural(len(d.devices), "device", "devices") + ", none free"
	default:
		v.Title = fmt.Sprintf("%s, %d free", plural(len(d.devices), "device", "devices"), free)
	}
	v.Waiting, v.WaitingNote = waitingRows(d, s.now())
	return v
}

// fillDevice adds to a device's cell what only its own page shows.
func (s *site) fillDevice(c *templates.DeviceView, dev Device, d devicesData) {
	if run, ok := d.runs[dev.Run]; ok && dev.Run > 0 {
		c.Holder = fmt.Sprintf("run %d", run.ID)
		c.Name = fmt.Sprintf("%s, seed %d · %s", run.Arm.Label, run.Seed, d.studies[run.Study])
	}
	if dev.Quarantined {
		c.Stands = append(c.Stands, templates.Status{Kind: "bad", Word: "put away"})
		c.Holder = ""
	}
	if !dev.StaleSince.IsZero() {
		clock, _ := clockTime(dev.StaleSince, s.now())
		c.Stands = append(c.Stands, templates.Status{Kind: "lost", Word: "no reading since " + clock})
	}
	if dev.ECC > 0 {
		c.Stands = append(c.Stands, templates.Status{Kind: "warn", Word: plural(int(dev.ECC), "memory error", "memory errors")})
	}
	for _, p := range dev.Processes {
		line := templates.ProcessLine{Name: visible(p.Name), Foreign: dev.Run == 0}
		if line.Name == "" {
			line.Name = "a process that cannot be seen here"
		}
		var parts []string
		if p.PID > 0 {
			parts = append(parts, fmt.Sprintf("process %d", p.PID))
		}
		if p.UsedMiB > 0 {
			parts = append(parts, fixed(float64(p.UsedMiB)/1024, 1)+" GiB")
		}
		line.Detail = strings.Join(parts, ", ")
		c.Processes = append(c.Processes, line)
	}
	s.drawDevice(c, dev)
	if s.Queue == nil || dev.Kind != "gpu" {
		return
	}
	at := func(act string) string { return "/devices/" + dev.ID + "/" + act }
	if dev.Quarantined {
		c.Actions = []templates.ActionView{{Label: "Use again", Small: true, Name: "Use " + dev.ID + " again", Post: at("unquarantine"), Toast: dev.ID + " is in use again", Undo: at("quarantine")}}
	} else {
		c.Actions = []templates.ActionView{{Label: "Put away", Small: true, Kind: "quiet", Name: "Put " + dev.ID + " away", Post: at("quarantine"), Toast: dev.ID + " is put away: no further run gets it", Undo: at("unquarantine")}}
	}
}

// drawDevice draws what the device did in the last minutes; the curves take
// the place of the plain numbers.
func (s *site) drawDevice(c *templates.DeviceView, dev Device) {
	k := s.History.of(dev.ID)
	if len(k.util) < 2 {
		return
	}
	add := func(label string, values []float64, top float64, value, unit string) {
		if !slices.ContainsFunc(values, func(x float64) bool { return x > 0 }) && label != "busy" {
			return
		}
		spark := templates.NewSparkTo(96, 20, values, top)
		spark.Label = fmt.Sprintf("%s of %s over the last %s: now %s %s", label, dev.ID, hourMinutes(time.Duration(len(values))*s.History.every), value, unit)
		c.Curves = append(c.Curves, templates.DeviceCurve{Label: label, Value: value, Unit: unit, Spark: spark})
	}
	last := func(values []float64) float64 { return values[len(values)-1] }
	if u := last(k.util); u == u && (dev.Kind == "gpu" || u > 0) {
		add("busy", k.util, 1, fixed(u*100, 0), "%")
	}
	if dev.MemoryMiB > 0 {
		add("memory", k.memory, float64(dev.MemoryMiB)/1024, fixed(last(k.memory), 1), fmt.Sprintf("of %.0f GiB", float64(dev.MemoryMiB)/1024))
	}
	add("power", k.power, 0, fixed(last(k.power), 0), "W")
	add("temperature", k.temp, 0, fixed(last(k.temp), 0), "°C")
	if len(c.Curves) > 0 {
		c.Facts = nil
	}
}

// waitingRows are the first runs of the queue.
func waitingRows(d devicesData, now time.Time) (rows []templates.WaitingRow, note string) {
	n := len(d.queue.list)
	if n == 0 {
		return nil, ""
	}
	note = plural(n, "run", "runs") + ", next first"
	if n > waitingShown {
		note += fmt.Sprintf("; the first %d are listed", waitingShown)
	}
	for _, w := range d.queue.list[:min(n, waitingShown)] {
		r, ok := d.runs[w.Run]
		if !ok {
			continue
		}
		rows = append(rows, templates.WaitingRow{
			Run: runLink(r.ID), Study: templates.Link{Label: d.studies[r.Study], Href: fmt.Sprintf("/studies/%d", r.Study)},
			Arm: fmt.Sprintf("%s, seed %d", r.Arm.Label, r.Seed), Needs: needsWords(&r.Arm.Recipe), Why: visible(w.Reason), Start: startText(w, now),
			Queued: ago(r.QueuedAt, now), At: r.QueuedAt.UTC().Format(time.RFC3339),
		})
	}
	return rows, note
}

// actOnDevice puts a device away or takes it into use again.
func (s *site) actOnDevice(ctx context.Context, id, act string) error {
	if s.Queue == nil {
		return errReadOnly
	}
	if !slices.ContainsFunc(s.devices(), func(d Device) bool { return d.ID == id }) {
		return fmt.Errorf("device %s: %w", id, ablation.ErrNotFound)
	}
	if act == "quarantine" {
		return s.Queue.Quarantine(ctx, id, "put away by hand")
	}
	return s.Queue.Unquarantine(ctx, id)
}

func (s *site) postDevice(w http.ResponseWriter, r *http.Request) error {
	if err := s.actOnDevice(r.Context(), chi.URLParam(r, "device"), chi.URLParam(r, "act")); err != nil {
		return err
	}
	http.Redirect(w, r, "/devices", http.StatusSeeOther)
	return nil
}

func (s *site) apiDeviceAct(w http.ResponseWriter, r *http.Request) error {
	if err := s.actOnDevice(r.Context(), chi.URLParam(r, "device"), chi.URLParam(r, "act")); err != nil {
		return err
	}
	return s.apiDevices(w, r)
}

// needsWords says what a recipe needs of the machine.
func needsWords(r *ablation.Recipe) string {
	n := max(r.Trainer.Devices, 1)
	if r.Trainer.Device == "cpu" {
		return plural(n, "CPU slot", "CPU slots")
	}
	if r.Trainer.MemoryGiB > 0 {
		return fmt.Sprintf("%s of at least %s GiB", plural(n, "device", "devices"), fixed(r.Trainer.MemoryGiB, 0))
	}
	return plural(n, "device", "devices")
}
