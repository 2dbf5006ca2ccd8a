package gpu

import (
	"time"

	"alidade/ablation"
)

// The kinds of device.
const (
	KindCPU = "cpu"
	KindGPU = "gpu"
)

// A Device is one GPU or CPU slot as last seen. Readings that the driver does
// not give are zero.
type Device struct {
	ID        string         `json:"id"` // "cpu0", "gpu3"
	Kind      string         `json:"kind"`
	Name      string         `json:"name"`
	UUID      string         `json:"uuid,omitempty"` // of a GPU; survives renumbering
	MemoryMiB int64          `json:"memory_mib"`
	UsedMiB   int64          `json:"used_mib"`
	Util      float64        `json:"util"` // fraction 0–1
	PowerW    float64        `json:"power_w"`
	TempC     float64        `json:"temp_c"`
	Holder    string         `json:"holder,omitempty"` // "run 12", or the foreign processes
	Run       ablation.RunID `json:"run,omitempty"`    // 0 = not leased
	Simulated bool           `json:"simulated,omitempty"`
	Free      bool           `json:"free"`

	Quarantined bool `json:"quarantined,omitempty"` // put away: Note says why

	Processes  []Process `json:"processes,omitempty"`  // that hold a context
	ECC        int64     `json:"ecc,omitempty"`        // memory errors that could not be corrected, since boot
	Note       string    `json:"note,omitempty"`       // why it is not free, or what is odd about it
	StaleSince time.Time `json:"stale_since,omitzero"` // time of the last good reading, when newer ones are missing
	SampledAt  time.Time `json:"sampled_at,omitzero"`
}

// A Process holds a context on a GPU. In a container its id may be the host's,
// or 0.
type Process struct {
	PID     int    `json:"pid"`
	Name    string `json:"name"`
	UsedMiB int64  `json:"used_mib,omitempty"`
}

// A Fault is what a driver or the kernel said of a GPU.
type Fault struct {
	Device string    `json:"device"` // "gpu3"
	XID    int       `json:"xid"`    // NVIDIA's number; 0 = none
	Text   string    `json:"text"`
	Fatal  bool      `json:"fatal"` // the device cannot be used before a reset
	At     time.Time `json:"at"`
}

// A Request is what a run asks for. All of it is given at once or not at all.
type Request struct {
	Kind         string // KindCPU or KindGPU
	N            int    // devices
	MinMemoryMiB int64  // least memory of each; 0 = any
}

// A Lease is the exclusive use of devices by one run until [Pool.Release].
type Lease struct {
	Run     ablation.RunID
	Devices []Device // as they were when leased
}

// IDs returns the ids of the leased devices, in device order.
func (l Lease) IDs() []string {
	ids := make([]string, len(l.Devices))
	for i, d := range l.Devices {
		ids[i] = d.ID
	}
	return ids
}
