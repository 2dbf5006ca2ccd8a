package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"alidade/ablation"
	"alidade/static"
	"alidade/store"
	"alidade/templates"
)

// Runs is what the pages may ask of the runner.
type Runs interface {
	Launch(ctx context.Context, st ablation.Study, source string) (ablation.StudyRecord, []ablation.Run, error)
	Stop(ctx context.Context, id ablation.RunID) error
	Resume(ctx context.Context, id ablation.RunID) error
	PauseStudy(ctx context.Context, id ablation.StudyID) error
	ResumeStudy(ctx context.Context, id ablation.StudyID) error
	StopStudy(ctx context.Context, id ablation.StudyID) error
	Log(ctx context.Context, run ablation.RunID, attempt int, stream string, tail int64) ([]byte, error)
}

// Device is a GPU or a CPU slot as the pages show it.
type Device struct {
	ID        string         `json:"id"`   // cpu0, gpu0
	Kind      string         `json:"kind"` // cpu, gpu
	Name      string         `json:"name"`
	MemoryMiB int64          `json:"memory_mib"`
	UsedMiB   int64          `json:"used_mib"`
	Util      float64        `json:"util"` // busy, 0–1; NaN = unknown
	PowerW    float64        `json:"power_w"`
	TempC     float64        `json:"temp_c"`
	Holder    string         `json:"holder,omitempty"` // a run or a foreign process, in words
	Run       ablation.RunID `json:"run,omitempty"`
	Simulated bool           `json:"simulated,omitempty"`
	Free      bool           `json:"free"`
	Note      string         `json:"note,omitempty"`

	Quarantined bool      `json:"quarantined,omitempty"` // put away: Note says why
	ECC         int64     `json:"ecc,omitempty"`         // memory errors that could not be corrected, since boot
	Processes   []Process `json:"processes,omitempty"`   // that hold a context
	StaleSince  time.Time `json:"stale_since,omitzero"`  // of the last good reading, when newer ones are missing
}

// Process holds a context on a GPU. PID 0 is one that cannot be seen here.
type Process struct {
	PID     int    `json:"pid"`
	Name    string `json:"name"`
	UsedMiB int64  `json:"used_mib,omitempty"`
}

// Config is what a site needs. Store is required; the rest has defaults.
type Config struct {
	Store   *store.Store
	Runs    Runs            // nil: read only, actions answer 409
	Queue   Queue           // nil: the stored order is shown and cannot be changed
	Devices func() []Device // nil: none are shown
	History *DeviceHistory  // nil: the devices page has no curves
	Hub     *Hub            // nil: pages are not live

	Trainers Trainers // nil: nothing is said about frameworks for language models

	Token  string   // what a client must know; required unless NoAuth
	NoAuth bool     // no token is asked for; the wiring allows it on loopback only
	Hosts  []string // names beside loopback under which the server may be called

	Logger  *slog.Logger
	Version string
	DataDir string
	Clock   func() time.Time // nil: time.Now
}

// site holds what handlers share. It has no state of its own beyond the hub.
type site struct {
	Config
	log    *slog.Logger
	now    func() time.Time
	assets map[string]static.File
	links  templates.Assets
	arms   armCache
}

// New returns the handler of the whole site. It starts nothing.
func New(c Config) (http.Handler, error) {
	s, err := newSite(c)
	if err != nil {
		return nil, err
	}
	return s.handler(), nil
}

func newSite(c Config) (*site, error) {
	if c.Store == nil {
		return nil, errors.New("web: Config.Store is missing")
	}
	if c.Token == "" && !c.NoAuth {
		return nil, errors.New("web: Config.Token is missing and NoAuth is off")
	}
	s := &site{Config: c, log: c.Logger, now: c.Clock}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.now == nil {
		s.now = time.Now
	}
	files, err := static.Files()
	if err != nil {
		return nil, fmt.Errorf("read embedded assets: %w", err)
	}
	s.assets = files
	s.links = templates.Assets{Style: assetLink(files, "app.css"), Script: assetLink(files, "app.js"), Icon: assetLink(files, "icon.svg")}
	return s, nil
}
