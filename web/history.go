package web

import (
	"context"
	"sync"
	"time"
)

// A DeviceHistory remembers what the devices did in the last minutes, for the
// curves of the devices page. The zero value is not usable; see
// [NewDeviceHistory].
type DeviceHistory struct {
	devices func() []Device
	every   time.Duration

	mu   sync.Mutex
	kept map[string]*deviceKept
}

// historyPoints is how many readings are kept of a device.
const historyPoints = 150

// deviceKept is what is kept of one device, oldest first.
type deviceKept struct{ util, memory, power, temp []float64 }

// NewDeviceHistory keeps ten minutes of readings, one each four seconds.
func NewDeviceHistory(devices func() []Device) *DeviceHistory {
	return &DeviceHistory{devices: devices, every: 4 * time.Second, kept: map[string]*deviceKept{}}
}

// Run reads the devices until ctx is done.
func (h *DeviceHistory) Run(ctx context.Context) {
	tick := time.NewTicker(h.every)
	defer tick.Stop()
	for {
		h.take()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// take reads the devices once. A device that vanished is forgotten.
func (h *DeviceHistory) take() {
	devices := h.devices()
	h.mu.Lock()
	defer h.mu.Unlock()
	seen := make(map[string]bool, len(devices))
	for _, d := range devices {
		seen[d.ID] = true
		k := h.kept[d.ID]
		if k == nil {
			k = &deviceKept{}
			h.kept[d.ID] = k
		}
		k.util = keep(k.util, d.Util)
		k.memory = keep(k.memory, float64(d.UsedMiB)/1024)
		k.power = keep(k.power, d.PowerW)
		k.temp = keep(k.temp, d.TempC)
	}
	for id := range h.kept {
		if !seen[id] {
			delete(h.kept, id)
		}
	}
}

func keep(list []float64, x float64) []float64 {
	if len(list) == historyPoints {
		copy(list, list[1:])
		list = list[:historyPoints-1]
	}
	return append(list, x)
}

// of returns a copy of what is kept of a device.
func (h *DeviceHistory) of(id string) deviceKept {
	if h == nil {
		return deviceKept{}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	k := h.kept[id]
	if k == nil {
		return deviceKept{}
	}
	return deviceKept{append([]float64{}, k.util...), append([]float64{}, k.memory...), append([]float64{}, k.power...), append([]float64{}, k.temp...)}
}
