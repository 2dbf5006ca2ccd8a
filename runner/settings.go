package runner

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// SettingsFile is the name of the settings in the data folder.
const SettingsFile = "settings.json"

// Settings are what a person says about this installation, in settings.json.
type Settings struct {
	PricePerGPUHour float64         `json:"price_per_gpu_hour,omitempty"` // 0 = costs are not counted
	Currency        string          `json:"currency,omitempty"`           // "USD", to show
	Webhook         WebhookSettings `json:"webhook,omitzero"`
	Slurm           SlurmSettings   `json:"slurm,omitzero"`
}

// WebhookSettings say where alerts are sent, if anywhere.
type WebhookSettings struct {
	URL          string   `json:"url,omitempty"`           // https://…; "" = nowhere. It may hold a secret and is never shown
	Levels       []string `json:"levels,omitempty"`        // of the alerts sent; empty = bad
	AllowHosts   []string `json:"allow_hosts,omitempty"`   // besides the URL's own host nothing is asked; with this list that one must be in it
	AllowPrivate bool     `json:"allow_private,omitempty"` // also addresses of this machine and its network
}

// SlurmSettings say how jobs are submitted. Empty fields are left to Slurm.
type SlurmSettings struct {
	Partition    string   `json:"partition,omitempty"`
	Account      string   `json:"account,omitempty"`
	QOS          string   `json:"qos,omitempty"`
	TimeLimit    string   `json:"time_limit,omitempty"`      // "1-00:00:00"
	GPUs         string   `json:"gpus,omitempty"`            // how GPUs are asked for: gres (also when empty), gpus-per-node, none
	GPUType      string   `json:"gpu_type,omitempty"`        // "h200"
	CPUsPerGPU   int      `json:"cpus_per_gpu,omitempty"`    // 0 = the trainer's threads
	MemPerGPUGiB float64  `json:"mem_per_gpu_gib,omitempty"` // host memory; 0 = Slurm's default
	WarnSeconds  int      `json:"warn_seconds,omitempty"`    // before the time limit, to save a checkpoint; 0 = 120
	MostJobs     int      `json:"most_jobs,omitempty"`       // handed to Slurm at once; 0 = 100
	Array        int      `json:"array,omitempty"`           // runs with equal needs that are handed over as one job array; 0 or 1 = each as a job of its own
	PollSeconds  float64  `json:"poll_seconds,omitempty"`    // between looks at the queue; 0 = 15
	Flags        []string `json:"flags,omitempty"`           // further options of sbatch, each "--name=value"
}

// ReadSettings reads settings.json of a data folder. Without the file the
// settings are empty. One that others may write to, or that holds a key nobody
// knows, is an error: it names commands' options and addresses.
func ReadSettings(dir string) (Settings, error) {
	var s Settings
	path := filepath.Join(dir, SettingsFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("read settings: %w", err)
	}
	if err := ownFile(path); err != nil {
		return s, err
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil {
		return s, fmt.Errorf("read settings: %s: %w", path, err)
	}
	return s, s.Validate()
}

// ownFile refuses a file that someone else could have written.
func ownFile(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("read settings: %w", err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("read settings: %s can be written by others (mode %o): chmod 600 it", path, info.Mode().Perm())
	case ok && int(st.Uid) != os.Geteuid() && st.Uid != 0:
		return fmt.Errorf("read settings: %s belongs to user %d: it must be yours", path, st.Uid)
	}
	return nil
}
